/* SLIC: simple linear iterative clustering, after R. Achanta, A. Shaji, K. Smith, A. Lucchi, P. Fua
 * and S. Susstrunk, "SLIC superpixels compared to state-of-the-art superpixel methods", IEEE TPAMI
 * 34(11), 2012.
 *
 * k-means in position p (pixels) and colour c (Lab) with the distance
 *
 *   D^2 = |c_j - c_k|^2 + (m / S)^2 |p_j - p_k|^2,        m = compactness, S = region size.
 *
 *   centres     start on a regular grid of about S pixels, each at the pixel of smallest gradient
 *               among the 3 x 3 around its grid point;
 *   assignment  a pixel goes to the nearest of the centres that are at most S away from it in x and
 *               in y (the first of equals);
 *   update      a centre goes to the mean of its pixels; one without pixels stays.
 *
 * After the last round, regions are the connected components of the pixels of each centre (pixels
 * that no centre reaches count as one more), so that there can be a few more than centres; small
 * ones are joined to a neighbour afterwards (regions.c), the most similar one where the paper takes
 * the nearest.
 *
 * Distances are floats, sums exact (see DCRF_COLOUR_STEPS), and a band of rows looks at all centres
 * in the same order: the result does not depend on the number of threads. */
#include "superpixel/method.h"
#include "superpixel/regions.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define ROWS_A_BAND 16
#define NO_CENTRE (-1)

struct centre {
    float x, y;
    float colour[3];
};

struct cluster_sum {
    double pixels, x, y, colour[3];
};

struct clustering {
    const struct dcrf_colours *lab;
    float reach_px;
    float position_weight; /* (m / S)^2 */
    size_t columns, rows;  /* of centres */
    struct centre *centres;
    struct cluster_sum *sums;
    int32_t *nearest; /* centre of each pixel */
    float *distance;  /* to it, squared */
};

/* ---- the first centres ---------------------------------------------------------------------- */

static float squared_difference(const struct dcrf_colours *lab, size_t at, size_t other) {
    float sum = 0;
    for (int c = 0; c < 3; c++) {
        const float difference = lab->plane[c][at] - lab->plane[c][other];
        sum += difference * difference;
    }
    return sum;
}

/* Squared gradient; beyond the border the picture continues as at the border. */
static float gradient(const struct dcrf_colours *lab, size_t x, size_t y) {
    const size_t left = x > 0 ? x - 1 : x, right = x + 1 < lab->width ? x + 1 : x;
    const size_t above = y > 0 ? y - 1 : y, below = y + 1 < lab->height ? y + 1 : y;
    return squared_difference(lab, y * lab->stride + left, y * lab->stride + right) +
           squared_difference(lab, above * lab->stride + x, below * lab->stride + x);
}

static struct centre centre_near(const struct dcrf_colours *lab, size_t x, size_t y) {
    size_t best_x = x, best_y = y;
    float best = gradient(lab, x, y);
    const size_t first_x = x > 0 ? x - 1 : 0, first_y = y > 0 ? y - 1 : 0;
    for (size_t near_y = first_y; near_y <= y + 1 && near_y < lab->height; near_y++)
        for (size_t near_x = first_x; near_x <= x + 1 && near_x < lab->width; near_x++) {
            const float here = gradient(lab, near_x, near_y);
            if (here < best) {
                best = here;
                best_x = near_x;
                best_y = near_y;
            }
        }
    struct centre centre = {.x = (float)best_x, .y = (float)best_y};
    for (int c = 0; c < 3; c++)
        centre.colour[c] = lab->plane[c][best_y * lab->stride + best_x];
    return centre;
}

static void place_centres(struct clustering *k) {
    const struct dcrf_colours *lab = k->lab;
    for (size_t row = 0; row < k->rows; row++)
        for (size_t column = 0; column < k->columns; column++) {
            const size_t x = (2 * column + 1) * lab->width / (2 * k->columns);
            const size_t y = (2 * row + 1) * lab->height / (2 * k->rows);
            k->centres[row * k->columns + column] = centre_near(lab, x, y);
        }
}

/* ---- assignment and update ------------------------------------------------------------------ */

/* Narrow first .. last - 1 to the numbers at most `reach` from the centre. The bounds may be off by
 * one where they are rounded, so the differences decide. */
static void clip_reach(float centre, float reach, size_t *first, size_t *last) {
    const float low = floorf(centre - reach), high = ceilf(centre + reach);
    if (low > (float)*first)
        *first = (size_t)low;
    if (high + 1 < (float)*last)
        *last = (size_t)high + 1; /* high >= 0: centres are inside the picture */
    while (*first < *last && fabsf((float)*first - centre) > reach)
        ++*first;
    while (*first < *last && fabsf((float)(*last - 1) - centre) > reach)
        --*last;
}

static void offer_centre(const struct clustering *k, int32_t number, size_t top, size_t bottom) {
    const struct dcrf_colours *lab = k->lab;
    const struct centre *centre = &k->centres[number];
    size_t left = 0, right = lab->width;
    clip_reach(centre->x, k->reach_px, &left, &right);
    clip_reach(centre->y, k->reach_px, &top, &bottom);
    for (size_t y = top; y < bottom; y++) {
        const float dy = (float)y - centre->y;
        const float *plane[3];
        for (int c = 0; c < 3; c++)
            plane[c] = lab->plane[c] + y * lab->stride;
        float *distance = k->distance + y * lab->width;
        int32_t *nearest = k->nearest + y * lab->width;
        for (size_t x = left; x < right; x++) {
            const float dx = (float)(int32_t)x - centre->x, d0 = plane[0][x] - centre->colour[0],
                        d1 = plane[1][x] - centre->colour[1], d2 = plane[2][x] - centre->colour[2];
            const float here =
                d0 * d0 + d1 * d1 + d2 * d2 + k->position_weight * (dx * dx + dy * dy);
            const bool nearer = here < distance[x];
            nearest[x] = nearer ? number : nearest[x];
            distance[x] = nearer ? here : distance[x];
        }
    }
}

static void assign_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct clustering *k = context;
    const size_t width = k->lab->width;
    for (size_t a = begin * width; a < end * width; a++) {
        k->nearest[a] = NO_CENTRE;
        k->distance[a] = INFINITY;
    }
    for (size_t number = 0; number < k->rows * k->columns; number++)
        offer_centre(k, (int32_t)number, begin, end);
}

static void move_centres(struct clustering *k) {
    const struct dcrf_colours *lab = k->lab;
    const size_t count = k->rows * k->columns;
    memset(k->sums, 0, count * sizeof *k->sums);
    for (size_t y = 0; y < lab->height; y++)
        for (size_t x = 0; x < lab->width; x++) {
            const int32_t number = k->nearest[y * lab->width + x];
            if (number == NO_CENTRE)
                continue;
            struct cluster_sum *sum = &k->sums[number];
            sum->pixels += 1;
            sum->x += (double)x;
            sum->y += (double)y;
            for (int c = 0; c < 3; c++)
                sum->colour[c] += (double)lab->plane[c][y * lab->stride + x];
        }
    for (size_t number = 0; number < count; number++) {
        const struct cluster_sum *sum = &k->sums[number];
        struct centre *centre = &k->centres[number];
        if (sum->pixels == 0)
            continue;
        centre->x = (float)(sum->x / sum->pixels);
        centre->y = (float)(sum->y / sum->pixels);
        for (int c = 0; c < 3; c++)
            centre->colour[c] = (float)(sum->colour[c] / sum->pixels);
    }
}

static void link_neighbours(const struct clustering *k, uint8_t *links) {
    const size_t width = k->lab->width, height = k->lab->height;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            const int32_t *here = &k->nearest[y * width + x];
            uint8_t link = 0;
            if (x + 1 < width && here[0] == here[1])
                link |= DCRF_LINK_RIGHT;
            if (y + 1 < height && here[0] == here[width])
                link |= DCRF_LINK_DOWN;
            links[y * width + x] = link;
        }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static size_t centres_along(size_t size_px, double region_size_px) {
    const double count = nearbyint((double)size_px / region_size_px);
    return count > 1 ? (size_t)count : 1;
}

dcrf_status dcrf_slic(const struct dcrf_colours *lab, const dcrf_superpixel_settings *settings,
                      dcrf_pool *pool, int32_t *regions, size_t *count, dcrf_error *error) {
    const size_t pixels = lab->width * lab->height;
    const double weight = settings->compactness / settings->region_size_px;
    struct clustering k = {.lab = lab,
                           .reach_px = (float)settings->region_size_px,
                           .position_weight = (float)(weight * weight),
                           .columns = centres_along(lab->width, settings->region_size_px),
                           .rows = centres_along(lab->height, settings->region_size_px)};
    k.centres = dcrf_allocate(k.rows * k.columns, sizeof *k.centres);
    k.sums = dcrf_allocate(k.rows * k.columns, sizeof *k.sums);
    k.nearest = dcrf_allocate(pixels, sizeof *k.nearest);
    k.distance = dcrf_allocate(pixels, sizeof *k.distance);
    uint8_t *links = dcrf_allocate(pixels, sizeof *links);
    dcrf_status status = DCRF_OK;
    if (k.centres && k.sums && k.nearest && k.distance && links) {
        place_centres(&k);
        for (size_t i = 0; i < settings->iterations; i++) {
            if (i > 0)
                move_centres(&k);
            dcrf_parallel_for(pool, lab->height, ROWS_A_BAND, assign_rows, &k);
        }
        link_neighbours(&k, links);
        *count = dcrf_regions_from_links(links, lab->width, lab->height, regions);
    } else {
        status = dcrf_fail_memory(error, "SLIC");
    }
    dcrf_release(links);
    dcrf_release(k.distance);
    dcrf_release(k.nearest);
    dcrf_release(k.sums);
    dcrf_release(k.centres);
    return status;
}
