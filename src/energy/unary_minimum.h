/* The labelling of smallest unaries and its energy, in one pass. */
#ifndef DCRF_ENERGY_UNARY_MINIMUM_H
#define DCRF_ENERGY_UNARY_MINIMUM_H

#include "core/threads.h"
#include "model/model.h"

/* dcrf_unary_floor, and a bound on its rounding error. */
struct dcrf_unary_minimum {
    double sum, error;
};

/* Also writes the labels of dcrf_label_by_unary, unless `labels` is NULL. */
struct dcrf_unary_minimum dcrf_unary_minimum(const dcrf_model *model, dcrf_pool *pool,
                                             uint16_t *labels);

#endif
