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

/* Spread the number of a pixel over all that `linked` joins to it, until nothing changes. */
static size_t spread(size_t width, size_t height, bool (*linked)(const void *, size_t, size_t),
                     const void *context, int32_t *regions) {
    const size_t pixels = width * height;
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
            const size_t at = stack[--depth], x = at % width, y = at / width;
            const size_t near[4] = {x > 0 ? at - 1 : at, x + 1 < width ? at + 1 : at,
                                    y > 0 ? at - width : at, y + 1 < height ? at + width : at};
            for (int i = 0; i < 4; i++)
                if (regions[near[i]] < 0 && linked(context, at, near[i])) {
                    regions[near[i]] = (int32_t)count;
                    stack[depth++] = near[i];
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
    return spread(width, height, modes_linked, &fusion, regions);
}

size_t oracle_check_regions(const int32_t *regions, size_t width, size_t height) {
    int32_t *again = malloc(width * height * sizeof *again);
    size_t count = spread(width, height, numbers_equal, regions, again);
    if (memcmp(again, regions, width * height * sizeof *again) != 0)
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
    for (size_t a = 0; a < colours->width * colours->height; a++)
        if (regions[a] == number) {
            s.pixels++;
            for (int c = 0; c < 3; c++)
                s.colour[c] += (double)colour_at(colours, a, c);
        }
    for (int c = 0; c < 3; c++)
        s.colour[c] /= s.pixels;
    return s;
}

static bool touch(const struct dcrf_colours *colours, const int32_t *regions, int32_t r,
                  int32_t q) {
    for (size_t a = 0; a < colours->width * colours->height; a++) {
        const size_t right = a % colours->width + 1 < colours->width ? a + 1 : a;
        const size_t below = a / colours->width + 1 < colours->height ? a + colours->width : a;
        if ((regions[a] == r && (regions[right] == q || regions[below] == q)) ||
            (regions[a] == q && (regions[right] == r || regions[below] == r)))
            return true;
    }
    return false;
}

static double distance(const struct summary *a, const struct summary *b) {
    double sum = 0;
    for (int c = 0; c < 3; c++)
        sum += (a->colour[c] - b->colour[c]) * (a->colour[c] - b->colour[c]);
    return sum;
}

size_t oracle_join(const struct dcrf_colours *colours, size_t min_region_px, int32_t *regions) {
    const size_t pixels = colours->width * colours->height;
    size_t count = oracle_check_regions(regions, colours->width, colours->height);
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
            if ((int32_t)r != smallest && touch(colours, regions, smallest, (int32_t)r) &&
                (best < 0 ||
                 distance(&all[r], &all[smallest]) < distance(&all[best], &all[smallest])))
                best = (int32_t)r;
        for (size_t a = 0; a < pixels; a++)
            if (regions[a] == smallest)
                regions[a] = best;
        memcpy(joined, regions, pixels * sizeof *joined);
        count = spread(colours->width, colours->height, numbers_equal, joined, regions);
    }
    free(joined);
    free(all);
    return count;
}

/* ---- SLIC ----------------------------------------------------------------------------------- */

static double squared_between(const struct dcrf_colours *lab, size_t a, size_t b) {
    double sum = 0;
    for (int c = 0; c < 3; c++) {
        const double difference = (double)colour_at(lab, a, c) - (double)colour_at(lab, b, c);
        sum += difference * difference;
    }
    return sum;
}

static double gradient_at(const struct dcrf_colours *lab, size_t x, size_t y) {
    const size_t w = lab->width, a = y * w + x;
    return squared_between(lab, x > 0 ? a - 1 : a, x + 1 < w ? a + 1 : a) +
           squared_between(lab, y > 0 ? a - w : a, y + 1 < lab->height ? a + w : a);
}

/* The flattest pixel of the 3 x 3 around (x, y); it itself, then the first, of equals. */
static size_t flattest_near(const struct dcrf_colours *lab, size_t x, size_t y) {
    size_t best = y * lab->width + x;
    double least = gradient_at(lab, x, y);
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            const long nx = (long)x + dx, ny = (long)y + dy;
            if (nx < 0 || ny < 0 || nx >= (long)lab->width || ny >= (long)lab->height)
                continue;
            if (gradient_at(lab, (size_t)nx, (size_t)ny) < least) {
                least = gradient_at(lab, (size_t)nx, (size_t)ny);
                best = (size_t)ny * lab->width + (size_t)nx;
            }
        }
    return best;
}

static void assign_pixels(const struct dcrf_colours *lab, const struct dcrf_mode *centres, size_t k,
                          float reach, float weight, int32_t *nearest) {
    for (size_t a = 0; a < lab->width * lab->height; a++) {
        const struct dcrf_mode p = point_of(lab, a);
        float least = INFINITY;
        nearest[a] = -1;
        for (size_t i = 0; i < k; i++) {
            const struct dcrf_mode *q = &centres[i];
            const float dx = p.x - q->x, dy = p.y - q->y;
            const float d0 = p.colour[0] - q->colour[0], d1 = p.colour[1] - q->colour[1],
                        d2 = p.colour[2] - q->colour[2];
            const float d = d0 * d0 + d1 * d1 + d2 * d2 + weight * (dx * dx + dy * dy);
            if (fabsf(dx) <= reach && fabsf(dy) <= reach && d < least) {
                least = d;
                nearest[a] = (int32_t)i;
            }
        }
    }
}

static void move_centres(const struct dcrf_colours *lab, const int32_t *nearest, size_t k,
                         struct dcrf_mode *centres) {
    for (size_t i = 0; i < k; i++) {
        double n = 0, sum[5] = {0};
        for (size_t a = 0; a < lab->width * lab->height; a++)
            if (nearest[a] == (int32_t)i) {
                n++;
                sum[0] += (double)(a % lab->width);
                sum[1] += (double)(a / lab->width);
                for (int c = 0; c < 3; c++)
                    sum[2 + c] += (double)colour_at(lab, a, c);
            }
        if (n > 0)
            centres[i] =
                (struct dcrf_mode){(float)(sum[0] / n),
                                   (float)(sum[1] / n),
                                   {(float)(sum[2] / n), (float)(sum[3] / n), (float)(sum[4] / n)}};
    }
}

size_t oracle_slic(const struct dcrf_colours *lab, double size_px, double compactness,
                   size_t iterations, int32_t *regions) {
    const size_t pixels = lab->width * lab->height;
    const size_t columns = (size_t)fmax(1, nearbyint((double)lab->width / size_px));
    const size_t rows = (size_t)fmax(1, nearbyint((double)lab->height / size_px));
    struct dcrf_mode *centres = malloc(rows * columns * sizeof *centres);
    int32_t *nearest = malloc(pixels * sizeof *nearest);
    for (size_t i = 0; i < rows * columns; i++) {
        const double x = ((double)(i % columns) + 0.5) * (double)lab->width / (double)columns;
        const double y = ((double)(i / columns) + 0.5) * (double)lab->height / (double)rows;
        /* The epsilon: halves of whole numbers must not fall below themselves. */
        centres[i] = point_of(lab, flattest_near(lab, (size_t)(x + 1e-9), (size_t)(y + 1e-9)));
    }
    const float weight = (float)(compactness / size_px * (compactness / size_px));
    for (size_t round = 0; round < iterations; round++) {
        if (round > 0)
            move_centres(lab, nearest, rows * columns, centres);
        assign_pixels(lab, centres, rows * columns, (float)size_px, weight, nearest);
    }
    const size_t count = spread(lab->width, lab->height, numbers_equal, nearest, regions);
    free(nearest);
    free(centres);
    return count;
}
