/* Parameters of the LP for studies and tests; users need not change them. */
#ifndef DCRF_LP_LP_EXPERIMENT_H
#define DCRF_LP_LP_EXPERIMENT_H

#include <dcrf/solver.h>

struct dcrf_lp_experiment {
    size_t bins;        /* of the ordered filter, at most; Huber widths end at 1 / (2 bins) */
    double epsilon;     /* first Huber width, in units of y */
    size_t inner_steps; /* proximal: Frank-Wolfe steps per iteration of the solver */
    double lambda;      /* proximal weight; 0: from the scale of the model */
};

#define DCRF_LP_USUAL                                                                              \
    (struct dcrf_lp_experiment) {                                                                  \
        .bins = 16, .epsilon = 0.25, .inner_steps = 10, .lambda = 0                                \
    }

/* Of an LP that has not started, the state of its method. */
void dcrf_lp_set_experiment(void *state, const struct dcrf_lp_experiment *experiment);

#endif
