/* A record of the points that the best dual point is a mixture of, so that a verifier can compute
 * the bound again from nothing but the model and the record. Costs memory, so it is off by default.
 */
#ifndef DCRF_SOLVER_LP_RECORD_H
#define DCRF_SOLVER_LP_RECORD_H

#include <dcrf/solver.h>
#include <stddef.h>

/* alpha_ab:i = K_ab F_i(a, b), i a label of `alive`, else 0. With bins > 0, F = clip((y_b - y_a) /
 * epsilon), bilinear between nodes at multiples of 1 / (bins - 1) unless the operator takes the
 * line itself; with bins = 0, a flow, F = y_a - y_b. */
struct dcrf_lp_point {
    double weight; /* in the mixture */
    double epsilon;
    size_t bins;
    size_t alive_count;
    size_t *alive;
    float *y; /* variables x alive_count */
};

struct dcrf_lp_record {
    size_t variables;
    size_t capacity, count;
    struct dcrf_lp_point *points;
    const double *clique; /* v of the mixture: a block with the model's stride, or NULL */
};

/* Have a solver of the LP by Huber continuation record up to `capacity` points,
 * from its start on. */
dcrf_status dcrf_solver_record(dcrf_solver *solver, size_t capacity, dcrf_error *error);

/* The record with the weights of the best point; NULL where there is none, or where the
 * device that has it fails. Valid until the next step. */
const struct dcrf_lp_record *dcrf_solver_recorded(const dcrf_solver *solver);

#endif
