/* Progress of a run: a line on the terminal that is redrawn, and log lines. */
#ifndef DCRF_CLI_PROGRESS_H
#define DCRF_CLI_PROGRESS_H

#include "args/options.h"
#include "clock.h"
#include "terminal_line.h"

#include <dcrf/dcrf.h>

typedef enum feedback { FEEDBACK_QUIET = 0, FEEDBACK_NORMAL, FEEDBACK_VERBOSE } feedback;

typedef struct feedback_options {
    bool verbose;
    bool quiet;
} feedback_options;

extern const cli_option feedback_option_table[];

feedback feedback_wanted(const feedback_options *options);

typedef struct progress {
    feedback talk;
    terminal_line line;
    size_t iterations; /* maximum; 0: no limit */
    const time_frame *time;
    size_t done;       /* iterations */
    double moment_s;   /* when the last iteration ended, since the start */
    const char *first; /* what is shown before there is an iteration */
} progress;

/* Watch a run with these limits (0: none), and let Ctrl-C stop the run instead of the program. A
 * second Ctrl-C ends the program. */
void progress_begin(progress *p, feedback talk, size_t iterations, const time_frame *time);

/* Make work that uses the workspace stop at the time limit or on a signal. */
void progress_limit(progress *p, dcrf_workspace *workspace);

/* The callbacks of a watched run; `user` is the progress. */
int progress_moment(void *user, const dcrf_moment *moment);
int progress_cancel(void *user);
void progress_log(void *user, const char *line);

/* Show what is being done outside the iterations. */
void progress_stage(progress *p, const char *what);

/* Clear the line on the terminal and restore the usual handling of Ctrl-C. */
void progress_end(progress *p);

#endif
