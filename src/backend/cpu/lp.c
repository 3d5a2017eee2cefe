/* The steps of the LP by Huber continuation on the CPU (the mathematics: lp/lp_huber.c). */
#include "backend/cpu/lp.h"

#include "backend/cpu/cpu.h"
#include "backend/simplex.h"
#include "core/error.h"
#include "core/memory.h"
#include "energy/labelling.h"

#include <math.h>
#include <string.h>

/* ---- memory --------------------------------------------------------------------------------- */

static void free_lp(dcrf_backend_lp *lp) {
    dcrf_clique_dual_clear(&lp->cliques);
    dcrf_lp_blocks_clear(&lp->blocks);
    dcrf_release(lp);
}

static dcrf_status make_lp(dcrf_backend_lp **out, dcrf_backend_device *device,
                           const struct dcrf_backend_model *model,
                           const struct dcrf_dual_space *space, dcrf_error *error) {
    (void)device;
    *out = NULL;
    dcrf_backend_lp *lp = dcrf_allocate_zero(1, sizeof *lp);
    if (!lp)
        return dcrf_fail_memory(error, "the LP relaxation");
    lp->model = model->plan->model;
    lp->pool = dcrf_workspace_pool(model->workspace);
    dcrf_status status = dcrf_lp_blocks_init(&lp->blocks, space, error);
    if (status == DCRF_OK)
        status = dcrf_clique_dual_init(&lp->cliques, &lp->blocks.space, error);
    if (status < 0)
        free_lp(lp);
    else
        *out = lp;
    return status;
}

/* ---- from and to the caller ----------------------------------------------------------------- */

/* Mark the labels that occur in y or in the labelling as wanted. */
static void want_labels(dcrf_backend_lp *lp, const float *y, const uint16_t *labels) {
    const dcrf_model *model = lp->model;
    bool *is_wanted = lp->blocks.is_wanted;
    for (size_t a = 0; a < model->variables; a++)
        if (!y)
            is_wanted[labels[a]] = true;
        else
            for (size_t i = 0; i < model->labels; i++)
                is_wanted[i] |= y[a * model->stride + i] > 0;
}

struct corners {
    const struct dcrf_lp_blocks *blocks;
    const uint16_t *labels;
};

/* y of a labelling. */
static void fill_corners(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct corners *corners = context;
    const struct dcrf_lp_blocks *blocks = corners->blocks;
    const size_t stride = blocks->space.stride;
    memset(blocks->y + begin * stride, 0, (end - begin) * stride * sizeof *blocks->y);
    for (size_t a = begin; a < end; a++)
        blocks->y[a * stride + blocks->column_of[corners->labels[a]]] = 1;
}

static dcrf_status start(dcrf_backend_lp *lp, const float *y, const uint16_t *labels,
                         const float *metric, dcrf_error *error) {
    struct dcrf_lp_blocks *blocks = &lp->blocks;
    lp->metric = metric;
    want_labels(lp, y, labels);
    const dcrf_status status = dcrf_lp_blocks_widen(blocks, error);
    if (status < 0)
        return status;
    dcrf_dual_reset(&blocks->dual[DCRF_BACKEND_AVERAGE], &blocks->space);
    struct corners corners = {blocks, labels};
    if (y)
        dcrf_lp_blocks_write(blocks, y, blocks->y);
    else
        dcrf_parallel_rows(lp->pool, lp->model->variables, fill_corners, &corners);
    return DCRF_OK;
}

static dcrf_status restart(dcrf_backend_lp *lp, dcrf_error *error) {
    (void)error;
    const struct dcrf_lp_blocks *blocks = &lp->blocks;
    dcrf_parallel_copy(lp->pool, blocks->z, blocks->y,
                       lp->model->variables * blocks->space.stride * sizeof *blocks->z);
    return DCRF_OK;
}

static bool view(const dcrf_backend_lp *lp, struct dcrf_marginals *rows) {
    const struct dcrf_lp_blocks *blocks = &lp->blocks;
    *rows = (struct dcrf_marginals){blocks->y, lp->model->variables, blocks->space.labels,
                                    blocks->space.stride, NULL};
    if (dcrf_lp_blocks_share(blocks)) {
        rows->labels = blocks->used;
        rows->label_of = blocks->label_of;
    }
    return blocks->y;
}

static dcrf_status read_marginals(dcrf_backend_lp *lp, enum dcrf_backend_marginals which,
                                  float *block, dcrf_error *error) {
    (void)error;
    dcrf_lp_blocks_read(&lp->blocks, which == DCRF_BACKEND_Y ? lp->blocks.y : lp->blocks.z,
                        sizeof *block, block);
    return DCRF_OK;
}

static dcrf_status read_labels(dcrf_backend_lp *lp, uint16_t *labels, dcrf_error *error) {
    (void)error;
    struct dcrf_marginals rows;
    view(lp, &rows);
    dcrf_labels_of_marginals(&rows, lp->pool, labels);
    return DCRF_OK;
}

static bool view_best(const dcrf_backend_lp *lp, struct dcrf_dual *best) {
    const struct dcrf_lp_blocks *blocks = &lp->blocks;
    best->pairwise = blocks->dual[DCRF_BACKEND_BEST].pairwise;
    best->clique = blocks->dual[DCRF_BACKEND_BEST].clique;
    best->column_of = dcrf_lp_blocks_share(blocks) ? blocks->column_of : NULL;
    best->column_stride = blocks->space.stride;
    return true;
}

static dcrf_status read_best(dcrf_backend_lp *lp, double *pairwise, double *clique,
                             dcrf_error *error) {
    (void)error;
    const struct dcrf_dual *best = &lp->blocks.dual[DCRF_BACKEND_BEST];
    dcrf_lp_blocks_read(&lp->blocks, best->pairwise, sizeof *pairwise, pairwise);
    if (best->clique)
        dcrf_lp_blocks_read(&lp->blocks, best->clique, sizeof *clique, clique);
    return DCRF_OK;
}

static dcrf_status reset_best(dcrf_backend_lp *lp, struct dcrf_roundings roundings, double *bound,
                              dcrf_error *error) {
    const bool is_first = !lp->blocks.y;
    const dcrf_status status = dcrf_lp_blocks_widen(&lp->blocks, error);
    if (status < 0)
        return status;
    struct dcrf_dual *best = &lp->blocks.dual[DCRF_BACKEND_BEST];
    dcrf_dual_reset(best, &lp->blocks.space);
    lp->blocks.is_blank = is_first;
    best->roundings = roundings;
    *bound = dcrf_dual_bound(&lp->blocks.space, best);
    return DCRF_OK;
}

static dcrf_status write_best(dcrf_backend_lp *lp, const double *pairwise, dcrf_error *error) {
    memset(lp->blocks.is_wanted, true, lp->model->labels * sizeof *lp->blocks.is_wanted);
    const dcrf_status status = dcrf_lp_blocks_widen(&lp->blocks, error);
    if (status == DCRF_OK)
        memcpy(lp->blocks.dual[DCRF_BACKEND_BEST].pairwise, pairwise,
               lp->model->variables * lp->model->stride * sizeof *pairwise);
    return status;
}

/* ---- the point of z ------------------------------------------------------------------------- */

static dcrf_status find_point(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                              double threshold, const struct dcrf_interrupt *interrupt,
                              dcrf_error *error) {
    lp->blocks.pairs.interrupt = interrupt;
    return dcrf_pair_dual(&lp->blocks.pairs, shape, lp->blocks.z, threshold,
                          &lp->blocks.dual[DCRF_BACKEND_CURRENT], error);
}

static dcrf_status find_cliques(dcrf_backend_lp *lp, double epsilon, dcrf_error *error) {
    (void)error;
    dcrf_clique_project(&lp->cliques, NULL, lp->blocks.z, epsilon, 0,
                        &lp->blocks.dual[DCRF_BACKEND_CURRENT]);
    return DCRF_OK;
}

/* ---- the step ------------------------------------------------------------------------------- */

/* y = P(z + tau (A alpha + v - phi)). The sums: the objective, which is phi'z + the smoothed
 * pairwise and clique terms as the dual point sees them; sum_a D_a <z - y, y - previous>, which is
 * positive where the momentum points uphill; and the number of variables whose y uses the shared
 * column. */
enum { OBJECTIVE, UPHILL, NEW_LABELS, DESCEND_SUMS };

/* A row's part of the objective, at z. */
static double add_objective(const struct dcrf_lp_blocks *blocks, size_t a, double sum) {
    const struct dcrf_dual_space *space = &blocks->space;
    const struct dcrf_dual *current = &blocks->dual[DCRF_BACKEND_CURRENT];
    const float *unary = dcrf_dual_unary(space);
    for (size_t k = a * space->stride; k < a * space->stride + space->labels; k++) {
        const double dual = current->pairwise[k] + (current->clique ? current->clique[k] : 0);
        sum += (double)blocks->z[k] * ((double)unary[k] - dual);
    }
    return sum;
}

static void descend_rows(const dcrf_backend_lp *lp, size_t begin, size_t end, double *sums) {
    const struct dcrf_lp_blocks *blocks = &lp->blocks;
    const struct dcrf_dual_space *space = &blocks->space;
    const struct dcrf_dual *current = &blocks->dual[DCRF_BACKEND_CURRENT];
    const float *unary = dcrf_dual_unary(space);
    for (size_t a = begin; a < end; a++) {
        sums[OBJECTIVE] = add_objective(blocks, a, sums[OBJECTIVE]);
        const size_t row = a * space->stride;
        const float tau = (float)lp->epsilon / lp->metric[a];
        float *y = blocks->y + row;
        const float *z = blocks->z + row;
        for (size_t i = 0; i < space->labels; i++)
            y[i] = z[i] + tau * ((float)current->pairwise[row + i] - unary[row + i]);
        if (current->clique)
            for (size_t i = 0; i < space->labels; i++)
                y[i] += tau * (float)current->clique[row + i];
    }
    dcrf_simplex_project_rows(blocks->y + begin * space->stride, space->stride, end - begin,
                              space->labels);
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * space->stride;
        const float *y = blocks->y + row, *z = blocks->z + row;
        float sum = 0;
        for (size_t i = 0; i < space->labels; i++)
            sum += (z[i] - y[i]) * (y[i] - blocks->previous[row + i]);
        sums[UPHILL] += (double)(lp->metric[a] * sum);
        sums[NEW_LABELS] += dcrf_lp_blocks_share(blocks) && y[blocks->used] > 0;
    }
}

static void descend(void *context, size_t begin, size_t end, double *sums) {
    for (size_t a = begin; a < end; a += DCRF_SIMPLEX_ROWS)
        descend_rows(context, a, end - a < DCRF_SIMPLEX_ROWS ? end : a + DCRF_SIMPLEX_ROWS, sums);
}

/* Epsilon times the derivative of the smoothed objective. */
static double slope_at(const dcrf_backend_lp *lp, size_t cell) {
    const struct dcrf_dual *current = &lp->blocks.dual[DCRF_BACKEND_CURRENT];
    const double dual = current->pairwise[cell] + (current->clique ? current->clique[cell] : 0);
    return lp->epsilon * ((double)dcrf_dual_unary(&lp->blocks.space)[cell] - dual);
}

/* The same in the metric of the cuts plus lp->metric; every label has its own column. */
static void descend_cuts(void *context, size_t begin, size_t end, double *sums) {
    const dcrf_backend_lp *lp = context;
    const struct dcrf_lp_blocks *blocks = &lp->blocks;
    const struct dcrf_dual_space *space = &blocks->space;
    double gradient[DCRF_CUTS_MOST_LABELS];
    for (size_t a = begin; a < end; a++) {
        sums[OBJECTIVE] = add_objective(blocks, a, sums[OBJECTIVE]);
        const size_t row = a * space->stride;
        float *y = blocks->y + row;
        const float *previous = blocks->previous + row;
        for (size_t i = 0; i < space->labels; i++)
            gradient[i] = slope_at(lp, row + i);
        dcrf_cut_step_take(space, a, (double)lp->metric[a], blocks->z + row, y, gradient);
        for (size_t i = 0; i < space->labels; i++)
            sums[UPHILL] += (slope_at(lp, row + i) - gradient[i]) * (double)(y[i] - previous[i]);
    }
}

/* Where y uses the shared column: mark as wanted the labels that would get a share of it. */
static void want_new_labels(dcrf_backend_lp *lp) {
    const struct dcrf_lp_blocks *blocks = &lp->blocks;
    for (size_t a = 0; a < lp->model->variables; a++) {
        const size_t row = a * blocks->space.stride;
        const float share = blocks->y[row + blocks->used];
        const float lowest = blocks->unary[row + blocks->used];
        const float tau = (float)lp->epsilon / lp->metric[a];
        for (size_t i = 0; i < lp->model->labels && share > 0; i++)
            blocks->is_wanted[i] |=
                blocks->column_of[i] == blocks->used &&
                tau * (lp->model->unary[a * lp->model->stride + i] - lowest) < share;
    }
}

static dcrf_status find_y(dcrf_backend_lp *lp, struct dcrf_backend_advanced *done,
                          dcrf_error *error) {
    double sums[DESCEND_SUMS];
    for (;;) {
        dcrf_parallel_sums(lp->pool, lp->model->variables,
                           lp->blocks.space.is_potts ? descend : descend_cuts, lp, sums,
                           DESCEND_SUMS);
        done->objective = sums[OBJECTIVE];
        done->uphill = sums[UPHILL];
        if (sums[NEW_LABELS] == 0)
            return DCRF_OK;
        want_new_labels(lp);
        const dcrf_status status = dcrf_lp_blocks_widen(&lp->blocks, error);
        if (status < 0)
            return status;
    }
}

/* After steps on the majorant. */
static double sum_uphill(void *context, size_t begin, size_t end) {
    const dcrf_backend_lp *lp = context;
    const struct dcrf_lp_blocks *blocks = &lp->blocks;
    double uphill = 0;
    for (size_t a = begin; a < end; a++) {
        float sum = 0;
        for (size_t k = a * blocks->space.stride; k < (a + 1) * blocks->space.stride; k++)
            sum += (blocks->z[k] - blocks->y[k]) * (blocks->y[k] - blocks->previous[k]);
        uphill += (double)(lp->metric[a] * sum);
    }
    return uphill;
}

static void extrapolate(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_lp *lp = context;
    const size_t stride = lp->blocks.space.stride;
    const float *y = lp->blocks.y, *previous = lp->blocks.previous, beta = lp->beta;
    float *z = lp->blocks.z;
    for (size_t k = begin * stride; k < end * stride; k++) {
        const float value = y[k] + beta * (y[k] - previous[k]);
        z[k] = value < 0 ? 0 : value > 1 ? 1 : value;
    }
}

static void improve(struct dcrf_lp_blocks *blocks, const struct dcrf_backend_advance *how,
                    struct dcrf_backend_advanced *done) {
    static const enum dcrf_backend_dual targets[] = {DCRF_BACKEND_CURRENT, DCRF_BACKEND_AVERAGE};
    dcrf_dual_mix(&blocks->space, &blocks->dual[DCRF_BACKEND_AVERAGE],
                  &blocks->dual[DCRF_BACKEND_CURRENT], how->average_weight);
    for (size_t k = 0; k < DCRF_BACKEND_DUALS; k++)
        blocks->dual[k].roundings = how->roundings[k];
    for (size_t t = 0; t < DCRF_BACKEND_TARGETS; t++) {
        done->weights[t] = 0;
        done->bounds[t] = -(double)INFINITY;
        if (t == DCRF_BACKEND_TO_CURRENT || how->has_average)
            done->weights[t] = dcrf_dual_improve(&blocks->space, &blocks->dual[DCRF_BACKEND_BEST],
                                                 &blocks->dual[targets[t]], &done->bounds[t]);
    }
}

static dcrf_status advance(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                           struct dcrf_backend_advanced *done, dcrf_error *error) {
    const size_t n = lp->model->variables;
    struct dcrf_lp_blocks *blocks = &lp->blocks;
    float *swap = blocks->previous;
    improve(blocks, how, done);
    blocks->previous = blocks->y;
    blocks->y = swap;
    lp->epsilon = how->epsilon;
    dcrf_status status = find_y(lp, done, error);
    if (status == DCRF_OK && how->inner_steps > 0) {
        status = dcrf_lp_majorant(blocks, lp->metric, how->epsilon, how->inner_steps,
                                  done->decrease, error);
        done->uphill = dcrf_parallel_sum(lp->pool, n, sum_uphill, lp);
    }
    lp->beta = done->uphill > 0 ? 0 : how->beta;
    dcrf_parallel_rows(lp->pool, n, extrapolate, lp);
    return status;
}

const struct dcrf_backend_lp_methods dcrf_cpu_lp = {
    .make = make_lp,
    .free = free_lp,
    .start = start,
    .restart = restart,
    .view = view,
    .read = read_marginals,
    .labels = read_labels,
    .view_best = view_best,
    .read_best = read_best,
    .reset_best = reset_best,
    .write_best = write_best,
    .find_point = find_point,
    .find_cliques = find_cliques,
    .advance = advance,
    .proximal = &dcrf_cpu_proximal,
};
