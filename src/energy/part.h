/* The energy of a part of the variables, for tiles. */
#ifndef DCRF_ENERGY_PART_H
#define DCRF_ENERGY_PART_H

#include <dcrf/energy.h>

/* As dcrf_energy_of_labels, where unary energies and rows of pairs count that belong to variables
 * with part[a] != 0: the parts of a partition add up to the whole. Cliques count as a whole where
 * their first member does. */
dcrf_status dcrf_energy_of_part(const dcrf_plan *plan, dcrf_workspace *workspace,
                                const uint16_t *labels, const uint8_t *part, dcrf_energy *energy,
                                dcrf_error *error);

#endif
