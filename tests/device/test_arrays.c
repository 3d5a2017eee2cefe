/* Mean field from arrays to arrays (dcrf/mean_field.h): the same marginals and labels for every
 * layout, type and location of the arrays, on the CPU and on a device. The device is
 * tests/device/fake_backend.c, whose mean field uses dense matrices in double, or the one
 * DCRF_TEST_DEVICE names. */
#include "places.h"

#include "core/rng.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 9
#define HEIGHT 7
#define LABELS 5
#define VARIABLES ((size_t)WIDTH * HEIGHT)
#define NUMBERS (VARIABLES * LABELS)

/* Both round sums of 63 floats to a fraction of 1e-6, ten times over. */
#define AGREEMENT 2e-5

static dcrf_workspace *cpu, *device;
static dcrf_grid grid;
static float logits[NUMBERS], probabilities[NUMBERS], energies[NUMBERS]; /* interleaved */
static uint8_t image[VARIABLES * 3];
static float expected[NUMBERS]; /* marginals computed by a solver on the CPU */

static void fill_kernels(dcrf_kernel kernels[2], const void *colours) {
    kernels[0] = dcrf_kernel_spatial(1.5, 0.4);
    kernels[1] =
        dcrf_kernel_bilateral(4, 40, dcrf_view_interleaved(colours, DCRF_U8, &grid, 3), 0.8);
}

static void solve_expected(void) {
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_kernel kernels[2];
    dcrf_error error;
    const dcrf_view unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, LABELS);
    fill_kernels(kernels, image);
    must(dcrf_model_new(&model, &grid, LABELS, &error), &error);
    must(dcrf_model_set_unary(model, &unary, &error), &error);
    for (size_t m = 0; m < 2; m++)
        must(dcrf_model_add_kernel(model, &kernels[m], &error), &error);
    must(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, cpu, &error), &error);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.damping = settings.stationarity = 0;
    must(dcrf_solver_new(&solver, plan, cpu, &settings, &error), &error);
    must(dcrf_solver_run(solver, &error), &error);
    must(dcrf_solver_marginals(solver, expected, NUMBERS, LABELS, &error), &error);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
}

static int prepare(void **state) {
    dcrf_error error;
    dcrf_rng rng;
    *state = device = new_device_workspace();
    if (!device || dcrf_workspace_new(&cpu, 1, &error) < 0)
        return -1;
    grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_rng_seed(&rng, 3);
    for (size_t a = 0; a < VARIABLES; a++) {
        double sum = 0;
        for (size_t i = 0; i < LABELS; i++) {
            logits[a * LABELS + i] = (float)(3 * dcrf_rng_uniform(&rng) - 1);
            sum += exp((double)logits[a * LABELS + i]);
        }
        for (size_t i = 0; i < LABELS; i++) {
            energies[a * LABELS + i] = (float)(log(sum) - (double)logits[a * LABELS + i]);
            probabilities[a * LABELS + i] = (float)exp(-(double)energies[a * LABELS + i]);
        }
        for (size_t c = 0; c < 3; c++)
            image[a * 3 + c] =
                (uint8_t)((double)(200 * (a % WIDTH / 5)) + 50 * dcrf_rng_uniform(&rng));
    }
    solve_expected();
    return 0;
}

static int clean_up(void **state) {
    (void)state;
    dcrf_workspace_free(&cpu);
    dcrf_workspace_free(&device);
    return 0;
}

/* ---- one run -------------------------------------------------------------------------------- */

/* The layout and location of a run's arrays. */
struct layout {
    dcrf_unary_kind kind;
    dcrf_type type;   /* of the unary: F32, F64, F16 or BF16 */
    bool is_planar;   /* unary and marginals */
    bool is_flipped;  /* the unary's rows in reverse order */
    size_t gap;       /* elements between the rows of an interleaved unary */
    dcrf_type labels; /* of the labels */
    bool unary_on_device, image_on_device, marginals_on_device, labels_on_device;
};

/* Rounded towards zero; halves of numbers from 2^-14 to 2^15. */
static uint16_t upper_half(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static uint16_t half_of(float number) {
    int exponent;
    const double mantissa = frexp(fabs((double)number), &exponent);
    return (uint16_t)((number < 0 ? 0x8000u : 0) + (unsigned)(exponent + 14) * 1024u +
                      (unsigned)(mantissa * 2048) - 1024u);
}

#define MOST_BYTES (2 * NUMBERS * sizeof(double))

/* Stores the numbers in the given layout: the bytes, and a view whose `data` points to the first of
 * them. */
static dcrf_view lay_out(const struct layout *layout, const float *numbers, char *bytes,
                         size_t *count) {
    const size_t size = dcrf_type_bytes(layout->type);
    const size_t row = WIDTH * LABELS + layout->gap;
    dcrf_view view = layout->is_planar ? dcrf_view_planar(bytes, layout->type, &grid, LABELS)
                                       : dcrf_view_interleaved(bytes, layout->type, &grid, LABELS);
    if (!layout->is_planar) {
        view.stride[1] = (ptrdiff_t)(row * size);
        view.stride[2] = (ptrdiff_t)(row * size * HEIGHT);
    }
    if (layout->is_flipped) {
        view.data = bytes + view.stride[1] * (HEIGHT - 1);
        view.stride[1] = -view.stride[1];
    }
    memset(bytes, 0x7f, MOST_BYTES);
    for (size_t k = 0; k < NUMBERS; k++) {
        const size_t a = k / LABELS;
        char *at = (char *)(uintptr_t)view.data + (ptrdiff_t)(a % WIDTH) * view.stride[0] +
                   (ptrdiff_t)(a / WIDTH) * view.stride[1] +
                   (ptrdiff_t)(k % LABELS) * view.channel_stride;
        const double wide = (double)numbers[k];
        const uint16_t upper = upper_half(numbers[k]), half = half_of(numbers[k]);
        memcpy(at,
               layout->type == DCRF_F64    ? (const void *)&wide
               : layout->type == DCRF_BF16 ? (const void *)&upper
               : layout->type == DCRF_F16  ? (const void *)&half
                                           : (const void *)&numbers[k],
               size);
    }
    *count = (layout->is_planar ? NUMBERS : row * HEIGHT - layout->gap) * size;
    return view;
}

static const float *numbers_of(dcrf_unary_kind kind) {
    return kind == DCRF_UNARY_LOGITS          ? logits
           : kind == DCRF_UNARY_PROBABILITIES ? probabilities
                                              : energies;
}

struct results {
    float marginals[NUMBERS]; /* interleaved */
    int labels[VARIABLES];
};

static dcrf_status run(dcrf_workspace *workspace, const struct layout *layout,
                       dcrf_operator_kind kind, struct results *results, dcrf_error *error) {
    char *bytes = malloc(MOST_BYTES);
    static const float nothing[NUMBERS];
    size_t unary_bytes;
    assert_non_null(bytes);
    dcrf_arrays arrays;
    dcrf_kernel kernels[2];
    dcrf_arrays_defaults(&arrays);
    arrays.grid = grid;
    arrays.unary = lay_out(layout, numbers_of(layout->kind), bytes, &unary_bytes);
    const ptrdiff_t offset = (const char *)arrays.unary.data - bytes;
    struct place unary = put(workspace, layout->unary_on_device, bytes, unary_bytes);
    struct place colours = put(workspace, layout->image_on_device, image, sizeof image);
    struct place marginals = put(workspace, layout->marginals_on_device, nothing, sizeof nothing);
    struct place labels = put(workspace, layout->labels_on_device, nothing, VARIABLES * 4);
    arrays.unary.data = (char *)unary.data + offset;
    arrays.unary_kind = layout->kind;
    fill_kernels(kernels, colours.data);
    arrays.kernels = kernels;
    arrays.kernel_count = 2;
    arrays.operator_kind = kind;
    arrays.marginals = layout->is_planar
                           ? dcrf_output_planar(marginals.data, DCRF_F32, &grid, LABELS)
                           : dcrf_output_interleaved(marginals.data, DCRF_F32, &grid, LABELS);
    arrays.labels = dcrf_output_interleaved(labels.data, layout->labels, &grid, 1);
    const dcrf_status status = dcrf_mean_field_arrays(workspace, &arrays, error);
    if (status == DCRF_OK) {
        float q[NUMBERS];
        union {
            uint8_t narrow[VARIABLES];
            uint16_t middle[VARIABLES];
            int32_t wide[VARIABLES];
        } found;
        fetch(workspace, &marginals, q, sizeof q);
        fetch(workspace, &labels, &found, VARIABLES * dcrf_type_bytes(layout->labels));
        for (size_t a = 0; a < VARIABLES; a++) {
            for (size_t i = 0; i < LABELS; i++)
                results->marginals[a * LABELS + i] =
                    q[layout->is_planar ? i * VARIABLES + a : a * LABELS + i];
            results->labels[a] = layout->labels == DCRF_U8    ? found.narrow[a]
                                 : layout->labels == DCRF_U16 ? found.middle[a]
                                                              : found.wide[a];
        }
    }
    drop(&unary);
    drop(&colours);
    drop(&marginals);
    drop(&labels);
    free(bytes);
    return status;
}

static void assert_expected(const struct results *results, const float *wanted) {
    for (size_t k = 0; k < NUMBERS; k++)
        if (!(fabs((double)results->marginals[k] - (double)wanted[k]) <= AGREEMENT))
            fail_msg("variable %zu, label %zu: %g, not %g", k / LABELS, k % LABELS,
                     (double)results->marginals[k], (double)wanted[k]);
    for (size_t a = 0; a < VARIABLES; a++) {
        const float *row = results->marginals + a * LABELS;
        for (size_t i = 0; i < LABELS; i++)
            assert_true(row[i] <= row[results->labels[a]]);
        assert_true(results->labels[a] >= 0 && results->labels[a] < LABELS);
    }
}

/* ---- the tests ------------------------------------------------------------------------------ */

static const struct layout plain = {
    .kind = DCRF_UNARY_ENERGIES, .type = DCRF_F32, .labels = DCRF_I32};

/* The results of the CPU are bit-identical to a solver's: it is the same method. */
static void the_cpu_does_what_a_solver_does(void **state) {
    (void)state;
    struct results results;
    dcrf_error error;
    must(run(cpu, &plain, DCRF_OPERATOR_EXACT, &results, &error), &error);
    assert_memory_equal(results.marginals, expected, sizeof expected);
}

static void every_layout_gives_the_same(void **state) {
    (void)state;
    static const dcrf_type label_types[] = {DCRF_U8, DCRF_U16, DCRF_I32};
    for (size_t k = 0; k < 3 * 2 * 2 * 2 * 2; k++) {
        const struct layout layout = {.kind = (dcrf_unary_kind)(DCRF_UNARY_ENERGIES + k % 3),
                                      .type = k / 3 % 2 ? DCRF_F64 : DCRF_F32,
                                      .is_planar = k / 6 % 2,
                                      .is_flipped = k / 12 % 2,
                                      .unary_on_device = k / 24 % 2,
                                      .labels = label_types[k % 3]};
        struct results results;
        dcrf_error error;
        must(run(device, &layout, DCRF_OPERATOR_EXACT, &results, &error), &error);
        assert_expected(&results, expected);
        if (layout.unary_on_device)
            continue;
        must(run(cpu, &layout, DCRF_OPERATOR_EXACT, &results, &error), &error);
        assert_expected(&results, expected);
    }
}

static void every_place_gives_the_same(void **state) {
    (void)state;
    struct results first, results;
    dcrf_error error;
    for (unsigned k = 0; k < 16; k++) {
        struct layout layout = plain;
        layout.unary_on_device = k & 1;
        layout.image_on_device = k & 2;
        layout.marginals_on_device = k & 4;
        layout.labels_on_device = k & 8;
        must(run(device, &layout, DCRF_OPERATOR_EXACT, &results, &error), &error);
        assert_expected(&results, expected);
        must(run(device, &layout, DCRF_OPERATOR_FAST, k == 0 ? &first : &results, &error), &error);
        if (k > 0) /* bit-identical */
            assert_memory_equal(&first, &results, sizeof first);
    }
    if (is_fake())
        return; /* its fast operators are exact */
    must(run(cpu, &plain, DCRF_OPERATOR_FAST, &results, &error), &error);
    assert_expected(&first, results.marginals);
}

/* Half precision: the device reads the same values as the CPU. */
static void halves_give_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < 8; k++) {
        struct layout layout = plain;
        struct results here, there;
        dcrf_error error;
        layout.kind = DCRF_UNARY_LOGITS;
        layout.type = k % 2 ? DCRF_F16 : DCRF_BF16;
        layout.is_planar = k / 2 % 2;
        must(run(cpu, &layout, DCRF_OPERATOR_EXACT, &here, &error), &error);
        layout.unary_on_device = k / 4;
        must(run(device, &layout, DCRF_OPERATOR_EXACT, &there, &error), &error);
        assert_expected(&there, here.marginals);
        double largest = 0;
        for (size_t i = 0; i < NUMBERS; i++)
            largest = fmax(largest, fabs((double)here.marginals[i] - (double)expected[i]));
        assert_true(largest > 1e-4 && largest < 0.1); /* rounding error, but not nonsense */
    }
}

/* Gaps between rows are allowed if the array is read in place. */
static void gaps_are_stepped_over(void **state) {
    (void)state;
    struct layout layout = plain;
    struct results results;
    dcrf_error error;
    layout.gap = 6;
    must(run(cpu, &layout, DCRF_OPERATOR_EXACT, &results, &error), &error);
    assert_expected(&results, expected);
    assert_fails(DCRF_ERROR_ARGUMENT, "the unary must be contiguous", error,
                 run(device, &layout, DCRF_OPERATOR_EXACT, &results, &error));
    layout.unary_on_device = true;
    layout.is_flipped = true;
    must(run(device, &layout, DCRF_OPERATOR_EXACT, &results, &error), &error);
    assert_expected(&results, expected);
}

/* Any subset of the results, no kernels, no iterations. */
static void little_is_enough(void **state) {
    (void)state;
    dcrf_workspace *const workspaces[] = {cpu, device};
    for (size_t w = 0; w < 2; w++) {
        dcrf_arrays arrays;
        dcrf_error error;
        float q[NUMBERS];
        uint16_t labels[VARIABLES];
        dcrf_arrays_defaults(&arrays);
        assert_int_equal(arrays.iterations, 10);
        arrays.grid = grid;
        arrays.unary = dcrf_view_interleaved(logits, DCRF_F32, &grid, LABELS);
        arrays.unary_kind = DCRF_UNARY_LOGITS;
        arrays.iterations = w == 0 ? 3 : 0;
        arrays.marginals = dcrf_output_interleaved(q, DCRF_F32, &grid, LABELS);
        must(dcrf_mean_field_arrays(workspaces[w], &arrays, &error), &error);
        for (size_t k = 0; k < NUMBERS; k++)
            assert_true(fabs((double)q[k] - (double)probabilities[k]) <= 1e-6);
        arrays.marginals.data = NULL;
        arrays.labels = dcrf_output_interleaved(labels, DCRF_U16, &grid, 1);
        must(dcrf_mean_field_arrays(workspaces[w], &arrays, &error), &error);
        for (size_t k = 0; k < NUMBERS; k++)
            assert_true(logits[k] <= logits[k / LABELS * LABELS + labels[k / LABELS]]);
    }
}

static void wrong_numbers_are_found(void **state) {
    (void)state;
    dcrf_workspace *const workspaces[] = {cpu, device};
    static float q[NUMBERS], wrong[NUMBERS];
    dcrf_arrays arrays;
    dcrf_error error;
    dcrf_kernel kernel;
    dcrf_arrays_defaults(&arrays);
    arrays.grid = grid;
    arrays.unary = dcrf_view_interleaved(wrong, DCRF_F32, &grid, LABELS);
    arrays.marginals = dcrf_output_interleaved(q, DCRF_F32, &grid, LABELS);
    const size_t at = (4 * WIDTH + 3) * LABELS + 2;
    for (size_t w = 0; w < 2; w++) {
        memcpy(wrong, logits, sizeof wrong);
        wrong[at] = NAN;
        wrong[at + 40] = INFINITY;
        arrays.unary_kind = DCRF_UNARY_LOGITS;
        assert_fails(DCRF_ERROR_NOT_FINITE, "at x = 3, y = 4", error,
                     dcrf_mean_field_arrays(workspaces[w], &arrays, &error));
        memcpy(wrong, probabilities, sizeof wrong);
        wrong[at] = 1.5f;
        arrays.unary_kind = DCRF_UNARY_PROBABILITIES;
        assert_fails(DCRF_ERROR_ARGUMENT, "at x = 3, y = 4, label 2", error,
                     dcrf_mean_field_arrays(workspaces[w], &arrays, &error));
        wrong[at] = 1; /* probabilities need not sum to one */
        must(dcrf_mean_field_arrays(workspaces[w], &arrays, &error), &error);
    }
    static float colours[VARIABLES * 3];
    colours[7] = NAN;
    kernel = dcrf_kernel_bilateral(4, 40, dcrf_view_interleaved(colours, DCRF_F32, &grid, 3), 0.8);
    arrays.kernels = &kernel;
    arrays.kernel_count = 1;
    assert_fails(DCRF_ERROR_NOT_FINITE, "the image of a kernel holds", error,
                 dcrf_mean_field_arrays(cpu, &arrays, &error));
    if (!is_fake())
        assert_fails(DCRF_ERROR_NOT_FINITE, "the image of a kernel holds", error,
                     dcrf_mean_field_arrays(device, &arrays, &error));
}

static void wrong_calls_are_told(void **state) {
    (void)state;
    dcrf_workspace *const workspaces[] = {cpu, device};
    static float q[NUMBERS];
    static int32_t labels[VARIABLES];
    for (size_t w = 0; w < 2; w++) {
        dcrf_workspace *workspace = workspaces[w];
        dcrf_arrays right, arrays;
        dcrf_kernel kernels[2];
        dcrf_error error;
        dcrf_arrays_defaults(&right);
        right.grid = grid;
        right.unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, LABELS);
        right.marginals = dcrf_output_interleaved(q, DCRF_F32, &grid, LABELS);
        right.labels = dcrf_output_interleaved(labels, DCRF_I32, &grid, 1);
        fill_kernels(kernels, image);
        right.kernels = kernels;
        right.kernel_count = 2;
        must(dcrf_mean_field_arrays(workspace, &right, &error), &error);
#define WRONG(change, status, message)                                                             \
    do {                                                                                           \
        arrays = right;                                                                            \
        change;                                                                                    \
        assert_fails(status, message, error, dcrf_mean_field_arrays(workspace, &arrays, &error));  \
    } while (0)
        WRONG(arrays.reserved[63] = 1, DCRF_ERROR_ARGUMENT, "reserved bytes of the arrays");
        WRONG(arrays.unary.data = NULL, DCRF_ERROR_ARGUMENT, "the unary: no data");
        WRONG(arrays.unary.channels = 0, DCRF_ERROR_SIZE, "the unary has no channels");
        WRONG(arrays.unary.channels = DCRF_MAX_LABELS + 1, DCRF_ERROR_ARGUMENT, "labels");
        WRONG(arrays.unary_kind = DCRF_UNARY_AUTO, DCRF_ERROR_ARGUMENT, "logits must be said");
        WRONG(arrays.grid.size[0] = 0, DCRF_ERROR_SIZE, "empty");
        WRONG(arrays.kernels = NULL, DCRF_ERROR_ARGUMENT, "2 kernels");
        WRONG(arrays.kernel_count = DCRF_ARRAYS_KERNELS + 1, DCRF_ERROR_ARGUMENT, "17 kernels");
        WRONG(arrays.marginals.type = DCRF_F64, DCRF_ERROR_ARGUMENT, "marginals must be an array");
        WRONG(arrays.marginals.channels = 2, DCRF_ERROR_SIZE, "marginals has 2 channels; 5");
        WRONG(arrays.labels.type = DCRF_F32, DCRF_ERROR_ARGUMENT, "the array for labels must be");
        WRONG(arrays.labels.channels = 2, DCRF_ERROR_SIZE, "labels has 2 channels; 1");
        WRONG(arrays.labels.data = arrays.marginals.data = NULL, DCRF_ERROR_ARGUMENT, "neither");
        kernels[1].channels.data = NULL;
        WRONG((void)0, DCRF_ERROR_ARGUMENT, "the image of kernel 1: no data");
        fill_kernels(kernels, image);
        kernels[0].sigma[0] = 0;
        WRONG((void)0, DCRF_ERROR_ARGUMENT, "the sigma of axis 0");
        kernels[0].weight = 0; /* checked, although it is not used */
        WRONG((void)0, DCRF_ERROR_ARGUMENT, "the sigma of axis 0");
        assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                     dcrf_mean_field_arrays(workspace, NULL, &error));
    }
    dcrf_error error;
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error, dcrf_mean_field_arrays(NULL, NULL, &error));
}

/* Streams, other devices and failures: what can be tested with the fake device. */
static void the_fake_is_asked_right(void **state) {
    (void)state;
    if (!is_fake())
        skip();
    void *(*waited_for)(void) = (void *(*)(void))find_in_fake("fake_backend_waited_for");
    dcrf_arrays arrays;
    dcrf_error error;
    static float q[NUMBERS];
    dcrf_arrays_defaults(&arrays);
    arrays.grid = grid;
    arrays.unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, LABELS);
    arrays.marginals = dcrf_output_interleaved(q, DCRF_F32, &grid, LABELS);
    must(dcrf_mean_field_arrays(device, &arrays, &error), &error);
    assert_null(waited_for());
    arrays.stream = &arrays;
    must(dcrf_mean_field_arrays(device, &arrays, &error), &error);
    assert_ptr_equal(waited_for(), &arrays);
    setenv("FAKE_PLACE", "1", 1);
    assert_fails(DCRF_ERROR_ARGUMENT, "the unary is on cuda:1, and the work is done on cuda:0",
                 error, dcrf_mean_field_arrays(device, &arrays, &error));
    setenv("FAKE_PLACE", "0", 1);
    must(dcrf_mean_field_arrays(device, &arrays, &error), &error);
    arrays.unary.data = (const char *)energies + 2;
    assert_fails(DCRF_ERROR_ARGUMENT, "the unary is not aligned", error,
                 dcrf_mean_field_arrays(device, &arrays, &error));
    unsetenv("FAKE_PLACE");
    arrays.unary.data = energies;
    static const char *const entries[] = {
        "find", "wait_for", "make_of_pictures", "mean_field_start", "mean_field_step", "write"};
    for (size_t k = 0; k < sizeof entries / sizeof entries[0]; k++) {
        setenv("FAKE_FAILURE", entries[k], 1);
        assert_fails(DCRF_ERROR_DEVICE, entries[k], error,
                     dcrf_mean_field_arrays(device, &arrays, &error));
    }
    unsetenv("FAKE_FAILURE");
}

/* ---- threads -------------------------------------------------------------------------------- */

#define WORKERS 4
#define RUNS 6

static void *work(void *argument) {
    struct results *results = argument;
    dcrf_workspace *workspace;
    dcrf_error error;
    const char *name = dcrf_workspace_device(device);
    bool is_done = true;
    for (size_t k = 0; k < RUNS && is_done; k++) {
        struct layout layout = plain;
        layout.unary_on_device = k % 2;
        layout.marginals_on_device = k % 3 == 0;
        is_done = dcrf_workspace_new(&workspace, 1, &error) == DCRF_OK &&
                  dcrf_workspace_set_device(workspace, name, &error) == DCRF_OK &&
                  run(workspace, &layout, DCRF_OPERATOR_FAST, results, &error) == DCRF_OK;
        dcrf_workspace_free(&workspace);
    }
    return is_done ? results : NULL;
}

static void workers_do_not_disturb_each_other(void **state) {
    (void)state;
    pthread_t threads[WORKERS];
    static struct results results[WORKERS], alone;
    dcrf_error error;
    must(run(device, &plain, DCRF_OPERATOR_FAST, &alone, &error), &error);
    for (size_t w = 0; w < WORKERS; w++)
        assert_int_equal(pthread_create(&threads[w], NULL, work, &results[w]), 0);
    for (size_t w = 0; w < WORKERS; w++) {
        void *done;
        assert_int_equal(pthread_join(threads[w], &done), 0);
        assert_non_null(done);
        assert_memory_equal(&results[w], &alone, sizeof alone);
    }
}

int main(void) {
    if (status_without_device() != 0)
        return status_without_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_does_what_a_solver_does),
        cmocka_unit_test(every_layout_gives_the_same),
        cmocka_unit_test(every_place_gives_the_same),
        cmocka_unit_test(halves_give_the_same),
        cmocka_unit_test(gaps_are_stepped_over),
        cmocka_unit_test(little_is_enough),
        cmocka_unit_test(wrong_numbers_are_found),
        cmocka_unit_test(wrong_calls_are_told),
        cmocka_unit_test(the_fake_is_asked_right),
        cmocka_unit_test(workers_do_not_disturb_each_other),
        cmocka_unit_test(nothing_is_left), /* must be last */
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
