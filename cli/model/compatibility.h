/* --compatibility: the cost of a pair of different labels. */
#ifndef DCRF_CLI_COMPATIBILITY_H
#define DCRF_CLI_COMPATIBILITY_H

#include "problem.h"

#include <dcrf/dcrf.h>

/* Set the compatibility of all kernels of a model: `text` is a name, tree:FILE or cuts:FILE
 * (model/distance_file.h), or a .npy file with a matrix. */
bool compatibility_apply(const char *text, dcrf_model *model, cli_problem *problem);

/* Would it do for models with this number of labels, and, if `for_lp`, for the LP? */
bool compatibility_check(const char *text, size_t labels, bool for_lp, cli_problem *problem);

/* The library's error about a solver of the LP: if the compatibility is why the LP refuses the
 * model, the message names it, otherwise `subject`. Returns false. */
bool compatibility_problem(const char *text, size_t labels, const char *subject,
                           const dcrf_error *error, cli_problem *problem);

/* Its file; NULL if it is a name. */
const char *compatibility_file(const char *text);

#endif
