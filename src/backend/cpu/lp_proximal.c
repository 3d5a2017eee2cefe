/* The proximal steps of the LP on the CPU (the mathematics: lp/lp_proximal.c). The centre is the
 * block `previous`. */
#include "backend/cpu/lp.h"
#include "backend/simplex.h"

#include <string.h>

static float value(const struct dcrf_dual *dual, size_t at) {
    return (float)(dual->pairwise[at] + (dual->clique ? dual->clique[at] : 0));
}

/* -D at an entry. */
static double fall(const struct dcrf_lp_blocks *blocks, size_t at) {
    return (double)value(&blocks->dual[DCRF_BACKEND_AVERAGE], at) -
           (double)value(&blocks->dual[DCRF_BACKEND_CURRENT], at);
}

/* Every label gets its own column: vertices and projections are for all of them. */
static dcrf_status begin(dcrf_backend_lp *lp, bool has_reset, dcrf_error *error) {
    struct dcrf_lp_blocks *blocks = &lp->blocks;
    memset(blocks->is_wanted, true, lp->model->labels * sizeof *blocks->is_wanted);
    const dcrf_status status = dcrf_lp_blocks_widen(blocks, error);
    if (status < 0)
        return status;
    if (has_reset)
        dcrf_dual_reset(&blocks->dual[DCRF_BACKEND_AVERAGE], &blocks->space);
    dcrf_parallel_copy(lp->pool, blocks->previous, blocks->y,
                       lp->model->variables * blocks->space.stride * sizeof *blocks->y);
    return DCRF_OK;
}

struct projection {
    const struct dcrf_lp_blocks *blocks;
    float lambda, delta;
    float *out; /* a block */
};

static double project_rows(void *context, size_t begin, size_t end) {
    const struct projection *p = context;
    const struct dcrf_lp_blocks *blocks = p->blocks;
    const struct dcrf_dual_space *space = &blocks->space;
    const float *unary = dcrf_dual_unary(space);
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * space->stride;
        for (size_t k = row; k < row + space->labels; k++) {
            const float now = value(&blocks->dual[DCRF_BACKEND_AVERAGE], k);
            const float towards =
                p->delta == 0 ? 0 : value(&blocks->dual[DCRF_BACKEND_CURRENT], k) - now;
            p->out[k] = blocks->previous[k] + p->lambda * (now + p->delta * towards - unary[k]);
        }
        dcrf_simplex_project(p->out + row, space->labels);
        for (size_t k = row; k < row + space->labels && p->delta != 0; k++)
            sum += (double)p->out[k] * fall(blocks, k);
    }
    return sum;
}

static dcrf_status project(dcrf_backend_lp *lp, enum dcrf_backend_marginals which, double lambda,
                           double delta, double *slope, dcrf_error *error) {
    (void)error;
    struct projection projection = {&lp->blocks, (float)lambda, (float)delta,
                                    which == DCRF_BACKEND_Y ? lp->blocks.y : lp->blocks.z};
    const double sum = dcrf_parallel_sum(lp->pool, lp->model->variables, project_rows, &projection);
    if (slope)
        *slope = sum;
    return DCRF_OK;
}

static dcrf_status find_cliques(dcrf_backend_lp *lp, double step, dcrf_error *error) {
    (void)error;
    struct dcrf_lp_blocks *blocks = &lp->blocks;
    struct dcrf_dual *current = &blocks->dual[DCRF_BACKEND_CURRENT];
    if (step == 0)
        dcrf_clique_vertex(&lp->cliques, blocks->z, current);
    else
        dcrf_clique_project(&lp->cliques, blocks->dual[DCRF_BACKEND_AVERAGE].clique, blocks->z, 0,
                            step, current);
    return DCRF_OK;
}

static void sum_rows(void *context, size_t begin, size_t end, double *sums) {
    const struct dcrf_lp_blocks *blocks = context;
    const struct dcrf_dual_space *space = &blocks->space;
    const float *unary = dcrf_dual_unary(space);
    for (size_t a = begin; a < end; a++)
        for (size_t k = a * space->stride; k < a * space->stride + space->labels; k++) {
            const double z = (double)blocks->z[k], difference = fall(blocks, k);
            sums[DCRF_BACKEND_FW_GAP] += z * difference;
            sums[DCRF_BACKEND_FW_SQUARES] += difference * difference;
            sums[DCRF_BACKEND_FW_OBJECTIVE] +=
                z * ((double)unary[k] - (double)value(&blocks->dual[DCRF_BACKEND_CURRENT], k));
        }
}

static dcrf_status measure(dcrf_backend_lp *lp, double *sums, dcrf_error *error) {
    (void)error;
    dcrf_parallel_sums(lp->pool, lp->model->variables, sum_rows, &lp->blocks, sums,
                       DCRF_BACKEND_FW_SUMS);
    return DCRF_OK;
}

static dcrf_status mix(dcrf_backend_lp *lp, double delta, struct dcrf_roundings roundings,
                       double *bound, dcrf_error *error) {
    (void)error;
    struct dcrf_lp_blocks *blocks = &lp->blocks;
    struct dcrf_dual *average = &blocks->dual[DCRF_BACKEND_AVERAGE];
    if (delta > 0)
        dcrf_dual_mix(&blocks->space, average, &blocks->dual[DCRF_BACKEND_CURRENT], delta);
    average->roundings = roundings;
    dcrf_dual_keep(&blocks->space, &blocks->dual[DCRF_BACKEND_BEST], average, bound);
    return DCRF_OK;
}

const struct dcrf_backend_proximal_methods dcrf_cpu_proximal = {
    .begin = begin,
    .project = project,
    .find_cliques = find_cliques,
    .measure = measure,
    .mix = mix,
};
