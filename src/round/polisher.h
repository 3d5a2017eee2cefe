/* What the moves of a labelling share. The labellings themselves, their fields and gains are the
 * backend's (backend/backend.h). */
#ifndef DCRF_ROUND_POLISHER_H
#define DCRF_ROUND_POLISHER_H

#include "backend/backend.h"
#include "energy/coupling.h"
#include "round/polish.h"

struct dcrf_polisher {
    const dcrf_model *model;
    struct dcrf_coupling *coupling;
    const struct dcrf_backend_moves_methods *methods;
    dcrf_backend_moves *moves;
    uint16_t *labels; /* of the current labelling, as they were last read */
    double energy;    /* of the current labelling */

    double *class_unary; /* merges: see merge.c; NULL where there are too many labels */
    double *class_mass;
    double *class_bonus;
    size_t *class_size;
    uint16_t *class_map;
    size_t rounds_left;
    const struct dcrf_interrupt *interrupt; /* asked before every round; NULL: none */
};

/* Make this the current labelling, with `rounds` > 0 filter applications to go, this one included.
 */
dcrf_status dcrf_polisher_load(struct dcrf_polisher *polisher, const uint16_t *labels,
                               size_t rounds, dcrf_error *error);
/* Read the labels of the current labelling. */
dcrf_status dcrf_polisher_read(struct dcrf_polisher *polisher, dcrf_error *error);

/* Try the trial: if its energy is below the current one, it becomes the current labelling. Costs
 * one round. */
dcrf_status dcrf_polisher_try(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);

/* The moves. Each sets *is_better when the current labelling has become better. */
dcrf_status dcrf_move_classes(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);
dcrf_status dcrf_move_cliques(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);
dcrf_status dcrf_move_variables(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);

#endif
