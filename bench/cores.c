/* The speedup from more threads.
 *
 *   dcrf-cores [--repeats N] [--trace FILE.svg] [PHOTO.png ...]
 *
 * For each photograph (or a drawn picture of 500 x 375): mean field through the drop-in with
 * published settings, the library's own mean field with the same kernels and iterations, and 20
 * steps of the LP, all including set-up and with all labels alive. Milliseconds of wall time, the
 * best of N (default 5), for 1, 2, 4, ... threads up to the number of cores; then the speedup of
 * the last column over one thread, and the ratio of their CPU times, which shows the cost of
 * waiting. Then the speedup that 16 threads would have if each had a core, simulated chunk by chunk
 * (trace.h), and the fraction of their time outside loops: the serial part.
 *
 * --trace: instead, draw what 16 threads do for the first row. */
#include "measure.h"
#include "photograph.h"
#include "picture.h"
#include "published.h"
#include "trace.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define MOST_COUNTS 8
#define LP_STEPS 20
#define TRACED_THREADS 16

struct subject {
    const struct published *setting;
    dcrf_grid grid;
    const uint8_t *rgb;
    float *unary; /* planes */
    float *q;     /* the same */
};

/* ---- what is measured ----------------------------------------------------------------------- */

static void make_kernels(const struct subject *s, dcrf_kernel *kernels) {
    kernels[0] = dcrf_kernel_spatial(s->setting->spatial, s->setting->spatial_compat / 2);
    kernels[1] = dcrf_kernel_bilateral(s->setting->bilateral, s->setting->colour,
                                       dcrf_view_interleaved(s->rgb, DCRF_U8, &s->grid, 3),
                                       s->setting->bilateral_compat / 2);
}

static void drop_in(struct subject *s, dcrf_workspace *workspace) {
    const float compat[2] = {(float)s->setting->spatial_compat,
                             (float)s->setting->bilateral_compat};
    const dcrf_view energies = dcrf_view_planar(s->unary, DCRF_F32, &s->grid, s->setting->labels);
    dcrf_kernel kernels[2];
    dcrf_densecrf *crf;
    dcrf_error error;
    make_kernels(s, kernels);
    must(dcrf_densecrf_new(&crf, &s->grid, s->setting->labels, &error), &error);
    must(dcrf_densecrf_set_unary(crf, &energies, &error), &error);
    for (size_t m = 0; m < 2; m++)
        must(dcrf_densecrf_add_kernel(crf, workspace, &kernels[m], DCRF_DENSECRF_SYMMETRIC,
                                      DCRF_COMPATIBILITY_POTTS, &compat[m], &error),
             &error);
    must(dcrf_densecrf_infer(crf, workspace, PUBLISHED_ITERATIONS, s->q, NULL, NULL, &error),
         &error);
    dcrf_densecrf_free(&crf);
}

static void solve(struct subject *s, dcrf_workspace *workspace, const dcrf_settings *settings) {
    const dcrf_view energies = dcrf_view_planar(s->unary, DCRF_F32, &s->grid, s->setting->labels);
    dcrf_kernel kernels[2];
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_error error;
    make_kernels(s, kernels);
    must(dcrf_model_new(&model, &s->grid, s->setting->labels, &error), &error);
    must(dcrf_model_set_unary(model, &energies, &error), &error);
    for (size_t m = 0; m < 2; m++)
        must(dcrf_model_add_kernel(model, &kernels[m], &error), &error);
    must(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), &error);
    must(dcrf_solver_new(&solver, plan, workspace, settings, &error), &error);
    must(dcrf_solver_run(solver, &error), &error);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
}

static void own_mean_field(struct subject *s, dcrf_workspace *workspace) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.iterations = PUBLISHED_ITERATIONS;
    settings.stationarity = 0;
    settings.polish = 0;
    solve(s, workspace, &settings);
}

static void lp(struct subject *s, dcrf_workspace *workspace) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = LP_STEPS;
    settings.gap = 0;
    settings.polish = 0;
    solve(s, workspace, &settings);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct work {
    const char *name;
    void (*run)(struct subject *s, dcrf_workspace *workspace);
} works[] = {{"drop-in", drop_in}, {"own mean field", own_mean_field}, {"LP, 20 steps", lp}};

struct table {
    size_t repeats;
    size_t counts[MOST_COUNTS]; /* numbers of threads */
    size_t columns;
    const char *trace; /* file for the trace of the first row, or NULL */
};

static void make_columns(struct table *table) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t most = cores > 0 ? (size_t)cores : 1;
    for (size_t threads = 1; table->columns < MOST_COUNTS - 1 && threads < most; threads *= 2)
        table->counts[table->columns++] = threads;
    table->counts[table->columns++] = most;
}

static dcrf_workspace *new_workspace(size_t threads) {
    dcrf_workspace *workspace;
    dcrf_error error;
    must(dcrf_workspace_new(&workspace, threads, &error), &error);
    return workspace;
}

static double traced_s(struct subject *s, const struct work *work, size_t threads) {
    dcrf_workspace *workspace = new_workspace(threads);
    work->run(s, workspace); /* warm up, or the trace would include page faults */
    trace_begin(workspace);
    work->run(s, workspace);
    trace_end(workspace);
    dcrf_workspace_free(&workspace);
    return trace_counted_s(threads);
}

/* The best wall time in seconds, and the CPU time of that run. */
static double measure_s(const struct table *table, struct subject *s, const struct work *work,
                        size_t threads, double *cpu_s) {
    double best = INFINITY;
    for (size_t i = 0; i < table->repeats; i++) {
        const double wall = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        dcrf_workspace *workspace = new_workspace(threads);
        work->run(s, workspace);
        dcrf_workspace_free(&workspace);
        const double passed = clock_s(CLOCK_MONOTONIC) - wall;
        if (passed < best) {
            best = passed;
            *cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        }
    }
    return best;
}

static void print_row(const struct table *table, const char *picture, struct subject *s,
                      const struct work *work) {
    const struct published *setting = s->setting;
    double first_s = 0, first_cpu_s = 1, last_s = 1, last_cpu_s = 0;
    printf("| %s | %s, %zu labels, %g/%g |", picture, work->name, setting->labels,
           setting->bilateral, setting->colour);
    for (size_t i = 0; i < table->columns; i++) {
        last_s = measure_s(table, s, work, table->counts[i], &last_cpu_s);
        if (i == 0) {
            first_s = last_s;
            first_cpu_s = last_cpu_s;
        }
        printf(" %.1f |", 1e3 * last_s);
    }
    const double one_s = traced_s(s, work, 1), counted_s = traced_s(s, work, TRACED_THREADS);
    printf(" %.1f | %.2f | %.1f | %.0f %% |\n", first_s / last_s, last_cpu_s / first_cpu_s,
           one_s / counted_s, 100 * trace_serial_s() / counted_s);
    fflush(stdout);
}

static void print_head(const struct table *table) {
    printf("| picture | work |");
    for (size_t i = 0; i < table->columns; i++)
        printf(" %zu thread%s, ms |", table->counts[i], table->counts[i] == 1 ? "" : "s");
    printf(" gain | CPU time | counted gain of %d | serial |\n|---|---|", TRACED_THREADS);
    for (size_t i = 0; i < table->columns + 4; i++)
        printf("---|");
    printf("\n");
}

static void measure(const struct table *table, const char *picture, size_t width, size_t height,
                    const uint8_t *rgb) {
    for (size_t i = 0; i < PUBLISHED_COUNT; i++) {
        struct subject s = {&published_settings[i], dcrf_grid_2d(width, height), rgb, NULL, NULL};
        s.unary = published_unary(s.setting, width, height);
        s.q = require(calloc(width * height * s.setting->labels, sizeof *s.q));
        for (size_t w = 0; w < sizeof works / sizeof works[0]; w++)
            if (table->trace && i + w == 0) {
                printf("%.1f ms counted\n", 1e3 * traced_s(&s, &works[w], TRACED_THREADS));
                trace_draw(table->trace, picture, TRACED_THREADS);
            } else if (!table->trace && (works[w].run != lp || i == 0)) /* one setting is enough */
                print_row(table, picture, &s, &works[w]);
        free(s.unary);
        free(s.q);
    }
}

int main(int argc, char **argv) {
    struct table table = {.repeats = 5};
    int first = 1;
    for (; first + 1 < argc && argv[first][0] == '-'; first += 2)
        if (strcmp(argv[first], "--repeats") == 0)
            table.repeats = strtoul(argv[first + 1], NULL, 10);
        else if (strcmp(argv[first], "--trace") == 0)
            table.trace = argv[first + 1];
        else
            break;
    if (table.repeats == 0 || (first < argc && argv[first][0] == '-')) {
        fprintf(stderr, "usage: dcrf-cores [--repeats N] [--trace FILE.svg] [PHOTO.png ...]\n");
        return 2;
    }
    make_columns(&table);
    if (!table.trace)
        print_head(&table);
    for (int i = first; i < argc; i++) {
        size_t width, height;
        uint8_t *rgb = photograph_read(argv[i], &width, &height);
        if (!rgb)
            return 1;
        measure(&table, photograph_name(argv[i]), width, height, rgb);
        free(rgb);
    }
    if (first == argc) {
        uint8_t *rgb = require(picture_draw(500, 375));
        measure(&table, "drawn, 500 x 375", 500, 375, rgb);
        free(rgb);
    }
    return 0;
}
