/* What setting up a lattice costs.
 *
 *   dcrf-plan-speed [--threads N] [PHOTO.png ...]
 *
 * For each photograph (or a drawn picture of 500 x 375) and common kernels: setting up a kernel of
 * the drop-in for 21 labels (features, lattice, normalization), compared with applying it once to
 * 24 channels; and the library's own plan of the same kernel, including its diagonal, and the
 * operator alone, which is the first part of it. Times are CPU times, the best of several, in one
 * thread by default; with more threads they are summed over threads, and followed by wall times.
 * Bytes per pixel are those of the finished plan, and the peak while it was made, including the
 * plan, as reported by the system (0: unknown). */
#define _DEFAULT_SOURCE
#include "core/memory.h"
#include "densecrf/densecrf.h"
#include "measure.h"
#include "photograph.h"
#include "picture.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS 21
#define WIDTH 24

struct subject {
    const char *name;
    dcrf_grid grid;
    dcrf_kernel kernel;
    size_t threads;
    dcrf_workspace *workspace;
    dcrf_densecrf *crf;
    dcrf_model *model;
    dcrf_operator *op;
    dcrf_plan *plan;
    float *in, *out;
};

/* ---- what is measured ----------------------------------------------------------------------- */

static void make_object(struct subject *s) {
    dcrf_error error;
    dcrf_densecrf_free(&s->crf);
    must(dcrf_densecrf_new(&s->crf, &s->grid, LABELS, &error), &error);
}

static void add_kernel(struct subject *s) {
    dcrf_error error;
    const float compatibility = 3;
    must(dcrf_densecrf_add_kernel(s->crf, s->workspace, &s->kernel, DCRF_DENSECRF_SYMMETRIC,
                                  DCRF_COMPATIBILITY_POTTS, &compatibility, &error),
         &error);
}

static void drop_in(struct subject *s) {
    make_object(s);
    add_kernel(s);
}

static void apply(struct subject *s) {
    const struct dcrf_lattice *lattice = dcrf_densecrf_lattice(&s->crf->terms[0]);
    float *scratch = dcrf_workspace_slot(s->workspace, &dcrf_spread_slot,
                                         dcrf_lattice_filter_floats(lattice, WIDTH, s->threads),
                                         sizeof *scratch);
    dcrf_lattice_filter(&(struct dcrf_lattice_filter){.lattice = lattice,
                                                      .pool = dcrf_workspace_pool(s->workspace),
                                                      .width = WIDTH,
                                                      .in = s->in,
                                                      .in_stride = WIDTH,
                                                      .out = s->out,
                                                      .out_stride = WIDTH,
                                                      .factor = 1,
                                                      .scratch = require(scratch)});
}

static void operator_alone(struct subject *s) {
    dcrf_error error;
    dcrf_operator_free(&s->op);
    must(dcrf_operator_new(&s->op, &s->grid, &s->kernel, DCRF_OPERATOR_LATTICE, s->workspace,
                           &error),
         &error);
}

static void plan(struct subject *s) {
    dcrf_error error;
    dcrf_plan_free(&s->plan);
    must(dcrf_plan_new(&s->plan, s->model, DCRF_OPERATOR_LATTICE, s->workspace, &error), &error);
}

/* The best of the runs that fit into half a second, at least five. */
static double best_ms(void (*run)(struct subject *), struct subject *s, double *passed_ms) {
    double best = INFINITY, spent = 0;
    *passed_ms = INFINITY;
    run(s);
    for (int i = 0; i < 5 || (spent < 0.5 && i < 1000); i++) {
        const double start = clock_s(CLOCK_PROCESS_CPUTIME_ID), began = clock_s(CLOCK_MONOTONIC);
        run(s);
        const double taken = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
        *passed_ms = fmin(*passed_ms, 1e3 * (clock_s(CLOCK_MONOTONIC) - began));
        best = fmin(best, taken);
        spent += taken;
    }
    return best * 1e3;
}

/* A value from /proc/self/status in bytes, or 0. */
static double status_bytes(const char *name) {
    char line[256];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kilobytes = atof(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

/* The peak memory of a run beyond what was held before it. */
static double peak_bytes(void (*run)(struct subject *), struct subject *s) {
    dcrf_error error;
    dcrf_workspace_free(&s->workspace);
    dcrf_trim_memory();
    must(dcrf_workspace_new(&s->workspace, s->threads, &error), &error);
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return 0;
    fputs("5", file);
    fclose(file);
    const double before = status_bytes("VmRSS:");
    run(s);
    return status_bytes("VmHWM:") - before;
}

static void print_row(struct subject *s, const char *kernel) {
    const double n = (double)s->grid.size[0] * (double)s->grid.size[1];
    double passed_ms, drop_in_passed_ms, plan_passed_ms;
    dcrf_error error;
    must(dcrf_model_new(&s->model, &s->grid, 2, &error), &error);
    must(dcrf_model_add_kernel(s->model, &s->kernel, &error), &error);
    make_object(s);
    const double drop_in_peak = peak_bytes(add_kernel, s);
    const double drop_in_bytes = (double)dcrf_operator_bytes(s->crf->terms[0].op);
    const size_t vertices = dcrf_operator_vertices(s->crf->terms[0].op);
    const double object_ms = best_ms(make_object, s, &passed_ms);
    const double drop_in_ms = best_ms(drop_in, s, &drop_in_passed_ms) - object_ms;
    const double apply_ms = best_ms(apply, s, &passed_ms);
    dcrf_densecrf_free(&s->crf);
    const double plan_peak = peak_bytes(plan, s);
    const double plan_bytes = (double)dcrf_plan_bytes(s->plan);
    const double plan_ms = best_ms(plan, s, &plan_passed_ms);
    dcrf_plan_free(&s->plan);
    const double operator_ms = best_ms(operator_alone, s, &passed_ms);
    dcrf_operator_free(&s->op);
    dcrf_model_free(&s->model);
    printf("| %s | %s | %zu | %.1f | %.1f | %.1f | %.0f | %.0f | %.1f | %.1f | %.0f | %.0f |",
           s->name, kernel, vertices, drop_in_ms, apply_ms, drop_in_ms / apply_ms,
           drop_in_bytes / n, drop_in_peak / n, operator_ms, plan_ms, plan_bytes / n,
           plan_peak / n);
    if (s->threads > 1)
        printf(" %.1f | %.1f |", drop_in_passed_ms, plan_passed_ms);
    printf("\n");
    fflush(stdout);
}

static void measure(const char *name, size_t width, size_t height, const uint8_t *rgb,
                    size_t threads) {
    static const struct {
        const char *name;
        double sigma, colour_sigma; /* 0: spatial */
    } kernels[] = {{"80/13", 80, 13}, {"67/3", 67, 3}, {"50/5", 50, 5}, {"3", 3, 0}, {"1", 1, 0}};
    struct subject s = {.name = name, .grid = dcrf_grid_2d(width, height), .threads = threads};
    s.in = require(picture_labels(width, height, LABELS, WIDTH));
    s.out = require(malloc(width * height * WIDTH * sizeof *s.out));
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        s.kernel = kernels[i].colour_sigma > 0
                       ? dcrf_kernel_bilateral(kernels[i].sigma, kernels[i].colour_sigma,
                                               dcrf_view_interleaved(rgb, DCRF_U8, &s.grid, 3), 1)
                       : dcrf_kernel_spatial(kernels[i].sigma, 1);
        print_row(&s, kernels[i].name);
    }
    free(s.in);
    free(s.out);
    dcrf_workspace_free(&s.workspace);
}

static void measure_photograph(const char *path, size_t threads) {
    size_t width, height;
    uint8_t *rgb = photograph_read(path, &width, &height);
    if (!rgb)
        exit(1);
    measure(photograph_name(path), width, height, rgb, threads);
    free(rgb);
}

int main(int argc, char **argv) {
    size_t threads = 1;
    int first = 1;
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* return freed memory to the system, for peak_bytes */
    if (argc > 2 && strcmp(argv[1], "--threads") == 0) {
        threads = strtoul(argv[2], NULL, 10);
        first = 3;
    }
    printf(
        "| picture | kernel | vertices | drop-in, ms | application, ms | ratio | bytes per pixel | "
        "at most | operator, ms | plan, ms | bytes per pixel | at most |%s\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|%s\n",
        threads > 1 ? " drop-in, ms wall time | plan, ms wall time |" : "",
        threads > 1 ? "---|---|" : "");
    for (int i = first; i < argc; i++)
        measure_photograph(argv[i], threads);
    if (first == argc) {
        uint8_t *rgb = require(picture_draw(500, 375));
        measure("drawn, 500 x 375", 500, 375, rgb, threads);
        free(rgb);
    }
    return 0;
}
