/* Monotone discrete moves on the energy of the model.
 *
 * With B the field of the labelling x (energy/coupling.h; one filter application), the energy is
 *
 *   E(x) = sum_a phi_a(x_a) + sum_ai B_ai (all_factor + same_label_factor [x_a = i]) + cliques,
 *
 * and changing one variable from x_a to i changes it by exactly
 *
 *   phi_ai + 2 same_label_factor B_ai - (phi_a,x_a + 2 same_label_factor B_a,x_a) + its clique,
 *
 * because the diagonal of K is excluded. Changes of several variables interact: those that
 * individually lower the energy are tried together, and if the energy of the result, which comes
 * with its field, is not lower, half of them are tried (a pseudo-random half, to separate two
 * neighbours that want to swap), and so on down to one. So a pass is one filter application, and
 * the energy never rises. */
#include "backend/make.h"
#include "core/error.h"
#include "energy/energy.h"
#include "round/polisher.h"

#include <math.h>

#define MOST_CLASSES 256    /* merges use tables of at most this many labels squared */
#define LEAST_DECREASE 1e-7 /* relative; smaller differences may be rounding errors */
#define MOST_HALVINGS 6

/* ---- the polisher --------------------------------------------------------------------------- */

static bool take_memory(struct dcrf_polisher *polisher) {
    const size_t labels = polisher->model->labels;
    struct dcrf_owned *owned = &polisher->owned;
    if (dcrf_coupling_is_potts(polisher->coupling) && labels <= MOST_CLASSES) {
        polisher->class_unary = dcrf_own(owned, labels * labels, sizeof(double));
        polisher->class_mass = dcrf_own(owned, labels * labels, sizeof(double));
        polisher->class_bonus = dcrf_own(owned, labels * labels, sizeof(double));
        polisher->class_size = dcrf_own(owned, labels, sizeof(size_t));
        polisher->class_map = dcrf_own(owned, labels, sizeof(uint16_t));
        if (polisher->model->cliques.count > 0)
            polisher->labels = dcrf_own(owned, polisher->model->variables, sizeof(uint16_t));
    }
    return !owned->is_short;
}

static dcrf_status make_moves(void *user, const struct dcrf_backend *backend,
                              dcrf_backend_device *device, const struct dcrf_backend_model *model,
                              dcrf_error *error) {
    struct dcrf_polisher *polisher = user;
    polisher->methods = backend->moves;
    return polisher->methods->make(&polisher->moves, device, model, error);
}

dcrf_status dcrf_polisher_new(struct dcrf_polisher **out, const struct dcrf_coupling *coupling,
                              dcrf_error *error) {
    *out = NULL;
    DCRF_AT_END(dcrf_polisher_free)
    struct dcrf_polisher *polisher = dcrf_allocate_zero(1, sizeof *polisher);
    if (!polisher)
        return dcrf_fail_memory(error, "polishing");
    polisher->model = coupling->plan->model;
    polisher->coupling = coupling;
    TRY(dcrf_backend_make(coupling->plan, coupling->workspace, coupling, make_moves, polisher,
                          error));
    if (!take_memory(polisher))
        return dcrf_fail_memory(error, "polishing");
    *out = DCRF_PASS_ON(polisher);
    return DCRF_OK;
}

void dcrf_polisher_free(struct dcrf_polisher **polisher_pointer) {
    struct dcrf_polisher *polisher = *polisher_pointer;
    if (!polisher)
        return;
    if (polisher->moves)
        polisher->methods->free(polisher->moves);
    dcrf_disown(&polisher->owned);
    dcrf_release(polisher);
    *polisher_pointer = NULL;
}

dcrf_status dcrf_polisher_load(struct dcrf_polisher *polisher, const uint16_t *labels,
                               size_t passes, dcrf_error *error) {
    polisher->passes_left = passes - 1;
    return polisher->methods->load(polisher->moves, labels, &polisher->energy, error);
}

dcrf_status dcrf_polisher_read(struct dcrf_polisher *polisher, uint16_t *labels,
                               dcrf_error *error) {
    return polisher->methods->read(polisher->moves, labels, error);
}

/* ---- trying changes ------------------------------------------------------------------------- */

dcrf_status dcrf_polisher_try(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error) {
    *is_better = false;
    if (polisher->passes_left > 0 && dcrf_is_interrupted(polisher->interrupt))
        polisher->passes_left = 0;
    if (polisher->passes_left == 0)
        return DCRF_OK;
    polisher->passes_left--;
    double energy;
    TRY(polisher->methods->evaluate(polisher->moves, &energy, error));
    *is_better = energy < polisher->energy - LEAST_DECREASE * fabs(polisher->energy);
    if (*is_better) {
        polisher->methods->accept(polisher->moves);
        polisher->energy = energy;
    }
    return DCRF_OK;
}

/* Apply all changes with a gain. If together they do not lower the energy, try half of them, a
 * quarter, and so on. */
static dcrf_status apply(struct dcrf_polisher *polisher, size_t units, bool of_cliques,
                         bool *is_better, dcrf_error *error) {
    for (unsigned halvings = 0; halvings <= MOST_HALVINGS; halvings++) {
        size_t changed;
        TRY(polisher->methods->change(polisher->moves, of_cliques, units * polisher->passes_left,
                                      ((uint32_t)1 << halvings) - 1, &changed, error));
        if (changed == 0 && halvings == 0)
            return DCRF_OK;
        if (changed == 0)
            continue;
        const dcrf_status status = dcrf_polisher_try(polisher, is_better, error);
        if (status < 0 || *is_better || changed == 1)
            return status;
    }
    TRY(polisher->methods->change_best(polisher->moves, of_cliques, error));
    return dcrf_polisher_try(polisher, is_better, error);
}

static dcrf_status move_units(struct dcrf_polisher *polisher, size_t units, bool of_cliques,
                              bool *is_better, dcrf_error *error) {
    *is_better = false;
    if (units == 0)
        return DCRF_OK;
    TRY(polisher->methods->find_gains(polisher->moves, of_cliques, error));
    return apply(polisher, units, of_cliques, is_better, error);
}

dcrf_status dcrf_move_variables(struct dcrf_polisher *polisher, bool *is_better,
                                dcrf_error *error) {
    return move_units(polisher, polisher->model->variables, false, is_better, error);
}

dcrf_status dcrf_move_cliques(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error) {
    return move_units(polisher, polisher->model->cliques.count, true, is_better, error);
}

/* ---- the loop ------------------------------------------------------------------------------- */

dcrf_status dcrf_polish(struct dcrf_polisher *polisher, uint16_t *labels, size_t passes,
                        const struct dcrf_interrupt *interrupt, dcrf_error *error) {
    typedef dcrf_status (*move)(struct dcrf_polisher *, bool *, dcrf_error *);
    static const move moves[] = {dcrf_move_classes, dcrf_move_cliques, dcrf_move_variables};
    const size_t move_count = sizeof moves / sizeof moves[0];
    if (passes == 0 || dcrf_is_interrupted(interrupt))
        return DCRF_OK;
    polisher->interrupt = interrupt;
    TRY(dcrf_polisher_load(polisher, labels, passes, error));
    /* Until no kind of move improves the labelling. */
    size_t futile = 0;
    for (size_t k = 0; futile < move_count && polisher->passes_left > 0;) {
        bool is_better = false;
        TRY(moves[k](polisher, &is_better, error));
        futile = is_better ? 0 : futile + 1;
        if (!is_better)
            k = (k + 1) % move_count;
    }
    TRY(dcrf_polisher_read(polisher, labels, error));
    dcrf_workspace_release(polisher->coupling->workspace, &dcrf_trial_slot);
    return DCRF_OK;
}
