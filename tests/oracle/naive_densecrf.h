/* Mean field as pydensecrf 1.0 computes it, naively: an oracle that shares no code with the
 * library. Every operation is in single precision and, as far as known, in the order of the
 * original: features and scale factors are rounded to float, halves are rounded to even, the
 * lattice has the vertices of four zero features if the number of variables is not a multiple of
 * four, variables are splatted in order, axes are blurred from 0 to d.
 *
 * It is a shared library so that the tests and benchmarks of the Python package can call it. */
#ifndef TESTS_NAIVE_DENSECRF_H
#define TESTS_NAIVE_DENSECRF_H

#include <stddef.h>

typedef struct naive_crf naive_crf;

/* unary: labels x variables, copied. Returns NULL if out of memory. */
naive_crf *naive_new(size_t variables, size_t labels, const float *unary);
void naive_free(naive_crf *crf);

/* features: variables x dimension. kind 0: -values[0] K Q, 1: diag(values) K Q, 2: (M + M')/2 K Q
 * with M the labels x labels values. Normalization: 0 none, 1 before, 2 after, 3 symmetric. Returns
 * 0, or -1 if out of memory. */
int naive_add(naive_crf *crf, size_t dimension, const float *features, int kind,
              const float *values, int normalization);

/* out: variables x (2 + channels); x / sx, y / sy, channels / their sigmas. */
void naive_features(size_t width, size_t height, float sx, float sy, size_t channels,
                    const unsigned char *image, const float *channel_sigma, float *out);

/* q: labels x variables. Returns 0, or -1 if out of memory. */
int naive_infer(const naive_crf *crf, size_t iterations, float *q);

#endif
