/* The sums in the energies: over pairs, by filtering a block of labels at a time, and over cliques.
 */
#ifndef DCRF_ENERGY_SUMS_H
#define DCRF_ENERGY_SUMS_H

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

/* A sum over kernels, labels and variables. For each kernel with nonzero weight and each block of
 * labels, `fill` writes the block `in` (one channel per label), the operator filters `in` to `out`,
 * and `sum` computes its sum from the two. Blocks are narrow, so that 65535 labels never need 65535
 * channels of memory. The context of fill and sum is this struct. */
struct dcrf_pair_sum {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    const uint16_t *labels; /* to sum over; a label that never occurs may be omitted */
    size_t label_count;
    const dcrf_levels *levels; /* NULL: out = K in; else the ordered filter with these levels */
    /* If the sum is over the pairs whose labels differ: the labels of the variables, and the index
     * of a label in `labels`, for operators that can compute it directly; else NULL. */
    const uint16_t *differing, *place_of;
    dcrf_task fill;
    dcrf_sum_task sum;
    const void *subject; /* data for fill and sum */

    /* The current block. */
    size_t kernel;
    size_t first; /* channel c is the label labels[first + c] */
    size_t channels;
    size_t stride;
    float *in, *out;
};

/* Run the sum. *total is the weighted sum over all kernels, and of_kernel[m] (if not NULL) that of
 * kernel m. Uses dcrf_energy_slot and dcrf_filtered_slot. */
dcrf_status dcrf_pair_sum_run(struct dcrf_pair_sum *pairs, double *total, double *of_kernel,
                              dcrf_error *error);

/* As dcrf_energy_of_labels, but counting only the unary energies and rows of pairs of variables
 * with part[a] != 0, so that the parts of a partition add up to the whole. A clique belongs to the
 * part that contains its first member. */
dcrf_status dcrf_energy_of_part(const dcrf_plan *plan, dcrf_workspace *workspace,
                                const uint16_t *labels, const uint8_t *part, dcrf_energy *energy,
                                dcrf_error *error);

/* How much the members of a clique disagree, from 0 (all agree) to 1. */
typedef double (*dcrf_disagreement)(const void *subject, const uint32_t *members, size_t count);

/* *total = sum_p C_p disagreement(p). Uses dcrf_energy_slot. */
dcrf_status dcrf_clique_sum(const dcrf_model *model, dcrf_workspace *workspace,
                            dcrf_disagreement disagreement, const void *subject, double *total,
                            dcrf_error *error);

/* The same for a labelling: the total cost of the cliques whose members do not all have the same
 * label. `part`: as for dcrf_energy_of_part, or NULL. */
dcrf_status dcrf_energy_of_cliques(const dcrf_model *model, dcrf_workspace *workspace,
                                   const uint16_t *labels, const uint8_t *part, double *total,
                                   dcrf_error *error);

#endif
