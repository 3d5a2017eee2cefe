/* The results of tuning: a config file, a page of text and the plot. */
#ifndef DCRF_CLI_DATASET_TUNE_RESULTS_H
#define DCRF_CLI_DATASET_TUNE_RESULTS_H

#include "dataset/methods.h"
#include "dataset/search_log.h"
#include "model/model_options.h"

#include <jansson.h>

/* Scores on a split, in the order of the search space: of the unaries alone, of the start and of
 * the best setting. */
typedef struct tune_scores {
    const char *split; /* NULL: there is none */
    double unary[SEARCH_SCORES_MAX];
    double start[SEARCH_SCORES_MAX];
    double best[SEARCH_SCORES_MAX];
} tune_scores;

typedef struct tune_results {
    const char *folder; /* of the results */
    const method_choice *method;
    const search_log *log;
    model_options start;
    model_options best;
    size_t band_px;
    tune_scores tuned;    /* on the split used for tuning */
    tune_scores held_out; /* on another split */
} tune_results;

/* Write best.json, tune.md and search.svg. `subject` describes the search. */
bool tune_results_write(const tune_results *results, const json_t *subject, cli_problem *problem);

/* Print the table and its conclusion to standard output. */
void tune_results_print(FILE *stream, const tune_results *results);

#endif
