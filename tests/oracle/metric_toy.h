/* Small models with all kinds of distances between labels, and their optima by enumeration.
 *
 * The optimum is that of the matrices that the operators really apply: their columns, from unit
 * vectors in double, with the model's own mu; all sums are in long double, over all labellings. */
#ifndef DCRF_TESTS_METRIC_TOY_H
#define DCRF_TESTS_METRIC_TOY_H

#include "core/rng.h"

#include <dcrf/dcrf.h>
#include <stdbool.h>

#define METRIC_TOY_VARIABLES 8
#define METRIC_TOY_LABELS 8
#define METRIC_TOY_KERNELS 2

struct metric_toy {
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
    size_t variables, labels;
    float unary[METRIC_TOY_VARIABLES * METRIC_TOY_LABELS];
    /* Weights included. */
    long double matrix[METRIC_TOY_KERNELS][METRIC_TOY_VARIABLES][METRIC_TOY_VARIABLES];
    uint16_t hidden[METRIC_TOY_VARIABLES]; /* the optimum of a tight model */
};

/* Tight: the unaries are chosen such that at the dual point of a labelling (pairs that a cut
 * separates are saturated) the reduced costs are smallest at that labelling. Same: all kernels
 * share one distance. */
enum metric_toy_kind { METRIC_TOY_ANY, METRIC_TOY_TIGHT, METRIC_TOY_SAME };

struct metric_toy metric_toy_make(uint64_t seed, enum metric_toy_kind kind, bool has_cliques,
                                  dcrf_rng *rng);
void metric_toy_clear(struct metric_toy *toy);

long double metric_toy_energy(const struct metric_toy *toy, const uint16_t *labels);
/* The lowest energy, and a labelling that attains it. */
long double metric_toy_optimum(const struct metric_toy *toy, uint16_t *best);

/* What the LP's cuts leave out: the largest part of a distance (beyond rounding), and of the energy
 * of a labelling. */
struct metric_toy_left_out {
    long double fraction, energy;
};
struct metric_toy_left_out metric_toy_left_out(const struct metric_toy *toy,
                                               const uint16_t *labels);

#endif
