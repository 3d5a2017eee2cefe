/* The labelling of the smallest unaries and its energy in one pass. */
#ifndef DCRF_ENERGY_UNARY_MINIMUM_H
#define DCRF_ENERGY_UNARY_MINIMUM_H

#include "model/model.h"

/* dcrf_label_by_unary, where the labels are wanted, and dcrf_unary_floor, which is returned. */
double dcrf_unary_minimum(const dcrf_model *model, uint16_t *labels);

#endif
