/* The confidence of a label map per pixel: confidence maps, and regions whose labels are
 * certain. */
#ifndef DCRF_CLI_PRIOR_CONFIDENCE_H
#define DCRF_CLI_PRIOR_CONFIDENCE_H

#include "model/unary.h"

/* One number per pixel; the caller frees them: 1 only where the label is certain (--prior-sure),
 * elsewhere the confidence of the map, below 1. *confidence is NULL if all pixels have the same
 * confidence. */
bool prior_confidence_read(const unary_options *options, const cli_image *image, float **confidence,
                           cli_problem *problem);

#endif
