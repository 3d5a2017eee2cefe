/* Mean field that begins hot: at the temperature T the updates are
 *
 *   Q_a = softmax( -(phi_a + 2 (Psi Q)_a) / T ),
 *
 * those of mean field (mean_field.c) for the energy divided by T. While T is far above the row sums
 * of K all labels are nearly as likely everywhere, and labels win or lose by what whole regions
 * say; plain mean field starts from what every variable says alone and, where K is strong, never
 * leaves the neighbourhood of that. T falls by a constant factor from the mean row sum to what
 * tells labels apart. Cliques are left to the moves that come after. */
#include "solver/anneal.h"

#include "core/error.h"
#include "core/memory.h"
#include "dsp/dsp.h"
#include "energy/device_model.h"
#include "round/round.h"

#include <math.h>

#define UPDATES 20
#define COLDEST 0.1
#define GRAIN 1024

struct anneal {
    const dcrf_model *model;
    const struct dcrf_coupling *coupling;
    float *q, *message;
    float *unary;   /* divided by the temperature */
    float coldness; /* 1 / T */
};

static void scale_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct anneal *anneal = context;
    const size_t stride = anneal->model->stride;
    for (size_t k = begin * stride; k < end * stride; k++)
        anneal->unary[k] = anneal->coldness * anneal->model->unary[k];
}

static void update_rows(void *context, size_t begin, size_t end, double *sums) {
    dcrf_dsp()->softmax(context, begin, end, sums);
}

/* message = what Q says: the diagonal, where it is still in there, comes off with the softmax. */
static dcrf_status send(const struct anneal *anneal, dcrf_error *error) {
    const dcrf_model *model = anneal->model;
    return dcrf_coupling_is_potts(anneal->coupling)
               ? dcrf_coupling_sum(anneal->coupling, 0, anneal->q, anneal->message, model->labels,
                                   model->stride, error)
               : dcrf_coupling_field(anneal->coupling, anneal->q, anneal->message, error);
}

static void update(const struct anneal *anneal, dcrf_pool *pool) {
    const dcrf_model *model = anneal->model;
    const struct dcrf_coupling *coupling = anneal->coupling;
    struct dcrf_softmax softmax = {
        .labels = model->labels,
        .stride = model->stride,
        .unary = anneal->unary,
        .message = anneal->message,
        .diagonal = dcrf_coupling_is_potts(coupling) ? coupling->groups[0].diagonal : NULL,
        .factor = 2 * coupling->own_factor * anneal->coldness,
        .own_factor = coupling->own_factor,
        .all_factor = coupling->all_factor,
        .q = anneal->q,
        .next = anneal->q};
    double sums[DCRF_SOFTMAX_SUMS];
    dcrf_parallel_sums(pool, model->variables, update_rows, &softmax, sums, DCRF_SOFTMAX_SUMS);
}

/* How strongly a variable is held on average: the row sum of the coupling, from the message of
 * uniform marginals. */
static double mean_row_sum(const struct anneal *anneal) {
    const dcrf_model *model = anneal->model;
    double sum = 0;
    for (size_t a = 0; a < model->variables; a++)
        for (size_t i = 0; i < model->labels; i++)
            sum += fabs((double)anneal->message[a * model->stride + i]);
    return sum / (double)model->variables;
}

/* 1 / T of an update. */
static float coldness_of(double hottest, int update) {
    return (float)(pow(hottest / COLDEST, (double)update / (double)(UPDATES - 1)) / hottest);
}

static dcrf_status cool(struct anneal *anneal, const struct dcrf_problem *problem,
                        dcrf_error *error) {
    const dcrf_model *model = anneal->model;
    dcrf_pool *pool = dcrf_workspace_pool(problem->workspace);
    for (size_t a = 0; a < model->variables; a++)
        for (size_t i = 0; i < model->labels; i++)
            anneal->q[a * model->stride + i] = 1 / (float)model->labels;
    double hottest = 0;
    for (int k = 0; k < UPDATES && !dcrf_stop_is_due(problem->stop); k++) {
        const dcrf_status status = send(anneal, error);
        if (status < 0)
            return status;
        if (k == 0)
            hottest = fmax(mean_row_sum(anneal), COLDEST);
        anneal->coldness = coldness_of(hottest, k);
        dcrf_parallel_for(pool, model->variables, GRAIN, scale_rows, anneal);
        update(anneal, pool);
    }
    return DCRF_OK;
}

static dcrf_status anneal_here(const struct dcrf_problem *problem,
                               const struct dcrf_coupling *coupling, uint16_t *labels,
                               dcrf_error *error) {
    const dcrf_model *model = problem->model;
    struct anneal anneal = {
        .model = model,
        .coupling = coupling,
        .q = dcrf_allocate_zero(model->variables, model->stride * sizeof(float)),
        .message = dcrf_allocate(model->variables, model->stride * sizeof(float)),
        .unary = dcrf_allocate(model->variables, model->stride * sizeof(float))};
    const dcrf_status status = anneal.q && anneal.message && anneal.unary
                                   ? cool(&anneal, problem, error)
                                   : dcrf_fail_memory(error, "annealed mean field");
    const struct dcrf_marginals rows = {anneal.q, model->variables, model->labels, model->stride};
    if (status == DCRF_OK)
        dcrf_round_largest(&rows, dcrf_workspace_pool(problem->workspace), labels);
    dcrf_release(anneal.q);
    dcrf_release(anneal.message);
    dcrf_release(anneal.unary);
    return status;
}

/* ---- on a device ---------------------------------------------------------------------------- */

/* The mean row sum, of one channel instead of a block. */
static dcrf_status find_mean_row_sum(const struct dcrf_problem *problem,
                                     const struct dcrf_coupling *coupling, double *mean,
                                     dcrf_error *error) {
    const size_t n = problem->model->variables;
    float *ones = dcrf_allocate_zero(n, 2 * DCRF_LANES * sizeof *ones);
    if (!ones)
        return dcrf_fail_memory(error, "annealed mean field");
    float *sums = ones + n * DCRF_LANES;
    for (size_t a = 0; a < n; a++)
        ones[a * DCRF_LANES] = 1;
    const dcrf_status status = dcrf_coupling_sum(coupling, 0, ones, sums, 1, DCRF_LANES, error);
    *mean = 0;
    for (size_t a = 0; a < n && status == DCRF_OK; a++)
        *mean += fabs((double)sums[a * DCRF_LANES]) / (double)n;
    dcrf_release(ones);
    return status;
}

/* softmax(0) is where the updates begin, too. */
static dcrf_status cool_there(const struct dcrf_problem *problem,
                              const struct dcrf_backend_iterate_methods *methods,
                              dcrf_backend_iterate *iterate, double hottest, dcrf_error *error) {
    double sums[DCRF_BACKEND_UPDATE_SUMS], entropy;
    dcrf_status status = methods->mean_field_start(iterate, NULL, 0, &entropy, error);
    for (int k = 0; k < UPDATES && status == DCRF_OK && !dcrf_stop_is_due(problem->stop); k++) {
        const struct dcrf_backend_update how = {.coldness = coldness_of(hottest, k)};
        status = methods->mean_field_step(iterate, &how, sums, error);
    }
    return status;
}

/* Of a Potts model. DCRF_ERROR_UNSUPPORTED: the device has no such mean field. */
static dcrf_status anneal_there(const struct dcrf_problem *problem,
                                const struct dcrf_coupling *coupling,
                                const struct dcrf_device_model *there, uint16_t *labels,
                                dcrf_error *error) {
    const struct dcrf_backend_iterate_methods *methods = &there->device->backend->iterate;
    dcrf_backend_iterate *iterate;
    double hottest = 0;
    dcrf_status status = methods->make(&iterate, there->device->opened, &there->model, error);
    if (status < 0)
        return status;
    status = find_mean_row_sum(problem, coupling, &hottest, error);
    if (status == DCRF_OK)
        status = cool_there(problem, methods, iterate, fmax(hottest, COLDEST), error);
    if (status == DCRF_OK)
        status = methods->labels(iterate, labels, error);
    methods->free(iterate);
    return status;
}

dcrf_status dcrf_anneal(const struct dcrf_problem *problem, uint16_t *labels, dcrf_error *error) {
    struct dcrf_coupling *coupling;
    struct dcrf_device_model there = {0};
    dcrf_status status = dcrf_coupling_new(&coupling, problem->plan, problem->workspace, error);
    if (status < 0)
        return status;
    if (dcrf_coupling_is_potts(coupling))
        status = dcrf_device_model_init(&there, coupling, error);
    bool is_here = status == DCRF_OK && !there.device;
    there.model.cliques = NULL; /* it is without them here, too */
    if (status == DCRF_OK && there.device) {
        status = anneal_there(problem, coupling, &there, labels, error);
        is_here = status == DCRF_ERROR_UNSUPPORTED;
    }
    if (is_here)
        status = anneal_here(problem, coupling, labels, error);
    dcrf_device_model_clear(&there);
    dcrf_coupling_free(&coupling);
    return status;
}
