/* Evaluations of a search, by all ranks.
 *
 * Rank 0 searches. For every evaluation it sends the parameters to the others, all score their
 * share of the images, and the counts are summed. */
#ifndef DCRF_CLI_DATASET_TUNER_H
#define DCRF_CLI_DATASET_TUNER_H

#include "dataset/search_log.h"
#include "dataset/split_score.h"
#include "terminal_line.h"

/* The scores of a search, in this order: their names in files, and in text. */
enum { TUNE_ACCURACY, TUNE_MEAN_IOU, TUNE_BAND_ACCURACY, TUNE_SCORES };
extern const char *const tune_score_names[TUNE_SCORES];
extern const char *const tune_score_titles[TUNE_SCORES];

enum { TUNE_SPLIT, TUNE_HELD_OUT, TUNE_SPLITS };

typedef struct tuner {
    const search_space *space;
    const solve_choice *start; /* the parameters are applied to this */
    split_scorer scorers[TUNE_SPLITS];
    feedback talk;
    size_t budget;
    /* On rank 0. */
    const search_log *log;
    terminal_line line;
    size_t fresh;      /* evaluations of this run */
    bool all_are_over; /* an evaluation failed, and all ranks know */
} tuner;

/* Score a point on one of the splits; on rank 0, while the others follow. */
bool tuner_score(tuner *t, size_t split, const double *values, double *scores,
                 cli_problem *problem);

/* The scores of the unaries alone, once there is an evaluation; also on rank 0. */
bool tuner_score_unaries(tuner *t, size_t split, double *scores, cli_problem *problem);

/* tuner_score on the tuning split, with progress, as a search_evaluate. */
search_evaluate tuner_evaluate;

/* On all other ranks: do as rank 0 does, until it ends. False if an evaluation failed. */
bool tuner_follow(tuner *t, cli_problem *problem);

/* Rank 0 tells the others to end. */
void tuner_end(tuner *t);

#endif
