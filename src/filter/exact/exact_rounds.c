/* All pairs of blocks, scheduled as a round-robin tournament: with one block fixed and the others
 * rotating by one each round (the circle method), every two blocks meet once and none occurs twice
 * in a round. So the pairs of a round can run in parallel, and the sums of a block accumulate in
 * the order of the rounds, whatever the number of threads. */
#include "filter/exact/exact.h"

struct round_context {
    dcrf_block_task task;
    void *context;
    size_t blocks;
    size_t players; /* number of blocks, rounded up to even by a dummy */
    size_t round;
};

static void run_pairs(void *context, size_t begin, size_t end, size_t worker) {
    const struct round_context *c = context;
    const size_t circle = c->players - 1;
    for (size_t k = begin; k < end; k++) {
        const size_t one = k == 0 ? circle : (c->round + k) % circle;
        const size_t other = (c->round + circle - k) % circle;
        if (one < c->blocks && other < c->blocks)
            c->task(c->context, one < other ? one : other, one < other ? other : one, worker);
    }
}

static void run_alone(void *context, size_t begin, size_t end, size_t worker) {
    const struct round_context *c = context;
    for (size_t k = begin; k < end; k++)
        c->task(c->context, k, k, worker);
}

dcrf_status dcrf_exact_rounds(const struct dcrf_exact *op, dcrf_workspace *workspace,
                              dcrf_block_task task, void *context, dcrf_error *error) {
    struct round_context rounds = {task, context, op->blocks, op->blocks + op->blocks % 2, 0};
    bool goes_on = dcrf_parallel_while(workspace, op->blocks, 1, run_alone, &rounds);
    for (; op->blocks > 1 && goes_on && rounds.round < rounds.players - 1; rounds.round++)
        goes_on = dcrf_parallel_while(workspace, rounds.players / 2, 1, run_pairs, &rounds);
    return goes_on
               ? DCRF_OK
               : dcrf_fail_interrupted(workspace, "summing up the pairs of an exact kernel", error);
}
