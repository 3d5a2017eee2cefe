/* Building a model: everything is checked and copied into new memory first, and swapped in last, so
 * that a call that fails leaves the model unchanged. */
#include "model/model.h"

#include "core/error.h"
#include "core/holders.h"
#include "core/owned.h"
#include "core/workspace.h"
#include "model/cuts.h"
#include "model/view.h"

#include <dcrf/grid.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* An array with one padded row of unary energies per variable. */
static dcrf_status allocate_unary(float **unary, size_t variables, size_t labels, size_t stride,
                                  dcrf_error *error) {
    size_t row_bytes, bytes;
    *unary = NULL;
    if (!dcrf_multiply(stride, sizeof **unary, &row_bytes) ||
        !dcrf_multiply(variables, row_bytes, &bytes) || bytes > PTRDIFF_MAX)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "%zu variables with %zu labels each are too many to address", variables,
                         labels);
    *unary = dcrf_allocate(variables, row_bytes);
    if (!*unary)
        return dcrf_fail(error, DCRF_ERROR_MEMORY,
                         "out of memory for the unary energies of %zu variables with %zu labels",
                         variables, labels);
    return DCRF_OK;
}

static void clear_unary(dcrf_model *model) {
    memset(model->unary, 0, model->variables * model->stride * sizeof *model->unary);
}

static dcrf_status set_unary(dcrf_model *model, const dcrf_view *energies, dcrf_pool *pool,
                             dcrf_error *error) {
    static const char what[] = "the unary array";
    if (!energies)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%s is missing", what);
    if (energies->channels != model->labels)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "%s has %zu channels; the model has %zu labels",
                         what, energies->channels, model->labels);
    float *unary = model->unary; /* all zero, also after a call that fails */
    if (model->has_unary)
        TRY(allocate_unary(&unary, model->variables, model->labels, model->stride, error));
    const dcrf_status status =
        dcrf_view_copy_with(energies, &model->grid, pool, what, unary, model->stride, error);
    if (status < 0) {
        if (model->has_unary)
            dcrf_release(unary);
        else
            clear_unary(model);
        return status;
    }
    if (model->has_unary)
        dcrf_release(model->unary);
    model->unary = unary;
    model->has_unary = true;
    model->revision++;
    return DCRF_OK;
}

dcrf_status dcrf_model_new(dcrf_model **out, const dcrf_grid *grid, size_t labels,
                           dcrf_error *error) {
    if (!out)
        return dcrf_fail_null(error, "the place for the model");
    size_t variables;
    *out = NULL;
    TRY(dcrf_grid_check(grid, &variables, error));
    if (labels < 1 || labels > DCRF_MAX_LABELS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "a model has 1 to %d labels, not %zu",
                         DCRF_MAX_LABELS, labels);
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = dcrf_allocate_zero(1, sizeof *model);
    if (!model)
        return dcrf_fail_memory(error, "a model");
    model->grid = *grid;
    model->variables = variables;
    model->labels = labels;
    model->stride = dcrf_padded(labels);
    TRY(allocate_unary(&model->unary, variables, labels, model->stride, error));
    clear_unary(model);
    *out = DCRF_PASS_ON(model);
    return DCRF_OK;
}

void dcrf_model_hold(const dcrf_model *model) {
    dcrf_hold(&((dcrf_model *)model)->holders);
}

void dcrf_model_free(dcrf_model **model_pointer) {
    if (!model_pointer || !*model_pointer)
        return;
    dcrf_model *model = *model_pointer;
    *model_pointer = NULL;
    if (!dcrf_let_go(&model->holders))
        return;
    for (size_t m = 0; m < model->kernel_count; m++) {
        dcrf_features_clear(&model->kernels[m].features);
        dcrf_release(model->kernels[m].compatibility_values);
        dcrf_cuts_free(&model->kernels[m].cuts);
    }
    dcrf_release(model->kernels);
    dcrf_cliques_clear(&model->cliques);
    dcrf_release(model->unary);
    dcrf_release(model);
}

size_t dcrf_model_variables(const dcrf_model *model) {
    return model ? model->variables : 0;
}

size_t dcrf_model_labels(const dcrf_model *model) {
    return model ? model->labels : 0;
}

size_t dcrf_model_kernels(const dcrf_model *model) {
    return model ? model->kernel_count : 0;
}

size_t dcrf_model_cliques(const dcrf_model *model) {
    return model ? model->cliques.count : 0;
}

const float *dcrf_model_unary(const dcrf_model *model, size_t *stride) {
    *stride = model ? model->stride : 0;
    return model ? model->unary : NULL;
}

const dcrf_grid *dcrf_model_grid(const dcrf_model *model) {
    return model ? &model->grid : NULL;
}

dcrf_status dcrf_model_set_unary(dcrf_model *model, const dcrf_view *energies, dcrf_error *error) {
    return model ? set_unary(model, energies, NULL, error) : dcrf_fail_null(error, "the model");
}

dcrf_status dcrf_model_set_unary_with(dcrf_model *model, dcrf_workspace *workspace,
                                      const dcrf_view *energies, dcrf_error *error) {
    if (!model || !workspace)
        return dcrf_fail_null(error, "the model or the workspace");
    DCRF_ENTER(workspace, error);
    return set_unary(model, energies, dcrf_workspace_pool(workspace), error);
}

dcrf_status dcrf_model_set_origin(dcrf_model *model, const size_t origin[DCRF_MAX_AXES],
                                  dcrf_error *error) {
    if (!model || !origin)
        return dcrf_fail_null(error, "the model or its origin");
    for (size_t axis = 0; axis < DCRF_MAX_AXES; axis++)
        if (origin[axis] > INT32_MAX)
            return dcrf_fail(error, DCRF_ERROR_SIZE, "the origin of axis %zu is %zu; it is too far",
                             axis, origin[axis]);
    memcpy(model->origin, origin, sizeof model->origin);
    for (size_t m = 0; m < model->kernel_count; m++)
        memcpy(model->kernels[m].features.origin, origin, sizeof model->origin);
    model->revision++;
    model->kernel_revision++;
    return DCRF_OK;
}

dcrf_status dcrf_model_add_kernel(dcrf_model *model, const dcrf_kernel *kernel, dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    if (!kernel)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "no kernel given");
    const size_t count = model->kernel_count;
    struct dcrf_model_kernel *kernels = dcrf_allocate_zero(count + 1, sizeof *kernels);
    if (!kernels)
        return dcrf_fail_memory(error, "the kernels of a model");
    const dcrf_status status =
        dcrf_features_new(&kernels[count].features, &model->grid, kernel, error);
    if (status < 0) {
        dcrf_release(kernels);
        return status;
    }
    if (count > 0)
        memcpy(kernels, model->kernels, count * sizeof *kernels);
    memcpy(kernels[count].features.origin, model->origin, sizeof model->origin);
    kernels[count].normalization = kernel->normalization;
    kernels[count].given_compatibility = DCRF_COMPATIBILITY_POTTS;
    kernels[count].potts_factor = 1;
    dcrf_model_kernel_weigh(&kernels[count], kernel->weight);
    dcrf_release(model->kernels);
    model->kernels = kernels;
    model->kernel_count = count + 1;
    model->revision++;
    model->kernel_revision++;
    return DCRF_OK;
}

dcrf_status dcrf_model_check_kernel(const dcrf_model *model, size_t kernel, dcrf_error *error) {
    if (kernel >= model->kernel_count)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "there is no kernel %zu; the model has %zu (numbered from 0)", kernel,
                         model->kernel_count);
    return DCRF_OK;
}

/* If the product is too large for a float, or underflows to zero, it would be another model: keep
 * the matrix. */
void dcrf_model_kernel_weigh(struct dcrf_model_kernel *kernel, double given_weight) {
    const double product = given_weight * kernel->potts_factor;
    const bool is_potts = kernel->potts_factor > 0 && product <= (double)FLT_MAX &&
                          (product > 0 || given_weight == 0);
    kernel->given_weight = given_weight;
    kernel->factor = is_potts ? kernel->potts_factor : 1;
    kernel->weight = given_weight * kernel->factor;
    kernel->compatibility = is_potts ? DCRF_COMPATIBILITY_POTTS : kernel->given_compatibility;
}

dcrf_status dcrf_model_set_weight(dcrf_model *model, size_t kernel, double weight,
                                  dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    TRY(dcrf_model_check_kernel(model, kernel, error));
    TRY(dcrf_weight_check(weight, error));
    dcrf_model_kernel_weigh(&model->kernels[kernel], weight);
    model->revision++;
    return DCRF_OK;
}

/* Are these `rows` x `labels` values finite and, where they form a matrix, symmetric? */
static dcrf_status check_compatibility(size_t kernel, size_t rows, size_t labels,
                                       const float *values, dcrf_error *error) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < labels; j++) {
            const float value = values[i * labels + j];
            if (!isfinite(value) && rows == 1)
                return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                                 "the compatibility vector of kernel %zu holds %g at label %zu",
                                 kernel, (double)value, j);
            if (!isfinite(value))
                return dcrf_fail(error, DCRF_ERROR_NOT_FINITE,
                                 "the compatibility matrix of kernel %zu holds %g at (%zu, %zu)",
                                 kernel, (double)value, i, j);
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < i; j++) {
            const float below = values[i * labels + j], above = values[j * labels + i];
            if (below < above || below > above)
                return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                                 "the compatibility matrix of kernel %zu is not symmetric: "
                                 "(%zu, %zu) is %.9g and (%zu, %zu) is %.9g",
                                 kernel, j, i, (double)above, i, j, (double)below);
        }
    return DCRF_OK;
}

/* c if the matrix is c (1 - I), else 0. */
static double potts_factor_of(const float *matrix, size_t labels) {
    const float c = labels > 1 ? matrix[1] : 1;
    for (size_t i = 0; i < labels; i++)
        for (size_t j = 0; j < labels; j++)
            if (matrix[i * labels + j] != (i == j ? 0 : c))
                return 0;
    return (double)c;
}

static void set_compatibility(struct dcrf_model_kernel *kernel, dcrf_compatibility compatibility,
                              float *values, struct dcrf_cuts *cuts, size_t labels) {
    dcrf_release(kernel->compatibility_values);
    dcrf_cuts_free(&kernel->cuts);
    kernel->compatibility_values = values;
    kernel->cuts = cuts;
    kernel->given_compatibility = compatibility;
    kernel->potts_factor = compatibility == DCRF_COMPATIBILITY_POTTS;
    if (compatibility == DCRF_COMPATIBILITY_MATRIX)
        kernel->potts_factor = potts_factor_of(values, labels);
    dcrf_model_kernel_weigh(kernel, kernel->given_weight);
}

dcrf_status dcrf_model_set_compatibility(dcrf_model *model, size_t kernel,
                                         dcrf_compatibility compatibility, const float *values,
                                         dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    const size_t labels = model->labels;
    size_t rows = 0; /* of values to copy */
    TRY(dcrf_model_check_kernel(model, kernel, error));
    switch (compatibility) {
    case DCRF_COMPATIBILITY_POTTS:
        break;
    case DCRF_COMPATIBILITY_VECTOR:
        rows = 1;
        break;
    case DCRF_COMPATIBILITY_MATRIX:
        rows = labels;
        break;
    default:
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a kind of label compatibility",
                         (int)compatibility);
    }
    float *copy = NULL;
    if (rows > 0) {
        if (!values)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "the compatibility values of kernel %zu are missing", kernel);
        TRY(check_compatibility(kernel, rows, labels, values, error));
        copy = dcrf_allocate(rows, labels * sizeof *copy);
        if (!copy)
            return dcrf_fail_memory(error, "a label compatibility");
        memcpy(copy, values, rows * labels * sizeof *copy);
    }
    set_compatibility(&model->kernels[kernel], compatibility, copy, NULL, labels);
    model->revision++;
    return DCRF_OK;
}

void dcrf_model_take_matrix(dcrf_model *model, size_t kernel, float *matrix,
                            struct dcrf_cuts *cuts) {
    set_compatibility(&model->kernels[kernel], DCRF_COMPATIBILITY_MATRIX, matrix, cuts,
                      model->labels);
    model->revision++;
}

static bool is_distance(const struct dcrf_model_kernel *kernel, size_t labels) {
    if (kernel->compatibility != DCRF_COMPATIBILITY_MATRIX)
        return kernel->compatibility == DCRF_COMPATIBILITY_POTTS;
    for (size_t i = 0; i < labels; i++)
        for (size_t j = 0; j <= i; j++) {
            const float value = kernel->compatibility_values[i * labels + j];
            if (value < 0 || (i == j && value > 0))
                return false;
        }
    return true;
}

bool dcrf_model_has_distances(const dcrf_model *model) {
    for (size_t m = 0; m < model->kernel_count; m++)
        if (model->kernels[m].weight != 0 && !is_distance(&model->kernels[m], model->labels))
            return false;
    return true;
}

double dcrf_model_largest_distance(const dcrf_model *model, size_t kernel) {
    const struct dcrf_model_kernel *k = &model->kernels[kernel];
    double largest = 0;
    if (k->compatibility == DCRF_COMPATIBILITY_POTTS)
        return 1;
    for (size_t c = 0;
         k->compatibility == DCRF_COMPATIBILITY_MATRIX && c < model->labels * model->labels; c++)
        largest = fmax(largest, (double)k->compatibility_values[c]);
    return largest;
}

const uint16_t *dcrf_model_order(const dcrf_model *model) {
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_cuts *cuts = model->kernels[m].cuts;
        if (model->kernels[m].weight != 0 && cuts && cuts->run_count == cuts->count)
            return cuts->order;
    }
    return NULL;
}

dcrf_status dcrf_model_find_distance(const dcrf_model *model, const char *method,
                                     const float **distance, dcrf_error *error) {
    const struct dcrf_model_kernel *first = NULL;
    const size_t bytes = model->labels * model->labels * sizeof(float);
    *distance = NULL;
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        if (kernel->weight == 0)
            continue;
        first = first ? first : kernel;
        if (kernel->compatibility == DCRF_COMPATIBILITY_VECTOR)
            return dcrf_model_require_potts(model, method, error);
        if (kernel->compatibility != first->compatibility ||
            (kernel->compatibility == DCRF_COMPATIBILITY_MATRIX &&
             memcmp(kernel->compatibility_values, first->compatibility_values, bytes) != 0))
            return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                             "%s needs one distance between labels for all kernels; kernel %zu has "
                             "another one",
                             method, m);
        if (kernel->compatibility == DCRF_COMPATIBILITY_MATRIX)
            *distance = kernel->compatibility_values;
    }
    return DCRF_OK;
}

dcrf_status dcrf_model_require_potts(const dcrf_model *model, const char *method,
                                     dcrf_error *error) {
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        if (kernel->weight != 0 && kernel->compatibility != DCRF_COMPATIBILITY_POTTS)
            return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                             "%s needs Potts compatibilities; kernel %zu has a %s", method, m,
                             kernel->compatibility == DCRF_COMPATIBILITY_VECTOR ? "vector"
                                                                                : "matrix");
    }
    return DCRF_OK;
}
