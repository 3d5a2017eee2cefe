/* What a run says while it goes: a line on a terminal, redrawn, and what it logs. */
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
    size_t iterations; /* at most; 0: no limit */
    const time_frame *time;
    size_t done;     /* iterations */
    double moment_s; /* when the last of them ended, since the begin */
} progress;

/* Watch a run with these limits (0: none), and let Ctrl-C end the run instead of the program.
 * A second one ends the program. */
void progress_begin(progress *p, feedback talk, size_t iterations, const time_frame *time);

/* What is done with the workspace ends with the time, or with a signal. */
void progress_limit(progress *p, dcrf_workspace *workspace);

/* The callbacks of a run that is watched; `user` is the progress. */
int progress_moment(void *user, const dcrf_moment *moment);
int progress_cancel(void *user);
void progress_log(void *user, const char *line);

/* What is done now, where it is no iteration. */
void progress_stage(progress *p, const char *what);

/* Wipe the line off the terminal and give Ctrl-C its usual meaning. */
void progress_end(progress *p);

#endif
