/* The QP relaxation (Joy et al., section 4 and appendix A.1), by Frank-Wolfe.
 *
 *   f(y, z) = phi'y + y' Psi y + sum_p C_p sum_i ( z_pi + (1 - z_pi) h_pi ),
 *   h_pi = sum_{a in p} (1 - y_ai),   rows of y distributions, 0 <= z <= 1.
 *
 * At an integral y with the best z this is E(x) + (M - 1) sum_p C_p; that constant is subtracted
 * from what is reported. The gradient is
 *
 *   g_ai = phi_ai + 2 (Psi y)_ai - C_p (1 - z_pi),   C_p (1 - h_pi) for z_pi,
 *
 * so the linear minimizer s has one label a variable and z = [h > 1]. Along d = s - y, e = s_z - z,
 * with h' the change of h, f changes by delta L + delta^2 Q, where
 *
 *   L = <g, d> + sum_pi C_p e (1 - h),   Q = d' Psi d - sum_pi C_p e h'.
 *
 * -L >= 0 is the Frank-Wolfe gap, zero exactly at stationary points. The best delta in [0, 1] is
 * -L / 2Q, or 1 where Q <= 0 or that is larger. f is not convex (K has no diagonal), so this finds
 * a stationary point (Lacoste-Julien 2016).
 *
 * One filter application an iteration: Psi s. The field B of y (energy/coupling.h) follows as
 * B + delta (B of s - B), a convex combination, so rounding does not build up. Rows of d add up to
 * zero: the part of Psi that B leaves out cancels in L and Q. */
#include "core/error.h"
#include "core/memory.h"
#include "energy/coupling.h"
#include "round/round.h"
#include "solver/method.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define CLIQUES_PER_CHUNK 8

struct qp {
    const struct dcrf_problem *problem;
    struct dcrf_coupling *coupling;
    float *y;
    float *field;        /* of y */
    float *vertex;       /* s as a block */
    float *vertex_field; /* of s */
    uint16_t *vertex_of; /* s as labels */
    uint32_t
        *clique_of; /* variable -> clique, DCRF_NO_CLIQUE: none; NULL where there are no cliques */
    double *z, *h;  /* one row of M a clique */
    double *vertex_h;     /* h of s */
    double *clique_parts; /* three sums a clique */
    double step;          /* the delta to take */
    double linear;        /* L at y */
    double objective;     /* f at y, without the constant */
};

static void qp_free(void *state) {
    struct qp *qp = state;
    if (!qp)
        return;
    dcrf_coupling_free(&qp->coupling);
    dcrf_release(qp->y);
    dcrf_release(qp->field);
    dcrf_release(qp->vertex);
    dcrf_release(qp->vertex_field);
    dcrf_release(qp->vertex_of);
    dcrf_release(qp->clique_of);
    dcrf_release(qp->z);
    dcrf_release(qp->h);
    dcrf_release(qp->vertex_h);
    dcrf_release(qp->clique_parts);
    dcrf_release(qp);
}

static bool take_memory(struct qp *qp) {
    const dcrf_model *model = qp->problem->model;
    const size_t row = model->stride * sizeof(float);
    qp->y = dcrf_allocate_zero(model->variables, row);
    qp->field = dcrf_allocate_zero(model->variables, row);
    qp->vertex = dcrf_allocate_zero(model->variables, row);
    qp->vertex_field = dcrf_allocate_zero(model->variables, row);
    qp->vertex_of = dcrf_allocate_zero(model->variables, sizeof *qp->vertex_of);
    if (!qp->y || !qp->field || !qp->vertex || !qp->vertex_field || !qp->vertex_of)
        return false;
    if (model->cliques.count == 0)
        return true;
    const size_t clique_row = model->labels * sizeof(double);
    qp->clique_of = dcrf_allocate(model->variables, sizeof *qp->clique_of);
    qp->z = dcrf_allocate(model->cliques.count, clique_row);
    qp->h = dcrf_allocate(model->cliques.count, clique_row);
    qp->vertex_h = dcrf_allocate(model->cliques.count, clique_row);
    qp->clique_parts = dcrf_allocate(model->cliques.count, 3 * sizeof(double));
    return qp->clique_of && qp->z && qp->h && qp->vertex_h && qp->clique_parts;
}

static dcrf_status qp_init(void **state, const struct dcrf_problem *problem, dcrf_error *error) {
    *state = NULL;
    struct qp *qp = dcrf_allocate_zero(1, sizeof *qp);
    if (!qp)
        return dcrf_fail_memory(error, "the QP relaxation");
    qp->problem = problem;
    dcrf_status status = dcrf_coupling_new(&qp->coupling, problem->plan, problem->workspace, error);
    if (status == DCRF_OK && !take_memory(qp))
        status = dcrf_fail_memory(error, "the QP relaxation");
    if (status < 0) {
        qp_free(qp);
        return status;
    }
    if (qp->clique_of)
        dcrf_model_clique_of(problem->model, qp->clique_of);
    *state = qp;
    return DCRF_OK;
}

/* ---- cliques -------------------------------------------------------------------------------- */

/* h of y, and with it z at its minimum where `first`, or moved by the step. */
static void read_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct qp *qp = context;
    const dcrf_model *model = qp->problem->model;
    const struct dcrf_cliques *cliques = &model->cliques;
    for (size_t p = begin; p < end; p++) {
        double *h = qp->h + p * model->labels;
        memset(h, 0, model->labels * sizeof *h);
        for (size_t c = cliques->offsets[p]; c < cliques->offsets[p + 1]; c++) {
            const float *y = qp->y + cliques->members[c] * model->stride;
            for (size_t i = 0; i < model->labels; i++)
                h[i] += 1 - (double)y[i];
        }
        for (size_t i = 0; i < model->labels; i++)
            qp->z[p * model->labels + i] = h[i] > 1;
    }
}

/* The cliques' parts of f, L and Q; the vertex must be there. */
enum { PART_OBJECTIVE, PART_LINEAR, PART_QUADRATIC };

static void sum_clique(const struct qp *qp, size_t p, double parts[3]) {
    const dcrf_model *model = qp->problem->model;
    const struct dcrf_cliques *cliques = &model->cliques;
    const double size = (double)(cliques->offsets[p + 1] - cliques->offsets[p]);
    const double *h = qp->h + p * model->labels, *z = qp->z + p * model->labels;
    double *vertex_h = qp->vertex_h + p * model->labels;
    for (size_t i = 0; i < model->labels; i++)
        vertex_h[i] = size;
    for (size_t c = cliques->offsets[p]; c < cliques->offsets[p + 1]; c++)
        vertex_h[qp->vertex_of[cliques->members[c]]] -= 1;
    double objective = 1 - (double)model->labels, linear = 0, quadratic = 0;
    for (size_t i = 0; i < model->labels; i++) {
        const double change = (h[i] > 1) - z[i];
        objective += z[i] + (1 - z[i]) * h[i];
        linear += change * (1 - h[i]);
        quadratic -= change * (vertex_h[i] - h[i]);
    }
    parts[PART_OBJECTIVE] = cliques->costs[p] * objective;
    parts[PART_LINEAR] = cliques->costs[p] * linear;
    parts[PART_QUADRATIC] = cliques->costs[p] * quadratic;
}

static void sum_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct qp *qp = context;
    for (size_t p = begin; p < end; p++)
        sum_clique(qp, p, qp->clique_parts + 3 * p);
}

static void move_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct qp *qp = context;
    const size_t labels = qp->problem->model->labels;
    for (size_t k = begin * labels; k < end * labels; k++) {
        qp->z[k] += qp->step * ((qp->h[k] > 1) - qp->z[k]);
        qp->h[k] += qp->step * (qp->vertex_h[k] - qp->h[k]);
    }
}

static void for_cliques(struct qp *qp, dcrf_task task) {
    dcrf_parallel_for(dcrf_workspace_pool(qp->problem->workspace),
                      qp->problem->model->cliques.count, CLIQUES_PER_CHUNK, task, qp);
}

/* ---- variables ------------------------------------------------------------------------------ */

/* Take the step, then find f and the vertex at the new y. */
static void move_rows(void *context, size_t begin, size_t end, double *sums) {
    const struct qp *qp = context;
    const dcrf_model *model = qp->problem->model;
    const float step = (float)qp->step, slope = 2 * qp->coupling->own_factor;
    const double own = (double)qp->coupling->own_factor, all = (double)qp->coupling->all_factor;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * model->stride;
        const float *unary = model->unary + row;
        float *y = qp->y + row, *field = qp->field + row;
        float *vertex = qp->vertex + row, *vertex_field = qp->vertex_field + row;
        const uint32_t p = qp->clique_of ? qp->clique_of[a] : DCRF_NO_CLIQUE;
        const double *z = p != DCRF_NO_CLIQUE ? qp->z + p * model->labels : NULL;
        const double cost = p != DCRF_NO_CLIQUE ? model->cliques.costs[p] : 0;
        float smallest = INFINITY;
        size_t best = 0;
        double objective = 0, expected = 0;
        for (size_t i = 0; i < model->labels; i++) {
            y[i] += step * (vertex[i] - y[i]);
            field[i] += step * (vertex_field[i] - field[i]);
            float gradient = unary[i] + slope * field[i];
            if (z)
                gradient -= (float)(cost * (1 - z[i]));
            if (gradient < smallest) {
                smallest = gradient;
                best = i;
            }
            objective +=
                (double)y[i] * (double)unary[i] + (double)field[i] * (all + own * (double)y[i]);
            expected += (double)y[i] * (double)gradient;
        }
        memset(vertex, 0, model->stride * sizeof *vertex);
        vertex[best] = 1;
        qp->vertex_of[a] = (uint16_t)best;
        sums[0] += objective;
        sums[1] += (double)smallest - expected;
    }
}

static double quadratic_rows(void *context, size_t begin, size_t end) {
    const struct qp *qp = context;
    const dcrf_model *model = qp->problem->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * model->stride;
        const float *y = qp->y + row, *vertex = qp->vertex + row;
        const float *field = qp->field + row, *vertex_field = qp->vertex_field + row;
        for (size_t i = 0; i < model->labels; i++)
            sum +=
                ((double)vertex[i] - (double)y[i]) * ((double)vertex_field[i] - (double)field[i]);
    }
    return (double)qp->coupling->own_factor * sum;
}

/* Take the step; then f, L and the vertex at the new point. */
static void move(struct qp *qp) {
    const size_t clique_count = qp->problem->model->cliques.count;
    double sums[2];
    dcrf_parallel_sums(dcrf_workspace_pool(qp->problem->workspace), qp->problem->model->variables,
                       move_rows, qp, sums, 2);
    qp->objective = sums[0];
    qp->linear = sums[1];
    for_cliques(qp, sum_cliques);
    for (size_t p = 0; p < clique_count; p++) {
        qp->objective += qp->clique_parts[3 * p + PART_OBJECTIVE];
        qp->linear += qp->clique_parts[3 * p + PART_LINEAR];
    }
}

static dcrf_status qp_start(void *state, const struct dcrf_start *start, dcrf_error *error) {
    struct qp *qp = state;
    const dcrf_model *model = qp->problem->model;
    if (start->y) {
        memcpy(qp->y, start->y, model->variables * model->stride * sizeof *qp->y);
    } else { /* the minimum of the unary energies */
        dcrf_label_by_unary(model, qp->vertex_of);
        dcrf_round_inverse(qp->vertex_of, model->variables, model->stride, qp->y);
    }
    const dcrf_status status = dcrf_coupling_field(qp->coupling, qp->y, qp->field, error);
    if (status < 0)
        return status;
    for_cliques(qp, read_cliques);
    qp->step = 0;
    memset(qp->vertex, 0, model->variables * model->stride * sizeof *qp->vertex);
    memset(qp->vertex_field, 0, model->variables * model->stride * sizeof *qp->vertex_field);
    move(qp);
    return DCRF_OK;
}

static dcrf_status qp_step(void *state, struct dcrf_step_report *report, dcrf_error *error) {
    struct qp *qp = state;
    const dcrf_model *model = qp->problem->model;
    const dcrf_status status =
        dcrf_coupling_field(qp->coupling, qp->vertex, qp->vertex_field, error);
    if (status < 0)
        return status;
    double quadratic = dcrf_parallel_sum(dcrf_workspace_pool(qp->problem->workspace),
                                         model->variables, quadratic_rows, qp);
    for (size_t p = 0; p < model->cliques.count; p++)
        quadratic += qp->clique_parts[3 * p + PART_QUADRATIC];
    /* Where rounding has made L positive there is nothing left to gain. */
    qp->step = qp->linear >= 0                ? 0
               : -qp->linear >= 2 * quadratic ? 1
                                              : -qp->linear / (2 * quadratic);
    for_cliques(qp, move_cliques);
    move(qp);
    report->objective = qp->objective;
    report->stationarity = -qp->linear / (fabs(qp->objective) + DBL_MIN);
    return DCRF_OK;
}

static const float *qp_marginals(const void *state) {
    return ((const struct qp *)state)->y;
}

const struct dcrf_method_interface dcrf_qp = {
    .name = "the QP relaxation",
    .init = qp_init,
    .start = qp_start,
    .step = qp_step,
    .marginals = qp_marginals,
    .free = qp_free,
};
