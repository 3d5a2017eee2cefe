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
 *               MOST_STEPS steps, or until the window is empty, which only rounding can cause.)
 *   fusion      Horizontal and vertical neighbours are linked if their modes are within h_s of
 *               each other in position and within h_r in colour; regions are the connected
 *               components.
 *
 * Regions below the minimum size are joined to a neighbour afterwards (regions.c).
 *
 * Results are reproducible to the bit: the coordinates of a centre are floats; distances are
 * computed from them in float, dx^2 + dy^2 and (dL^2 + du^2) + dv^2; the sums over a window are
 * exact (colours are multiples of 1 / DCRF_COLOUR_STEPS), and the mean is their quotient in double,
 * rounded to float. None of this depends on the order in which a window is read, so any vector
 * length and any number of threads give the same modes as a plain loop. */
#include "superpixel/method.h"
#include "superpixel/regions.h"

#include "core/error.h"
#include "core/owned.h"
#include "dsp/dsp.h"

#include <string.h>

#define MOST_STEPS 100

_Static_assert(((size_t)1 << 24) / (DCRF_COLOUR_MOST * DCRF_COLOUR_STEPS) >= DCRF_WINDOW_TERMS,
               "sums over a window are exact");

/* Paths from different pixels merge long before they end: 40 % of all steps start where another one
 * started. So each worker caches the centres it has passed, with their modes. */
#define REMEMBERED 8192 /* centres; a power of two */

struct passed {
    struct dcrf_mode centre, mode;
    size_t steps; /* from centre to mode, including the last, which does not move; 0: a free slot */
};

struct filtering {
    const struct dcrf_dsp *dsp;
    struct dcrf_window window; /* without a centre */
    struct passed *passed;     /* REMEMBERED per worker */
    struct dcrf_mode *modes;
};

static bool same_place(const struct dcrf_mode *a, const struct dcrf_mode *b) {
    return a->x == b->x && a->y == b->y && a->colour[0] == b->colour[0] &&
           a->colour[1] == b->colour[1] && a->colour[2] == b->colour[2];
}

static struct passed *place_of(struct passed *passed, const struct dcrf_mode *centre) {
    uint32_t bits[sizeof *centre / sizeof(uint32_t)];
    uint64_t hash = 0;
    memcpy(bits, centre, sizeof bits);
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        hash = (hash ^ bits[i]) * 0x9e3779b97f4a7c15u;
    return &passed[hash >> 32 & (REMEMBERED - 1)];
}

/* One step. False if the centre does not move, or its window is empty. */
static bool move(const struct filtering *f, struct dcrf_mode *centre) {
    struct dcrf_window window = f->window;
    struct dcrf_window_sums sums;
    struct dcrf_mode mean;
    window.x = centre->x;
    window.y = centre->y;
    memcpy(window.colour, centre->colour, sizeof window.colour);
    f->dsp->sum_window(&window, &sums);
    if (sums.count == 0)
        return false;
    mean.x = (float)(sums.x / sums.count);
    mean.y = (float)(sums.y / sums.count);
    for (int c = 0; c < 3; c++)
        mean.colour[c] = (float)(sums.colour[c] / sums.count);
    const bool has_moved = !same_place(&mean, centre);
    if (has_moved)
        *centre = mean;
    return has_moved;
}

/* The mode is the same whether computed or cached: a cached path is used only if it ends within the
 * steps that are left. */
static struct dcrf_mode find_mode(const struct filtering *f, struct passed *passed,
                                  struct dcrf_mode centre) {
    struct dcrf_mode trail[MOST_STEPS];
    size_t steps = 0, more = 0;
    while (steps < MOST_STEPS) {
        const struct passed *known = place_of(passed, &centre);
        if (known->steps > 0 && steps + known->steps <= MOST_STEPS &&
            same_place(&known->centre, &centre)) {
            centre = known->mode;
            more = known->steps;
            break;
        }
        trail[steps++] = centre;
        if (!move(f, &centre))
            break;
    }
    const bool has_ended = more > 0 || same_place(&trail[steps - 1], &centre);
    for (size_t k = 0; has_ended && k < steps; k++)
        *place_of(passed, &trail[k]) = (struct passed){trail[k], centre, steps - k + more};
    return centre;
}

static void find_modes(void *context, size_t begin, size_t end, size_t worker) {
    const struct filtering *f = context;
    const struct dcrf_window *picture = &f->window;
    for (size_t a = begin; a < end; a++) {
        const size_t x = a % picture->width, y = a / picture->width;
        struct dcrf_mode start = {.x = (float)x, .y = (float)y};
        for (int c = 0; c < 3; c++)
            start.colour[c] = picture->plane[c][y * picture->stride + x];
        f->modes[a] = find_mode(f, f->passed + worker * REMEMBERED, start);
    }
}

static struct filtering start_filtering(const struct dcrf_colours *luv,
                                        const dcrf_superpixel_settings *settings) {
    const float spatial = (float)settings->spatial_bandwidth_px;
    const float range = (float)settings->range_bandwidth;
    return (struct filtering){.dsp = dcrf_dsp(),
                              .window = {.plane = {luv->plane[0], luv->plane[1], luv->plane[2]},
                                         .width = luv->width,
                                         .height = luv->height,
                                         .stride = luv->stride,
                                         .radius_px = spatial,
                                         .spatial_squared = spatial * spatial,
                                         .range_squared = range * range}};
}

dcrf_status dcrf_mean_shift_modes(const struct dcrf_colours *luv,
                                  const dcrf_superpixel_settings *settings,
                                  dcrf_workspace *workspace, struct dcrf_mode *modes,
                                  dcrf_error *error) {
    const size_t pixels_a_chunk = 256;
    struct filtering filtering = start_filtering(luv, settings);
    filtering.modes = modes;
    filtering.passed = dcrf_allocate_zero(dcrf_workspace_threads(workspace),
                                          REMEMBERED * sizeof *filtering.passed);
    if (!filtering.passed)
        return dcrf_fail_memory(error, "mean shift");
    const bool is_whole = dcrf_parallel_while(workspace, luv->width * luv->height, pixels_a_chunk,
                                              find_modes, &filtering);
    dcrf_release(filtering.passed);
    return is_whole ? DCRF_OK : dcrf_fail_interrupted(workspace, DCRF_FINDING, error);
}

/* ---- fusion --------------------------------------------------------------------------------- */

static bool are_linked(const struct filtering *f, const struct dcrf_mode *a,
                       const struct dcrf_mode *b) {
    const float dx = a->x - b->x, dy = a->y - b->y;
    const float d0 = a->colour[0] - b->colour[0], d1 = a->colour[1] - b->colour[1],
                d2 = a->colour[2] - b->colour[2];
    return dx * dx + dy * dy <= f->window.spatial_squared &&
           d0 * d0 + d1 * d1 + d2 * d2 <= f->window.range_squared;
}

static void link_neighbours(const struct filtering *f, uint8_t *links) {
    const size_t width = f->window.width, height = f->window.height;
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
                            const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                            int32_t *regions, size_t *count, dcrf_error *error) {
    const size_t pixels = luv->width * luv->height;
    struct filtering filtering = start_filtering(luv, settings);
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    uint8_t *links = dcrf_own(&owned, pixels, sizeof *links);
    filtering.modes = dcrf_own(&owned, pixels, sizeof *filtering.modes);
    if (owned.is_short)
        return dcrf_fail_memory(error, "mean shift");
    TRY(dcrf_mean_shift_modes(luv, settings, workspace, filtering.modes, error));
    link_neighbours(&filtering, links);
    TRY(dcrf_go_on(workspace, DCRF_FINDING, error));
    *count = dcrf_regions_from_links(links, luv, regions);
    return DCRF_OK;
}
