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
    dcrf_backend_device *device = lp->device;
    const size_t numbers = lp->variables * lp->stride, cliques = lp->cliques.count;
    const size_t by_rows = lp_row_partials(lp->variables);
    const size_t by_search = lp_search_partials(lp->variables);
    const size_t partials = by_rows > by_search ? by_rows : by_search;
    for (float **block : {&lp->unary, &lp->z})
        TRY(device_array(device, block, numbers, WHAT, error));
    /* The padding of rows is never written, but passes over whole blocks read it. */
    for (float **block : {&lp->y, &lp->previous})
        TRY(device_zeros(device, block, numbers, WHAT, error));
    for (float **block : {&lp->packed, &lp->filtered[0], &lp->filtered[1]})
        TRY(device_array(device, block, lp->variables * lp->columns_stride, WHAT, error));
    for (struct lp_dual &dual : lp->dual) {
        TRY(device_array(device, &dual.pairwise, numbers, WHAT, error));
        if (cliques > 0)
            TRY(device_array(device, &dual.clique, numbers, WHAT, error));
    }
    if (cliques > 0)
        TRY(device_array(device, &lp->stiffness, cliques, WHAT, error));
    TRY(device_array(device, &lp->metric, lp->variables, WHAT, error));
    TRY(device_zeros(device, &lp->answer, 1, WHAT, error)); /* always downloaded whole */
    TRY(device_array(device, &lp->labels, lp->variables, WHAT, error));
    TRY(device_array(device, &lp->partial, partials, WHAT, error));
    return device_zeros(device, &lp->blocks_done, 1, WHAT, error);
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
    for (size_t g = 0; g < lp->group_count; g++) {
        const struct dcrf_cuts *cuts = columns->groups[g].cuts;
        take_group(lp, given, g, &next);
        if (cuts)
            TRY(device_cuts_take(&lp->groups[g].cuts, lp->device, cuts, error));
    }
    return DCRF_OK;
}

/* What distances between labels need besides. */
static dcrf_status take_cuts(dcrf_backend_lp *lp, dcrf_error *error) {
    dcrf_backend_device *device = lp->device;
    const size_t distances = lp->group_count * lp->label_count * lp->label_count;
    if (lp->space->is_potts)
        return DCRF_OK;
    TRY(device_array(device, &lp->columns, lp->variables * lp->columns_stride, WHAT, error));
    TRY(device_array(device, &lp->ranges, 1, WHAT, error));
    TRY(device_array(device, &lp->group_sums, lp->group_count * lp->variables, WHAT, error));
    TRY(device_array(device, &lp->distances, distances, WHAT, error));
    return device_upload(device, lp->distances, lp->space->distances,
                         distances * sizeof *lp->distances, error);
}

static dcrf_status take(dcrf_backend_lp *lp, const struct dcrf_backend_model *model,
                        dcrf_error *error) {
    TRY(take_kernels(lp, model->groups, error));
    if (model->cliques)
        TRY(device_cliques_take(&lp->cliques, lp->device, lp->variables, lp->label_count,
                                lp->stride, model->cliques, error));
    TRY(take_memory(lp, error));
    TRY(take_cuts(lp, error));
    return device_upload(lp->device, lp->unary, model->unary,
                         lp->variables * lp->stride * sizeof(float), error);
}

static dcrf_status lp_make(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model,
                           const struct dcrf_dual_space *space, dcrf_error *error) {
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
    TRY(device_enter(device, error));
    dcrf_backend_lp *lp = static_cast<dcrf_backend_lp *>(calloc(1, sizeof(dcrf_backend_lp)));
    if (!lp)
        return fail(error, DCRF_ERROR_MEMORY, "out of memory for " WHAT);
    lp->device = device;
    device_hold(device);
    lp->space = space;
    lp->variables = model->variables;
    lp->label_count = model->labels;
    lp->stride = model->stride;
    const dcrf_status status = take(lp, model, error);
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
    scratch<uint16_t> uploaded(lp->device);
    TRY(uploaded.take(lp->variables, WHAT, error));
    TRY(device_upload(lp->device, uploaded, labels, lp->variables * sizeof *labels, error));
    fill_labelling<<<blocks_for(lp->variables * lp->stride), THREADS, 0, lp->device->stream>>>(
        uploaded, lp->variables, (uint32_t)lp->stride, lp->y);
    return check(cudaGetLastError(), WHAT, error);
}

dcrf_status lp_write_block(dcrf_backend_lp *lp, double *to, const double *block,
                           dcrf_error *error) {
    const size_t count = lp->variables * lp->stride;
    return block ? device_upload(lp->device, to, block, count * sizeof *block, error)
                 : device_clear(lp->device, to, count, WHAT, error);
}

static dcrf_status lp_start(dcrf_backend_lp *lp, const float *y, const uint16_t *labels,
                            const float *metric, dcrf_error *error) {
    dcrf_backend_device *device = lp->device;
    const struct lp_dual *average = &lp->dual[DCRF_BACKEND_AVERAGE];
    const size_t n = lp->variables;
    lp->is_largest_known = lp->are_labels_known = false;
    TRY(device_enter(device, error));
    TRY(lp_write_block(lp, average->pairwise, nullptr, error));
    if (average->clique)
        TRY(lp_write_block(lp, average->clique, nullptr, error));
    if (lp->cliques.count > 0)
        TRY(device_upload(device, lp->stiffness, lp->space->stiffness,
                          lp->cliques.count * sizeof *lp->stiffness, error));
    if (lp->group_sums)
        TRY(device_upload(device, lp->group_sums, lp->space->group_sums,
                          lp->group_count * n * sizeof *lp->group_sums, error));
    TRY(y ? device_upload(device, lp->y, y, n * lp->stride * sizeof *y, error)
          : write_labelling(lp, labels, error));
    return device_upload(device, lp->metric, metric, n * sizeof *metric, error);
}

static dcrf_status lp_restart(dcrf_backend_lp *lp, dcrf_error *error) {
    lp->is_largest_known = false;
    TRY(device_enter(lp->device, error));
    return check(cudaMemcpyAsync(lp->z, lp->y, lp->variables * lp->stride * sizeof *lp->z,
                                 cudaMemcpyDeviceToDevice, lp->device->stream),
                 WHAT, error);
}

static dcrf_status lp_read(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, float *block,
                           dcrf_error *error) {
    TRY(device_enter(lp->device, error));
    return device_download(lp->device, block, which == DCRF_BACKEND_Y ? lp->y : lp->z,
                           lp->variables * lp->stride * sizeof *block, error);
}

static dcrf_status lp_labels(dcrf_backend_lp *lp, uint16_t *labels, dcrf_error *error) {
    TRY(device_enter(lp->device, error));
    return lp->are_labels_known ? device_download(lp->device, labels, lp->labels,
                                                  lp->variables * sizeof *labels, error)
                                : labels_download(lp->device, lp->y, lp->variables, lp->label_count,
                                                  lp->stride, labels, error);
}

static bool lp_view(const dcrf_backend_lp *lp, struct dcrf_marginals *rows) {
    (void)lp, (void)rows;
    return false;
}

static bool lp_view_best(const dcrf_backend_lp *lp, struct dcrf_dual *best) {
    (void)lp, (void)best;
    return false;
}

static dcrf_status lp_read_best(dcrf_backend_lp *lp, double *pairwise, double *clique,
                                dcrf_error *error) {
    const size_t bytes = lp->variables * lp->stride * sizeof *pairwise;
    const struct lp_dual *best = &lp->dual[DCRF_BACKEND_BEST];
    TRY(device_enter(lp->device, error));
    TRY(device_download(lp->device, pairwise, best->pairwise, bytes, error));
    return best->clique ? device_download(lp->device, clique, best->clique, bytes, error) : DCRF_OK;
}

static dcrf_status lp_write_best(dcrf_backend_lp *lp, const double *pairwise, dcrf_error *error) {
    TRY(device_enter(lp->device, error));
    return lp_write_block(lp, lp->dual[DCRF_BACKEND_BEST].pairwise, pairwise, error);
}

dcrf_status lp_read_answer(dcrf_backend_lp *lp, struct lp_answer *answer, dcrf_error *error) {
    static_assert(sizeof *answer <= DEVICE_FEW * sizeof *lp->device->few, "few is enough");
    TRY(check(cudaMemcpyAsync(lp->device->few, lp->answer, sizeof *answer, cudaMemcpyDeviceToHost,
                              lp->device->stream),
              WHAT, error));
    TRY(check(cudaStreamSynchronize(lp->device->stream), WHAT, error));
    memcpy(answer, lp->device->few, sizeof *answer);
    return DCRF_OK;
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
    scratch<float> weights(lp->device);
    TRY(weights.take(lp->variables, WHAT, error));
    TRY(device_upload(lp->device, weights, lp->space->clique_weight,
                      lp->variables * sizeof *weights, error));
    fill_rows<<<blocks_for(lp->variables * lp->stride), THREADS, 0, lp->device->stream>>>(
        weights, lp->variables, (uint32_t)lp->stride, v);
    return check(cudaGetLastError(), WHAT, error);
}

static dcrf_status lp_reset_best(dcrf_backend_lp *lp, struct dcrf_roundings roundings,
                                 double *bound, dcrf_error *error) {
    const struct lp_dual *best = &lp->dual[DCRF_BACKEND_BEST];
    struct lp_answer answer;
    TRY(device_enter(lp->device, error));
    TRY(lp_write_block(lp, best->pairwise, nullptr, error));
    if (best->clique)
        TRY(reset_cliques(lp, best->clique, error));
    TRY(lp_sum_lowest(lp, error));
    TRY(lp_read_answer(lp, &answer, error));
    *bound = bound_of(lp, roundings, answer.bounds[0]);
    return DCRF_OK;
}

/* ---- the cliques of z ------------------------------------------------------------------------ */

static dcrf_status lp_find_cliques(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    double *v = lp->dual[DCRF_BACKEND_CURRENT].clique;
    TRY(device_enter(lp->device, error));
    TRY(lp_write_block(lp, v, nullptr, error)); /* zero outside the cliques */
    return cliques_project(&lp->cliques, lp->stiffness, epsilon, lp->z, v, error);
}

/* ---- the step ------------------------------------------------------------------------------- */

static dcrf_status lp_advance(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                              struct dcrf_backend_advanced *done, dcrf_error *error) {
    struct lp_answer answer;
    lp->is_largest_known = lp->are_labels_known = false;
    TRY(device_enter(lp->device, error));
    TRY(device_clear(lp->device, lp->answer, 1, WHAT, error));
    TRY(lp_improve(lp, how, error));
    TRY(lp_descend(lp, how, error));
    TRY(lp_read_answer(lp, &answer, error));
    lp->is_largest_known = lp->are_labels_known = true;
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
        status = disagreements_on_device(lp->operators, lp->kernel_count, lp->labels, place_of,
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
