/* The results of a batch, as one self-contained page. */
#ifndef DCRF_CLI_DATASET_BATCH_REPORT_H
#define DCRF_CLI_DATASET_BATCH_REPORT_H

#include "dataset/curves.h"

/* `file` is for messages; `pictures` is the number of images shown. */
bool batch_report_write(FILE *stream, const char *file, const summary *found, const store *results,
                        const method_list *methods, const curve_sheet *curves, size_t pictures,
                        cli_problem *problem);

#endif
