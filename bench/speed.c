/* The speed of the filters and of mean field, as ratios measured in one run.
 *
 *   dcrf-speed [PHOTO.png ...]
 *
 * For two sizes of a drawn picture, and for photographs, with 21 labels: building a bilateral plan,
 * the bilateral and spatial filters, plain and ordered, and one iteration of mean field with both
 * kernels, for the library and for the drop-in for pydensecrf (a tenth of ten iterations, including
 * the first softmax and writing Q as planes), with one thread and with two; compared with the time
 * that this machine takes to move bytes:
 *
 *   once     every byte of the input, the output and the plan, moved once;
 *   passes   every byte that a pass of the method reads or writes, moved once per pass (an x and
 *            a y pass for the grid; splat, each axis of the blur in both orders, and slice for the
 *            lattice).
 *
 * The bytes of an iteration are the unary energies, Q, read and written, and the bilateral plan.
 * Those of the library are also used for the drop-in, which has fewer and keeps no Q.
 *
 * Moving is memcpy of a block far larger than any cache, counting both reads and writes. Times are
 * the best of several; those of one thread are CPU times, which other programs disturb least. */
#define _DEFAULT_SOURCE
#include "measure.h"
#include "photograph.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS 21
#define BINS 32
#define ORDERED_LABELS 4
#define ITERATIONS 10 /* of the drop-in, per run */

/* Bytes per second that memcpy moves, counting reads and writes. */
static double copy_bytes_per_s(void) {
    const size_t bytes = (size_t)128 << 20;
    char *from = require(malloc(bytes)), *to = require(malloc(bytes));
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    double best = INFINITY;
    for (int i = 0; i < 10; i++) {
        const double start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        memcpy(to, from, bytes);
        best = fmin(best, clock_s(CLOCK_PROCESS_CPUTIME_ID) - start);
    }
    free(from);
    free(to);
    return 2 * (double)bytes / best;
}

struct subject {
    dcrf_grid grid;
    const uint8_t *rgb;
    const float *in;
    float *out;
    size_t stride;
    dcrf_kernel kernel;
    dcrf_operator *op;
    dcrf_workspace *workspace;
    dcrf_levels levels;
    dcrf_model *model; /* of mean field */
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_densecrf *compatible; /* the same model in the drop-in */
    float *planes;             /* of its Q */
};

static void build(struct subject *s) {
    dcrf_error error;
    dcrf_operator_free(&s->op);
    must(dcrf_operator_new(&s->op, &s->grid, &s->kernel, DCRF_OPERATOR_FAST, s->workspace, &error),
         &error);
}

static void apply(struct subject *s) {
    dcrf_error error;
    must(dcrf_operator_apply(s->op, s->workspace, DCRF_SYMMETRIC, s->in, s->out,
                             dcrf_operator_variables(s->op) * s->stride, LABELS, s->stride, &error),
         &error);
}

static void ordered(struct subject *s) {
    dcrf_error error;
    must(dcrf_operator_ordered(s->op, s->workspace, &s->levels, s->in, s->out,
                               dcrf_operator_variables(s->op) * s->stride, ORDERED_LABELS,
                               s->stride, &error),
         &error);
}

static void iterate(struct subject *s) {
    dcrf_error error;
    must(dcrf_solver_step(s->solver, &error), &error);
}

static void infer(struct subject *s) {
    dcrf_error error;
    must(dcrf_densecrf_infer(s->compatible, s->workspace, ITERATIONS, s->planes,
                             dcrf_densecrf_variables(s->compatible) * LABELS, NULL, NULL, &error),
         &error);
}

static void make_compatible(struct subject *s, const dcrf_view *energies,
                            const dcrf_kernel *spatial) {
    dcrf_error error;
    const dcrf_kernel *kernels[2] = {spatial, &s->kernel};
    must(dcrf_densecrf_new(&s->compatible, &s->grid, LABELS, &error), &error);
    must(dcrf_densecrf_set_unary(s->compatible, energies, &error), &error);
    for (size_t m = 0; m < 2; m++) {
        const float compat = (float)kernels[m]->weight;
        must(dcrf_densecrf_add_kernel(s->compatible, s->workspace, kernels[m],
                                      DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_POTTS, &compat,
                                      &error),
             &error);
    }
    s->planes = require(malloc(s->grid.size[0] * s->grid.size[1] * LABELS * sizeof *s->planes));
}

/* Both kernels, and unaries that keep all labels alive. */
static void make_models(struct subject *s) {
    dcrf_error error;
    const size_t n = s->grid.size[0] * s->grid.size[1];
    float *unary = require(malloc(n * LABELS * sizeof *unary));
    for (size_t a = 0; a < n; a++)
        for (size_t i = 0; i < LABELS; i++)
            unary[a * LABELS + i] = -logf(0.7f * s->in[a * s->stride + i] + 0.3f / LABELS);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &s->grid, LABELS);
    const dcrf_kernel spatial = dcrf_kernel_spatial(3, 1.5);
    must(dcrf_model_new(&s->model, &s->grid, LABELS, &error), &error);
    must(dcrf_model_set_unary(s->model, &energies, &error), &error);
    must(dcrf_model_add_kernel(s->model, &spatial, &error), &error);
    must(dcrf_model_add_kernel(s->model, &s->kernel, &error), &error);
    must(dcrf_plan_new(&s->plan, s->model, DCRF_OPERATOR_FAST, s->workspace, &error), &error);
    make_compatible(s, &energies, &spatial);
    free(unary);
}

/* Start a solver that never stops by itself. */
static void start_solver(struct subject *s) {
    dcrf_settings settings;
    dcrf_error error;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.iterations = SIZE_MAX;
    settings.stationarity = 0;
    settings.damping = 0;
    settings.polish = 0;
    dcrf_solver_free(&s->solver);
    must(dcrf_solver_new(&s->solver, s->plan, s->workspace, &settings, &error), &error);
}

/* The best of the runs that fit into a second, at least ten. */
static double best_s(void (*run)(struct subject *), struct subject *s, clockid_t clock) {
    double best = INFINITY, spent = 0;
    run(s);
    for (int i = 0; i < 10 || (spent < 1 && i < 1000); i++) {
        const double start = clock_s(clock);
        run(s);
        const double taken = clock_s(clock) - start;
        best = fmin(best, taken);
        spent += taken;
    }
    return best;
}

struct work {
    const char *name;
    void (*run)(struct subject *);
    double once_bytes, passes_bytes; /* 0: no comparison */
};

static void print_row(struct subject *s, const struct work *work, double bytes_per_s) {
    double taken[2];
    dcrf_error error;
    for (size_t threads = 1; threads <= 2; threads++) {
        dcrf_solver_free(&s->solver);
        dcrf_workspace_free(&s->workspace);
        must(dcrf_workspace_new(&s->workspace, threads, &error), &error);
        if (work->run == iterate)
            start_solver(s);
        taken[threads - 1] =
            best_s(work->run, s, threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
        if (work->run == infer)
            taken[threads - 1] /= ITERATIONS;
    }
    printf("| %s | %.2f | %.2f | %.2f |", work->name, taken[0] * 1e3, taken[1] * 1e3,
           taken[0] / taken[1]);
    const double bytes[2] = {work->once_bytes, work->passes_bytes};
    for (int i = 0; i < 2; i++)
        if (bytes[i] > 0)
            printf(" %.2f ms (%.1f x) |", bytes[i] / bytes_per_s * 1e3,
                   taken[0] / (bytes[i] / bytes_per_s));
        else
            printf(" |");
    printf("\n");
}

static void measure(const char *name, size_t width, size_t height, uint8_t *rgb,
                    double bytes_per_s) {
    const double n = (double)(width * height);
    struct subject s = {.grid = dcrf_grid_2d(width, height), .stride = dcrf_padded(LABELS)};
    float *in = require(picture_labels(width, height, LABELS, s.stride));
    float thresholds[BINS - 1];
    dcrf_error error;
    for (size_t i = 0; i < BINS - 1; i++)
        thresholds[i] = (float)(i + 1) / BINS;
    s.in = in;
    s.out = require(malloc(width * height * s.stride * sizeof *s.out));
    s.levels = (dcrf_levels){BINS, thresholds, NULL};
    must(dcrf_workspace_new(&s.workspace, 1, &error), &error);
    s.kernel = dcrf_kernel_bilateral(80, 13, dcrf_view_interleaved(rgb, DCRF_U8, &s.grid, 3), 5);
    make_models(&s);
    build(&s);
    apply(&s);

    const double row = (double)s.stride * 4, block = n * row;
    const double unary_bytes = n * LABELS * 4;
    const double vertices = (double)dcrf_operator_vertices(s.op);
    const double plan_bytes = (double)dcrf_operator_bytes(s.op);
    const double held = plan_bytes + (double)dcrf_workspace_bytes(s.workspace);
    const double corners = 6;
    const double blur = (2 * corners - 1) * vertices * (2 * row + 8) + vertices * row;
    const double passes = 2 * n * corners * 8 + 2 * block + 2 * vertices * row + blur;

    printf("\n## %s, %zu x %zu, %d labels\n\n", name, width, height, LABELS);
    printf("A bilateral lattice (sigma 80, 13) of %.0f vertices; its plan and one application hold "
           "%.1f MB, "
           "%.2f times the unary array.\n\n",
           vertices, held / 1e6, held / unary_bytes);
    printf(
        "| | 1 thread, ms | 2 threads, ms | speed-up | moving the bytes once | moving them once a "
        "pass |\n|---|---|---|---|---|---|\n");
    print_row(&s, &(struct work){"bilateral plan", build, 0, 0}, bytes_per_s);
    print_row(&s, &(struct work){"bilateral apply", apply, 2 * block + plan_bytes, passes},
              bytes_per_s);
    print_row(&s, &(struct work){"bilateral ordered, 4 labels, 32 bins", ordered, 0, 0},
              bytes_per_s);
    s.kernel = dcrf_kernel_spatial(3, 1.5);
    build(&s);
    print_row(&s, &(struct work){"spatial apply (sigma 3)", apply, 2 * block, 4 * block},
              bytes_per_s);
    print_row(&s, &(struct work){"spatial ordered, 4 labels, 32 bins", ordered, 0, 0}, bytes_per_s);
    print_row(&s, &(struct work){"mean-field iteration", iterate, 3 * block + plan_bytes, 0},
              bytes_per_s);
    print_row(&s, &(struct work){"mean-field iteration, drop-in", infer, 3 * block + plan_bytes, 0},
              bytes_per_s);

    dcrf_solver_free(&s.solver);
    dcrf_plan_free(&s.plan);
    dcrf_model_free(&s.model);
    dcrf_densecrf_free(&s.compatible);
    dcrf_operator_free(&s.op);
    dcrf_workspace_free(&s.workspace);
    free(rgb);
    free(in);
    free(s.out);
    free(s.planes);
}

static void measure_drawn(size_t width, size_t height, double bytes_per_s) {
    measure("Drawn", width, height, require(picture_draw(width, height)), bytes_per_s);
}

int main(int argc, char **argv) {
    const double bytes_per_s = copy_bytes_per_s();
    printf("Copying moves %.1f GB/s (reading and writing counted). Instruction set: %s.\n",
           bytes_per_s / 1e9, dcrf_cpu_name(dcrf_cpu_in_use()));
    measure_drawn(320, 213, bytes_per_s);
    measure_drawn(500, 375, bytes_per_s);
    for (int i = 1; i < argc; i++) {
        size_t width, height;
        uint8_t *rgb = photograph_read(argv[i], &width, &height);
        if (!rgb)
            return 1;
        measure(photograph_name(argv[i]), width, height, rgb, bytes_per_s);
    }
    return 0;
}
