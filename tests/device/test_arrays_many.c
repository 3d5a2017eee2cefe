/* Mean field of many problems at once (dcrf_mean_field_arrays_many): the same bytes as one by one,
 * on the CPU and on a device, which processes similar problems together. */
#include "places.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>

#define KERNELS 2

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

/* ---- problems -------------------------------------------------------------------------------- */

/* A kind of problem; problems of one kind differ in their numbers, layouts and locations. */
struct kind {
    dcrf_grid grid;
    size_t labels;
    dcrf_normalization normalization;
    bool are_there; /* every other array is on the device; otherwise all are on the host */
};

struct problem {
    dcrf_arrays arrays;
    dcrf_kernel kernels[KERNELS];
    size_t variables;
    struct place unary, image, marginals, labels;
};

static void make_problem(struct problem *p, dcrf_workspace *workspace, const struct kind *kind,
                         uint64_t seed) {
    const dcrf_grid *grid = &kind->grid;
    const size_t labels = kind->labels, n = grid->size[0] * grid->size[1] * grid->size[2];
    float *numbers = malloc(n * labels * sizeof *numbers);
    uint8_t *colours = malloc(n * 3);
    dcrf_rng rng;
    assert_non_null(numbers);
    assert_non_null(colours);
    dcrf_rng_seed(&rng, seed);
    for (size_t k = 0; k < n * labels; k++)
        numbers[k] = (float)(3 * dcrf_rng_uniform(&rng) - 1);
    for (size_t k = 0; k < n * 3; k++)
        colours[k] =
            (uint8_t)(200 * ((k / 3 + seed) / 5 % 2) + (size_t)(50 * dcrf_rng_uniform(&rng)));
    const bool is_there = kind->are_there && seed % 2 == 0;
    p->variables = n;
    p->unary = put(workspace, is_there, numbers, n * labels * sizeof *numbers);
    p->marginals = put(workspace, is_there, numbers, n * labels * sizeof *numbers);
    p->image = put(workspace, kind->are_there && seed % 3 == 0, colours, n * 3);
    p->labels = put(workspace, kind->are_there && seed % 3 == 1, numbers, n * sizeof(int32_t));
    dcrf_arrays_defaults(&p->arrays);
    p->arrays.grid = *grid;
    /* Only the view depends on the layout. */
    p->arrays.unary = seed % 4 < 2 ? dcrf_view_planar(p->unary.data, DCRF_F32, grid, labels)
                                   : dcrf_view_interleaved(p->unary.data, DCRF_F32, grid, labels);
    p->arrays.unary_kind = DCRF_UNARY_LOGITS;
    p->arrays.marginals = dcrf_output_planar(p->marginals.data, DCRF_F32, grid, labels);
    p->arrays.labels = dcrf_output_planar(p->labels.data, DCRF_I32, grid, 1);
    p->arrays.iterations = 4;
    p->kernels[0] = dcrf_kernel_spatial(1.5, 0.4);
    p->kernels[1] =
        dcrf_kernel_bilateral(4, 40, dcrf_view_interleaved(p->image.data, DCRF_U8, grid, 3), 0.8);
    for (size_t m = 0; m < KERNELS; m++) {
        p->kernels[m].normalization = kind->normalization;
        if (kind->normalization == DCRF_NORMALIZE_NONE) /* otherwise one label wins everywhere */
            p->kernels[m].weight /= 40;
    }
    p->arrays.kernels = p->kernels;
    p->arrays.kernel_count = KERNELS;
    free(numbers);
    free(colours);
}

static void free_problem(struct problem *p) {
    drop(&p->unary);
    drop(&p->image);
    drop(&p->marginals);
    drop(&p->labels);
}

struct result {
    float *marginals;
    int32_t *labels;
};

static struct result read_result(dcrf_workspace *workspace, const struct problem *p) {
    const size_t numbers = p->variables * p->arrays.unary.channels;
    struct result result = {malloc(numbers * sizeof(float)),
                            malloc(p->variables * sizeof(int32_t))};
    assert_non_null(result.marginals);
    assert_non_null(result.labels);
    fetch(workspace, &p->marginals, result.marginals, numbers * sizeof(float));
    fetch(workspace, &p->labels, result.labels, p->variables * sizeof(int32_t));
    return result;
}

static void assert_same(const struct problem *p, const struct result *one,
                        const struct result *other) {
    assert_memory_equal(one->marginals, other->marginals,
                        p->variables * p->arrays.unary.channels * sizeof(float));
    assert_memory_equal(one->labels, other->labels, p->variables * sizeof(int32_t));
}

static void free_result(struct result *result) {
    free(result->marginals);
    free(result->labels);
}

#define MOST_PROBLEMS 48

struct problems {
    dcrf_workspace *workspace;
    size_t count;
    struct problem of[MOST_PROBLEMS];
    dcrf_arrays arrays[MOST_PROBLEMS];
};

static struct problems *make_problems(dcrf_workspace *workspace, const struct kind *kind,
                                      size_t count) {
    struct problems *problems = calloc(1, sizeof *problems);
    assert_non_null(problems);
    problems->workspace = workspace;
    problems->count = count;
    for (size_t k = 0; k < count; k++) {
        make_problem(&problems->of[k], workspace, kind, k);
        problems->arrays[k] = problems->of[k].arrays;
    }
    return problems;
}

static void free_problems(struct problems *problems) {
    for (size_t k = 0; k < problems->count; k++)
        free_problem(&problems->of[k]);
    free(problems);
}

static dcrf_status run_many(struct problems *problems, size_t *failed, dcrf_error *error) {
    return dcrf_mean_field_arrays_many(problems->workspace, problems->arrays, problems->count,
                                       failed, error);
}

/* All at once and each alone give the same results. */
static void compare(struct problems *problems) {
    struct result together[MOST_PROBLEMS];
    size_t failed = 7;
    dcrf_error error;
    must(run_many(problems, &failed, &error), &error);
    assert_int_equal(failed, problems->count);
    for (size_t k = 0; k < problems->count; k++)
        together[k] = read_result(problems->workspace, &problems->of[k]);
    for (size_t k = 0; k < problems->count; k++) {
        const struct problem *p = &problems->of[k];
        must(dcrf_mean_field_arrays(problems->workspace, &problems->arrays[k], &error), &error);
        struct result alone = read_result(problems->workspace, p);
        assert_same(p, &alone, &together[k]);
        /* Different problems give different results. */
        if (k > 0)
            assert_memory_not_equal(together[k].marginals, together[0].marginals,
                                    p->variables * sizeof(float));
        free_result(&alone);
    }
    for (size_t k = 0; k < problems->count; k++)
        free_result(&together[k]);
}

/* ---- the tests ------------------------------------------------------------------------------ */

static struct kind small_kind(size_t k) {
    return (struct kind){.grid = k % 3 == 0   ? dcrf_grid_2d(9, 7)
                                 : k % 3 == 1 ? dcrf_grid_1d(31)
                                              : dcrf_grid_3d(5, 4, 3),
                         .labels = k % 2 ? 2 : 5,
                         .normalization =
                             k / 2 % 2 ? DCRF_NORMALIZE_NONE : DCRF_NORMALIZE_SYMMETRIC,
                         .are_there = k / 4 % 2};
}

static void together_is_the_same_as_one_by_one(void **state) {
    (void)state;
    for (size_t k = 0; k < 24; k++) {
        struct kind kind = small_kind(k);
        struct problems *problems = make_problems(device, &kind, 5);
        compare(problems);
        free_problems(problems);
        if (is_fake()) { /* check that they ran together */
            problems = make_problems(device, &kind, 5);
            size_t failed;
            assert_int_equal(run_many(problems, &failed, NULL), DCRF_OK);
            assert_int_equal(fake_pictures(), 5);
            free_problems(problems);
        }
        kind.are_there = false;
        problems = make_problems(cpu, &kind, 3);
        compare(problems);
        free_problems(problems);
    }
}

/* At the size of pictures: vertices whose sums are made of several pieces, rows of many labels. The
 * fake device has no room for them. */
static void pictures_are_the_same_too(void **state) {
    (void)state;
    if (is_fake())
        skip();
    static const size_t sizes[][3] = {{41, 41, 2}, {100, 100, 2}, {160, 107, 21}, {224, 224, 12}};
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof sizes[0]; k++) {
        const size_t *size = sizes[k / 2];
        const struct kind kind = {dcrf_grid_2d(size[0], size[1]), size[2],
                                  k % 2 ? DCRF_NORMALIZE_NONE : DCRF_NORMALIZE_SYMMETRIC, true};
        struct problems *problems = make_problems(device, &kind, k / 2 < 2 ? MOST_PROBLEMS : 11);
        compare(problems);
        free_problems(problems);
    }
}

/* Problems that differ in more than their arrays are solved, but separately. */
static void what_differs_is_not_together(void **state) {
    (void)state;
    const struct kind kind = small_kind(0);
    const struct kind others[] = {small_kind(3), small_kind(1)};
    for (size_t k = 0; k < 11; k++) {
        struct problems *problems = make_problems(device, &kind, 3);
        struct problem *last = &problems->of[2];
        dcrf_arrays *arrays = &problems->arrays[2];
        if (k < 2) { /* another grid, another number of labels */
            free_problem(last);
            make_problem(last, device, &others[k], 2);
            *arrays = last->arrays;
        } else if (k == 2) {
            arrays->iterations = 5;
        } else if (k == 3) {
            last->kernels[0].sigma[1] = 1.6;
        } else if (k == 4) {
            last->kernels[1].channel_sigma[2] = 41;
        } else if (k == 5) {
            last->kernels[1].weight = 0.9;
        } else if (k == 6) {
            last->kernels[1].normalization = DCRF_NORMALIZE_NONE;
        } else if (k == 7) {
            arrays->kernel_count = 1;
        } else if (k == 8) {
            arrays->grid.spacing[1] = 2;
        } else if (k == 9) {
            arrays->unary_kind = DCRF_UNARY_ENERGIES;
        } else {
            arrays->operator_kind = DCRF_OPERATOR_EXACT;
        }
        compare(problems);
        size_t failed;
        assert_int_equal(run_many(problems, &failed, NULL), DCRF_OK);
        if (is_fake())
            assert_int_equal(fake_pictures(), 1);
        for (size_t i = 0; i < 3; i++) /* exact ones never run together */
            problems->arrays[i].operator_kind = DCRF_OPERATOR_EXACT;
        assert_int_equal(run_many(problems, &failed, NULL), DCRF_OK);
        if (is_fake())
            assert_int_equal(fake_pictures(), 1);
        free_problems(problems);
    }
}

/* An invalid problem is identified; those before it are solved, including those that write in
 * place. */
static void the_wrong_one_is_named(void **state) {
    (void)state;
    const struct kind kind = {dcrf_grid_2d(9, 7), 5, DCRF_NORMALIZE_SYMMETRIC, false};
    dcrf_workspace *const workspaces[] = {cpu, device};
    for (size_t w = 0; w < 2; w++) {
        struct problems *problems = make_problems(workspaces[w], &kind, 5);
        dcrf_error error;
        size_t failed;
        struct result expected[3];
        for (size_t k = 0; k < 3; k++) {
            must(dcrf_mean_field_arrays(workspaces[w], &problems->arrays[k], &error), &error);
            expected[k] = read_result(workspaces[w], &problems->of[k]);
            /* planar, like the marginals */
            if (k < 2)
                problems->arrays[k].marginals.data = problems->of[k].unary.data;
        }
        ((float *)problems->of[3].unary.data)[5 * 11] = NAN; /* interleaved */
        assert_fails(DCRF_ERROR_NOT_FINITE, "at x = 2, y = 1", error,
                     run_many(problems, &failed, &error));
        assert_int_equal(failed, 3);
        for (size_t k = 0; k < 3; k++) {
            struct result found = read_result(workspaces[w], &problems->of[k]);
            if (k < 2)
                memcpy(found.marginals, problems->of[k].unary.data,
                       problems->of[k].variables * 5 * sizeof(float));
            assert_same(&problems->of[k], &found, &expected[k]);
            free_result(&found);
            free_result(&expected[k]);
        }
        problems->arrays[0].unary.data = NULL;
        assert_fails(DCRF_ERROR_ARGUMENT, "the unary: no data", error,
                     run_many(problems, &failed, &error));
        assert_int_equal(failed, 0);
        free_problems(problems);
    }
}

/* A device without room for all of them processes them one by one. */
static void a_full_device_takes_one_by_one(void **state) {
    (void)state;
    if (!is_fake())
        skip();
    const struct kind kind = {dcrf_grid_2d(9, 7), 5, DCRF_NORMALIZE_SYMMETRIC, false};
    struct problems *problems = make_problems(device, &kind, MOST_PROBLEMS);
    size_t failed;
    dcrf_error error;
    must(run_many(problems, &failed, &error), &error);
    assert_int_equal(fake_pictures(), 1);
    free_problems(problems);
}

/* All streams are waited for. */
static void streams_are_waited_for(void **state) {
    (void)state;
    if (!is_fake())
        skip();
    const struct kind kind = small_kind(0);
    struct problems *problems = make_problems(device, &kind, 3);
    void *(*waited_for)(void) = (void *(*)(void))find_in_fake("fake_backend_waited_for");
    size_t failed;
    waited_for();
    problems->arrays[1].stream = problems;
    assert_int_equal(run_many(problems, &failed, NULL), DCRF_OK);
    assert_int_equal(fake_pictures(), 3);
    assert_ptr_equal(waited_for(), problems);
    free_problems(problems);
}

static void wrong_calls_are_told(void **state) {
    (void)state;
    dcrf_arrays arrays;
    dcrf_error error;
    size_t failed = 4;
    dcrf_arrays_defaults(&arrays);
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_mean_field_arrays_many(NULL, &arrays, 1, &failed, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_mean_field_arrays_many(cpu, NULL, 1, &failed, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_mean_field_arrays_many(cpu, &arrays, 1, NULL, &error));
    must(dcrf_mean_field_arrays_many(device, &arrays, 0, &failed, &error), &error);
    assert_int_equal(failed, 0);
}

static void batches_have_a_size(void **state) {
    (void)state;
    const dcrf_grid tiny = dcrf_grid_1d(1), small = dcrf_grid_2d(41, 41);
    const dcrf_grid large = dcrf_grid_2d(10000, 10000), none = {0};
    assert_true(dcrf_arrays_batch(&tiny, 2) >= dcrf_arrays_batch(&small, 2));
    assert_true(dcrf_arrays_batch(&small, 2) > dcrf_arrays_batch(&small, 21));
    assert_true(dcrf_arrays_batch(&small, 21) > 1);
    assert_int_equal(dcrf_arrays_batch(&large, 2), 1);
    assert_int_equal(dcrf_arrays_batch(&none, 2), 0);
    assert_int_equal(dcrf_arrays_batch(&small, 0), 0);
    assert_int_equal(dcrf_arrays_batch(&small, DCRF_MAX_LABELS + 1), 0);
    assert_int_equal(dcrf_arrays_batch(NULL, 2), 0);
}

int main(void) {
    if (status_without_device() != 0)
        return status_without_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(together_is_the_same_as_one_by_one),
        cmocka_unit_test(pictures_are_the_same_too),
        cmocka_unit_test(what_differs_is_not_together),
        cmocka_unit_test(the_wrong_one_is_named),
        cmocka_unit_test(a_full_device_takes_one_by_one),
        cmocka_unit_test(streams_are_waited_for),
        cmocka_unit_test(wrong_calls_are_told),
        cmocka_unit_test(batches_have_a_size),
        cmocka_unit_test(nothing_is_left), /* must be last */
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
