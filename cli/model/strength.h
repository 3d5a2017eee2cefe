/* The strength of a model's kernels, and the temperature of its unary energies. */
#ifndef DCRF_CLI_MODEL_STRENGTH_H
#define DCRF_CLI_MODEL_STRENGTH_H

#include "args/options.h"

#include <dcrf/dcrf.h>

typedef struct strength_options {
    double nats;          /* NaN: measured */
    double factor;        /* multiplies the measured strength */
    double spatial_share; /* share of the strength, if both kernels share it */
    double temperature;   /* the unary energies are divided by this */
} strength_options;

extern const cli_option strength_option_table[];

/* The strength in force. */
typedef struct applied_strength {
    bool shared;                     /* some kernel has no given weight and shares the strength */
    bool automatic;                  /* and the shared strength is measured */
    const char *chosen_for;          /* what kernels and weights were chosen for, or NULL */
    double nats;                     /* of all kernels: twice the sum of the weights in force */
    dcrf_measured_strength measured; /* what suits the unaries, whether or not it is used */
} applied_strength;

/* Are strength and weights consistent? For use before any file is read. `weighted` says for each
 * of `count` kernels whether its weight is given. */
bool strength_check(const strength_options *options, const bool *weighted, size_t count,
                    bool normalized, cli_problem *problem);

/* Measure the strength that suits a model's unary energies. */
bool strength_measure(const dcrf_model *model, dcrf_workspace *workspace,
                      dcrf_measured_strength *measured, cli_problem *problem);

/* Give the kernels without a given weight (according to `weighted`) their share of the strength.
 * The weights in `kernels`, which are those of the model, are set too. */
bool strength_apply(const strength_options *options, const dcrf_measured_strength *measured,
                    const bool *weighted, dcrf_kernel *kernels, size_t count, dcrf_model *model,
                    applied_strength *applied, cli_problem *problem);

/* What a JSON result says about it; NULL if out of memory. */
json_t *strength_to_json(const applied_strength *applied);

#endif
