/* The LP on a device: what lp.cu and lp_rows.cu share. */
#ifndef DCRF_CUDA_LP_CUH
#define DCRF_CUDA_LP_CUH

#include "cuda/cliques.cuh"
#include "cuda/ordered.cuh"

/* Labels that the threads of a row can hold. */
#define LP_MOST_LABELS 512

/* A point of the dual: A alpha and v. */
struct lp_dual {
    double *pairwise;
    double *clique; /* NULL without cliques */
};

struct dcrf_backend_lp {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    size_t kernel_count;
    struct device_operator **operators;
    double *weights;                         /* the host's */
    float *unary, *y, *previous, *z;         /* blocks */
    float *packed, *filtered;                /* blocks of the labels that are alive */
    double *precise;                         /* likewise; NULL until it is first needed */
    struct lp_dual dual[DCRF_BACKEND_DUALS]; /* blocks */
    struct device_cliques cliques;
    double *stiffness; /* per clique */
    float *metric;
    uint32_t *largest; /* per label, the bits of a float */
    double *partial, *sums;
    struct ordered_levels levels; /* those of the last shape */
    size_t levels_bins;
    double levels_epsilon;
};

/* What one thread, or a few, make of each row. They put work into the stream; sums are in
 * device->few when it is done. */
dcrf_status lp_find_largest(dcrf_backend_lp *lp, dcrf_error *error);
dcrf_status lp_sum_slopes(dcrf_backend_lp *lp, const struct lp_dual *to, double first, double step,
                          size_t count, dcrf_error *error);
dcrf_status lp_sum_lowest(dcrf_backend_lp *lp, dcrf_error *error);
dcrf_status lp_project(dcrf_backend_lp *lp, float epsilon, dcrf_error *error);
/* Doubles that lp->partial needs. */
size_t lp_partial_sums(size_t variables);

extern const struct dcrf_backend_lp_methods lp_methods;

#ifdef __CUDACC__
static __device__ inline double dual_at(const struct lp_dual &dual, size_t at) {
    return dual.clique ? dual.pairwise[at] + dual.clique[at] : dual.pairwise[at];
}
#endif

#endif
