/* Energies in double with error bounds, and error bounds for those in float (energy.c). Their terms
 * are nonnegative, so a relative error bound for every term holds for the sum. */
#include "energy/energy_double.h"

#include "core/error.h"
#include "core/owned.h"
#include "energy/energy.h"
#include "filter/exact/exact.h"

#include <math.h>

/* Maximum number of labels filtered together. */
#define CHANNELS 8

static size_t channels_of(size_t label_count) {
    return label_count < CHANNELS ? label_count : CHANNELS;
}

/* Room for `channels` doubles per variable. */
static double *take_block(dcrf_workspace *workspace, const struct dcrf_slot *slot, size_t variables,
                          size_t channels) {
    return dcrf_workspace_slot(workspace, slot, variables, channels * sizeof(double));
}

/* Some labels, and what the operator makes of their indicators. */
struct indicators {
    const uint16_t *labels, *listed;
    size_t channels;
    double *block, *filtered; /* rows of `channels` */
    const float *mu;
    size_t label_count; /* of mu's rows */
};

static void fill_indicators(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct indicators *x = context;
    for (size_t a = begin; a < end; a++)
        for (size_t c = 0; c < x->channels; c++)
            x->block[a * x->channels + c] = x->labels[a] == x->listed[c];
}

/* Row by row, so that a term takes part in few additions. */
static double sum_filtered(void *context, size_t begin, size_t end) {
    const struct indicators *x = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const double *filtered = x->filtered + a * x->channels;
        const size_t own = x->labels[a];
        double row = 0;
        for (size_t c = 0; c < x->channels; c++)
            row += x->mu ? (double)x->mu[own * x->label_count + x->listed[c]] * filtered[c]
                   : own != x->listed[c] ? filtered[c]
                                         : 0;
        sum += row;
    }
    return sum;
}

/* sum_ab K_ab mu(x_a, x_b) from the indicators of the labels that occur; `mu` is NULL for Potts. */
static dcrf_status sum_by_indicators(const dcrf_operator *op, dcrf_workspace *workspace,
                                     const uint16_t *labels, size_t label_count, const float *mu,
                                     double *sum, dcrf_error *error) {
    const size_t n = op->variables;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    uint8_t *occurs = dcrf_allocate_zero(label_count, sizeof *occurs);
    if (!occurs)
        return dcrf_fail_memory(error, "an energy in double");
    for (size_t a = 0; a < n; a++)
        occurs[labels[a]] = 1;
    size_t count = 0;
    for (size_t i = 0; i < label_count; i++)
        count += occurs[i];
    const size_t most = channels_of(count);
    double *block = take_block(workspace, &dcrf_energy_slot, n, most);
    double *filtered = take_block(workspace, &dcrf_filtered_slot, n, most);
    dcrf_status status =
        block && filtered ? DCRF_OK : dcrf_fail_memory(error, "an energy in double");
    *sum = 0;
    for (size_t next = 0; next < label_count && status == DCRF_OK;) {
        uint16_t label[CHANNELS];
        size_t channels = 0;
        for (; next < label_count && channels < most; next++)
            if (occurs[next])
                label[channels++] = (uint16_t)next;
        if (channels == 0)
            break;
        struct indicators indicators = {.labels = labels,
                                        .listed = label,
                                        .channels = channels,
                                        .block = block,
                                        .filtered = filtered,
                                        .mu = mu,
                                        .label_count = label_count};
        dcrf_parallel_rows(pool, n, fill_indicators, &indicators);
        status = op->methods->apply_double(op, workspace, block, filtered, channels, error);
        if (status == DCRF_OK)
            *sum += dcrf_parallel_sum(pool, n, sum_filtered, &indicators);
    }
    dcrf_release(occurs);
    return status;
}

/* The same for a kernel, with an error bound that includes the pairs that the operator omits. */
static dcrf_status sum_kernel(const dcrf_plan *plan, size_t kernel, dcrf_workspace *workspace,
                              const uint16_t *labels, double *sum, double *error_of,
                              dcrf_error *error) {
    const dcrf_operator *op = plan->kernels[kernel].op;
    const struct dcrf_operator_methods *methods = op->methods;
    const struct dcrf_model_kernel *k = &plan->model->kernels[kernel];
    const bool is_potts = k->compatibility == DCRF_COMPATIBILITY_POTTS;
    const double largest = dcrf_model_largest_distance(plan->model, kernel);
    TRY(is_potts && methods->disagreement
            ? methods->disagreement(op, workspace, labels, true, sum, error)
            : sum_by_indicators(op, workspace, labels, plan->model->labels,
                                is_potts ? NULL : k->compatibility_values, sum, error));
    *error_of = methods->double_error ? methods->double_error(op) * *sum : 0;
    if (!methods->left_out)
        return DCRF_OK;
    double *left_out = take_block(workspace, &dcrf_energy_slot, op->variables, 1);
    if (!left_out)
        return dcrf_fail_memory(error, "an energy in double");
    TRY(methods->left_out(op, workspace, true, left_out, error));
    for (size_t a = 0; a < op->variables; a++)
        *error_of += largest * left_out[a];
    return DCRF_OK;
}

/* Error bound for a sum in double of unaries, pairs and clique costs: a term takes part in at most
 * one addition per variable, one per label that occurs, and those of the filter. */
static double error_of_terms(const dcrf_model *model, double magnitude) {
    return (4 * (double)model->variables + 4000) * 0x1p-53 * magnitude;
}

struct unaries {
    const dcrf_model *model;
    const uint16_t *labels; /* NULL: all have the same */
    uint16_t label;
};

enum { UNARY, UNARY_MAGNITUDE, UNARY_SUMS };
static void sum_unaries(void *context, size_t begin, size_t end, double *sums) {
    const struct unaries *x = context;
    for (size_t a = begin; a < end; a++) {
        const size_t label = x->labels ? x->labels[a] : x->label;
        const double unary = (double)x->model->unary[a * x->model->stride + label];
        sums[UNARY] += unary;
        sums[UNARY_MAGNITUDE] += fabs(unary);
    }
}

/* Of a labelling, or with the same label everywhere. */
static void unary_sums(const dcrf_model *model, dcrf_workspace *workspace, const uint16_t *labels,
                       uint16_t label, double sums[UNARY_SUMS]) {
    struct unaries unaries = {model, labels, label};
    dcrf_parallel_sums(dcrf_workspace_pool(workspace), model->variables, sum_unaries, &unaries,
                       sums, UNARY_SUMS);
}

static double error_of_sums(const dcrf_model *model, const dcrf_energy *energy, double unary) {
    return error_of_terms(model, energy->pairwise + energy->cliques + unary);
}

double dcrf_energy_error_of_constant(const dcrf_model *model, dcrf_workspace *workspace,
                                     uint16_t label) {
    double sums[UNARY_SUMS];
    unary_sums(model, workspace, NULL, label, sums);
    return error_of_terms(model, sums[UNARY_MAGNITUDE]);
}

static dcrf_status sum_kernels(const dcrf_plan *plan, dcrf_workspace *workspace,
                               const uint16_t *labels, double *of_kernel, double *error_of,
                               dcrf_error *error) {
    const dcrf_model *model = plan->model;
    /* If no labels differ, all sums are zero and nothing is omitted. */
    const bool is_constant = dcrf_labels_are_constant(labels, model->variables);
    *error_of = 0;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const double weight = model->kernels[m].weight;
        double sum = 0, off = 0;
        if (weight != 0 && !is_constant)
            TRY(sum_kernel(plan, m, workspace, labels, &sum, &off, error));
        of_kernel[m] = weight * sum;
        *error_of += weight * off;
    }
    return DCRF_OK;
}

dcrf_status dcrf_energy_in_double(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, dcrf_energy *energy,
                                  double *pairwise_of_kernel, size_t count, double *error_of,
                                  dcrf_error *error) {
    if (!plan || !workspace || !labels || !energy || !error_of)
        return dcrf_fail_null(error, "the plan, the workspace, the labelling or a result");
    DCRF_ENTER(workspace, error);
    const dcrf_model *model = plan->model;
    dcrf_energy found = {0};
    if (!dcrf_model_has_distances(model)) {
        *error_of = (double)NAN;
        return dcrf_energy_of_labels(plan, workspace, labels, energy, pairwise_of_kernel, count,
                                     error);
    }
    TRY(dcrf_plan_check(plan, error));
    if (pairwise_of_kernel)
        TRY(dcrf_check_room(pairwise_of_kernel, count, model->kernel_count,
                            "the energies of kernels", error));
    TRY(dcrf_labels_check(model, labels, error));
    double *of_kernel =
        dcrf_workspace_slot(workspace, &dcrf_energy_slot3, model->kernel_count, sizeof *of_kernel);
    if (!of_kernel)
        return dcrf_fail_memory(error, "an energy in double");
    double off;
    TRY(sum_kernels(plan, workspace, labels, of_kernel, &off, error));
    TRY(dcrf_energy_of_cliques(model, workspace, labels, NULL, &found.cliques, error));
    double sums[UNARY_SUMS];
    unary_sums(model, workspace, labels, 0, sums);
    found.unary = sums[UNARY];
    for (size_t m = 0; m < plan->kernel_count; m++)
        found.pairwise += of_kernel[m];
    found.total = found.unary + found.pairwise + found.cliques;
    *error_of = off + error_of_sums(model, &found, sums[UNARY_MAGNITUDE]);
    *energy = found;
    for (size_t m = 0; m < plan->kernel_count && pairwise_of_kernel; m++)
        pairwise_of_kernel[m] = of_kernel[m];
    return DCRF_OK;
}

void dcrf_energy_round_up(dcrf_energy *energy, double error_of) {
    if (!isnan(error_of))
        energy->total += error_of;
}

dcrf_status dcrf_energy_at_most(const dcrf_plan *plan, dcrf_workspace *workspace,
                                const uint16_t *labels, dcrf_energy *energy,
                                double *pairwise_of_kernel, size_t count, dcrf_error *error) {
    double error_of = 0;
    TRY(dcrf_energy_in_double(plan, workspace, labels, energy, pairwise_of_kernel, count, &error_of,
                              error));
    dcrf_energy_round_up(energy, error_of);
    return DCRF_OK;
}

/* ---- what the LP leaves out ------------------------------------------------------------------ */

/* rest(i, j) = mu(i, j) - d(i, j) >= 0 */
static dcrf_status fill_rest(const struct dcrf_model_kernel *kernel, const struct dcrf_cuts *cuts,
                             float *rest, dcrf_error *error) {
    const size_t cells = cuts->labels * cuts->labels;
    DCRF_SCOPED double *distances = dcrf_allocate(cells, sizeof *distances);
    if (!distances)
        return dcrf_fail_memory(error, "what the LP leaves out");
    TRY(dcrf_cuts_distances(cuts, distances, error));
    for (size_t k = 0; k < cells; k++)
        rest[k] = (float)((double)kernel->compatibility_values[k] - distances[k]);
    return DCRF_OK;
}

dcrf_status dcrf_energy_left_out(const dcrf_plan *plan, dcrf_workspace *workspace,
                                 const struct dcrf_columns *columns, const uint16_t *labels,
                                 double *energy, dcrf_error *error) {
    const dcrf_model *model = plan->model;
    DCRF_SCOPED float *rest = dcrf_allocate(model->labels, model->labels * sizeof *rest);
    if (!rest)
        return dcrf_fail_memory(error, "what the LP leaves out");
    *energy = 0;
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        const bool is_potts = kernel->compatibility == DCRF_COMPATIBILITY_POTTS;
        double sum;
        if (kernel->weight == 0 || is_potts || kernel->cuts)
            continue; /* its cuts are all of it */
        TRY(fill_rest(kernel, columns->groups[columns->group_of[m]].cuts, rest, error));
        TRY(sum_by_indicators(plan->kernels[m].op, workspace, labels, model->labels, rest, &sum,
                              error));
        *energy += kernel->weight * sum;
    }
    return DCRF_OK;
}

/* ---- without a pass over the pairs ---------------------------------------------------------- */

/* An upper bound on what an operator omits in float, as a fraction of the row sums R
 * (filter/exact/exact.h). With the scales s_a of the normalization, s_a s_b <= (s_a^2 + s_b^2) / 2
 * and s_a^2 R_a = 1, so it is the same fraction of the number of variables. */
static double left_out_at_most(const dcrf_plan *plan, size_t kernel, double row_sums) {
    const struct dcrf_model_kernel *k = &plan->model->kernels[kernel];
    if (!plan->kernels[kernel].op->methods->left_out)
        return 0;
    return 1.01 * DCRF_EXACT_LEFT_OUT *
           (k->normalization == DCRF_NORMALIZE_SYMMETRIC
                ? k->weight * (double)plan->model->variables
                : row_sums);
}

double dcrf_energy_error_of_floats(const dcrf_plan *plan, dcrf_workspace *workspace,
                                   const uint16_t *labels, const dcrf_energy *energy,
                                   double row_sums) {
    const dcrf_model *model = plan->model;
    double roundings = 0, left_out = 0, weights = 0, sums[UNARY_SUMS];
    unary_sums(model, workspace, labels, 0, sums);
    for (size_t m = 0; m < plan->kernel_count; m++) {
        const dcrf_operator *op = plan->kernels[m].op;
        if (model->kernels[m].weight == 0)
            continue;
        /* The ordered filter with two nodes has at least as many roundings as an application. */
        roundings = fmax(roundings, (double)op->methods->ordered_roundings(op, 2, false));
        const double largest = dcrf_model_largest_distance(model, m);
        left_out += largest * left_out_at_most(plan, m, row_sums);
        weights += largest * model->kernels[m].weight;
    }
    return 1.001 * roundings * 0x1p-24 * energy->pairwise + left_out +
           weights * (double)model->variables * 1e-25 +
           error_of_sums(model, energy, sums[UNARY_MAGNITUDE]);
}
