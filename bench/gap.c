/* Certified gap against time on a photograph, for the default LP and for the paper's schedule.
 *
 *   dcrf-gap PHOTO.png UNARY.npy [SECONDS [variants]] > gap.csv
 *
 * Default kernels, symmetric normalization, two threads, no polishing. One line per iteration:
 * schedule, seconds since the run began (including mean field and the potential flow, but not the
 * plan), iteration, best energy so far, lower bound, relative gap. */
#include "io/file.h"
#include "io/image.h"
#include "io/npy.h"
#include "lp/lp_experiment.h"
#include "measure.h"
#include "solver/solver.h"

#include <dcrf/dcrf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schedule {
    const char *name;
    dcrf_lp_schedule schedule;
    struct dcrf_lp_experiment experiment;
};

/* lambda = 0.1 and 10 inner steps are the values in the paper's public code. */
static const struct schedule schedules[] = {
    {"default", DCRF_LP_SCHEDULE_HUBER, {16, 0.25, 10, 0}},
    {"proximal, dual kept, exact steps", DCRF_LP_SCHEDULE_PROXIMAL, {16, 0.25, 10, 0}},
    {"paper", DCRF_LP_SCHEDULE_PAPER, {16, 0.25, 10, 0.1}},
};

static const struct schedule variants[] = {
    {"default", DCRF_LP_SCHEDULE_HUBER, {16, 0.25, 10, 0}},
    {"first epsilon 1", DCRF_LP_SCHEDULE_HUBER, {16, 1, 10, 0}},
    {"first epsilon 0.5", DCRF_LP_SCHEDULE_HUBER, {16, 0.5, 10, 0}},
    {"first epsilon 0.125", DCRF_LP_SCHEDULE_HUBER, {16, 0.125, 10, 0}},
    {"8 bins", DCRF_LP_SCHEDULE_HUBER, {8, 0.25, 10, 0}},
    {"32 bins", DCRF_LP_SCHEDULE_HUBER, {32, 0.25, 10, 0}},
    {"64 bins", DCRF_LP_SCHEDULE_HUBER, {64, 0.25, 10, 0}},
    {"proximal, lambda 0.1", DCRF_LP_SCHEDULE_PROXIMAL, {16, 0.25, 10, 0.1}},
    {"proximal, lambda 1", DCRF_LP_SCHEDULE_PROXIMAL, {16, 0.25, 10, 1}},
};

static int print_moment(void *user, const dcrf_moment *moment) {
    const struct schedule *schedule = user;
    printf("\"%s\",%.4f,%zu,%.3f,%.3f,%.8f\n", schedule->name, moment->time_s, moment->iteration,
           moment->best_energy, moment->lower_bound, moment->relative_gap);
    return 0;
}

static void run(const dcrf_plan *plan, dcrf_workspace *workspace, const struct schedule *schedule,
                double seconds) {
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_error error;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = 100000;
    settings.time_limit_s = seconds;
    settings.gap = 1e-4;
    settings.polish = 0;
    settings.progress = print_moment;
    settings.progress_user = (void *)(size_t)schedule;
    settings.lp.schedule = (int)schedule->schedule;
    must(dcrf_solver_new(&solver, plan, workspace, &settings, &error), &error);
    dcrf_lp_set_experiment(solver->state, &schedule->experiment);
    must(dcrf_solver_run(solver, &error), &error);
    dcrf_solver_free(&solver);
}

int main(int count, char **arguments) {
    cli_image image;
    cli_problem problem;
    file_bytes bytes;
    npy_array array;
    float *unary;
    memset(&problem, 0, sizeof problem);
    if (count < 3) {
        fputs("usage: dcrf-gap PHOTO.png UNARY.npy [SECONDS [variants]] > gap.csv\n", stderr);
        return 2;
    }
    if (!image_read(arguments[1], &image, &problem) || !file_read(arguments[2], &bytes, &problem) ||
        !npy_parse(bytes.data, bytes.size, arguments[2], &array, &problem) ||
        !npy_to_floats(&array, arguments[2], &unary, &problem) || array.axes != 3 ||
        array.shape[0] != image.height || array.shape[1] != image.width) {
        fprintf(stderr, "dcrf-gap: cannot use %s and %s\n", arguments[1], arguments[2]);
        return 1;
    }
    const dcrf_grid grid = dcrf_grid_2d(image.width, image.height);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, array.shape[2]);
    const dcrf_kernel spatial = dcrf_kernel_spatial(3, 1.5);
    const dcrf_kernel bilateral =
        dcrf_kernel_bilateral(80, 13, dcrf_view_interleaved(image.colours, DCRF_F32, &grid, 3), 5);
    dcrf_error error;
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    must(dcrf_model_new(&model, &grid, array.shape[2], &error), &error);
    must(dcrf_model_set_unary(model, &energies, &error), &error);
    must(dcrf_model_add_kernel(model, &spatial, &error), &error);
    must(dcrf_model_add_kernel(model, &bilateral, &error), &error);
    must(dcrf_workspace_new(&workspace, 2, &error), &error);
    must(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);
    puts("schedule,time_s,iteration,best_energy,lower_bound,relative_gap");
    const bool all = count > 4 && strcmp(arguments[4], "variants") == 0;
    const struct schedule *first = all ? variants : schedules;
    const size_t runs =
        all ? sizeof variants / sizeof variants[0] : sizeof schedules / sizeof schedules[0];
    for (size_t k = 0; k < runs; k++)
        run(plan, workspace, &first[k], count > 3 ? atof(arguments[3]) : 20);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    image_free(&image);
    file_free(&bytes);
    free(unary);
    return 0;
}
