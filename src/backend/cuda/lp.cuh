/* The LP on a device: declarations shared by lp.cu and the other lp_*.cu. */
#ifndef DCRF_BACKEND_CUDA_LP_CUH
#define DCRF_BACKEND_CUDA_LP_CUH

#include "backend/cuda/cliques.cuh"
#include "backend/cuda/cuts.cuh"
#include "backend/cuda/ordered.cuh"
#include "backend/cuda/sums.cuh"
#include "energy/columns.h"

/* The most labels that the threads of a row can hold, and the most columns of a group. */
#define LP_MOST_LABELS 512

/* A point of the dual: A alpha and v. */
struct lp_dual {
    double *pairwise;
    double *clique; /* NULL without cliques */
};

/* The sums behind the bound of a point: sum_a min_i (phi - point)_ai, and the sum of the
 * magnitudes. */
enum { LP_LOWEST, LP_MAGNITUDE, LP_BOUND_SUMS };

/* What a step returns to the host, in one copy. */
struct lp_answer {
    double weights[DCRF_BACKEND_TARGETS];
    double bounds[DCRF_BACKEND_TARGETS][LP_BOUND_SUMS];
    double objective, uphill;
    double unary;                     /* of the labels of y */
    double momentum, beta;            /* of the inner steps */
    double decrease[2];               /* of the majorant, in the inner steps */
    uint32_t largest[LP_MOST_LABELS]; /* of z, per label, as the bits of a float */
    uint8_t occurs[LP_MOST_LABELS];   /* among the labels of y */
};

/* The smallest and the largest entry of each column, as the bits of floats. */
struct lp_ranges {
    uint32_t smallest[LP_MOST_LABELS], largest[LP_MOST_LABELS];
};

/* Kernels that share their columns (energy/columns.h). */
struct lp_group {
    size_t first, count;     /* in `operators` */
    struct device_cuts cuts; /* none (labels is 0): the columns are the labels */
};

struct dcrf_backend_lp {
    dcrf_backend_device *device;
    const struct dcrf_dual_space *space; /* on the host */
    size_t variables, label_count, stride;
    size_t kernel_count, group_count;
    struct lp_group *groups;
    struct device_operator **operators;      /* group by group */
    double *weights;                         /* on the host */
    float *unary, *y, *previous, *z;         /* blocks */
    float *inner;                            /* the same; NULL until first needed */
    float *packed, *filtered[2];             /* blocks of the columns still in use */
    size_t columns_stride;                   /* of such a block with all of them */
    float *columns;                          /* of one group with cuts; NULL for Potts */
    struct lp_ranges *ranges;                /* of the same */
    float *group_sums, *distances;           /* as in the space; NULL for Potts */
    double *precise;                         /* the same; NULL until first needed */
    struct lp_dual dual[DCRF_BACKEND_DUALS]; /* blocks */
    struct device_cliques cliques;
    double *stiffness; /* per clique */
    float *metric;
    uint16_t *labels;         /* of y, if are_labels_known */
    struct lp_answer *answer; /* on the device */
    double *partial;          /* block sums of a launch */
    unsigned *blocks_done;
    float largest[LP_MOST_LABELS]; /* on the host: of z, if is_largest_known */
    bool is_largest_known;
    bool are_labels_known;
    double unary_of_labels; /* on the host, with `occurs`: if are_labels_known */
    bool occurs[LP_MOST_LABELS];
    struct ordered_levels levels; /* for the last shape used */
    size_t levels_bins;
    double levels_epsilon;
};

/* Copy a block to the device; NULL: zeros. */
dcrf_status lp_write_block(dcrf_backend_lp *lp, double *to, const double *block, dcrf_error *error);
/* Download lp->answer after all enqueued work is done. */
dcrf_status lp_read_answer(dcrf_backend_lp *lp, struct lp_answer *answer, dcrf_error *error);
/* The method of the table. */
dcrf_status lp_find_point(dcrf_backend_lp *lp, const struct dcrf_pair_shape *shape,
                          double threshold, const struct dcrf_interrupt *interrupt,
                          dcrf_error *error);

/* Work on each row by one or a few threads. These enqueue work that writes its results to
 * lp->answer. */
dcrf_status lp_find_largest(dcrf_backend_lp *lp, dcrf_error *error);
/* y and z of `advance`, and the largest z. */
dcrf_status lp_descend(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                       dcrf_error *error);
/* The average and best of `advance`. */
dcrf_status lp_improve(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                       dcrf_error *error);
/* y of `advance` in the metric of the cuts (lp_cuts.cu). */
dcrf_status lp_step_cuts(dcrf_backend_lp *lp, double epsilon, dcrf_error *error);
/* lp->columns of a group with cuts, and their ranges, on the host. */
dcrf_status lp_find_columns(dcrf_backend_lp *lp, const struct lp_group *group,
                            struct lp_ranges *ranges, dcrf_error *error);
/* lp->precise = the first `labels` columns of lp->packed filtered by an operator with lp->levels,
 * in double; rows of `labels`. */
dcrf_status lp_filter_by_bins(dcrf_backend_lp *lp, struct device_operator *op, size_t labels,
                              size_t stride, dcrf_error *error);
/* bounds[0] of the answer. */
dcrf_status lp_sum_lowest(dcrf_backend_lp *lp, dcrf_error *error);
/* The number of doubles that these need in lp->partial. */
size_t lp_row_partials(size_t variables);
size_t lp_search_partials(size_t variables);

/* Rows of unaries. */
struct lp_rows {
    size_t variables;
    uint32_t labels, stride;
    const float *unary;
};

static inline struct lp_rows lp_rows_of(const dcrf_backend_lp *lp) {
    return {lp->variables, (uint32_t)lp->label_count, (uint32_t)lp->stride, lp->unary};
}

/* The step of y. */
struct lp_descent {
    const float *z, *previous, *metric;
    struct lp_dual current;
    double epsilon;
    float *y;
    uint16_t *labels; /* of the largest entries of y; ties go to the first */
    struct lp_answer *answer;
    double *partial;
    unsigned *blocks_done;
};

/* Its sums. */
enum { LP_OBJECTIVE, LP_UPHILL, LP_UNARY, LP_DESCENT_SUMS };

static inline struct lp_descent lp_descent_of(const dcrf_backend_lp *lp, double epsilon) {
    return {lp->z,       lp->previous,   lp->metric, lp->dual[DCRF_BACKEND_CURRENT],
            epsilon,     lp->y,          lp->labels, lp->answer,
            lp->partial, lp->blocks_done};
}

extern const struct dcrf_backend_lp_methods lp_methods;

#ifdef __CUDACC__
static __device__ inline double dual_at(const struct lp_dual &dual, size_t at) {
    return dual.clique ? dual.pairwise[at] + dual.clique[at] : dual.pairwise[at];
}

/* Record the label of a variable's largest y; returns its unary cost. */
static __device__ inline double keep_label(const struct lp_rows &r, const struct lp_descent &p,
                                           size_t variable, uint32_t label) {
    p.labels[variable] = (uint16_t)label;
    if (!p.answer->occurs[label])
        p.answer->occurs[label] = 1; /* all threads write the same value */
    return (double)r.unary[variable * r.stride + label];
}

/* Called by all threads of the launch, in blocks of THREADS. */
static __device__ inline void end_descent(const struct lp_descent &p,
                                          const double (&sums)[LP_DESCENT_SUMS]) {
    double totals[LP_DESCENT_SUMS];
    if (sum_of_launch<LP_DESCENT_SUMS, THREADS>(sums, p.partial, p.blocks_done, totals) &&
        threadIdx.x == 0) {
        p.answer->objective = totals[LP_OBJECTIVE];
        p.answer->uphill = totals[LP_UPHILL];
        p.answer->unary = totals[LP_UNARY];
    }
}
#endif

#endif
