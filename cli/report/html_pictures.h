/* The pictures of the report: the comparison of two with a slider, all of them, and the other
 * slices of a volume. */
#ifndef DCRF_CLI_REPORT_HTML_PICTURES_H
#define DCRF_CLI_REPORT_HTML_PICTURES_H

#include "report/pictures.h"
#include "solve_outputs.h"

/* What the parts of the report need. */
typedef struct page {
    FILE *stream;
    const char *file; /* for messages */
    const solve_results *results;
    const scene *shown;
    const palette *colours;
    bool is_hurried; /* the run was told to stop */
    cli_problem *problem;
} page;

bool html_pictures_write(const page *p);

/* The effect of other strengths on the unaries, as a table. */
void html_write_sweep(const page *p);

#endif
