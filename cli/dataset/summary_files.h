/* The files of a summary: summary.csv, summary.json, summary.md, times.csv, curves.svg,
 * pictures.svg and report.html. */
#ifndef DCRF_CLI_DATASET_SUMMARY_FILES_H
#define DCRF_CLI_DATASET_SUMMARY_FILES_H

#include "dataset/summary.h"

/* Write all of them, or none. `pictures` images are shown with their labels, and curves are
 * those of the first `curves` images. */
bool summary_write_all(const store *results, const method_list *methods, const summary *found,
                       size_t pictures, size_t curves, cli_problem *problem);

#endif
