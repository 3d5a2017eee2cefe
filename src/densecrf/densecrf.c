/* The object of the compatible mean field: checks and copies. */
#include "densecrf/densecrf.h"

#include "core/error.h"
#include "core/memory.h"
#include "model/view.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Larger compatibilities are rejected, so that messages do not overflow. */
#define LARGEST_COMPATIBILITY 1e15f
/* The original adds this to row sums. */
#define ROW_SUM_FLOOR 1e-20f

dcrf_status dcrf_densecrf_new(dcrf_densecrf **out, const dcrf_grid *grid, size_t labels,
                              dcrf_error *error) {
    if (!out || !grid)
        return dcrf_fail_null(error, "the place for the model or the grid");
    size_t variables, plane_bytes;
    *out = NULL;
    const dcrf_status status = dcrf_grid_check(grid, &variables, error);
    if (status < 0)
        return status;
    if (labels < 1 || labels > DCRF_MAX_LABELS)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "the number of labels is %zu; it must be 1 to %d",
                         labels, DCRF_MAX_LABELS);
    dcrf_densecrf *crf = dcrf_allocate_zero(1, sizeof *crf);
    if (!crf)
        return dcrf_fail_memory(error, "a dense CRF");
    crf->grid = *grid;
    crf->variables = variables;
    crf->labels = labels;
    crf->message_error = DCRF_DENSECRF_MESSAGE_ERROR;
    if (!dcrf_multiply(variables, sizeof *crf->unary, &plane_bytes) ||
        !dcrf_multiply(labels, plane_bytes, &plane_bytes) || !dcrf_densecrf_order_new(crf)) {
        dcrf_densecrf_free(&crf);
        return dcrf_fail_memory(error, "a dense CRF");
    }
    *out = crf;
    return DCRF_OK;
}

static void term_clear(struct dcrf_densecrf_term *term) {
    dcrf_operator_free(&term->op);
    dcrf_release(term->channels);
    dcrf_release(term->mu);
}

void dcrf_densecrf_free(dcrf_densecrf **crf_pointer) {
    if (!crf_pointer || !*crf_pointer)
        return;
    dcrf_densecrf *crf = *crf_pointer;
    if (crf->on_device)
        crf->device.backend->compat->free(crf->on_device);
    for (size_t m = 0; m < crf->term_count; m++)
        term_clear(&crf->terms[m]);
    dcrf_release(crf->terms);
    dcrf_release(crf->unary);
    dcrf_release(crf->order);
    dcrf_release(crf->segment);
    dcrf_release(crf->band_segment);
    dcrf_release(crf);
    *crf_pointer = NULL;
}

size_t dcrf_densecrf_variables(const dcrf_densecrf *crf) {
    return crf ? crf->variables : 0;
}

size_t dcrf_densecrf_labels(const dcrf_densecrf *crf) {
    return crf ? crf->labels : 0;
}

size_t dcrf_densecrf_kernels(const dcrf_densecrf *crf) {
    return crf ? crf->term_count : 0;
}

const char *dcrf_densecrf_device(const dcrf_densecrf *crf) {
    return crf && crf->on_device ? crf->device.name : "cpu";
}

dcrf_status dcrf_densecrf_set_device(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                     dcrf_error *error) {
    if (!crf || !workspace)
        return dcrf_fail_null(error, "the model or the workspace");
    if (crf->term_count > 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the model has kernels, which stay where they are");
    const dcrf_status status =
        crf->on_device ? dcrf_densecrf_move_to_host(crf, workspace, error) : DCRF_OK;
    return status < 0 ? status : dcrf_densecrf_move_to_device(crf, workspace, error);
}

/* ---- unary energies ------------------------------------------------------------------------- */

/* Segments to prefetch ahead: each is on another line of the image, which hardware does not
 * predict. */
#define SEGMENTS_AHEAD 2

/* Copy eight energies; returns nonzero flags if one must be clipped or is not finite. Four at a
 * time: every processor has such vectors, and compilers split longer ones. */
typedef float four_floats __attribute__((vector_size(4 * sizeof(float))));
typedef int32_t four_flags __attribute__((vector_size(4 * sizeof(float))));

static inline four_flags copy_eight(const float *in, float *out) {
    four_flags fits = {-1, -1, -1, -1};
    for (size_t k = 0; k < DCRF_LANES; k += 4) {
        four_floats x;
        memcpy(&x, in + k, sizeof x);
        memcpy(out + k, &x, sizeof x);
        fits &= (x <= DCRF_DENSECRF_LARGEST_UNARY) & (x >= -DCRF_DENSECRF_LARGEST_UNARY);
    }
    return ~fits;
}

/* Planes of the labels first .. first + count - 1, in the order of the image. */
struct planes {
    const char *data;
    ptrdiff_t step; /* bytes from one to the next */
    size_t first, count;
};

static const float *plane_of(const struct planes *planes, size_t i) {
    return (const float *)(const void *)(planes->data + (ptrdiff_t)i * planes->step);
}

/* Copy one segment of one plane. */
static inline four_flags order_segment(const dcrf_densecrf *crf, const float *in, size_t begin,
                                       size_t end, float *out) {
    four_flags misfits = {0};
    for (size_t place = begin; place < end;) {
        const size_t room = DCRF_LANES - place % DCRF_LANES;
        const size_t count = room < end - place ? room : end - place;
        if (count == DCRF_LANES) {
            misfits |= copy_eight(in, out);
        } else {
            float part[2][DCRF_LANES] = {{0}};
            memcpy(part[0], in, count * sizeof *in);
            misfits |= copy_eight(part[0], part[1]);
            memcpy(out, part[1], count * sizeof *out);
        }
        in += count;
        place += count;
        out += count + (place % DCRF_LANES == 0 ? (crf->labels - 1) * DCRF_LANES : 0);
    }
    return misfits;
}

/* Copy planes to the order of the places; false if a value must be clipped or is not finite. */
static bool order_planes(const dcrf_densecrf *crf, const struct planes *planes, float *unary) {
    const size_t segments = crf->band_segment[crf->bands];
    four_flags misfits = {0};
    for (size_t s = 0; s < segments; s++) {
        const size_t begin = crf->segment[s], end = crf->segment[s + 1];
        const size_t later = s + SEGMENTS_AHEAD < segments ? s + SEGMENTS_AHEAD : s;
        const size_t ahead = crf->order[crf->segment[later]];
        for (size_t i = 0; i < planes->count; i++) {
            const float *plane = plane_of(planes, i);
            for (size_t k = 0; k < 48; k += 16)
                __builtin_prefetch(plane + ahead + k);
            misfits |= order_segment(crf, plane + crf->order[begin], begin, end,
                                     unary + dcrf_densecrf_unary_at(crf, begin, planes->first + i));
        }
    }
    return (misfits[0] | misfits[1] | misfits[2] | misfits[3]) == 0;
}

bool dcrf_densecrf_order_planes(const dcrf_densecrf *crf, const float *planes, float *unary) {
    const struct planes all = {(const char *)planes, (ptrdiff_t)(crf->variables * sizeof *planes),
                               0, crf->labels};
    return order_planes(crf, &all, unary);
}

static bool is_contiguous(const dcrf_view *view, const dcrf_grid *grid) {
    ptrdiff_t step = sizeof(float);
    for (size_t axis = 0; axis < grid->axes; axis++) {
        if (view->stride[axis] != step && grid->size[axis] > 1)
            return false;
        step *= (ptrdiff_t)grid->size[axis];
    }
    return view->type == DCRF_F32;
}

dcrf_status dcrf_densecrf_set_unary(dcrf_densecrf *crf, const dcrf_view *energies,
                                    dcrf_error *error) {
    if (!crf)
        return dcrf_fail_null(error, "the model");
    if (!energies || !energies->data)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the unary array: no data given");
    if (energies->channels != crf->labels)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the unary array has %zu channels, but there are %zu labels",
                         energies->channels, crf->labels);
    /* If the device finds a value that is not finite, the code below reports it. */
    if (crf->on_device && is_contiguous(energies, &crf->grid) &&
        energies->channel_stride == (ptrdiff_t)(crf->variables * sizeof(float))) {
        const dcrf_status on_device =
            dcrf_densecrf_unary_on_device(crf, energies->data, false, error);
        if (on_device != DCRF_ERROR_NOT_FINITE)
            return on_device;
    }
    float *unary = dcrf_allocate(dcrf_densecrf_unary_floats(crf), sizeof *unary);
    float *picture = dcrf_allocate(crf->variables, sizeof *picture);
    const struct planes all = {energies->data, energies->channel_stride, 0, crf->labels};
    dcrf_status status = DCRF_OK;
    if (!unary || !picture)
        status = dcrf_fail_memory(error, "the unary energies");
    else if (!is_contiguous(energies, &crf->grid) || !order_planes(crf, &all, unary))
        for (size_t i = 0; i < crf->labels && status == DCRF_OK; i++) {
            const struct planes one = {(const char *)picture, 0, i, 1};
            char what[64];
            dcrf_view plane = *energies;
            plane.data = plane_of(&all, i);
            plane.channels = 1;
            snprintf(what, sizeof what, "the unary array (label %zu)", i);
            status = dcrf_view_copy(&plane, &crf->grid, what, NULL, picture, 1, error);
            for (size_t a = 0; a < crf->variables && status == DCRF_OK; a++)
                picture[a] = fmaxf(fminf(picture[a], DCRF_DENSECRF_LARGEST_UNARY),
                                   -DCRF_DENSECRF_LARGEST_UNARY);
            if (status == DCRF_OK)
                order_planes(crf, &one, unary);
        }
    dcrf_release(picture);
    if (status == DCRF_OK && crf->on_device)
        status = dcrf_densecrf_unary_on_device(crf, unary, true, error);
    if (status < 0 || crf->on_device) {
        dcrf_release(unary);
        return status;
    }
    dcrf_release(crf->unary);
    crf->unary = unary;
    return DCRF_OK;
}

/* ---- compatibilities ------------------------------------------------------------------------ */

/* mu, with its signs, from the caller's values. */
static dcrf_status copy_compatibility(const dcrf_densecrf *crf, dcrf_compatibility compatibility,
                                      const float *values, float **out, dcrf_error *error) {
    const size_t labels = crf->labels;
    if (compatibility != DCRF_COMPATIBILITY_POTTS && compatibility != DCRF_COMPATIBILITY_VECTOR &&
        compatibility != DCRF_COMPATIBILITY_MATRIX)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a kind of compatibility",
                         (int)compatibility);
    const size_t count = compatibility == DCRF_COMPATIBILITY_POTTS    ? 1
                         : compatibility == DCRF_COMPATIBILITY_VECTOR ? labels
                                                                      : labels * labels;
    if (!values)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "no compatibility given");
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                             "the compatibility holds %g at index %zu", (double)values[i], i);
        if (fabsf(values[i]) > LARGEST_COMPATIBILITY)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "the compatibility holds %g at index %zu; at most %g is possible",
                             (double)values[i], i, (double)LARGEST_COMPATIBILITY);
    }
    float *mu = dcrf_allocate(count, sizeof *mu);
    if (!mu)
        return dcrf_fail_memory(error, "a compatibility");
    for (size_t i = 0; i < count; i++)
        switch (compatibility) {
        case DCRF_COMPATIBILITY_POTTS:
            mu[i] = -values[i];
            break;
        case DCRF_COMPATIBILITY_VECTOR:
            mu[i] = values[i];
            break;
        case DCRF_COMPATIBILITY_MATRIX:
            mu[i] = 0.5f * (values[i] + values[i % labels * labels + i / labels]);
            break;
        }
    *out = mu;
    return DCRF_OK;
}

dcrf_status dcrf_densecrf_set_compatibility(dcrf_densecrf *crf, size_t kernel,
                                            dcrf_compatibility compatibility, const float *values,
                                            dcrf_error *error) {
    if (!crf)
        return dcrf_fail_null(error, "the model");
    float *mu;
    if (kernel >= crf->term_count)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "there is no kernel %zu: there are %zu",
                         kernel, crf->term_count);
    dcrf_status status = copy_compatibility(crf, compatibility, values, &mu, error);
    if (status < 0)
        return status;
    struct dcrf_densecrf_term *term = &crf->terms[kernel];
    float *old_mu = term->mu;
    const dcrf_compatibility old = term->compatibility;
    term->mu = mu;
    term->compatibility = compatibility;
    if (crf->on_device)
        status = dcrf_densecrf_kernels_on_device(crf, crf->terms, crf->term_count, error);
    if (status < 0) {
        term->mu = old_mu;
        term->compatibility = old;
    }
    dcrf_release(status < 0 ? mu : old_mu);
    return status;
}

dcrf_status dcrf_densecrf_set_message_error(dcrf_densecrf *crf, double message_error,
                                            dcrf_error *error) {
    if (!crf)
        return dcrf_fail_null(error, "the model");
    if (!(message_error >= 0) || !isfinite(message_error))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the error of a message is %g; it must be 0 or positive and finite",
                         message_error);
    crf->message_error = message_error;
    return DCRF_OK;
}

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
    for (size_t a = 0; a < n; a++)
        sums[a] = rows[a * width];
    dcrf_release(rows);
    return DCRF_OK;
}

static float largest_of(const float *sums, size_t count) {
    float largest = 0;
    for (size_t a = 0; a < count; a++)
        largest = sums[a] > largest ? sums[a] : largest;
    return largest;
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
        term->row_sum = *row_sum = largest_of(sums, n);
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
        term->row_sum = largest_of(sums, n);
    if (status == DCRF_OK && normalization != DCRF_DENSECRF_NONE) {
        struct inversion inversion = {sums, normalization == DCRF_DENSECRF_SYMMETRIC};
        dcrf_parallel_for(pool, n, 8 * DCRF_DENSECRF_GRAIN, invert_sums, &inversion);
        status =
            dcrf_lattice_scale(lattice, pool, normalization == DCRF_DENSECRF_AFTER ? NULL : sums,
                               normalization == DCRF_DENSECRF_BEFORE ? NULL : sums, error);
    }
    dcrf_release(sums);
    return status;
}

/* The channels of a bilateral kernel if they are contiguous bytes, as images are: these need
 * neither be copied nor checked. */
static const uint8_t *bytes_of(const dcrf_densecrf *crf, const dcrf_kernel *kernel) {
    const dcrf_view *view = &kernel->channels;
    if (kernel->kind != DCRF_KERNEL_BILATERAL || view->type != DCRF_U8 || view->channel_stride != 1)
        return NULL;
    ptrdiff_t step = (ptrdiff_t)view->channels;
    for (size_t axis = 0; axis < crf->grid.axes; axis++) {
        if (view->stride[axis] != step && crf->grid.size[axis] > 1)
            return NULL;
        step *= (ptrdiff_t)crf->grid.size[axis];
    }
    return view->data;
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
    const uint8_t *bytes = is_given ? NULL : bytes_of(crf, kernel);
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

dcrf_status dcrf_densecrf_build(const dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                                dcrf_workspace *workspace, const dcrf_kernel *kernel,
                                dcrf_densecrf_normalization normalization, dcrf_error *error) {
    struct dcrf_features features;
    dcrf_status status = dcrf_densecrf_features(&features, crf, kernel, false, error);
    if (status < 0)
        return status;
    const size_t row = dcrf_padded(crf->labels);
    const struct dcrf_refinement single = {.rounds = 1,
                                           .is_single = true,
                                           .has_origin = dcrf_densecrf_has_origin(crf),
                                           .runs = &dcrf_lattice_by_runs,
                                           .row_floats =
                                               row < DCRF_DSP_WIDTH ? row : DCRF_DSP_WIDTH,
                                           .band_variables = crf->band};
    status = dcrf_lattice_new_refined(&term->op, &features, single, workspace, error);
    dcrf_features_clear(&features);
    if (status < 0)
        return status;
    term->gain = (float)(1 / (1 + ldexp(1, -(int)features.dimension)));
    return normalize(term, workspace, normalization, crf->labels, error);
}

/* Build the last of `terms` where the model is; if the device does not support it, build it on the
 * host and move the model there. The model changes only if everything succeeds. */
static dcrf_status build(dcrf_densecrf *crf, struct dcrf_densecrf_term *terms,
                         dcrf_workspace *workspace, const dcrf_kernel *kernel,
                         dcrf_densecrf_normalization normalization, dcrf_error *error) {
    struct dcrf_densecrf_term *term = &terms[crf->term_count];
    if (crf->on_device) {
        const dcrf_status status =
            dcrf_densecrf_build_on_device(crf, term, kernel, normalization, error);
        if (status == DCRF_OK)
            return dcrf_densecrf_kernels_on_device(crf, terms, crf->term_count + 1, error);
        if (status != DCRF_ERROR_UNSUPPORTED)
            return status;
        dcrf_release(term->channels);
        term->channels = NULL;
    }
    dcrf_status status = dcrf_densecrf_build(crf, term, workspace, kernel, normalization, error);
    if (status == DCRF_OK && crf->on_device) {
        status = dcrf_densecrf_move_to_host(crf, workspace, error);
        if (status == DCRF_OK && crf->term_count > 0)
            memcpy(terms, crf->terms, crf->term_count * sizeof *terms);
    }
    return status;
}

dcrf_status dcrf_densecrf_add_kernel(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                     const dcrf_kernel *kernel,
                                     dcrf_densecrf_normalization normalization,
                                     dcrf_compatibility compatibility, const float *values,
                                     dcrf_error *error) {
    if (!crf || !workspace || !kernel)
        return dcrf_fail_null(error, "the model, the workspace or the kernel");
    DCRF_ENTER(workspace, error);
    if ((int)normalization < DCRF_DENSECRF_NONE || (int)normalization > DCRF_DENSECRF_SYMMETRIC)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a normalization",
                         (int)normalization);
    if (crf->term_count == DCRF_DENSECRF_MOST_TERMS)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "there are %d kernels already; more are not possible",
                         DCRF_DENSECRF_MOST_TERMS);
    struct dcrf_densecrf_term *terms = dcrf_allocate_zero(crf->term_count + 1, sizeof *terms);
    if (!terms)
        return dcrf_fail_memory(error, "a kernel");
    if (crf->term_count > 0)
        memcpy(terms, crf->terms, crf->term_count * sizeof *terms);
    struct dcrf_densecrf_term *term = &terms[crf->term_count];
    term->compatibility = compatibility;
    dcrf_status status = copy_compatibility(crf, compatibility, values, &term->mu, error);
    if (status == DCRF_OK && crf->term_count == 0 && !crf->on_device)
        status = dcrf_densecrf_move_to_device(crf, workspace, error);
    if (status == DCRF_OK)
        status = build(crf, terms, workspace, kernel, normalization, error);
    if (status < 0) {
        term_clear(term);
        dcrf_release(terms);
        return status;
    }
    dcrf_release(crf->terms);
    crf->terms = terms;
    crf->term_count++;
    return DCRF_OK;
}
