/* The LP on a device: declarations shared by lp.cu, lp_rows.cu and lp_search.cu. */
#ifndef DCRF_BACKEND_CUDA_LP_CUH
#define DCRF_BACKEND_CUDA_LP_CUH

#include "backend/cuda/cliques.cuh"
#include "backend/cuda/ordered.cuh"

/* The most labels that the threads of a row can hold. */
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

struct dcrf_backend_lp {
    dcrf_backend_device *device;
    const struct dcrf_dual_space *space; /* on the host */
    size_t variables, label_count, stride;
    size_t kernel_count;
    struct device_operator **operators;
    double *weights;                         /* on the host */
    float *unary, *y, *previous, *z;         /* blocks */
    float *inner;                            /* the same; NULL until first needed */
    float *packed, *filtered[2];             /* blocks of the labels still in use */
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

/* Work on each row by one or a few threads. These enqueue work that writes its results to
 * lp->answer. */
dcrf_status lp_find_largest(dcrf_backend_lp *lp, dcrf_error *error);
/* y and z of `advance`, and the largest z. */
dcrf_status lp_descend(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                       dcrf_error *error);
/* The average and best of `advance`. */
dcrf_status lp_improve(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                       dcrf_error *error);
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

extern const struct dcrf_backend_lp_methods lp_methods;

#ifdef __CUDACC__
static __device__ inline double dual_at(const struct lp_dual &dual, size_t at) {
    return dual.clique ? dual.pairwise[at] + dual.clique[at] : dual.pairwise[at];
}
#endif

#endif
