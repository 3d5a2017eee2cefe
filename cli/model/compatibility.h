/* --compatibility: the cost of a pair of different labels. */
#ifndef DCRF_CLI_COMPATIBILITY_H
#define DCRF_CLI_COMPATIBILITY_H

#include "problem.h"

#include <dcrf/dcrf.h>

/* Set the compatibility of all kernels of a model: `text` is a name, tree:FILE or cuts:FILE
 * (model/distance_file.h), or a .npy file with a matrix. */
bool compatibility_apply(const char *text, dcrf_model *model, cli_problem *problem);

#endif
