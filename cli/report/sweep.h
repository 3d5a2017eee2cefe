/* Would weaker kernels be better? A few strengths, each solved by mean field.
 *
 * Without ground truth the right labelling is unknown, but how much of the image changes, and
 * when labels begin to vanish, shows the effect of the strength. */
#ifndef DCRF_CLI_REPORT_SWEEP_H
#define DCRF_CLI_REPORT_SWEEP_H

#include "solution.h"

#define SWEEP_POINTS 7

typedef struct sweep_point {
    double factor; /* of the strength in force */
    double nats;
    dcrf_changes changes; /* compared with the unary minimum */
    double changed_share;
    uint16_t *labels; /* for pictures */
} sweep_point;

typedef struct strength_sweep {
    size_t count; /* 0: there are no kernels */
    sweep_point points[SWEEP_POINTS];
} strength_sweep;

/* Sweep around the strength in force, which is restored afterwards. The caller frees the sweep. */
bool sweep_run(const built_model *built, const solution *found, strength_sweep *sweep,
               cli_problem *problem);
void sweep_free(strength_sweep *sweep);

/* A table and a sentence; each line ends with a newline. */
void sweep_write(FILE *stream, const strength_sweep *sweep);

/* NULL if out of memory. */
json_t *sweep_to_json(const strength_sweep *sweep);

#endif
