/* How sure a label map is of its pixels: maps that say it, and regions that are known. */
#ifndef DCRF_CLI_PRIOR_CONFIDENCE_H
#define DCRF_CLI_PRIOR_CONFIDENCE_H

#include "model/unary.h"

/* One number per pixel, to be freed: 1 where the label is known for sure (--prior-sure) and
 * nowhere else, below that how sure the map is. *confidence is NULL where all pixels are as sure as
 * any. */
bool prior_confidence_read(const unary_options *options, const cli_image *image, float **confidence,
                           cli_problem *problem);

#endif
