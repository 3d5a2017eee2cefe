/* The compatible mean field: its inner loops against plain C, its argument checks, and that neither
 * threads nor skipped labels change what they must not. Its numbers are compared with a naive
 * lattice and with recordings in tests/python. With workspaces on a device (tests/cuda/on_device.c)
 * all of this tests the device. */
#include "core/memory.h"
#include "core/rng.h"
#include "dense.h"
#include "densecrf/densecrf.h"
#include "dsp/dsp.h"
#include "naive_densecrf.h"
#include "unit.h"

#include <dcrf/densecrf.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- inner loops ---------------------------------------------------------------------------- */

static const dcrf_cpu cpus[] = {DCRF_CPU_C, DCRF_CPU_NEON, DCRF_CPU_AVX2, DCRF_CPU_AVX512,
                                DCRF_CPU_SIMD128};
#define CPUS (sizeof cpus / sizeof cpus[0])

/* The stated error of the exponential. One ulp of a float in [0.5, 1) times its power is at most
 * 2^-23 relative; subnormal results are flushed and ignored. */
static void the_exponential_is_good_to_three_ulps(void **state) {
    (void)state;
    enum { COUNT = 100001 };
    float *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    float *zero = calloc(COUNT, sizeof *zero), *one = malloc(COUNT * sizeof *one);
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = (float)i * (86.9f / (float)COUNT);
        one[i] = 1;
    }
    for (size_t k = 0; k < CPUS; k++) {
        const struct dcrf_dsp *dsp = dcrf_dsp_for(cpus[k]);
        if (!dsp)
            continue;
        double worst = 0;
        dsp->negative_exponential(in, zero, one, out, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            const double exact = exp(-(double)in[i]);
            const double ulp = ldexp(1, ilogb(exact) - 23);
            worst = fmax(worst, fabs((double)out[i] - exact) / ulp);
        }
        print_message("%s: %.2f ulp\n", dcrf_cpu_name(cpus[k]), worst);
        assert_true(worst <= 3);
    }
    free(in);
    free(out);
    free(zero);
    free(one);
}

/* Sixteen at once, or twice eight, and a remainder. */
enum { ROWS = 21, MOST = 80, EIGHTS = (ROWS + 7) / 8, ALL_LARGE = 3 };

/* The formula in double; consecutive unary energies of a row are `step` apart. */
static void softmax_row(const float *unary, size_t step, const float *message, size_t labels,
                        const float *rest, double *q) {
    double top = rest ? (double)*rest : -1e300, sum = 0;
    for (size_t i = 0; i < labels; i++)
        top = fmax(top, -(double)unary[i * step] - (double)message[i]);
    for (size_t i = 0; i < labels; i++)
        sum += q[i] = exp(-(double)unary[i * step] - (double)message[i] - top);
    sum += rest ? exp((double)*rest - top) : 0;
    for (size_t i = 0; i < labels; i++)
        q[i] /= sum;
}

/* Rows of every length, with and without a rest, in place or not, unary energies in planes and in
 * groups of eight. In each row one label is impossible, or all are equally so. */
static void the_shared_softmax_is_its_formula(void **state) {
    (void)state;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 4);
    for (size_t k = 0; k < CPUS; k++)
        for (size_t labels = 1; labels <= 70; labels++)
            for (size_t variant = 0; variant < 8; variant++) {
                const struct dcrf_dsp *dsp = dcrf_dsp_for(cpus[k]);
                if (!dsp)
                    continue;
                const size_t stride = dcrf_padded(labels);
                size_t plane[MOST];
                _Alignas(DCRF_ALIGNMENT) float work[DCRF_SOFTMAX_WORK(MOST)];
                float unary[8 * EIGHTS * MOST], message[ROWS * MOST], q[ROWS * MOST];
                float rest[ROWS], rest_top[ROWS], shift[ROWS], scale[ROWS];
                float peak[MOST] = {0}, rest_peak = 0;
                double expected[ROWS][MOST], highest = 0;
                for (size_t j = 0; j < 8 * EIGHTS * MOST; j++)
                    unary[j] = (float)(dcrf_rng_uniform(&rng) * 20);
                for (size_t j = 0; j < ROWS * MOST; j++)
                    message[j] = (float)(dcrf_rng_uniform(&rng) * 20 - 10);
                for (size_t r = 0; r < ROWS; r++) {
                    rest[r] = (float)(dcrf_rng_uniform(&rng) * 10 - 10);
                    rest_top[r] = rest[r] - 1;
                }
                const bool has_rest = variant % 2, in_place = variant / 2 % 2;
                const size_t plane_step = variant / 4 ? 8 : ROWS;
                const size_t eight_step = variant / 4 ? 8 * labels : 8;
                for (size_t r = 0; r < ROWS; r++) {
                    float *own = unary + r / 8 * eight_step + r % 8;
                    for (size_t i = 0; i < labels; i++)
                        if (r == ALL_LARGE || (labels > 1 && i == r % labels))
                            own[i * plane_step] = DCRF_DENSECRF_LARGEST_UNARY;
                    softmax_row(own, plane_step, message + r * stride, labels,
                                has_rest ? &rest[r] : NULL, expected[r]);
                }
                for (size_t i = 0; i < labels; i++)
                    plane[i] = i;
                const struct dcrf_shared_softmax s = {.labels = labels,
                                                      .stride = stride,
                                                      .message_stride = stride,
                                                      .unary = unary,
                                                      .plane = plane,
                                                      .plane_step = plane_step,
                                                      .eight_step = eight_step,
                                                      .message = message,
                                                      .rest = has_rest ? rest : NULL,
                                                      .rest_top = rest_top,
                                                      .shift = shift,
                                                      .scale = scale,
                                                      .q = in_place ? message : q,
                                                      .peak = peak,
                                                      .rest_peak = &rest_peak,
                                                      .work = work};
                dsp->shared_softmax(&s, ROWS);
                /* Arguments of up to 30 carry an error of 30 * 6e-8, and a few roundings more. */
                const double tolerance = 5e-6;
                for (size_t r = 0; r < ROWS; r++) {
                    for (size_t i = 0; i < stride; i++)
                        assert_true(fabs((double)s.q[r * stride + i] -
                                         (i < labels ? expected[r][i] : 0)) <= tolerance);
                    if (has_rest) {
                        const double part = exp((double)rest_top[r] - (double)shift[r]);
                        highest = fmax(highest, part * (double)scale[r]);
                    }
                }
                for (size_t i = 0; i < labels; i++) {
                    float largest = 0;
                    for (size_t r = 0; r < ROWS; r++)
                        largest = fmaxf(largest, s.q[r * stride + i]);
                    assert_true(peak[i] == largest);
                }
                if (has_rest)
                    assert_true(fabs((double)rest_peak - highest) <= tolerance);
            }
}

/* ---- the object ----------------------------------------------------------------------------- */

enum { WIDTH = 31, HEIGHT = 23, VARIABLES = WIDTH * HEIGHT, LABELS = 40 };

struct problem {
    dcrf_workspace *workspace;
    dcrf_densecrf *crf;
    unsigned char image[VARIABLES * 3];
    float unary[VARIABLES * LABELS];
};

static struct problem *problem_new(size_t threads) {
    struct problem *p = calloc(1, sizeof *p);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_rng rng;
    dcrf_error error;
    dcrf_rng_seed(&rng, 9);
    for (size_t i = 0; i < VARIABLES * 3; i++)
        p->image[i] = (unsigned char)(dcrf_rng_next(&rng) % 64);
    for (size_t i = 0; i < VARIABLES * LABELS; i++)
        p->unary[i] = i / VARIABLES < 3 ? (float)dcrf_rng_uniform(&rng) * 4 : 11.5f;
    const dcrf_view view = dcrf_view_planar(p->unary, DCRF_F32, &grid, LABELS);
    const dcrf_view image = dcrf_view_interleaved(p->image, DCRF_U8, &grid, 3);
    const dcrf_kernel spatial = dcrf_kernel_spatial(3, 1);
    const dcrf_kernel bilateral = dcrf_kernel_bilateral(20, 20, image, 1);
    const float weight[2] = {3, 5};
    assert_int_equal(dcrf_workspace_new(&p->workspace, threads, &error), DCRF_OK);
    assert_int_equal(dcrf_densecrf_new(&p->crf, &grid, LABELS, &error), DCRF_OK);
    assert_int_equal(dcrf_densecrf_set_unary(p->crf, &view, &error), DCRF_OK);
    assert_int_equal(dcrf_densecrf_add_kernel(p->crf, p->workspace, &spatial,
                                              DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_POTTS,
                                              &weight[0], &error),
                     DCRF_OK);
    assert_int_equal(dcrf_densecrf_add_kernel(p->crf, p->workspace, &bilateral,
                                              DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_POTTS,
                                              &weight[1], &error),
                     DCRF_OK);
    return p;
}

static void problem_free(struct problem *p) {
    dcrf_densecrf_free(&p->crf);
    dcrf_workspace_free(&p->workspace);
    free(p);
}

static float *infer(const struct problem *p, size_t iterations) {
    dcrf_error error;
    float *q = malloc(VARIABLES * LABELS * sizeof *q);
    assert_int_equal(dcrf_densecrf_infer(p->crf, p->workspace, iterations, q, VARIABLES * LABELS,
                                         NULL, NULL, &error),
                     DCRF_OK);
    return q;
}

/* Mean field of this kind computes no energies: all of them are unknown. */
static int check_moment(void *user, const dcrf_moment *moment) {
    size_t *calls = user;
    assert_int_equal(moment->iteration, ++*calls);
    assert_int_equal(moment->stage, DCRF_STAGE_SOLVE);
    assert_true(moment->time_s >= 0);
    assert_true(isnan(moment->objective) && isnan(moment->energy) && isnan(moment->best_energy));
    assert_true(isnan(moment->lower_bound) && isnan(moment->relative_gap));
    return *calls == 3;
}

static void progress_is_told(void **state) {
    (void)state;
    struct problem *p = problem_new(1);
    float *q = malloc(VARIABLES * LABELS * sizeof *q);
    size_t calls = 0;
    assert_int_equal(dcrf_densecrf_infer(p->crf, p->workspace, 5, q, VARIABLES * LABELS,
                                         check_moment, &calls, NULL),
                     DCRF_STOP_CANCELLED);
    assert_int_equal(calls, 3);
    free(q);
    problem_free(p);
}

static void threads_change_no_byte(void **state) {
    (void)state;
    struct problem *one = problem_new(1), *four = problem_new(4);
    float *a = infer(one, 5), *b = infer(four, 5);
    double divergence[2];
    dcrf_error error;
    assert_memory_equal(a, b, VARIABLES * LABELS * sizeof *a);
    assert_int_equal(dcrf_densecrf_divergence(one->crf, one->workspace, a, &divergence[0], &error),
                     DCRF_OK);
    assert_int_equal(
        dcrf_densecrf_divergence(four->crf, four->workspace, a, &divergence[1], &error), DCRF_OK);
    assert_true(divergence[0] == divergence[1]);
    free(a);
    free(b);
    problem_free(one);
    problem_free(four);
}

/* Bytes are read in place, other types are copied: the features are the same. */
static void types_of_pictures_change_no_byte(void **state) {
    (void)state;
    struct problem *bytes = problem_new(1), *floats = problem_new(1);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const float weight = 2;
    static float image[VARIABLES * 3];
    for (size_t i = 0; i < VARIABLES * 3; i++)
        image[i] = bytes->image[i];
    const dcrf_kernel kernels[] = {
        dcrf_kernel_bilateral(7, 5, dcrf_view_interleaved(bytes->image, DCRF_U8, &grid, 3), 1),
        dcrf_kernel_bilateral(7, 5, dcrf_view_interleaved(image, DCRF_F32, &grid, 3), 1)};
    struct problem *both[] = {bytes, floats};
    float *q[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(dcrf_densecrf_add_kernel(both[i]->crf, both[i]->workspace, &kernels[i],
                                                  DCRF_DENSECRF_SYMMETRIC, DCRF_COMPATIBILITY_POTTS,
                                                  &weight, NULL),
                         DCRF_OK);
        q[i] = infer(both[i], 5);
        problem_free(both[i]);
    }
    assert_memory_equal(q[0], q[1], VARIABLES * LABELS * sizeof *q[0]);
    free(q[0]);
    free(q[1]);
}

static void labels_left_out_change_little(void **state) {
    (void)state;
    struct problem *p = problem_new(2);
    dcrf_error error;
    float *fast = infer(p, 5);
    assert_int_equal(dcrf_densecrf_set_message_error(p->crf, 0, &error), DCRF_OK);
    float *exact = infer(p, 5);
    float difference = 0;
    for (size_t i = 0; i < VARIABLES * LABELS; i++)
        difference = fmaxf(difference, fabsf(fast[i] - exact[i]));
    assert_true(difference < 2e-5f);
    free(fast);
    free(exact);
    problem_free(p);
}

/* Changing a compatibility gives the same result as setting it from the start. */
static void a_compatibility_can_be_changed(void **state) {
    (void)state;
    struct problem *p = problem_new(2);
    dcrf_error error;
    const float old = 5, new = 1;
    float *before = infer(p, 3);
    assert_int_equal(
        dcrf_densecrf_set_compatibility(p->crf, 1, DCRF_COMPATIBILITY_POTTS, &new, &error),
        DCRF_OK);
    float *changed = infer(p, 3);
    assert_memory_not_equal(before, changed, VARIABLES * LABELS * sizeof *before);
    assert_int_equal(
        dcrf_densecrf_set_compatibility(p->crf, 1, DCRF_COMPATIBILITY_POTTS, &old, &error),
        DCRF_OK);
    float *again = infer(p, 3);
    assert_memory_equal(before, again, VARIABLES * LABELS * sizeof *before);
    free(before);
    free(changed);
    free(again);
    problem_free(p);
}

/* ---- pictures of several bands, against the oracle ------------------------------------------ */

enum { WIDE = 221, HIGH = 101, MANY = WIDE * HIGH };

struct choice {
    size_t labels;
    float sigma, colour_sigma;
    dcrf_compatibility compatibility; /* of the spatial kernel, and its normalization */
    dcrf_densecrf_normalization normalization;
};

/* Marginals with the given number of threads, by inference or step by step. */
static float *mean_field(const struct choice *choice, const unsigned char *image,
                         const float *unary, const float *values, size_t threads, bool by_steps) {
    const dcrf_grid grid = dcrf_grid_2d(WIDE, HIGH);
    const dcrf_view view = dcrf_view_planar(unary, DCRF_F32, &grid, choice->labels);
    const dcrf_view channels = dcrf_view_interleaved(image, DCRF_U8, &grid, 3);
    const dcrf_kernel spatial = dcrf_kernel_spatial(3, 1);
    const dcrf_kernel bilateral =
        dcrf_kernel_bilateral((double)choice->sigma, (double)choice->colour_sigma, channels, 1);
    const float weight = 2;
    dcrf_workspace *workspace;
    dcrf_densecrf *crf;
    float *q = malloc(MANY * choice->labels * sizeof *q);
    assert_int_equal(dcrf_workspace_new(&workspace, threads, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_new(&crf, &grid, choice->labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_set_message_error(crf, 0, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_set_unary(crf, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_densecrf_add_kernel(crf, workspace, &spatial, choice->normalization,
                                              choice->compatibility, values, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_densecrf_add_kernel(crf, workspace, &bilateral, DCRF_DENSECRF_SYMMETRIC,
                                              DCRF_COMPATIBILITY_POTTS, &weight, NULL),
                     DCRF_OK);
    assert_string_equal(dcrf_densecrf_device(crf), dcrf_workspace_device(workspace));
    if (!crf->on_device) /* small sigmas give a large lattice */
        assert_true(dcrf_densecrf_has_ring(&crf->terms[1]) == (choice->sigma < 5));
    const size_t iterations = 3;
    assert_int_equal(dcrf_densecrf_infer(crf, workspace, by_steps ? 0 : iterations, q,
                                         MANY * choice->labels, NULL, NULL, NULL),
                     DCRF_OK);
    for (size_t i = 0; by_steps && i < iterations; i++)
        assert_int_equal(dcrf_densecrf_step(crf, workspace, q, MANY * choice->labels, NULL),
                         DCRF_OK);
    dcrf_densecrf_free(&crf);
    dcrf_workspace_free(&workspace);
    return q;
}

static float *oracle(const struct choice *choice, const unsigned char *image, const float *unary,
                     const float *values) {
    const float sigma[3] = {choice->colour_sigma, choice->colour_sigma, choice->colour_sigma};
    const float weight = 2;
    float *features = malloc(MANY * 5 * sizeof *features);
    float *q = malloc(MANY * choice->labels * sizeof *q);
    naive_crf *crf = naive_new(MANY, choice->labels, unary);
    naive_features(WIDE, HIGH, 3, 3, 0, NULL, NULL, features);
    assert_int_equal(
        naive_add(crf, 2, features, (int)choice->compatibility, values, (int)choice->normalization),
        0);
    naive_features(WIDE, HIGH, choice->sigma, choice->sigma, 3, image, sigma, features);
    assert_int_equal(naive_add(crf, 5, features, 0, &weight, DCRF_DENSECRF_SYMMETRIC), 0);
    assert_int_equal(naive_infer(crf, 3, q), 0);
    naive_free(crf);
    free(features);
    return q;
}

/* All kinds of rows and kernels: the same bytes with more and with fewer threads than groups of
 * bands, and step by step; and the same as the naive program up to the rounding of sums of some
 * hundred terms. */
static void bands_are_the_whole(void **state) {
    (void)state;
    const struct choice choices[] = {
        {2, 40, 20, DCRF_COMPATIBILITY_POTTS, DCRF_DENSECRF_SYMMETRIC},
        {3, 20, 8, DCRF_COMPATIBILITY_MATRIX, DCRF_DENSECRF_AFTER},
        {4, 40, 13, DCRF_COMPATIBILITY_POTTS, DCRF_DENSECRF_SYMMETRIC},
        {7, 30, 10, DCRF_COMPATIBILITY_POTTS, DCRF_DENSECRF_BEFORE},
        {21, 40, 13, DCRF_COMPATIBILITY_VECTOR, DCRF_DENSECRF_NONE},
        {35, 40, 20, DCRF_COMPATIBILITY_POTTS, DCRF_DENSECRF_SYMMETRIC},
        {70, 40, 13, DCRF_COMPATIBILITY_MATRIX, DCRF_DENSECRF_SYMMETRIC},
        {40, 4, 1, DCRF_COMPATIBILITY_VECTOR, DCRF_DENSECRF_SYMMETRIC},
        {34, 4, 1, DCRF_COMPATIBILITY_POTTS, DCRF_DENSECRF_SYMMETRIC},
    };
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 3);
    unsigned char *image = malloc(MANY * 3);
    for (size_t i = 0; i < MANY * 3; i++) /* shades, edges and grain */
        image[i] =
            (unsigned char)(i / 3 % WIDE + (i / (WIDE * 9) % 3) * 40 + dcrf_rng_next(&rng) % 24);
    for (size_t c = 0; c < sizeof choices / sizeof *choices; c++) {
        const struct choice *choice = &choices[c];
        const size_t labels = choice->labels;
        if (SANITIZED && labels > 34) /* takes minutes and adds no new kind of row */
            continue;
        float *unary = malloc(MANY * labels * sizeof *unary);
        float *values = malloc(labels * labels * sizeof *values);
        for (size_t i = 0; i < MANY * labels; i++)
            unary[i] = (float)dcrf_rng_uniform(&rng) * 4;
        for (size_t i = 0; i < labels * labels; i++)
            values[i] = choice->compatibility == DCRF_COMPATIBILITY_POTTS
                            ? 2
                            : -(float)dcrf_rng_uniform(&rng);
        float *expected = oracle(choice, image, unary, values), *first = NULL;
        for (size_t run = 0; run < 4; run++) { /* 1, 2 and 4 threads; then steps */
            float *q =
                mean_field(choice, image, unary, values, run == 3 ? 2 : (size_t)1 << run, run == 3);
            float worst = 0;
            for (size_t i = 0; i < MANY * labels; i++)
                worst = fmaxf(worst, fabsf(q[i] - expected[i]));
            if (run == 0)
                print_message("%zu labels, %g: off by %g\n", labels, (double)choice->sigma,
                              (double)worst);
            assert_true(worst <= 2e-5f);
            if (first)
                assert_memory_equal(q, first, MANY * labels * sizeof *q);
            if (run > 0)
                free(q);
            else
                first = q;
        }
        free(first);
        free(expected);
        free(unary);
        free(values);
    }
    free(image);
}

static void mistakes_are_errors(void **state) {
    (void)state;
    struct problem *p = problem_new(1);
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel spatial = dcrf_kernel_spatial(3, 1);
    const float weight = 1, infinite = INFINITY, huge = 1e20f;
    dcrf_densecrf *none = NULL;
    dcrf_error error;
    dcrf_view view = dcrf_view_planar(p->unary, DCRF_F32, &grid, LABELS);
    assert_fails(DCRF_ERROR_SIZE, "labels", error, dcrf_densecrf_new(&none, &grid, 0, &error));
    assert_null(none);
    view.channels = 3;
    assert_fails(DCRF_ERROR_SIZE, "40 labels", error,
                 dcrf_densecrf_set_unary(p->crf, &view, &error));
    view.channels = LABELS;
    p->unary[7 * VARIABLES + 2] = NAN;
    assert_fails(DCRF_ERROR_NOT_FINITE, "label 7", error,
                 dcrf_densecrf_set_unary(p->crf, &view, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "normalization", error,
                 dcrf_densecrf_add_kernel(p->crf, p->workspace, &spatial,
                                          (dcrf_densecrf_normalization)9, DCRF_COMPATIBILITY_POTTS,
                                          &weight, &error));
    assert_fails(DCRF_ERROR_NOT_FINITE, "compatibility", error,
                 dcrf_densecrf_add_kernel(p->crf, p->workspace, &spatial, DCRF_DENSECRF_NONE,
                                          DCRF_COMPATIBILITY_POTTS, &infinite, &error));
    assert_fails(
        DCRF_ERROR_SIZE, "at most", error,
        dcrf_densecrf_set_compatibility(p->crf, 0, DCRF_COMPATIBILITY_POTTS, &huge, &error));
    assert_fails(
        DCRF_ERROR_ARGUMENT, "no kernel 5", error,
        dcrf_densecrf_set_compatibility(p->crf, 5, DCRF_COMPATIBILITY_POTTS, &weight, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "-1", error,
                 dcrf_densecrf_set_message_error(p->crf, -1, &error));
    assert_int_equal(dcrf_densecrf_kernels(p->crf), 2);
    float *q = infer(p, 1), *kept = infer(p, 1);
    const size_t few = VARIABLES * LABELS - 1;
    assert_fails(DCRF_ERROR_SIZE, "the marginals: the array holds", error,
                 dcrf_densecrf_start(p->crf, p->workspace, q, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the marginals: the array holds", error,
                 dcrf_densecrf_step(p->crf, p->workspace, q, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the marginals: the array holds", error,
                 dcrf_densecrf_infer(p->crf, p->workspace, 3, q, few, NULL, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_densecrf_start(p->crf, p->workspace, NULL, few + 1, &error));
    assert_memory_equal(q, kept, (few + 1) * sizeof *q);
    free(kept);
    q[5] = INFINITY;
    assert_fails(DCRF_ERROR_NOT_FINITE, "finite", error,
                 dcrf_densecrf_step(p->crf, p->workspace, q, VARIABLES * LABELS, &error));
    free(q);
    problem_free(p);
}

/* If lattices are large or labels few, inference sums the messages once and from then on filters
 * one label less; a step filters all labels. Both must agree up to the rounding of sums over the
 * labels, and threads must change nothing. */
struct sparing {
    size_t labels;
    double sigma, colour_sigma;
    bool is_mixed; /* also with a small lattice */
};

static void check_totals(const struct sparing *sparing, const unsigned char *image) {
    const size_t labels = sparing->labels, iterations = 4;
    const dcrf_grid grid = dcrf_grid_2d(WIDE, HIGH);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    float *unary = malloc(MANY * labels * sizeof *unary);
    for (size_t i = 0; i < MANY * labels; i++)
        unary[i] = (float)dcrf_rng_uniform(&rng) * 4;
    const dcrf_kernel bilateral = dcrf_kernel_bilateral(
        sparing->sigma, sparing->colour_sigma, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 1);
    const dcrf_kernel kernels[2] = {sparing->is_mixed ? dcrf_kernel_spatial(3, 1) : bilateral,
                                    bilateral};
    const dcrf_view view = dcrf_view_planar(unary, DCRF_F32, &grid, labels);
    const float weight = 4;
    bool spares = true; /* a device filters all labels */
    float *q[4];
    for (size_t run = 0; run < 4; run++) { /* 1, 2 and 4 threads; then steps */
        dcrf_workspace *workspace;
        dcrf_densecrf *crf;
        q[run] = malloc(MANY * labels * sizeof *q[run]);
        assert_int_equal(dcrf_workspace_new(&workspace, (size_t)1 << run % 3, NULL), DCRF_OK);
        assert_int_equal(dcrf_densecrf_new(&crf, &grid, labels, NULL), DCRF_OK);
        assert_int_equal(dcrf_densecrf_set_unary(crf, &view, NULL), DCRF_OK);
        for (size_t m = 0; m < 2; m++)
            assert_int_equal(dcrf_densecrf_add_kernel(crf, workspace, &kernels[m],
                                                      DCRF_DENSECRF_SYMMETRIC,
                                                      DCRF_COMPATIBILITY_POTTS, &weight, NULL),
                             DCRF_OK);
        spares = !crf->on_device;
        if (spares) {
            assert_true(dcrf_densecrf_has_ring(&crf->terms[1]) == (labels > 3));
            assert_true(dcrf_densecrf_has_short_rows(&crf->terms[1]) == (labels <= 3));
        }
        assert_int_equal(dcrf_densecrf_infer(crf, workspace, run == 3 ? 0 : iterations, q[run],
                                             MANY * labels, NULL, NULL, NULL),
                         DCRF_OK);
        for (size_t i = 0; run == 3 && i < iterations; i++)
            assert_int_equal(dcrf_densecrf_step(crf, workspace, q[run], MANY * labels, NULL),
                             DCRF_OK);
        dcrf_densecrf_free(&crf);
        dcrf_workspace_free(&workspace);
    }
    float worst = 0;
    for (size_t i = 0; i < MANY * labels; i++)
        worst = fmaxf(worst, fabsf(q[0][i] - q[3][i]));
    print_message("%zu labels: off by %g\n", labels, (double)worst);
    assert_true((worst > 0) == spares);
    assert_true(worst <= 1e-5f);
    for (size_t run = 1; run < 3; run++)
        assert_memory_equal(q[run], q[0], MANY * labels * sizeof *q[run]);
    for (size_t run = 0; run < 4; run++)
        free(q[run]);
    free(unary);
}

static void totals_replace_a_label(void **state) {
    (void)state;
    const struct sparing sparings[] = {
        {33, 4, 1, false}, {33, 4, 1, true}, {3, 20, 8, false}, {3, 40, 13, true}};
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 4);
    unsigned char *image = malloc(MANY * 3);
    for (size_t i = 0; i < MANY * 3; i++)
        image[i] = (unsigned char)(i / 3 % WIDE + dcrf_rng_next(&rng) % 24);
    for (size_t i = 0; i < sizeof sparings / sizeof *sparings; i++)
        check_totals(&sparings[i], image);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exponential_is_good_to_three_ulps),
        cmocka_unit_test(the_shared_softmax_is_its_formula),
        cmocka_unit_test(progress_is_told),
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(types_of_pictures_change_no_byte),
        cmocka_unit_test(labels_left_out_change_little),
        cmocka_unit_test(a_compatibility_can_be_changed),
        cmocka_unit_test(bands_are_the_whole),
        cmocka_unit_test(totals_replace_a_label),
        cmocka_unit_test(mistakes_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
