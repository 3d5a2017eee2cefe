#include "energy/sums.h"

#include "core/error.h"

const struct dcrf_slot dcrf_energy_slot = {"the block of an energy"};
const struct dcrf_slot dcrf_filtered_slot = {"a filtered block"};
const struct dcrf_slot dcrf_trial_slot = {"the field of a second labelling"};
const struct dcrf_slot dcrf_energy_slot2 = {"the labels of an energy"};
const struct dcrf_slot dcrf_energy_slot3 = {"sums of an energy"};

#define LABELS_PER_BLOCK 32
#define ROWS_PER_CHUNK 1024
#define CLIQUES_PER_CHUNK 8

static dcrf_status filter_block(const struct dcrf_pair_sum *pairs, dcrf_error *error) {
    const dcrf_operator *op = pairs->plan->kernels[pairs->kernel].op;
    return pairs->levels ? dcrf_operator_ordered(op, pairs->workspace, pairs->levels, pairs->in,
                                                 pairs->out, pairs->channels, pairs->stride, error)
                         : dcrf_operator_apply(op, pairs->workspace, DCRF_SYMMETRIC, pairs->in,
                                               pairs->out, pairs->channels, pairs->stride, error);
}

static dcrf_status sum_kernel(struct dcrf_pair_sum *pairs, double *total, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(pairs->workspace);
    const dcrf_model *model = pairs->plan->model;
    const size_t variables = model->variables;
    const dcrf_operator *op = pairs->plan->kernels[pairs->kernel].op;
    if (pairs->differing && op->methods->disagreement &&
        model->kernels[pairs->kernel].compatibility == DCRF_COMPATIBILITY_POTTS)
        return op->methods->disagreement(op, pairs->workspace, pairs->differing, false, total,
                                         error);
    *total = 0;
    for (pairs->first = 0; pairs->first < pairs->label_count; pairs->first += LABELS_PER_BLOCK) {
        const size_t left = pairs->label_count - pairs->first;
        pairs->channels = left < LABELS_PER_BLOCK ? left : LABELS_PER_BLOCK;
        dcrf_parallel_for(pool, variables, ROWS_PER_CHUNK, pairs->fill, pairs);
        TRY(filter_block(pairs, error));
        *total += dcrf_parallel_sum(pool, variables, pairs->sum, pairs);
    }
    return DCRF_OK;
}

/* Sum all kernels in one call if they have distances and their operators allow it; else *count is
 * 0. */
static dcrf_status sum_together(const struct dcrf_pair_sum *pairs, double *sums, size_t *count,
                                dcrf_error *error) {
    const dcrf_model *model = pairs->plan->model;
    struct dcrf_together together;
    const float *distances[DCRF_MOST_TOGETHER];
    size_t listed = 0;
    *count = 0;
    if (!pairs->differing ||
        !dcrf_plan_collect(pairs->plan, pairs->workspace, NULL, model->kernel_count, &together))
        return DCRF_OK;
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        const bool is_potts = kernel->compatibility == DCRF_COMPATIBILITY_POTTS;
        if (!(kernel->weight > 0))
            continue;
        if (!is_potts && !kernel->cuts)
            return DCRF_OK; /* its diagonal may not be zero */
        distances[listed++] = is_potts ? NULL : kernel->compatibility_values;
    }
    *count = together.count;
    return together.methods->disagreements(together.operators, distances, together.count,
                                           pairs->differing, pairs->place_of, model->labels,
                                           pairs->label_count, sums, error);
}

dcrf_status dcrf_pair_sum_run(struct dcrf_pair_sum *pairs, double *total, double *of_kernel,
                              dcrf_error *error) {
    const dcrf_model *model = pairs->plan->model;
    double sums[DCRF_MOST_TOGETHER];
    size_t count, next = 0;
    TRY(sum_together(pairs, sums, &count, error));
    const size_t widest =
        pairs->label_count < LABELS_PER_BLOCK ? pairs->label_count : LABELS_PER_BLOCK;
    pairs->stride = dcrf_padded(widest);
    pairs->in = dcrf_workspace_slot(pairs->workspace, &dcrf_energy_slot, model->variables,
                                    pairs->stride * sizeof *pairs->in);
    pairs->out = dcrf_workspace_slot(pairs->workspace, &dcrf_filtered_slot, model->variables,
                                     pairs->stride * sizeof *pairs->out);
    if (!pairs->in || !pairs->out)
        return dcrf_fail_memory(error, "the blocks of an energy");
    *total = 0;
    for (pairs->kernel = 0; pairs->kernel < model->kernel_count; pairs->kernel++) {
        const double weight = model->kernels[pairs->kernel].weight;
        double sum = 0;
        if (weight > 0 && count > 0)
            sum = sums[next++];
        else if (weight > 0)
            TRY(sum_kernel(pairs, &sum, error));
        if (of_kernel)
            of_kernel[pairs->kernel] = weight * sum;
        *total += weight * sum;
    }
    return DCRF_OK;
}

struct clique_sum {
    const struct dcrf_cliques *cliques;
    dcrf_disagreement disagreement;
    const void *subject;
    double *costs; /* what each clique adds to the energy */
};

static void cost_of_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct clique_sum *sum = context;
    const struct dcrf_cliques *cliques = sum->cliques;
    for (size_t p = begin; p < end; p++) {
        const size_t first = cliques->offsets[p];
        sum->costs[p] =
            cliques->costs[p] * sum->disagreement(sum->subject, cliques->members + first,
                                                  cliques->offsets[p + 1] - first);
    }
}

dcrf_status dcrf_clique_sum(const dcrf_model *model, dcrf_workspace *workspace,
                            dcrf_disagreement disagreement, const void *subject, double *total,
                            dcrf_error *error) {
    const size_t count = model->cliques.count;
    struct clique_sum sum = {
        &model->cliques, disagreement, subject,
        dcrf_workspace_slot(workspace, &dcrf_energy_slot, count, sizeof(double))};
    if (!sum.costs)
        return dcrf_fail_memory(error, "the clique costs of an energy");
    dcrf_parallel_for(dcrf_workspace_pool(workspace), count, CLIQUES_PER_CHUNK, cost_of_cliques,
                      &sum);
    *total = 0;
    for (size_t p = 0; p < count; p++)
        *total += sum.costs[p];
    return DCRF_OK;
}
