/* Strokes such as people draw, made from a map of labels. */
#ifndef DCRF_BENCH_DRAW_STROKES_H
#define DCRF_BENCH_DRAW_STROKES_H

#include <stddef.h>
#include <stdint.h>

/* Number the labels from 0 in their order, those that cover less than 1 % become void; returns how
 * many there are. */
size_t number_labels(int32_t *truth, size_t width, size_t height, int32_t void_label);

/* Write strokes, -1 where there is none. Always the same ones for a map. 0: out of memory. */
int draw_strokes(const int32_t *truth, size_t width, size_t height, size_t labels, int many,
                 int32_t *strokes);

#endif
