/* The plot of the report: energy and bound against time, as inline SVG. */
#ifndef DCRF_CLI_REPORT_HTML_PLOT_H
#define DCRF_CLI_REPORT_HTML_PLOT_H

#include "solution.h"

void html_plot_write(FILE *stream, const solution *found);

#endif
