/* The gain of changing single variables or whole cliques (superpixels) alone.
 *
 * When all members of a clique take label j, the sum of the members' individual changes is never
 * less than the joint change, because a disagreeing pair of members is counted for both of them
 * (Potts: [x != x'] <= [x != j] + [x' != j]). So a clique that gains by this sum really gains. */
#include "backend/cpu/moves.h"

#include <string.h>

#define CLIQUES_PER_CHUNK 8

/* ---- variables ------------------------------------------------------------------------------ */

static void read_clique_states(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_moves *moves = context;
    const struct dcrf_cliques *cliques = &moves->model->cliques;
    const uint16_t *labels = moves->current.labels;
    for (size_t p = begin; p < end; p++) {
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const size_t count = cliques->offsets[p + 1] - cliques->offsets[p];
        struct dcrf_clique_state *state = &moves->cliques[p];
        *state = (struct dcrf_clique_state){true, {DCRF_NO_VARIABLE, DCRF_NO_VARIABLE}, {0, 0}};
        if (count < 2)
            continue;
        /* `first` and `second` are the first two labels that occur. */
        const uint16_t first = labels[members[0]];
        uint16_t second = first;
        size_t of_first = 0, of_second = 0;
        uint32_t last_of_second = members[0];
        for (size_t c = 0; c < count; c++) {
            const uint16_t label = labels[members[c]];
            if (label != first && second == first)
                second = label;
            of_first += label == first;
            if (label != first && label == second) {
                of_second++;
                last_of_second = members[c];
            }
        }
        state->is_unanimous = of_first == count;
        if (of_second == 1 && of_first == count - 1) {
            state->dissenter[0] = last_of_second;
            state->target[0] = first;
        }
        if (of_first == 1 && of_second == count - 1) {
            state->dissenter[1] = members[0];
            state->target[1] = second;
        }
    }
}

static void find_variable_gains(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const dcrf_backend_moves *moves = context;
    const dcrf_model *model = moves->model;
    for (size_t a = begin; a < end; a++) {
        const size_t own = moves->current.labels[a];
        const uint32_t p = moves->clique_of ? moves->clique_of[a] : DCRF_NO_CLIQUE;
        const struct dcrf_clique_state *state = p != DCRF_NO_CLIQUE ? &moves->cliques[p] : NULL;
        const float clique_cost = state ? (float)model->cliques.costs[p] : 0;
        float own_cost = dcrf_local_cost(moves, a, own);
        /* Leaving a unanimous clique (of more than one) costs; if the clique is already split, only
         * the change that ends the split matters. */
        if (state && state->is_unanimous &&
            model->cliques.offsets[p + 1] - model->cliques.offsets[p] > 1)
            own_cost -= clique_cost;
        float best_cost = own_cost;
        size_t best = own;
        for (size_t i = 0; i < model->labels; i++) { /* `own` costs no less than own_cost */
            const float cost = dcrf_local_cost(moves, a, i);
            best = cost < best_cost ? i : best;
            best_cost = cost < best_cost ? cost : best_cost;
        }
        for (int k = 0; state && k < 2; k++)
            if (state->dissenter[k] == a) {
                const size_t i = state->target[k];
                const float cost = dcrf_local_cost(moves, a, i) - clique_cost;
                if (cost < best_cost) {
                    best_cost = cost;
                    best = i;
                }
            }
        moves->gain[a] = own_cost - best_cost;
        moves->target[a] = (uint16_t)best;
    }
}

/* ---- cliques -------------------------------------------------------------------------------- */

static void find_clique_gains(void *context, size_t begin, size_t end, size_t worker) {
    const dcrf_backend_moves *moves = context;
    const dcrf_model *model = moves->model;
    const struct dcrf_cliques *cliques = &model->cliques;
    double *cost = moves->clique_rows + worker * model->labels;
    for (size_t p = begin; p < end; p++) {
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const size_t count = cliques->offsets[p + 1] - cliques->offsets[p];
        double own = 0;
        bool is_unanimous = true;
        size_t best = 0;
        memset(cost, 0, model->labels * sizeof *cost);
        for (size_t c = 0; c < count; c++) {
            const size_t a = members[c];
            own += (double)dcrf_local_cost(moves, a, moves->current.labels[a]);
            is_unanimous &= moves->current.labels[a] == moves->current.labels[members[0]];
            for (size_t i = 0; i < model->labels; i++)
                cost[i] += (double)dcrf_local_cost(moves, a, i);
        }
        for (size_t i = 1; i < model->labels; i++)
            if (cost[i] < cost[best])
                best = i;
        moves->gain[p] = (float)(own - cost[best] + (is_unanimous ? 0 : cliques->costs[p]));
        moves->target[p] = (uint16_t)best;
        if (is_unanimous && best == moves->current.labels[members[0]])
            moves->gain[p] = 0;
    }
}

dcrf_status dcrf_moves_find_gains(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error) {
    (void)error;
    dcrf_pool *pool = dcrf_workspace_pool(moves->workspace);
    const size_t variables = moves->model->variables, cliques = moves->model->cliques.count;
    if (of_cliques) {
        dcrf_parallel_for(pool, cliques, CLIQUES_PER_CHUNK, find_clique_gains, moves);
        return DCRF_OK;
    }
    dcrf_parallel_for(pool, cliques, CLIQUES_PER_CHUNK, read_clique_states, moves);
    dcrf_parallel_rows(pool, variables, find_variable_gains, moves);
    return DCRF_OK;
}
