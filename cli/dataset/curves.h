/* Energy against time: one row of plots per image, the methods without cliques on the left and
 * those with them on the right, since their energies are not comparable. The time axis is
 * logarithmic and the same within a row; the lower bound is dashed. */
#ifndef DCRF_CLI_DATASET_CURVES_H
#define DCRF_CLI_DATASET_CURVES_H

#include "dataset/summary.h"

typedef struct curve_row {
    const char *image;
    curve of[METHODS_MAX]; /* no points: no curve */
} curve_row;

typedef struct curve_sheet {
    const method_list *methods;
    curve_row *rows;
    size_t count;
} curve_sheet;

/* Read the curves of the first `images` images that have any. False if out of memory. */
bool curves_read(curve_sheet *sheet, const summary *found, const store *results,
                 const method_list *methods, size_t images);
void curves_free(curve_sheet *sheet);

/* As SVG, a file of its own or part of a page. */
void curves_write(FILE *stream, const curve_sheet *sheet, bool own_file);

#endif
