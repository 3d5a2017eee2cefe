/* The moves of round/ on a device: declarations shared by moves.cu, moves_change.cu and
 * moves_cliques.cu. */
#ifndef DCRF_BACKEND_CUDA_MOVES_CUH
#define DCRF_BACKEND_CUDA_MOVES_CUH

#include "backend/cuda/cliques.cuh"
#include "backend/cuda/messages.cuh"

#define MOVES_MOST_LABELS 512

/* Labels and their field on the device; which labels occur is known on the host. */
struct labelling {
    uint16_t *labels;
    float *field; /* a block */
    bool occurs[MOVES_MOST_LABELS];
};

/* What the host waits for, in one copy. */
struct moves_answer {
    double energy, clique_cost;
    uint32_t changed; /* variables or cliques */
    uint32_t occurs[MOVES_MOST_LABELS];
};

/* Which single change makes a clique unanimous (backend/cpu/moves.h). */
struct device_clique_state {
    uint32_t holds; /* unanimous, with more than one member */
    uint32_t dissenter[2];
    uint16_t target[2];
};

struct dcrf_backend_moves {
    dcrf_backend_device *device;
    size_t variables, labels, stride;
    float same_label_factor, all_factor;
    struct message_kernels kernels;
    struct device_cliques cliques;
    struct device_clique_state *states; /* of cliques */
    float *unary, *indicator;
    struct labelling current, trial;
    float *gain; /* of variables, or cliques */
    uint16_t *target, *map;
    double *partial; /* of energies */
    unsigned *blocks_done;
    struct moves_answer *answer; /* on the device */
    size_t table_rows;           /* rows per block when summing the tables; 0: no tables */
    double *table_partial;       /* block sums of the tables */
    double *tables;              /* U and T */
    uint32_t *sizes;
    unsigned long long *best;
};

extern const struct dcrf_backend_moves_methods moves_methods;

/* Download moves->answer and wait for it. */
dcrf_status moves_read_answer(dcrf_backend_moves *moves, struct moves_answer *answer,
                              dcrf_error *error);

/* Backend methods in moves_change.cu. */
dcrf_status moves_find_gains(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error);
dcrf_status moves_change(dcrf_backend_moves *moves, bool of_cliques, uint64_t salt, uint32_t mask,
                         size_t *changed, dcrf_error *error);
dcrf_status moves_change_best(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error);

/* For cliques, in moves_cliques.cu; these only enqueue work. The clique cost of the labels, into
 * the answer; the states of the current labelling; what a clique gains if all its members take one
 * label. */
dcrf_status moves_clique_cost(dcrf_backend_moves *moves, const uint16_t *labels, dcrf_error *error);
dcrf_status moves_clique_states(dcrf_backend_moves *moves, dcrf_error *error);
dcrf_status moves_clique_gains(dcrf_backend_moves *moves, dcrf_error *error);

struct move_rows {
    size_t variables;
    uint32_t labels, stride;
    float same_label_factor;
    const float *unary, *field;
    const uint16_t *own; /* labels */
};

static inline struct move_rows move_rows_of(const dcrf_backend_moves *moves,
                                            const struct labelling *x) {
    return {moves->variables,
            (uint32_t)moves->labels,
            (uint32_t)moves->stride,
            moves->same_label_factor,
            moves->unary,
            x->field,
            x->labels};
}

#ifdef __CUDACC__
/* dcrf_local_cost */
static __device__ inline float local_cost(const struct move_rows &r, size_t at) {
    return r.unary[at] + 2 * r.same_label_factor * r.field[at];
}
#endif

#endif
