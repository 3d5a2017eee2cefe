/* Methods by name: "unary", "mf5", "qp", "lp+cliques".
 *
 * A solver (mf, qp, lp), its number of iterations if not the default, and "+cliques" if the
 * model has cliques. "unary" uses no solver: every pixel gets its label of lowest unary energy. */
#ifndef DCRF_CLI_DATASET_METHODS_H
#define DCRF_CLI_DATASET_METHODS_H

#include "args/options.h"

#include <dcrf/solver.h>

#define METHODS_MAX 17 /* up to 16 from the user, and the unaries */
#define METHOD_NAME_BYTES 32

typedef struct method_choice {
    char name[METHOD_NAME_BYTES];
    bool unary; /* no solver */
    dcrf_method solver;
    size_t iterations; /* 0: the default */
    bool cliques;
} method_choice;

typedef struct method_list {
    method_choice of[METHODS_MAX];
    size_t count;
} method_list;

/* Every method is compared with the unaries, even if they are not in the list. */
extern const method_choice unary_method;

bool method_from_name(const char *name, method_choice *method);

/* Is there one with this solver? */
bool methods_have(const method_list *list, dcrf_method solver);

/* method_list: names separated by commas; "unary" is put first if missing */
option_parser parse_methods;
option_parser parse_method; /* method_choice */

#endif
