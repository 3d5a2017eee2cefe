/* What happened to the labels, as text and numbers. */
#ifndef DCRF_CLI_REPORT_CHANGES_TEXT_H
#define DCRF_CLI_REPORT_CHANGES_TEXT_H

#include "solution.h"

/* Lines of the summary: the strength, changed pixels, labels that vanished or shrank. */
void print_changes(FILE *stream, const built_model *built, const solution *found);

/* Warnings, if any; except about a constant labelling, which the proof's text covers. */
void print_warnings(FILE *stream, const solution *found);

/* The keys of JSON results, with class names where there are some; NULL if out of memory. */
json_t *changes_to_json(const built_model *built, const solution *found);

#endif
