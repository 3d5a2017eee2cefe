#include "dsp_cases.h"

#include "dense.h"

#include <math.h>
#include <stdlib.h>

/* Every other case has sixteen points, so that the error of the exponential is not hidden by that
 * of the sum. All terms are positive. */
static struct dsp_result run_gaussian_sum(const struct dcrf_dsp *dsp, uint64_t number,
                                          size_t repeats, double *time_s) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, number);
    const size_t d = 1 + number / 2 % 16, count = 16 * (1 + number % 2 * random_below(&rng, 600));
    float *points = random_block(d, count, -2, 2, number);
    for (size_t i = 0; i < d; i++) {
        for (size_t b = count - number % 16; b < count; b++)
            points[i * count + b] = INFINITY;
        points[i * count + 3] = 1e6f; /* far enough for the exponential to be zero */
        points[i * count + 5] = 3e38f;
    }
    float query[16];
    for (size_t i = 0; i < d; i++)
        query[i] = points[i * count];
    double sum = 0;
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        sum = dsp->gaussian_sum(points, count, count, d, query);
    *time_s = clocked(start_s, repeats);
    /* A dozen operations for the error of each term, plus those of a float sum in at least four
     * lanes, 4096 points at a time. */
    struct dsp_result r = {.count = 1, .operations = 12 + (count < 4096 ? count : 4096) / 4};
    r.value = malloc(sizeof *r.value);
    r.size = malloc(sizeof *r.size);
    r.value[0] = r.size[0] = (float)sum;
    assert_true(sum >= 1);
    free(points);
    return r;
}

/* Colours are multiples of 1/64, so that only the inside tests are rounded. */
static struct dsp_result run_sum_window(const struct dcrf_dsp *dsp, uint64_t number, size_t repeats,
                                        double *time_s) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, number);
    const size_t width = 1 + random_below(&rng, 60), height = 1 + random_below(&rng, 60);
    const size_t stride = width + 16, plane = stride * height;
    const double spread = 1 + (double)random_below(&rng, 20);
    float *colours = malloc(3 * plane * sizeof *colours);
    for (size_t i = 0; i < 3 * plane; i++)
        colours[i] =
            i % stride < width ? (float)floor(64 * spread * dcrf_rng_uniform(&rng)) / 64 : INFINITY;
    const float radius = 1 + 40 * (float)dcrf_rng_uniform(&rng);
    const float range = (float)(spread * dcrf_rng_uniform(&rng));
    struct dcrf_window window = {.plane = {colours, colours + plane, colours + 2 * plane},
                                 .width = width,
                                 .height = height,
                                 .stride = stride,
                                 .x = (float)width * (float)dcrf_rng_uniform(&rng),
                                 .y = (float)height * (float)dcrf_rng_uniform(&rng),
                                 .radius_px = radius,
                                 .spatial_squared = radius * radius,
                                 .range_squared = range * range};
    for (int c = 0; c < 3; c++)
        window.colour[c] = (float)(spread * dcrf_rng_uniform(&rng));
    struct dcrf_window_sums sums;
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        dsp->sum_window(&window, &sums);
    *time_s = clocked(start_s, repeats);
    struct dsp_result r = {.count = 6};
    r.value = malloc(r.count * sizeof *r.value);
    r.size = calloc(r.count, sizeof *r.size); /* no rounding allowed */
    const double found[] = {sums.count,     sums.x,         sums.y,
                            sums.colour[0], sums.colour[1], sums.colour[2]};
    for (size_t i = 0; i < r.count; i++)
        r.value[i] = (float)found[i];
    free(colours);
    return r;
}

/* Ranks, coordinates and weights must be bit-identical: `size` is zero. */
static struct dsp_result run_embed(void (*embed)(const struct dcrf_embed *), uint64_t number,
                                   size_t repeats, double *time_s) {
    const size_t d = number % 3 == 0 ? 5 : 1 + number % DCRF_EMBED_FEATURES;
    const double spread = number % 2 ? 3 : 300;
    float *feature = random_block(d, DCRF_EMBED_POINTS, -spread, spread, number);
    double factor[DCRF_EMBED_FEATURES];
    static int32_t origin[DCRF_EMBED_FEATURES + 1][DCRF_EMBED_POINTS];
    static int32_t rank[DCRF_EMBED_FEATURES + 1][DCRF_EMBED_POINTS];
    static float weight[DCRF_EMBED_FEATURES + 1][DCRF_EMBED_POINTS];
    int32_t fits[DCRF_EMBED_POINTS];
    for (size_t i = 0; i < d; i++)
        factor[i] = 0.7 * (double)(i + 1);
    for (size_t i = 0; number % 4 == 0 && i < d * DCRF_EMBED_POINTS; i++)
        feature[i] = roundf(feature[i]);
    feature[0] = number % 5 == 0 ? 1e30f : feature[0]; /* one that does not fit */
    const struct dcrf_embed e = {.dimension = d,
                                 .factor = factor,
                                 .feature = feature,
                                 .origin = origin,
                                 .rank = rank,
                                 .weight = weight,
                                 .fits = fits};
    const double start_s = dcrf_time_s();
    for (size_t i = 0; i < repeats; i++)
        embed(&e);
    *time_s = clocked(start_s, repeats);
    struct dsp_result r = {.count = (3 * (d + 1) + 1) * DCRF_EMBED_POINTS};
    r.value = calloc(r.count, sizeof *r.value);
    r.size = calloc(r.count, sizeof *r.size);
    for (size_t p = 0; p < DCRF_EMBED_POINTS; p++) {
        r.value[p] = fits[p] != 0;
        for (size_t k = 0; fits[p] && k <= d; k++) {
            float *value = r.value + (3 * k + 1) * DCRF_EMBED_POINTS + p;
            value[0] = (float)origin[k][p];
            value[DCRF_EMBED_POINTS] = (float)rank[k][p];
            value[2 * DCRF_EMBED_POINTS] = weight[k][p];
        }
    }
    free(feature);
    return r;
}

static struct dsp_result run_embed_single(const struct dcrf_dsp *dsp, uint64_t number,
                                          size_t repeats, double *time_s) {
    return run_embed(dsp->embed_single, number, repeats, time_s);
}

static struct dsp_result run_embed_double(const struct dcrf_dsp *dsp, uint64_t number,
                                          size_t repeats, double *time_s) {
    return run_embed(dsp->embed_double, number, repeats, time_s);
}

const struct dsp_entry dsp_point_entries[DSP_POINT_ENTRIES] = {
    {"gaussian_sum", run_gaussian_sum},
    {"sum_window", run_sum_window},
    {"embed in single", run_embed_single},
    {"embed in double", run_embed_double},
};
