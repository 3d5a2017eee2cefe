/* The steps of Frank-Wolfe for the QP relaxation on the CPU (the mathematics and the names:
 * qp/qp.c). */
#include "backend/clique_terms.h"
#include "backend/cpu/iterate.h"
#include "core/error.h"
#include "core/owned.h"
#include "energy/labelling.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct qp {
    dcrf_backend_iterate base;
    float *field;        /* of y */
    float *vertex;       /* s as a block */
    float *vertex_field; /* of s */
    uint16_t *vertex_of; /* s as labels */
    double step;         /* the delta to take */

    /* Cliques; NULL if there are none. */
    uint32_t *clique_of;  /* variable -> clique, DCRF_NO_CLIQUE: none */
    double *z, *h;        /* one row of labels per clique */
    double *vertex_h;     /* h of s */
    double *clique_parts; /* the cliques' parts of f, L and Q */
    struct dcrf_owned owned;
};

static struct qp *qp_of(dcrf_backend_iterate *iterate) {
    return (struct qp *)iterate;
}

static void free_qp(dcrf_backend_iterate *iterate) {
    struct qp *qp = qp_of(iterate);
    dcrf_disown(&qp->owned);
    dcrf_release(qp);
}

static bool take_cliques(struct qp *qp) {
    const dcrf_model *model = qp->base.model;
    const size_t count = dcrf_cpu_clique_count(&qp->base);
    const size_t row = model->labels * sizeof(double);
    if (count == 0)
        return true;
    qp->clique_of = dcrf_own(&qp->owned, model->variables, sizeof *qp->clique_of);
    qp->z = dcrf_own(&qp->owned, count, row);
    qp->h = dcrf_own(&qp->owned, count, row);
    qp->vertex_h = dcrf_own(&qp->owned, count, row);
    qp->clique_parts = dcrf_own(&qp->owned, count, DCRF_QP_PARTS * sizeof(double));
    if (qp->owned.is_short)
        return false;
    dcrf_model_clique_of(model, qp->clique_of);
    return true;
}

static bool take_memory(struct qp *qp) {
    const size_t n = qp->base.model->variables, row = qp->base.model->stride * sizeof(float);
    qp->base.y = dcrf_own_zero(&qp->owned, n, row);
    qp->field = dcrf_own_zero(&qp->owned, n, row);
    qp->vertex = dcrf_own_zero(&qp->owned, n, row);
    qp->vertex_field = dcrf_own_zero(&qp->owned, n, row);
    qp->vertex_of = dcrf_own_zero(&qp->owned, n, sizeof *qp->vertex_of);
    return !qp->owned.is_short && take_cliques(qp);
}

dcrf_status dcrf_cpu_qp_make(dcrf_backend_iterate **out, const struct dcrf_backend_model *model,
                             dcrf_error *error) {
    struct qp *qp = dcrf_allocate_zero(1, sizeof *qp);
    *out = NULL;
    if (!qp)
        return dcrf_fail_memory(error, "the QP relaxation");
    dcrf_cpu_iterate_init(&qp->base, model, free_qp);
    if (!take_memory(qp)) {
        free_qp(&qp->base);
        return dcrf_fail_memory(error, "the QP relaxation");
    }
    *out = &qp->base;
    return DCRF_OK;
}

/* ---- cliques -------------------------------------------------------------------------------- */

/* h of y, and the best z for it. */
static void read_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct qp *qp = context;
    const dcrf_model *model = qp->base.model;
    const struct dcrf_cliques *cliques = qp->base.cliques;
    for (size_t p = begin; p < end; p++) {
        double *h = qp->h + p * model->labels;
        memset(h, 0, model->labels * sizeof *h);
        for (size_t c = cliques->offsets[p]; c < cliques->offsets[p + 1]; c++) {
            const float *y = qp->base.y + cliques->members[c] * model->stride;
            for (size_t i = 0; i < model->labels; i++)
                h[i] += 1 - (double)y[i];
        }
        for (size_t i = 0; i < model->labels; i++)
            qp->z[p * model->labels + i] = dcrf_best_z(h[i]);
    }
}

/* A clique's parts of f, L and Q; the vertex must have been found. */
static void sum_clique(const struct qp *qp, size_t p, double *parts) {
    const dcrf_model *model = qp->base.model;
    const struct dcrf_cliques *cliques = qp->base.cliques;
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
    const size_t labels = qp->base.model->labels;
    for (size_t k = begin * labels; k < end * labels; k++) {
        qp->z[k] += qp->step * (dcrf_best_z(qp->h[k]) - qp->z[k]);
        qp->h[k] += qp->step * (qp->vertex_h[k] - qp->h[k]);
    }
}

static void for_cliques(struct qp *qp, dcrf_task task) {
    dcrf_parallel_for(qp->base.pool, dcrf_cpu_clique_count(&qp->base), DCRF_CLIQUES_PER_CHUNK, task,
                      qp);
}

/* ---- variables ------------------------------------------------------------------------------ */

/* Rows are processed DCRF_NARROW_LANES labels at a time, with independent sums. The padding of a
 * row is zero and adds nothing. */
#define LANES DCRF_NARROW_LANES
static_assert(LANES == 4, "sums of lanes are added up by name");

static double total_of(const double *lane) {
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* The index of the smallest, the first on a tie. */
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
    const dcrf_model *model = qp->base.model;
    const float step = (float)qp->step, slope = 2 * qp->base.coupling->same_label_factor;
    const double own = (double)qp->base.coupling->same_label_factor,
                 all = (double)qp->base.coupling->all_factor;
    const size_t stride = model->stride;
    for (size_t a = begin; a < end; a++) {
        const size_t row = a * stride;
        const float *restrict unary = model->unary + row, *restrict to = qp->vertex_field + row;
        float *restrict y = qp->base.y + row, *restrict field = qp->field + row;
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
                vertex[i] -=
                    (float)(qp->base.cliques->costs[p] * (1 - qp->z[p * model->labels + i]));
        for (size_t i = 0; i < stride; i += LANES)
            for (size_t k = 0; k < LANES; k++) {
                const double own_y = (double)y[i + k];
                objective[k] +=
                    own_y * (double)unary[i + k] + (double)field[i + k] * (all + own * own_y);
                expected[k] += own_y * (double)vertex[i + k];
            }
        const size_t best = smallest_of(vertex, model->labels);
        sums[DCRF_BACKEND_QP_OBJECTIVE] += total_of(objective);
        sums[DCRF_BACKEND_QP_LINEAR] += (double)vertex[best] - total_of(expected);
        memset(vertex, 0, stride * sizeof *vertex);
        vertex[best] = 1;
        qp->vertex_of[a] = (uint16_t)best;
    }
}

static double quadratic_rows(void *context, size_t begin, size_t end) {
    const struct qp *qp = context;
    const size_t stride = qp->base.model->stride;
    double sum[LANES] = {0};
    for (size_t i = begin * stride; i < end * stride; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sum[k] += ((double)qp->vertex[i + k] - (double)qp->base.y[i + k]) *
                      ((double)qp->vertex_field[i + k] - (double)qp->field[i + k]);
    return (double)qp->base.coupling->same_label_factor * total_of(sum);
}

static double sum_parts(const struct qp *qp, size_t part) {
    double sum = 0;
    for (size_t p = 0; p < dcrf_cpu_clique_count(&qp->base); p++)
        sum += qp->clique_parts[DCRF_QP_PARTS * p + part];
    return sum;
}

/* f, L and the vertex at the point reached by a step from y. */
static void find_vertex(struct qp *qp, double *sums) {
    dcrf_parallel_sums(qp->base.pool, qp->base.model->variables, move_rows, qp, sums,
                       DCRF_BACKEND_QP_SUMS);
    for_cliques(qp, sum_cliques);
    sums[DCRF_BACKEND_QP_OBJECTIVE] += sum_parts(qp, DCRF_QP_OBJECTIVE);
    sums[DCRF_BACKEND_QP_LINEAR] += sum_parts(qp, DCRF_QP_LINEAR);
}

/* ---- the steps ------------------------------------------------------------------------------ */

dcrf_status dcrf_cpu_qp_start(dcrf_backend_iterate *iterate, const float *y, double *sums,
                              dcrf_error *error) {
    struct qp *qp = qp_of(iterate);
    const dcrf_model *model = iterate->model;
    const size_t bytes = model->variables * model->stride * sizeof(float);
    if (y) {
        memcpy(iterate->y, y, bytes);
    } else { /* the minimum of the unary energies */
        dcrf_unary_minimum(model, qp->base.pool, qp->vertex_of);
        dcrf_marginals_of_labels(qp->vertex_of, model->variables, model->stride, iterate->y);
    }
    TRY(dcrf_coupling_field(iterate->coupling, iterate->y, qp->field, error));
    for_cliques(qp, read_cliques);
    qp->step = 0;
    memset(qp->vertex, 0, bytes);
    memset(qp->vertex_field, 0, bytes);
    find_vertex(qp, sums);
    return DCRF_OK;
}

dcrf_status dcrf_cpu_qp_bend(dcrf_backend_iterate *iterate, double *quadratic, dcrf_error *error) {
    struct qp *qp = qp_of(iterate);
    TRY(dcrf_coupling_field(iterate->coupling, qp->vertex, qp->vertex_field, error));
    *quadratic = dcrf_parallel_sum(iterate->pool, iterate->model->variables, quadratic_rows, qp) +
                 sum_parts(qp, DCRF_QP_QUADRATIC);
    return DCRF_OK;
}

dcrf_status dcrf_cpu_qp_move(dcrf_backend_iterate *iterate, double step, double *sums,
                             dcrf_error *error) {
    (void)error;
    struct qp *qp = qp_of(iterate);
    qp->step = step;
    for_cliques(qp, move_cliques);
    find_vertex(qp, sums);
    return DCRF_OK;
}
