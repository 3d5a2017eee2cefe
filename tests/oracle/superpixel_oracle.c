#include "superpixel_oracle.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static float colour_at(const struct dcrf_colours *colours, size_t a, int c) {
    return colours->plane[c][a / colours->width * colours->stride + a % colours->width];
}

/* ---- mean shift ----------------------------------------------------------------------------- */

static bool is_near(const struct dcrf_mode *a, const struct dcrf_mode *b, float spatial,
                    float range) {
    const float dx = a->x - b->x, dy = a->y - b->y;
    const float d0 = a->colour[0] - b->colour[0], d1 = a->colour[1] - b->colour[1],
                d2 = a->colour[2] - b->colour[2];
    return dx * dx + dy * dy <= spatial * spatial && d0 * d0 + d1 * d1 + d2 * d2 <= range * range;
}

static struct dcrf_mode point_of(const struct dcrf_colours *luv, size_t a) {
    struct dcrf_mode point = {.x = (float)(a % luv->width), .y = (float)(a / luv->width)};
    for (int c = 0; c < 3; c++)
        point.colour[c] = colour_at(luv, a, c);
    return point;
}

static struct dcrf_mode mean_around(const struct dcrf_colours *luv, const struct dcrf_mode *centre,
                                    float spatial, float range) {
    double n = 0, sum[5] = {0};
    for (size_t a = 0; a < luv->width * luv->height; a++) {
        const struct dcrf_mode point = point_of(luv, a);
        if (!is_near(&point, centre, spatial, range))
            continue;
        n++;
        sum[0] += (double)point.x;
        sum[1] += (double)point.y;
        for (int c = 0; c < 3; c++)
            sum[2 + c] += (double)point.colour[c];
    }
    if (n == 0)
        return *centre;
    return (struct dcrf_mode){(float)(sum[0] / n),
                              (float)(sum[1] / n),
                              {(float)(sum[2] / n), (float)(sum[3] / n), (float)(sum[4] / n)}};
}

struct dcrf_mode *oracle_modes(const struct dcrf_colours *luv, float spatial, float range) {
    const size_t pixels = luv->width * luv->height;
    struct dcrf_mode *modes = malloc(pixels * sizeof *modes);
    for (size_t a = 0; a < pixels; a++) {
        modes[a] = point_of(luv, a);
        for (int step = 0; step < 100; step++) {
            const struct dcrf_mode before = modes[a];
            modes[a] = mean_around(luv, &before, spatial, range);
            if (memcmp(&before, &modes[a], sizeof before) == 0)
                break;
        }
    }
    return modes;
}

/* ---- components ----------------------------------------------------------------------------- */

static size_t pixels_in(const size_t size[3]) {
    return size[0] * size[1] * size[2];
}

/* The neighbour one step along an axis, or the pixel itself at the border. */
static size_t neighbour(const size_t size[3], size_t a, int axis, int step) {
    size_t at[3] = {a % size[0], a / size[0] % size[1], a / size[0] / size[1]};
    if (step < 0 ? at[axis] > 0 : at[axis] + 1 < size[axis])
        at[axis] = (size_t)((long)at[axis] + step);
    return (at[2] * size[1] + at[1]) * size[0] + at[0];
}

/* Propagate the number of each pixel to all pixels that `linked` joins to it, until nothing
 * changes. */
static size_t spread(const size_t size[3], bool (*linked)(const void *, size_t, size_t),
                     const void *context, int32_t *regions) {
    const size_t pixels = pixels_in(size);
    size_t count = 0, *stack = malloc(pixels * sizeof *stack);
    for (size_t a = 0; a < pixels; a++)
        regions[a] = -1;
    for (size_t a = 0; a < pixels; a++) {
        if (regions[a] >= 0)
            continue;
        size_t depth = 0;
        stack[depth++] = a;
        regions[a] = (int32_t)count;
        while (depth > 0) {
            const size_t at = stack[--depth];
            for (int i = 0; i < 6; i++) {
                const size_t near = neighbour(size, at, i / 2, i % 2 ? 1 : -1);
                if (regions[near] < 0 && linked(context, at, near)) {
                    regions[near] = (int32_t)count;
                    stack[depth++] = near;
                }
            }
        }
        count++;
    }
    free(stack);
    return count;
}

struct fusion {
    const struct dcrf_mode *modes;
    float spatial, range;
};

static bool modes_linked(const void *context, size_t a, size_t b) {
    const struct fusion *f = context;
    return is_near(&f->modes[a], &f->modes[b], f->spatial, f->range);
}

static bool numbers_equal(const void *context, size_t a, size_t b) {
    const int32_t *numbers = context;
    return numbers[a] == numbers[b];
}

size_t oracle_fuse(const struct dcrf_mode *modes, size_t width, size_t height, float spatial,
                   float range, int32_t *regions) {
    const struct fusion fusion = {modes, spatial, range};
    return spread((size_t[]){width, height, 1}, modes_linked, &fusion, regions);
}

size_t oracle_check_regions(const int32_t *regions, const size_t size[3]) {
    const size_t bytes = pixels_in(size) * sizeof *regions;
    int32_t *again = malloc(bytes);
    size_t count = spread(size, numbers_equal, regions, again);
    if (memcmp(again, regions, bytes) != 0)
        count = 0;
    free(again);
    return count;
}

/* ---- joining -------------------------------------------------------------------------------- */

struct summary {
    double pixels, colour[3];
};

static struct summary summarize(const struct dcrf_colours *colours, const int32_t *regions,
                                int32_t number) {
    struct summary s = {0};
    for (size_t a = 0; a < colours->width * colours->height * colours->depth; a++)
        if (regions[a] == number) {
            s.pixels++;
            for (int c = 0; c < 3; c++)
                s.colour[c] += (double)colour_at(colours, a, c);
        }
    for (int c = 0; c < 3; c++)
        s.colour[c] /= s.pixels;
    return s;
}

static bool touch(const size_t size[3], const int32_t *regions, int32_t r, int32_t q) {
    for (size_t a = 0; a < pixels_in(size); a++)
        for (int i = 0; i < 6; i++)
            if (regions[a] == r && regions[neighbour(size, a, i / 2, i % 2 ? 1 : -1)] == q)
                return true;
    return false;
}

static double distance(const struct summary *a, const struct summary *b) {
    double sum = 0;
    for (int c = 0; c < 3; c++)
        sum += (a->colour[c] - b->colour[c]) * (a->colour[c] - b->colour[c]);
    return sum;
}

size_t oracle_join(const struct dcrf_colours *colours, size_t min_region_px, int32_t *regions) {
    const size_t size[3] = {colours->width, colours->height, colours->depth};
    const size_t pixels = pixels_in(size);
    size_t count = oracle_check_regions(regions, size);
    struct summary *all = malloc(pixels * sizeof *all);
    int32_t *joined = malloc(pixels * sizeof *joined);
    while (count > 1) {
        int32_t smallest = 0, best = -1;
        for (size_t r = 0; r < count; r++) {
            all[r] = summarize(colours, regions, (int32_t)r);
            if (all[r].pixels < all[smallest].pixels)
                smallest = (int32_t)r;
        }
        if (all[smallest].pixels >= (double)min_region_px)
            break;
        for (size_t r = 0; r < count; r++)
            if ((int32_t)r != smallest && touch(size, regions, smallest, (int32_t)r) &&
                (best < 0 ||
                 distance(&all[r], &all[smallest]) < distance(&all[best], &all[smallest])))
                best = (int32_t)r;
        for (size_t a = 0; a < pixels; a++)
            if (regions[a] == smallest)
                regions[a] = best;
        memcpy(joined, regions, pixels * sizeof *joined);
        count = spread(size, numbers_equal, joined, regions);
    }
    free(joined);
    free(all);
    return count;
}

/* ---- SLIC ----------------------------------------------------------------------------------- */

/* A pixel or a centre; positions are in multiples of the spacing. */
struct point {
    float at[3], colour[3];
};

struct volume {
    const struct dcrf_colours *lab;
    size_t size[3];
    float step[3];
};

static struct point point_in(const struct volume *v, size_t a) {
    const size_t at[3] = {a % v->size[0], a / v->size[0] % v->size[1], a / v->size[0] / v->size[1]};
    struct point p;
    for (int i = 0; i < 3; i++) {
        p.at[i] = (float)at[i] * v->step[i];
        p.colour[i] = colour_at(v->lab, a, i);
    }
    return p;
}

static double gradient_at(const struct volume *v, size_t a) {
    double sum = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int c = 0; c < 3; c++) {
            const double difference =
                (double)colour_at(v->lab, neighbour(v->size, a, axis, -1), c) -
                (double)colour_at(v->lab, neighbour(v->size, a, axis, 1), c);
            sum += difference * difference;
        }
    return sum;
}

/* The flattest pixel of the 3 x 3 x 3 around (x, y, z); on ties the centre, then the first. */
static size_t flattest_near(const struct volume *v, const size_t at[3]) {
    size_t best = (at[2] * v->size[1] + at[1]) * v->size[0] + at[0];
    double least = gradient_at(v, best);
    for (size_t a = 0; a < pixels_in(v->size); a++) {
        const size_t here[3] = {a % v->size[0], a / v->size[0] % v->size[1],
                                a / v->size[0] / v->size[1]};
        bool is_near = true;
        for (int i = 0; i < 3; i++)
            is_near &= here[i] + 1 >= at[i] && here[i] <= at[i] + 1;
        if (is_near && gradient_at(v, a) < least) {
            least = gradient_at(v, a);
            best = a;
        }
    }
    return best;
}

static void assign_pixels(const struct volume *v, const struct point *centres, size_t k,
                          float reach, float weight, int32_t *nearest) {
    for (size_t a = 0; a < pixels_in(v->size); a++) {
        const struct point p = point_in(v, a);
        float least = INFINITY;
        nearest[a] = -1;
        for (size_t i = 0; i < k; i++) {
            const struct point *q = &centres[i];
            const float dx = p.at[0] - q->at[0], dy = p.at[1] - q->at[1], dz = p.at[2] - q->at[2];
            const float d0 = p.colour[0] - q->colour[0], d1 = p.colour[1] - q->colour[1],
                        d2 = p.colour[2] - q->colour[2];
            const float d = d0 * d0 + d1 * d1 + d2 * d2 + weight * (dx * dx + dy * dy + dz * dz);
            if (fabsf(dx) <= reach && fabsf(dy) <= reach && fabsf(dz) <= reach && d < least) {
                least = d;
                nearest[a] = (int32_t)i;
            }
        }
    }
}

static void move_centres(const struct volume *v, const int32_t *nearest, size_t k,
                         struct point *centres) {
    for (size_t i = 0; i < k; i++) {
        double n = 0, place[3] = {0}, colour[3] = {0};
        for (size_t a = 0; a < pixels_in(v->size); a++)
            if (nearest[a] == (int32_t)i) {
                n++;
                place[0] += (double)(a % v->size[0]);
                place[1] += (double)(a / v->size[0] % v->size[1]);
                place[2] += (double)(a / v->size[0] / v->size[1]);
                for (int c = 0; c < 3; c++)
                    colour[c] += (double)colour_at(v->lab, a, c);
            }
        for (int c = 0; n > 0 && c < 3; c++) {
            centres[i].at[c] = (float)(place[c] / n) * v->step[c];
            centres[i].colour[c] = (float)(colour[c] / n);
        }
    }
}

size_t oracle_slic(const struct dcrf_colours *lab, const double step[3], double size_px,
                   double compactness, size_t iterations, int32_t *regions) {
    struct volume v = {.lab = lab, .size = {lab->width, lab->height, lab->depth}};
    size_t along[3], k = 1;
    for (int axis = 0; axis < 3; axis++) {
        v.step[axis] = (float)step[axis];
        const double wanted = nearbyint((double)v.size[axis] * (double)v.step[axis] / size_px);
        along[axis] = wanted < 1 ? 1 : (size_t)wanted;
        if (along[axis] > v.size[axis])
            along[axis] = v.size[axis];
        k *= along[axis];
    }
    struct point *centres = malloc(k * sizeof *centres);
    int32_t *nearest = malloc(pixels_in(v.size) * sizeof *nearest);
    for (size_t i = 0; i < k; i++) {
        const size_t number[3] = {i % along[0], i / along[0] % along[1], i / along[0] / along[1]};
        size_t at[3];
        for (int axis = 0; axis < 3; axis++)
            /* The epsilon: rounding error must not push a whole number below itself. */
            at[axis] =
                (size_t)(((double)number[axis] + 0.5) * (double)v.size[axis] / (double)along[axis] +
                         1e-9);
        centres[i] = point_in(&v, flattest_near(&v, at));
    }
    const float weight = (float)(compactness / size_px * (compactness / size_px));
    for (size_t round = 0; round < iterations; round++) {
        if (round > 0)
            move_centres(&v, nearest, k, centres);
        assign_pixels(&v, centres, k, (float)size_px, weight, nearest);
    }
    const size_t count = spread(v.size, numbers_equal, nearest, regions);
    free(nearest);
    free(centres);
    return count;
}
