/* The LP's dual points of cliques in the min form: for every clique and label, the projection of a
 * column of values onto a simplex (backend/cpu/clique_dual.c, backend/simplex.c). */
#include "backend/cuda/cliques.cuh"

#define WHAT "the cliques of the LP"
/* One block per clique and LANES labels: each warp takes every WARPS-th member, each lane a
 * label. */
#define LANES 32
#define WARPS 16

struct projection {
    const uint32_t *members, *first_member, *first_piece;
    const double *costs, *stiffness;
    double epsilon;
    uint32_t labels, stride;
    uint32_t groups; /* of LANES labels */
    const float *z;
    double *v;
};

/* The sum of the warps' values of each label, in order, for all threads. */
template <typename T> static __device__ T sum_of_warps(T mine, T (&shared)[WARPS][LANES]) {
    const uint32_t lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    shared[warp][lane] = mine;
    __syncthreads();
    T sum = 0;
    for (uint32_t w = 0; w < WARPS; w++)
        sum += shared[w][lane];
    __syncthreads();
    return sum;
}

/* Newton's method from the left, as in dcrf_simplex_threshold; a label that is done waits for the
 * others. Values are rounded to float as they are there. */
static __global__ void project_columns(struct projection p) {
    __shared__ double sums[WARPS][LANES];
    __shared__ uint32_t counts[WARPS][LANES];
    const uint32_t clique = blockIdx.x / p.groups;
    const uint32_t label = blockIdx.x % p.groups * LANES + threadIdx.x % LANES;
    const uint32_t begin = p.first_member[p.first_piece[clique]];
    const uint32_t end = p.first_member[p.first_piece[clique + 1]];
    const uint32_t first = begin + threadIdx.x / LANES;
    const double cost = p.costs[clique], step = p.stiffness[clique] / p.epsilon;
    if (end == begin || !(cost > 0))
        return; /* the whole block */
    const bool has_label = label < p.labels;
    const float *z = p.z + (has_label ? label : 0);
    double *v = p.v + (has_label ? label : 0);
    double left = 0;
    for (uint32_t c = first; c < end; c += WARPS)
        left += (double)(float)(-step * (double)z[(size_t)p.members[c] * p.stride]);
    double sum = sum_of_warps(left, sums), theta = 0;
    uint32_t kept = end - begin;
    bool is_done = false;
    while (__syncthreads_or(!is_done)) {
        const double next = is_done ? theta : (sum - cost) / (double)kept;
        uint32_t mine = 0;
        left = 0;
        for (uint32_t c = first; c < end; c += WARPS) {
            const float value = (float)(-step * (double)z[(size_t)p.members[c] * p.stride]);
            const bool is_above = (double)value > next;
            mine += is_above;
            left += is_above ? (double)value : 0;
        }
        const uint32_t above = sum_of_warps(mine, counts);
        left = sum_of_warps(left, sums);
        theta = next;
        is_done |= above >= kept || above == 0;
        if (!is_done) {
            kept = above;
            sum = left;
        }
    }
    left = 0;
    for (uint32_t c = first; c < end; c += WARPS) {
        const float value = (float)(-step * (double)z[(size_t)p.members[c] * p.stride]);
        left += (double)(float)fmax((double)value - theta, 0.0);
    }
    sum = sum_of_warps(left, sums);
    const double correction = sum > 0 ? cost / sum : 0;
    const double even = cost / (double)(end - begin);
    for (uint32_t c = first; c < end && has_label; c += WARPS) {
        const size_t row = (size_t)p.members[c] * p.stride;
        const float value = (float)(-step * (double)z[row]);
        const float above = (float)fmax((double)value - theta, 0.0);
        v[row] = sum > 0 ? (double)above * correction : even;
    }
}

dcrf_status cliques_project(const struct device_cliques *cliques, const double *stiffness,
                            double epsilon, const float *z, double *v, dcrf_error *error) {
    const uint32_t groups = (uint32_t)((cliques->labels + LANES - 1) / LANES);
    const struct projection p = {cliques->members,
                                 cliques->first_member,
                                 cliques->first_piece,
                                 cliques->costs,
                                 stiffness,
                                 epsilon,
                                 (uint32_t)cliques->labels,
                                 (uint32_t)cliques->stride,
                                 groups,
                                 z,
                                 v};
    project_columns<<<(unsigned)cliques->count * groups, LANES * WARPS, 0,
                      cliques->device->stream>>>(p);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- inner steps ---------------------------------------------------------------------------- */

/* One thread per clique and label. */
static __global__ void add_means(struct device_cliques c, const double *stiffness, const float *in,
                                 float *out) {
    const size_t thread = this_thread(), clique = thread / c.stride, label = thread % c.stride;
    if (clique >= c.count || label >= c.labels)
        return;
    const uint32_t begin = c.first_member[c.first_piece[clique]];
    const uint32_t end = c.first_member[c.first_piece[clique + 1]];
    double sum = 0;
    for (uint32_t k = begin; k < end; k++)
        sum += (double)in[(size_t)c.members[k] * c.stride + label];
    const float pull = (float)(stiffness[clique] * sum / (double)(end - begin));
    for (uint32_t k = begin; k < end; k++)
        out[(size_t)c.members[k] * c.stride + label] += pull;
}

dcrf_status cliques_add_means(const struct device_cliques *cliques, const double *stiffness,
                              const float *in, float *out, dcrf_error *error) {
    add_means<<<blocks_for(cliques->count * cliques->stride), THREADS, 0,
                cliques->device->stream>>>(*cliques, stiffness, in, out);
    return check(cudaGetLastError(), WHAT, error);
}
