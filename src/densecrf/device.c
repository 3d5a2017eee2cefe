/* The compatible mean field on a device.
 *
 * The device holds the kernels' lattices as its own operators, and an object with the unary
 * energies, the compatibilities and Q, which stay there between calls. Inference is a single call
 * to the backend: only the result comes back.
 *
 * If the device does not support a kernel, the whole model moves to the host; for that, kernels on
 * a device keep what they were made of. */
#include "densecrf/densecrf.h"

#include "core/error.h"
#include "core/memory.h"
#include "model/view.h"

#include <string.h>

/* ---- coming and going ----------------------------------------------------------------------- */

dcrf_status dcrf_densecrf_unary_on_device(const dcrf_densecrf *crf, const float *unary,
                                          bool is_ordered, dcrf_error *error) {
    const struct dcrf_backend_places places = {.numbers = unary,
                                               .lanes = is_ordered ? DCRF_LANES : crf->variables,
                                               .order = is_ordered ? crf->order : NULL};
    return crf->device.backend->compat->set_unary(crf->on_device, &places,
                                                  DCRF_DENSECRF_LARGEST_UNARY, error);
}

dcrf_status dcrf_densecrf_move_to_device(dcrf_densecrf *crf, const dcrf_workspace *workspace,
                                         dcrf_error *error) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    if (!device || crf->labels > DCRF_BACKEND_MOST_LABELS)
        return DCRF_OK;
    dcrf_status status = device->backend->compat->make(&crf->on_device, device->opened,
                                                       crf->variables, crf->labels, error);
    if (status < 0)
        return status;
    crf->device = *device;
    if (crf->unary)
        status = dcrf_densecrf_unary_on_device(crf, crf->unary, true, error);
    if (status < 0) {
        device->backend->compat->free(crf->on_device);
        crf->on_device = NULL;
        return status;
    }
    dcrf_release(crf->unary);
    crf->unary = NULL;
    return DCRF_OK;
}

/* The unary energies of the device, in the order of the places; released by the caller. */
static dcrf_status fetch_unary(const dcrf_densecrf *crf, float **unary, dcrf_error *error) {
    float *planes = dcrf_allocate(crf->variables, crf->labels * sizeof *planes);
    *unary = dcrf_allocate(dcrf_densecrf_unary_floats(crf), sizeof **unary);
    dcrf_status status = DCRF_OK;
    if (!planes || !*unary)
        status = dcrf_fail_memory(error, "the unary energies");
    if (status == DCRF_OK)
        status = crf->device.backend->compat->get_unary(crf->on_device, planes, error);
    if (status == DCRF_OK)
        dcrf_densecrf_order_planes(crf, planes, *unary);
    dcrf_release(planes);
    return status;
}

dcrf_status dcrf_densecrf_move_to_host(dcrf_densecrf *crf, dcrf_workspace *workspace,
                                       dcrf_error *error) {
    struct dcrf_densecrf_term *made = dcrf_allocate_zero(crf->term_count + 1, sizeof *made);
    if (!made)
        return dcrf_fail_memory(error, "a kernel");
    float *unary;
    dcrf_status status = fetch_unary(crf, &unary, error);
    for (size_t m = 0; m < crf->term_count && status == DCRF_OK; m++)
        status = dcrf_densecrf_build(crf, &made[m], workspace, &crf->terms[m].kernel,
                                     crf->terms[m].normalization, error);
    if (status == DCRF_OK) {
        crf->device.backend->compat->free(crf->on_device);
        crf->on_device = NULL;
        crf->unary = unary;
        unary = NULL;
    }
    for (size_t m = 0; m < crf->term_count; m++) {
        struct dcrf_densecrf_term *term = &crf->terms[m];
        if (status == DCRF_OK) { /* swap the operators */
            dcrf_operator *on_device = term->op;
            term->op = made[m].op;
            made[m].op = on_device;
            term->gain = made[m].gain;
            term->row_sum = made[m].row_sum;
            dcrf_release(term->channels);
            term->channels = NULL;
        }
        dcrf_operator_free(&made[m].op);
    }
    dcrf_release(unary);
    dcrf_release(made);
    return status;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static bool is_packed(const dcrf_view *view, const dcrf_view *packed, const dcrf_grid *grid) {
    bool is_same = view->channels == 1 || view->channel_stride == packed->channel_stride;
    for (size_t axis = 0; axis < grid->axes; axis++)
        is_same = is_same && (grid->size[axis] == 1 || view->stride[axis] == packed->stride[axis]);
    return is_same;
}

/* Give the kernel its own copy of its channels: contiguous bytes of an image unchanged, everything
 * else checked and converted to double. */
static dcrf_status copy_channels(const struct dcrf_features *features, dcrf_kernel *kernel,
                                 void **channels, dcrf_error *error) {
    const dcrf_view *view = &kernel->channels;
    const dcrf_grid *grid = &features->grid;
    const char *what =
        kernel->kind == DCRF_KERNEL_FEATURES ? "the feature array" : "the image of a kernel";
    dcrf_status status = dcrf_view_check(view, what, error);
    if (status < 0)
        return status;
    dcrf_view copy = dcrf_view_interleaved(NULL, DCRF_U8, grid, view->channels);
    const bool are_bytes = view->type == DCRF_U8 && is_packed(view, &copy, grid);
    if (!are_bytes)
        copy = dcrf_view_interleaved(NULL, DCRF_F64, grid, view->channels);
    *channels =
        dcrf_allocate(features->variables, view->channels * (are_bytes ? 1 : sizeof(double)));
    if (!*channels)
        return dcrf_fail_memory(error, "the features of a kernel");
    if (are_bytes)
        memcpy(*channels, view->data, features->variables * view->channels);
    else
        status =
            dcrf_view_copy_double(view, grid, what, features->channel_factor, *channels, error);
    copy.data = *channels;
    kernel->channels = copy;
    return status;
}

dcrf_status dcrf_densecrf_build_on_device(const dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                                          const dcrf_kernel *kernel,
                                          dcrf_densecrf_normalization normalization,
                                          dcrf_error *error) {
    struct dcrf_features features;
    term->kernel = *kernel;
    term->normalization = normalization;
    /* Check first: there may be too many channels. */
    dcrf_status status = dcrf_densecrf_features(&features, crf, &term->kernel, true, error);
    if (status == DCRF_OK && kernel->kind != DCRF_KERNEL_SPATIAL)
        status = copy_channels(&features, &term->kernel, &term->channels, error);
    if (status == DCRF_OK)
        status = crf->device.backend->compat->operator_new(&term->op, crf->device.opened, &features,
                                                           dcrf_densecrf_has_origin(crf),
                                                           normalization, error);
    return status;
}

/* The kernels as groups of the backend, whose field is the message: one group of all scalar terms,
 * with the identity as its matrix if there are others, and one group per other kernel. */
struct groups {
    size_t count;
    struct dcrf_backend_group *group;
    dcrf_operator **operators;
    double *weights;
    float *matrices;
};

static void groups_clear(struct groups *groups) {
    dcrf_release(groups->group);
    dcrf_release(groups->operators);
    dcrf_release(groups->weights);
    dcrf_release(groups->matrices);
}

static void fill_matrix(const struct dcrf_densecrf_term *term, size_t labels, float *matrix) {
    for (size_t k = 0; k < labels * labels; k++) {
        const bool is_own = k / labels == k % labels;
        if (term->compatibility == DCRF_COMPATIBILITY_MATRIX)
            matrix[k] = term->mu[k];
        else if (term->compatibility == DCRF_COMPATIBILITY_VECTOR)
            matrix[k] = is_own ? term->mu[k % labels] : 0;
        else
            matrix[k] = is_own;
    }
}

static bool is_scalar(const struct dcrf_densecrf_term *term) {
    return term->compatibility == DCRF_COMPATIBILITY_POTTS;
}

static bool groups_fill(struct groups *groups, const struct dcrf_densecrf_term *terms, size_t count,
                        size_t labels) {
    const size_t matrix = labels * labels;
    size_t scalars = 0, used = 0;
    for (size_t m = 0; m < count; m++)
        scalars += is_scalar(&terms[m]);
    groups->group = dcrf_allocate_zero(count, sizeof *groups->group);
    groups->operators = dcrf_allocate(count, sizeof *groups->operators);
    groups->weights = dcrf_allocate(count, sizeof *groups->weights);
    if (!groups->group || !groups->operators || !groups->weights)
        return false;
    if (scalars < count) {
        groups->matrices = dcrf_allocate(count, matrix * sizeof *groups->matrices);
        if (!groups->matrices)
            return false;
    }
    for (size_t pass = 0; pass < 2; pass++) /* the scalars first */
        for (size_t m = 0; m < count; m++) {
            const struct dcrf_densecrf_term *term = &terms[m];
            if (is_scalar(term) != (pass == 0))
                continue;
            groups->operators[used] = term->op;
            groups->weights[used] = is_scalar(term) ? (double)term->mu[0] : 1;
            if (pass == 1 || used == 0) {
                struct dcrf_backend_group *group = &groups->group[groups->count];
                group->operators = groups->operators + used;
                group->weights = groups->weights + used;
                if (groups->matrices) {
                    fill_matrix(term, labels, groups->matrices + groups->count * matrix);
                    group->compatibility = groups->matrices + groups->count * matrix;
                }
                groups->count++;
            }
            groups->group[groups->count - 1].kernel_count++;
            used++;
        }
    return true;
}

dcrf_status dcrf_densecrf_kernels_on_device(const dcrf_densecrf *crf,
                                            const struct dcrf_densecrf_term *terms, size_t count,
                                            dcrf_error *error) {
    struct groups groups = {0};
    dcrf_status status;
    if (groups_fill(&groups, terms, count, crf->labels))
        status = crf->device.backend->compat->set_kernels(crf->on_device, groups.group,
                                                          groups.count, error);
    else
        status = dcrf_fail_memory(error, "a kernel");
    groups_clear(&groups);
    return status;
}

/* ---- inference ------------------------------------------------------------------------------ */

struct telling {
    dcrf_progress_callback progress;
    void *user;
    double start_s;
};

static int tell(void *user, size_t updates) {
    const struct telling *telling = user;
    const dcrf_moment moment = dcrf_densecrf_moment(telling->start_s, updates);
    return telling->progress(telling->user, &moment);
}

dcrf_status dcrf_densecrf_run_on_device(const dcrf_densecrf *crf, const float *from, size_t updates,
                                        float *q, dcrf_progress_callback progress,
                                        void *progress_user, dcrf_error *error) {
    struct telling telling = {progress, progress_user, dcrf_time_s()};
    const struct dcrf_backend_compat_run run = {.from = from,
                                                .updates = updates,
                                                .to = q,
                                                .after = progress ? tell : NULL,
                                                .user = &telling};
    return crf->device.backend->compat->run(crf->on_device, &run, error);
}
