/* The energy of a labelling, of parts of it and of its cliques, and its scratch memory. */
#ifndef DCRF_ENERGY_ENERGY_H
#define DCRF_ENERGY_ENERGY_H

#include "filter/plan.h"

#include <dcrf/energy.h>

/* Fails unless all are labels of the model, one per variable. */
dcrf_status dcrf_labels_check(const dcrf_model *model, const uint16_t *labels, dcrf_error *error);

/* Do all variables have the same label? */
bool dcrf_labels_are_constant(const uint16_t *labels, size_t count);

/* Scratch memory of the energies: a block on its way into the operators, a list of labels, sums. */
extern const struct dcrf_slot dcrf_energy_slot, dcrf_energy_slot2, dcrf_energy_slot3;

/* A block that comes out of the operators and is used up before its owner returns: energies, moves,
 * mean field and the LP share it, and the LP shares the block that goes in. */
extern const struct dcrf_slot dcrf_filtered_slot;

/* A second such block while moves try a labelling; polishing releases it at its end. */
extern const struct dcrf_slot dcrf_trial_slot;

/* As dcrf_energy_of_labels, but counting only the unary energies and rows of pairs of variables
 * with part[a] != 0, so that the parts of a partition add up to the whole. A clique belongs to the
 * part that contains its first member. */
dcrf_status dcrf_energy_of_part(const dcrf_plan *plan, dcrf_workspace *workspace,
                                const uint16_t *labels, const uint8_t *part, dcrf_energy *energy,
                                dcrf_error *error);

/* The total cost of the cliques whose members do not all have the same label. `part`: as for
 * dcrf_energy_of_part, or NULL. Uses dcrf_energy_slot. */
dcrf_status dcrf_energy_of_cliques(const dcrf_model *model, dcrf_workspace *workspace,
                                   const uint16_t *labels, const uint8_t *part, double *total,
                                   dcrf_error *error);

#endif
