/* Strokes like those drawn by people, made from a label map. */
#ifndef DCRF_BENCH_DRAW_STROKES_H
#define DCRF_BENCH_DRAW_STROKES_H

#include <stddef.h>
#include <stdint.h>

/* Renumber the labels from 0, keeping their order; those that cover less than 1 % become void.
 * Returns the number of labels. */
size_t number_labels(int32_t *truth, size_t width, size_t height, int32_t void_label);

/* Write strokes, -1 where there is none. Deterministic. Returns 0 if out of memory. */
int draw_strokes(const int32_t *truth, size_t width, size_t height, size_t labels, int many,
                 int32_t *strokes);

#endif
