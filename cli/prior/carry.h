/* Masks on some frames of a video, carried on to the others. */
#ifndef DCRF_CLI_PRIOR_CARRY_H
#define DCRF_CLI_PRIOR_CARRY_H

#include "prior/map.h"

/* Frames without a map get that of the nearest one that has it, and are the less sure of it the
 * further away it is. */
bool prior_carry_on(const unary_options *options, const cli_image *image, prior_map *map,
                    cli_problem *problem);

#endif
