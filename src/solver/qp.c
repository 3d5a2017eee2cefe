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
 * zero: the part of Psi that B leaves out cancels in L and Q.
 *
 * Where the plan is on a device, all of that is there, and L, Q and f come here. */
#include "core/error.h"
#include "core/memory.h"
#include "energy/clique_terms.h"
#include "energy/coupling.h"
#include "round/round.h"
#include "solver/iterate.h"
#include "solver/method.h"

#include <assert.h>
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
    double *clique_parts; /* the cliques' parts of f, L and Q */
    double step;          /* the delta to take */
    double linear;        /* L at y */
    double objective;     /* f at y, without the constant */
    struct dcrf_iterate device;
};

static void qp_free(void *state) {
    struct qp *qp = state;
    if (!qp)
        return;
    dcrf_iterate_clear(&qp->device);
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
    if (!qp->y || qp->device.there)
        return qp->y;
    qp->field = dcrf_allocate_zero(model->variables, row);
    qp->vertex = dcrf_allocate_zero(model->variables, row);
    qp->vertex_field = dcrf_allocate_zero(model->variables, row);
    qp->vertex_of = dcrf_allocate_zero(model->variables, sizeof *qp->vertex_of);
    if (!qp->field || !qp->vertex || !qp->vertex_field || !qp->vertex_of)
        return false;
    if (model->cliques.count == 0)
        return true;
    const size_t clique_row = model->labels * sizeof(double);
    qp->clique_of = dcrf_allocate(model->variables, sizeof *qp->clique_of);
    qp->z = dcrf_allocate(model->cliques.count, clique_row);
    qp->h = dcrf_allocate(model->cliques.count, clique_row);
    qp->vertex_h = dcrf_allocate(model->cliques.count, clique_row);
    qp->clique_parts = dcrf_allocate(model->cliques.count, DCRF_QP_PARTS * sizeof(double));
    return qp->clique_of && qp->z && qp->h && qp->vertex_h && qp->clique_parts;
}

static dcrf_status qp_init(void **state, const struct dcrf_problem *problem, dcrf_error *error) {
    *state = NULL;
    struct qp *qp = dcrf_allocate_zero(1, sizeof *qp);
    if (!qp)
        return dcrf_fail_memory(error, "the QP relaxation");
    qp->problem = problem;
    dcrf_status status = dcrf_coupling_new(&qp->coupling, problem->plan, problem->workspace, error);
    if (status == DCRF_OK)
        status = dcrf_iterate_try(&qp->device, qp->coupling, error);
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
            qp->z[p * model->labels + i] = dcrf_best_z(h[i]);
    }
}

/* The parts of a clique; the vertex must be there. */
static void sum_clique(const struct qp *qp, size_t p, double *parts) {
    const dcrf_model *model = qp->problem->model;
    const struct dcrf_cliques *cliques = &model->cliques;
    const double size = (double)(cliques->offsets[p + 1] - cliques->offsets[p]);
    const double *h = qp->h + p * model->labels, *z = qp->z + p * model->labels;
    double *vertex_h = qp->vertex_h + p * model->labels;
    for (size_t i = 0; i < model->labels; i++)
        vertex_h[i] = size;
    for (size_t c = cliques->offsets[p]; c < cliques->offsets[p + 1]; c++)
        vertex_h[qp->vertex_of[cliques->members[c]]] -= 1;
    memset(parts, 0, DCRF_QP_PARTS * sizeof *parts);
    parts[DCRF_QP_OBJECTIVE] = 1 - (double)model->labels;
    for (size_t i = 0; i < model->labels; i++)
        dcrf_add_qp_terms(z[i], h[i], vertex_h[i], parts);
    for (size_t k = 0; k < DCRF_QP_PARTS; k++)
        parts[k] *= cliques->costs[p];
}

static void sum_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct qp *qp = context;
    for (size_t p = begin; p < end; p++)
        sum_clique(qp, p, qp->clique_parts + DCRF_QP_PARTS * p);
}

static void move_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct qp *qp = context;
    const size_t labels = qp->problem->model->labels;
    for (size_t k = begin * labels; k < end * labels; k++) {
        qp->z[k] += qp->step * (dcrf_best_z(qp->h[k]) - qp->z[k]);
        qp->h[k] += qp->step * (qp->vertex_h[k] - qp->h[k]);
    }
}

static void for_cliques(struct qp *qp, dcrf_task task) {
    dcrf_parallel_for(dcrf_workspace_pool(qp->problem->workspace),
                      qp->problem->model->cliques.count, CLIQUES_PER_CHUNK, task, qp);
}

/* ---- variables ------------------------------------------------------------------------------ */

/* Rows are taken DCRF_NARROW_LANES labels at a time, whose sums do not wait for each other. What
 * pads a row is zero and adds nothing. */
#define LANES DCRF_NARROW_LANES
static_assert(LANES == 4, "sums of lanes are added up by name");

static double total_of(const double *lane) {
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* The first of the smallest. */
static size_t smallest_of(const float *row, size_t count) {
    float least[LANES];
    size_t i = 0;
    for (size_t k = 0; k < LANES; k++)
        least[k] = INFINITY;
    for (; i + LANES <= count; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            least[k] = row[i + k] < least[k] ? row[i + k] : least[k];
    for (; i < count; i++)
        least[0] = row[i] < least[0] ? row[i] : least[0];
    for (size_t k = 1; k < LANES; k++)
        least[0] = least[k] < least[0] ? least[k] : least[0];
    for (i = 0; i < count; i++)
        if (row[i] == least[0])
            return i;
    return 0;
}

/* Take the step, then find f and the vertex at the new y. */
static void move_rows(void *context, size_t begin, size_t end, double *sums) {
    const struct qp *qp = context;
    const dcrf_model *model = qp->problem->model;
    const float step = (float)qp->step, slope = 2 * qp->coupling->own_factor;
    const double own = (double)qp->coupling->own_factor, all = (double)qp->coupling->all_factor;
    const size_t stride = model->stride;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * stride;
        const float *restrict unary = model->unary + row, *restrict to = qp->vertex_field + row;
        float *restrict y = qp->y + row, *restrict field = qp->field + row;
        float *restrict vertex = qp->vertex + row; /* the old one, then the gradient */
        const uint32_t p = qp->clique_of ? qp->clique_of[a] : DCRF_NO_CLIQUE;
        double objective[LANES] = {0}, expected[LANES] = {0};
        for (size_t i = 0; i < stride; i++) {
            y[i] += step * (vertex[i] - y[i]);
            field[i] += step * (to[i] - field[i]);
            vertex[i] = unary[i] + slope * field[i];
        }
        if (p != DCRF_NO_CLIQUE)
            for (size_t i = 0; i < model->labels; i++)
                vertex[i] -= (float)(model->cliques.costs[p] * (1 - qp->z[p * model->labels + i]));
        for (size_t i = 0; i < stride; i += LANES)
            for (size_t k = 0; k < LANES; k++) {
                const double own_y = (double)y[i + k];
                objective[k] +=
                    own_y * (double)unary[i + k] + (double)field[i + k] * (all + own * own_y);
                expected[k] += own_y * (double)vertex[i + k];
            }
        const size_t best = smallest_of(vertex, model->labels);
        sums[0] += total_of(objective);
        sums[1] += (double)vertex[best] - total_of(expected);
        memset(vertex, 0, stride * sizeof *vertex);
        vertex[best] = 1;
        qp->vertex_of[a] = (uint16_t)best;
    }
}

static double quadratic_rows(void *context, size_t begin, size_t end) {
    const struct qp *qp = context;
    const size_t stride = qp->problem->model->stride;
    double sum[LANES] = {0};
    for (size_t i = begin * stride; i < end * stride; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sum[k] += ((double)qp->vertex[i + k] - (double)qp->y[i + k]) *
                      ((double)qp->vertex_field[i + k] - (double)qp->field[i + k]);
    return (double)qp->coupling->own_factor * total_of(sum);
}

static double sum_parts(const struct qp *qp, size_t part) {
    double sum = 0;
    for (size_t p = 0; p < qp->problem->model->cliques.count; p++)
        sum += qp->clique_parts[DCRF_QP_PARTS * p + part];
    return sum;
}

/* f, L and the vertex at the point that a step from y leads to. */
static void find_vertex(struct qp *qp) {
    double sums[2];
    dcrf_parallel_sums(dcrf_workspace_pool(qp->problem->workspace), qp->problem->model->variables,
                       move_rows, qp, sums, 2);
    for_cliques(qp, sum_cliques);
    qp->objective = sums[0] + sum_parts(qp, DCRF_QP_OBJECTIVE);
    qp->linear = sums[1] + sum_parts(qp, DCRF_QP_LINEAR);
}

static dcrf_status start_here(struct qp *qp, const float *y, dcrf_error *error) {
    const dcrf_model *model = qp->problem->model;
    if (y) {
        memcpy(qp->y, y, model->variables * model->stride * sizeof *qp->y);
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
    find_vertex(qp);
    return DCRF_OK;
}

/* Q of the way to the vertex. */
static dcrf_status bend_here(struct qp *qp, double *quadratic, dcrf_error *error) {
    const dcrf_status status =
        dcrf_coupling_field(qp->coupling, qp->vertex, qp->vertex_field, error);
    if (status < 0)
        return status;
    *quadratic = dcrf_parallel_sum(dcrf_workspace_pool(qp->problem->workspace),
                                   qp->problem->model->variables, quadratic_rows, qp) +
                 sum_parts(qp, DCRF_QP_QUADRATIC);
    return DCRF_OK;
}

static void move_here(struct qp *qp) {
    for_cliques(qp, move_cliques);
    find_vertex(qp);
}

/* ---- here or there -------------------------------------------------------------------------- */

/* f and L from there. */
static dcrf_status take_sums(struct qp *qp, dcrf_status status, const double *sums) {
    qp->device.is_ahead = true;
    if (status == DCRF_OK) {
        qp->objective = sums[DCRF_BACKEND_QP_OBJECTIVE];
        qp->linear = sums[DCRF_BACKEND_QP_LINEAR];
    }
    return status;
}

static dcrf_status qp_start(void *state, const struct dcrf_start *start, dcrf_error *error) {
    struct qp *qp = state;
    const struct dcrf_iterate *device = &qp->device;
    double sums[DCRF_BACKEND_QP_SUMS];
    return device->there
               ? take_sums(qp, device->methods->qp_start(device->there, start->y, sums, error),
                           sums)
               : start_here(qp, start->y, error);
}

static dcrf_status bend(struct qp *qp, double *quadratic, dcrf_error *error) {
    const struct dcrf_iterate *device = &qp->device;
    return device->there ? device->methods->qp_bend(device->there, quadratic, error)
                         : bend_here(qp, quadratic, error);
}

static dcrf_status move(struct qp *qp, dcrf_error *error) {
    const struct dcrf_iterate *device = &qp->device;
    double sums[DCRF_BACKEND_QP_SUMS];
    if (device->there)
        return take_sums(qp, device->methods->qp_move(device->there, qp->step, sums, error), sums);
    move_here(qp);
    return DCRF_OK;
}

static dcrf_status qp_step(void *state, struct dcrf_step_report *report, dcrf_error *error) {
    struct qp *qp = state;
    double quadratic;
    dcrf_status status = bend(qp, &quadratic, error);
    if (status < 0)
        return status;
    /* Where rounding has made L positive there is nothing left to gain. */
    qp->step = qp->linear >= 0                ? 0
               : -qp->linear >= 2 * quadratic ? 1
                                              : -qp->linear / (2 * quadratic);
    status = move(qp, error);
    if (status < 0)
        return status;
    report->objective = qp->objective;
    report->stationarity = -qp->linear / (fabs(qp->objective) + DBL_MIN);
    return DCRF_OK;
}

static dcrf_status qp_fetch(void *state, dcrf_error *error) {
    struct qp *qp = state;
    return dcrf_iterate_fetch(&qp->device, qp->y, error);
}

static dcrf_status qp_labels(void *state, uint16_t *labels, dcrf_error *error) {
    return dcrf_iterate_labels(&((struct qp *)state)->device, labels, error);
}

static const float *qp_marginals(const void *state) {
    return ((const struct qp *)state)->y;
}

const struct dcrf_method_interface dcrf_qp = {
    .name = "the QP relaxation",
    .init = qp_init,
    .start = qp_start,
    .step = qp_step,
    .fetch = qp_fetch,
    .labels = qp_labels,
    .marginals = qp_marginals,
    .free = qp_free,
};
