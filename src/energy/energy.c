/* The energy of a labelling x.
 *
 * With Y the N x M matrix of ones at (a, x_a), the pairwise part of one kernel is
 *
 *   sum_a sum_{b != a} k_ab mu(x_a, x_b) = sum_a sum_j mu(x_a, j) ( (K Y)_aj - [j = x_a] k_aa ).
 *
 * For Potts this sums the mass of the other labels, which is all nonnegative: nothing cancels, and
 * the diagonal is not involved. Only labels that occur are filtered. */
#include "core/error.h"
#include "energy/sums.h"

#include <string.h>

struct labelling {
    const dcrf_model *model;
    const uint16_t *label_of;   /* variable -> label */
    const uint16_t *channel_of; /* label -> its index among those that occur */
    const uint8_t *part;        /* nonzero for variables to include; NULL: all */
};

static inline bool counts(const struct labelling *x, size_t variable) {
    return !x->part || x->part[variable];
}

static void fill_indicators(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_pair_sum *pairs = context;
    const struct labelling *x = pairs->subject;
    memset(pairs->in + begin * pairs->stride, 0, (end - begin) * pairs->stride * sizeof(float));
    for (size_t a = begin; a < end; a++) {
        const size_t place = x->channel_of[x->label_of[a]];
        if (place >= pairs->first && place - pairs->first < pairs->channels)
            pairs->in[a * pairs->stride + place - pairs->first] = 1;
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

static double sum_indicators(void *context, size_t begin, size_t end) {
    const struct dcrf_pair_sum *pairs = context;
    const struct labelling *x = pairs->subject;
    const struct dcrf_model_kernel *kernel = &x->model->kernels[pairs->kernel];
    const float *diagonal = pairs->plan->kernels[pairs->kernel].diagonal;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        if (!counts(x, a))
            continue;
        const float *mass = pairs->out + a * pairs->stride;
        const size_t own = x->label_of[a];
        for (size_t c = 0; c < pairs->channels; c++) {
            const size_t other = pairs->labels[pairs->first + c];
            const double self = other == own ? (double)diagonal[a] : 0;
            sum += compatibility(kernel, x->model->labels, own, other) * ((double)mass[c] - self);
        }
    }
    return sum;
}

static double sum_unary(void *context, size_t begin, size_t end) {
    const struct labelling *x = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        if (counts(x, a))
            sum += (double)x->model->unary[a * x->model->stride + x->label_of[a]];
    return sum;
}

static double is_not_unanimous(const void *subject, const uint32_t *members, size_t count) {
    const struct labelling *x = subject;
    if (count > 0 && !counts(x, members[0]))
        return 0;
    for (size_t i = 1; i < count; i++)
        if (x->label_of[members[i]] != x->label_of[members[0]])
            return 1;
    return 0;
}

dcrf_status dcrf_energy_of_cliques(const dcrf_model *model, dcrf_workspace *workspace,
                                   const uint16_t *labels, const uint8_t *part, double *total,
                                   dcrf_error *error) {
    const struct labelling x = {.model = model, .label_of = labels, .part = part};
    return dcrf_clique_sum(model, workspace, is_not_unanimous, &x, total, error);
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

/* List the *count labels that occur, and assign each a channel. */
static dcrf_status list_labels(const dcrf_model *model, const uint16_t *label_of, uint16_t *listed,
                               uint16_t *channel_of, size_t *count, dcrf_error *error) {
    TRY(dcrf_labels_check(model, label_of, error));
    memset(channel_of, 0, model->labels * sizeof *channel_of);
    for (size_t a = 0; a < model->variables; a++)
        channel_of[label_of[a]] = 1;
    *count = 0;
    for (size_t label = 0; label < model->labels; label++)
        if (channel_of[label]) {
            listed[*count] = (uint16_t)label;
            channel_of[label] = (uint16_t)(*count)++;
        }
    return DCRF_OK;
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
    struct labelling x = {model, labels, listed + model->labels, part};
    struct dcrf_pair_sum pairs = {.plan = plan,
                                  .workspace = workspace,
                                  .labels = listed,
                                  .differing = part ? NULL : labels,
                                  .place_of = listed + model->labels,
                                  .fill = fill_indicators,
                                  .sum = sum_indicators,
                                  .subject = &x};
    dcrf_energy found;
    TRY(list_labels(model, labels, listed, listed + model->labels, &pairs.label_count, error));
    TRY(dcrf_pair_sum_run(&pairs, &found.pairwise, of_kernel, error));
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
