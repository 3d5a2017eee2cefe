/* Mean field from arrays to arrays: dcrf/mean_field.h. The updates are the solver's
 * (backend/backend.h), on marginals made of the caller's arrays. Problems that are alike form one
 * batch if the backend takes several pictures: their variables are stored one after the other, and
 * every update covers all of them. */
#include "backend/device.h"
#include "backend/views.h"
#include "core/error.h"
#include "core/owned.h"
#include "model/view.h"

#include <dcrf/mean_field.h>
#include <stdio.h>
#include <string.h>

void dcrf_arrays_defaults(dcrf_arrays *arrays) {
    if (arrays)
        *arrays = (dcrf_arrays){.unary_kind = DCRF_UNARY_ENERGIES,
                                .operator_kind = DCRF_OPERATOR_FAST,
                                .iterations = DCRF_DEFAULT_MF_ITERATIONS};
}

/* ---- checks --------------------------------------------------------------------------------- */

static dcrf_status check_result(const dcrf_output *output, size_t channels, bool is_type_right,
                                const char *what, const char *types, dcrf_error *error) {
    if (!output->data)
        return DCRF_OK;
    if (!is_type_right)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s must be an array of %s", what, types);
    if (output->channels != channels)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%s has %zu channels; %zu are needed", what,
                         output->channels, channels);
    return DCRF_OK;
}

static dcrf_status check_arrays(const dcrf_arrays *arrays, size_t *variables, dcrf_error *error) {
    const size_t labels = arrays->unary.channels;
    const dcrf_type type = arrays->labels.type;
    TRY(dcrf_check_reserved(arrays->reserved, sizeof arrays->reserved, "the arrays", error));
    TRY(dcrf_grid_check(&arrays->grid, variables, error));
    TRY(dcrf_view_check(&arrays->unary, "the unary", error));
    if (labels > DCRF_MAX_LABELS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a model has 1 to %d labels, not %zu",
                         DCRF_MAX_LABELS, labels);
    if (arrays->unary_kind < DCRF_UNARY_ENERGIES || arrays->unary_kind > DCRF_UNARY_LOGITS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "energies, probabilities or logits must be said");
    if (arrays->kernel_count > DCRF_ARRAYS_KERNELS || (arrays->kernel_count && !arrays->kernels))
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%zu kernels; there may be %d",
                         arrays->kernel_count, DCRF_ARRAYS_KERNELS);
    if (!arrays->marginals.data && !arrays->labels.data)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "neither marginals nor labels are wanted");
    TRY(check_result(&arrays->marginals, labels, arrays->marginals.type == DCRF_F32,
                     "the array for marginals", "floats", error));
    return check_result(&arrays->labels, 1,
                        type == DCRF_I32 || type == DCRF_U16 || (type == DCRF_U8 && labels <= 256),
                        "the array for labels",
                        "integers: 32 bits, 16 without a sign, or 8 for at most 256 labels", error);
}

#define NAME_BYTES 48

static void image_name(size_t kernel, char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "the image of kernel %zu", kernel);
}

static dcrf_status check_kernels(const dcrf_arrays *arrays, dcrf_error *error) {
    struct dcrf_features features;
    char name[NAME_BYTES];
    for (size_t m = 0; m < arrays->kernel_count; m++) {
        image_name(m, name);
        TRY(dcrf_features_describe(&features, &arrays->grid, &arrays->kernels[m], error));
        if (features.given)
            TRY(dcrf_view_check(features.given, name, error));
    }
    return DCRF_OK;
}

static dcrf_status check_all(const dcrf_arrays *arrays, size_t *variables, dcrf_error *error) {
    TRY(check_arrays(arrays, variables, error));
    return check_kernels(arrays, error);
}

/* ---- one batch ------------------------------------------------------------------------------ */

/* Checked problems that differ only in their arrays, and these: one of each per problem. */
struct batch {
    dcrf_workspace *workspace;
    const dcrf_arrays *arrays;
    size_t count;
    dcrf_view *unary, *images;
    dcrf_output *marginals, *labels;
};

static dcrf_status check_output(const struct batch *batch, const dcrf_output *output,
                                const char *what, dcrf_error *error) {
    const dcrf_view view = dcrf_output_view(output);
    return output->data
               ? dcrf_views_check(batch->workspace, &view, &batch->arrays->grid, what, error)
               : DCRF_OK;
}

static dcrf_status gather(const struct batch *batch, dcrf_error *error) {
    for (size_t p = 0; p < batch->count; p++) {
        const dcrf_arrays *arrays = &batch->arrays[p];
        batch->unary[p] = arrays->unary;
        batch->marginals[p] = arrays->marginals;
        batch->labels[p] = arrays->labels;
        TRY(dcrf_views_check(batch->workspace, &arrays->unary, &arrays->grid, "the unary", error));
        TRY(check_output(batch, &arrays->marginals, "the array for marginals", error));
        TRY(check_output(batch, &arrays->labels, "the array for labels", error));
        TRY(dcrf_views_wait(batch->workspace, arrays->stream, error));
    }
    return DCRF_OK;
}

/* The operator of kernel m over the pictures of all problems. */
static dcrf_status build_operator(const struct batch *batch, size_t m, dcrf_operator **op,
                                  dcrf_error *error) {
    const dcrf_grid *grid = &batch->arrays->grid;
    const dcrf_operator_kind kind = batch->arrays->operator_kind;
    const dcrf_kernel *kernel = &batch->arrays->kernels[m];
    char name[NAME_BYTES];
    DCRF_SCOPED void *copy = NULL;
    struct dcrf_features features;
    TRY(dcrf_features_describe(&features, grid, kernel, error));
    image_name(m, name);
    for (size_t p = 0; features.given && p < batch->count; p++) {
        batch->images[p] = batch->arrays[p].kernels[m].channels;
        TRY(dcrf_views_check(batch->workspace, &batch->images[p], grid, name, error));
    }
    /* The host helps to plan exact operators; there is only one picture. */
    if (features.given && kind == DCRF_OPERATOR_EXACT)
        TRY(dcrf_views_fetch_image(batch->workspace, grid, batch->images, &copy, error));
    features.pictures = batch->count;
    features.variables *= batch->count;
    if (features.given)
        features.given = batch->images;
    return dcrf_operator_build(op, &features, kernel->normalization, kind, batch->workspace, error);
}

/* Mean field; *wrong: see dcrf_backend_iterate_methods. */
static dcrf_status update(const struct dcrf_backend_pictures *pictures, size_t iterations,
                          size_t *wrong, dcrf_error *error) {
    const struct dcrf_backend_update plain = {.damping = 0, .coldness = 1};
    dcrf_backend_device *device;
    const struct dcrf_backend_iterate_methods *methods =
        dcrf_workspace_backend(pictures->workspace, &device)->iterate;
    dcrf_backend_iterate *q;
    dcrf_status status = methods->make_of_pictures(&q, device, pictures, error);
    if (status < 0)
        return status;
    status = methods->mean_field_start(q, NULL, 1, NULL, error);
    for (size_t k = 0; k < iterations && status == DCRF_OK; k++)
        status = methods->mean_field_step(q, &plain, NULL, error);
    if (status == DCRF_OK)
        status = methods->write(q, wrong, error);
    methods->free(q);
    return status;
}

static dcrf_status fail_wrong(const struct dcrf_backend_pictures *pictures, size_t wrong,
                              dcrf_error *error) {
    char where[DCRF_PLACE_BYTES];
    const size_t label = wrong % pictures->labels;
    dcrf_place_text(pictures->grid, wrong / pictures->labels % pictures->variables, where);
    if (pictures->kind == DCRF_UNARY_PROBABILITIES)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the unary holds a number at %s, label %zu, that is not a probability",
                         where, label);
    return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                     "the unary holds a number at %s, label %zu, that is not finite", where, label);
}

static dcrf_status run_gathered(const struct batch *batch, dcrf_error *error) {
    const dcrf_arrays *first = batch->arrays;
    dcrf_operator *operators[DCRF_ARRAYS_KERNELS] = {NULL};
    double weights[DCRF_ARRAYS_KERNELS];
    struct dcrf_backend_pictures pictures = {
        .workspace = batch->workspace,
        .grid = &first->grid,
        .count = batch->count,
        .labels = first->unary.channels,
        .stride = dcrf_padded(first->unary.channels),
        .unary = batch->unary,
        .kind = first->unary_kind,
        .operators = operators,
        .weights = weights,
        .marginals = first->marginals.data ? batch->marginals : NULL,
        .labels_out = first->labels.data ? batch->labels : NULL};
    size_t wrong = SIZE_MAX;
    dcrf_status status = dcrf_grid_check(&first->grid, &pictures.variables, error);
    for (size_t m = 0; m < first->kernel_count && status == DCRF_OK; m++) {
        if (first->kernels[m].weight == 0)
            continue;
        weights[pictures.kernel_count] = first->kernels[m].weight;
        status = build_operator(batch, m, &operators[pictures.kernel_count], error);
        pictures.kernel_count += status == DCRF_OK;
    }
    if (status == DCRF_OK)
        status = update(&pictures, first->iterations, &wrong, error);
    if (status == DCRF_OK && wrong != SIZE_MAX)
        status = fail_wrong(&pictures, wrong, error);
    for (size_t m = 0; m < pictures.kernel_count; m++)
        dcrf_operator_free(&operators[m]);
    return status;
}

static dcrf_status run_batch(dcrf_workspace *workspace, const dcrf_arrays *arrays, size_t count,
                             dcrf_error *error) {
    DCRF_SCOPED dcrf_view *views = dcrf_allocate(count, 2 * sizeof *views);
    DCRF_SCOPED dcrf_output *outputs = dcrf_allocate(count, 2 * sizeof *outputs);
    if (!views || !outputs)
        return dcrf_fail_memory(error, "the arrays of a batch");
    const struct batch batch = {workspace,     arrays,  count,          views,
                                views + count, outputs, outputs + count};
    TRY(gather(&batch, error));
    return run_gathered(&batch, error);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The most floats in the marginals of a batch: beyond this, launches are long enough, and memory is
 * limited. And the most pictures: they are an axis of the CUDA grid. */
#define BATCH_FLOATS ((size_t)1 << 24)
#define BATCH_PICTURES 4096

size_t dcrf_arrays_batch(const dcrf_grid *grid, size_t labels) {
    size_t variables;
    if (!grid || dcrf_grid_check(grid, &variables, NULL) < 0 || labels == 0 ||
        labels > DCRF_MAX_LABELS)
        return 0;
    const size_t most = BATCH_FLOATS / dcrf_padded(labels) / variables;
    return most < 1 ? 1 : most < BATCH_PICTURES ? most : BATCH_PICTURES;
}

static bool are_equal(const double *one, const double *other, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (one[i] != other[i])
            return false;
    return true;
}

static bool are_kernels_alike(const dcrf_kernel *one, const dcrf_kernel *other, size_t axes) {
    const bool has_axes = one->kind != DCRF_KERNEL_FEATURES;
    const bool has_image = one->kind != DCRF_KERNEL_SPATIAL;
    if (one->kind != other->kind || one->normalization != other->normalization ||
        one->weight != other->weight || (has_axes && !are_equal(one->sigma, other->sigma, axes)))
        return false;
    return !has_image ||
           (one->channels.channels == other->channels.channels &&
            (one->kind == DCRF_KERNEL_FEATURES ||
             (one->channels.channels <= DCRF_MAX_FEATURES &&
              are_equal(one->channel_sigma, other->channel_sigma, one->channels.channels))));
}

static bool are_results_alike(const dcrf_output *one, const dcrf_output *other) {
    return !one->data == !other->data && (!one->data || one->type == other->type);
}

/* Do the problems differ only in their arrays? */
static bool are_alike(const dcrf_arrays *one, const dcrf_arrays *other) {
    if (one->grid.axes != other->grid.axes ||
        memcmp(one->grid.size, other->grid.size, sizeof one->grid.size) != 0 ||
        !are_equal(one->grid.spacing, other->grid.spacing, one->grid.axes) ||
        one->unary.channels != other->unary.channels || one->unary_kind != other->unary_kind ||
        one->kernel_count != other->kernel_count || one->operator_kind != other->operator_kind ||
        one->iterations != other->iterations ||
        !are_results_alike(&one->marginals, &other->marginals) ||
        !are_results_alike(&one->labels, &other->labels))
        return false;
    for (size_t m = 0; m < one->kernel_count; m++)
        if (!are_kernels_alike(&one->kernels[m], &other->kernels[m], one->grid.axes))
            return false;
    return true;
}

/* The number of leading problems that form one batch: all valid, and alike. */
static size_t choose_batch(const dcrf_workspace *workspace, const dcrf_arrays *arrays,
                           size_t count) {
    size_t variables, alike = 1;
    dcrf_backend_device *device;
    if (!dcrf_workspace_backend(workspace, &device)->iterate->takes_several ||
        arrays->operator_kind == DCRF_OPERATOR_EXACT || check_all(arrays, &variables, NULL) < 0)
        return 1;
    const size_t most = dcrf_arrays_batch(&arrays->grid, arrays->unary.channels);
    while (alike < count && check_all(&arrays[alike], &variables, NULL) == DCRF_OK &&
           are_alike(arrays, &arrays[alike]))
        alike++;
    /* Batches of about equal size rather than full ones and a remainder. */
    const size_t batches = (alike + most - 1) / most;
    return (alike + batches - 1) / batches;
}

dcrf_status dcrf_mean_field_arrays(dcrf_workspace *workspace, const dcrf_arrays *arrays,
                                   dcrf_error *error) {
    if (!workspace || !arrays)
        return dcrf_fail_null(error, "the workspace or the arrays");
    DCRF_ENTER(workspace, error);
    size_t variables;
    TRY(check_all(arrays, &variables, error));
    return run_batch(workspace, arrays, 1, error);
}

dcrf_status dcrf_mean_field_arrays_many(dcrf_workspace *workspace, const dcrf_arrays *arrays,
                                        size_t count, size_t *failed, dcrf_error *error) {
    if (!workspace || !arrays || !failed)
        return dcrf_fail_null(error, "the workspace, the arrays or the place for what failed");
    DCRF_ENTER(workspace, error);
    for (size_t begin = 0, together; begin < count; begin += together) {
        together = choose_batch(workspace, arrays + begin, count - begin);
        if (together > 1 && run_batch(workspace, arrays + begin, together, NULL) == DCRF_OK)
            continue;
        /* Solve them one by one: this finds the problem at fault, or at least solves the others; a
         * batch also takes more memory and more lattice bits. */
        for (size_t k = begin; k < begin + together; k++) {
            const dcrf_status status = dcrf_mean_field_arrays(workspace, &arrays[k], error);
            *failed = k;
            if (status < 0)
                return status;
        }
    }
    *failed = count;
    return DCRF_OK;
}
