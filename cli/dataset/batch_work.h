/* The work of a batch on one image: every method whose result is missing. */
#ifndef DCRF_CLI_DATASET_BATCH_WORK_H
#define DCRF_CLI_DATASET_BATCH_WORK_H

#include "dataset/prepared.h"
#include "dataset/workers.h"

typedef struct batch_work {
    const dataset *data;
    const method_list *methods;
    const solve_choice *choice;
    const store *results;
    json_t *settings;   /* as in a config file, for all methods */
    size_t curve_count; /* this many images, from the first, get curves */
} batch_work;

/* The functions of a workers_task; `user` is the batch_work. */
size_t batch_bytes(void *user, size_t image);
workers_verdict batch_too_large(void *user, size_t image, size_t bytes, cli_problem *problem);
workers_verdict batch_image(void *user, size_t image, dcrf_workspace *workspace,
                            cli_problem *problem);

#endif
