/* SLIC: simple linear iterative clustering, after R. Achanta, A. Shaji, K. Smith, A. Lucchi, P. Fua
 * and S. Susstrunk, "SLIC superpixels compared to state-of-the-art superpixel methods", IEEE TPAMI
 * 34(11), 2012.
 *
 * k-means in position p (pixels) and colour c (Lab) with the distance
 *
 *   D^2 = |c_j - c_k|^2 + (m / S)^2 |p_j - p_k|^2,        m = compactness, S = region size.
 *
 *   centres     start on a regular grid of about S pixels, each at the pixel of smallest gradient
 *               among the 3 x 3 (in volumes 3 x 3 x 3) around its grid point;
 *   assignment  a pixel is assigned to the nearest of the centres that are at most S away along
 *               each axis (the first if several are equally near);
 *   update      a centre moves to the mean of its pixels; one without pixels stays.
 *
 * After the last round, regions are the connected components of the pixels of each centre (pixels
 * that no centre reaches form another class), so there can be a few more regions than centres;
 * small ones are joined to a neighbour afterwards (regions.c): to the most similar one, whereas the
 * paper takes the nearest.
 *
 * Distances are in units of the smallest spacing, so steps along an axis of a volume with wider
 * voxels count proportionally more. An image is a volume of one slice.
 *
 * Distances are floats, sums are exact (see DCRF_COLOUR_STEPS), and every band of rows considers
 * all centres in the same order: the result does not depend on the number of threads. */
#include "superpixel/method.h"
#include "superpixel/regions.h"

#include "core/error.h"
#include "core/owned.h"

#include <math.h>
#include <string.h>

#define ROWS_A_BAND 16
#define NO_CENTRE (-1)

struct centre {
    float at[3]; /* x, y and z in units of the smallest spacing */
    float colour[3];
};

struct cluster_sum {
    double pixels, at[3], colour[3];
};

struct clustering {
    const struct dcrf_colours *lab;
    size_t size[3]; /* of the image */
    float step[3];  /* between neighbours, in units of the smallest spacing */
    float reach;
    float position_weight; /* (m / S)^2 */
    size_t along[3];       /* centres per axis */
    size_t count;          /* total number of centres */
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

static size_t offset_of(const struct clustering *k, const size_t at[3]) {
    return (at[2] * k->size[1] + at[1]) * k->lab->stride + at[0];
}

/* Squared gradient; the image is extended by its border pixels. */
static float gradient(const struct clustering *k, const size_t at[3]) {
    float sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        size_t before[3] = {at[0], at[1], at[2]}, after[3] = {at[0], at[1], at[2]};
        before[axis] -= at[axis] > 0;
        after[axis] += at[axis] + 1 < k->size[axis];
        sum += squared_difference(k->lab, offset_of(k, before), offset_of(k, after));
    }
    return sum;
}

/* A centre at the pixel with the smallest gradient around a place; ties go to the place itself,
 * then to the first. */
static struct centre centre_near(const struct clustering *k, const size_t place[3]) {
    size_t first[3], at[3], best_at[3] = {place[0], place[1], place[2]};
    float best = gradient(k, place);
    for (int axis = 0; axis < 3; axis++)
        first[axis] = place[axis] > 0 ? place[axis] - 1 : 0;
    for (at[2] = first[2]; at[2] <= place[2] + 1 && at[2] < k->size[2]; at[2]++)
        for (at[1] = first[1]; at[1] <= place[1] + 1 && at[1] < k->size[1]; at[1]++)
            for (at[0] = first[0]; at[0] <= place[0] + 1 && at[0] < k->size[0]; at[0]++) {
                const float slope = gradient(k, at);
                if (slope < best) {
                    best = slope;
                    memcpy(best_at, at, sizeof best_at);
                }
            }
    struct centre centre;
    for (int i = 0; i < 3; i++) {
        centre.at[i] = (float)best_at[i] * k->step[i];
        centre.colour[i] = k->lab->plane[i][offset_of(k, best_at)];
    }
    return centre;
}

static void place_centres(struct clustering *k) {
    for (size_t number = 0; number < k->count; number++) {
        size_t place[3], rest = number;
        for (int axis = 0; axis < 3; axis++) {
            place[axis] = (2 * (rest % k->along[axis]) + 1) * k->size[axis] / (2 * k->along[axis]);
            rest /= k->along[axis];
        }
        k->centres[number] = centre_near(k, place);
    }
}

/* ---- assignment and update ------------------------------------------------------------------ */

/* Narrow first .. last - 1 to the numbers whose places are at most `reach` from the centre. The
 * bounds may be off by one due to rounding, so the differences decide. */
static void clip_reach(float centre, float reach, float step, size_t *first, size_t *last) {
    const float low = floorf((centre - reach) / step), high = ceilf((centre + reach) / step);
    if (low > (float)*first)
        *first = (size_t)low;
    if (high + 1 < (float)*last)
        *last = (size_t)high + 1; /* high >= 0: centres are inside the image */
    while (*first < *last && fabsf((float)*first * step - centre) > reach)
        ++*first;
    while (*first < *last && fabsf((float)(*last - 1) * step - centre) > reach)
        --*last;
}

/* Offer a centre to the pixels `left` .. `right` - 1 of one row. */
static void offer_to_row(const struct clustering *k, int32_t number, size_t row, size_t left,
                         size_t right, float dy, float dz) {
    const struct dcrf_colours *lab = k->lab;
    const struct centre *centre = &k->centres[number];
    const float *plane[3], step = k->step[0], dz_squared = dz * dz;
    for (int c = 0; c < 3; c++)
        plane[c] = lab->plane[c] + row * lab->stride;
    float *distance = k->distance + row * lab->width;
    int32_t *nearest = k->nearest + row * lab->width;
    for (size_t x = left; x < right; x++) {
        const float dx = (float)(int32_t)x * step - centre->at[0],
                    d0 = plane[0][x] - centre->colour[0], d1 = plane[1][x] - centre->colour[1],
                    d2 = plane[2][x] - centre->colour[2];
        const float to_centre =
            d0 * d0 + d1 * d1 + d2 * d2 + k->position_weight * (dx * dx + dy * dy + dz_squared);
        const bool nearer = to_centre < distance[x];
        nearest[x] = nearer ? number : nearest[x];
        distance[x] = nearer ? to_centre : distance[x];
    }
}

/* Offer a centre to rows `begin` .. `end` - 1, counted through all slices. */
static void offer_centre(const struct clustering *k, int32_t number, size_t begin, size_t end) {
    const struct centre *centre = &k->centres[number];
    const size_t height = k->size[1];
    size_t left = 0, right = k->size[0], front = begin / height, back = (end - 1) / height + 1;
    clip_reach(centre->at[2], k->reach, k->step[2], &front, &back);
    if (front >= back)
        return;
    clip_reach(centre->at[0], k->reach, k->step[0], &left, &right);
    for (size_t z = front; z < back; z++) {
        size_t top = z * height < begin ? begin - z * height : 0;
        size_t bottom = (z + 1) * height > end ? end - z * height : height;
        clip_reach(centre->at[1], k->reach, k->step[1], &top, &bottom);
        for (size_t y = top; y < bottom; y++)
            offer_to_row(k, number, z * height + y, left, right,
                         (float)y * k->step[1] - centre->at[1],
                         (float)z * k->step[2] - centre->at[2]);
    }
}

static void assign_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct clustering *k = context;
    const size_t width = k->size[0];
    for (size_t a = begin * width; a < end * width; a++) {
        k->nearest[a] = NO_CENTRE;
        k->distance[a] = INFINITY;
    }
    for (size_t number = 0; number < k->count; number++)
        offer_centre(k, (int32_t)number, begin, end);
}

/* Sums of positions are sums of integers, and so exact; they are scaled by the steps afterwards. */
static void move_centres(struct clustering *k) {
    const struct dcrf_colours *lab = k->lab;
    memset(k->sums, 0, k->count * sizeof *k->sums);
    for (size_t row = 0; row < k->size[1] * k->size[2]; row++)
        for (size_t x = 0; x < k->size[0]; x++) {
            const int32_t number = k->nearest[row * k->size[0] + x];
            if (number == NO_CENTRE)
                continue;
            struct cluster_sum *sum = &k->sums[number];
            sum->pixels += 1;
            sum->at[0] += (double)x;
            sum->at[1] += (double)(row % k->size[1]);
            sum->at[2] += (double)(row / k->size[1]);
            for (int c = 0; c < 3; c++)
                sum->colour[c] += (double)lab->plane[c][row * lab->stride + x];
        }
    for (size_t number = 0; number < k->count; number++) {
        const struct cluster_sum *sum = &k->sums[number];
        struct centre *centre = &k->centres[number];
        if (sum->pixels == 0)
            continue;
        for (int i = 0; i < 3; i++) {
            centre->at[i] = (float)(sum->at[i] / sum->pixels) * k->step[i];
            centre->colour[i] = (float)(sum->colour[i] / sum->pixels);
        }
    }
}

static void link_neighbours(const struct clustering *k, uint8_t *links) {
    const size_t width = k->size[0], slice = width * k->size[1];
    for (size_t z = 0; z < k->size[2]; z++)
        for (size_t y = 0; y < k->size[1]; y++)
            for (size_t x = 0; x < width; x++) {
                const size_t a = z * slice + y * width + x;
                const int32_t *nearest = &k->nearest[a];
                uint8_t link = 0;
                if (x + 1 < width && nearest[0] == nearest[1])
                    link |= DCRF_LINK_RIGHT;
                if (y + 1 < k->size[1] && nearest[0] == nearest[width])
                    link |= DCRF_LINK_DOWN;
                if (z + 1 < k->size[2] && nearest[0] == nearest[slice])
                    link |= DCRF_LINK_BACK;
                links[a] = link;
            }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static dcrf_status cluster(struct clustering *k, size_t iterations, dcrf_workspace *workspace,
                           dcrf_error *error) {
    const size_t rows = k->size[1] * k->size[2];
    /* Every band considers every centre, so for volumes a band is a slice. */
    const size_t band = k->size[2] > 1 ? k->size[1] : ROWS_A_BAND;
    place_centres(k);
    for (size_t i = 0; i < iterations; i++) {
        if (i > 0)
            move_centres(k);
        if (!dcrf_parallel_while(workspace, rows, band, assign_rows, k))
            return dcrf_fail_interrupted(workspace, DCRF_FINDING, error);
    }
    return DCRF_OK;
}

static size_t centres_along(size_t size, float step, double region_size) {
    const double count = nearbyint((double)size * (double)step / region_size);
    return (size_t)fmin(fmax(count, 1), (double)size);
}

dcrf_status dcrf_slic(const struct dcrf_colours *lab, const double step[3],
                      const dcrf_superpixel_settings *settings, dcrf_workspace *workspace,
                      int32_t *regions, size_t *count, dcrf_error *error) {
    const size_t pixels = lab->width * lab->height * lab->depth;
    const double weight = settings->compactness / settings->region_size_px;
    struct clustering k = {.lab = lab,
                           .size = {lab->width, lab->height, lab->depth},
                           .reach = (float)settings->region_size_px,
                           .position_weight = (float)(weight * weight),
                           .count = 1};
    for (int axis = 0; axis < 3; axis++) {
        k.step[axis] = (float)step[axis];
        k.along[axis] = centres_along(k.size[axis], k.step[axis], settings->region_size_px);
        k.count *= k.along[axis];
    }
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    k.centres = dcrf_own(&owned, k.count, sizeof *k.centres);
    k.sums = dcrf_own(&owned, k.count, sizeof *k.sums);
    k.nearest = dcrf_own(&owned, pixels, sizeof *k.nearest);
    k.distance = dcrf_own(&owned, pixels, sizeof *k.distance);
    uint8_t *links = dcrf_own(&owned, pixels, sizeof *links);
    if (owned.is_short)
        return dcrf_fail_memory(error, "SLIC");
    TRY(cluster(&k, settings->iterations, workspace, error));
    link_neighbours(&k, links);
    *count = dcrf_regions_from_links(links, lab, regions);
    return DCRF_OK;
}
