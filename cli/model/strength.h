/* The strength of a model's kernels, and the temperature of its unary energies. */
#ifndef DCRF_CLI_MODEL_STRENGTH_H
#define DCRF_CLI_MODEL_STRENGTH_H

#include "args/options.h"

#include <dcrf/dcrf.h>

typedef struct strength_options {
    double nats;          /* NaN: measured */
    double factor;        /* of what is measured */
    double spatial_share; /* of the strength, where both kernels share it */
    double temperature;   /* what the unary energies are divided by */
} strength_options;

extern const cli_option strength_option_table[];

/* The strength in force. */
typedef struct applied_strength {
    bool shared;                     /* some kernel has no weight of its own and takes part */
    bool automatic;                  /* and what they share is measured */
    const char *chosen_for;          /* what kernels and weights were chosen for, or NULL */
    double nats;                     /* of all kernels: twice the sum of the weights in force */
    dcrf_measured_strength measured; /* what suits the unaries, whether it is used or not */
} applied_strength;

/* Do strength and weights fit together? For use before any file is read. `weighted` says of each of
 * `count` kernels whether it has a weight of its own. */
bool strength_check(const strength_options *options, const bool *weighted, size_t count,
                    bool normalized, cli_problem *problem);

/* What suits a model's unary energies. */
bool strength_measure(const dcrf_model *model, dcrf_workspace *workspace,
                      dcrf_measured_strength *measured, cli_problem *problem);

/* Give the kernels that have no weight of their own (`weighted` says which have) their parts of the
 * strength. Weights in `kernels`, which are those of the model, are set too. */
bool strength_apply(const strength_options *options, const dcrf_measured_strength *measured,
                    const bool *weighted, dcrf_kernel *kernels, size_t count, dcrf_model *model,
                    applied_strength *applied, cli_problem *problem);

/* What a JSON result says of it; NULL when memory is out. */
json_t *strength_to_json(const applied_strength *applied);

#endif
