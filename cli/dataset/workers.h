/* Threads, and with MPI processes, that go through the images of a data set. */
#ifndef DCRF_CLI_DATASET_WORKERS_H
#define DCRF_CLI_DATASET_WORKERS_H

#include "args/options.h"
#include "progress.h"

#include <dcrf/experimental.h>

typedef struct workers_options {
    size_t jobs;         /* images at a time; 0: one for each core */
    size_t memory_bytes; /* 0: no limit */
} workers_options;

extern const cli_option workers_option_table[];

/* How images are dealt out among ranks: by a shared counter to the next free rank, or always the
 * same ones to the same rank, which can then keep what it has prepared. */
typedef enum workers_deal { WORKERS_DEAL_FREE, WORKERS_DEAL_FIXED } workers_deal;

typedef enum workers_verdict {
    WORKERS_DONE,
    WORKERS_SKIPPED,  /* this image cannot be done; go on */
    WORKERS_GIVEN_UP, /* a signal came while it was worked on */
    WORKERS_STOP      /* nothing can be done any more: `problem` says why */
} workers_verdict;

typedef struct workers_task {
    size_t count;   /* of images */
    size_t threads; /* of a workspace */
    const char *device;
    workers_deal deal;
    bool shown; /* a progress bar, where `talk` and the terminal allow it */
    feedback talk;
    void *user;
    /* Bytes that an image takes, roughly; NULL: not asked. Images are begun only while the sum is
     * within the limit; one that exceeds it alone is skipped (`too_large`). */
    size_t (*bytes)(void *user, size_t image);
    workers_verdict (*too_large)(void *user, size_t image, size_t bytes, cli_problem *problem);
    workers_verdict (*work)(void *user, size_t image, dcrf_workspace *workspace,
                            cli_problem *problem);
} workers_task;

typedef struct workers_count {
    size_t done;
    size_t skipped;
    bool interrupted; /* by Ctrl-C or SIGTERM: images in flight were given up, others not begun */
} workers_count;

/* The verdict of an image whose work has failed: given up where a signal came, else `verdict`. */
workers_verdict workers_failed(workers_verdict verdict);

/* Problems that all tasks have: an image that is larger than the memory allowed, and a run that was
 * ended by a signal. Both return false. */
bool workers_image_too_large(cli_problem *problem, const char *image, size_t bytes);
bool workers_was_interrupted(cli_problem *problem, const char *subject);

/* Go through all images; all ranks call this together. The counts are those of all ranks. False
 * where an image stopped it. */
bool workers_run(const workers_options *options, const workers_task *task, workers_count *count,
                 cli_problem *problem);

#endif
