/* Mean field that starts at a high temperature: at temperature T the updates are
 *
 *   Q_a = softmax( -(phi_a + 2 (Psi Q)_a) / T ),
 *
 * those of mean field (mean_field.c) for the energy divided by T. While T is far above the row sums
 * of K, all labels are nearly equally likely everywhere, and whole regions decide between labels;
 * plain mean field starts from each variable's unaries alone and, if K is strong, never gets far
 * from there. T falls by a constant factor per update, from the mean row sum to a temperature that
 * separates the labels. Cliques are left to the subsequent moves. */
#include "meanfield/anneal.h"

#include "backend/iterate.h"
#include "core/error.h"
#include "core/owned.h"

#include <math.h>

#define UPDATES 20
#define COLDEST 0.1

/* sum_i |mean_j mu_ij|: the contribution of a row sum of 1 of the group's kernels to the field of
 * uniform marginals, over all labels. */
static double mean_compatibility(const struct dcrf_coupling *coupling,
                                 const struct dcrf_coupling_group *group) {
    const size_t labels = coupling->plan->model->labels;
    double sum = 0;
    if (group->compatibility == DCRF_COMPATIBILITY_POTTS)
        return dcrf_coupling_is_potts(coupling) ? 1 : (double)labels - 1;
    for (size_t i = 0; i < labels; i++) {
        double row = 0;
        if (group->compatibility == DCRF_COMPATIBILITY_VECTOR)
            row = (double)group->values[i];
        for (size_t j = 0; j < labels && group->compatibility == DCRF_COMPATIBILITY_MATRIX; j++)
            row += (double)group->values[i * labels + j];
        sum += fabs(row) / (double)labels;
    }
    return sum;
}

/* The mean row sum of the coupling: how strongly a variable is coupled on average. */
static dcrf_status find_mean_row_sum(const struct dcrf_coupling *coupling, double *mean,
                                     dcrf_error *error) {
    const size_t n = coupling->plan->model->variables;
    DCRF_SCOPED float *ones = dcrf_allocate_zero(n, 2 * DCRF_LANES * sizeof *ones);
    if (!ones)
        return dcrf_fail_memory(error, "annealed mean field");
    float *sums = ones + n * DCRF_LANES;
    for (size_t a = 0; a < n; a++)
        ones[a * DCRF_LANES] = 1;
    *mean = 0;
    for (size_t g = 0; g < coupling->group_count; g++) {
        const double factor = mean_compatibility(coupling, &coupling->groups[g]) / (double)n;
        TRY(dcrf_coupling_sum(coupling, g, ones, sums, 1, DCRF_LANES, error));
        for (size_t a = 0; a < n; a++)
            *mean += fabs((double)sums[a * DCRF_LANES]) * factor;
    }
    return DCRF_OK;
}

/* 1 / T of an update. */
static float coldness_of(double hottest, int update) {
    return (float)(pow(hottest / COLDEST, (double)update / (double)(UPDATES - 1)) / hottest);
}

static dcrf_status cool(const struct dcrf_iterate *q, struct dcrf_stop *stop, double hottest,
                        dcrf_error *error) {
    double sums[DCRF_BACKEND_UPDATE_SUMS], entropy;
    /* softmax(0): all labels are equally likely. */
    dcrf_status status = q->methods->mean_field_start(q->iterate, NULL, 0, &entropy, error);
    for (int k = 0; k < UPDATES && status == DCRF_OK && !dcrf_stop_is_due(stop); k++) {
        const struct dcrf_backend_update how = {.coldness = coldness_of(hottest, k)};
        status = q->methods->mean_field_step(q->iterate, &how, sums, error);
    }
    return status;
}

dcrf_status dcrf_anneal(const struct dcrf_problem *problem, uint16_t *labels, dcrf_error *error) {
    DCRF_AT_END(dcrf_iterate_clear) struct dcrf_iterate q = {0};
    double hottest = 0;
    TRY(dcrf_iterate_init(&q, problem->coupling, DCRF_BACKEND_FOR_ANNEALING, error));
    TRY(find_mean_row_sum(q.coupling, &hottest, error));
    TRY(cool(&q, problem->stop, fmax(hottest, COLDEST), error));
    return dcrf_iterate_labels(&q, labels, error);
}
