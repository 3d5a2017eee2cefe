/* The moves of single variables and of whole cliques on a device: what each would gain, and the
 * labelling after some of those that gain have changed. */
#include "backend/cuda/moves.cuh"
#include "backend/cuda/sums.cuh"

#include <cfloat>

#define WHAT "moves"
/* Threads per row. */
#define LANES 8

/* ---- gains ---------------------------------------------------------------------------------- */

/* The cliques' part of the gains; clique_of is NULL without cliques. */
struct clique_rows {
    const uint32_t *clique_of;
    const struct device_clique_state *states;
    const double *costs;
};

/* What variable a saves in clique cost by taking a label. */
static __device__ float saved(const struct device_clique_state &state, float cost, uint32_t a,
                              uint32_t label) {
    return (state.dissenter[0] == a && state.target[0] == label) ||
                   (state.dissenter[1] == a && state.target[1] == label)
               ? cost
               : 0;
}

/* LANES threads per row: the cheapest other label, if it is cheaper; ties go to the first. */
static __global__ void find_gains(struct move_rows r, struct clique_rows cliques, float *gain,
                                  uint16_t *target) {
    const size_t a = this_thread() / LANES;
    const bool has_row = a < r.variables;
    const uint32_t own = has_row ? r.own[a] : 0;
    const uint32_t p = has_row && cliques.clique_of ? cliques.clique_of[a] : DCRF_NO_CLIQUE;
    struct device_clique_state state = {0, {UINT32_MAX, UINT32_MAX}, {0, 0}};
    float clique_cost = 0;
    if (p != DCRF_NO_CLIQUE) {
        state = cliques.states[p];
        clique_cost = (float)cliques.costs[p];
    }
    float lowest = FLT_MAX, own_cost = 0;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = threadIdx.x % LANES; has_row && i < r.labels; i += LANES) {
        const float cost = local_cost(r, a * r.stride + i) -
                           (i == own ? 0 : saved(state, clique_cost, (uint32_t)a, i));
        if (i == own)
            own_cost = state.holds ? cost - clique_cost : cost;
        else if (cost < lowest || best == UINT32_MAX) {
            lowest = cost;
            best = i;
        }
    }
    lowest_of_lanes<LANES>(&lowest, &best);
    own_cost = sum_of_lanes<LANES>(own_cost); /* zero in all threads but one */
    if (!has_row || threadIdx.x % LANES > 0)
        return;
    const bool is_better = best != UINT32_MAX && lowest < own_cost;
    gain[a] = is_better ? own_cost - lowest : 0;
    target[a] = (uint16_t)(is_better ? best : own);
}

dcrf_status moves_find_gains(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error) {
    TRY(device_enter(moves->device, error));
    if (of_cliques)
        return moves_clique_gains(moves, error);
    if (moves->cliques.count > 0)
        TRY(moves_clique_states(moves, error));
    const struct clique_rows cliques = {moves->cliques.clique_of, moves->states,
                                        moves->cliques.costs};
    find_gains<<<blocks_for(moves->variables * LANES), THREADS, 0, moves->device->stream>>>(
        move_rows_of(moves, &moves->current), cliques, moves->gain, moves->target);
    return check(cudaGetLastError(), WHAT, error);
}

/* ---- changes -------------------------------------------------------------------------------- */

struct changes {
    size_t variables;
    const uint16_t *current, *target;
    const float *gain;
    uint16_t *trial;
    struct moves_answer *answer;
};

static struct changes changes_of(const dcrf_backend_moves *moves) {
    return {moves->variables, moves->current.labels, moves->target,
            moves->gain,      moves->trial.labels,   moves->answer};
}

/* All threads write the same value. */
static __device__ void mark(struct moves_answer *answer, uint16_t label) {
    if (!answer->occurs[label])
        answer->occurs[label] = 1;
}

static __global__ void mark_labels(struct changes c) {
    const size_t a = this_thread();
    if (a < c.variables)
        mark(c.answer, c.trial[a]);
}

static __global__ void change_variables(struct changes c, uint64_t salt, uint32_t mask) {
    const size_t a = this_thread();
    const bool is_changed =
        a < c.variables && c.gain[a] > 0 && (dcrf_backend_scatter(a + salt) & mask) == 0;
    if (a < c.variables) {
        const uint16_t label = is_changed ? c.target[a] : c.current[a];
        c.trial[a] = label;
        mark(c.answer, label);
    }
    const int count = __syncthreads_count(is_changed);
    if (threadIdx.x == 0 && count > 0)
        atomicAdd(&c.answer->changed, (uint32_t)count);
}

/* Change all members of a clique, with the threads of a block. */
static __device__ void change_members(const struct device_cliques &cliques, const struct changes &c,
                                      size_t p) {
    const uint32_t begin = cliques.first_member[cliques.first_piece[p]];
    const uint32_t end = cliques.first_member[cliques.first_piece[p + 1]];
    for (uint32_t k = begin + threadIdx.x; k < end; k += blockDim.x)
        c.trial[cliques.members[k]] = c.target[p];
}

/* One block per clique; before, the trial is a copy of the current labelling. */
static __global__ void change_cliques(struct device_cliques cliques, struct changes c,
                                      uint64_t salt, uint32_t mask) {
    const size_t p = blockIdx.x;
    if (!(c.gain[p] > 0) || (dcrf_backend_scatter(p + salt) & mask) != 0)
        return;
    change_members(cliques, c, p);
    if (threadIdx.x == 0)
        atomicAdd(&c.answer->changed, 1);
}

static dcrf_status copy_current(const dcrf_backend_moves *moves, dcrf_error *error) {
    return check(cudaMemcpyAsync(moves->trial.labels, moves->current.labels,
                                 moves->variables * sizeof(uint16_t), cudaMemcpyDeviceToDevice,
                                 moves->device->stream),
                 WHAT, error);
}

/* Clear the answer, which end_change reads to learn which labels occur in the trial. */
static dcrf_status begin_change(dcrf_backend_moves *moves, dcrf_error *error) {
    TRY(device_enter(moves->device, error));
    return check(cudaMemsetAsync(moves->answer, 0, sizeof *moves->answer, moves->device->stream),
                 WHAT, error);
}

static dcrf_status end_change(dcrf_backend_moves *moves, struct moves_answer *answer,
                              dcrf_error *error) {
    TRY(check(cudaGetLastError(), WHAT, error));
    TRY(moves_read_answer(moves, answer, error));
    for (size_t i = 0; i < moves->labels; i++)
        moves->trial.occurs[i] = answer->occurs[i];
    return DCRF_OK;
}

dcrf_status moves_change(dcrf_backend_moves *moves, bool of_cliques, uint64_t salt, uint32_t mask,
                         size_t *changed, dcrf_error *error) {
    cudaStream_t stream = moves->device->stream;
    const struct changes c = changes_of(moves);
    struct moves_answer answer;
    *changed = 0;
    TRY(begin_change(moves, error));
    if (of_cliques)
        TRY(copy_current(moves, error));
    if (of_cliques) {
        change_cliques<<<(unsigned)moves->cliques.count, THREADS, 0, stream>>>(moves->cliques, c,
                                                                               salt, mask);
        mark_labels<<<blocks_for(moves->variables), THREADS, 0, stream>>>(c);
    } else {
        change_variables<<<blocks_for(moves->variables), THREADS, 0, stream>>>(c, salt, mask);
    }
    TRY(end_change(moves, &answer, error));
    *changed = answer.changed;
    return DCRF_OK;
}

/* ---- the best change ------------------------------------------------------------------------ */

/* Positive floats compare like their bits; among equal gains, the first unit has the largest
 * key. */
static __global__ void find_best(struct changes c, size_t units, unsigned long long *best) {
    const size_t unit = this_thread();
    if (unit < units && c.gain[unit] > 0)
        atomicMax(best, (unsigned long long)__float_as_uint(c.gain[unit]) << 32 |
                            (0xffffffffu - (uint32_t)unit));
}

/* One block. */
static __global__ void change_one(struct device_cliques cliques, struct changes c, bool is_clique,
                                  const unsigned long long *best) {
    const uint32_t unit = 0xffffffffu - (uint32_t)(*best & 0xffffffffu);
    if (*best == 0)
        return; /* nothing to gain */
    if (is_clique)
        change_members(cliques, c, unit);
    else if (threadIdx.x == 0)
        c.trial[unit] = c.target[unit];
}

dcrf_status moves_change_best(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error) {
    cudaStream_t stream = moves->device->stream;
    const size_t units = of_cliques ? moves->cliques.count : moves->variables;
    const struct changes c = changes_of(moves);
    struct moves_answer answer;
    TRY(begin_change(moves, error));
    TRY(copy_current(moves, error));
    TRY(check(cudaMemsetAsync(moves->best, 0, sizeof *moves->best, stream), WHAT, error));
    find_best<<<blocks_for(units), THREADS, 0, stream>>>(c, units, moves->best);
    change_one<<<1, THREADS, 0, stream>>>(moves->cliques, c, of_cliques, moves->best);
    mark_labels<<<blocks_for(moves->variables), THREADS, 0, stream>>>(c);
    return end_change(moves, &answer, error);
}
