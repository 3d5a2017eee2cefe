/* Masks on some frames of a video, propagated to the others. */
#ifndef DCRF_CLI_PRIOR_CARRY_H
#define DCRF_CLI_PRIOR_CARRY_H

#include "prior/map.h"

/* Frames without a map get that of the nearest frame that has one, moved as the picture moves
 * (prior/motion.h), with a confidence that decreases from frame to frame. Where the video is too
 * large for memory and has no colours here, nothing is moved. With a workspace every map is refined
 * by the borders of its own frame before it is taken to the next, and map->refined has them all. */
bool prior_carry_on(const unary_options *options, const cli_image *image, dcrf_workspace *workspace,
                    const unary_facts *facts, prior_map *map, cli_problem *problem);

#endif
