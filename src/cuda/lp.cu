/* The LP by Huber continuation on a device: the steps that solver/lp_huber.c asks for, on blocks
 * that stay here. */
#include "cuda/lp.cuh"

#include <cstdlib>

#define WHAT "the LP"

/* ---- memory --------------------------------------------------------------------------------- */

static void lp_free(dcrf_backend_lp *lp) {
    if (!lp)
        return;
    dcrf_backend_device *device = lp->device;
    cudaSetDevice((int)device->index);
    void *const held[] = {lp->unary,   lp->y,        lp->previous, lp->z,
                          lp->packed,  lp->filtered, lp->precise,  lp->metric,
                          lp->largest, lp->partial,  lp->sums,     lp->stiffness};
    for (void *memory : held)
        device_release(device, memory);
    for (const struct lp_dual &dual : lp->dual) {
        device_release(device, dual.pairwise);
        device_release(device, dual.clique);
    }
    device_cliques_release(&lp->cliques);
    ordered_levels_release(&lp->levels, device);
    free(lp->operators);
    free(lp->weights);
    free(lp);
    device_drop(device);
}

static dcrf_status take_memory(dcrf_backend_lp *lp, dcrf_error *error) {
    const size_t numbers = lp->variables * lp->stride;
    dcrf_status status = DCRF_OK;
    for (float **block : {&lp->unary, &lp->y, &lp->previous, &lp->z, &lp->packed, &lp->filtered})
        if (status == DCRF_OK)
            status = device_array(lp->device, block, numbers, WHAT, error);
    for (struct lp_dual &dual : lp->dual) {
        if (status == DCRF_OK)
            status = device_array(lp->device, &dual.pairwise, numbers, WHAT, error);
        if (status == DCRF_OK && lp->cliques.count > 0)
            status = device_array(lp->device, &dual.clique, numbers, WHAT, error);
    }
    if (status == DCRF_OK && lp->cliques.count > 0)
        status = device_array(lp->device, &lp->stiffness, lp->cliques.count, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->metric, lp->variables, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->largest, lp->labels, WHAT, error);
    if (status == DCRF_OK)
        status =
            device_array(lp->device, &lp->partial, lp_partial_sums(lp->variables), WHAT, error);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->sums, DCRF_BACKEND_SLOPES, WHAT, error);
    /* The padding of rows is never written but read by passes over whole blocks. */
    for (float *block : {lp->y, lp->previous})
        if (status == DCRF_OK)
            status = check(cudaMemsetAsync(block, 0, numbers * sizeof *block, lp->device->stream),
                           WHAT, error);
    return status;
}

static dcrf_status lp_make(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_lp_model *model, dcrf_error *error) {
    *out = nullptr;
    if (model->labels > LP_MOST_LABELS)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "the LP with more than %d labels is not on this device yet", LP_MOST_LABELS);
    dcrf_status status = device_enter(device, error);
    if (status < 0)
        return status;
    dcrf_backend_lp *lp = static_cast<dcrf_backend_lp *>(calloc(1, sizeof(dcrf_backend_lp)));
    if (!lp)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    lp->device = device;
    device_hold(device);
    lp->variables = model->variables;
    lp->labels = model->labels;
    lp->stride = model->stride;
    lp->kernel_count = model->kernel_count;
    lp->operators = static_cast<struct device_operator **>(
        calloc(model->kernel_count + 1, sizeof *lp->operators));
    lp->weights = static_cast<double *>(calloc(model->kernel_count + 1, sizeof *lp->weights));
    if (!lp->operators || !lp->weights)
        status = fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t m = 0; m < model->kernel_count && status == DCRF_OK; m++) {
        lp->operators[m] = reinterpret_cast<struct device_operator *>(model->operators[m]);
        lp->weights[m] = model->weights[m];
    }
    if (status == DCRF_OK && model->cliques)
        status = device_cliques_take(&lp->cliques, device, lp->variables, lp->labels, lp->stride,
                                     model->cliques, error);
    if (status == DCRF_OK)
        status = take_memory(lp, error);
    if (status == DCRF_OK)
        status = device_upload(device, lp->unary, model->unary,
                               lp->variables * lp->stride * sizeof(float), error);
    if (status < 0) {
        lp_free(lp);
        return status;
    }
    *out = lp;
    return DCRF_OK;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static dcrf_status lp_start(dcrf_backend_lp *lp, const float *y, const float *metric,
                            const double *stiffness, dcrf_error *error) {
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK && lp->cliques.count > 0)
        status = device_upload(lp->device, lp->stiffness, stiffness,
                               lp->cliques.count * sizeof *stiffness, error);
    if (status == DCRF_OK)
        status = device_upload(lp->device, lp->y, y, lp->variables * lp->stride * sizeof *y, error);
    return status < 0 ? status
                      : device_upload(lp->device, lp->metric, metric,
                                      lp->variables * sizeof *metric, error);
}

static dcrf_status lp_restart(dcrf_backend_lp *lp, dcrf_error *error) {
    const dcrf_status status = device_enter(lp->device, error);
    return status < 0
               ? status
               : check(cudaMemcpyAsync(lp->z, lp->y, lp->variables * lp->stride * sizeof *lp->z,
                                       cudaMemcpyDeviceToDevice, lp->device->stream),
                       WHAT, error);
}

static dcrf_status lp_read(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, float *block,
                           dcrf_error *error) {
    const dcrf_status status = device_enter(lp->device, error);
    return status < 0 ? status
                      : device_download(lp->device, block, which == DCRF_BACKEND_Y ? lp->y : lp->z,
                                        lp->variables * lp->stride * sizeof *block, error);
}

static dcrf_status lp_labels(dcrf_backend_lp *lp, uint16_t *labels, dcrf_error *error) {
    const dcrf_status status = device_enter(lp->device, error);
    return status < 0 ? status
                      : labels_download(lp->device, lp->y, lp->variables, lp->labels, lp->stride,
                                        labels, error);
}

static dcrf_status lp_read_dual(dcrf_backend_lp *lp, enum dcrf_backend_dual which, double *pairwise,
                                double *clique, dcrf_error *error) {
    const size_t bytes = lp->variables * lp->stride * sizeof *pairwise;
    const struct lp_dual *dual = &lp->dual[which];
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = device_download(lp->device, pairwise, dual->pairwise, bytes, error);
    return status == DCRF_OK && dual->clique
               ? device_download(lp->device, clique, dual->clique, bytes, error)
               : status;
}

static dcrf_status write_block(dcrf_backend_lp *lp, double *to, const double *block,
                               dcrf_error *error) {
    const size_t bytes = lp->variables * lp->stride * sizeof *block;
    return block ? device_upload(lp->device, to, block, bytes, error)
                 : check(cudaMemsetAsync(to, 0, bytes, lp->device->stream), WHAT, error);
}

static dcrf_status lp_write_dual(dcrf_backend_lp *lp, enum dcrf_backend_dual which,
                                 const double *pairwise, const double *clique, dcrf_error *error) {
    const struct lp_dual *dual = &lp->dual[which];
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = write_block(lp, dual->pairwise, pairwise, error);
    return status == DCRF_OK && dual->clique ? write_block(lp, dual->clique, clique, error)
                                             : status;
}

/* ---- the point of z ------------------------------------------------------------------------- */

struct alive_labels {
    uint32_t count;
    uint16_t label[LP_MOST_LABELS];
};

static __global__ void pack(const float *z, uint32_t stride, size_t variables,
                            uint32_t packed_stride, struct alive_labels alive, float *packed) {
    const size_t i = this_thread();
    if (i >= variables * packed_stride)
        return;
    const size_t a = i / packed_stride, k = i % packed_stride;
    packed[i] = k < alive.count ? z[a * stride + alive.label[k]] : 0;
}

/* current += weight * filtered; rows of `filtered` have from_stride numbers. */
template <typename T>
static __global__ void unpack(const T *filtered, uint32_t from_stride, size_t variables,
                              uint32_t stride, struct alive_labels alive, double weight,
                              double *current) {
    const size_t i = this_thread();
    if (i >= variables * alive.count)
        return;
    const size_t a = i / alive.count, k = i % alive.count;
    current[a * stride + alive.label[k]] += weight * (double)filtered[a * from_stride + k];
}

static dcrf_status find_alive(dcrf_backend_lp *lp, double threshold, struct alive_labels *alive,
                              dcrf_error *error) {
    dcrf_status status = lp_find_largest(lp, error);
    if (status == DCRF_OK)
        status = check(cudaStreamSynchronize(lp->device->stream), WHAT, error);
    const float *largest = reinterpret_cast<const float *>(lp->device->few);
    alive->count = 0;
    for (size_t i = 0; i < lp->labels && status == DCRF_OK; i++)
        if ((double)largest[i] > threshold)
            alive->label[alive->count++] = (uint16_t)i;
    return status;
}

/* The levels of one epsilon and number of bins are always the same. */
static dcrf_status need_levels(dcrf_backend_lp *lp, const struct dcrf_backend_shape *shape,
                               dcrf_error *error) {
    if (lp->levels.levels && lp->levels_bins == shape->levels->count &&
        lp->levels_epsilon == shape->epsilon)
        return DCRF_OK;
    ordered_levels_release(&lp->levels, lp->device);
    lp->levels_bins = shape->levels->count;
    lp->levels_epsilon = shape->epsilon;
    return ordered_levels_take(&lp->levels, lp->device, shape->levels, error);
}

static dcrf_status filter(dcrf_backend_lp *lp, struct device_operator *op,
                          const struct dcrf_backend_shape *shape, const struct alive_labels *alive,
                          size_t stride, double weight, dcrf_error *error) {
    const size_t n = lp->variables;
    cudaStream_t stream = lp->device->stream;
    struct dcrf_line line = {};
    line.epsilon = shape->epsilon;
    line.y = lp->packed;
    line.out = lp->filtered;
    line.channels = alive->count;
    line.stride = stride;
    double *current = lp->dual[DCRF_BACKEND_CURRENT].pairwise;
    dcrf_status status;
    if (shape->is_precise) {
        status = op->line_double_on_device(op, &line, lp->precise, error);
        unpack<<<blocks_for(n * alive->count), THREADS, 0, stream>>>(
            lp->precise, alive->count, n, (uint32_t)lp->stride, *alive, weight, current);
        return status < 0 ? status : check(cudaGetLastError(), WHAT, error);
    }
    if (op->line_on_device)
        status = op->line_on_device(op, &line, error);
    else {
        status = need_levels(lp, shape, error);
        if (status == DCRF_OK)
            status = ordered_filter(op, &lp->levels, lp->packed, lp->filtered, alive->count, stride,
                                    error);
    }
    if (status < 0)
        return status;
    unpack<<<blocks_for(n * alive->count), THREADS, 0, stream>>>(
        lp->filtered, (uint32_t)stride, n, (uint32_t)lp->stride, *alive, weight, current);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status lp_find_point(dcrf_backend_lp *lp, const struct dcrf_backend_shape *shape,
                                 size_t *alive, size_t *alive_count, dcrf_error *error) {
    struct alive_labels labels;
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = find_alive(lp, shape->threshold, &labels, error);
    if (status == DCRF_OK)
        status = write_block(lp, lp->dual[DCRF_BACKEND_CURRENT].pairwise, nullptr, error);
    if (status == DCRF_OK && shape->is_precise && !lp->precise)
        status = device_array(lp->device, &lp->precise, lp->variables * lp->labels, WHAT, error);
    if (status < 0)
        return status;
    *alive_count = labels.count;
    for (size_t k = 0; k < labels.count; k++)
        alive[k] = labels.label[k];
    if (labels.count == 0)
        return DCRF_OK;
    const size_t stride = padded_channels(labels.count);
    pack<<<blocks_for(lp->variables * stride), THREADS, 0, lp->device->stream>>>(
        lp->z, (uint32_t)lp->stride, lp->variables, (uint32_t)stride, labels, lp->packed);
    for (size_t m = 0; m < lp->kernel_count && status == DCRF_OK; m++)
        status = filter(lp, lp->operators[m], shape, &labels, stride, lp->weights[m], error);
    return status;
}

static dcrf_status lp_find_cliques(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    double *v = lp->dual[DCRF_BACKEND_CURRENT].clique;
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = write_block(lp, v, nullptr, error); /* outside of the cliques */
    return status < 0 ? status
                      : cliques_project(&lp->cliques, lp->stiffness, epsilon, lp->z, v, error);
}

/* ---- passes over blocks --------------------------------------------------------------------- */

static __global__ void mix_blocks(double *into, const double *from, double weight, size_t count) {
    const size_t i = this_thread();
    if (i < count)
        into[i] += weight * (from[i] - into[i]);
}

static dcrf_status lp_mix(dcrf_backend_lp *lp, enum dcrf_backend_dual into,
                          enum dcrf_backend_dual from, double weight, dcrf_error *error) {
    const size_t count = lp->variables * lp->stride;
    const dcrf_status status = device_enter(lp->device, error);
    if (status < 0)
        return status;
    mix_blocks<<<blocks_for(count), THREADS, 0, lp->device->stream>>>(
        lp->dual[into].pairwise, lp->dual[from].pairwise, weight, count);
    if (lp->dual[into].clique)
        mix_blocks<<<blocks_for(count), THREADS, 0, lp->device->stream>>>(
            lp->dual[into].clique, lp->dual[from].clique, weight, count);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status read_sums(dcrf_backend_lp *lp, dcrf_status status, size_t count, double *sums,
                             dcrf_error *error) {
    if (status == DCRF_OK)
        status = check(cudaStreamSynchronize(lp->device->stream), WHAT, error);
    for (size_t s = 0; s < count && status == DCRF_OK; s++)
        sums[s] = lp->device->few[s];
    return status;
}

static dcrf_status lp_slopes(dcrf_backend_lp *lp, enum dcrf_backend_dual to, double first,
                             double step, size_t count, double *slopes, dcrf_error *error) {
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = lp_sum_slopes(lp, &lp->dual[to], first, step, count, error);
    return read_sums(lp, status, count, slopes, error);
}

static dcrf_status lp_bound_sums(dcrf_backend_lp *lp, double *sums, dcrf_error *error) {
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = lp_sum_lowest(lp, error);
    return read_sums(lp, status, DCRF_BACKEND_BOUND_SUMS, sums, error);
}

static dcrf_status lp_descend(dcrf_backend_lp *lp, double epsilon, double *sums,
                              dcrf_error *error) {
    dcrf_status status = device_enter(lp->device, error);
    float *const swap = lp->previous;
    lp->previous = lp->y;
    lp->y = swap;
    if (status == DCRF_OK)
        status = lp_project(lp, (float)epsilon, error);
    return read_sums(lp, status, DCRF_BACKEND_DESCENT_SUMS, sums, error);
}

static __global__ void extrapolate(const float *y, const float *previous, float beta, size_t count,
                                   float *z) {
    const size_t i = this_thread();
    if (i >= count)
        return;
    const float value = y[i] + beta * (y[i] - previous[i]);
    z[i] = value < 0 ? 0 : value > 1 ? 1 : value;
}

static dcrf_status lp_extrapolate(dcrf_backend_lp *lp, float beta, dcrf_error *error) {
    const size_t count = lp->variables * lp->stride;
    const dcrf_status status = device_enter(lp->device, error);
    if (status < 0)
        return status;
    extrapolate<<<blocks_for(count), THREADS, 0, lp->device->stream>>>(lp->y, lp->previous, beta,
                                                                       count, lp->z);
    return check(cudaGetLastError(), WHAT, error);
}

const struct dcrf_backend_lp_methods lp_methods = {
    lp_make,   lp_free,      lp_start,      lp_restart,    lp_read,
    lp_labels, lp_read_dual, lp_write_dual, lp_find_point, lp_find_cliques,
    lp_mix,    lp_slopes,    lp_bound_sums, lp_descend,    lp_extrapolate,
};
