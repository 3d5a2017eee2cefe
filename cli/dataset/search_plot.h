/* The plot of a search: the score of every evaluation, and the best so far. */
#ifndef DCRF_CLI_DATASET_SEARCH_PLOT_H
#define DCRF_CLI_DATASET_SEARCH_PLOT_H

#include "dataset/search_log.h"

/* An SVG file, with the level of the unaries alone. `subject` says what the score is and what it
 * is of. */
void search_plot_write(FILE *stream, const search_log *log, double unary_score,
                       const char *subject);

/* Did the search sweep its first axis? Then the curve over it can be written. */
bool search_has_curve(const search_log *log);
void search_curve_write(FILE *stream, const search_log *log, double unary_score,
                        const char *subject);

#endif
