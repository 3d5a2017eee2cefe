/* What a batch found, as one page that needs no network and no other file. */
#ifndef DCRF_CLI_DATASET_BATCH_REPORT_H
#define DCRF_CLI_DATASET_BATCH_REPORT_H

#include "dataset/curves.h"

/* `file` is for messages; `pictures` is the number of images that are shown. */
bool batch_report_write(FILE *stream, const char *file, const summary *found, const store *results,
                        const method_list *methods, const curve_sheet *curves, size_t pictures,
                        cli_problem *problem);

#endif
