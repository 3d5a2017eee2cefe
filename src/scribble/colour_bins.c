/* Colours in bins.
 *
 * Three channels between 0 and 255 are taken for sRGB and converted to CIE Lab, where equal
 * distances look equal. Any other image is shifted and scaled, with one scale for all channels, to
 * the variance DCRF_BINS_DEVIATION^2, which is about that of the lightness of photographs. So
 * results do not depend on the unit of the values.
 *
 * Colours are then quantized on a cubic grid of BIN_WIDTH, which is less than typical noise; the
 * width is doubled until there are at most BINS_MAX bins. A bin is represented by the mean of its
 * members. Bins are numbered in the order of the variables that first fall into them. */
#include "scribble/colour_bins.h"

#include "core/error.h"
#include "model/colour.h"
#include "model/view.h"

#include <dcrf/model.h>
#include <dcrf/scribbles.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define BIN_WIDTH 2.0
#define BINS_MAX ((size_t)1 << 15)
#define SLOTS (4 * BINS_MAX) /* a power of two */
#define EMPTY UINT32_MAX
#define KEY_BITS 64

static const char what[] = "the image under the scribbles";

/* ---- values --------------------------------------------------------------------------------- */

struct values {
    float *of; /* `channels` per variable, interleaved */
    size_t count;
    size_t channels;
};

static bool is_srgb(const struct values *v) {
    for (size_t i = 0; i < v->count * v->channels; i++)
        if (!(v->of[i] >= 0 && v->of[i] <= 255))
            return false;
    return v->channels == 3;
}

/* Sets the means of the channels; returns the mean of their variances. */
static double variance_of(const struct values *v, double *mean) {
    double squares = 0;
    for (size_t c = 0; c < v->channels; c++) {
        double sum = 0, square_sum = 0;
        const double origin = (double)v->of[c];
        for (size_t a = 0; a < v->count; a++) {
            const double value = (double)v->of[a * v->channels + c] - origin;
            sum += value;
            square_sum += value * value;
        }
        mean[c] = origin + sum / (double)v->count;
        const double offset = sum / (double)v->count;
        squares += fmax(square_sum / (double)v->count - offset * offset, 0);
    }
    return squares / (double)v->channels;
}

static void scale(const struct values *v, double variance, const double *mean) {
    const double factor = variance > 0 ? DCRF_BINS_DEVIATION / sqrt(variance) : 1;
    for (size_t a = 0; a < v->count; a++)
        for (size_t c = 0; c < v->channels; c++) {
            float *value = &v->of[a * v->channels + c];
            *value = (float)(((double)*value - mean[c]) * factor);
        }
}

static dcrf_status convert_to_lab(const struct values *v, size_t width, dcrf_pool *pool,
                                  dcrf_error *error) {
    const dcrf_grid slices = dcrf_grid_2d(width, v->count / width); /* stacked */
    const dcrf_view rgb = dcrf_view_interleaved(v->of, DCRF_F32, &slices, 3);
    struct dcrf_colours lab;
    TRY(dcrf_colours_new(&lab, &slices, &rgb, DCRF_COLOUR_LAB, pool, error));
    for (size_t a = 0; a < v->count; a++)
        for (size_t c = 0; c < 3; c++)
            v->of[a * 3 + c] = lab.plane[c][a / width * lab.stride + a % width];
    dcrf_colours_clear(&lab);
    return DCRF_OK;
}

/* ---- bins ----------------------------------------------------------------------------------- */

struct box {
    double least[DCRF_MAX_FEATURES];
    double extent[DCRF_MAX_FEATURES];
    double widest;
};

static struct box measure_box(const struct values *v) {
    struct box box = {.widest = 0};
    for (size_t c = 0; c < v->channels; c++) {
        float least = v->of[c], most = v->of[c];
        for (size_t a = 1; a < v->count; a++) {
            const float value = v->of[a * v->channels + c];
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
        box.least[c] = (double)least;
        box.extent[c] = (double)most - (double)least;
        box.widest = fmax(box.widest, box.extent[c]);
    }
    return box;
}

struct table {
    uint64_t *key; /* of each occupied slot */
    uint32_t *bin; /* EMPTY if the slot is free */
};

static uint32_t *find(const struct table *table, uint64_t key) {
    uint64_t hash = key * 0x9e3779b97f4a7c15u; /* Fibonacci hashing: 2^64 / the golden ratio */
    size_t slot = (size_t)(hash >> 32) & (SLOTS - 1);
    while (table->bin[slot] != EMPTY && table->key[slot] != key)
        slot = (slot + 1) & (SLOTS - 1);
    table->key[slot] = key;
    return &table->bin[slot];
}

/* Number the bins for one width; false if there are too many. */
static bool number_bins(struct dcrf_colour_bins *bins, const struct values *v,
                        const struct box *box, double width, const struct table *table) {
    const unsigned bits = KEY_BITS / (unsigned)v->channels;
    memset(table->bin, 0xff, SLOTS * sizeof *table->bin);
    bins->count = 0;
    for (size_t a = 0; a < v->count; a++) {
        uint64_t key = 0;
        for (size_t c = 0; c < v->channels; c++) {
            const double offset = (double)v->of[a * v->channels + c] - box->least[c];
            key = (bits < KEY_BITS ? key << bits : 0) | (uint64_t)(offset / width);
        }
        uint32_t *bin = find(table, key);
        if (*bin == EMPTY) {
            if (bins->count == BINS_MAX)
                return false;
            *bin = (uint32_t)bins->count++;
        }
        bins->bin_of[a] = *bin;
    }
    return true;
}

/* The smallest width whose keys fit. */
static double first_width(const struct box *box, size_t channels) {
    const unsigned bits = KEY_BITS / (unsigned)channels;
    const double cells = bits >= 32 ? 0x1p31 : (double)((uint64_t)1 << bits) - 1;
    return fmax(BIN_WIDTH, box->widest / cells * (1 + 1e-9));
}

static bool average_bins(struct dcrf_colour_bins *bins, const struct values *v) {
    const size_t width = v->channels + 1;
    DCRF_SCOPED double *sums = dcrf_allocate_zero(bins->count, width * sizeof *sums);
    bins->colour = dcrf_own(&bins->owned, bins->count, v->channels * sizeof *bins->colour);
    if (!sums || !bins->colour)
        return false;
    for (size_t a = 0; a < v->count; a++) {
        double *sum = sums + bins->bin_of[a] * width;
        sum[0] += 1;
        for (size_t c = 0; c < v->channels; c++)
            sum[1 + c] += (double)v->of[a * v->channels + c];
    }
    for (size_t b = 0; b < bins->count; b++)
        for (size_t c = 0; c < v->channels; c++)
            bins->colour[b * v->channels + c] = (float)(sums[b * width + 1 + c] / sums[b * width]);
    return true;
}

static bool fill_bins(struct dcrf_colour_bins *bins, const struct values *v) {
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    const struct box box = measure_box(v);
    double width = first_width(&box, v->channels);
    struct table table = {dcrf_own(&owned, SLOTS, sizeof *table.key),
                          dcrf_own(&owned, SLOTS, sizeof *table.bin)};
    bins->dimension = v->channels;
    bins->bin_of = dcrf_own(&bins->owned, v->count, sizeof *bins->bin_of);
    if (owned.is_short || !bins->bin_of)
        return false;
    while (!number_bins(bins, v, &box, width, &table))
        width *= 2;
    for (size_t c = 0; c < v->channels; c++)
        bins->log_volume += log(box.extent[c] + BIN_WIDTH);
    return average_bins(bins, v);
}

static dcrf_status make_bins(struct dcrf_colour_bins *bins, const dcrf_grid *grid,
                             const dcrf_view *image, struct values *values, dcrf_pool *pool,
                             dcrf_error *error) {
    double mean[DCRF_MAX_FEATURES];
    if (!values->of)
        return dcrf_fail_memory(error, what);
    TRY(dcrf_view_copy(image, grid, what, NULL, values->of, image->channels, error));
    bins->deviation = sqrt(variance_of(values, mean));
    bins->is_srgb = is_srgb(values);
    if (bins->is_srgb)
        TRY(convert_to_lab(values, grid->size[0], pool, error));
    else
        scale(values, bins->deviation * bins->deviation, mean);
    bins->variance = variance_of(values, mean);
    return fill_bins(bins, values) ? DCRF_OK : dcrf_fail_memory(error, what);
}

dcrf_status dcrf_colour_bins_init(struct dcrf_colour_bins *bins, const dcrf_grid *grid,
                                  const dcrf_view *image, dcrf_pool *pool, dcrf_error *error) {
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    DCRF_SCOPED float *memory = dcrf_allocate(variables, image->channels * sizeof *memory);
    struct values values = {memory, variables, image->channels};
    *bins = (struct dcrf_colour_bins){0};
    const dcrf_status status = make_bins(bins, grid, image, &values, pool, error);
    if (status < 0)
        dcrf_colour_bins_clear(bins);
    return status;
}

void dcrf_colour_bins_clear(struct dcrf_colour_bins *bins) {
    dcrf_disown(&bins->owned);
}

double dcrf_colour_bins_sigma(const struct dcrf_colour_bins *bins, double of_photographs) {
    const bool is_photograph = bins->is_srgb || !(bins->deviation > 0);
    return of_photographs * (is_photograph ? 1 : bins->deviation / DCRF_SCRIBBLES_CONTRAST);
}
