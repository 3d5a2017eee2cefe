/* What happened to the labels, in words and numbers. */
#ifndef DCRF_CLI_REPORT_CHANGES_TEXT_H
#define DCRF_CLI_REPORT_CHANGES_TEXT_H

#include "solution.h"

/* Lines of the summary: the strength, pixels changed, labels that vanished or shrank. */
void print_changes(FILE *stream, const built_model *built, const solution *found);

/* What is suspicious, if anything; but for a constant labelling, of which the proof tells. */
void print_warnings(FILE *stream, const solution *found);

/* The keys of JSON results, with the names of the classes where they have some; NULL when memory is
 * out. */
json_t *changes_to_json(const built_model *built, const solution *found);

#endif
