/* The energy of a labelling, with its field: one filter application, only of the labels that occur
 * if all kernels are Potts. */
#include "backend/cpu/moves.h"
#include "core/error.h"
#include "energy/energy.h"

#include <string.h>

struct evaluation {
    const dcrf_backend_moves *moves;
    const struct dcrf_labelling *labelling;
    float *indicator;
};

static void fill_indicator(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct evaluation *evaluation = context;
    const struct dcrf_labelling *x = evaluation->labelling;
    float *indicator = evaluation->indicator;
    memset(indicator + begin * x->stride, 0, (end - begin) * x->stride * sizeof *indicator);
    for (size_t a = begin; a < end; a++)
        indicator[a * x->stride + x->channel_of[x->labels[a]]] = 1;
}

/* The column of the labels that do not occur. */
static void clear_column(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct evaluation *evaluation = context;
    const struct dcrf_labelling *x = evaluation->labelling;
    for (size_t a = begin; a < end; a++)
        x->field[a * x->stride + x->channels] = 0;
}

/* Give columns to the labels that occur. */
static void choose_columns(const dcrf_model *model, struct dcrf_labelling *labelling) {
    const uint16_t occurs = 1;
    memset(labelling->channel_of, 0, model->labels * sizeof *labelling->channel_of);
    for (size_t a = 0; a < model->variables; a++)
        labelling->channel_of[labelling->labels[a]] = occurs;
    size_t channels = 0;
    for (size_t i = 0; i < model->labels; i++)
        channels += labelling->channel_of[i] == occurs;
    labelling->channels = channels;
    labelling->stride = dcrf_padded(channels + 1);
    size_t next = 0;
    for (size_t i = 0; i < model->labels; i++)
        labelling->channel_of[i] =
            (uint16_t)(labelling->channel_of[i] == occurs ? next++ : channels);
}

static dcrf_status find_field(dcrf_backend_moves *moves, struct dcrf_labelling *labelling,
                              dcrf_error *error) {
    const dcrf_model *model = moves->model;
    dcrf_pool *pool = dcrf_workspace_pool(moves->workspace);
    const bool is_potts = dcrf_coupling_is_potts(moves->coupling);
    if (is_potts) {
        choose_columns(model, labelling);
    } else {
        labelling->channels = model->labels;
        labelling->stride = model->stride;
        for (size_t i = 0; i < model->labels; i++)
            labelling->channel_of[i] = (uint16_t)i;
    }
    const size_t row = labelling->stride * sizeof(float);
    struct evaluation evaluation = {
        moves, labelling,
        dcrf_workspace_slot(moves->workspace, &dcrf_energy_slot, model->variables, row)};
    labelling->field =
        dcrf_workspace_slot(moves->workspace, labelling->field_slot, model->variables, row);
    if (!evaluation.indicator || !labelling->field)
        return dcrf_fail_memory(error, "moves");
    dcrf_parallel_rows(pool, model->variables, fill_indicator, &evaluation);
    if (!is_potts)
        return dcrf_coupling_field(moves->coupling, evaluation.indicator, labelling->field, error);
    const dcrf_status status =
        dcrf_coupling_sum_others(moves->coupling, 0, evaluation.indicator, labelling->field,
                                 labelling->channels, labelling->stride, error);
    if (status == DCRF_OK)
        dcrf_parallel_rows(pool, model->variables, clear_column, &evaluation);
    return status;
}

static double energy_rows(void *context, size_t begin, size_t end) {
    const struct evaluation *evaluation = context;
    const dcrf_backend_moves *moves = evaluation->moves;
    const struct dcrf_labelling *x = evaluation->labelling;
    const dcrf_model *model = moves->model;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const size_t own = x->labels[a], own_channel = x->channel_of[own];
        const float *field = x->field + a * x->stride;
        sum += (double)model->unary[a * model->stride + own];
        if (moves->coupling->all_factor > 0) { /* Potts: sum over the other labels */
            for (size_t c = 0; c < x->channels; c++)
                sum += c != own_channel ? (double)field[c] : 0;
        } else {
            sum += (double)field[own_channel];
        }
    }
    return sum;
}

/* The indicator is no longer needed when the cliques reuse its memory. */
dcrf_status dcrf_moves_measure(dcrf_backend_moves *moves, struct dcrf_labelling *labelling,
                               double *energy, dcrf_error *error) {
    struct evaluation evaluation = {moves, labelling, NULL};
    double cliques = 0;
    TRY(find_field(moves, labelling, error));
    TRY(dcrf_energy_of_cliques(moves->model, moves->workspace, labelling->labels, NULL, &cliques,
                               error));
    *energy = dcrf_parallel_sum(dcrf_workspace_pool(moves->workspace), moves->model->variables,
                                energy_rows, &evaluation) +
              cliques;
    return DCRF_OK;
}
