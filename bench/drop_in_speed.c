/* Mean field through the drop-in for pydensecrf, called from C, compared with the naive program.
 *
 *   dcrf-drop-in-speed [--repeats N] [--setting I] [--no-naive] [--no-two] [--steps]
 *                      [PHOTO.png ...]
 *
 * For each photograph (or a drawn picture of 500 x 375) and published setting: ten iterations,
 * including set-up, with all labels alive. The reference is tests/oracle/naive_densecrf.c, compiled
 * with the flags of this build for a generic processor, the best of three. One thread is measured
 * in CPU time, two in wall time, the best of N (default 20) each; memory is the peak of the process
 * in the first call, including the caller's arrays, as reported by the system (0: unknown). The
 * last column is the largest difference from the naive program.
 *
 * --setting: only that one, counted from 1. --no-naive, --no-two: skip the naive program, or two
 * threads (its column says 0). --steps: the times of setting unary energies, of each kernel and of
 * inference, in milliseconds. */
#define _DEFAULT_SOURCE
#include "core/memory.h"
#include "measure.h"
#include "naive_densecrf.h"
#include "photograph.h"
#include "picture.h"
#include "published.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAIVE_REPEATS 3

enum { STEP_UNARY, STEP_SPATIAL, STEP_BILATERAL, STEP_INFERENCE, STEPS };

struct subject {
    const struct published *setting;
    dcrf_grid grid;
    const uint8_t *rgb;
    float *unary; /* planes */
    float *q;     /* the same */
    size_t repeats;
    double step_ms[STEPS]; /* the best of each */
};

/* ---- what is measured ----------------------------------------------------------------------- */

static void call(struct subject *s, size_t threads, clockid_t clock) {
    const struct published *setting = s->setting;
    const float compat[2] = {(float)setting->spatial_compat, (float)setting->bilateral_compat};
    const dcrf_kernel kernels[2] = {
        dcrf_kernel_spatial(setting->spatial, 1),
        dcrf_kernel_bilateral(setting->bilateral, setting->colour,
                              dcrf_view_interleaved(s->rgb, DCRF_U8, &s->grid, 3), 1)};
    const dcrf_view energies = dcrf_view_planar(s->unary, DCRF_F32, &s->grid, setting->labels);
    dcrf_workspace *workspace;
    dcrf_densecrf *crf;
    dcrf_error error;
    double times[STEPS + 1];
    must(dcrf_workspace_new(&workspace, threads, &error), &error);
    must(dcrf_densecrf_new(&crf, &s->grid, setting->labels, &error), &error);
    times[STEP_UNARY] = clock_s(clock);
    must(dcrf_densecrf_set_unary(crf, &energies, &error), &error);
    for (size_t m = 0; m < 2; m++) {
        times[STEP_SPATIAL + m] = clock_s(clock);
        must(dcrf_densecrf_add_kernel(crf, workspace, &kernels[m], DCRF_DENSECRF_SYMMETRIC,
                                      DCRF_COMPATIBILITY_POTTS, &compat[m], &error),
             &error);
    }
    times[STEP_INFERENCE] = clock_s(clock);
    must(dcrf_densecrf_infer(crf, workspace, PUBLISHED_ITERATIONS, s->q,
                             dcrf_densecrf_variables(crf) * setting->labels, NULL, NULL, &error),
         &error);
    times[STEPS] = clock_s(clock);
    for (size_t i = 0; i < STEPS; i++)
        s->step_ms[i] = fmin(s->step_ms[i], 1e3 * (times[i + 1] - times[i]));
    dcrf_densecrf_free(&crf);
    dcrf_workspace_free(&workspace);
}

static double best_s(struct subject *s, size_t threads) {
    const clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double best = INFINITY;
    for (size_t i = 0; i < STEPS; i++)
        s->step_ms[i] = INFINITY;
    for (size_t i = 0; i < s->repeats; i++) {
        const double start = clock_s(clock);
        call(s, threads, clock);
        best = fmin(best, clock_s(clock) - start);
    }
    return best;
}

/* The CPU time of the naive program for the same problem; q is its result. */
static double naive_s(const struct subject *s, size_t variables, float *q) {
    const struct published *setting = s->setting;
    const double start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    float *features = require(malloc(variables * 5 * sizeof *features));
    const float compat[2] = {(float)setting->spatial_compat, (float)setting->bilateral_compat};
    const float colour = (float)setting->colour, channel_sigma[3] = {colour, colour, colour};
    naive_crf *crf = require(naive_new(variables, setting->labels, s->unary));
    bool is_done = true;
    for (size_t m = 0; m < 2; m++) {
        const float sigma = (float)(m == 0 ? setting->spatial : setting->bilateral);
        const size_t channels = m == 0 ? 0 : 3;
        naive_features(s->grid.size[0], s->grid.size[1], sigma, sigma, channels, s->rgb,
                       channel_sigma, features);
        is_done = is_done && naive_add(crf, 2 + channels, features, 0, &compat[m], 3) == 0;
    }
    require(is_done && naive_infer(crf, PUBLISHED_ITERATIONS, q) == 0 ? crf : NULL);
    naive_free(crf);
    free(features);
    return clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The peak memory of the process in MB, or 0. */
static double most_mb(void) {
    char line[256];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = atof(line + 6);
    if (file)
        fclose(file);
    return kilobytes / 1024;
}

/* Reset the peak; false if the system cannot. */
static bool forget_most(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return false;
    fputs("5", file);
    return fclose(file) == 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

struct options {
    size_t repeats;
    size_t setting; /* 0: all */
    bool has_naive, has_two, has_steps;
};

static void print_steps(const struct subject *s) {
    printf(" %.1f + %.1f + %.1f + %.1f |", s->step_ms[STEP_UNARY], s->step_ms[STEP_SPATIAL],
           s->step_ms[STEP_BILATERAL], s->step_ms[STEP_INFERENCE]);
}

static void print_row(const char *name, struct subject *s, const struct options *options) {
    const struct published *setting = s->setting;
    const size_t n = s->grid.size[0] * s->grid.size[1], count = n * setting->labels;
    s->unary = published_unary(setting, s->grid.size[0], s->grid.size[1]);
    s->q = require(calloc(count, sizeof *s->q));
    dcrf_trim_memory();
    const bool counts = forget_most();
    call(s, 1, CLOCK_MONOTONIC);
    const double memory_mb = counts ? most_mb() : 0;
    const double one = best_s(s, 1);
    printf("| %s | %zu, %g/%g, %g/%g/%g |", name, setting->labels, setting->spatial,
           setting->spatial_compat, setting->bilateral, setting->colour, setting->bilateral_compat);
    struct subject two = *s;
    const double passed = options->has_two ? best_s(&two, 2) : 0;
    if (options->has_naive) {
        float *q = require(malloc(count * sizeof *q));
        double naive = INFINITY;
        for (size_t i = 0; i < NAIVE_REPEATS; i++)
            naive = fmin(naive, naive_s(s, n, q));
        double difference = 0;
        for (size_t i = 0; i < count; i++)
            difference = fmax(difference, fabs((double)q[i] - (double)s->q[i]));
        free(q);
        printf(" %.3f | %.3f | %.1f | %.3f | %.1f | %.0f | %.1e |", naive, one, naive / one, passed,
               passed > 0 ? naive / passed : 0, memory_mb, difference);
    } else {
        printf(" %.3f | %.3f | %.0f |", one, passed, memory_mb);
    }
    if (options->has_steps) {
        print_steps(s);
        print_steps(&two);
    }
    printf("\n");
    fflush(stdout);
    free(s->unary);
    free(s->q);
}

static void print_head(const struct options *options) {
    const char *columns = options->has_naive
                              ? " naive, s | one thread, s | ratio | two threads, s wall time | "
                                "ratio | memory, MB | largest difference |"
                              : " one thread, s | two threads, s wall time | memory, MB |";
    printf("| picture | labels, spatial, bilateral |%s%s\n|---|---|", columns,
           options->has_steps ? " unary, spatial, bilateral, inference, ms: one thread | two |"
                              : "");
    for (size_t i = 0; i < (options->has_naive ? 7u : 3u) + (options->has_steps ? 2u : 0u); i++)
        printf("---|");
    printf("\n");
}

static void measure(const char *name, size_t width, size_t height, const uint8_t *rgb,
                    const struct options *options) {
    for (size_t i = 0; i < PUBLISHED_COUNT; i++) {
        if (options->setting > 0 && options->setting != i + 1)
            continue;
        struct subject s = {.setting = &published_settings[i],
                            .grid = dcrf_grid_2d(width, height),
                            .rgb = rgb,
                            .repeats = options->repeats};
        print_row(i == 0 || options->setting > 0 ? name : "", &s, options);
    }
}

static int usage(void) {
    fprintf(
        stderr,
        "usage: dcrf-drop-in-speed [--repeats N] [--setting I] [--no-naive] [--no-two] [--steps] "
        "[PHOTO.png ...]\n");
    return 2;
}

/* Whether this argument is the named option, followed by a positive number. */
static bool is_number(int argc, char **argv, int i, const char *name) {
    return strcmp(argv[i], name) == 0 && i + 1 < argc && strtoul(argv[i + 1], NULL, 10) > 0;
}

int main(int argc, char **argv) {
    struct options options = {.repeats = 20, .has_naive = true, .has_two = true};
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--no-naive") == 0)
            options.has_naive = false;
        else if (strcmp(argv[first], "--no-two") == 0)
            options.has_two = false;
        else if (strcmp(argv[first], "--steps") == 0)
            options.has_steps = true;
        else if (is_number(argc, argv, first, "--repeats"))
            options.repeats = strtoul(argv[++first], NULL, 10);
        else if (is_number(argc, argv, first, "--setting"))
            options.setting = strtoul(argv[++first], NULL, 10);
        else
            return usage();
    }
    print_head(&options);
    for (int i = first; i < argc; i++) {
        size_t width, height;
        uint8_t *rgb = photograph_read(argv[i], &width, &height);
        if (!rgb)
            return 1;
        measure(photograph_name(argv[i]), width, height, rgb, &options);
        free(rgb);
    }
    if (first == argc) {
        uint8_t *rgb = require(picture_draw(500, 375));
        measure("drawn, 500 x 375", 500, 375, rgb, &options);
        free(rgb);
    }
    return 0;
}
