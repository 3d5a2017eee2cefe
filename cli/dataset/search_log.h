/* The log of a search: log.csv, one line per evaluation, on disk before the next one begins.
 *
 *   number,phase,score,spatial-sigma,...,accuracy,...,check
 *   1,start,0.8125,3,...,0.8125,...,2f0c9a31
 *
 * `score` is the one to maximize; it is repeated among the others at the end. Numbers have as
 * many digits as they need to be read back exactly. `check` is the beginning of a hash of the
 * text before it: a modified line is refused. A killed run leaves at most a truncated last line,
 * which is dropped when the log is opened. */
#ifndef DCRF_CLI_DATASET_SEARCH_LOG_H
#define DCRF_CLI_DATASET_SEARCH_LOG_H

#include "dataset/search.h"

#include <stdio.h>

struct search_log {
    const search_space *space;
    char *path;
    FILE *stream;
    search_entry *entries;
    size_t count;
    size_t capacity;
};

/* Does the log, if there is one, contain no evaluations? */
bool search_log_is_empty(const char *path);

/* Open a new or existing log for appending. On failure there is nothing to close, but closing is
 * allowed. */
bool search_log_open(search_log *log, const char *path, const search_space *space,
                     cli_problem *problem);
void search_log_close(search_log *log);

bool search_log_add(search_log *log, const search_entry *entry, cli_problem *problem);

/* The first entry with the largest score; NULL: the log is empty. */
const search_entry *search_log_best(const search_log *log);

double search_score(const search_log *log, const search_entry *entry);
const char *search_phase_name(search_phase phase);

#endif
