#include "dataset/search.h"

#include "dataset/search_log.h"
#include "report/number_text.h"

#include <math.h>
#include <nlopt.h>
#include <string.h>

#define VALUE_DIGITS 4
/* The first step of the local search, and its convergence tolerance, as fractions of an axis: a
 * tenth is enough to leave a basin, and steps below 0.005 change hardly a pixel. */
#define FIRST_STEP 0.1
#define SETTLED_STEP 0.005
/* Points may recur, which costs nothing, but this must not go on for ever. */
#define CALLS_PER_EVALUATION 20
#define CALLS_AT_LEAST 1000
#define FRUITLESS_ROUNDS_MAX 3
/* Fewer points do not make a curve; more add nothing. */
#define SWEEP_POINTS_MIN 4
#define SWEEP_POINTS_MAX 9

/* ---- values --------------------------------------------------------------------------------- */

static double on_steps(const search_axis *axis, double value) {
    const double steps = round(log(value / axis->low) / log(axis->step_factor));
    return round(axis->low * pow(axis->step_factor, steps));
}

/* From a coordinate between 0 and 1 to a value of the axis, and back. */
static double value_at(const search_axis *axis, double coordinate) {
    const double u = fmin(fmax(coordinate, 0), 1);
    const double value = axis->logarithmic ? axis->low * pow(axis->high / axis->low, u)
                                           : axis->low + u * (axis->high - axis->low);
    const double rounded =
        axis->step_factor > 0 ? on_steps(axis, value) : number_rounded(value, VALUE_DIGITS);
    return fmin(fmax(rounded, axis->low), axis->high);
}

static double coordinate_of(const search_axis *axis, double value) {
    if (value == SEARCH_AUTOMATIC)
        return 0.5;
    const double u = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                                       : (value - axis->low) / (axis->high - axis->low);
    return fmin(fmax(u, 0), 1);
}

/* ---- answers -------------------------------------------------------------------------------- */

typedef struct searching {
    const search *task;
    search_log *log;
    size_t asked; /* entries of the log that this search has reached */
    search_phase phase;
    size_t phase_end; /* number of evaluations at which the phase ends */
    nlopt_opt optimizer;
    bool failed;
    cli_problem *problem;
} searching;

static bool same_point(const searching *s, const double *values, const search_entry *entry) {
    for (size_t i = 0; i < s->task->space->axis_count; i++)
        if (values[i] != entry->values[i])
            return false;
    return true;
}

static bool evaluate_new(searching *s, const double *values) {
    search_entry entry = {.phase = s->phase};
    memcpy(entry.values, values, sizeof entry.values);
    return s->task->evaluate(s->task->user, values, entry.scores, s->problem) &&
           search_log_add(s->log, &entry, s->problem);
}

/* The next evaluation: from the log while it has entries, each of which must match this point. */
static bool answer(searching *s, const double *values) {
    if (s->asked == s->log->count) {
        if (!evaluate_new(s, values))
            return false;
    } else {
        const search_entry *entry = &s->log->entries[s->asked];
        if (entry->phase != s->phase || !same_point(s, values, entry))
            return bad_input(s->problem, s->log->path,
                             "line %zu is not of this search; choose another folder", s->asked + 2);
    }
    s->asked++;
    return true;
}

static double objective_of(const searching *s, const search_entry *entry) {
    return entry->scores[s->task->space->objective];
}

/* The objective function for NLopt. */
static double ask(unsigned count, const double *coordinates, double *gradient, void *user) {
    searching *s = user;
    double values[SEARCH_AXES_MAX] = {0};
    (void)gradient;
    for (size_t i = 0; i < count; i++)
        values[i] = value_at(&s->task->space->axes[i], coordinates[i]);
    for (size_t k = 0; k < s->asked; k++)
        if (same_point(s, values, &s->log->entries[k]))
            return objective_of(s, &s->log->entries[k]);
    if (!s->failed && s->asked < s->phase_end) {
        s->failed = !answer(s, values);
        if (!s->failed)
            return objective_of(s, &s->log->entries[s->asked - 1]);
    }
    nlopt_force_stop(s->optimizer);
    return -HUGE_VAL;
}

/* ---- phases --------------------------------------------------------------------------------- */

static const search_entry *best_so_far(const searching *s) {
    const search_entry *best = &s->log->entries[0];
    for (size_t k = 1; k < s->asked; k++)
        if (objective_of(s, &s->log->entries[k]) > objective_of(s, best))
            best = &s->log->entries[k];
    return best;
}

static bool set_up(searching *s, size_t evaluations) {
    nlopt_opt o = s->optimizer;
    return nlopt_set_lower_bounds1(o, 0) > 0 && nlopt_set_upper_bounds1(o, 1) > 0 &&
           nlopt_set_max_objective(o, ask, s) > 0 && nlopt_set_initial_step1(o, FIRST_STEP) > 0 &&
           nlopt_set_xtol_abs1(o, s->phase == SEARCH_LOCAL ? SETTLED_STEP : 0) > 0 &&
           nlopt_set_maxeval(
               o, (int)fmin((double)evaluations * CALLS_PER_EVALUATION + CALLS_AT_LEAST, 1e9)) > 0;
}

/* Spend at most this many evaluations on a phase. */
static bool run_phase(searching *s, search_phase phase, size_t evaluations, size_t round) {
    const search_space *space = s->task->space;
    double point[SEARCH_AXES_MAX], score;
    s->phase = phase;
    s->phase_end = s->asked + evaluations;
    for (size_t i = 0; i < space->axis_count; i++)
        point[i] = coordinate_of(&space->axes[i], best_so_far(s)->values[i]);
    nlopt_srand((unsigned long)(s->task->seed + 1000003 * round));
    s->optimizer = nlopt_create(phase == SEARCH_GLOBAL ? NLOPT_GN_DIRECT_L_RAND : NLOPT_LN_BOBYQA,
                                (unsigned)space->axis_count);
    if (!s->optimizer || !set_up(s, evaluations)) {
        nlopt_destroy(s->optimizer);
        return out_of_memory(s->problem, "search");
    }
    /* Any other end of a phase, such as a plateau or the budget, leads to the next one. */
    const nlopt_result result = nlopt_optimize(s->optimizer, point, &score);
    nlopt_destroy(s->optimizer);
    if (result == NLOPT_OUT_OF_MEMORY && !s->failed)
        return out_of_memory(s->problem, "search");
    if (result == NLOPT_INVALID_ARGS && !s->failed)
        return failure(s->problem, "search", "NLopt refuses the problem");
    return !s->failed;
}

/* Points along the first axis, at equal steps on its scale: up to a quarter of the budget. */
static bool run_sweep(searching *s, size_t budget) {
    const search_space *space = s->task->space;
    const size_t points = budget / 4 < SWEEP_POINTS_MAX ? budget / 4 : SWEEP_POINTS_MAX;
    if (!space->sweeps || points < SWEEP_POINTS_MIN)
        return true;
    s->phase = SEARCH_SWEEP;
    for (size_t k = 0; k < points; k++) {
        double values[SEARCH_AXES_MAX];
        memcpy(values, s->task->start, sizeof values);
        values[0] = value_at(&space->axes[0], (double)k / (double)(points - 1));
        if (!same_point(s, values, &s->log->entries[0]) && !answer(s, values))
            return false;
    }
    return true;
}

static bool run_rounds(searching *s, size_t budget, size_t *round) {
    size_t fruitless = 0;
    while (s->asked < budget && fruitless < FRUITLESS_ROUNDS_MAX) {
        const size_t before = s->asked, left = budget - s->asked;
        if (!run_phase(s, SEARCH_GLOBAL, left / 2, *round) ||
            !run_phase(s, SEARCH_LOCAL, budget - s->asked, *round))
            return false;
        fruitless = s->asked > before ? 0 : fruitless + 1;
        ++*round;
    }
    return true;
}

bool search_run(const search *task, search_log *log, cli_problem *problem) {
    searching s = {.task = task, .log = log, .phase = SEARCH_START, .problem = problem};
    size_t round = 0;
    if (!answer(&s, task->start) || !run_sweep(&s, task->budgets[0]))
        return false;
    for (size_t i = 0; i < task->budget_count; i++)
        if (!run_rounds(&s, task->budgets[i], &round))
            return false;
    return s.asked == log->count ||
           bad_input(problem, log->path, "line %zu is beyond this search; choose another folder",
                     s.asked + 2);
}
