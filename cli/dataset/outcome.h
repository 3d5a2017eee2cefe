/* The result of a method on one image. */
#ifndef DCRF_CLI_DATASET_OUTCOME_H
#define DCRF_CLI_DATASET_OUTCOME_H

#include "dataset/score.h"

#include <dcrf/solver.h>

typedef struct outcome {
    size_t width;
    size_t height;
    uint16_t *labels; /* NULL if it was read from a file */
    dcrf_energy energy;
    double rounded;         /* energy of the method's own rounding */
    double lower_bound;     /* NaN: none */
    double relative_gap;    /* NaN: none */
    dcrf_left_out left_out; /* by the bound */
    size_t iterations;
    dcrf_status stop;
    bool is_constant;
    double proven_share; /* of the pixels, with a label that every optimal labelling has; NaN: no
                          * proof */
    size_t changed;      /* pixels whose label differs from the unary minimum */
    score counts;        /* no classes: there is no ground truth */
    double setup_s;
    double solve_s;
    double polish_s;
} outcome;

void outcome_free(outcome *o);

/* Everything except the labels. NULL if out of memory; false if this is not an outcome. */
json_t *outcome_to_json(const outcome *o);
bool outcome_from_json(outcome *o, const json_t *json);

#endif
