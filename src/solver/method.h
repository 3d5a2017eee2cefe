/* What a method supplies to the solver's loop.
 *
 * All memory is taken by init, which computes nothing that takes a pass over the data: the clock of
 * a run goes from its start on. The solver calls start once before the first step, and again when
 * the user gives another start. Marginals are blocks with the stride of the model (model->stride).
 */
#ifndef DCRF_SOLVER_METHOD_H
#define DCRF_SOLVER_METHOD_H

#include "filter/plan.h"
#include "solver/stop.h"

#include <dcrf/solver.h>

struct dcrf_flow_proof;

/* What a method works on; outlives its state. */
struct dcrf_problem {
    const dcrf_plan *plan;
    const dcrf_model *model;
    dcrf_workspace *workspace;
    const dcrf_settings *settings;
    const double *best_energy; /* of the best labelling so far */
    struct dcrf_stop *stop;    /* a long step asks dcrf_stop_is_due(stop) now and then */
};

/* Where to begin: what the candidates' stage has for a method. */
struct dcrf_start {
    const float *y;         /* marginals (checked distributions) that the user gave, or NULL */
    const uint16_t *labels; /* the best labelling that is known */
    const struct dcrf_flow_proof *flow; /* a first dual point, or NULL */
    double unary_floor;                 /* the sum of the smallest unaries */
};

/* What one step has to say. The solver sets all numbers to NaN and the pointer to NULL before. */
struct dcrf_step_report {
    double objective;
    double lower_bound;     /* on the energy of every labelling */
    double stationarity;    /* compared with settings->stationarity */
    const uint16_t *labels; /* this iteration's labelling; NULL: the largest marginals */
};

/* What `labels` returns where there is no shorter way than the marginals: neither an error nor the
 * value of a reason to stop. */
#define DCRF_NO_LABELS ((dcrf_status)0x7f)

struct dcrf_method_interface {
    const char *name;
    /* On failure *state is NULL and nothing is held. */
    dcrf_status (*init)(void **state, const struct dcrf_problem *problem, dcrf_error *error);
    /* Begin from start->y, or where the method likes best. */
    dcrf_status (*start)(void *state, const struct dcrf_start *start, dcrf_error *error);
    dcrf_status (*step)(void *state, struct dcrf_step_report *report, dcrf_error *error);
    /* Bring the host's copy of the iterate up to date. NULL: the iterate is the host's itself. */
    dcrf_status (*fetch)(void *state, dcrf_error *error);
    /* The labels of the largest marginals, from where the iterate is; DCRF_NO_LABELS: they must be
     * read off the marginals. NULL: always. */
    dcrf_status (*labels)(void *state, uint16_t *labels, dcrf_error *error);
    /* The energy of those labels, likewise; DCRF_NO_LABELS: it must be computed from them. NULL:
     * always. */
    dcrf_status (*energy)(void *state, dcrf_energy *energy, dcrf_error *error);
    /* The current iterate, fetched: rows are distributions; valid until the next step. */
    const float *(*marginals)(const void *state);
    /* What is proven after start; NULL: the method proves nothing. */
    double (*lower_bound)(const void *state);
    void (*free)(void *state); /* NULL is fine */
};

static inline dcrf_status dcrf_method_fetch(const struct dcrf_method_interface *method, void *state,
                                            dcrf_error *error) {
    return method->fetch ? method->fetch(state, error) : DCRF_OK;
}

extern const struct dcrf_method_interface dcrf_mean_field;
extern const struct dcrf_method_interface dcrf_qp;
extern const struct dcrf_method_interface dcrf_lp;

#endif
