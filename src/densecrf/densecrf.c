/* The object of the compatible mean field: checks and copies. */
#include "densecrf/densecrf.h"

#include "core/error.h"
#include "core/memory.h"
#include "model/view.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Larger compatibilities are rejected, so that messages do not overflow. */
#define LARGEST_COMPATIBILITY 1e15f

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
    crf->methods = &dcrf_densecrf_host;
    crf->device = (struct dcrf_device){.name = "cpu"};
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
    crf->methods->leave(crf);
    for (size_t m = 0; m < crf->term_count; m++)
        term_clear(&crf->terms[m]);
    dcrf_release(crf->terms);
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
    return crf ? crf->device.name : "cpu";
}

dcrf_status dcrf_densecrf_set_device(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                     dcrf_error *error) {
    if (!crf || !workspace)
        return dcrf_fail_null(error, "the model or the workspace");
    DCRF_ENTER(workspace, error);
    if (crf->term_count > 0)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the model has kernels, which stay where they are");
    const dcrf_status status = dcrf_densecrf_move_to_host(crf, workspace, error);
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

struct ordering {
    const dcrf_densecrf *crf;
    const struct planes *planes;
    float *unary;
    atomic_bool has_misfits;
};

static void order_bands(void *context, size_t first_band, size_t last_band, size_t worker) {
    (void)worker;
    struct ordering *ordering = context;
    const dcrf_densecrf *crf = ordering->crf;
    const struct planes *planes = ordering->planes;
    const size_t segments = crf->band_segment[crf->bands];
    four_flags misfits = {0};
    for (size_t s = crf->band_segment[first_band]; s < crf->band_segment[last_band]; s++) {
        const size_t begin = crf->segment[s], end = crf->segment[s + 1];
        const size_t later = s + SEGMENTS_AHEAD < segments ? s + SEGMENTS_AHEAD : s;
        const size_t ahead = crf->order[crf->segment[later]];
        for (size_t i = 0; i < planes->count; i++) {
            const float *plane = plane_of(planes, i);
            for (size_t k = 0; k < 48; k += 16)
                __builtin_prefetch(plane + ahead + k);
            misfits |= order_segment(crf, plane + crf->order[begin], begin, end,
                                     ordering->unary +
                                         dcrf_densecrf_unary_at(crf, begin, planes->first + i));
        }
    }
    if (misfits[0] | misfits[1] | misfits[2] | misfits[3])
        atomic_store_explicit(&ordering->has_misfits, true, memory_order_relaxed);
}

/* Copy planes to the order of the places; false if a value must be clipped or is not finite. */
static bool order_planes(const dcrf_densecrf *crf, dcrf_pool *pool, const struct planes *planes,
                         float *unary) {
    struct ordering ordering = {.crf = crf, .planes = planes, .unary = unary};
    dcrf_parallel_for(pool, crf->bands, 1, order_bands, &ordering);
    return !atomic_load_explicit(&ordering.has_misfits, memory_order_relaxed);
}

bool dcrf_densecrf_order_planes(const dcrf_densecrf *crf, const float *planes, float *unary) {
    const struct planes all = {(const char *)planes, (ptrdiff_t)(crf->variables * sizeof *planes),
                               0, crf->labels};
    return order_planes(crf, NULL, &all, unary);
}

/* Is every plane contiguous? */
static bool has_planes(const dcrf_view *view, const dcrf_grid *grid) {
    return view->type == DCRF_F32 && dcrf_densecrf_is_packed(view, grid, sizeof(float));
}

static dcrf_status set_unary(dcrf_densecrf *crf, dcrf_pool *pool, const dcrf_view *energies,
                             dcrf_error *error) {
    if (!energies || !energies->data)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "the unary array: no data given");
    if (energies->channels != crf->labels)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the unary array has %zu channels, but there are %zu labels",
                         energies->channels, crf->labels);
    /* If a value is found that is not finite, the code below reports it. */
    if (crf->methods->copy_planes && has_planes(energies, &crf->grid) &&
        energies->channel_stride == (ptrdiff_t)(crf->variables * sizeof(float))) {
        const dcrf_status copied = crf->methods->copy_planes(crf, energies->data, error);
        if (copied != DCRF_ERROR_NOT_FINITE)
            return copied;
    }
    float *unary = dcrf_allocate(dcrf_densecrf_unary_floats(crf), sizeof *unary);
    float *picture = dcrf_allocate(crf->variables, sizeof *picture);
    const struct planes all = {energies->data, energies->channel_stride, 0, crf->labels};
    dcrf_status status = DCRF_OK;
    if (!unary || !picture)
        status = dcrf_fail_memory(error, "the unary energies");
    else if (!has_planes(energies, &crf->grid) || !order_planes(crf, pool, &all, unary))
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
                order_planes(crf, pool, &one, unary);
        }
    dcrf_release(picture);
    if (status == DCRF_OK)
        return crf->methods->take_unary(crf, unary, error);
    dcrf_release(unary);
    return status;
}

dcrf_status dcrf_densecrf_set_unary(dcrf_densecrf *crf, const dcrf_view *energies,
                                    dcrf_error *error) {
    return crf ? set_unary(crf, NULL, energies, error) : dcrf_fail_null(error, "the model");
}

dcrf_status dcrf_densecrf_set_unary_with(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                         const dcrf_view *energies, dcrf_error *error) {
    if (!crf || !workspace)
        return dcrf_fail_null(error, "the model or the workspace");
    DCRF_ENTER(workspace, error);
    return set_unary(crf, dcrf_workspace_pool(workspace), energies, error);
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
    status = crf->methods->set_kernels(crf, crf->terms, crf->term_count, error);
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

/* ---- kernels --------------------------------------------------------------------------------- */

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
    struct dcrf_densecrf_term *term = &terms[crf->term_count];
    term->compatibility = compatibility;
    dcrf_status status = copy_compatibility(crf, compatibility, values, &term->mu, error);
    if (status == DCRF_OK && crf->term_count == 0)
        status = dcrf_densecrf_move_to_device(crf, workspace, error);
    if (status == DCRF_OK)
        status = crf->methods->build(crf, term, workspace, kernel, normalization, error);
    if (crf->term_count > 0) /* building may have moved them */
        memcpy(terms, crf->terms, crf->term_count * sizeof *terms);
    if (status == DCRF_OK)
        status = crf->methods->set_kernels(crf, terms, crf->term_count + 1, error);
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

/* ---- inference ------------------------------------------------------------------------------ */

static dcrf_status run_updates(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                               const struct dcrf_densecrf_call *run, size_t count,
                               dcrf_error *error) {
    if (!crf || !workspace)
        return dcrf_fail_null(error, "the model or the workspace");
    TRY(dcrf_check_rows(run->to, count, crf->labels, crf->variables, crf->variables,
                        "the marginals", error));
    DCRF_ENTER(workspace, error);
    return crf->methods->run(crf, workspace, run, error);
}

dcrf_status dcrf_densecrf_infer(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                size_t iterations, float *q, size_t count,
                                dcrf_progress_callback progress, void *progress_user,
                                dcrf_error *error) {
    const struct dcrf_densecrf_call run = {.updates = iterations,
                                           .to = q,
                                           .start_s = dcrf_time_s(),
                                           .progress = progress,
                                           .user = progress_user};
    return run_updates(crf, workspace, &run, count, error);
}

dcrf_status dcrf_densecrf_start(const dcrf_densecrf *crf, dcrf_workspace *workspace, float *q,
                                size_t count, dcrf_error *error) {
    return dcrf_densecrf_infer(crf, workspace, 0, q, count, NULL, NULL, error);
}

dcrf_status dcrf_densecrf_step(const dcrf_densecrf *crf, dcrf_workspace *workspace, float *q,
                               size_t count, dcrf_error *error) {
    const struct dcrf_densecrf_call run = {.from = q, .updates = 1, .to = q};
    return run_updates(crf, workspace, &run, count, error);
}

dcrf_status dcrf_densecrf_divergence(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                     const float *q, double *divergence, dcrf_error *error) {
    if (!crf || !workspace || !q)
        return dcrf_fail_null(error, "the model, the workspace or the block of marginals");
    DCRF_ENTER(workspace, error);
    return crf->methods->divergence(crf, workspace, q, divergence, error);
}
