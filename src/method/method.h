/* The interface of a method to the solver's loop.
 *
 * init allocates all memory but makes no pass over the data, because the clock of a run starts only
 * later, with the run. The solver calls start once before the first step, and again when the user
 * gives another start. Marginals are blocks with the stride of the model (model->stride). */
#ifndef DCRF_METHOD_METHOD_H
#define DCRF_METHOD_METHOD_H

#include "filter/plan.h"
#include "method/stop.h"

#include <dcrf/solver.h>

struct dcrf_columns;
struct dcrf_coupling;
struct dcrf_dual_space; /* backend/dual_space.h */
struct dcrf_flow_proof;
struct dcrf_marginals; /* energy/labelling.h */

/* What a method works on; must outlive its state. */
struct dcrf_problem {
    const dcrf_plan *plan;
    const dcrf_model *model;
    dcrf_workspace *workspace;
    struct dcrf_coupling *coupling; /* of the plan and the workspace (energy/coupling.h) */
    const dcrf_settings *settings;
    const double *best_energy; /* of the best labelling so far */
    struct dcrf_stop *stop;    /* a long step should check dcrf_stop_is_due(stop) */
};

/* The start of a method, from the candidates stage. */
struct dcrf_start {
    const float *y;                     /* the user's marginals (checked distributions), or NULL */
    const uint16_t *labels;             /* the best known labelling */
    const struct dcrf_flow_proof *flow; /* a first dual point, or NULL */
    double unary_floor;                 /* the sum of the smallest unaries */
};

/* The report of one step. The solver presets all numbers to NaN and the pointer to NULL. */
struct dcrf_step_report {
    double objective;
    double lower_bound;     /* on the energy of every labelling */
    double stationarity;    /* compared with settings->stationarity */
    const uint16_t *labels; /* this iteration's labelling; NULL: the largest marginals */
};

/* What is proven about the labels of a labelling. */
struct dcrf_proven {
    size_t right;     /* labels that every optimal labelling has there */
    size_t wrong;     /* labels that none has there */
    uint16_t *counts; /* the number of possible labels of each variable; NULL: not wanted */
};

/* Returned by `labels` if it is no faster than reading the marginals: neither an error nor a reason
 * to stop. */
#define DCRF_NO_LABELS ((dcrf_status)0x7f)

struct dcrf_method_interface {
    const char *name;
    /* On failure *state is NULL and nothing stays allocated. */
    dcrf_status (*init)(void **state, const struct dcrf_problem *problem, dcrf_error *error);
    /* Start from start->y, or, if NULL, from a point that the method chooses. */
    dcrf_status (*start)(void *state, const struct dcrf_start *start, dcrf_error *error);
    dcrf_status (*step)(void *state, struct dcrf_step_report *report, dcrf_error *error);
    /* Bring the host's copy of the iterate up to date. NULL: the iterate is in host memory. */
    dcrf_status (*fetch)(void *state, dcrf_error *error);
    /* The labels with the largest marginals, computed where the iterate is stored; DCRF_NO_LABELS:
     * the caller must use the marginals. NULL: always. */
    dcrf_status (*labels)(void *state, uint16_t *labels, dcrf_error *error);
    /* The energy of those labels; DCRF_NO_LABELS: the caller must compute it from the labels. NULL:
     * always. */
    dcrf_status (*energy)(void *state, dcrf_energy *energy, dcrf_error *error);
    /* Marginals to round, where they are, if need be without columns for labels that have none;
     * false: the caller must use the marginals. NULL: always. */
    bool (*rows)(const void *state, struct dcrf_marginals *rows);
    /* The current iterate, fetched: rows are distributions; valid until the next step. */
    const float *(*marginals)(const void *state);
    /* The next five are NULL if the method proves no bound. The lower bound proven after start. */
    double (*lower_bound)(const void *state);
    /* What follows about single variables from its best dual point and the energy of any
     * labelling. */
    dcrf_status (*count_proven)(void *state, double energy, const uint16_t *labels,
                                struct dcrf_proven *proven, dcrf_error *error);
    /* The space of its dual points, measured; for proofs that come before the start. */
    dcrf_status (*dual_space)(void *state, const struct dcrf_dual_space **space, dcrf_error *error);
    /* The sum of all weighted row sums; infinite before they are measured. */
    double (*row_sums)(const void *state);
    /* What stands for the compatibilities in its dual. */
    const struct dcrf_columns *(*columns)(const void *state);
    void (*free)(void *state); /* state may be NULL */
};

static inline dcrf_status dcrf_method_fetch(const struct dcrf_method_interface *method, void *state,
                                            dcrf_error *error) {
    return method->fetch ? method->fetch(state, error) : DCRF_OK;
}

extern const struct dcrf_method_interface dcrf_mean_field;
extern const struct dcrf_method_interface dcrf_qp;
extern const struct dcrf_method_interface dcrf_lp;

#endif
