/* Cliques in the moves of round/: their cost under a labelling, which single changes make a split
 * clique unanimous (backend/cpu/moves_gains.c), and what a clique gains if all its members take one
 * label. */
#include "backend/cuda/moves.cuh"
#include "backend/cuda/sums.cuh"

#include <cfloat>

#define WHAT "moves of cliques"
#define WARP 32
/* One block per clique: each warp takes every WARPS-th member, each lane a label. */
#define WARPS 8

struct clique {
    const uint32_t *members;
    uint32_t count;
};

static __device__ struct clique clique_at(const struct device_cliques &cliques, size_t p) {
    const uint32_t begin = cliques.first_member[cliques.first_piece[p]];
    return {cliques.members + begin, cliques.first_member[cliques.first_piece[p + 1]] - begin};
}

/* The first member whose label differs from the first member's, or `count`. Called by, and returned
 * to, all threads of a warp. */
static __device__ uint32_t first_dissenter(const struct clique &clique, const uint16_t *labels) {
    const uint16_t first = labels[clique.members[0]];
    uint32_t found = clique.count;
    for (uint32_t c = threadIdx.x % WARP; c < clique.count && found == clique.count; c += WARP)
        if (labels[clique.members[c]] != first)
            found = c;
    return __reduce_min_sync(0xffffffffu, found);
}

/* ---- cost ----------------------------------------------------------------------------------- */

/* One warp per clique. */
static __global__ void sum_costs(struct device_cliques cliques, const uint16_t *labels,
                                 double *partial, unsigned *blocks_done, double *cost) {
    const size_t p = this_thread() / WARP;
    double mine[1] = {0}, total[1];
    if (p < cliques.count) {
        const struct clique clique = clique_at(cliques, p);
        const bool is_split = first_dissenter(clique, labels) < clique.count;
        if (is_split && threadIdx.x % WARP == 0)
            mine[0] = cliques.costs[p];
    }
    if (sum_of_launch<1, THREADS>(mine, partial, blocks_done, total) && threadIdx.x == 0)
        *cost = total[0];
}

dcrf_status moves_clique_cost(dcrf_backend_moves *moves, const uint16_t *labels,
                              dcrf_error *error) {
    sum_costs<<<blocks_for(moves->cliques.count * WARP), THREADS, 0, moves->device->stream>>>(
        moves->cliques, labels, moves->partial, moves->blocks_done, &moves->answer->clique_cost);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- states --------------------------------------------------------------------------------- */

/* One warp per clique. If exactly two labels occur, a label with a single member can be given up by
 * that member. */
static __global__ void find_states(struct device_cliques cliques, const uint16_t *labels,
                                   struct device_clique_state *states) {
    const size_t p = this_thread() / WARP;
    if (p >= cliques.count)
        return; /* whole warps */
    const struct clique clique = clique_at(cliques, p);
    const uint32_t other = first_dissenter(clique, labels);
    const uint16_t first = labels[clique.members[0]];
    const uint16_t second = labels[clique.members[other < clique.count ? other : 0]];
    uint32_t of_first = 0, of_second = 0;
    for (uint32_t c = threadIdx.x % WARP; c < clique.count; c += WARP) {
        const uint16_t label = labels[clique.members[c]];
        of_first += label == first;
        of_second += label != first && label == second;
    }
    of_first = sum_of_lanes<WARP>(of_first);
    of_second = sum_of_lanes<WARP>(of_second);
    if (threadIdx.x % WARP > 0)
        return;
    struct device_clique_state state = {
        of_first == clique.count && clique.count > 1, {UINT32_MAX, UINT32_MAX}, {0, 0}};
    if (of_second == 1 && of_first == clique.count - 1) {
        state.dissenter[0] = clique.members[other];
        state.target[0] = first;
    }
    if (of_first == 1 && of_second == clique.count - 1 && of_second > 0) {
        state.dissenter[1] = clique.members[0];
        state.target[1] = second;
    }
    states[p] = state;
}

dcrf_status moves_clique_states(dcrf_backend_moves *moves, dcrf_error *error) {
    find_states<<<blocks_for(moves->cliques.count * WARP), THREADS, 0, moves->device->stream>>>(
        moves->cliques, moves->current.labels, moves->states);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- gains ---------------------------------------------------------------------------------- */

/* The sum over the warps of a block, in order, per lane, for all threads. */
static __device__ double sum_of_warps(double mine, double (&shared)[WARPS][WARP]) {
    shared[threadIdx.x / WARP][threadIdx.x % WARP] = mine;
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < WARPS; w++)
        sum += shared[w][threadIdx.x % WARP];
    __syncthreads();
    return sum;
}

static __global__ void find_clique_gains(struct device_cliques cliques, struct move_rows r,
                                         float *gain, uint16_t *target) {
    __shared__ double shared[WARPS][WARP];
    const size_t p = blockIdx.x;
    const struct clique clique = clique_at(cliques, p);
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const bool is_unanimous = first_dissenter(clique, r.own) == clique.count;
    double own = 0;
    for (uint32_t c = threadIdx.x; c < clique.count; c += WARPS * WARP) {
        const size_t a = clique.members[c];
        own += (double)local_cost(r, a * r.stride + r.own[a]);
    }
    own = sum_of_warps(sum_of_lanes<WARP>(own), shared);
    double lowest = DBL_MAX;
    uint32_t best = UINT32_MAX;
    for (uint32_t begin = 0; begin < r.labels; begin += WARP) {
        const uint32_t label = begin + lane;
        double cost = 0;
        for (uint32_t c = warp; c < clique.count && label < r.labels; c += WARPS)
            cost += (double)local_cost(r, clique.members[c] * (size_t)r.stride + label);
        cost = sum_of_warps(cost, shared);
        if (label < r.labels && cost < lowest) {
            lowest = cost;
            best = label;
        }
    }
    lowest_of_lanes<WARP>(&lowest, &best);
    if (threadIdx.x > 0)
        return;
    const float gained = (float)(own - lowest + (is_unanimous ? 0 : cliques.costs[p]));
    gain[p] = is_unanimous && best == r.own[clique.members[0]] ? 0 : gained;
    target[p] = (uint16_t)best;
}

dcrf_status moves_clique_gains(dcrf_backend_moves *moves, dcrf_error *error) {
    find_clique_gains<<<(unsigned)moves->cliques.count, WARPS * WARP, 0, moves->device->stream>>>(
        moves->cliques, move_rows_of(moves, &moves->current), moves->gain, moves->target);
    return check(cudaGetLastError(), WHAT, error);
}
