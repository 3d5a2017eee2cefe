/* The LP by Huber continuation on a device: the steps of lp/lp_huber.c, on blocks that stay on the
 * device. */
#include "backend/cuda/lp.cuh"

#include <cstdlib>
#include <cstring>

#define WHAT "the LP"

/* ---- memory --------------------------------------------------------------------------------- */

static void lp_free(dcrf_backend_lp *lp) {
    if (!lp)
        return;
    dcrf_backend_device *device = lp->device;
    cudaSetDevice((int)device->index);
    void *const held[] = {lp->unary,       lp->y,           lp->previous,  lp->z,      lp->packed,
                          lp->filtered[0], lp->filtered[1], lp->precise,   lp->metric, lp->answer,
                          lp->partial,     lp->blocks_done, lp->stiffness, lp->labels, lp->inner};
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
    for (float **block : {&lp->unary, &lp->y, &lp->previous, &lp->z, &lp->packed, &lp->filtered[0],
                          &lp->filtered[1]})
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
        status = device_array(lp->device, &lp->answer, 1, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->labels, lp->variables, WHAT, error);
    const size_t by_rows = lp_row_partials(lp->variables);
    const size_t by_search = lp_search_partials(lp->variables);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->partial, by_rows > by_search ? by_rows : by_search,
                              WHAT, error);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->blocks_done, 1, WHAT, error);
    if (status == DCRF_OK)
        status =
            check(cudaMemsetAsync(lp->blocks_done, 0, sizeof *lp->blocks_done, lp->device->stream),
                  WHAT, error);
    if (status == DCRF_OK) /* it is always downloaded whole */
        status = check(cudaMemsetAsync(lp->answer, 0, sizeof *lp->answer, lp->device->stream), WHAT,
                       error);
    /* The padding of rows is never written, but passes over whole blocks read it. */
    for (float *block : {lp->y, lp->previous})
        if (status == DCRF_OK)
            status = check(cudaMemsetAsync(block, 0, numbers * sizeof *block, lp->device->stream),
                           WHAT, error);
    return status;
}

static dcrf_status lp_make(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model,
                           const struct dcrf_dual_space *space, dcrf_error *error) {
    const struct dcrf_backend_group *kernels = model->groups;
    *out = nullptr;
    if (model->labels > LP_MOST_LABELS)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "the LP with more than %d labels is not on this device yet", LP_MOST_LABELS);
    if (!space->is_potts)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "the LP of distances between labels is not on this device yet");
    if (model->cliques && space->form != DCRF_CLIQUE_MIN)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "the LP of cliques in the spread form is not on this device yet");
    dcrf_status status = device_enter(device, error);
    if (status < 0)
        return status;
    dcrf_backend_lp *lp = static_cast<dcrf_backend_lp *>(calloc(1, sizeof(dcrf_backend_lp)));
    if (!lp)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    lp->device = device;
    device_hold(device);
    lp->space = space;
    lp->variables = model->variables;
    lp->label_count = model->labels;
    lp->stride = model->stride;
    lp->kernel_count = kernels->kernel_count;
    lp->operators = static_cast<struct device_operator **>(
        calloc(kernels->kernel_count + 1, sizeof *lp->operators));
    lp->weights = static_cast<double *>(calloc(kernels->kernel_count + 1, sizeof *lp->weights));
    if (!lp->operators || !lp->weights)
        status = fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t m = 0; m < kernels->kernel_count && status == DCRF_OK; m++) {
        lp->operators[m] = reinterpret_cast<struct device_operator *>(kernels->operators[m]);
        lp->weights[m] = kernels->weights[m];
    }
    if (status == DCRF_OK && model->cliques)
        status = device_cliques_take(&lp->cliques, device, lp->variables, lp->label_count,
                                     lp->stride, model->cliques, error);
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

static __global__ void fill_labelling(const uint16_t *labels, size_t variables, uint32_t stride,
                                      float *y) {
    const size_t i = this_thread();
    if (i < variables * stride)
        y[i] = labels[i / stride] == i % stride;
}

static dcrf_status write_labelling(dcrf_backend_lp *lp, const uint16_t *labels, dcrf_error *error) {
    uint16_t *there = nullptr;
    dcrf_status status = device_array(lp->device, &there, lp->variables, WHAT, error);
    if (status == DCRF_OK)
        status = device_upload(lp->device, there, labels, lp->variables * sizeof *labels, error);
    if (status == DCRF_OK) {
        fill_labelling<<<blocks_for(lp->variables * lp->stride), THREADS, 0, lp->device->stream>>>(
            there, lp->variables, (uint32_t)lp->stride, lp->y);
        status = check(cudaGetLastError(), WHAT, error);
    }
    device_release(lp->device, there);
    return status;
}

static dcrf_status write_block(dcrf_backend_lp *lp, double *to, const double *block,
                               dcrf_error *error) {
    const size_t bytes = lp->variables * lp->stride * sizeof *block;
    return block ? device_upload(lp->device, to, block, bytes, error)
                 : check(cudaMemsetAsync(to, 0, bytes, lp->device->stream), WHAT, error);
}

static dcrf_status lp_start(dcrf_backend_lp *lp, const float *y, const uint16_t *labels,
                            const float *metric, dcrf_error *error) {
    const struct lp_dual *average = &lp->dual[DCRF_BACKEND_AVERAGE];
    lp->is_largest_known = lp->are_labels_known = false;
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = write_block(lp, average->pairwise, nullptr, error);
    if (status == DCRF_OK && average->clique)
        status = write_block(lp, average->clique, nullptr, error);
    if (status == DCRF_OK && lp->cliques.count > 0)
        status = device_upload(lp->device, lp->stiffness, lp->space->stiffness,
                               lp->cliques.count * sizeof *lp->stiffness, error);
    if (status == DCRF_OK)
        status =
            y ? device_upload(lp->device, lp->y, y, lp->variables * lp->stride * sizeof *y, error)
              : write_labelling(lp, labels, error);
    return status < 0 ? status
                      : device_upload(lp->device, lp->metric, metric,
                                      lp->variables * sizeof *metric, error);
}

static dcrf_status lp_restart(dcrf_backend_lp *lp, dcrf_error *error) {
    const dcrf_status status = device_enter(lp->device, error);
    lp->is_largest_known = false;
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
    if (status < 0)
        return status;
    return lp->are_labels_known ? device_download(lp->device, labels, lp->labels,
                                                  lp->variables * sizeof *labels, error)
                                : labels_download(lp->device, lp->y, lp->variables, lp->label_count,
                                                  lp->stride, labels, error);
}

static const float *lp_view(const dcrf_backend_lp *lp) {
    (void)lp;
    return nullptr;
}

static bool lp_view_best(const dcrf_backend_lp *lp, double **pairwise, double **clique) {
    (void)lp, (void)pairwise, (void)clique;
    return false;
}

static dcrf_status lp_read_best(dcrf_backend_lp *lp, double *pairwise, double *clique,
                                dcrf_error *error) {
    const size_t bytes = lp->variables * lp->stride * sizeof *pairwise;
    const struct lp_dual *best = &lp->dual[DCRF_BACKEND_BEST];
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = device_download(lp->device, pairwise, best->pairwise, bytes, error);
    return status == DCRF_OK && best->clique
               ? device_download(lp->device, clique, best->clique, bytes, error)
               : status;
}

static dcrf_status lp_write_best(dcrf_backend_lp *lp, const double *pairwise, dcrf_error *error) {
    const dcrf_status status = device_enter(lp->device, error);
    return status < 0 ? status
                      : write_block(lp, lp->dual[DCRF_BACKEND_BEST].pairwise, pairwise, error);
}

/* Download lp->answer after all enqueued work is done. */
static dcrf_status read_answer(dcrf_backend_lp *lp, dcrf_status status, struct lp_answer *answer,
                               dcrf_error *error) {
    static_assert(sizeof *answer <= DEVICE_FEW * sizeof *lp->device->few, "few is enough");
    if (status == DCRF_OK)
        status = check(cudaMemcpyAsync(lp->device->few, lp->answer, sizeof *answer,
                                       cudaMemcpyDeviceToHost, lp->device->stream),
                       WHAT, error);
    if (status == DCRF_OK)
        status = check(cudaStreamSynchronize(lp->device->stream), WHAT, error);
    if (status == DCRF_OK)
        memcpy(answer, lp->device->few, sizeof *answer);
    return status;
}

static double bound_of(const dcrf_backend_lp *lp, struct dcrf_roundings roundings,
                       const double *sums) {
    return dcrf_dual_bound_of_sums(lp->space, roundings, sums[LP_LOWEST], sums[LP_MAGNITUDE]);
}

static __global__ void fill_rows(const float *values, size_t variables, uint32_t stride,
                                 double *block) {
    const size_t i = this_thread();
    if (i < variables * stride)
        block[i] = (double)values[i / stride];
}

/* v at the zero point of the min form: C_p / |p|. */
static dcrf_status reset_cliques(dcrf_backend_lp *lp, double *v, dcrf_error *error) {
    float *weights = nullptr;
    dcrf_status status = device_array(lp->device, &weights, lp->variables, WHAT, error);
    if (status == DCRF_OK)
        status = device_upload(lp->device, weights, lp->space->clique_weight,
                               lp->variables * sizeof *weights, error);
    if (status == DCRF_OK) {
        fill_rows<<<blocks_for(lp->variables * lp->stride), THREADS, 0, lp->device->stream>>>(
            weights, lp->variables, (uint32_t)lp->stride, v);
        status = check(cudaGetLastError(), WHAT, error);
    }
    device_release(lp->device, weights);
    return status;
}

static dcrf_status lp_reset_best(dcrf_backend_lp *lp, struct dcrf_roundings roundings,
                                 double *bound, dcrf_error *error) {
    const struct lp_dual *best = &lp->dual[DCRF_BACKEND_BEST];
    struct lp_answer answer;
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = write_block(lp, best->pairwise, nullptr, error);
    if (status == DCRF_OK && best->clique)
        status = reset_cliques(lp, best->clique, error);
    if (status == DCRF_OK)
        status = lp_sum_lowest(lp, error);
    status = read_answer(lp, status, &answer, error);
    if (status == DCRF_OK)
        *bound = bound_of(lp, roundings, answer.bounds[0]);
    return status;
}

/* ---- the point of z ------------------------------------------------------------------------- */

struct alive_labels {
    uint32_t count;
    uint16_t label[LP_MOST_LABELS];
    uint16_t place[LP_MOST_LABELS]; /* index of each label in `label`; `count`: not alive */
};

static __global__ void pack(const float *z, uint32_t stride, size_t variables,
                            uint32_t packed_stride, struct alive_labels alive, float *packed) {
    const size_t i = this_thread();
    if (i >= variables * packed_stride)
        return;
    const size_t a = i / packed_stride, k = i % packed_stride;
    packed[i] = k < alive.count ? z[a * stride + alive.label[k]] : 0;
}

/* One or two filtered blocks of the labels that are alive, with their weights. */
template <typename T> struct messages {
    const T *one, *other; /* other: NULL if there is only one */
    double weight, other_weight;
    uint32_t stride;
};

/* current = their sum, with zeros for other labels; or current += their sum. */
template <typename T>
static __global__ void unpack(struct messages<T> from, size_t variables, uint32_t labels,
                              uint32_t stride, struct alive_labels alive, bool is_first,
                              double *current) {
    const size_t i = this_thread();
    if (i >= variables * stride)
        return;
    const uint32_t label = (uint32_t)(i % stride);
    const uint32_t place = label < labels ? alive.place[label] : alive.count;
    double sum = is_first ? 0 : current[i];
    if (place < alive.count) {
        const size_t at = i / stride * from.stride + place;
        sum += from.weight * (double)from.one[at];
        if (from.other)
            sum += from.other_weight * (double)from.other[at];
    }
    current[i] = sum;
}

template <typename T>
static dcrf_status take_messages(dcrf_backend_lp *lp, const struct messages<T> &from,
                                 const struct alive_labels *alive, bool is_first,
                                 dcrf_error *error) {
    unpack<<<blocks_for(lp->variables * lp->stride), THREADS, 0, lp->device->stream>>>(
        from, lp->variables, (uint32_t)lp->label_count, (uint32_t)lp->stride, *alive, is_first,
        lp->dual[DCRF_BACKEND_CURRENT].pairwise);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status find_alive(dcrf_backend_lp *lp, double threshold, struct alive_labels *alive,
                              dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    if (!lp->is_largest_known) {
        struct lp_answer answer;
        status = read_answer(lp, lp_find_largest(lp, error), &answer, error);
        memcpy(lp->largest, answer.largest, sizeof lp->largest);
        lp->is_largest_known = status == DCRF_OK;
    }
    alive->count = 0;
    for (size_t i = 0; i < lp->label_count && status == DCRF_OK; i++)
        if ((double)lp->largest[i] > threshold)
            alive->label[alive->count++] = (uint16_t)i;
    for (size_t i = 0; i < lp->label_count; i++)
        alive->place[i] = (uint16_t)alive->count;
    for (uint32_t k = 0; k < alive->count; k++)
        alive->place[alive->label[k]] = (uint16_t)k;
    return status;
}

/* The levels depend only on epsilon and the number of bins. */
static dcrf_status need_levels(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                               dcrf_error *error) {
    const size_t bins = shape->bins;
    if (lp->levels.levels && lp->levels_bins == bins && lp->levels_epsilon == shape->epsilon)
        return DCRF_OK;
    ordered_levels_release(&lp->levels, lp->device);
    float *nodes = static_cast<float *>(malloc((bins + 1) * bins * sizeof *nodes));
    if (!nodes)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    const dcrf_levels levels = {bins, nodes, nodes + bins};
    dcrf_pair_fill_levels(shape, nodes, nodes + bins);
    lp->levels_bins = bins;
    lp->levels_epsilon = shape->epsilon;
    const dcrf_status status = ordered_levels_take(&lp->levels, lp->device, &levels, error);
    free(nodes);
    return status;
}

/* packed -> out */
static dcrf_status filter(dcrf_backend_lp *lp, struct device_operator *op,
                          const struct dcrf_pair_shape *shape, size_t channels, size_t stride,
                          float *out, dcrf_error *error) {
    if (!op->line_on_device)
        return ordered_filter(op, &lp->levels, lp->packed, out, channels, stride, error);
    struct dcrf_line line = {};
    line.epsilon = shape->epsilon;
    line.y = lp->packed;
    line.out = out;
    line.channels = channels;
    line.stride = stride;
    return op->line_on_device(op, &line, error);
}

/* The first two kernels are filtered concurrently, unless one has a line, which fills the
 * device. */
static dcrf_status find_in_float(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                                 const struct alive_labels *alive, size_t stride,
                                 dcrf_error *error) {
    const bool is_fast = lp->kernel_count > 1 && !lp->operators[0]->line_on_device &&
                         !lp->operators[1]->line_on_device;
    const size_t channels = alive->count;
    struct messages<float> from = {
        lp->filtered[0], nullptr, lp->weights[0], 0, (uint32_t)stride
    };
    dcrf_status status = DCRF_OK;
    for (size_t m = 0; m < lp->kernel_count && status == DCRF_OK; m++)
        if (!lp->operators[m]->line_on_device)
            status = need_levels(lp, shape, error);
    if (status == DCRF_OK && is_fast) {
        status = device_beside(
            lp->device,
            [&] {
                return filter(lp, lp->operators[0], shape, channels, stride, lp->filtered[0],
                              error);
            },
            error);
        if (status == DCRF_OK)
            status = filter(lp, lp->operators[1], shape, channels, stride, lp->filtered[1], error);
        if (status == DCRF_OK)
            status = device_join(lp->device, error);
        from.other = lp->filtered[1];
        from.other_weight = lp->weights[1];
        if (status == DCRF_OK)
            status = take_messages(lp, from, alive, true, error);
    }
    for (size_t m = is_fast ? 2 : 0; m < lp->kernel_count && status == DCRF_OK; m++) {
        from = {lp->filtered[0], nullptr, lp->weights[m], 0, (uint32_t)stride};
        status = filter(lp, lp->operators[m], shape, channels, stride, lp->filtered[0], error);
        if (status == DCRF_OK)
            status = take_messages(lp, from, alive, m == 0, error);
    }
    return status;
}

static dcrf_status find_in_double(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                                  const struct alive_labels *alive, size_t stride,
                                  dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    if (!lp->precise)
        status =
            device_array(lp->device, &lp->precise, lp->variables * lp->label_count, WHAT, error);
    for (size_t m = 0; m < lp->kernel_count && status == DCRF_OK; m++) {
        struct device_operator *op = lp->operators[m];
        struct dcrf_line line = {};
        line.epsilon = shape->epsilon;
        line.y = lp->packed;
        line.channels = alive->count;
        line.stride = stride;
        if (op->line_double_on_device)
            status = op->line_double_on_device(op, &line, lp->precise, error);
        else if ((status = need_levels(lp, shape, error)) == DCRF_OK)
            status = lp_filter_by_bins(lp, op, alive->count, stride, error);
        const struct messages<double> from = {
            lp->precise, nullptr, lp->weights[m], 0, alive->count
        };
        if (status == DCRF_OK)
            status = take_messages(lp, from, alive, m == 0, error);
    }
    return status;
}

static dcrf_status lp_find_point(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                                 double threshold, const struct dcrf_interrupt *interrupt,
                                 dcrf_error *error) {
    struct alive_labels labels;
    (void)interrupt; /* too short to interrupt */
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = find_alive(lp, threshold, &labels, error);
    if (status < 0)
        return status;
    if (labels.count == 0 || lp->kernel_count == 0)
        return write_block(lp, lp->dual[DCRF_BACKEND_CURRENT].pairwise, nullptr, error);
    const size_t stride = padded_channels(labels.count);
    pack<<<blocks_for(lp->variables * stride), THREADS, 0, lp->device->stream>>>(
        lp->z, (uint32_t)lp->stride, lp->variables, (uint32_t)stride, labels, lp->packed);
    return shape->is_precise ? find_in_double(lp, shape, &labels, stride, error)
                             : find_in_float(lp, shape, &labels, stride, error);
}

static dcrf_status lp_find_cliques(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    double *v = lp->dual[DCRF_BACKEND_CURRENT].clique;
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = write_block(lp, v, nullptr, error); /* zero outside the cliques */
    return status < 0 ? status
                      : cliques_project(&lp->cliques, lp->stiffness, epsilon, lp->z, v, error);
}

/* ---- the step ------------------------------------------------------------------------------- */

static dcrf_status lp_advance(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                              struct dcrf_backend_advanced *done, dcrf_error *error) {
    struct lp_answer answer;
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = check(cudaMemsetAsync(lp->answer, 0, sizeof *lp->answer, lp->device->stream), WHAT,
                       error);
    if (status == DCRF_OK)
        status = lp_improve(lp, how, error);
    if (status == DCRF_OK)
        status = lp_descend(lp, how, error);
    status = read_answer(lp, status, &answer, error);
    lp->is_largest_known = lp->are_labels_known = status == DCRF_OK;
    if (status < 0)
        return status;
    memcpy(lp->largest, answer.largest, sizeof lp->largest);
    for (size_t i = 0; i < LP_MOST_LABELS; i++)
        lp->occurs[i] = answer.occurs[i];
    lp->unary_of_labels = answer.unary;
    memcpy(done->weights, answer.weights, sizeof done->weights);
    struct dcrf_roundings best = how->roundings[DCRF_BACKEND_BEST];
    for (int t = 0; t < DCRF_BACKEND_TARGETS; t++) {
        const struct dcrf_roundings to =
            how->roundings[t == 0 ? DCRF_BACKEND_CURRENT : DCRF_BACKEND_AVERAGE];
        if (answer.weights[t] > 0)
            best = dcrf_roundings_mix(best, to, answer.weights[t]);
        done->bounds[t] = bound_of(lp, best, answer.bounds[t]);
    }
    done->objective = answer.objective;
    done->uphill = answer.uphill;
    memcpy(done->decrease, answer.decrease, sizeof done->decrease);
    return DCRF_OK;
}

static dcrf_status lp_energy(dcrf_backend_lp *lp, double *unary, double *pairwise,
                             dcrf_error *error) {
    uint16_t place_of[LP_MOST_LABELS];
    size_t count = 0;
    double *sums = static_cast<double *>(calloc(lp->kernel_count + 1, sizeof *sums));
    if (!sums)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    for (size_t i = 0; i < lp->label_count; i++)
        place_of[i] = (uint16_t)(lp->occurs[i] ? count++ : 0);
    dcrf_status status = DCRF_OK;
    if (lp->kernel_count > 0)
        status = disagreements_there(lp->operators, lp->kernel_count, lp->labels, place_of,
                                     lp->label_count, count, sums, error);
    *unary = lp->unary_of_labels;
    *pairwise = 0;
    for (size_t m = 0; m < lp->kernel_count; m++)
        *pairwise += lp->weights[m] * sums[m];
    free(sums);
    return status;
}

static struct dcrf_backend_lp_methods make_methods() {
    struct dcrf_backend_lp_methods methods = {};
    methods.make = lp_make;
    methods.free = lp_free;
    methods.start = lp_start;
    methods.restart = lp_restart;
    methods.view = lp_view;
    methods.read = lp_read;
    methods.labels = lp_labels;
    methods.view_best = lp_view_best;
    methods.read_best = lp_read_best;
    methods.reset_best = lp_reset_best;
    methods.write_best = lp_write_best;
    methods.find_point = lp_find_point;
    methods.find_cliques = lp_find_cliques;
    methods.advance = lp_advance;
    methods.energy = lp_energy;
    return methods;
}

const struct dcrf_backend_lp_methods lp_methods = make_methods();
