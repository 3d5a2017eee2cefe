#include "energy/energy_double.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>

static double clique_costs(const dcrf_model *model, const uint16_t *labels) {
    const struct dcrf_cliques *cliques = &model->cliques;
    double sum = 0;
    for (size_t p = 0; p < cliques->count; p++)
        for (size_t k = cliques->offsets[p]; k < cliques->offsets[p + 1]; k++)
            if (labels[cliques->members[k]] != labels[cliques->members[cliques->offsets[p]]]) {
                sum += cliques->costs[p];
                break;
            }
    return sum;
}

/* Labels that go through an operator together. */
#define CHANNELS 8

/* sum_ab K_ab [x_a != x_b] by the indicators of the labels that occur; pairs are counted from the
 * side that does not have the label. */
static dcrf_status sum_by_indicators(const dcrf_operator *op, dcrf_workspace *workspace,
                                     const uint16_t *labels, size_t label_count, double *block,
                                     double *sum, dcrf_error *error) {
    const size_t n = op->variables;
    double *filtered = block + n * CHANNELS;
    uint8_t *occurs = dcrf_allocate_zero(label_count, sizeof *occurs);
    if (!occurs)
        return dcrf_fail_memory(error, "an energy in double");
    for (size_t a = 0; a < n; a++)
        occurs[labels[a]] = 1;
    dcrf_status status = DCRF_OK;
    *sum = 0;
    for (size_t next = 0; next < label_count && status == DCRF_OK;) {
        uint16_t label[CHANNELS];
        size_t channels = 0;
        for (; next < label_count && channels < CHANNELS; next++)
            if (occurs[next])
                label[channels++] = (uint16_t)next;
        if (channels == 0)
            break;
        for (size_t a = 0; a < n; a++)
            for (size_t c = 0; c < channels; c++)
                block[a * channels + c] = labels[a] == label[c];
        status = op->methods->apply_double(op, workspace, block, filtered, channels, error);
        double of_label[CHANNELS] = {
            0}; /* so that no sum has more terms than there are variables */
        for (size_t a = 0; a < n && status == DCRF_OK; a++)
            for (size_t c = 0; c < channels; c++)
                of_label[c] += labels[a] != label[c] ? filtered[a * channels + c] : 0;
        for (size_t c = 0; c < channels; c++)
            *sum += of_label[c];
    }
    dcrf_release(occurs);
    return status;
}

/* And what the operator leaves out of it at most, with the errors of its values. */
static dcrf_status sum_kernel(const dcrf_operator *op, dcrf_workspace *workspace,
                              const uint16_t *labels, size_t label_count, double *block,
                              double *sum, double *error_of, dcrf_error *error) {
    const struct dcrf_operator_methods *methods = op->methods;
    dcrf_status status =
        methods->disagreement
            ? methods->disagreement(op, workspace, labels, true, sum, error)
            : sum_by_indicators(op, workspace, labels, label_count, block, sum, error);
    *error_of = status == DCRF_OK && methods->double_error ? methods->double_error(op) * *sum : 0;
    if (status < 0 || !methods->left_out)
        return status;
    status = methods->left_out(op, workspace, true, block, error);
    for (size_t a = 0; a < op->variables && status == DCRF_OK; a++)
        *error_of += block[a];
    return status;
}

dcrf_status dcrf_energy_in_double(const dcrf_plan *plan, dcrf_workspace *workspace,
                                  const uint16_t *labels, dcrf_energy *energy, double *error_of,
                                  dcrf_error *error) {
    const dcrf_model *model = plan->model;
    const size_t n = model->variables;
    double *block = dcrf_allocate(n, 2 * CHANNELS * sizeof *block), magnitude = 0;
    if (!block)
        return dcrf_fail_memory(error, "an energy in double");
    dcrf_energy found = {.cliques = clique_costs(model, labels)};
    *error_of = 0;
    for (size_t a = 0; a < n; a++) {
        const double unary = (double)model->unary[a * model->stride + labels[a]];
        found.unary += unary;
        magnitude += fabs(unary);
    }
    dcrf_status status = DCRF_OK;
    for (size_t m = 0; m < plan->kernel_count && status == DCRF_OK; m++) {
        const double weight = model->kernels[m].weight;
        double sum, off;
        if (weight == 0)
            continue;
        status = sum_kernel(plan->kernels[m].op, workspace, labels, model->labels, block, &sum,
                            &off, error);
        found.pairwise += status == DCRF_OK ? weight * sum : 0;
        *error_of += status == DCRF_OK ? weight * off : 0;
    }
    dcrf_release(block);
    /* All sums are of terms that are not negative, but for the unaries; a term goes through one
     * addition per variable, one per label that occurs, and those of the filter. */
    found.total = found.unary + found.pairwise + found.cliques;
    *error_of += (4 * (double)n + 4000) * 0x1p-53 * (magnitude + found.pairwise + found.cliques);
    *energy = found;
    return status;
}
