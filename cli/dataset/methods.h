/* Methods by name: "unary", "mf5", "qp", "lp+cliques".
 *
 * A solver (mf, qp, lp), the number of its iterations where it is not to be the usual one, and
 * "+cliques" where the model has them. "unary" is the labelling that has no solver: every pixel for
 * itself. */
#ifndef DCRF_CLI_DATASET_METHODS_H
#define DCRF_CLI_DATASET_METHODS_H

#include "args/options.h"

#include <dcrf/solver.h>

#define METHODS_MAX 17 /* 16 that are asked for, and the unaries */
#define METHOD_NAME_BYTES 32

typedef struct method_choice {
    char name[METHOD_NAME_BYTES];
    bool unary; /* no solver */
    dcrf_method solver;
    size_t iterations; /* 0: the usual number */
    bool cliques;
} method_choice;

typedef struct method_list {
    method_choice of[METHODS_MAX];
    size_t count;
} method_list;

/* Whether a list has them or not, the unaries are what every method is compared with. */
extern const method_choice unary_method;

bool method_from_name(const char *name, method_choice *method);

/* method_list: names separated by commas; "unary" comes first where it is not among them */
option_parser parse_methods;
option_parser parse_method; /* method_choice */

#endif
