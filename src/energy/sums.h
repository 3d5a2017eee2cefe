/* The sums that the energies are made of: over pairs, a block of labels at a time through the
 * operators, and over cliques. */
#ifndef DCRF_ENERGY_SUMS_H
#define DCRF_ENERGY_SUMS_H

#include "filter/plan.h"

#include <dcrf/energy.h>

/* Are these labels of the model, one a variable? */
dcrf_status dcrf_labels_check(const dcrf_model *model, const uint16_t *labels, dcrf_error *error);

/* Do all variables have one label? */
bool dcrf_labels_are_constant(const uint16_t *labels, size_t count);

/* Scratch memory of the energies: blocks, a list of labels, sums. */
extern const struct dcrf_slot dcrf_energy_slot, dcrf_energy_slot2, dcrf_energy_slot3;

/* A sum over kernels, labels and variables. For each kernel with a weight and each block of labels,
 * `fill` writes the block `in` (one channel per label), `in` goes through the operator into `out`,
 * and `sum` adds up what it makes of the two. Blocks are narrow, so that 65535 labels never need
 * 65535 channels of memory. fill and sum get the struct as their context. */
struct dcrf_pair_sum {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    const uint16_t *labels; /* those to go through; a label that never occurs may be left out */
    size_t label_count;
    const dcrf_levels *levels; /* NULL: out = K in; else the ordered filter with these levels */
    /* Where the sum is that over the pairs whose labels differ: the labels of the variables, and
     * the place of a label in `labels`, for operators that can do it themselves; else NULL. */
    const uint16_t *differing, *place_of;
    dcrf_task fill;
    dcrf_sum_task sum;
    const void *subject; /* what fill and sum look at */

    /* The block in hand. */
    size_t kernel;
    size_t first; /* channel c is the label labels[first + c] */
    size_t channels;
    size_t stride;
    float *in, *out;
};

/* Run the sum. *total gets all kernels, of_kernel[m] (where not NULL) kernel m, both with the
 * weights. Uses dcrf_energy_slot. */
dcrf_status dcrf_pair_sum_run(struct dcrf_pair_sum *pairs, double *total, double *of_kernel,
                              dcrf_error *error);

/* How much the members of one clique disagree: 0 where they agree, up to 1. */
typedef double (*dcrf_disagreement)(const void *subject, const uint32_t *members, size_t count);

/* *total = sum_p C_p disagreement(p). Uses dcrf_energy_slot. */
dcrf_status dcrf_clique_sum(const dcrf_model *model, dcrf_workspace *workspace,
                            dcrf_disagreement disagreement, const void *subject, double *total,
                            dcrf_error *error);

/* The same of a labelling: what the cliques cost whose members do not all have one label. `part`:
 * as of dcrf_energy_of_part, or NULL. */
dcrf_status dcrf_energy_of_cliques(const dcrf_model *model, dcrf_workspace *workspace,
                                   const uint16_t *labels, const uint8_t *part, double *total,
                                   dcrf_error *error);

#endif
