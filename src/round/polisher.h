/* State shared by the moves on a labelling. The labellings themselves, their fields and gains are
 * held by the backend (backend/backend.h). */
#ifndef DCRF_ROUND_POLISHER_H
#define DCRF_ROUND_POLISHER_H

#include "backend/backend.h"
#include "core/owned.h"
#include "energy/coupling.h"
#include "round/polish.h"

struct dcrf_polisher {
    const dcrf_model *model;
    const struct dcrf_coupling *coupling;
    const struct dcrf_backend_moves_methods *methods;
    dcrf_backend_moves *moves;
    double energy; /* of the current labelling */

    double *class_unary; /* for merges (merge.c); NULL if not all kernels are Potts or there are too
                          * many labels */
    double *class_mass;
    double *class_bonus;
    size_t *class_size;
    uint16_t *class_map;
    uint16_t *labels; /* before the merges, if there are cliques */
    struct dcrf_owned owned;
    size_t passes_left;
    const struct dcrf_interrupt *interrupt; /* checked before every pass; NULL: never interrupted
                                             */
};

/* Make this the current labelling, with a budget of `passes` > 0 filter applications, including
 * this one. */
dcrf_status dcrf_polisher_load(struct dcrf_polisher *polisher, const uint16_t *labels,
                               size_t passes, dcrf_error *error);
/* Read the labels of the current labelling. */
dcrf_status dcrf_polisher_read(struct dcrf_polisher *polisher, uint16_t *labels, dcrf_error *error);

/* Evaluate the trial labelling: if its energy is below the current one, it becomes the current
 * labelling. Costs one pass. */
dcrf_status dcrf_polisher_try(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);

/* The moves. Each sets *is_better to whether it improved the current labelling. */
dcrf_status dcrf_move_classes(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);
dcrf_status dcrf_move_cliques(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);
dcrf_status dcrf_move_variables(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);

#endif
