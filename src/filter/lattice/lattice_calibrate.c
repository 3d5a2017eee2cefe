/* The scale of a lattice; a normalized kernel needs none, because normalization cancels any scale.
 *
 * The raw lattice sum is a multiple of the Gaussian sum that depends on the dimension and on how
 * full the lattice is. A single scale makes the sum of K~ 1 equal the sum of K 1 over a fixed
 * sample of variables. */
#include "core/error.h"
#include "core/owned.h"
#include "filter/lattice/lattice.h"

#include <math.h>

/* Variables per task. */
#define GRAIN 4096

struct sample {
    const struct dcrf_dsp *dsp;
    const struct dcrf_features *features;
    float *planes; /* the features, one plane per dimension */
    size_t plane;
    size_t count;
    double *row_sum;
};

/* Multiples of the golden ratio are spread evenly over the variables and do not align with any
 * image width. */
static size_t sampled_variable(const struct sample *sample, size_t i) {
    const size_t n = sample->features->variables;
    if (sample->count == n)
        return i;
    return (size_t)(fmod((double)i * 0.6180339887498949, 1.0) * (double)n);
}

static void fill_planes(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sample *sample = context;
    const size_t n = sample->features->variables;
    float row[DCRF_MAX_FEATURES];
    for (size_t a = begin; a < end; a++) {
        if (a < n)
            dcrf_features_row(sample->features, a, row);
        for (size_t i = 0; i < sample->features->dimension; i++)
            sample->planes[i * sample->plane + a] = a < n ? row[i] : INFINITY;
    }
}

static void sum_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct sample *sample = context;
    float query[DCRF_MAX_FEATURES];
    for (size_t i = begin; i < end; i++) {
        dcrf_features_row(sample->features, sampled_variable(sample, i), query);
        sample->row_sum[i] = sample->dsp->gaussian_sum(sample->planes, sample->plane, sample->plane,
                                                       sample->features->dimension, query);
    }
}

dcrf_status dcrf_lattice_find_scale(const struct dcrf_features *features, const float *row_sums,
                                    dcrf_workspace *workspace, double *scale, dcrf_error *error) {
    const size_t n = features->variables;
    struct sample sample = {.dsp = dcrf_dsp(), .features = features, .plane = (n + 15) / 16 * 16};
    sample.count = DCRF_CALIBRATION_TERMS / n > DCRF_CALIBRATION_SAMPLES
                       ? DCRF_CALIBRATION_TERMS / n
                       : DCRF_CALIBRATION_SAMPLES;
    sample.count = sample.count < n ? sample.count : n;
    DCRF_SCOPED double *sums = dcrf_allocate(sample.count, sizeof *sums);
    DCRF_SCOPED float *planes = dcrf_allocate(sample.plane, features->dimension * sizeof *planes);
    sample.row_sum = sums;
    sample.planes = planes;
    if (!sums || !planes)
        return dcrf_fail_memory(error, "the calibration of a lattice");
    dcrf_parallel_for(dcrf_workspace_pool(workspace), sample.plane, GRAIN, fill_planes, &sample);
    if (!dcrf_parallel_while(workspace, sample.count, 1, sum_rows, &sample))
        return dcrf_fail_interrupted(workspace, "calibrating a lattice", error);
    double exact = 0, raw = 0;
    for (size_t i = 0; i < sample.count; i++) {
        exact += sample.row_sum[i];
        raw += (double)row_sums[sampled_variable(&sample, i)];
    }
    *scale = exact / raw;
    return DCRF_OK;
}

dcrf_status dcrf_lattice_calibrate(dcrf_operator *base, const struct dcrf_features *features,
                                   dcrf_workspace *workspace, dcrf_error *error) {
    struct dcrf_lattice *lattice = (struct dcrf_lattice *)base;
    const size_t n = base->variables;
    double scale;
    DCRF_SCOPED float *row_sums = dcrf_allocate(n, sizeof *row_sums);
    if (!row_sums)
        return dcrf_fail_memory(error, "the calibration of a lattice");
    TRY(dcrf_operator_row_sums(base, workspace, row_sums, n, error));
    TRY(dcrf_lattice_find_scale(features, row_sums, workspace, &scale, error));
    const float factor = (float)sqrt(scale);
    for (size_t e = 0; e < n * lattice->corners; e++)
        lattice->runs.weight[e] *= factor;
    return DCRF_OK;
}
