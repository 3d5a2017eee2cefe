/* The compatible mean field on the host: how its kernels are made, and its entries of struct
 * dcrf_densecrf_methods. Updates are in update.c, the objective is in divergence.c. */
#include "densecrf/densecrf.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>

/* The original adds this to row sums. */
#define ROW_SUM_FLOOR 1e-20f

/* ---- kernels -------------------------------------------------------------------------------- */

/* Floats of the rows used to measure row sums: as few as possible. */
static size_t row_sums_width(const struct dcrf_densecrf_term *term) {
    return dcrf_densecrf_has_short_rows(term) ? 2 : DCRF_NARROW_LANES;
}

static size_t row_sums_floats(const struct dcrf_densecrf_term *term, dcrf_pool *pool) {
    return dcrf_lattice_filter_floats(dcrf_densecrf_lattice(term), row_sums_width(term),
                                      dcrf_pool_threads(pool));
}

/* sums = gain K 1, with scratch memory of row_sums_floats. */
static dcrf_status row_sums(const struct dcrf_densecrf_term *term, dcrf_pool *pool, float *scratch,
                            float *sums, dcrf_error *error) {
    const struct dcrf_lattice *lattice = dcrf_densecrf_lattice(term);
    const size_t n = lattice->base.variables, width = row_sums_width(term);
    const float ones[DCRF_NARROW_LANES] = {1, 1, 1, 1};
    float *rows = dcrf_allocate(n, width * sizeof *rows);
    if (!rows || !scratch) {
        dcrf_release(rows);
        return dcrf_fail_memory(error, "the row sums of a kernel");
    }
    dcrf_lattice_filter(
        &(struct dcrf_lattice_filter){.lattice = lattice,
                                      .pool = pool,
                                      .width = width,
                                      .in = ones, /* every variable reads the same row */
                                      .out = rows,
                                      .out_stride = width,
                                      .factor = term->gain,
                                      .scratch = scratch});
    dcrf_parallel_column(pool, sums, rows, width, n);
    dcrf_release(rows);
    return DCRF_OK;
}

dcrf_status dcrf_densecrf_row_sum(struct dcrf_densecrf_term *term, dcrf_pool *pool, float *row_sum,
                                  dcrf_error *error) {
    const size_t n = dcrf_densecrf_lattice(term)->base.variables;
    *row_sum = term->row_sum;
    if (*row_sum > 0)
        return DCRF_OK;
    float *sums = dcrf_allocate(n, sizeof *sums);
    float *scratch = dcrf_allocate(row_sums_floats(term, pool), sizeof *scratch);
    dcrf_status status = DCRF_OK;
    if (!sums)
        status = dcrf_fail_memory(error, "the row sums of a kernel");
    if (status == DCRF_OK)
        status = row_sums(term, pool, scratch, sums, error);
    if (status == DCRF_OK)
        term->row_sum = *row_sum = dcrf_densecrf_largest(sums, n);
    dcrf_release(sums);
    dcrf_release(scratch);
    return status;
}

struct inversion {
    float *sums;
    bool is_symmetric;
};

static void invert_sums(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct inversion *inversion = context;
    float *sums = inversion->sums;
    if (inversion->is_symmetric)
        for (size_t a = begin; a < end; a++)
            sums[a] = 1 / sqrtf(sums[a] + ROW_SUM_FLOOR);
    else
        for (size_t a = begin; a < end; a++)
            sums[a] = 1 / (sums[a] + ROW_SUM_FLOOR);
}

static dcrf_status normalize(struct dcrf_densecrf_term *term, dcrf_workspace *workspace,
                             dcrf_densecrf_normalization normalization, size_t labels,
                             dcrf_error *error) {
    struct dcrf_lattice *lattice = (struct dcrf_lattice *)term->op;
    const size_t n = lattice->base.variables;
    float *sums = dcrf_allocate(n, sizeof *sums);
    if (!sums)
        return dcrf_fail_memory(error, "the normalization of a kernel");
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    /* Inference with rows this short uses the same memory for its lattices. */
    const bool is_shared = labels <= DCRF_NARROW_LANES;
    float *scratch = is_shared ? dcrf_workspace_slot(workspace, &dcrf_spread_slot,
                                                     row_sums_floats(term, pool), sizeof *scratch)
                               : dcrf_allocate(row_sums_floats(term, pool), sizeof *scratch);
    dcrf_status status = row_sums(term, pool, scratch, sums, error);
    if (!is_shared)
        dcrf_release(scratch);
    if (status == DCRF_OK && normalization == DCRF_DENSECRF_NONE)
        term->row_sum = dcrf_densecrf_largest(sums, n);
    if (status == DCRF_OK && normalization != DCRF_DENSECRF_NONE) {
        struct inversion inversion = {sums, normalization == DCRF_DENSECRF_SYMMETRIC};
        dcrf_parallel_rows(pool, n, invert_sums, &inversion);
        status =
            dcrf_lattice_scale(lattice, pool, normalization == DCRF_DENSECRF_AFTER ? NULL : sums,
                               normalization == DCRF_DENSECRF_BEFORE ? NULL : sums, error);
    }
    dcrf_release(sums);
    return status;
}

/* Features as the original computes them: coordinates and channels in single precision, divided by
 * sigmas in single precision. Only if that is reproduced exactly do points on the borders of
 * simplices fall into the same simplices. */
dcrf_status dcrf_densecrf_features(struct dcrf_features *features, const dcrf_densecrf *crf,
                                   const dcrf_kernel *kernel, bool is_given, dcrf_error *error) {
    dcrf_kernel checked = *kernel;
    checked.weight = 1; /* neither is used, but both must pass the check */
    checked.normalization = DCRF_NORMALIZE_NONE;
    for (size_t c = 0; kernel->kind == DCRF_KERNEL_BILATERAL && c < DCRF_MAX_FEATURES; c++)
        if ((float)kernel->channel_sigma[c] > 0 && isfinite(kernel->channel_sigma[c]))
            checked.channel_sigma[c] = 1; /* divided below */
    /* Contiguous bytes, as images have, need neither be copied nor checked. */
    const uint8_t *bytes = NULL;
    if (!is_given && kernel->kind == DCRF_KERNEL_BILATERAL &&
        dcrf_densecrf_are_bytes(&kernel->channels, &crf->grid))
        bytes = kernel->channels.data;
    const dcrf_status status = is_given || bytes
                                   ? dcrf_features_describe(features, &crf->grid, &checked, error)
                                   : dcrf_features_new(features, &crf->grid, &checked, error);
    if (status < 0)
        return status;
    features->bytes = bytes;
    if (features->given)
        features->given = is_given ? &kernel->channels : NULL;
    features->order = crf->order;
    if (features->axes == 0)
        return DCRF_OK;
    features->is_single = true;
    for (size_t i = 0; i < features->dimension; i++)
        features->divisor[i] =
            (float)(i < features->axes ? kernel->sigma[i]
                                       : kernel->channel_sigma[i - features->axes]);
    return DCRF_OK;
}

static dcrf_status build(dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                         dcrf_workspace *workspace, const dcrf_kernel *kernel,
                         dcrf_densecrf_normalization normalization, dcrf_error *error) {
    struct dcrf_features features;
    dcrf_status status = dcrf_densecrf_features(&features, crf, kernel, false, error);
    if (status < 0)
        return status;
    const size_t row = dcrf_padded(crf->labels);
    const struct dcrf_lattice_options single = {.is_single = true,
                                                .has_origin = dcrf_densecrf_has_origin(crf),
                                                .runs = &dcrf_lattice_by_runs,
                                                .row_floats =
                                                    row < DCRF_DSP_WIDTH ? row : DCRF_DSP_WIDTH,
                                                .band_variables = crf->band};
    status = dcrf_lattice_new_with(&term->op, &features, single, workspace, error);
    dcrf_features_clear(&features);
    if (status < 0)
        return status;
    term->gain = (float)(1 / (1 + ldexp(1, -(int)features.dimension)));
    return normalize(term, workspace, normalization, crf->labels, error);
}

/* ---- the methods of the host --------------------------------------------------------------- */

static dcrf_status take_unary(dcrf_densecrf *crf, float *unary, dcrf_error *error) {
    (void)error;
    dcrf_release(crf->unary);
    crf->unary = unary;
    return DCRF_OK;
}

/* Updates read the terms themselves. */
static dcrf_status set_kernels(const dcrf_densecrf *crf, const struct dcrf_densecrf_term *terms,
                               size_t count, dcrf_error *error) {
    (void)crf, (void)terms, (void)count, (void)error;
    return DCRF_OK;
}

static void leave(dcrf_densecrf *crf) {
    dcrf_release(crf->unary);
    crf->unary = NULL;
}

const struct dcrf_densecrf_methods dcrf_densecrf_host = {.take_unary = take_unary,
                                                         .build = build,
                                                         .set_kernels = set_kernels,
                                                         .run = dcrf_densecrf_run,
                                                         .divergence =
                                                             dcrf_densecrf_find_divergence,
                                                         .leave = leave};
