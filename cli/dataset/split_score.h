/* The score of a setting over a split of a data set.
 *
 * Images stay in memory between settings, ready to be solved: as many as --memory allows, or
 * half of the machine's memory if it is not given. The others are read again every time. */
#ifndef DCRF_CLI_DATASET_SPLIT_SCORE_H
#define DCRF_CLI_DATASET_SPLIT_SCORE_H

#include "dataset/prepared.h"
#include "dataset/workers.h"

typedef struct split_scorer {
    dataset data;
    workers_options workers; /* the memory left besides kept images */
    size_t threads;
    const char *device;
    const method_choice *method;
    bool *kept;
    prepared_image **images; /* NULL: not read */
} split_scorer;

/* Reads only the lists so far. On failure there is nothing to free, but freeing is allowed. */
bool split_scorer_open(split_scorer *scorer, const char *folder, const char *split,
                       const workers_options *workers, const kernel_options *kernels,
                       const method_choice *method, cli_problem *problem);
void split_scorer_close(split_scorer *scorer);

/* Solve all images and count, over all ranks; together. The caller frees the score. False if an
 * image cannot be solved, or after an interruption. */
bool split_scorer_run(split_scorer *scorer, const solve_choice *choice, score *total,
                      cli_problem *problem);

/* A hash of everything besides settings that scores depend on: the contents of images, unary
 * energies, ground truth, region maps and the file of the compatibility. */
bool split_hash(const dataset *data, const model_options *model, content_hash *hash,
                cli_problem *problem);

#endif
