/* The moves on the CPU: two labellings with their fields and energies, and the gain of changing
 * each unit alone. A unit is a variable, or a clique. */
#ifndef DCRF_BACKEND_CPU_MOVES_H
#define DCRF_BACKEND_CPU_MOVES_H

#include "backend/cpu/cpu.h"
#include "core/owned.h"
#include "energy/coupling.h"

#define DCRF_NO_VARIABLE UINT32_MAX

/* Which single change makes a clique unanimous: a lone dissenter takes the label of the others. In
 * a clique of two, either one can. */
struct dcrf_clique_state {
    bool is_unanimous;
    uint32_t dissenter[2];
    uint16_t target[2];
};

/* The field has one column per label; if all kernels are Potts, only one for each label that
 * occurs, and a column of zeros shared by all others. */
struct dcrf_labelling {
    uint16_t *labels;
    const struct dcrf_slot *field_slot; /* the workspace's memory of the field */
    float *field;                       /* B of the labelling, rows `stride` apart */
    size_t stride;
    size_t channels;      /* columns filled by the operators */
    uint16_t *channel_of; /* label -> column */
};

struct dcrf_backend_moves {
    const struct dcrf_coupling *coupling;
    const dcrf_model *model;
    dcrf_workspace *workspace;
    struct dcrf_labelling current, trial;
    float *gain;         /* of changing one unit alone */
    uint16_t *target;    /* the label it takes */
    uint32_t *clique_of; /* NULL without cliques */
    struct dcrf_clique_state *cliques;
    double *clique_rows; /* one row of labels per worker: costs of a clique */
    struct dcrf_owned owned;
};

/* The cost of giving label i to variable a while all others keep theirs, up to a constant per
 * variable and without cliques: unary + 2 Psi x. */
static inline float dcrf_local_cost(const dcrf_backend_moves *moves, size_t variable,
                                    size_t label) {
    const struct dcrf_labelling *current = &moves->current;
    return moves->model->unary[variable * moves->model->stride + label] +
           2 * moves->coupling->same_label_factor *
               current->field[variable * current->stride + current->channel_of[label]];
}

/* Find the field and the energy of a labelling. The memory of fields, and of what goes into the
 * operators, is the workspace's and only as wide as it must be. */
dcrf_status dcrf_moves_measure(dcrf_backend_moves *moves, struct dcrf_labelling *labelling,
                               double *energy, dcrf_error *error);

dcrf_status dcrf_moves_find_gains(dcrf_backend_moves *moves, bool of_cliques, dcrf_error *error);

#endif
