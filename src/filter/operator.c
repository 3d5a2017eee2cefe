/* The public functions of operators: check the arguments, then call the implementation. */
#include "filter/operator.h"

#include "core/error.h"
#include "core/owned.h"

#include <math.h>

const struct dcrf_slot dcrf_operator_source_slot = {"the device"};
const struct dcrf_slot dcrf_operator_slot = {"an application"};
const struct dcrf_slot dcrf_operator_slot2 = {"a second buffer of an application"};
const struct dcrf_slot dcrf_histogram_slot = {"histograms of the ordered filter"};

static void invert_sums(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    float *scale = context;
    for (size_t a = begin; a < end; a++)
        scale[a] = scale[a] > 0 ? 1 / sqrtf(scale[a]) : 0;
}

/* diag(K 1)^-1/2, the scale of the symmetric normalization. A row includes its diagonal, so its sum
 * is positive unless the lattice lost it to rounding; such a row gets scale 0. */
static dcrf_status normalize(dcrf_operator *op, dcrf_workspace *workspace, dcrf_error *error) {
    if (op->methods->normalize)
        return op->methods->normalize(op, workspace, error);
    float *scale = dcrf_allocate(op->variables, sizeof *scale);
    if (!scale)
        return dcrf_fail_memory(error, "the normalization of a kernel");
    dcrf_status status = dcrf_operator_row_sums(op, workspace, scale, op->variables, error);
    if (status == DCRF_OK) {
        dcrf_parallel_rows(dcrf_workspace_pool(workspace), op->variables, invert_sums, scale);
        status = op->methods->rescale(op, workspace, scale, error);
    }
    op->scale = scale; /* which a grid goes on reading */
    op->bytes += op->variables * sizeof *scale;
    return status;
}

dcrf_status dcrf_operator_build(dcrf_operator **out, const struct dcrf_features *features,
                                dcrf_normalization normalization, dcrf_operator_kind kind,
                                dcrf_workspace *workspace, dcrf_error *error) {
    dcrf_operator *op = NULL;
    dcrf_status status;
    *out = NULL;
    if (kind == DCRF_OPERATOR_FAST)
        kind = features->kind == DCRF_KERNEL_SPATIAL ? DCRF_OPERATOR_GRID : DCRF_OPERATOR_LATTICE;
    if (kind == DCRF_OPERATOR_GRID && features->kind != DCRF_KERNEL_SPATIAL)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "the grid operator is for spatial kernels only");
    const struct dcrf_operator_source *source = dcrf_workspace_source(workspace);
    /* A device reads the channels where the caller has them, except for exact operators. */
    if (features->given && (!source || kind == DCRF_OPERATOR_EXACT)) {
        DCRF_AT_END(dcrf_features_clear) struct dcrf_features copy = *features;
        TRY(dcrf_features_copy(&copy, error));
        return dcrf_operator_build(out, &copy, normalization, kind, workspace, error);
    }
    if (source)
        return source->methods->make(out, source->device, features, normalization, kind, error);
    switch (kind) {
    case DCRF_OPERATOR_EXACT:
        status = dcrf_exact_new(&op, features, workspace, error);
        break;
    case DCRF_OPERATOR_GRID:
        status = dcrf_grid_new(&op, features, workspace, error);
        break;
    case DCRF_OPERATOR_LATTICE:
        status = dcrf_lattice_new(&op, features, workspace, error);
        break;
    default:
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a kind of operator", (int)kind);
    }
    if (status == DCRF_OK && normalization == DCRF_NORMALIZE_SYMMETRIC)
        status = normalize(op, workspace, error);
    else if (status == DCRF_OK && op->methods->calibrate)
        status = op->methods->calibrate(op, features, workspace, error);
    if (status < 0)
        dcrf_operator_free(&op);
    *out = op;
    return status;
}

dcrf_status dcrf_operator_new(dcrf_operator **op, const dcrf_grid *grid, const dcrf_kernel *kernel,
                              dcrf_operator_kind kind, dcrf_workspace *workspace,
                              dcrf_error *error) {
    if (!op || !grid || !kernel || !workspace)
        return dcrf_fail_null(error, "the operator, the grid, the kernel or the workspace");
    DCRF_ENTER(workspace, error);
    DCRF_AT_END(dcrf_features_clear) struct dcrf_features features = {0};
    *op = NULL;
    TRY(dcrf_features_new(&features, grid, kernel, error));
    return dcrf_operator_build(op, &features, kernel->normalization, kind, workspace, error);
}

void dcrf_operator_free(dcrf_operator **op) {
    if (!op || !*op)
        return;
    dcrf_release((*op)->scale);
    (*op)->methods->free(*op);
    *op = NULL;
}

dcrf_operator_kind dcrf_operator_kind_of(const dcrf_operator *op) {
    return op ? op->methods->kind : DCRF_OPERATOR_FAST;
}

size_t dcrf_operator_variables(const dcrf_operator *op) {
    return op ? op->variables : 0;
}

size_t dcrf_operator_bytes(const dcrf_operator *op) {
    return op ? op->bytes : 0;
}

size_t dcrf_operator_vertices(const dcrf_operator *op) {
    return op ? op->vertices : 0;
}

static dcrf_status check_block(size_t channels, size_t stride, dcrf_error *error) {
    if (channels == 0)
        return dcrf_fail(error, DCRF_ERROR_SIZE, "a block needs at least one channel");
    if (stride < dcrf_padded(channels) || stride % DCRF_NARROW_LANES != 0)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "a block of %zu channels needs a stride of at least %zu floats that is a "
                         "multiple of %d, not %zu",
                         channels, dcrf_padded(channels), DCRF_NARROW_LANES, stride);
    return DCRF_OK;
}

dcrf_status dcrf_operator_run(const dcrf_operator *op, dcrf_workspace *workspace,
                              const struct dcrf_application *application, dcrf_error *error) {
    return op->methods->apply(op, workspace, application, error);
}

dcrf_status dcrf_operator_apply(const dcrf_operator *op, dcrf_workspace *workspace,
                                dcrf_direction direction, const float *in, float *out, size_t count,
                                size_t channels, size_t stride, dcrf_error *error) {
    if (!op || !workspace || !in || !out)
        return dcrf_fail_null(error, "the operator, the workspace, the input or the output");
    DCRF_ENTER(workspace, error);
    TRY(check_block(channels, stride, error));
    TRY(dcrf_check_rows(out, count, op->variables, stride, stride, "the output", error));
    if (direction != DCRF_SYMMETRIC && direction != DCRF_FORWARD && direction != DCRF_ADJOINT)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT, "%d is not a direction", (int)direction);
    const struct dcrf_application application = {.direction = direction,
                                                 .in = in,
                                                 .out = out,
                                                 .channels = channels,
                                                 .stride = stride,
                                                 .factor = 1,
                                                 .accumulate = false};
    return dcrf_operator_run(op, workspace, &application, error);
}

dcrf_status dcrf_operator_diagonal(const dcrf_operator *op, dcrf_workspace *workspace,
                                   float *diagonal, size_t count, dcrf_error *error) {
    if (!op || !workspace)
        return dcrf_fail_null(error, "the operator or the workspace");
    DCRF_ENTER(workspace, error);
    TRY(dcrf_check_room(diagonal, count, op->variables, "the diagonal", error));
    return op->methods->diagonal(op, workspace, diagonal, error);
}

/* A block of one channel. */
static void fill_ones(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    float *ones = context;
    for (size_t k = begin * DCRF_NARROW_LANES; k < end * DCRF_NARROW_LANES; k++)
        ones[k] = k % DCRF_NARROW_LANES == 0;
}

dcrf_status dcrf_operator_row_sums(const dcrf_operator *op, dcrf_workspace *workspace,
                                   float *row_sums, size_t count, dcrf_error *error) {
    if (!op || !workspace)
        return dcrf_fail_null(error, "the operator or the workspace");
    DCRF_ENTER(workspace, error);
    const size_t n = op->variables;
    TRY(dcrf_check_room(row_sums, count, n, "the row sums", error));
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    DCRF_SCOPED float *ones = dcrf_allocate(n, 2 * DCRF_NARROW_LANES * sizeof *ones);
    if (!ones)
        return dcrf_fail_memory(error, "the row sums of a kernel");
    float *sums = ones + n * DCRF_NARROW_LANES;
    dcrf_parallel_rows(pool, n, fill_ones, ones);
    TRY(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, ones, sums,
                            op->variables * DCRF_NARROW_LANES, 1, DCRF_NARROW_LANES, error));
    dcrf_parallel_column(pool, row_sums, sums, DCRF_NARROW_LANES, n);
    return DCRF_OK;
}
