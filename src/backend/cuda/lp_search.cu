/* Moves the best dual point of the LP towards another one for as long as the bound rises
 * (backend/dual.c, dcrf_dual_improve), without waiting for the host.
 *
 * One pass over the rows computes the slope of the bound at COARSE points of the segment, and
 * another at FINE - 1 points between two of them, in place of the CPU's successive bisections. The
 * thread block that finishes last bisects; a third pass mixes, and computes the sums behind the
 * bound. */
#include "backend/cuda/lp.cuh"
#include "backend/cuda/sums.cuh"

#include <cfloat>

#define WHAT "the LP"
#define COARSE 16
#define FINE 8
/* Rows (and threads) per block, which go through shared memory CHUNK labels at a time. */
#define ROWS 128
#define CHUNK 8
/* Threads per row of a mixture. */
#define LANES 8

size_t lp_search_partials(size_t variables) {
    const size_t slopes = (variables + ROWS - 1) / ROWS * COARSE;
    const size_t mixtures = blocks_for(variables * LANES) * (size_t)LP_BOUND_SUMS;
    return slopes > mixtures ? slopes : mixtures;
}

/* ---- how far -------------------------------------------------------------------------------- */

/* Errors are what the bounds lose to rounding. When the search begins, the best point has already
 * moved the fraction *before towards `current` (NULL: 0). */
struct search {
    struct lp_rows rows;
    struct lp_dual best, to;
    double error_best, error_current, error_to;
    const double *before;
    double *weight; /* result: a fraction of the segment */
    double *partial;
    unsigned *blocks_done;
};

/* The last of `count` (a power of two) steps where the bound still rises; 0 if it falls from the
 * first. slopes[k] is the slope at step k + 1, before subtracting that of the errors. */
static __device__ uint32_t last_rise(const double *slopes, double of_errors, uint32_t count) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (slopes[middle - 1] - of_errors > 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __device__ double choose_weight(const struct search &s, const double (&slopes)[COARSE],
                                       double of_errors, double) {
    return slopes[COARSE - 1] - of_errors < 0
               ? (double)last_rise(slopes, of_errors, COARSE) / COARSE
               : 1;
}

static __device__ double choose_weight(const struct search &s, const double (&slopes)[FINE],
                                       double of_errors, double from) {
    return from + (double)last_rise(slopes, of_errors, FINE) / (COARSE * FINE);
}

/* One thread per row: the label with the lowest reduced cost at each t; ties go to the first. */
template <int POINTS> static __global__ void sum_slopes(struct search s) {
    __shared__ double costs[ROWS][CHUNK + 1], changes[ROWS][CHUNK + 1];
    const bool is_fine = POINTS == FINE;
    const double from = is_fine ? *s.weight : 0, step = 1.0 / (is_fine ? COARSE * FINE : COARSE);
    if (is_fine && from == 1)
        return; /* in all threads: the bound rises all the way */
    double lowest[POINTS], slope[POINTS], slopes[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; p++) {
        lowest[p] = DBL_MAX;
        slope[p] = 0;
    }
    for (uint32_t begin = 0; begin < s.rows.labels; begin += CHUNK) {
        const uint32_t count = min((uint32_t)CHUNK, s.rows.labels - begin);
        for (uint32_t i = threadIdx.x; i < ROWS * CHUNK; i += ROWS) {
            const size_t a = (size_t)blockIdx.x * ROWS + i / CHUNK;
            if (a < s.rows.variables && i % CHUNK < count) {
                const size_t at = a * s.rows.stride + begin + i % CHUNK;
                const double start = dual_at(s.best, at);
                costs[i / CHUNK][i % CHUNK] = (double)s.rows.unary[at] - start;
                changes[i / CHUNK][i % CHUNK] = dual_at(s.to, at) - start;
            }
        }
        __syncthreads();
        for (uint32_t k = 0; k < count; k++) {
            const double cost = costs[threadIdx.x][k], change = changes[threadIdx.x][k];
#pragma unroll
            for (int p = 0; p < POINTS; p++) {
                const double reduced = cost - (from + (p + 1) * step) * change;
                slope[p] = reduced < lowest[p] ? -change : slope[p];
                lowest[p] = reduced < lowest[p] ? reduced : lowest[p];
            }
        }
        __syncthreads();
    }
    if ((size_t)blockIdx.x * ROWS + threadIdx.x >= s.rows.variables)
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            slope[p] = 0;
    if (!sum_of_launch<POINTS, ROWS>(slope, s.partial, s.blocks_done, slopes) || threadIdx.x > 0)
        return;
    const double before = s.before ? *s.before : 0;
    const double error_from = s.error_best + before * (s.error_current - s.error_best);
    *s.weight = choose_weight(s, slopes, s.error_to - error_from, from);
}

/* ---- mixtures and the bound ----------------------------------------------------------------- */

struct mixture {
    struct lp_rows rows;
    struct lp_dual best, to;
    const double *weight; /* NULL: best is unchanged */
    struct lp_dual average;
    double average_weight; /* of `to` in the average; 0: it is unchanged */
    double *sums;          /* of the bound */
    double *partial;
    unsigned *blocks_done;
};

static __device__ inline void mix_at(double *into, double value, double weight, size_t at) {
    into[at] += weight * (value - into[at]);
}

/* LANES threads per row. */
static __global__ void mix_rows(struct mixture m) {
    const size_t a = this_thread() / LANES;
    const double weight = m.weight ? *m.weight : 0;
    double lowest = DBL_MAX;
    for (uint32_t i = threadIdx.x % LANES; a < m.rows.variables && i < m.rows.labels; i += LANES) {
        const size_t at = a * m.rows.stride + i;
        if (m.average_weight > 0) {
            mix_at(m.average.pairwise, m.to.pairwise[at], m.average_weight, at);
            if (m.average.clique)
                mix_at(m.average.clique, m.to.clique[at], m.average_weight, at);
        }
        if (weight > 0) {
            mix_at(m.best.pairwise, m.to.pairwise[at], weight, at);
            if (m.best.clique)
                mix_at(m.best.clique, m.to.clique[at], weight, at);
        }
        lowest = fmin(lowest, (double)m.rows.unary[at] - dual_at(m.best, at));
    }
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2)
        lowest = fmin(lowest, __shfl_xor_sync(0xffffffffu, lowest, distance));
    double mine[LP_BOUND_SUMS] = {0, 0}, sums[LP_BOUND_SUMS];
    if (a < m.rows.variables && threadIdx.x % LANES == 0) {
        mine[LP_LOWEST] = lowest;
        mine[LP_MAGNITUDE] = fabs(lowest);
    }
    if (sum_of_launch<LP_BOUND_SUMS, THREADS>(mine, m.partial, m.blocks_done, sums) &&
        threadIdx.x == 0)
        for (int k = 0; k < LP_BOUND_SUMS; k++)
            m.sums[k] = sums[k];
}

static void launch_mixture(const dcrf_backend_lp *lp, const struct mixture &m) {
    mix_rows<<<blocks_for(lp->variables * LANES), THREADS, 0, lp->device->stream>>>(m);
}

dcrf_status lp_sum_lowest(dcrf_backend_lp *lp, dcrf_error *error) {
    struct mixture m = {};
    m.rows = lp_rows_of(lp);
    m.best = lp->dual[DCRF_BACKEND_BEST];
    m.sums = lp->answer->bounds[0];
    m.partial = lp->partial;
    m.blocks_done = lp->blocks_done;
    launch_mixture(lp, m);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- both ----------------------------------------------------------------------------------- */

/* What the bound of a point loses to rounding. */
static double error_of(const dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                       enum dcrf_backend_dual point) {
    return dcrf_dual_error_slope(lp->space, {}, how->roundings[point]);
}

/* Move towards target t: 0 is `current`, which is also mixed into the average; 1 is the average. */
static dcrf_status improve(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how, int t,
                           dcrf_error *error) {
    const enum dcrf_backend_dual to = t == 0 ? DCRF_BACKEND_CURRENT : DCRF_BACKEND_AVERAGE;
    const unsigned blocks = (unsigned)((lp->variables + ROWS - 1) / ROWS);
    cudaStream_t stream = lp->device->stream;
    struct search s = {};
    s.rows = lp_rows_of(lp);
    s.best = lp->dual[DCRF_BACKEND_BEST];
    s.to = lp->dual[to];
    s.error_best = error_of(lp, how, DCRF_BACKEND_BEST);
    s.error_current = error_of(lp, how, DCRF_BACKEND_CURRENT);
    s.error_to = error_of(lp, how, to);
    s.before = t == 0 ? nullptr : &lp->answer->weights[0];
    s.weight = &lp->answer->weights[t];
    s.partial = lp->partial;
    s.blocks_done = lp->blocks_done;
    sum_slopes<COARSE><<<blocks, ROWS, 0, stream>>>(s);
    sum_slopes<FINE><<<blocks, ROWS, 0, stream>>>(s);
    struct mixture m = {};
    m.rows = s.rows;
    m.best = s.best;
    m.to = s.to;
    m.weight = s.weight;
    m.average = lp->dual[DCRF_BACKEND_AVERAGE];
    m.average_weight = t == 0 ? how->average_weight : 0;
    m.sums = lp->answer->bounds[t];
    m.partial = lp->partial;
    m.blocks_done = lp->blocks_done;
    launch_mixture(lp, m);
    return check(cudaGetLastError(), WHAT, error);
}

dcrf_status lp_improve(dcrf_backend_lp *lp, const struct dcrf_backend_advance *how,
                       dcrf_error *error) {
    TRY(improve(lp, how, 0, error));
    return how->has_average ? improve(lp, how, 1, error) : DCRF_OK;
}
