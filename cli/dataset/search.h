/* Search for the parameters with the best score, with NLopt.
 *
 * The score is assumed to be piecewise constant, as pixel counts are, and expensive. The first,
 * most important axis can be swept by itself before anything else, with the others at the start,
 * which also gives its curve. Then the search proceeds in rounds: half of the remaining budget
 * explores the whole box (DIRECT, locally biased and randomized: Jones et al. 1993, Gablonsky and
 * Kelley 2001), the rest refines the best point by quadratic models (BOBYQA: Powell 2009). If these
 * converge before the budget is used up, another round begins.
 *
 * Coordinates range from 0 to 1 along an axis, on its scale. Values have four digits, or are on the
 * steps of their axis; a point that recurs is answered from the log at no cost.
 *
 * The same seed requests the same points in the same order. So a search is resumed by repeating
 * it with the logged answers, and continues where these end. */
#ifndef DCRF_CLI_DATASET_SEARCH_H
#define DCRF_CLI_DATASET_SEARCH_H

#include "problem.h"

#include <stddef.h>

#define SEARCH_AXES_MAX 11
/* A start may leave a value to be chosen per image: it then has this value, which is outside all
 * bounds. */
#define SEARCH_AUTOMATIC (-1.0)
#define SEARCH_SCORES_MAX 4

typedef struct search_axis {
    const char *name;
    double low;
    double high;
    bool logarithmic;
    /* Above 0: only integers near low * step_factor^k. */
    double step_factor;
} search_axis;

typedef struct search_space {
    search_axis axes[SEARCH_AXES_MAX];
    size_t axis_count;
    const char *score_names[SEARCH_SCORES_MAX];
    size_t score_count;
    size_t objective; /* index of the score to maximize */
    bool sweeps;      /* sweep the first axis first */
} search_space;

typedef enum search_phase { SEARCH_START, SEARCH_SWEEP, SEARCH_GLOBAL, SEARCH_LOCAL } search_phase;

typedef struct search_entry {
    search_phase phase;
    double values[SEARCH_AXES_MAX];
    double scores[SEARCH_SCORES_MAX];
} search_entry;

typedef struct search_log search_log;

/* The scores at a point. False stops the search: `problem` says why. */
typedef bool search_evaluate(void *user, const double *values, double *scores,
                             cli_problem *problem);

typedef struct search {
    const search_space *space;
    double start[SEARCH_AXES_MAX]; /* evaluated first, without rounding */
    size_t seed;
    /* Evaluations, counted from the first one: a search with a larger budget continues where the
     * earlier one ended, so all its budgets are listed. Increasing. */
    const size_t *budgets;
    size_t budget_count;
    search_evaluate *evaluate;
    void *user;
} search;

/* Search until the last budget is used up, or nothing new is found to try. Points in the log are
 * not evaluated again. */
bool search_run(const search *s, search_log *log, cli_problem *problem);

#endif
