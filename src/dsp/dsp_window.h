/* The sums of mean shift over the pixels of a window (struct dcrf_window), in vectors of
 * WINDOW_LANES floats.
 *
 * All instruction sets give the same bits: the terms are multiples of one step, small enough for
 * their sums to be exact (model/colour.h), so that the order does not matter; and the test of
 * whether a pixel is in the window rounds every product before it is added. */

typedef float window_floats __attribute__((vector_size(WINDOW_LANES * 4)));
typedef int32_t window_integers __attribute__((vector_size(WINDOW_LANES * 4)));

/* How much wider ranges are than the disc that they enclose, so that rounding them cannot lose a
 * pixel; the test in the loop decides. */
#define SLACK_PX 0.01f

struct window_lanes {
    window_integers count;
    window_floats x, y, colour[3];
};

static inline window_floats window_load(const float *at) {
    window_floats value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline window_floats window_square(window_floats value) {
    return value * value;
}

/* `value` where the mask is set, else 0. */
static inline window_floats window_keep(window_integers mask, window_floats value) {
    return (window_floats)(mask & (window_integers)value);
}

/* The integers of [centre - radius, centre + radius] in 0 .. size - 1. */
static inline void window_clip(float centre, float radius, size_t size, size_t *first,
                               size_t *last) {
    const float low = ceilf(centre - radius), high = floorf(centre + radius);
    *first = low > 0 ? (size_t)low : 0;
    *last = high < (float)(size - 1) ? (size_t)high : size - 1;
}

/* Add the pixels in row y of the window, with positions relative to (left, top). All rows take the
 * same number of vectors, though those at the top and at the bottom could do with fewer: a
 * predictable loop count is worth more. */
static inline void window_add_row(const struct dcrf_window *window, size_t left, size_t right,
                                  size_t top, size_t y, struct window_lanes *sums) {
    const float dy = (float)y - window->y;
    window_floats offset;
    for (int i = 0; i < WINDOW_LANES; i++)
        offset[i] = (float)i;
    window_floats x = offset + (float)left;
    const window_floats y_offset = (window_floats){0} + (float)(y - top);
    const float *plane[3];
    for (int c = 0; c < 3; c++)
        plane[c] = window->plane[c] + y * window->stride;
    for (size_t at = left; at <= right;
         at += WINDOW_LANES, x += WINDOW_LANES, offset += WINDOW_LANES) {
        const window_floats c0 = window_load(plane[0] + at), c1 = window_load(plane[1] + at),
                            c2 = window_load(plane[2] + at);
        const window_floats far = window_square(x - window->x) + dy * dy;
        const window_floats other = window_square(c0 - window->colour[0]) +
                                    window_square(c1 - window->colour[1]) +
                                    window_square(c2 - window->colour[2]);
        const window_integers inside =
            (far <= window->spatial_squared) & (other <= window->range_squared);
        sums->count -= inside; /* a set mask is -1 */
        sums->x += window_keep(inside, offset);
        sums->y += window_keep(inside, y_offset);
        sums->colour[0] += window_keep(inside, c0);
        sums->colour[1] += window_keep(inside, c1);
        sums->colour[2] += window_keep(inside, c2);
    }
}

/* Also exact: a block has few enough rows. */
static inline float window_total(window_floats lanes) {
    float total = 0;
    for (int i = 0; i < WINDOW_LANES; i++)
        total += lanes[i];
    return total;
}

static inline void window_add_lanes(struct dcrf_window_sums *total,
                                    const struct window_lanes *sums) {
    int32_t count = 0;
    for (int i = 0; i < WINDOW_LANES; i++)
        count += sums->count[i];
    total->count += (double)count;
    total->x += (double)window_total(sums->x);
    total->y += (double)window_total(sums->y);
    for (int c = 0; c < 3; c++)
        total->colour[c] += (double)window_total(sums->colour[c]);
}

static void sum_window(const struct dcrf_window *window, struct dcrf_window_sums *total) {
    const size_t vectors_a_row = (2 * (size_t)window->radius_px + 3) / WINDOW_LANES + 1;
    const size_t rows_a_block = DCRF_WINDOW_TERMS / (vectors_a_row * WINDOW_LANES);
    size_t left, right, top, bottom;
    *total = (struct dcrf_window_sums){0};
    window_clip(window->x, window->radius_px + SLACK_PX, window->width, &left, &right);
    window_clip(window->y, window->radius_px + SLACK_PX, window->height, &top, &bottom);
    for (size_t block = top; block <= bottom; block += rows_a_block) {
        struct window_lanes sums = {0};
        for (size_t y = block; y <= bottom && y < block + rows_a_block; y++)
            window_add_row(window, left, right, top, y, &sums);
        window_add_lanes(total, &sums);
    }
    total->x += (double)left * total->count;
    total->y += (double)top * total->count;
}
