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

static const struct dcrf_densecrf_methods device_methods;

static dcrf_status set_unary(const dcrf_densecrf *crf, const float *numbers, size_t lanes,
                             const uint32_t *order, dcrf_error *error) {
    const struct dcrf_backend_places places = {numbers, lanes, order};
    return crf->device.backend->compat->set_unary(crf->on_device, &places,
                                                  DCRF_DENSECRF_LARGEST_UNARY, error);
}

static dcrf_status copy_planes(const dcrf_densecrf *crf, const float *planes, dcrf_error *error) {
    return set_unary(crf, planes, crf->variables, NULL, error);
}

static dcrf_status take_unary(dcrf_densecrf *crf, float *unary, dcrf_error *error) {
    const dcrf_status status = set_unary(crf, unary, DCRF_LANES, crf->order, error);
    dcrf_release(unary);
    return status;
}

static void leave(dcrf_densecrf *crf) {
    crf->device.backend->compat->free(crf->on_device);
    crf->on_device = NULL;
    crf->device = (struct dcrf_device){.name = "cpu"};
}

dcrf_status dcrf_densecrf_move_to_device(dcrf_densecrf *crf, const dcrf_workspace *workspace,
                                         dcrf_error *error) {
    const struct dcrf_device *device = dcrf_workspace_find_device(workspace);
    if (crf->on_device || !device || crf->labels > DCRF_BACKEND_MOST_LABELS)
        return DCRF_OK;
    dcrf_status status = device->backend->compat->make(&crf->on_device, device->opened,
                                                       crf->variables, crf->labels, error);
    if (status < 0)
        return status;
    crf->device = *device;
    if (crf->unary)
        status = set_unary(crf, crf->unary, DCRF_LANES, crf->order, error);
    if (status < 0) {
        leave(crf);
        return status;
    }
    crf->methods->leave(crf);
    crf->methods = &device_methods;
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
    if (!crf->on_device)
        return DCRF_OK;
    struct dcrf_densecrf_term *made = dcrf_allocate_zero(crf->term_count + 1, sizeof *made);
    if (!made)
        return dcrf_fail_memory(error, "a kernel");
    float *unary;
    dcrf_status status = fetch_unary(crf, &unary, error);
    for (size_t m = 0; m < crf->term_count && status == DCRF_OK; m++)
        status = dcrf_densecrf_host.build(crf, &made[m], workspace, &crf->terms[m].kernel,
                                          crf->terms[m].normalization, error);
    if (status == DCRF_OK) {
        leave(crf);
        crf->methods = &dcrf_densecrf_host;
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
    const bool are_bytes = dcrf_densecrf_are_bytes(view, grid);
    *channels =
        dcrf_allocate(features->variables, view->channels * (are_bytes ? 1 : sizeof(double)));
    if (!*channels)
        return dcrf_fail_memory(error, "the features of a kernel");
    if (are_bytes)
        memcpy(*channels, view->data, features->variables * view->channels);
    else
        status =
            dcrf_view_copy_double(view, grid, what, features->channel_factor, *channels, error);
    kernel->channels =
        dcrf_view_interleaved(*channels, are_bytes ? DCRF_U8 : DCRF_F64, grid, view->channels);
    return status;
}

static dcrf_status build_on_device(const dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                                   const dcrf_kernel *kernel,
                                   dcrf_densecrf_normalization normalization, dcrf_error *error) {
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

/* If the device does not support the kernel, build it on the host and move the model there. */
static dcrf_status build(dcrf_densecrf *crf, struct dcrf_densecrf_term *term,
                         dcrf_workspace *workspace, const dcrf_kernel *kernel,
                         dcrf_densecrf_normalization normalization, dcrf_error *error) {
    dcrf_status status = build_on_device(crf, term, kernel, normalization, error);
    if (status != DCRF_ERROR_UNSUPPORTED)
        return status;
    dcrf_release(term->channels);
    term->channels = NULL;
    status = dcrf_densecrf_host.build(crf, term, workspace, kernel, normalization, error);
    return status < 0 ? status : dcrf_densecrf_move_to_host(crf, workspace, error);
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

static bool groups_fill(struct groups *groups, const struct dcrf_densecrf_term *terms, size_t count,
                        size_t labels) {
    const size_t matrix = labels * labels;
    size_t scalars = 0, used = 0;
    for (size_t m = 0; m < count; m++)
        scalars += dcrf_densecrf_is_scalar(&terms[m]);
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
            if (dcrf_densecrf_is_scalar(term) != (pass == 0))
                continue;
            groups->operators[used] = term->op;
            groups->weights[used] = dcrf_densecrf_is_scalar(term) ? (double)term->mu[0] : 1;
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

static dcrf_status set_kernels(const dcrf_densecrf *crf, const struct dcrf_densecrf_term *terms,
                               size_t count, dcrf_error *error) {
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

static int tell(void *user, size_t updates) {
    return dcrf_densecrf_is_cancelled(user, updates);
}

static dcrf_status run_on_device(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                 const struct dcrf_densecrf_call *run, dcrf_error *error) {
    (void)workspace;
    struct dcrf_densecrf_call told = *run;
    const struct dcrf_backend_compat_run sent = {.from = run->from,
                                                 .updates = run->updates,
                                                 .to = run->to,
                                                 .after = run->progress ? tell : NULL,
                                                 .user = &told};
    return crf->device.backend->compat->run(crf->on_device, &sent, error);
}

static dcrf_status find_divergence(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                   const float *q, double *divergence, dcrf_error *error) {
    (void)workspace;
    return crf->device.backend->compat->divergence(crf->on_device, q, divergence, error);
}

static const struct dcrf_densecrf_methods device_methods = {.copy_planes = copy_planes,
                                                            .take_unary = take_unary,
                                                            .build = build,
                                                            .set_kernels = set_kernels,
                                                            .run = run_on_device,
                                                            .divergence = find_divergence,
                                                            .leave = leave};
