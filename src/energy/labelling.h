/* Labellings from unaries and marginals, and back. */
#ifndef DCRF_ENERGY_LABELLING_H
#define DCRF_ENERGY_LABELLING_H

#include "core/threads.h"
#include "model/model.h"

/* dcrf_unary_floor, and a bound on its rounding error. */
struct dcrf_unary_minimum {
    double sum, error;
};

/* Also writes the labels of dcrf_label_by_unary, unless `labels` is NULL. */
struct dcrf_unary_minimum dcrf_unary_minimum(const dcrf_model *model, dcrf_pool *pool,
                                             uint16_t *labels);

/* Rows of `labels` floats, `stride` apart. */
struct dcrf_marginals {
    const float *values;
    size_t variables;
    size_t labels;
    size_t stride;
    const uint16_t *label_of; /* the label of each column, ascending; NULL: column i is label i */
};

/* The place of the largest entry of a row, the first among equals. */
uint16_t dcrf_largest_of(const float *row, size_t count);

/* The label of the largest entry of every row. */
void dcrf_labels_of_marginals(const struct dcrf_marginals *marginals, dcrf_pool *pool,
                              uint16_t *labels);

/* A labelling as a block of one-hot rows, `stride` apart. */
void dcrf_marginals_of_labels(const uint16_t *labels, size_t variables, size_t stride,
                              float *block);

#endif
