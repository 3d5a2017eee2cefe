/* The energy of a subset of the variables, for tiles. */
#ifndef DCRF_ENERGY_PART_H
#define DCRF_ENERGY_PART_H

#include <dcrf/energy.h>

/* As dcrf_energy_of_labels, but counting only the unary energies and rows of pairs of variables
 * with part[a] != 0, so that the parts of a partition add up to the whole. A clique belongs to the
 * part that contains its first member. */
dcrf_status dcrf_energy_of_part(const dcrf_plan *plan, dcrf_workspace *workspace,
                                const uint16_t *labels, const uint8_t *part, dcrf_energy *energy,
                                dcrf_error *error);

#endif
