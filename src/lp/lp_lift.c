/* A start off the corner for constant labellings.
 *
 * Let the labelling of label c be the best one known, and kernels be strong. Then y stays near that
 * corner, y_i = epsilon w_i for the labels i != c and y_c = 1 - sum_i y_i, and what counts are the
 * flows alpha_ab:i = K_ab clip(w_bi - w_ai), which carry costs from where a label is dear to where
 * it is cheap. A pair of variables has a flow only if w_i is positive at one of them, so from the
 * corner itself, w = 0, y spreads over the picture as a front, and a run takes most of its steps to
 * get there.
 *
 * The potentials u of the flow (lp/potential_flow.h) carry all costs where they must go, if nothing
 * is clipped and y may be negative. Since the y of a variable sum to one, what counts is
 *
 *   v_ai = u_ai - mean of u_ak,  over c and the labels k that take part.
 *
 * The flows are differences, so w_ai = max_b v_bi - v_ai has the flows of v and is not negative. A
 * label takes part if its potentials have a spread above 1: only such flows are clipped, and the
 * others rarely matter. Epsilon is such that these labels take at most half of y. Where that needs
 * a narrow width, the potentials say little about the optimum, and the corner is the better start.
 *
 * When epsilon is narrowed, w stays, and with it the flows and the bound: y is drawn towards the
 * corner, as epsilon shrinks. (From other labellings that brings nothing: docs/notes/lp.md.) */
#include "lp/lp_lift.h"

#include "core/error.h"
#include "core/owned.h"
#include "lp/lp.h"
#include "lp/potential_flow.h"

#include <math.h>

/* The share of y that the labels may take, and the narrowest width for that: 1/63 is one. More
 * labels than that many with spreads of 1 would not do. */
#define MOST_SHARE 0.5
#define LEAST_EPSILON (1.0 / 64)
#define MOST_LABELS 32

struct lift {
    const dcrf_model *model;
    const struct dcrf_flow_proof *flow;
    size_t label[MOST_LABELS], count; /* those that take part; the constant one comes first */
    double highest[MOST_LABELS], lowest[MOST_LABELS]; /* of v */
    double epsilon;
    float *y;
};

/* False: too many. */
static bool find_labels(struct lift *lift) {
    for (size_t i = 0; i < lift->model->labels; i++)
        if (lift->flow->spread[i] > 1 && i != lift->label[0]) {
            if (lift->count == MOST_LABELS)
                return false;
            lift->label[lift->count++] = i;
        }
    return true;
}

static void find_values(const struct lift *lift, size_t a, double *v) {
    const float *potentials = lift->flow->potentials + a * lift->model->stride;
    double mean = 0;
    for (size_t k = 0; k < lift->count; k++) {
        v[k] = lift->flow->spread[lift->label[k]] * (double)potentials[lift->label[k]];
        mean += v[k] / (double)lift->count;
    }
    for (size_t k = 0; k < lift->count; k++)
        v[k] -= mean;
}

/* The sum of the spreads of v, but for the constant label's. */
static double find_spread(struct lift *lift) {
    double spread = 0, v[MOST_LABELS];
    for (size_t a = 0; a < lift->model->variables; a++) {
        find_values(lift, a, v);
        for (size_t k = 0; k < lift->count; k++) {
            lift->highest[k] = a == 0 ? v[k] : fmax(lift->highest[k], v[k]);
            lift->lowest[k] = a == 0 ? v[k] : fmin(lift->lowest[k], v[k]);
        }
    }
    for (size_t k = 1; k < lift->count; k++)
        spread += lift->highest[k] - lift->lowest[k];
    return spread;
}

static void fill_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct lift *lift = context;
    double v[MOST_LABELS];
    for (size_t a = begin; a < end; a++) {
        float *row = lift->y + a * lift->model->stride, rest = 1;
        for (size_t i = 0; i < lift->model->stride; i++)
            row[i] = 0;
        find_values(lift, a, v);
        for (size_t k = 1; k < lift->count; k++) {
            row[lift->label[k]] = (float)(lift->epsilon * (lift->highest[k] - v[k]));
            rest -= row[lift->label[k]];
        }
        row[lift->label[0]] = rest;
    }
}

dcrf_status dcrf_lp_lift_new(struct dcrf_lp *lp, const struct dcrf_start *from, float **y,
                             double *epsilon, dcrf_error *error) {
    const dcrf_model *model = lp->problem->model;
    struct lift lift = {.model = model, .flow = from->flow, .label = {from->labels[0]}, .count = 1};
    lp->huber.lift = (struct dcrf_lp_lift){0};
    *y = NULL;
    if (!from->flow || from->y || !find_labels(&lift) || lift.count == 1)
        return DCRF_OK;
    const double spread = find_spread(&lift);
    for (lift.epsilon = *epsilon; lift.epsilon * spread > MOST_SHARE;)
        if ((lift.epsilon = dcrf_lp_next_width(lp, lift.epsilon)) < LEAST_EPSILON)
            return DCRF_OK;
    lift.y = dcrf_allocate(model->variables, model->stride * sizeof *lift.y);
    if (!lift.y)
        return dcrf_fail_memory(error, "the LP relaxation");
    dcrf_parallel_rows(dcrf_workspace_pool(lp->problem->workspace), model->variables, fill_rows,
                       &lift);
    lp->huber.lift = (struct dcrf_lp_lift){true, lift.label[0], *lp->problem->best_energy};
    *y = lift.y;
    *epsilon = lift.epsilon;
    return DCRF_OK;
}

dcrf_status dcrf_lp_lift_narrow(struct dcrf_lp *lp, double factor, dcrf_error *error) {
    const dcrf_model *model = lp->problem->model;
    struct dcrf_lp_lift *lift = &lp->huber.lift;
    lift->is_on &= *lp->problem->best_energy >= lift->energy;
    if (!lift->is_on)
        return DCRF_OK;
    DCRF_SCOPED float *y = dcrf_allocate(model->variables, model->stride * sizeof *y);
    if (!y)
        return dcrf_fail_memory(error, "the LP relaxation");
    TRY(lp->methods->read(lp->blocks, DCRF_BACKEND_Y, y, error));
    for (size_t a = 0; a < model->variables; a++) {
        float *row = y + a * model->stride, rest = 1;
        for (size_t i = 0; i < model->labels; i++) {
            row[i] *= i == lift->constant ? 0 : (float)factor;
            rest -= row[i];
        }
        row[lift->constant] = rest;
    }
    return lp->methods->start(lp->blocks, y, NULL, lp->metric, error);
}
