/* Monotone discrete moves on the energy of the model.
 *
 * With B the field of the labelling x (energy/coupling.h; one filter application), the energy is
 *
 *   E(x) = sum_a phi_a(x_a) + sum_ai B_ai (all_factor + own_factor [x_a = i]) + cliques,
 *
 * and changing one variable from x_a to i changes it by exactly
 *
 *   phi_ai + 2 own_factor B_ai - (phi_a,x_a + 2 own_factor B_a,x_a) + its clique,
 *
 * because K has no diagonal. Changes of many variables interact: those that gain by themselves are
 * tried together, and if the energy of the result, which comes with its field, is not lower, half
 * of them are tried (a pseudo-random half, so that two neighbours that want to swap are told
 * apart), down to one. So a round is one filter application and the energy never rises. */
#include "core/error.h"
#include "core/memory.h"
#include "energy/device_model.h"
#include "round/state.h"

#include <string.h>

#define MOST_CLASSES 256    /* merges look at a table of this many labels squared */
#define LEAST_DECREASE 1e-7 /* relative: what rounding can make of equal energies */
#define MOST_HALVINGS 6

/* ---- the polisher --------------------------------------------------------------------------- */

static bool take_memory_for_classes(struct dcrf_polisher *polisher) {
    const size_t labels = polisher->model->labels;
    if (!dcrf_coupling_is_potts(polisher->coupling) || labels > MOST_CLASSES)
        return true;
    polisher->class_unary = dcrf_allocate(labels * labels, sizeof(double));
    polisher->class_mass = dcrf_allocate(labels * labels, sizeof(double));
    polisher->class_bonus = dcrf_allocate(labels * labels, sizeof(double));
    polisher->class_size = dcrf_allocate(labels, sizeof(size_t));
    polisher->class_map = dcrf_allocate(labels, sizeof(uint16_t));
    return polisher->class_unary && polisher->class_mass && polisher->class_bonus &&
           polisher->class_size && polisher->class_map;
}

static bool take_memory(struct dcrf_polisher *polisher) {
    const dcrf_model *model = polisher->model;
    /* One column more than there are labels: that of the labels which do not occur. */
    const size_t labels = model->labels, row = dcrf_padded(labels + 1) * sizeof(float);
    struct dcrf_labelling *sides[2] = {&polisher->current, &polisher->trial};
    if (!take_memory_for_classes(polisher))
        return false;
    if (polisher->there)
        return (polisher->current.labels = dcrf_allocate(model->variables, sizeof(uint16_t)));
    for (int side = 0; side < 2; side++) {
        sides[side]->labels = dcrf_allocate(model->variables, sizeof(uint16_t));
        sides[side]->field = dcrf_allocate(model->variables, row);
        sides[side]->channel_of = dcrf_allocate(labels, sizeof(uint16_t));
        if (!sides[side]->labels || !sides[side]->field || !sides[side]->channel_of)
            return false;
    }
    polisher->gain = dcrf_allocate(model->variables, sizeof(float));
    polisher->target = dcrf_allocate(model->variables, sizeof(uint16_t));
    if (!polisher->gain || !polisher->target || !dcrf_polisher_indicator(polisher))
        return false;
    if (model->cliques.count == 0)
        return true;
    polisher->clique_of = dcrf_allocate(model->variables, sizeof(uint32_t));
    polisher->cliques = dcrf_allocate(model->cliques.count, sizeof *polisher->cliques);
    polisher->clique_rows =
        dcrf_allocate(dcrf_workspace_threads(polisher->workspace), labels * sizeof(double));
    return polisher->clique_of && polisher->cliques && polisher->clique_rows;
}

/* Let the device make the moves, where it can. */
static dcrf_status try_device(struct dcrf_polisher *polisher, dcrf_error *error) {
    struct dcrf_device_model there;
    dcrf_status status = dcrf_device_model_init(&there, polisher->coupling, error);
    if (status == DCRF_OK && there.device) {
        polisher->methods = &there.device->backend->moves;
        status =
            polisher->methods->make(&polisher->there, there.device->opened, &there.model, error);
        if (status == DCRF_ERROR_UNSUPPORTED)
            status = DCRF_OK; /* here, then */
    }
    dcrf_device_model_clear(&there);
    return status;
}

dcrf_status dcrf_polisher_new(struct dcrf_polisher **out, const dcrf_plan *plan,
                              dcrf_workspace *workspace, dcrf_error *error) {
    *out = NULL;
    struct dcrf_polisher *polisher = dcrf_allocate_zero(1, sizeof *polisher);
    if (!polisher)
        return dcrf_fail_memory(error, "polishing");
    polisher->model = plan->model;
    polisher->workspace = workspace;
    dcrf_status status = dcrf_coupling_new(&polisher->coupling, plan, workspace, error);
    if (status == DCRF_OK)
        status = try_device(polisher, error);
    if (status == DCRF_OK && !take_memory(polisher))
        status = dcrf_fail_memory(error, "polishing");
    if (status < 0) {
        dcrf_polisher_free(&polisher);
        return status;
    }
    if (polisher->clique_of)
        dcrf_model_clique_of(plan->model, polisher->clique_of);
    *out = polisher;
    return DCRF_OK;
}

void dcrf_polisher_free(struct dcrf_polisher **polisher_pointer) {
    struct dcrf_polisher *polisher = *polisher_pointer;
    if (!polisher)
        return;
    if (polisher->there)
        polisher->methods->free(polisher->there);
    dcrf_coupling_free(&polisher->coupling);
    dcrf_release(polisher->current.labels);
    dcrf_release(polisher->current.field);
    dcrf_release(polisher->current.channel_of);
    dcrf_release(polisher->trial.labels);
    dcrf_release(polisher->trial.field);
    dcrf_release(polisher->trial.channel_of);
    dcrf_release(polisher->gain);
    dcrf_release(polisher->target);
    dcrf_release(polisher->class_unary);
    dcrf_release(polisher->class_mass);
    dcrf_release(polisher->class_bonus);
    dcrf_release(polisher->class_size);
    dcrf_release(polisher->class_map);
    dcrf_release(polisher->clique_of);
    dcrf_release(polisher->cliques);
    dcrf_release(polisher->clique_rows);
    dcrf_release(polisher);
    *polisher_pointer = NULL;
}

dcrf_status dcrf_polisher_load(struct dcrf_polisher *polisher, const uint16_t *labels,
                               size_t rounds, dcrf_error *error) {
    polisher->rounds_left = rounds - 1;
    if (polisher->there)
        return polisher->methods->load(polisher->there, labels, &polisher->current.energy, error);
    memcpy(polisher->current.labels, labels, polisher->model->variables * sizeof *labels);
    return dcrf_polisher_evaluate(polisher, &polisher->current, error);
}

dcrf_status dcrf_polisher_fetch(struct dcrf_polisher *polisher, dcrf_error *error) {
    return polisher->there
               ? polisher->methods->read(polisher->there, polisher->current.labels, error)
               : DCRF_OK;
}

/* ---- trying changes ------------------------------------------------------------------------- */

dcrf_status dcrf_polisher_try(struct dcrf_polisher *polisher, bool *is_better, dcrf_error *error) {
    *is_better = false;
    if (polisher->rounds_left > 0 && dcrf_is_interrupted(polisher->interrupt))
        polisher->rounds_left = 0;
    if (polisher->rounds_left == 0)
        return DCRF_OK;
    polisher->rounds_left--;
    const dcrf_status status =
        polisher->there
            ? polisher->methods->evaluate(polisher->there, &polisher->trial.energy, error)
            : dcrf_polisher_evaluate(polisher, &polisher->trial, error);
    if (status < 0)
        return status;
    const double size =
        polisher->current.energy < 0 ? -polisher->current.energy : polisher->current.energy;
    if (polisher->trial.energy < polisher->current.energy - LEAST_DECREASE * size) {
        const struct dcrf_labelling better = polisher->trial;
        polisher->trial = polisher->current;
        polisher->current = better;
        if (polisher->there) { /* the labels are those of no side until they are fetched */
            polisher->methods->accept(polisher->there);
            uint16_t *labels = polisher->trial.labels;
            polisher->trial.labels = NULL;
            polisher->current.labels = labels;
        }
        *is_better = true;
    }
    return DCRF_OK;
}

/* Copy the current labels to the trial and change one unit in 2^halvings of those that gain.
 * Returns how many were changed. */
static size_t change(struct dcrf_polisher *polisher, size_t units, bool of_cliques,
                     unsigned halvings) {
    const dcrf_model *model = polisher->model;
    const struct dcrf_cliques *cliques = &model->cliques;
    const uint32_t mask = ((uint32_t)1 << halvings) - 1;
    size_t changed = 0;
    memcpy(polisher->trial.labels, polisher->current.labels,
           model->variables * sizeof *polisher->trial.labels);
    for (size_t unit = 0; unit < units; unit++) {
        if (!(polisher->gain[unit] > 0) ||
            (dcrf_backend_scatter(unit + units * polisher->rounds_left) & mask) != 0)
            continue;
        changed++;
        if (!of_cliques) {
            polisher->trial.labels[unit] = polisher->target[unit];
            continue;
        }
        for (size_t c = cliques->offsets[unit]; c < cliques->offsets[unit + 1]; c++)
            polisher->trial.labels[cliques->members[c]] = polisher->target[unit];
    }
    return changed;
}

/* Change the one unit that gains most. */
static void change_best(struct dcrf_polisher *polisher, size_t units, bool of_cliques) {
    size_t best = 0;
    for (size_t unit = 1; unit < units; unit++)
        if (polisher->gain[unit] > polisher->gain[best])
            best = unit;
    const float gain = polisher->gain[best];
    memset(polisher->gain, 0, units * sizeof *polisher->gain);
    polisher->gain[best] = gain;
    change(polisher, units, of_cliques, 0);
}

/* The same, wherever the labellings are. */
static dcrf_status change_some(struct dcrf_polisher *polisher, size_t units, bool of_cliques,
                               unsigned halvings, size_t *changed, dcrf_error *error) {
    if (polisher->there)
        return polisher->methods->change(polisher->there, of_cliques, units * polisher->rounds_left,
                                         ((uint32_t)1 << halvings) - 1, changed, error);
    *changed = change(polisher, units, of_cliques, halvings);
    return DCRF_OK;
}

dcrf_status dcrf_polisher_apply(struct dcrf_polisher *polisher, size_t units, bool of_cliques,
                                bool *is_better, dcrf_error *error) {
    *is_better = false;
    for (unsigned halvings = 0; halvings <= MOST_HALVINGS; halvings++) {
        size_t changed;
        const dcrf_status made =
            change_some(polisher, units, of_cliques, halvings, &changed, error);
        if (made < 0)
            return made;
        if (changed == 0 && halvings == 0)
            return DCRF_OK;
        if (changed == 0)
            continue;
        const dcrf_status status = dcrf_polisher_try(polisher, is_better, error);
        if (status < 0 || *is_better || changed == 1)
            return status;
    }
    dcrf_status status = DCRF_OK;
    if (polisher->there)
        status = polisher->methods->change_best(polisher->there, of_cliques, error);
    else
        change_best(polisher, units, of_cliques);
    return status < 0 ? status : dcrf_polisher_try(polisher, is_better, error);
}

/* ---- the loop ------------------------------------------------------------------------------- */

dcrf_status dcrf_polish(struct dcrf_polisher *polisher, uint16_t *labels, size_t rounds,
                        const struct dcrf_interrupt *interrupt, dcrf_error *error) {
    typedef dcrf_status (*move)(struct dcrf_polisher *, bool *, dcrf_error *);
    static const move moves[] = {dcrf_move_classes, dcrf_move_cliques, dcrf_move_variables};
    const size_t move_count = sizeof moves / sizeof moves[0];
    const size_t bytes = polisher->model->variables * sizeof *labels;
    if (rounds == 0 || dcrf_is_interrupted(interrupt))
        return DCRF_OK;
    polisher->interrupt = interrupt;
    dcrf_status status = dcrf_polisher_load(polisher, labels, rounds, error);
    /* Until a whole turn through the moves has changed nothing. */
    size_t futile = 0;
    for (size_t k = 0; status == DCRF_OK && futile < move_count && polisher->rounds_left > 0;) {
        bool is_better = false;
        status = moves[k](polisher, &is_better, error);
        futile = is_better ? 0 : futile + 1;
        if (!is_better)
            k = (k + 1) % move_count;
    }
    if (status == DCRF_OK)
        status = dcrf_polisher_fetch(polisher, error);
    if (status == DCRF_OK)
        memcpy(labels, polisher->current.labels, bytes);
    return status;
}
