/* The files that say what a batch found. */
#ifndef DCRF_CLI_DATASET_SUMMARY_FILES_H
#define DCRF_CLI_DATASET_SUMMARY_FILES_H

#include "dataset/summary.h"

/* Write all of them, or none. */
bool summary_write_all(const store *s, const dataset *data, const method_list *methods,
                       const summary *found, size_t picture_rows, size_t curve_rows,
                       cli_problem *problem);

#endif
