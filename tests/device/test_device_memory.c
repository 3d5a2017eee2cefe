/* The caller's memory on a device (dcrf/device.h): location, copies, streams and lifetime. */
#include "places.h"

#include <dcrf/experimental.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static dcrf_workspace *cpu, *device;

static int prepare(void **state) {
    *state = device = new_device_workspace();
    return device && dcrf_workspace_new(&cpu, 1, NULL) == DCRF_OK ? 0 : -1;
}

static int clean_up(void **state) {
    (void)state;
    dcrf_workspace_free(&cpu);
    dcrf_workspace_free(&device);
    return 0;
}

static void memory_says_where_it_is(void **state) {
    (void)state;
    dcrf_error error;
    char name[DCRF_DEVICE_NAME_BYTES];
    dcrf_device_memory *memory;
    int here = 0;
    must(dcrf_device_memory_new(&memory, device, 1000, &error), &error);
    must(dcrf_device_find((char *)dcrf_device_memory_data(memory) + 500, name, &error), &error);
    assert_string_equal(name, dcrf_workspace_device(device));
    must(dcrf_device_find(&here, name, &error), &error);
    assert_string_equal(name, "cpu");
    dcrf_device_memory_free(&memory);
    assert_null(memory);
}

/* What was written is read back, from any offset. */
static void copies_go_both_ways(void **state) {
    (void)state;
    enum { COUNT = 700000 }; /* more than one copy operation takes */
    int32_t *numbers = malloc(COUNT * sizeof *numbers), *found = malloc(COUNT * sizeof *found);
    dcrf_error error;
    assert_non_null(numbers);
    assert_non_null(found);
    for (int32_t k = 0; k < COUNT; k++)
        numbers[k] = 7 * k;
    struct place there = put(device, true, numbers, COUNT * sizeof *numbers);
    fetch(device, &there, found, COUNT * sizeof *found);
    assert_memory_equal(found, numbers, COUNT * sizeof *found);
    must(dcrf_device_copy(device, found, (int32_t *)there.data + 1234, 4, &error), &error);
    assert_int_equal(found[0], 7 * 1234);
    drop(&there);
    free(numbers);
    free(found);
}

static void wrong_calls_are_told(void **state) {
    (void)state;
    dcrf_error error;
    char name[DCRF_DEVICE_NAME_BYTES];
    dcrf_device_memory *memory;
    int here = 0;
    assert_fails(DCRF_ERROR_ARGUMENT, "on no device", error,
                 dcrf_device_memory_new(&memory, cpu, 10, &error));
    assert_null(memory);
    assert_fails(DCRF_ERROR_ARGUMENT, "on no device", error,
                 dcrf_device_copy(cpu, &here, &here, 4, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "on no device", error, dcrf_device_wait(cpu, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "on no device", error,
                 dcrf_device_use_stream(cpu, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_device_copy(device, NULL, &here, 4, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error, dcrf_device_find(NULL, name, &error));
    dcrf_device_memory_free(NULL);
    assert_null(dcrf_device_memory_data(NULL));
}

static void wrong_lattices_are_told(void **state) {
    (void)state;
    dcrf_error error;
    dcrf_operator *op;
    const float features[6] = {0};
    assert_fails(DCRF_ERROR_UNSUPPORTED, "on a GPU only", error,
                 dcrf_operator_new_on_device(&op, features, 6, 1, 2, 1, 0, cpu, &error));
    assert_null(op);
    assert_fails(DCRF_ERROR_SIZE, "equal pictures", error,
                 dcrf_operator_new_on_device(&op, features, 5, 1, 2, 1, 0, device, &error));
    assert_fails(DCRF_ERROR_SIZE, "0 features", error,
                 dcrf_operator_new_on_device(&op, features, 6, 0, 2, 1, 0, device, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_operator_new_on_device(&op, NULL, 6, 1, 2, 1, 0, device, &error));
}

enum { PICTURES = 3, PICTURE_VARIABLES = 500, FEATURES = 3, CHANNELS = 6, STRIDE = 8 };

/* One picture through the operator of the CPU: K in and the diagonal. */
static void apply_here(const float *features, const float *in, float *out, float *diagonal) {
    const dcrf_grid grid = dcrf_grid_1d(PICTURE_VARIABLES);
    const dcrf_kernel kernel = {.kind = DCRF_KERNEL_FEATURES,
                                .weight = 1,
                                .normalization = DCRF_NORMALIZE_SYMMETRIC,
                                .channels =
                                    dcrf_view_interleaved(features, DCRF_F32, &grid, FEATURES)};
    dcrf_operator *op;
    dcrf_error error;
    must(dcrf_operator_new(&op, &grid, &kernel, DCRF_OPERATOR_LATTICE, cpu, &error), &error);
    must(dcrf_operator_apply(op, cpu, DCRF_SYMMETRIC, in, out, dcrf_operator_variables(op) * STRIDE,
                             CHANNELS, STRIDE, &error),
         &error);
    must(dcrf_operator_diagonal(op, cpu, diagonal, dcrf_operator_variables(op), &error), &error);
    dcrf_operator_free(&op);
}

/* The lattices of a batch, with and without waiting, against those of the CPU one by one. */
static void lattices_of_pictures_are_the_same(void **state) {
    (void)state;
    static float features[PICTURES * PICTURE_VARIABLES * FEATURES];
    static float in[PICTURES * PICTURE_VARIABLES * STRIDE],
        out[PICTURES * PICTURE_VARIABLES * STRIDE];
    static float found[PICTURES * PICTURE_VARIABLES * STRIDE];
    static float diagonal[PICTURES * PICTURE_VARIABLES],
        found_diagonal[PICTURES * PICTURE_VARIABLES];
    dcrf_error error;
    if (is_fake())
        skip(); /* it has the lattices of the CPU */
    for (size_t k = 0; k < sizeof features / sizeof *features; k++)
        features[k] = (float)(k * 7919 % 1000) / 250;
    for (size_t k = 0; k < sizeof in / sizeof *in; k++)
        in[k] = k % STRIDE < CHANNELS ? (float)(k * 104729 % 1000) / 1000 : 0;
    for (size_t p = 0; p < PICTURES; p++)
        apply_here(features + p * PICTURE_VARIABLES * FEATURES, in + p * PICTURE_VARIABLES * STRIDE,
                   out + p * PICTURE_VARIABLES * STRIDE, diagonal + p * PICTURE_VARIABLES);
    struct place features_on_device = put(device, true, features, sizeof features);
    struct place in_on_device = put(device, true, in, sizeof in);
    struct place out_on_device = put(device, true, found, sizeof found);
    struct place diagonal_on_device = put(device, true, found_diagonal, sizeof found_diagonal);
    for (int is_waiting = 0; is_waiting < 2; is_waiting++) {
        dcrf_operator *op;
        must(dcrf_operator_new_on_device(&op, features_on_device.data, PICTURES * PICTURE_VARIABLES,
                                         FEATURES, PICTURES, 1, is_waiting, device, &error),
             &error);
        must(dcrf_operator_apply(op, device, DCRF_SYMMETRIC, in_on_device.data, out_on_device.data,
                                 dcrf_operator_variables(op) * STRIDE, CHANNELS, STRIDE, &error),
             &error);
        must(dcrf_operator_diagonal(op, device, diagonal_on_device.data,
                                    dcrf_operator_variables(op), &error),
             &error);
        assert_fails(DCRF_ERROR_ARGUMENT, "both", error,
                     dcrf_operator_apply(op, device, DCRF_SYMMETRIC, in, out_on_device.data,
                                         dcrf_operator_variables(op) * STRIDE, CHANNELS, STRIDE,
                                         &error));
        fetch(device, &out_on_device, found, sizeof found);
        fetch(device, &diagonal_on_device, found_diagonal, sizeof found_diagonal);
        dcrf_operator_free(&op);
        for (size_t k = 0; k < sizeof out / sizeof *out; k++)
            if (k % STRIDE < CHANNELS)
                assert_true(fabsf(found[k] - out[k]) <= 1e-5f);
        for (size_t a = 0; a < sizeof diagonal / sizeof *diagonal; a++)
            assert_true(fabsf(found_diagonal[a] - diagonal[a]) <= 1e-6f);
    }
    drop(&features_on_device);
    drop(&in_on_device);
    drop(&out_on_device);
    drop(&diagonal_on_device);
}

static void the_fake_is_asked_right(void **state) {
    (void)state;
    if (!is_fake())
        skip();
    void *(*waited_for)(void) = (void *(*)(void))find_in_fake("fake_backend_waited_for");
    dcrf_device_memory *memory;
    dcrf_error error;
    must(dcrf_device_wait(device, (void *)1, &error), &error);
    assert_ptr_equal(waited_for(), (void *)1);
    setenv("FAKE_FAILURE", "memory_new", 1);
    assert_fails(DCRF_ERROR_DEVICE, "refuses memory_new", error,
                 dcrf_device_memory_new(&memory, device, 10, &error));
    unsetenv("FAKE_FAILURE");
}

/* Memory outlives its workspace, and another thread may free it. */
static void *free_memory(void *memory) {
    dcrf_device_memory_free((dcrf_device_memory **)memory);
    return NULL;
}

static void memory_outlives_its_workspace(void **state) {
    (void)state;
    dcrf_workspace *workspace;
    dcrf_device_memory *memory;
    dcrf_error error;
    pthread_t thread;
    int32_t number = 4711, found = 0;
    must(dcrf_workspace_new(&workspace, 1, &error), &error);
    must(dcrf_workspace_set_device(workspace, dcrf_workspace_device(device), &error), &error);
    must(dcrf_device_memory_new(&memory, workspace, sizeof number, &error), &error);
    must(dcrf_device_copy(workspace, dcrf_device_memory_data(memory), &number, sizeof number,
                          &error),
         &error);
    dcrf_workspace_free(&workspace);
    must(dcrf_device_copy(device, &found, dcrf_device_memory_data(memory), sizeof found, &error),
         &error);
    assert_int_equal(found, number);
    assert_int_equal(pthread_create(&thread, NULL, free_memory, &memory), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(memory);
}

int main(void) {
    if (status_without_device() != 0)
        return status_without_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_says_where_it_is),
        cmocka_unit_test(copies_go_both_ways),
        cmocka_unit_test(wrong_calls_are_told),
        cmocka_unit_test(wrong_lattices_are_told),
        cmocka_unit_test(lattices_of_pictures_are_the_same),
        cmocka_unit_test(the_fake_is_asked_right),
        cmocka_unit_test(memory_outlives_its_workspace),
        cmocka_unit_test(nothing_is_left), /* must be last */
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
