#include "energy/labelling.h"

#include "core/error.h"
#include "energy/energy.h"
#include "energy/energy_double.h"
#include "filter/plan.h"

#include <dcrf/labelling.h>
#include <math.h>
#include <string.h>

/* About so many rows of unary energies per partial sum. */
#define SUMMED_ROWS 1024

struct smallest {
    const dcrf_model *model;
    uint16_t *labels; /* or NULL */
};

enum { SMALLEST, MAGNITUDE, SMALLEST_SUMS };

/* The first of the smallest numbers of a row. */
static size_t smallest_of(const float *row, size_t count) {
    float value = row[0];
    size_t place = 0;
    for (size_t i = 1; i < count; i++) {
        place = row[i] < value ? i : place;
        value = row[i] < value ? row[i] : value;
    }
    return place;
}

static void sum_smallest(void *context, size_t first, size_t last, double *sums) {
    const struct smallest *smallest = context;
    const dcrf_model *model = smallest->model;
    for (size_t a = first; a < last; a++) {
        const float *row = model->unary + a * model->stride;
        const size_t place = smallest_of(row, model->labels);
        sums[SMALLEST] += (double)row[place];
        sums[MAGNITUDE] += fabs((double)row[place]);
        if (smallest->labels)
            smallest->labels[a] = (uint16_t)place;
    }
}

struct dcrf_unary_minimum dcrf_unary_minimum(const dcrf_model *model, dcrf_pool *pool,
                                             uint16_t *labels) {
    struct smallest smallest = {model, labels};
    double sums[SMALLEST_SUMS];
    dcrf_parallel_sums(pool, model->variables, sum_smallest, &smallest, sums, SMALLEST_SUMS);
    return (struct dcrf_unary_minimum){sums[SMALLEST],
                                       ((double)model->variables + 8) * 0x1p-53 * sums[MAGNITUDE]};
}

dcrf_status dcrf_label_by_unary(const dcrf_model *model, uint16_t *labels, size_t count,
                                dcrf_error *error) {
    if (!model)
        return dcrf_fail_null(error, "the model");
    const dcrf_status status =
        dcrf_check_room(labels, count, model->variables, "the labels", error);
    if (status == DCRF_OK)
        dcrf_unary_minimum(model, NULL, labels);
    return status;
}

double dcrf_unary_floor(const dcrf_model *model) {
    return model ? dcrf_unary_minimum(model, NULL, NULL).sum : 0;
}

uint16_t dcrf_largest_of(const float *row, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (row[i] > row[best])
            best = i;
    return (uint16_t)best;
}

dcrf_status dcrf_label_by_marginals(const float *marginals, size_t variables, size_t label_count,
                                    size_t stride, uint16_t *labels, size_t count,
                                    dcrf_error *error) {
    if (!marginals)
        return dcrf_fail_null(error, "the block of marginals");
    TRY(dcrf_check_room(labels, count, variables, "the labels", error));
    for (size_t a = 0; a < variables; a++)
        labels[a] = dcrf_largest_of(marginals + a * stride, label_count);
    return DCRF_OK;
}

double dcrf_relative_gap(double energy, double lower_bound, double unary_floor) {
    if (isnan(energy) || isnan(lower_bound))
        return (double)NAN;
    const double above = energy - fmax(lower_bound, unary_floor);
    return above > 0 ? above / (energy - unary_floor) : 0;
}

/* ---- the best constant ---------------------------------------------------------------------- */

/* sum_{a != b} k_ab of one kernel */
static dcrf_status sum_pairs(const dcrf_plan *plan, dcrf_workspace *workspace, size_t kernel,
                             double *sum, dcrf_error *error) {
    const struct dcrf_plan_kernel *planned = &plan->kernels[kernel];
    const size_t n = plan->model->variables;
    float *row_sums = dcrf_workspace_slot(workspace, &dcrf_energy_slot, n, sizeof *row_sums);
    if (!row_sums)
        return dcrf_fail_memory(error, "the energy of a constant labelling");
    TRY(dcrf_operator_row_sums(planned->op, workspace, row_sums, n, error));
    *sum = 0;
    for (size_t a = 0; a < n; a++)
        *sum += (double)row_sums[a] - (double)planned->diagonal[a];
    return DCRF_OK;
}

/* pairwise[i] += w sum_{a != b} k_ab mu(i, i) over the kernels that are not Potts: for a constant
 * labelling, Potts kernels and cliques cost nothing. */
static dcrf_status add_constant_pairs(const dcrf_plan *plan, dcrf_workspace *workspace,
                                      double *pairwise, dcrf_error *error) {
    const dcrf_model *model = plan->model;
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        if (kernel->compatibility == DCRF_COMPATIBILITY_POTTS || !(kernel->weight > 0))
            continue;
        double sum = 0;
        TRY(sum_pairs(plan, workspace, m, &sum, error));
        const size_t step =
            kernel->compatibility == DCRF_COMPATIBILITY_MATRIX ? model->labels + 1 : 1;
        for (size_t i = 0; i < model->labels; i++)
            pairwise[i] += kernel->weight * sum * (double)kernel->compatibility_values[i * step];
    }
    return DCRF_OK;
}

struct columns {
    const dcrf_model *model;
    size_t grain;    /* rows per chunk */
    double *partial; /* chunks x labels */
};

static void sum_columns(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct columns *columns = context;
    const dcrf_model *model = columns->model;
    double *sums = columns->partial + begin / columns->grain * model->labels;
    memset(sums, 0, model->labels * sizeof *sums);
    for (size_t a = begin; a < end; a++)
        for (size_t i = 0; i < model->labels; i++)
            sums[i] += (double)model->unary[a * model->stride + i];
}

dcrf_status dcrf_best_constant(const dcrf_plan *plan, dcrf_workspace *workspace, uint16_t *label,
                               dcrf_energy *energy, dcrf_error *error) {
    if (!plan || !workspace || !label || !energy)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "the best constant labelling needs a plan, a workspace and room for the "
                         "result");
    DCRF_ENTER(workspace, error);
    const dcrf_model *model = plan->model;
    TRY(dcrf_plan_check(plan, error));
    const size_t grain = dcrf_even_grain(model->variables, SUMMED_ROWS);
    const size_t chunks = (model->variables + grain - 1) / grain;
    double *unary = dcrf_workspace_slot(workspace, &dcrf_energy_slot2, chunks + 2,
                                        model->labels * sizeof *unary);
    if (!unary)
        return dcrf_fail_memory(error, "the energy of a constant labelling");
    double *pairwise = unary + model->labels;
    struct columns columns = {model, grain, pairwise + model->labels};
    dcrf_parallel_for(dcrf_workspace_pool(workspace), model->variables, grain, sum_columns,
                      &columns);
    memset(unary, 0, 2 * model->labels * sizeof *unary);
    for (size_t k = 0; k < chunks * model->labels; k++)
        unary[k % model->labels] += columns.partial[k];
    TRY(add_constant_pairs(plan, workspace, pairwise, error));
    size_t best = 0;
    for (size_t i = 1; i < model->labels; i++)
        if (unary[i] + pairwise[i] < unary[best] + pairwise[best])
            best = i;
    *label = (uint16_t)best;
    *energy = (dcrf_energy){
        .total = unary[best] + pairwise[best], .unary = unary[best], .pairwise = pairwise[best]};
    if (dcrf_model_has_distances(model))
        dcrf_energy_round_up(energy, dcrf_energy_error_of_constant(model, workspace, *label));
    return DCRF_OK;
}

/* ---- marginals ------------------------------------------------------------------------------ */

struct rounding {
    const struct dcrf_marginals *marginals;
    uint16_t *labels;
};

static void label_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rounding *rounding = context;
    const struct dcrf_marginals *marginals = rounding->marginals;
    for (size_t a = begin; a < end; a++) {
        const uint16_t best =
            dcrf_largest_of(marginals->values + a * marginals->stride, marginals->labels);
        rounding->labels[a] = marginals->label_of ? marginals->label_of[best] : best;
    }
}

void dcrf_labels_of_marginals(const struct dcrf_marginals *marginals, dcrf_pool *pool,
                              uint16_t *labels) {
    struct rounding rounding = {marginals, labels};
    dcrf_parallel_rows(pool, marginals->variables, label_rows, &rounding);
}

void dcrf_marginals_of_labels(const uint16_t *labels, size_t variables, size_t stride,
                              float *block) {
    memset(block, 0, variables * stride * sizeof *block);
    for (size_t a = 0; a < variables; a++)
        block[a * stride + labels[a]] = 1;
}
