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
#include "energy/coupling.h"
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
        .q = anneal->q};
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
        anneal->coldness =
            (float)(pow(hottest / COLDEST, (double)k / (double)(UPDATES - 1)) / hottest);
        dcrf_parallel_for(pool, model->variables, GRAIN, scale_rows, anneal);
        update(anneal, pool);
    }
    return DCRF_OK;
}

dcrf_status dcrf_anneal(const struct dcrf_problem *problem, uint16_t *labels, dcrf_error *error) {
    const dcrf_model *model = problem->model;
    struct dcrf_coupling *coupling;
    dcrf_status status = dcrf_coupling_new(&coupling, problem->plan, problem->workspace, error);
    if (status < 0)
        return status;
    struct anneal anneal = {
        .model = model,
        .coupling = coupling,
        .q = dcrf_allocate_zero(model->variables, model->stride * sizeof(float)),
        .message = dcrf_allocate(model->variables, model->stride * sizeof(float)),
        .unary = dcrf_allocate(model->variables, model->stride * sizeof(float))};
    status = anneal.q && anneal.message && anneal.unary
                 ? cool(&anneal, problem, error)
                 : dcrf_fail_memory(error, "annealed mean field");
    const struct dcrf_marginals rows = {anneal.q, model->variables, model->labels, model->stride};
    if (status == DCRF_OK)
        dcrf_round_largest(&rows, dcrf_workspace_pool(problem->workspace), labels);
    dcrf_release(anneal.q);
    dcrf_release(anneal.message);
    dcrf_release(anneal.unary);
    dcrf_coupling_free(&coupling);
    return status;
}
