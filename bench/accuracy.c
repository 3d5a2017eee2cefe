/* How accurate the lattice is, and what it costs to be better.
 *
 * For a picture of 160 x 107 pixels (the exact sum is quadratic) and a field of 21 labels, per pair
 * of sigmas: the relative L2 error |K~ y - K y| / |K y| of the plain kernel and of the
 * symmetrically normalized one, the mean of the row sums against the exact ones, and the time of
 * one application; for the lattice as it is built, for one closed by a ring of neighbours, and for
 * a finer one that is blurred twice. */
#define _DEFAULT_SOURCE
#include "core/timer.h"
#include "filter/lattice.h"
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH 160
#define HEIGHT 107
#define VARIABLES (WIDTH * HEIGHT)
#define LABELS 21
#define STRIDE 24

static float y[VARIABLES * STRIDE], exact[VARIABLES * STRIDE], fast[VARIABLES * STRIDE];
static float exact_sums[VARIABLES], fast_sums[VARIABLES];

static void check(dcrf_status status, const dcrf_error *error) {
    if (status < 0) {
        fprintf(stderr, "dcrf-accuracy: %s\n", error->message);
        exit(1);
    }
}

static double relative_error(void) {
    double difference = 0, size = 0;
    for (size_t a = 0; a < VARIABLES; a++)
        for (size_t i = 0; i < LABELS; i++) {
            const size_t e = a * STRIDE + i;
            difference += pow((double)fast[e] - (double)exact[e], 2);
            size += pow((double)exact[e], 2);
        }
    return sqrt(difference / size);
}

/* What applying K to y gives after the symmetric normalization by the given row sums, from K and
 * the scaled y. */
static void apply_normalized(const dcrf_operator *op, dcrf_workspace *workspace, const float *sums,
                             float *out) {
    static float scaled[VARIABLES * STRIDE];
    dcrf_error error;
    for (size_t e = 0; e < VARIABLES * STRIDE; e++)
        scaled[e] = y[e] / sqrtf(sums[e / STRIDE]);
    check(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, scaled, out, LABELS, STRIDE, &error),
          &error);
    for (size_t e = 0; e < VARIABLES * STRIDE; e++)
        out[e] /= sqrtf(sums[e / STRIDE]);
}

int main(void) {
    static const double sigmas[][2] = {{80, 13}, {50, 8}, {67, 3}, {30, 8}, {10, 20}, {121, 5}};
    static const struct {
        const char *name;
        struct dcrf_refinement refinement;
    } variants[] = {{"as built", {0, 1, false}},
                    {"one ring", {1, 1, false}},
                    {"two rings, two rounds", {2, 2, false}}};
    dcrf_error error;
    dcrf_workspace *workspace;
    check(dcrf_workspace_new(&workspace, 0, &error), &error);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    uint8_t *rgb = picture_draw(WIDTH, HEIGHT);
    float *labels = picture_labels(WIDTH, HEIGHT, LABELS, STRIDE);
    if (!rgb || !labels)
        return 1;
    for (size_t e = 0; e < VARIABLES * STRIDE; e++)
        y[e] = labels[e];
    printf(
        "| sigma xy, rgb | lattice | vertices | error, plain | error, normalized | mean row sum / "
        "exact | apply, ms |\n|---|---|---|---|---|---|---|\n");
    for (size_t s = 0; s < sizeof sigmas / sizeof sigmas[0]; s++) {
        dcrf_kernel kernel = dcrf_kernel_bilateral(
            sigmas[s][0], sigmas[s][1], dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3), 1);
        struct dcrf_features features;
        check(dcrf_features_new(&features, &grid, &kernel, &error), &error);
        dcrf_operator *truth;
        check(dcrf_exact_new(&truth, &features, workspace, &error), &error);
        check(dcrf_operator_row_sums(truth, workspace, exact_sums, &error), &error);
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
            dcrf_operator *op;
            check(
                dcrf_lattice_new_refined(&op, &features, variants[v].refinement, workspace, &error),
                &error);
            check(dcrf_lattice_calibrate(op, &features, workspace, &error), &error);
            check(dcrf_operator_row_sums(op, workspace, fast_sums, &error), &error);
            double fast_total = 0, exact_total = 0;
            for (size_t a = 0; a < VARIABLES; a++) {
                fast_total += (double)fast_sums[a];
                exact_total += (double)exact_sums[a];
            }
            if (v == 0)
                check(dcrf_operator_apply(truth, workspace, DCRF_SYMMETRIC, y, exact, LABELS,
                                          STRIDE, &error),
                      &error);
            double apply_s = INFINITY;
            for (int i = 0; i < 5; i++) {
                const double start = dcrf_time_s();
                check(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, y, fast, LABELS, STRIDE,
                                          &error),
                      &error);
                apply_s = fmin(apply_s, dcrf_time_s() - start);
            }
            printf("| %g, %g | %s | %zu | %.3f |", sigmas[s][0], sigmas[s][1], variants[v].name,
                   dcrf_operator_vertices(op), relative_error());
            static float exact_plain[VARIABLES * STRIDE], exact_normalized[VARIABLES * STRIDE];
            if (v == 0) {
                for (size_t e = 0; e < VARIABLES * STRIDE; e++)
                    exact_plain[e] = exact[e];
                apply_normalized(truth, workspace, exact_sums, exact_normalized);
            }
            for (size_t e = 0; e < VARIABLES * STRIDE; e++)
                exact[e] = exact_normalized[e];
            apply_normalized(op, workspace, fast_sums, fast);
            printf(" %.3f | %.3f | %.2f |\n", relative_error(), fast_total / exact_total,
                   apply_s * 1e3);
            for (size_t e = 0; e < VARIABLES * STRIDE; e++)
                exact[e] = exact_plain[e];
            dcrf_operator_free(&op);
        }
        dcrf_operator_free(&truth);
        dcrf_features_clear(&features);
    }
    free(rgb);
    free(labels);
    dcrf_workspace_free(&workspace);
    return 0;
}
