/* The energy of a labelling x.
 *
 * With Y the N x M matrix of ones at (a, x_a), the pairwise part of one kernel is
 *
 *   sum_a sum_{b != a} k_ab mu(x_a, x_b) = sum_a sum_j mu(x_a, j) ( (K Y)_aj - [j = x_a] k_aa ).
 *
 * For Potts this sums the mass of the other labels, which is all nonnegative: nothing cancels, and
 * the diagonal is not involved. Only labels that occur are filtered. */
#include "energy/energy.h"
#include "core/error.h"

#include <string.h>

const struct dcrf_slot dcrf_energy_slot = {"the block of an energy"};
const struct dcrf_slot dcrf_filtered_slot = {"a filtered block"};
const struct dcrf_slot dcrf_trial_slot = {"the field of a second labelling"};
const struct dcrf_slot dcrf_energy_slot2 = {"the labels of an energy"};
const struct dcrf_slot dcrf_energy_slot3 = {"sums of an energy"};

#define LABELS_PER_BLOCK 32
#define CLIQUES_PER_CHUNK 8

struct labelling {
    const dcrf_plan *plan;
    dcrf_workspace *workspace;
    const uint16_t *label_of; /* variable -> label */
    const uint8_t *part;      /* nonzero for variables to include; NULL: all */
    uint16_t *listed;         /* the labels that occur, in order */
    uint16_t *channel_of;     /* label -> its index among these */
    size_t listed_count;

    /* The block of labels whose indicators are filtered. Blocks are narrow, so that 65535 labels
     * never need 65535 channels of memory. */
    size_t kernel;
    size_t first;  /* channel c is the label listed[first + c] */
    size_t filled; /* `in` has the indicators from this label on; SIZE_MAX: none yet */
    size_t channels, stride;
    float *in, *out;
};

static inline bool counts(const uint8_t *part, size_t variable) {
    return !part || part[variable];
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static void fill_indicators(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct labelling *x = context;
    memset(x->in + begin * x->stride, 0, (end - begin) * x->stride * sizeof(float));
    for (size_t a = begin; a < end; a++) {
        const size_t place = x->channel_of[x->label_of[a]];
        if (place >= x->first && place - x->first < x->channels)
            x->in[a * x->stride + place - x->first] = 1;
    }
}

/* mu(i, j) */
static inline double compatibility(const struct dcrf_model_kernel *kernel, size_t labels, size_t i,
                                   size_t j) {
    switch (kernel->compatibility) {
    case DCRF_COMPATIBILITY_VECTOR:
        return i == j ? (double)kernel->compatibility_values[i] : 0;
    case DCRF_COMPATIBILITY_MATRIX:
        return (double)kernel->compatibility_values[i * labels + j];
    case DCRF_COMPATIBILITY_POTTS:
        break;
    }
    return i != j;
}

/* Potts: the mass of the other labels. */
static double sum_others(void *context, size_t begin, size_t end) {
    const struct labelling *x = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        if (!counts(x->part, a))
            continue;
        const float *mass = x->out + a * x->stride;
        const size_t own = x->channel_of[x->label_of[a]] - x->first; /* may be in another block */
        for (size_t c = 0; c < x->channels; c++)
            sum += c == own ? 0 : (double)mass[c];
    }
    return sum;
}

static double sum_indicators(void *context, size_t begin, size_t end) {
    const struct labelling *x = context;
    const dcrf_model *model = x->plan->model;
    const struct dcrf_model_kernel *kernel = &model->kernels[x->kernel];
    const float *diagonal = x->plan->kernels[x->kernel].diagonal;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        if (!counts(x->part, a))
            continue;
        const float *mass = x->out + a * x->stride;
        const size_t own = x->label_of[a];
        for (size_t c = 0; c < x->channels; c++) {
            const size_t other = x->listed[x->first + c];
            const double self = other == own ? (double)diagonal[a] : 0;
            sum += compatibility(kernel, model->labels, own, other) * ((double)mass[c] - self);
        }
    }
    return sum;
}

/* The sum over the pairs of one kernel. */
static dcrf_status sum_kernel(struct labelling *x, double *total, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(x->workspace);
    const dcrf_model *model = x->plan->model;
    const dcrf_operator *op = x->plan->kernels[x->kernel].op;
    const bool is_potts = model->kernels[x->kernel].compatibility == DCRF_COMPATIBILITY_POTTS;
    if (!x->part && op->methods->disagreement && is_potts)
        return op->methods->disagreement(op, x->workspace, x->label_of, false, total, error);
    *total = 0;
    for (x->first = 0; x->first < x->listed_count; x->first += LABELS_PER_BLOCK) {
        const size_t left = x->listed_count - x->first;
        x->channels = left < LABELS_PER_BLOCK ? left : LABELS_PER_BLOCK;
        if (x->filled != x->first)
            dcrf_parallel_rows(pool, model->variables, fill_indicators, x);
        x->filled = x->first;
        TRY(dcrf_operator_apply(op, x->workspace, DCRF_SYMMETRIC, x->in, x->out,
                                model->variables * x->stride, x->channels, x->stride, error));
        *total +=
            dcrf_parallel_sum(pool, model->variables, is_potts ? sum_others : sum_indicators, x);
    }
    return DCRF_OK;
}

/* Sum all kernels in one call if they have distances and their operators allow it; else *count is
 * 0. */
static dcrf_status sum_together(const struct labelling *x, double *sums, size_t *count,
                                dcrf_error *error) {
    const dcrf_model *model = x->plan->model;
    struct dcrf_together together;
    const float *distances[DCRF_MOST_TOGETHER];
    size_t listed = 0;
    *count = 0;
    if (x->part || !dcrf_plan_collect(x->plan, x->workspace, NULL, model->kernel_count, &together))
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
                                           x->label_of, x->channel_of, model->labels,
                                           x->listed_count, sums, error);
}

/* *total is the weighted sum over all kernels, and of_kernel[m] that of kernel m. */
static dcrf_status sum_pairs(struct labelling *x, double *total, double *of_kernel,
                             dcrf_error *error) {
    const dcrf_model *model = x->plan->model;
    double sums[DCRF_MOST_TOGETHER];
    size_t count, next = 0;
    TRY(sum_together(x, sums, &count, error));
    const size_t widest = x->listed_count < LABELS_PER_BLOCK ? x->listed_count : LABELS_PER_BLOCK;
    x->stride = dcrf_padded(widest);
    x->in = dcrf_workspace_slot(x->workspace, &dcrf_energy_slot, model->variables,
                                x->stride * sizeof *x->in);
    x->out = dcrf_workspace_slot(x->workspace, &dcrf_filtered_slot, model->variables,
                                 x->stride * sizeof *x->out);
    if (!x->in || !x->out)
        return dcrf_fail_memory(error, "the blocks of an energy");
    *total = 0;
    for (x->kernel = 0; x->kernel < model->kernel_count; x->kernel++) {
        const double weight = model->kernels[x->kernel].weight;
        double sum = 0;
        if (weight > 0 && count > 0)
            sum = sums[next++];
        else if (weight > 0)
            TRY(sum_kernel(x, &sum, error));
        of_kernel[x->kernel] = weight * sum;
        *total += weight * sum;
    }
    return DCRF_OK;
}

/* ---- cliques -------------------------------------------------------------------------------- */

struct clique_sum {
    const struct dcrf_cliques *cliques;
    const uint16_t *label_of;
    const uint8_t *part;
    double *costs; /* what each clique adds to the energy */
};

static bool is_unanimous(const uint16_t *label_of, const uint32_t *members, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (label_of[members[i]] != label_of[members[0]])
            return false;
    return true;
}

static void cost_of_cliques(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct clique_sum *sum = context;
    const struct dcrf_cliques *cliques = sum->cliques;
    for (size_t p = begin; p < end; p++) {
        const size_t count = cliques->offsets[p + 1] - cliques->offsets[p];
        const uint32_t *members = cliques->members + cliques->offsets[p];
        const bool costs = count > 0 && counts(sum->part, members[0]) &&
                           !is_unanimous(sum->label_of, members, count);
        sum->costs[p] = costs ? cliques->costs[p] : 0;
    }
}

dcrf_status dcrf_energy_of_cliques(const dcrf_model *model, dcrf_workspace *workspace,
                                   const uint16_t *labels, const uint8_t *part, double *total,
                                   dcrf_error *error) {
    const size_t count = model->cliques.count;
    struct clique_sum sum = {
        &model->cliques, labels, part,
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

/* ---- the whole energy ----------------------------------------------------------------------- */

static double sum_unary(void *context, size_t begin, size_t end) {
    const struct labelling *x = context;
    const dcrf_model *model = x->plan->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        if (counts(x->part, a))
            sum += (double)model->unary[a * model->stride + x->label_of[a]];
    return sum;
}

dcrf_status dcrf_labels_check(const dcrf_model *model, const uint16_t *labels, dcrf_error *error) {
    uint16_t largest = 0; /* a loop without an early end becomes vectors */
    for (size_t a = 0; a < model->variables; a++)
        largest = labels[a] > largest ? labels[a] : largest;
    for (size_t a = 0; largest >= model->labels && a < model->variables; a++)
        if (labels[a] >= model->labels)
            return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                             "variable %zu has label %u; the model has %zu labels", a,
                             (unsigned)labels[a], model->labels);
    return DCRF_OK;
}

bool dcrf_labels_are_constant(const uint16_t *labels, size_t count) {
    for (size_t a = 1; a < count; a++)
        if (labels[a] != labels[0])
            return false;
    return true;
}

/* List the labels that occur, and assign each a channel. */
static void list_labels(struct labelling *x) {
    const dcrf_model *model = x->plan->model;
    memset(x->channel_of, 0, model->labels * sizeof *x->channel_of);
    for (size_t a = 0; a < model->variables; a++)
        x->channel_of[x->label_of[a]] = 1;
    x->listed_count = 0;
    for (size_t label = 0; label < model->labels; label++)
        if (x->channel_of[label]) {
            x->listed[x->listed_count] = (uint16_t)label;
            x->channel_of[label] = (uint16_t)x->listed_count++;
        }
}

static dcrf_status evaluate(const dcrf_plan *plan, dcrf_workspace *workspace,
                            const uint16_t *labels, const uint8_t *part, dcrf_energy *energy,
                            double *pairwise_of_kernel, size_t count, dcrf_error *error) {
    if (!plan || !workspace || !labels || !energy)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the energy of a labelling needs a plan, a workspace, labels and room for "
                         "the result");
    DCRF_ENTER(workspace, error);
    const dcrf_model *model = plan->model;
    TRY(dcrf_plan_check(plan, error));
    if (pairwise_of_kernel)
        TRY(dcrf_check_room(pairwise_of_kernel, count, model->kernel_count,
                            "the energies of kernels", error));
    uint16_t *listed =
        dcrf_workspace_slot(workspace, &dcrf_energy_slot2, model->labels, 2 * sizeof *listed);
    double *of_kernel =
        dcrf_workspace_slot(workspace, &dcrf_energy_slot3, model->kernel_count, sizeof *of_kernel);
    if (!listed || !of_kernel)
        return dcrf_fail_memory(error, "the energy of a labelling");
    TRY(dcrf_labels_check(model, labels, error));
    struct labelling x = {.plan = plan,
                          .workspace = workspace,
                          .label_of = labels,
                          .part = part,
                          .listed = listed,
                          .channel_of = listed + model->labels,
                          .filled = SIZE_MAX};
    dcrf_energy found;
    list_labels(&x);
    TRY(sum_pairs(&x, &found.pairwise, of_kernel, error));
    TRY(dcrf_energy_of_cliques(model, workspace, labels, part, &found.cliques, error));
    found.unary =
        dcrf_parallel_sum(dcrf_workspace_pool(workspace), model->variables, sum_unary, &x);
    found.total = found.unary + found.pairwise + found.cliques;
    *energy = found;
    if (pairwise_of_kernel)
        memcpy(pairwise_of_kernel, of_kernel, model->kernel_count * sizeof *of_kernel);
    return DCRF_OK;
}

dcrf_status dcrf_energy_of_labels(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, dcrf_energy *energy,
                                  double *pairwise_of_kernel, size_t count, dcrf_error *error) {
    return evaluate(plan, workspace, labels, NULL, energy, pairwise_of_kernel, count, error);
}

dcrf_status dcrf_energy_of_part(const dcrf_plan *plan, dcrf_workspace *workspace,
                                const uint16_t *labels, const uint8_t *part, dcrf_energy *energy,
                                dcrf_error *error) {
    return evaluate(plan, workspace, labels, part, energy, NULL, 0, error);
}
