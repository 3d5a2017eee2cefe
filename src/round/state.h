/* What the moves look at: a labelling, its field, its energy and the state of its cliques. */
#ifndef DCRF_ROUND_STATE_H
#define DCRF_ROUND_STATE_H

#include "filter/device.h"
#include "round/polish.h"

#define DCRF_NO_VARIABLE UINT32_MAX

/* Which single change makes a clique unanimous: a lone dissenter takes the label of the others. In
 * a clique of two, either one can. */
struct dcrf_clique_state {
    bool is_unanimous;
    uint32_t dissenter[2];
    uint16_t target[2];
};

/* The field has one column a label; where all kernels are Potts, only one for each label that
 * occurs and one of zeros for all others. */
struct dcrf_labelling {
    uint16_t *labels;
    float *field; /* B of the labelling, rows `stride` apart */
    size_t stride;
    size_t channels;      /* columns that the operators fill */
    uint16_t *channel_of; /* label -> column */
    double energy;
};

struct dcrf_polisher {
    const dcrf_model *model;
    dcrf_workspace *workspace;
    struct dcrf_coupling *coupling;
    struct dcrf_labelling current, trial;
    float *gain;         /* of changing one variable, or clique, alone */
    uint16_t *target;    /* the label it takes */
    uint32_t *clique_of; /* NULL where there are no cliques */
    struct dcrf_clique_state *cliques;
    double *clique_rows; /* a row of M a worker: costs of a clique */
    double *class_unary; /* merges: see merge.c; NULL where there are too many labels */
    double *class_mass;
    double *class_bonus;
    size_t *class_size;
    uint16_t *class_map;
    size_t rounds_left;
    const struct dcrf_interrupt *interrupt; /* asked before every round; NULL: none */

    /* On a device: it has both labellings and their fields, and the gains; of current there is the
     * energy here, and the labels once they are fetched. NULL: here. */
    const struct dcrf_backend_moves_methods *methods;
    dcrf_backend_moves *there;
};

/* The cost of giving label i to variable a while all others keep theirs, up to a constant of the
 * variable and without cliques: unary + 2 Psi x. */
static inline float dcrf_local_cost(const struct dcrf_polisher *polisher, size_t variable,
                                    size_t label) {
    const struct dcrf_labelling *current = &polisher->current;
    return polisher->model->unary[variable * polisher->model->stride + label] +
           2 * polisher->coupling->own_factor *
               current->field[variable * current->stride + current->channel_of[label]];
}

/* The block that goes through the operators, with room for a column for every label and one more.
 * It is scratch memory of the energies (energy/sums.h), which are not computed meanwhile: it is
 * there from dcrf_polisher_new on. NULL: memory is out. */
float *dcrf_polisher_indicator(const struct dcrf_polisher *polisher);

/* Find the field and the energy of a labelling. */
dcrf_status dcrf_polisher_evaluate(struct dcrf_polisher *polisher, struct dcrf_labelling *labelling,
                                   dcrf_error *error);

/* Bring the labels of the current labelling here, where a device has them. */
dcrf_status dcrf_polisher_fetch(struct dcrf_polisher *polisher, dcrf_error *error);

/* Make this the current labelling, with `rounds` > 0 filter applications to go, this one included.
 */
dcrf_status dcrf_polisher_load(struct dcrf_polisher *polisher, const uint16_t *labels,
                               size_t rounds, dcrf_error *error);

/* Try the trial's labels: if their energy is below the current one, they become the current
 * labelling. Costs one round. */
dcrf_status dcrf_polisher_try(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);

/* Apply the changes that gain (`units` of them; each a variable, or a clique where of_cliques). If
 * they do not lower the energy together, try half of them, a quarter, and so on. */
dcrf_status dcrf_polisher_apply(struct dcrf_polisher *polisher, size_t units, bool of_cliques,
                                bool *is_better, dcrf_error *error);

/* The moves. Each sets *is_better when the current labelling has become better. */
dcrf_status dcrf_move_classes(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);
dcrf_status dcrf_move_cliques(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);
dcrf_status dcrf_move_variables(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error);

#endif
