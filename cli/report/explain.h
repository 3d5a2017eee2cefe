/* What the settings mean for an image, in plain words. */
#ifndef DCRF_CLI_REPORT_EXPLAIN_H
#define DCRF_CLI_REPORT_EXPLAIN_H

#include "report/sweep.h"
#include "solution.h"

/* Paragraphs that each end with a newline; the caller frees them. Measurements for which there
 * is no time are left out, and the text says so. */
bool explain_settings(const built_model *built, const solution *found, const strength_sweep *sweep,
                      char **text, cli_problem *problem);

#endif
