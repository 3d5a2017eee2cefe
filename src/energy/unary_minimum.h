/* The labelling of the smallest unaries and its energy in one pass. */
#ifndef DCRF_ENERGY_UNARY_MINIMUM_H
#define DCRF_ENERGY_UNARY_MINIMUM_H

#include "core/threads.h"
#include "model/model.h"

/* dcrf_unary_floor, and how far it can be off by roundings. */
struct dcrf_unary_minimum {
    double sum, error;
};

/* With dcrf_label_by_unary, where the labels are wanted; else NULL. */
struct dcrf_unary_minimum dcrf_unary_minimum(const dcrf_model *model, dcrf_pool *pool,
                                             uint16_t *labels);

#endif
