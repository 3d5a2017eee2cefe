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
    void *const held[] = {lp->unary,     lp->y,           lp->previous,    lp->z,
                          lp->packed,    lp->filtered[0], lp->filtered[1], lp->precise,
                          lp->metric,    lp->answer,      lp->partial,     lp->blocks_done,
                          lp->stiffness, lp->labels,      lp->inner,       lp->columns,
                          lp->ranges,    lp->group_sums,  lp->distances};
    for (void *memory : held)
        device_release(device, memory);
    for (const struct lp_dual &dual : lp->dual) {
        device_release(device, dual.pairwise);
        device_release(device, dual.clique);
    }
    device_cliques_release(&lp->cliques);
    ordered_levels_release(&lp->levels, device);
    for (size_t g = 0; lp->groups && g < lp->group_count; g++)
        device_cuts_release(&lp->groups[g].cuts, device);
    free(lp->groups);
    free(lp->operators);
    free(lp->weights);
    free(lp);
    device_drop(device);
}

static dcrf_status take_memory(dcrf_backend_lp *lp, dcrf_error *error) {
    const size_t numbers = lp->variables * lp->stride;
    dcrf_status status = DCRF_OK;
    for (float **block : {&lp->unary, &lp->y, &lp->previous, &lp->z})
        if (status == DCRF_OK)
            status = device_array(lp->device, block, numbers, WHAT, error);
    for (float **block : {&lp->packed, &lp->filtered[0], &lp->filtered[1]})
        if (status == DCRF_OK)
            status =
                device_array(lp->device, block, lp->variables * lp->columns_stride, WHAT, error);
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

/* The kernels of one group of columns; *next is the first place not yet taken. The space counts all
 * kernels of the model, `given` only those with a weight. */
static void take_group(dcrf_backend_lp *lp, const struct dcrf_backend_group *given, size_t g,
                       size_t *next) {
    const struct dcrf_columns *columns = lp->space->columns;
    lp->groups[g].first = *next;
    for (size_t kernel = 0, m = 0; m < given->kernel_count; kernel++) {
        if (columns->group_of[kernel] == g) {
            lp->operators[*next] = reinterpret_cast<struct device_operator *>(given->operators[m]);
            lp->weights[(*next)++] = given->weights[m];
        }
        m += columns->group_of[kernel] != DCRF_NO_GROUP;
    }
    lp->groups[g].count = *next - lp->groups[g].first;
}

static dcrf_status take_kernels(dcrf_backend_lp *lp, const struct dcrf_backend_group *given,
                                dcrf_error *error) {
    const struct dcrf_columns *columns = lp->space->columns;
    size_t next = 0;
    lp->kernel_count = given->kernel_count;
    lp->group_count = columns->group_count;
    lp->columns_stride = padded_channels(columns->most);
    lp->groups = static_cast<struct lp_group *>(calloc(lp->group_count + 1, sizeof *lp->groups));
    lp->operators =
        static_cast<struct device_operator **>(calloc(lp->kernel_count + 1, sizeof *lp->operators));
    lp->weights = static_cast<double *>(calloc(lp->kernel_count + 1, sizeof *lp->weights));
    if (!lp->groups || !lp->operators || !lp->weights)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    dcrf_status status = DCRF_OK;
    for (size_t g = 0; g < lp->group_count && status == DCRF_OK; g++) {
        take_group(lp, given, g, &next);
        if (columns->groups[g].cuts)
            status =
                device_cuts_take(&lp->groups[g].cuts, lp->device, columns->groups[g].cuts, error);
    }
    return status;
}

/* What distances between labels need besides. */
static dcrf_status take_cuts(dcrf_backend_lp *lp, dcrf_error *error) {
    const size_t distances = lp->group_count * lp->label_count * lp->label_count;
    if (lp->space->is_potts)
        return DCRF_OK;
    dcrf_status status =
        device_array(lp->device, &lp->columns, lp->variables * lp->columns_stride, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->ranges, 1, WHAT, error);
    if (status == DCRF_OK)
        status =
            device_array(lp->device, &lp->group_sums, lp->group_count * lp->variables, WHAT, error);
    if (status == DCRF_OK)
        status = device_array(lp->device, &lp->distances, distances, WHAT, error);
    return status < 0 ? status
                      : device_upload(lp->device, lp->distances, lp->space->distances,
                                      distances * sizeof *lp->distances, error);
}

static dcrf_status lp_make(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model,
                           const struct dcrf_dual_space *space, dcrf_error *error) {
    const struct dcrf_backend_group *kernels = model->groups;
    *out = nullptr;
    if (model->labels > LP_MOST_LABELS)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "the LP with more than %d labels is not on this device yet", LP_MOST_LABELS);
    if (space->columns->most > LP_MOST_LABELS)
        return fail(error, DCRF_ERROR_UNSUPPORTED,
                    "the LP of a distance with more than %d cuts is not on this device yet",
                    LP_MOST_LABELS);
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
    status = take_kernels(lp, kernels, error);
    if (status == DCRF_OK && model->cliques)
        status = device_cliques_take(&lp->cliques, device, lp->variables, lp->label_count,
                                     lp->stride, model->cliques, error);
    if (status == DCRF_OK)
        status = take_memory(lp, error);
    if (status == DCRF_OK)
        status = take_cuts(lp, error);
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

dcrf_status lp_write_block(dcrf_backend_lp *lp, double *to, const double *block,
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
        status = lp_write_block(lp, average->pairwise, nullptr, error);
    if (status == DCRF_OK && average->clique)
        status = lp_write_block(lp, average->clique, nullptr, error);
    if (status == DCRF_OK && lp->cliques.count > 0)
        status = device_upload(lp->device, lp->stiffness, lp->space->stiffness,
                               lp->cliques.count * sizeof *lp->stiffness, error);
    if (status == DCRF_OK && lp->group_sums)
        status = device_upload(lp->device, lp->group_sums, lp->space->group_sums,
                               lp->group_count * lp->variables * sizeof *lp->group_sums, error);
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
                      : lp_write_block(lp, lp->dual[DCRF_BACKEND_BEST].pairwise, pairwise, error);
}

dcrf_status lp_read_answer(dcrf_backend_lp *lp, dcrf_status status, struct lp_answer *answer,
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
        status = lp_write_block(lp, best->pairwise, nullptr, error);
    if (status == DCRF_OK && best->clique)
        status = reset_cliques(lp, best->clique, error);
    if (status == DCRF_OK)
        status = lp_sum_lowest(lp, error);
    status = lp_read_answer(lp, status, &answer, error);
    if (status == DCRF_OK)
        *bound = bound_of(lp, roundings, answer.bounds[0]);
    return status;
}

/* ---- the cliques of z ------------------------------------------------------------------------ */

static dcrf_status lp_find_cliques(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    double *v = lp->dual[DCRF_BACKEND_CURRENT].clique;
    dcrf_status status = device_enter(lp->device, error);
    if (status == DCRF_OK)
        status = lp_write_block(lp, v, nullptr, error); /* zero outside the cliques */
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
    status = lp_read_answer(lp, status, &answer, error);
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
