/* Threads, and with MPI also processes, that work through the images of a data set. */
#ifndef DCRF_CLI_DATASET_WORKERS_H
#define DCRF_CLI_DATASET_WORKERS_H

#include "args/options.h"
#include "progress.h"

#include <dcrf/grid.h>

typedef struct workers_options {
    size_t jobs;         /* images at a time; 0: one per core */
    size_t memory_bytes; /* 0: no limit */
} workers_options;

extern const cli_option workers_option_table[];

/* How images are distributed among ranks: by a shared counter to the next free rank, or always
 * the same ones to the same rank, which can then keep what it has prepared. */
typedef enum workers_deal { WORKERS_DEAL_FREE, WORKERS_DEAL_FIXED } workers_deal;

typedef enum workers_verdict {
    WORKERS_DONE,
    WORKERS_SKIPPED,  /* this image cannot be processed; continue */
    WORKERS_GIVEN_UP, /* a signal came while it was being processed */
    WORKERS_STOP      /* fatal: `problem` says why */
} workers_verdict;

typedef struct workers_task {
    size_t count;   /* of images */
    size_t threads; /* of a workspace */
    const char *device;
    workers_deal deal;
    bool shown; /* a progress bar, where `talk` and the terminal allow it */
    feedback talk;
    void *user;
    /* Approximate bytes of an image; NULL: not checked. Images are only started while the sum is
     * within the limit; one that exceeds it alone is skipped (`too_large`). */
    size_t (*bytes)(void *user, size_t image);
    workers_verdict (*too_large)(void *user, size_t image, size_t bytes, cli_problem *problem);
    workers_verdict (*work)(void *user, size_t image, dcrf_workspace *workspace,
                            cli_problem *problem);
} workers_task;

typedef struct workers_count {
    size_t done;
    size_t skipped;
    bool interrupted; /* by Ctrl-C or SIGTERM: images in progress were given up, others not
                       * started */
} workers_count;

/* The verdict on an image whose processing failed: given up if a signal came, otherwise
 * `verdict`. */
workers_verdict workers_failed(workers_verdict verdict);

/* Problems that all tasks share: an image that needs more than the allowed memory, and a run
 * ended by a signal. Both return false. */
bool workers_image_too_large(cli_problem *problem, const char *image, size_t bytes);
bool workers_was_interrupted(cli_problem *problem, const char *subject);

/* Process all images; all ranks call this together. The counts are those of all ranks. False if
 * an image stopped the run. */
bool workers_run(const workers_options *options, const workers_task *task, workers_count *count,
                 cli_problem *problem);

#endif
