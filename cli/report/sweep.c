#include "report/sweep.h"

#include "interrupt.h"
#include "io/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double factors[SWEEP_POINTS] = {0, 0.125, 0.25, 0.5, 1, 2, 4};

/* A run that was cut short says nothing about a strength. */
static bool run_whole(dcrf_solver *solver, dcrf_error *error) {
    const dcrf_status stop = dcrf_solver_run(solver, error);
    if (stop == DCRF_STOP_TIME || stop == DCRF_STOP_CANCELLED)
        error->status = DCRF_ERROR_INTERRUPTED;
    return stop >= 0 && stop != DCRF_STOP_TIME && stop != DCRF_STOP_CANCELLED;
}

static bool solve_point(const built_model *built, const solution *found, sweep_point *point,
                        dcrf_error *error) {
    dcrf_settings settings;
    dcrf_solver *solver = NULL;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    const bool done =
        dcrf_solver_new(&solver, found->plan, built->workspace, &settings, error) >= 0 &&
        run_whole(solver, error);
    if (done)
        dcrf_solver_labels(solver, point->labels, dcrf_model_variables(built->model), NULL);
    dcrf_solver_free(&solver);
    if (!done ||
        dcrf_changes_of(built->model, found->unary_labels, point->labels, &built->strength.measured,
                        NULL, NULL, 0, &point->changes, error) < 0)
        return false;
    point->changed_share =
        (double)point->changes.changed / (double)dcrf_model_variables(built->model);
    return true;
}

static bool run_points(const built_model *built, const solution *found, strength_sweep *sweep,
                       dcrf_error *error) {
    const double nats = built->strength.nats;
    bool done = true;
    /* From strong to weak: a weight that has become zero cannot be scaled up again. */
    for (size_t k = SWEEP_POINTS; done && k-- > 0;) {
        sweep_point *point = &sweep->points[k];
        point->factor = factors[k];
        point->nats = factors[k] * nats;
        done = dcrf_model_set_strength(built->model, point->nats, error) >= 0 &&
               solve_point(built, found, point, error);
    }
    /* Restore the weights in force, bit for bit. */
    for (size_t k = 0; k < built->kernel_count; k++)
        done = dcrf_model_set_weight(built->model, k, built->kernels[k].weight, error) >= 0 && done;
    return done;
}

bool sweep_run(const built_model *built, const solution *found, strength_sweep *sweep,
               cli_problem *problem) {
    dcrf_error error = {.status = DCRF_OK};
    const size_t variables = dcrf_model_variables(built->model);
    *sweep = (strength_sweep){0};
    /* No sweep without kernels, or if the run itself was told to stop. */
    if (!(built->strength.nats > 0) || interrupt_came() || time_is_over(&built->time))
        return true;
    sweep->count = SWEEP_POINTS;
    bool done = true;
    for (size_t k = 0; k < SWEEP_POINTS; k++) {
        sweep->points[k].labels = calloc(variables, sizeof *sweep->points[k].labels);
        done = done && sweep->points[k].labels;
    }
    if (!done) {
        sweep_free(sweep);
        return out_of_memory(problem, "explanation");
    }
    interrupt_catch();
    interrupt_limit(built->workspace, &built->time);
    done = run_points(built, found, sweep, &error);
    dcrf_workspace_set_limit(built->workspace, 0, NULL, NULL);
    interrupt_release();
    if (!done)
        sweep_free(sweep);
    /* The sweep is optional: running out of time is not a failure. */
    return done || error.status == DCRF_ERROR_INTERRUPTED ||
           library_problem(problem, "explanation", &error);
}

void sweep_free(strength_sweep *sweep) {
    for (size_t k = 0; k < SWEEP_POINTS; k++)
        free(sweep->points[k].labels);
    *sweep = (strength_sweep){0};
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool loses_labels(const sweep_point *point) {
    return (point->changes.warnings & (DCRF_WARNING_CONSTANT | DCRF_WARNING_LABEL_GONE)) != 0;
}

/* Would weaker kernels be better? If labels that matter are lost, suggest the strongest that
 * loses none. */
static void write_answer(FILE *stream, const strength_sweep *sweep) {
    const sweep_point *now = NULL, *harmless = NULL;
    for (size_t k = 0; k < sweep->count; k++) {
        if (sweep->points[k].factor == 1)
            now = &sweep->points[k];
        if (!loses_labels(&sweep->points[k]) && sweep->points[k].factor > 0)
            harmless = &sweep->points[k];
    }
    if (!loses_labels(now))
        fprintf(stream,
                "At the strength in force no label is lost that the unaries gave %.0f %% of the "
                "image.\n",
                100 * DCRF_WARNING_SHARE);
    else if (harmless && harmless->factor < 1)
        fprintf(stream,
                "Weaker kernels may be better: --strength %.3g is the strongest of these that "
                "loses no label to which the unaries gave %.0f %% of the image.\n",
                harmless->nats, 100 * DCRF_WARNING_SHARE);
    else
        fprintf(stream,
                "Labels to which the unaries gave %.0f %% of the image are lost even by weak "
                "kernels.\n",
                100 * DCRF_WARNING_SHARE);
}

void sweep_write(FILE *stream, const strength_sweep *sweep) {
    if (sweep->count == 0)
        return;
    fprintf(stream, "Would weaker kernels be better? The same by mean field at other strengths:\n"
                    "  strength   pixels changed   labels left   largest label\n");
    for (size_t k = 0; k < sweep->count; k++) {
        const sweep_point *point = &sweep->points[k];
        const dcrf_changes *c = &point->changes;
        fprintf(stream, "  %8.3g %14.2f %% %7zu of %-3zu %12.0f %%%s\n", point->nats,
                100 * point->changed_share, c->labels_after, c->labels_before,
                100 * c->largest_share, point->factor == 1 ? "   in force" : "");
    }
    write_answer(stream, sweep);
}

json_t *sweep_to_json(const strength_sweep *sweep) {
    json_t *list = json_array();
    for (size_t k = 0; k < sweep->count; k++) {
        const sweep_point *point = &sweep->points[k];
        const dcrf_changes *c = &point->changes;
        list = json_append(list,
                           json_pack("{s:f, s:f, s:I, s:f, s:I, s:f, s:b}", "strength_nats",
                                     point->nats, "factor", point->factor, "changed_pixels",
                                     (json_int_t)c->changed, "changed_share", point->changed_share,
                                     "labels_left", (json_int_t)c->labels_after, "largest_share",
                                     c->largest_share, "suspicious", loses_labels(point)));
    }
    return list;
}
