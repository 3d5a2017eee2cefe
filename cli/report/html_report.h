/* The report: one self-contained page. */
#ifndef DCRF_CLI_REPORT_HTML_REPORT_H
#define DCRF_CLI_REPORT_HTML_REPORT_H

#include "solve_outputs.h"

/* Pictures are small if it is hurried. */
bool html_report_write(FILE *stream, const char *file, const solve_results *results,
                       bool is_hurried, cli_problem *problem);

#endif
