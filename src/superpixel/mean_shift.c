/* Mean shift segmentation, after D. Comaniciu and P. Meer, "Mean shift: a robust approach toward
 * feature space analysis", IEEE TPAMI 24(5), 2002, section 4, with the flat kernel.
 *
 * Pixel j is a point of five coordinates: its position p_j in pixels and its colour c_j in Luv.
 * With the bandwidths h_s and h_r, the window around (p, c) holds the pixels
 *
 *   W(p, c) = { j : |p_j - p|^2 <= h_s^2  and  |c_j - c|^2 <= h_r^2 },
 *
 * and a step moves (p, c) to the mean of the points of its window. With this kernel that is the
 * gradient ascent of a density estimate (the one with the Epanechnikov kernel), and it ends after
 * finitely many steps, because there are finitely many windows.
 *
 *   filtering   From every pixel, steps until the centre no longer moves: its mode. (Or for
 *               MOST_STEPS steps, or until the window is empty, which rounding alone can cause.)
 *   fusion      Neighbouring pixels, side by side or one above the other, are linked where their
 *               modes are within h_s of each other in position and within h_r in colour; regions
 *               are the connected components.
 *
 * Regions below the minimum size are joined to a neighbour afterwards (regions.c).
 *
 * What a centre is to the bit: its coordinates are floats; distances are computed from them in
 * float, dx^2 + dy^2 and (dL^2 + du^2) + dv^2; the sums over a window are exact (colours are
 * multiples of 1 / DCRF_COLOUR_STEPS), and the mean is their quotient in double, rounded to float.
 * None of this depends on the order in which a window is read, so that vectors of any length and
 * any number of threads give the same modes as a plain loop. */
#include "superpixel/method.h"
#include "superpixel/regions.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define MOST_STEPS 100
#define LANES 4
/* Of as many colours the sum in one lane is exact. */
#define EXACT_TERMS ((size_t)1 << 24) / (DCRF_COLOUR_MOST * DCRF_COLOUR_STEPS)
/* By so much ranges are wider than the disc that they enclose, so that rounding them cannot lose a
 * pixel; the test in the loop decides. */
#define SLACK_PX 0.01f

_Static_assert(LANES <= DCRF_COLOUR_PADDING, "a vector may begin at the last pixel of a row");

typedef float float_lanes __attribute__((vector_size(LANES * 4)));
typedef int32_t integer_lanes __attribute__((vector_size(LANES * 4)));

static inline float_lanes load(const float *at) {
    float_lanes value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* `value` where the mask is set, else 0. */
static inline float_lanes keep(integer_lanes mask, float_lanes value) {
    return (float_lanes)(mask & (integer_lanes)value);
}

/* Sums over the pixels of a window, positions counted from its corner. */
struct lane_sums {
    integer_lanes count;
    float_lanes x, y, colour[3];
};

struct window {
    size_t left, top, bottom; /* a box around the disc, inside the picture; rows inclusive */
    double count, x, y, colour[3];
};

struct filtering {
    const struct dcrf_colours *luv;
    float spatial_squared, range_squared;
    float radius_px;
    size_t rows_a_block; /* whose lane sums are exact */
    struct dcrf_mode *modes;
};

/* The whole numbers of [centre - radius, centre + radius] in 0 .. size - 1. */
static void clip_range(float centre, float radius, size_t size, size_t *first, size_t *last) {
    const float low = ceilf(centre - radius), high = floorf(centre + radius);
    *first = low > 0 ? (size_t)low : 0;
    *last = high < (float)(size - 1) ? (size_t)high : size - 1;
}

/* Add what lies in row y of the window. */
static inline void add_row(const struct filtering *f, const struct dcrf_mode *centre,
                           const struct window *window, size_t y, struct lane_sums *sums) {
    const struct dcrf_colours *luv = f->luv;
    const float dy = (float)y - centre->y, dy_squared = dy * dy;
    const float half_squared = f->spatial_squared - dy_squared;
    size_t first, last;
    if (half_squared < 0)
        return;
    clip_range(centre->x, sqrtf(half_squared) + SLACK_PX, luv->width, &first, &last);

    float_lanes x, offset;
    for (int i = 0; i < LANES; i++) {
        x[i] = (float)(first + (size_t)i);
        offset[i] = (float)(first - window->left + (size_t)i);
    }
    const float_lanes y_offset = (float_lanes){0} + (float)(y - window->top);
    const float *plane[3];
    for (int c = 0; c < 3; c++)
        plane[c] = luv->plane[c] + y * luv->stride;
    for (size_t at = first; at <= last; at += LANES, x += LANES, offset += LANES) {
        const float_lanes dx = x - centre->x;
        const float_lanes c0 = load(plane[0] + at), c1 = load(plane[1] + at),
                          c2 = load(plane[2] + at);
        const float_lanes d0 = c0 - centre->colour[0], d1 = c1 - centre->colour[1],
                          d2 = c2 - centre->colour[2];
        const integer_lanes inside = (dx * dx + dy_squared <= f->spatial_squared) &
                                     (d0 * d0 + d1 * d1 + d2 * d2 <= f->range_squared);
        sums->count -= inside; /* a set mask is -1 */
        sums->x += keep(inside, offset);
        sums->y += keep(inside, y_offset);
        sums->colour[0] += keep(inside, c0);
        sums->colour[1] += keep(inside, c1);
        sums->colour[2] += keep(inside, c2);
    }
}

static void add_lanes(struct window *window, const struct lane_sums *sums) {
    for (int i = 0; i < LANES; i++) {
        window->count += (double)sums->count[i];
        window->x += (double)sums->x[i];
        window->y += (double)sums->y[i];
        for (int c = 0; c < 3; c++)
            window->colour[c] += (double)sums->colour[c][i];
    }
}

static void sum_window(const struct filtering *f, const struct dcrf_mode *centre,
                       struct window *window) {
    size_t right;
    *window = (struct window){0};
    clip_range(centre->x, f->radius_px + 2 * SLACK_PX, f->luv->width, &window->left, &right);
    clip_range(centre->y, f->radius_px + SLACK_PX, f->luv->height, &window->top, &window->bottom);
    for (size_t block = window->top; block <= window->bottom; block += f->rows_a_block) {
        struct lane_sums sums = {0};
        for (size_t y = block; y <= window->bottom && y < block + f->rows_a_block; y++)
            add_row(f, centre, window, y, &sums);
        add_lanes(window, &sums);
    }
}

static bool same_place(const struct dcrf_mode *a, const struct dcrf_mode *b) {
    return a->x == b->x && a->y == b->y && a->colour[0] == b->colour[0] &&
           a->colour[1] == b->colour[1] && a->colour[2] == b->colour[2];
}

static struct dcrf_mode find_mode(const struct filtering *f, struct dcrf_mode centre) {
    for (size_t step = 0; step < MOST_STEPS; step++) {
        struct window window;
        struct dcrf_mode mean;
        sum_window(f, &centre, &window);
        if (window.count == 0)
            break;
        mean.x = (float)((window.x + (double)window.left * window.count) / window.count);
        mean.y = (float)((window.y + (double)window.top * window.count) / window.count);
        for (int c = 0; c < 3; c++)
            mean.colour[c] = (float)(window.colour[c] / window.count);
        if (same_place(&mean, &centre))
            break;
        centre = mean;
    }
    return centre;
}

static void find_modes(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct filtering *f = context;
    const struct dcrf_colours *luv = f->luv;
    for (size_t a = begin; a < end; a++) {
        const size_t x = a % luv->width, y = a / luv->width;
        struct dcrf_mode start = {.x = (float)x, .y = (float)y};
        for (int c = 0; c < 3; c++)
            start.colour[c] = luv->plane[c][y * luv->stride + x];
        f->modes[a] = find_mode(f, start);
    }
}

static struct filtering start_filtering(const struct dcrf_colours *luv,
                                        const dcrf_superpixel_settings *settings) {
    const float spatial = (float)settings->spatial_bandwidth_px;
    const float range = (float)settings->range_bandwidth;
    const size_t vectors_a_row = (2 * (size_t)spatial + 3) / LANES + 1;
    return (struct filtering){.luv = luv,
                              .spatial_squared = spatial * spatial,
                              .range_squared = range * range,
                              .radius_px = spatial,
                              .rows_a_block = EXACT_TERMS / vectors_a_row};
}

void dcrf_mean_shift_modes(const struct dcrf_colours *luv, const dcrf_superpixel_settings *settings,
                           dcrf_pool *pool, struct dcrf_mode *modes) {
    const size_t pixels_a_chunk = 256;
    struct filtering filtering = start_filtering(luv, settings);
    filtering.modes = modes;
    dcrf_parallel_for(pool, luv->width * luv->height, pixels_a_chunk, find_modes, &filtering);
}

/* ---- fusion --------------------------------------------------------------------------------- */

static bool are_linked(const struct filtering *f, const struct dcrf_mode *a,
                       const struct dcrf_mode *b) {
    const float dx = a->x - b->x, dy = a->y - b->y;
    const float d0 = a->colour[0] - b->colour[0], d1 = a->colour[1] - b->colour[1],
                d2 = a->colour[2] - b->colour[2];
    return dx * dx + dy * dy <= f->spatial_squared &&
           d0 * d0 + d1 * d1 + d2 * d2 <= f->range_squared;
}

static void link_neighbours(const struct filtering *f, uint8_t *links) {
    const size_t width = f->luv->width, height = f->luv->height;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            const struct dcrf_mode *mode = &f->modes[y * width + x];
            uint8_t link = 0;
            if (x + 1 < width && are_linked(f, mode, mode + 1))
                link |= DCRF_LINK_RIGHT;
            if (y + 1 < height && are_linked(f, mode, mode + width))
                link |= DCRF_LINK_DOWN;
            links[y * width + x] = link;
        }
}

dcrf_status dcrf_mean_shift(const struct dcrf_colours *luv,
                            const dcrf_superpixel_settings *settings, dcrf_pool *pool,
                            int32_t *regions, size_t *count, dcrf_error *error) {
    const size_t pixels = luv->width * luv->height;
    struct filtering filtering = start_filtering(luv, settings);
    uint8_t *links = dcrf_allocate(pixels, sizeof *links);
    filtering.modes = dcrf_allocate(pixels, sizeof *filtering.modes);
    dcrf_status status = DCRF_OK;
    if (links && filtering.modes) {
        dcrf_mean_shift_modes(luv, settings, pool, filtering.modes);
        link_neighbours(&filtering, links);
        *count = dcrf_regions_from_links(links, luv, regions);
    } else {
        status = dcrf_fail_memory(error, "mean shift");
    }
    dcrf_release(filtering.modes);
    dcrf_release(links);
    return status;
}
