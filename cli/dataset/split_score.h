/* The score of a setting over a split of a data set.
 *
 * Images stay in memory, ready to be solved, from one setting to the next: as many as --memory
 * allows, or half of the machine's memory where it does not say. The others are read again every
 * time. */
#ifndef DCRF_CLI_DATASET_SPLIT_SCORE_H
#define DCRF_CLI_DATASET_SPLIT_SCORE_H

#include "dataset/prepared.h"
#include "dataset/workers.h"

typedef struct split_scorer {
    dataset data;
    workers_options workers; /* what is left of the memory, beside images that are kept */
    size_t threads;
    const char *device;
    const method_choice *method;
    bool *kept;
    prepared_image **images; /* NULL: not read */
} split_scorer;

/* Read nothing yet but the lists. On failure nothing is left to free; freeing is allowed. */
bool split_scorer_open(split_scorer *scorer, const char *folder, const char *split,
                       const workers_options *workers, const kernel_options *kernels,
                       const method_choice *method, cli_problem *problem);
void split_scorer_close(split_scorer *scorer);

/* Solve all images and count, over all ranks; together. The score is to be freed. False where an
 * image cannot be solved, or after an interruption. */
bool split_scorer_run(split_scorer *scorer, const solve_choice *choice, score *total,
                      cli_problem *problem);

/* A hash of all that scores depend on besides settings: contents of images, unary energies, truth
 * and maps of regions. */
bool split_hash(const dataset *data, const model_options *model, content_hash *hash,
                cli_problem *problem);

#endif
