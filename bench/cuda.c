/* How long single operations take on a device, compared with the CPU.
 *
 *   dcrf-cuda [--device cuda:0] [PHOTO.png ...]
 *
 * For each photograph (or a drawn picture of 320 x 213 and one of 500 x 375), 21 labels, all alive,
 * with common published kernels: spatial 3, bilateral 80/13. Times are wall times of calls, until
 * the device is done; rows that include copies say so. Medians of many calls, without the first.
 * The CPU column is the same call in the same run. */
#include "backend/device.h"
#include "core/timer.h"
#include "filter/plan.h"
#include "io/image.h"
#include "measure.h"
#include "method/method.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS 21
#define STRIDE 24
#define MOST_REPEATS 101

static const char *device_name = "cuda";

/* ---- what is measured ----------------------------------------------------------------------- */

struct subject {
    dcrf_grid grid;
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    float *y, *out;
    size_t iterations;
};

typedef dcrf_status (*call)(struct subject *subject, dcrf_error *error);

/* The median time in milliseconds. */
static double measure(call function, struct subject *subject, size_t repeats) {
    double times[MOST_REPEATS];
    dcrf_error error;
    must(function(subject, &error), &error);
    for (size_t i = 0; i < repeats; i++) {
        const double began_s = dcrf_time_s();
        must(function(subject, &error), &error);
        times[i] = 1e3 * (dcrf_time_s() - began_s);
    }
    return median(times, repeats);
}

static dcrf_status build_bilateral(struct subject *s, dcrf_error *error) {
    dcrf_operator *op;
    const dcrf_status status =
        dcrf_operator_build(&op, &s->model->kernels[1].features, DCRF_NORMALIZE_SYMMETRIC,
                            DCRF_OPERATOR_FAST, s->workspace, error);
    dcrf_operator_free(&op);
    return status;
}

static dcrf_status apply(struct subject *s, dcrf_error *error, size_t kernel) {
    return dcrf_operator_apply(
        s->plan->kernels[kernel].op, s->workspace, DCRF_SYMMETRIC, s->y, s->out,
        dcrf_operator_variables(s->plan->kernels[kernel].op) * STRIDE, LABELS, STRIDE, error);
}

static dcrf_status apply_spatial(struct subject *s, dcrf_error *error) {
    return apply(s, error, 0);
}

static dcrf_status apply_bilateral(struct subject *s, dcrf_error *error) {
    return apply(s, error, 1);
}

static dcrf_status step(struct subject *s, dcrf_error *error) {
    return dcrf_solver_step(s->solver, error);
}

static dcrf_settings plain_settings(dcrf_method method, size_t iterations) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, method);
    settings.iterations = iterations;
    settings.stationarity = 0;
    settings.damping = 0;
    settings.polish = 0;
    return settings;
}

/* Plans and ten updates, starting from the model on the host, without the rest of a solver. */
static dcrf_status plain_mean_field(struct subject *s, dcrf_error *error) {
    dcrf_plan *plan = NULL;
    void *state = NULL;
    const dcrf_settings settings = plain_settings(DCRF_METHOD_MF, 10);
    const struct dcrf_start nowhere = {0};
    struct dcrf_step_report report;
    dcrf_status status = dcrf_plan_new(&plan, s->model, DCRF_OPERATOR_FAST, s->workspace, error);
    const struct dcrf_problem problem = {
        .plan = plan, .model = s->model, .workspace = s->workspace, .settings = &settings};
    if (status == DCRF_OK)
        status = dcrf_mean_field.init(&state, &problem, error);
    if (status == DCRF_OK)
        status = dcrf_mean_field.start(state, &nowhere, error);
    for (size_t k = 0; k < 10 && status == DCRF_OK; k++)
        status = dcrf_mean_field.step(state, &report, error);
    dcrf_mean_field.free(state);
    dcrf_plan_free(&plan);
    return status;
}

/* The same by a solver, with its candidates and energies, and marginals copied to the host. */
static dcrf_status whole_mean_field(struct subject *s, dcrf_error *error) {
    dcrf_plan *plan = NULL;
    dcrf_solver *solver = NULL;
    const dcrf_settings settings = plain_settings(DCRF_METHOD_MF, 10);
    dcrf_status status = dcrf_plan_new(&plan, s->model, DCRF_OPERATOR_FAST, s->workspace, error);
    if (status == DCRF_OK)
        status = dcrf_solver_new(&solver, plan, s->workspace, &settings, error);
    for (size_t k = 0; k < 10 && status >= 0; k++)
        status = dcrf_solver_step(solver, error);
    if (status >= 0)
        status = dcrf_solver_marginals(solver, s->out, dcrf_model_variables(s->model) * STRIDE,
                                       STRIDE, error);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    return status;
}

/* The clipped line of the exact LP. */
static dcrf_status line(struct subject *s, dcrf_error *error) {
    const dcrf_operator *op = s->plan->kernels[1].op;
    const struct dcrf_line what = {
        .epsilon = 1.0 / 16, .y = s->y, .out = s->out, .channels = LABELS, .stride = STRIDE};
    return op->methods->line(op, s->workspace, &what, error);
}

/* ---- the table ------------------------------------------------------------------------------ */

static void prepare(struct subject *s, dcrf_operator_kind kind, dcrf_error *error) {
    must(dcrf_plan_new(&s->plan, s->model, kind, s->workspace, error), error);
}

static void row(const char *what, call function, struct subject *on_device, struct subject *here,
                size_t repeats) {
    const double there_ms = measure(function, on_device, repeats);
    if (here) {
        const double here_ms = measure(function, here, repeats / 10 + 1);
        printf("| %s | %.3f | %.3f | %.1f |\n", what, there_ms, here_ms, here_ms / there_ms);
    } else {
        printf("| %s | %.3f | | |\n", what, there_ms);
    }
    fflush(stdout);
}

/* Iterations of other methods and models: with cliques (squares of 16 x 16 pixels), and with a
 * compatibility matrix for the second kernel. */
static const struct variant {
    const char *name;
    dcrf_method method;
    bool has_cliques, is_general;
} variants[] = {
    {"mean-field iteration with cliques", DCRF_METHOD_MF, true, false},
    {"mean-field iteration with a matrix of compatibilities", DCRF_METHOD_MF, false, true},
    {"mean-field iteration with both", DCRF_METHOD_MF, true, true},
    {"QP iteration", DCRF_METHOD_QP, false, false},
    {"QP iteration with cliques", DCRF_METHOD_QP, true, false},
    {"QP iteration with a matrix of compatibilities", DCRF_METHOD_QP, false, true},
};

static void change_model(dcrf_model *model, const dcrf_grid *grid, const struct variant *variant) {
    const size_t n = grid->size[0] * grid->size[1];
    int32_t *squares = malloc(n * sizeof *squares);
    float values[LABELS * LABELS];
    dcrf_error error;
    if (!squares)
        exit(1);
    for (size_t a = 0; a < n; a++)
        squares[a] = variant->has_cliques
                         ? (int32_t)(a % grid->size[0] / 16 + a / grid->size[0] / 16 * 1000)
                         : -1;
    for (size_t k = 0; k < LABELS * LABELS; k++)
        values[k] = fabsf((float)(k / LABELS) - (float)(k % LABELS)) / 8;
    const dcrf_view map = dcrf_view_interleaved(squares, DCRF_I32, grid, 1);
    must(dcrf_model_set_clique_map(model, &map, 5, &error), &error);
    must(dcrf_model_set_compatibility(
             model, 1, variant->is_general ? DCRF_COMPATIBILITY_MATRIX : DCRF_COMPATIBILITY_POTTS,
             variant->is_general ? values : NULL, &error),
         &error);
    free(squares);
}

static void measure_variants(struct subject *sides) {
    dcrf_error error;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const dcrf_settings settings = plain_settings(variants[v].method, 1000000);
        change_model(sides[0].model, &sides[0].grid, &variants[v]);
        for (size_t side = 0; side < 2; side++) {
            struct subject *s = &sides[side];
            prepare(s, DCRF_OPERATOR_FAST, &error);
            must(dcrf_solver_new(&s->solver, s->plan, s->workspace, &settings, &error), &error);
        }
        row(variants[v].name, step, &sides[0], &sides[1], 101);
        for (size_t side = 0; side < 2; side++) {
            dcrf_solver_free(&sides[side].solver);
            dcrf_plan_free(&sides[side].plan);
        }
    }
}

static void measure_picture(const float *colours, size_t width, size_t height, const char *name) {
    dcrf_error error;
    struct subject sides[2] = {{.workspace = NULL}, {.workspace = NULL}};
    const dcrf_grid grid = dcrf_grid_2d(width, height);
    const size_t n = width * height;
    float *y = picture_labels(width, height, LABELS, STRIDE);
    float *out = calloc(n * STRIDE, sizeof *out), *unary = calloc(n * LABELS, sizeof *unary);
    dcrf_model *model;
    if (!y || !out || !unary)
        exit(1);
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < LABELS; i++)
            unary[a * LABELS + i] = -logf(0.7f * y[a * STRIDE + i] + 0.3f / LABELS);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_view image = dcrf_view_interleaved(colours, DCRF_F32, &grid, 3);
    const dcrf_kernel spatial = dcrf_kernel_spatial(3, 3);
    const dcrf_kernel bilateral = dcrf_kernel_bilateral(80, 13, image, 5);
    must(dcrf_model_new(&model, &grid, LABELS, &error), &error);
    must(dcrf_model_set_unary(model, &energies, &error), &error);
    must(dcrf_model_add_kernel(model, &spatial, &error), &error);
    must(dcrf_model_add_kernel(model, &bilateral, &error), &error);
    for (size_t side = 0; side < 2; side++) {
        struct subject *s = &sides[side];
        *s = (struct subject){.grid = grid, .model = model, .y = y, .out = out};
        must(dcrf_workspace_new(&s->workspace, 0, &error), &error);
        if (side == 0)
            must(dcrf_workspace_set_device(s->workspace, device_name, &error), &error);
        prepare(s, DCRF_OPERATOR_FAST, &error);
        const dcrf_settings settings = plain_settings(DCRF_METHOD_MF, 1000000);
        must(dcrf_solver_new(&s->solver, s->plan, s->workspace, &settings, &error), &error);
    }
    struct subject *there = &sides[0], *here = &sides[1];
    printf("\n%s, %zu x %zu x %d, %zu vertices, CPU with %zu threads\n\n"
           "| call | %s, ms | CPU, ms | ratio |\n|---|---|---|---|\n",
           name, width, height, LABELS, dcrf_operator_vertices(here->plan->kernels[1].op),
           dcrf_workspace_threads(here->workspace), dcrf_workspace_device(there->workspace));
    row("lattice plan, features copied to the device", build_bilateral, there, here, 51);
    row("spatial apply, blocks copied both ways", apply_spatial, there, here, 51);
    row("bilateral apply, blocks copied both ways", apply_bilateral, there, here, 51);
    row("mean-field iteration, on the device", step, there, here, 101);
    row("mean field: plans, 10 iterations, inputs copied to the device", plain_mean_field, there,
        here, 21);
    row("the same by a solver: candidates, energies, marginals copied back", whole_mean_field,
        there, here, 21);
    for (size_t side = 0; side < 2; side++) {
        dcrf_solver_free(&sides[side].solver);
        dcrf_plan_free(&sides[side].plan);
    }
    measure_variants(sides);
    const double began_s = dcrf_time_s();
    prepare(there, DCRF_OPERATOR_EXACT, &error);
    printf("| exact plans | %.3f | | |\n", 1e3 * (dcrf_time_s() - began_s));
    row("exact bilateral apply, blocks copied both ways", apply_bilateral, there, NULL, 11);
    row("exact clipped line, blocks copied both ways", line, there, NULL, 11);
    for (size_t side = 0; side < 2; side++) {
        dcrf_plan_free(&sides[side].plan);
        dcrf_workspace_free(&sides[side].workspace);
    }
    dcrf_model_free(&model);
    free(unary);
    free(out);
    free(y);
}

int main(int count, char **arguments) {
    int first = 1;
    if (count > 2 && strcmp(arguments[1], "--device") == 0) {
        device_name = arguments[2];
        first = 3;
    }
    for (int i = first; i < count; i++) {
        cli_image image;
        cli_problem problem;
        memset(&problem, 0, sizeof problem);
        if (!image_read(arguments[i], &image, &problem) || image.channels != 3) {
            fprintf(stderr, "dcrf-cuda: %s is not a photograph that can be read\n", arguments[i]);
            return 1;
        }
        measure_picture(image.colours, image.width, image.height, arguments[i]);
        image_free(&image);
    }
    if (first < count)
        return 0;
    const size_t sizes[2][2] = {{320, 213}, {500, 375}};
    for (size_t k = 0; k < 2; k++) {
        const size_t values = sizes[k][0] * sizes[k][1] * 3;
        uint8_t *picture = picture_draw(sizes[k][0], sizes[k][1]);
        float *colours = malloc(values * sizeof *colours);
        if (!picture || !colours)
            return 1;
        for (size_t i = 0; i < values; i++)
            colours[i] = (float)picture[i];
        measure_picture(colours, sizes[k][0], sizes[k][1], "a drawn picture");
        free(colours);
        free(picture);
    }
    return 0;
}
