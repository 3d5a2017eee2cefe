/* The report: one page that needs no network and no other file. */
#ifndef DCRF_CLI_REPORT_HTML_REPORT_H
#define DCRF_CLI_REPORT_HTML_REPORT_H

#include "report/pictures.h"
#include "solve_outputs.h"

bool html_report_write(FILE *stream, const char *file, const solve_results *results,
                       const scene *shown, const palette *colours, cli_problem *problem);

#endif
