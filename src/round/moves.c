/* The moves of single variables and of whole cliques (superpixels).
 *
 * A clique whose members all take label j: every member's own change, added up, is never less than
 * the change of all together, because among the members a pair that disagrees is counted in each
 * of its two (Potts: [x != x'] <= [x != j] + [x' != j]). So a clique that gains by this sum gains.
 */
#include "round/state.h"

#include <string.h>

#define ROWS_PER_CHUNK 1024
#define CLIQUES_PER_CHUNK 8

/* ---- variables ------------------------------------------------------------------------------ */

static void read_clique_states(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_polisher *polisher = context;
    const struct dcrf_cliques *cliques = &polisher->model->cliques;
    const uint16_t *labels = polisher->current.labels;
    for (size_t p = begin; p < end; p++) {
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const size_t count = cliques->offsets[p + 1] - cliques->offsets[p];
        struct dcrf_clique_state *state = &polisher->cliques[p];
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
    const struct dcrf_polisher *polisher = context;
    const dcrf_model *model = polisher->model;
    for (size_t a = begin; a < end; a++) {
        const size_t own = polisher->current.labels[a];
        const uint32_t p = polisher->clique_of ? polisher->clique_of[a] : DCRF_NO_CLIQUE;
        const struct dcrf_clique_state *state = p != DCRF_NO_CLIQUE ? &polisher->cliques[p] : NULL;
        const float clique_cost = state ? (float)model->cliques.costs[p] : 0;
        float own_cost = dcrf_local_cost(polisher, a, own);
        /* Leaving a unanimous clique (of more than one) costs; where the clique is split already,
         * only the change that ends the split matters. */
        if (state && state->is_unanimous &&
            model->cliques.offsets[p + 1] - model->cliques.offsets[p] > 1)
            own_cost -= clique_cost;
        float best_cost = own_cost;
        size_t best = own;
        for (size_t i = 0; i < model->labels; i++) {
            const float cost = dcrf_local_cost(polisher, a, i);
            if (i != own && cost < best_cost) {
                best_cost = cost;
                best = i;
            }
        }
        for (int k = 0; state && k < 2; k++)
            if (state->dissenter[k] == a) {
                const size_t i = state->target[k];
                const float cost = dcrf_local_cost(polisher, a, i) - clique_cost;
                if (cost < best_cost) {
                    best_cost = cost;
                    best = i;
                }
            }
        polisher->gain[a] = own_cost - best_cost;
        polisher->target[a] = (uint16_t)best;
    }
}

dcrf_status dcrf_move_variables(struct dcrf_polisher *polisher, bool *is_better,
                                dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(polisher->workspace);
    if (polisher->there) {
        const dcrf_status status = polisher->methods->find_gains(polisher->there, false, error);
        if (status < 0)
            return status;
    } else {
        dcrf_parallel_for(pool, polisher->model->cliques.count, CLIQUES_PER_CHUNK,
                          read_clique_states, polisher);
        dcrf_parallel_for(pool, polisher->model->variables, ROWS_PER_CHUNK, find_variable_gains,
                          polisher);
    }
    return dcrf_polisher_apply(polisher, polisher->model->variables, false, is_better, error);
}

/* ---- cliques -------------------------------------------------------------------------------- */

static void find_clique_gains(void *context, size_t begin, size_t end, size_t worker) {
    const struct dcrf_polisher *polisher = context;
    const dcrf_model *model = polisher->model;
    const struct dcrf_cliques *cliques = &model->cliques;
    double *cost = polisher->clique_rows + worker * model->labels;
    for (size_t p = begin; p < end; p++) {
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const size_t count = cliques->offsets[p + 1] - cliques->offsets[p];
        double own = 0;
        bool is_unanimous = true;
        size_t best = 0;
        memset(cost, 0, model->labels * sizeof *cost);
        for (size_t c = 0; c < count; c++) {
            const size_t a = members[c];
            own += (double)dcrf_local_cost(polisher, a, polisher->current.labels[a]);
            is_unanimous &= polisher->current.labels[a] == polisher->current.labels[members[0]];
            for (size_t i = 0; i < model->labels; i++)
                cost[i] += (double)dcrf_local_cost(polisher, a, i);
        }
        for (size_t i = 1; i < model->labels; i++)
            if (cost[i] < cost[best])
                best = i;
        polisher->gain[p] = (float)(own - cost[best] + (is_unanimous ? 0 : cliques->costs[p]));
        polisher->target[p] = (uint16_t)best;
        if (is_unanimous && best == polisher->current.labels[members[0]])
            polisher->gain[p] = 0;
    }
}

dcrf_status dcrf_move_cliques(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error) {
    const size_t count = polisher->model->cliques.count;
    *is_better = false;
    if (count == 0)
        return DCRF_OK;
    if (polisher->there) {
        const dcrf_status status = polisher->methods->find_gains(polisher->there, true, error);
        if (status < 0)
            return status;
    } else {
        dcrf_parallel_for(dcrf_workspace_pool(polisher->workspace), count, CLIQUES_PER_CHUNK,
                          find_clique_gains, polisher);
    }
    return dcrf_polisher_apply(polisher, count, true, is_better, error);
}
