/* What settings mean for an image, in plain words. */
#ifndef DCRF_CLI_REPORT_EXPLAIN_H
#define DCRF_CLI_REPORT_EXPLAIN_H

#include "report/sweep.h"
#include "solution.h"

/* Paragraphs that each end with a newline; to be freed. What there is no time to measure is left
 * out, and they say so. */
bool explain_settings(const model_options *options, const built_model *built, const solution *found,
                      const strength_sweep *sweep, char **text, cli_problem *problem);

#endif
