/* The speedup from more threads.
 *
 *   dcrf-cores [--repeats N] [--only K] [--version NAME] [--stages 1] [--trace FILE.svg]
 *              [PHOTO.png[=ENERGIES.npy] ...]
 *
 * For each photograph (or a drawn picture of 500 x 375): mean field through the drop-in with
 * published settings, and the library's own with the same kernels and iterations, from arrays to
 * arrays and through a solver, all with all labels alive. For a photograph with energies: mean
 * field as `dcrf solve` runs it, and the LP to gaps of 0.1 % and 0.01 %. Set-up is included. Then
 * the drop-in for two small parts of the photograph, where threads hardly pay. And the ceiling: as
 * many calls of one thread side by side, for each its share of the time, which shows what the cores
 * lose by sharing caches, memory and a clock.
 * Milliseconds of wall time, the best of N (default 5), for 1, 2, 4, ... threads up to the number
 * of cores; then the speedup of the last column over one thread, and the ratio of their CPU times,
 * which shows the cost of waiting. Then the speedup that 16 threads would have if each had a core,
 * simulated chunk by chunk (trace.h), and the fraction of their time outside loops: the serial
 * part.
 *
 * --only: the K-th row alone, or the table's head. --version: what to write in a column of that
 * name; with --only, two builds can take turns (bench/compare_cores). --stages: instead, a table of
 * stages for each row, with 1 and 16 threads. --trace: instead, draw what the threads do in one
 * iteration of the first row, with one thread per core. */
#include "io/file.h"
#include "io/npy.h"
#include "measure.h"
#include "photograph.h"
#include "picture.h"
#include "published.h"
#include "stages.h"
#include "trace.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define MOST_COUNTS 8
#define TRACED_THREADS 16
/* With 81 labels a row takes as long as the others together, and more labels change nothing. */
#define SETTINGS (PUBLISHED_COUNT - 1)

struct subject {
    const struct published *setting;
    dcrf_grid grid;
    const uint8_t *rgb;
    dcrf_view energies;
    float *q; /* planes */
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
    dcrf_kernel kernels[2];
    dcrf_densecrf *crf;
    dcrf_error error;
    make_kernels(s, kernels);
    must(dcrf_densecrf_new(&crf, &s->grid, s->setting->labels, &error), &error);
    must(dcrf_densecrf_set_unary_with(crf, workspace, &s->energies, &error), &error);
    for (size_t m = 0; m < 2; m++)
        must(dcrf_densecrf_add_kernel(crf, workspace, &kernels[m], DCRF_DENSECRF_SYMMETRIC,
                                      DCRF_COMPATIBILITY_POTTS, &compat[m], &error),
             &error);
    must(dcrf_densecrf_infer(crf, workspace, PUBLISHED_ITERATIONS, s->q,
                             dcrf_densecrf_variables(crf) * s->setting->labels, NULL, NULL, &error),
         &error);
    dcrf_densecrf_free(&crf);
}

static void arrays_mean_field(struct subject *s, dcrf_workspace *workspace) {
    dcrf_kernel kernels[2];
    dcrf_arrays arrays;
    dcrf_error error;
    make_kernels(s, kernels);
    dcrf_arrays_defaults(&arrays);
    arrays.grid = s->grid;
    arrays.unary = s->energies;
    arrays.kernels = kernels;
    arrays.kernel_count = 2;
    arrays.iterations = PUBLISHED_ITERATIONS;
    arrays.marginals = dcrf_output_planar(s->q, DCRF_F32, &s->grid, s->setting->labels);
    must(dcrf_mean_field_arrays(workspace, &arrays, &error), &error);
}

static void solve(struct subject *s, dcrf_workspace *workspace, const dcrf_settings *settings) {
    dcrf_kernel kernels[2];
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_error error;
    make_kernels(s, kernels);
    must(dcrf_model_new(&model, &s->grid, s->setting->labels, &error), &error);
    must(dcrf_model_set_unary_with(model, workspace, &s->energies, &error), &error);
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

static void solve_mean_field(struct subject *s, dcrf_workspace *workspace) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    solve(s, workspace, &settings);
}

static void solve_lp(struct subject *s, dcrf_workspace *workspace, double gap) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.gap = gap;
    solve(s, workspace, &settings);
}

static void lp_to_a_thousandth(struct subject *s, dcrf_workspace *workspace) {
    solve_lp(s, workspace, 1e-3);
}

static void lp_to_a_ten_thousandth(struct subject *s, dcrf_workspace *workspace) {
    solve_lp(s, workspace, 1e-4);
}

static const struct work {
    const char *name;
    void (*run)(struct subject *s, dcrf_workspace *workspace);
    size_t settings;   /* the first so many of the published settings */
    bool has_energies; /* for photographs that come with energies */
    bool is_ceiling;   /* instead of threads: as many calls of one thread at once */
} works[] = {{"drop-in", drop_in, SETTINGS, false, false},
             {"ceiling: drop-ins of one thread", drop_in, 1, false, true},
             {"`dcrf.mean_field`", arrays_mean_field, 1, false, false},
             {"own mean field", own_mean_field, 1, false, false},
             {"`dcrf.solve` mf", solve_mean_field, 1, true, false},
             {"LP to 0.1 %", lp_to_a_thousandth, 1, true, false},
             {"LP to 0.01 %", lp_to_a_ten_thousandth, 1, true, false}};

/* ---- the table ------------------------------------------------------------------------------ */

struct table {
    size_t repeats;
    size_t counts[MOST_COUNTS]; /* numbers of threads */
    size_t columns;
    const char *version; /* or NULL */
    const char *trace;   /* file for the trace of the first row, or NULL */
    bool has_stages;
    bool is_head_only;
    size_t only; /* the number of the row to measure, from 1; 0: all */
    size_t row;  /* the number of the last row */
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

static double traced_s(struct subject *s, const struct work *work, size_t threads, bool has_cpu) {
    dcrf_workspace *workspace = new_workspace(threads);
    work->run(s, workspace); /* warm up, or the trace would include page faults */
    trace_begin(workspace, has_cpu);
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

/* ---- the ceiling ---------------------------------------------------------------------------- */

struct caller {
    pthread_t thread;
    pthread_barrier_t *start;
    struct subject own;
    const struct work *work;
};

static void *call(void *argument) {
    struct caller *caller = argument;
    dcrf_workspace *workspace = new_workspace(1);
    pthread_barrier_wait(caller->start);
    caller->work->run(&caller->own, workspace);
    pthread_barrier_wait(caller->start);
    dcrf_workspace_free(&workspace);
    return NULL;
}

/* The wall time of `count` calls at once, divided by their number. */
static double time_calls(struct subject *s, const struct work *work, size_t count) {
    struct caller *callers = require(calloc(count, sizeof *callers));
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++) {
        callers[i] = (struct caller){.start = &start, .own = *s, .work = work};
        callers[i].own.q =
            require(calloc(s->grid.size[0] * s->grid.size[1] * s->setting->labels, sizeof *s->q));
        pthread_create(&callers[i].thread, NULL, call, &callers[i]);
    }
    pthread_barrier_wait(&start);
    const double begin = clock_s(CLOCK_MONOTONIC);
    pthread_barrier_wait(&start);
    const double passed = clock_s(CLOCK_MONOTONIC) - begin;
    for (size_t i = 0; i < count; i++) {
        pthread_join(callers[i].thread, NULL);
        free(callers[i].own.q);
    }
    pthread_barrier_destroy(&start);
    free(callers);
    return passed / (double)count;
}

static double measure_calls_s(const struct table *table, struct subject *s, const struct work *work,
                              size_t count, double *cpu_s) {
    double best = INFINITY;
    for (size_t i = 0; i < table->repeats; i++) {
        const double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID), passed = time_calls(s, work, count);
        if (passed < best) {
            best = passed;
            *cpu_s = (clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)count;
        }
    }
    return best;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void print_times(const struct table *table, struct subject *s, const struct work *work) {
    double first_s = 0, first_cpu_s = 1, last_s = 1, last_cpu_s = 0;
    for (size_t i = 0; i < table->columns; i++) {
        last_s = work->is_ceiling ? measure_calls_s(table, s, work, table->counts[i], &last_cpu_s)
                                  : measure_s(table, s, work, table->counts[i], &last_cpu_s);
        if (i == 0) {
            first_s = last_s;
            first_cpu_s = last_cpu_s;
        }
        printf(" %.*f |", last_s < 0.01 ? 2 : 1, 1e3 * last_s);
    }
    if (work->is_ceiling) {
        printf(" %.1f | %.2f | | |\n", first_s / last_s, last_cpu_s / first_cpu_s);
        return;
    }
    const double one_s = traced_s(s, work, 1, true),
                 counted_s = traced_s(s, work, TRACED_THREADS, true);
    printf(" %.1f | %.2f | %.1f | %.0f %% |\n", first_s / last_s, last_cpu_s / first_cpu_s,
           one_s / counted_s, 100 * trace_serial_s() / counted_s);
}

static void print_stages(struct subject *s, const struct work *work) {
    const size_t threads[STAGES_COLUMNS] = {1, TRACED_THREADS};
    for (size_t i = 0; i < STAGES_COLUMNS; i++) {
        traced_s(s, work, threads[i], true);
        stages_add(i);
    }
    stages_print(threads);
}

static void print_row(const struct table *table, const char *picture, struct subject *s,
                      const struct work *work) {
    const struct published *setting = s->setting;
    if (table->trace) {
        const size_t threads = table->counts[table->columns - 1];
        char title[200];
        snprintf(title, sizeof title, "One iteration: %s, %s, %zu labels, %g/%g, %zu threads",
                 picture, work->name, setting->labels, setting->bilateral, setting->colour,
                 threads);
        traced_s(s, work, threads, false);
        if (!trace_draw(table->trace, title, threads))
            fprintf(stderr, "dcrf-cores: nothing to draw\n");
        return;
    }
    printf("%s%s | %s, %zu labels, %g/%g%s", table->has_stages ? "\n" : "| ", picture, work->name,
           setting->labels, setting->bilateral, setting->colour, table->has_stages ? "\n" : " |");
    if (table->version && !table->has_stages)
        printf(" %s |", table->version);
    if (table->has_stages)
        print_stages(s, work);
    else
        print_times(table, s, work);
    fflush(stdout);
}

static void print_head(const struct table *table) {
    printf("| picture | work |%s", table->version ? " version |" : "");
    for (size_t i = 0; i < table->columns; i++)
        printf(" %zu thread%s, ms |", table->counts[i], table->counts[i] == 1 ? "" : "s");
    printf(" gain | CPU time | counted gain of %d | serial |\n|---|---|%s", TRACED_THREADS,
           table->version ? "---|" : "");
    for (size_t i = 0; i < table->columns + 4; i++)
        printf("---|");
    printf("\n");
}

static void measure_row(struct table *table, const char *picture, struct subject *s,
                        const struct work *work) {
    table->row++;
    if (table->only ? table->row == table->only : !table->trace || table->row == 1)
        if (!work->is_ceiling || !table->has_stages)
            print_row(table, picture, s, work);
}

/* All rows of a subject whose settings are published_settings[setting]. */
static void measure(struct table *table, const char *picture, struct subject *s, size_t setting,
                    bool has_energies) {
    for (size_t w = 0; w < sizeof works / sizeof works[0]; w++)
        if (works[w].has_energies == has_energies && setting < works[w].settings)
            measure_row(table, picture, s, &works[w]);
}

/* The drop-in for a square from the middle of a picture. */
static void measure_part(struct table *table, const char *picture, size_t width, size_t height,
                         const uint8_t *rgb, size_t side) {
    uint8_t *part = require(malloc(side * side * 3));
    char name[200];
    const size_t left = (width - side) / 2, top = (height - side) / 2;
    for (size_t y = 0; y < side; y++)
        memcpy(part + y * side * 3, rgb + ((top + y) * width + left) * 3, side * 3);
    struct subject s = {.setting = &published_settings[0], .rgb = part};
    s.grid = dcrf_grid_2d(side, side);
    float *unary = published_unary(s.setting, side, side);
    s.energies = dcrf_view_planar(unary, DCRF_F32, &s.grid, s.setting->labels);
    s.q = require(calloc(side * side * s.setting->labels, sizeof *s.q));
    snprintf(name, sizeof name, "%s, %zu x %zu", picture, side, side);
    measure_row(table, name, &s, &works[0]);
    free(unary);
    free(s.q);
    free(part);
}

static void measure_published(struct table *table, const char *picture, size_t width, size_t height,
                              const uint8_t *rgb) {
    for (size_t i = 0; i < SETTINGS; i++) {
        struct subject s = {.setting = &published_settings[i], .rgb = rgb};
        s.grid = dcrf_grid_2d(width, height);
        float *unary = published_unary(s.setting, width, height);
        s.energies = dcrf_view_planar(unary, DCRF_F32, &s.grid, s.setting->labels);
        s.q = require(calloc(width * height * s.setting->labels, sizeof *s.q));
        measure(table, picture, &s, i, false);
        free(unary);
        free(s.q);
    }
    static const size_t sides[] = {100, 41};
    for (size_t i = 0; i < 2; i++)
        if (sides[i] <= width && sides[i] <= height)
            measure_part(table, picture, width, height, rgb, sides[i]);
}

static bool measure_energies(struct table *table, const char *picture, const char *path,
                             size_t width, size_t height, const uint8_t *rgb) {
    cli_problem problem = {0};
    file_bytes bytes;
    npy_array array;
    float *unary;
    if (!file_read(path, &bytes, &problem) ||
        !npy_parse(bytes.data, bytes.size, path, &array, &problem) ||
        !npy_to_floats(&array, path, &unary, &problem) || array.axes != 3 ||
        array.shape[0] != height || array.shape[1] != width) {
        fprintf(stderr, "dcrf-cores: %s does not fit %s\n", path, picture);
        return false;
    }
    struct published setting = published_settings[0];
    setting.labels = array.shape[2];
    struct subject s = {.setting = &setting, .rgb = rgb};
    s.grid = dcrf_grid_2d(width, height);
    s.energies = dcrf_view_interleaved(unary, DCRF_F32, &s.grid, setting.labels);
    measure(table, picture, &s, 0, true);
    free(unary);
    file_free(&bytes);
    return true;
}

/* PHOTO.png or PHOTO.png=ENERGIES.npy */
static bool measure_file(struct table *table, const char *argument) {
    size_t width, height;
    const char *equals = strchr(argument, '=');
    const size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    char *path = require(calloc(length + 1, 1));
    memcpy(path, argument, length);
    uint8_t *rgb = photograph_read(path, &width, &height);
    bool is_done = rgb;
    if (is_done && equals)
        is_done = measure_energies(table, photograph_name(path), equals + 1, width, height, rgb);
    else if (is_done)
        measure_published(table, photograph_name(path), width, height, rgb);
    free(rgb);
    free(path);
    return is_done;
}

static bool read_option(struct table *table, const char *name, const char *value) {
    if (strcmp(name, "--repeats") == 0)
        table->repeats = strtoul(value, NULL, 10);
    else if (strcmp(name, "--only") == 0)
        table->is_head_only = (table->only = strtoul(value, NULL, 10)) == 0;
    else if (strcmp(name, "--stages") == 0)
        table->has_stages = true;
    else if (strcmp(name, "--version") == 0)
        table->version = value;
    else if (strcmp(name, "--trace") == 0)
        table->trace = value;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    struct table table = {.repeats = 5};
    int first = 1;
    while (first + 1 < argc && read_option(&table, argv[first], argv[first + 1]))
        first += 2;
    if (table.repeats == 0 || (first < argc && argv[first][0] == '-')) {
        fprintf(stderr, "usage: dcrf-cores [--repeats N] [--only K] [--version NAME] [--stages 1] "
                        "[--trace FILE.svg] [PHOTO.png[=ENERGIES.npy] ...]\n");
        return 2;
    }
    make_columns(&table);
    if (!table.trace && !table.has_stages && !table.only)
        print_head(&table);
    for (int i = first; i < argc && !table.is_head_only; i++)
        if (!measure_file(&table, argv[i]))
            return 1;
    if (first == argc) {
        uint8_t *rgb = require(picture_draw(500, 375));
        measure_published(&table, "drawn, 500 x 375", 500, 375, rgb);
        free(rgb);
    }
    return 0;
}
