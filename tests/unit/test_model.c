/* The model: what it copies, what it refuses, and that a refusal changes nothing. */
#include "unit.h"

#include "model/model.h"

#include <dcrf/grid.h>
#include <float.h>
#include <math.h>

/* Make the sanitizers return NULL for what does not fit in memory, as the allocator does. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1";
}

#define WIDTH 4
#define HEIGHT 3
#define VARIABLES (WIDTH * HEIGHT)
#define LABELS 3

/* ---- a model to try things on --------------------------------------------------------------- */

static dcrf_model *new_model(void) {
    dcrf_model *model = NULL;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    assert_int_equal(dcrf_model_new(&model, &grid, LABELS, NULL), DCRF_OK);
    return model;
}

/* The same with all parts set: unary energies, two kernels, compatibilities, two cliques. */
static dcrf_model *new_full_model(void) {
    dcrf_model *model = new_model();
    float unary[VARIABLES * LABELS];
    for (size_t i = 0; i < VARIABLES * LABELS; i++)
        unary[i] = (float)i / 7;
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &model->grid, LABELS);
    const dcrf_view image = dcrf_view_interleaved(unary, DCRF_F32, &model->grid, 3);
    const dcrf_kernel spatial = dcrf_kernel_spatial(2, 3),
                      bilateral = dcrf_kernel_bilateral(2, 1, image, 4);
    const float matrix[LABELS * LABELS] = {0, 1, 2, 1, 0, 3, 2, 3, 0};
    const size_t offsets[] = {0, 2, 5}, members[] = {3, 1, 4, 11, 0};
    const double costs[] = {0.5, 2};
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &spatial, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &bilateral, NULL), DCRF_OK);
    assert_int_equal(
        dcrf_model_set_compatibility(model, 1, DCRF_COMPATIBILITY_MATRIX, matrix, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_cliques(model, 2, offsets, members, costs, NULL), DCRF_OK);
    return model;
}

static uint64_t hash(uint64_t state, const void *data, size_t bytes) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        state = (state ^ at[i]) * 1099511628211u;
    return state;
}

/* A hash of everything the model holds. */
static uint64_t fingerprint(const dcrf_model *model) {
    uint64_t state = hash(1469598103934665603u, &model->grid, sizeof model->grid);
    state = hash(state, &model->labels, sizeof model->labels);
    state = hash(state, model->unary, model->variables * model->stride * sizeof(float));
    for (size_t m = 0; m < model->kernel_count; m++) {
        const struct dcrf_model_kernel *kernel = &model->kernels[m];
        state = hash(state, kernel, sizeof *kernel); /* pointers too: nothing was moved */
        state = hash(state, kernel->features.channel,
                     model->variables * kernel->features.channels * sizeof(float));
        if (kernel->compatibility == DCRF_COMPATIBILITY_VECTOR)
            state = hash(state, kernel->compatibility_values, model->labels * sizeof(float));
        if (kernel->compatibility == DCRF_COMPATIBILITY_MATRIX)
            state = hash(state, kernel->compatibility_values,
                         model->labels * model->labels * sizeof(float));
    }
    const struct dcrf_cliques *cliques = &model->cliques;
    state = hash(state, &cliques->count, sizeof cliques->count);
    if (cliques->count > 0) {
        state = hash(state, cliques->offsets, (cliques->count + 1) * sizeof(size_t));
        state = hash(state, cliques->members, cliques->offsets[cliques->count] * sizeof(uint32_t));
        state = hash(state, cliques->costs, cliques->count * sizeof(double));
    }
    return state;
}

/* The call fails as in assert_fails, and the model is unchanged. */
#define assert_refused(model, expected_status, text, call)                                         \
    do {                                                                                           \
        dcrf_error error;                                                                          \
        const uint64_t before = fingerprint(model);                                                \
        assert_fails(expected_status, text, error, call);                                          \
        assert_true(fingerprint(model) == before);                                                 \
    } while (0)

/* ---- making and freeing --------------------------------------------------------------------- */

static void a_new_model_is_empty(void **state) {
    (void)state;
    dcrf_model *model = new_model();
    assert_int_equal(dcrf_model_variables(model), VARIABLES);
    assert_int_equal(dcrf_model_labels(model), LABELS);
    assert_int_equal(dcrf_model_kernels(model), 0);
    assert_int_equal(dcrf_model_cliques(model), 0);
    assert_int_equal(dcrf_model_grid(model)->size[0], WIDTH);
    assert_int_equal(dcrf_model_grid(model)->size[1], HEIGHT);
    size_t stride;
    assert_ptr_equal(dcrf_model_unary(model, &stride), model->unary);
    assert_int_equal(stride, model->stride);
    for (size_t i = 0; i < VARIABLES * model->stride; i++)
        assert_true(model->unary[i] == 0);
    assert_int_equal(dcrf_model_clique_size(model, 0), 0);
    assert_true(isnan(dcrf_model_clique_cost(model, 0)));
    dcrf_model_free(&model);
    assert_null(model);
    dcrf_model_free(&model);
    dcrf_model_free(NULL);
}

static void bad_sizes_are_refused(void **state) {
    (void)state;
    dcrf_error error;
    dcrf_model *model = (dcrf_model *)&error;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT), empty = dcrf_grid_2d(0, 3),
                    large = dcrf_grid_2d(46000, 46000);
    assert_fails(DCRF_ERROR_ARGUMENT, "1 to 65535 labels, not 0", error,
                 dcrf_model_new(&model, &grid, 0, &error));
    assert_null(model);
    assert_fails(DCRF_ERROR_ARGUMENT, "not 65536", error,
                 dcrf_model_new(&model, &grid, 65536, &error));
    assert_fails(DCRF_ERROR_SIZE, "axis 0 has size 0", error,
                 dcrf_model_new(&model, &empty, 2, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "no grid", error, dcrf_model_new(&model, NULL, 2, &error));
    /* 2.1e9 variables with 65535 labels are 5e14 bytes: more than any machine can address. */
    assert_true(dcrf_model_new(&model, &large, 65535, &error) < 0);
    assert_true(error.status == DCRF_ERROR_MEMORY || error.status == DCRF_ERROR_SIZE);
    assert_non_null(strstr(error.message, "2116000000 variables with 65535 labels"));
    assert_null(model);
    assert_int_equal(dcrf_model_new(&model, &grid, 65535, NULL), DCRF_OK);
    dcrf_model_free(&model);
}

/* ---- unary energies ------------------------------------------------------------------------- */

static void store(void *at, dcrf_type type, double value) {
    switch (type) {
    case DCRF_U8:
        *(uint8_t *)at = (uint8_t)value;
        break;
    case DCRF_U16:
        *(uint16_t *)at = (uint16_t)value;
        break;
    case DCRF_I16:
        *(int16_t *)at = (int16_t)value;
        break;
    case DCRF_I32:
        *(int32_t *)at = (int32_t)value;
        break;
    case DCRF_F32:
        *(float *)at = (float)value;
        break;
    case DCRF_F64:
        *(double *)at = value;
        break;
    case DCRF_F16: /* tested in test_view.c */
    case DCRF_BF16:
        break;
    }
}

/* Distinct small numbers, exact in every type. */
static double sample(size_t x, size_t y, size_t label) {
    return (double)(x + 10 * y + 50 * label);
}

static void unary_energies_come_in_every_type_and_layout(void **state) {
    (void)state;
    enum { ROOM = 1024 };
    _Alignas(8) unsigned char data[ROOM];
    for (int type = DCRF_U8; type <= DCRF_F64; type++) {
        const ptrdiff_t b = (ptrdiff_t)dcrf_type_bytes((dcrf_type)type);
        const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
        dcrf_view layouts[5];
        layouts[0] = dcrf_view_interleaved(data, (dcrf_type)type, &grid, LABELS);
        layouts[1] = dcrf_view_planar(data, (dcrf_type)type, &grid, LABELS);
        /* Rows padded by two pixels; pixels padded by one channel. */
        layouts[2] = layouts[0];
        layouts[2].stride[0] = (LABELS + 1) * b;
        layouts[2].stride[1] = (WIDTH + 2) * (LABELS + 1) * b;
        /* Upside down; labels reversed. */
        layouts[3] = layouts[0];
        layouts[3].data = data + (HEIGHT - 1) * WIDTH * LABELS * b;
        layouts[3].stride[1] = -WIDTH * LABELS * b;
        layouts[4] = layouts[1];
        layouts[4].data = data + (LABELS - 1) * VARIABLES * b;
        layouts[4].channel_stride = -VARIABLES * b;
        for (size_t l = 0; l < 5; l++) {
            const dcrf_view *view = &layouts[l];
            memset(data, 0x5a, sizeof data);
            for (size_t y = 0; y < HEIGHT; y++)
                for (size_t x = 0; x < WIDTH; x++)
                    for (size_t i = 0; i < LABELS; i++) {
                        const ptrdiff_t at = ((const unsigned char *)view->data - data) +
                                             (ptrdiff_t)x * view->stride[0] +
                                             (ptrdiff_t)y * view->stride[1] +
                                             (ptrdiff_t)i * view->channel_stride;
                        assert_true(at >= 0 && at + b <= ROOM);
                        store(data + at, (dcrf_type)type, sample(x, y, i));
                    }
            dcrf_model *model = new_model();
            assert_int_equal(dcrf_model_set_unary(model, view, NULL), DCRF_OK);
            memset(data, 0, sizeof data); /* the model has its own copy */
            for (size_t y = 0; y < HEIGHT; y++)
                for (size_t x = 0; x < WIDTH; x++) {
                    const float *row = model->unary + (y * WIDTH + x) * model->stride;
                    for (size_t i = 0; i < model->stride; i++)
                        assert_true((double)row[i] == (i < LABELS ? sample(x, y, i) : 0));
                }
            dcrf_model_free(&model);
        }
    }
}

static void bad_unary_energies_are_refused(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    float unary[VARIABLES * LABELS] = {0};
    dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &model->grid, LABELS), narrow = view;
    narrow.channels = 2;
    unary[(1 * WIDTH + 2) * LABELS + 1] = NAN;
    assert_refused(model, DCRF_ERROR_NOT_FINITE,
                   "the unary array holds nan at x = 2, y = 1, channel 1",
                   dcrf_model_set_unary(model, &view, &error));
    unary[(1 * WIDTH + 2) * LABELS + 1] = -INFINITY;
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "inf at x = 2, y = 1",
                   dcrf_model_set_unary(model, &view, &error));
    assert_refused(model, DCRF_ERROR_SIZE, "2 channels; the model has 3 labels",
                   dcrf_model_set_unary(model, &narrow, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "the unary array is missing",
                   dcrf_model_set_unary(model, NULL, &error));
    view.data = NULL;
    assert_refused(model, DCRF_ERROR_ARGUMENT, "no data",
                   dcrf_model_set_unary(model, &view, &error));
    dcrf_model_free(&model);
}

/* ---- kernels and compatibilities ------------------------------------------------------------ */

static void kernels_are_numbered_and_can_be_changed(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    const float vector[LABELS] = {1, -2, 3};
    assert_int_equal(dcrf_model_kernels(model), 2);
    assert_true(model->kernels[0].weight == 3 && model->kernels[1].weight == 4);
    assert_int_equal(model->kernels[0].compatibility, DCRF_COMPATIBILITY_POTTS);
    assert_int_equal(model->kernels[0].features.dimension, 2);
    assert_int_equal(model->kernels[1].features.dimension, 5);
    assert_int_equal(model->kernels[1].normalization, DCRF_NORMALIZE_SYMMETRIC);
    assert_int_equal(dcrf_model_set_weight(model, 1, 0, NULL), DCRF_OK);
    assert_true(model->kernels[1].weight == 0);
    assert_int_equal(
        dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_VECTOR, vector, NULL), DCRF_OK);
    assert_memory_equal(model->kernels[0].compatibility_values, vector, sizeof vector);
    assert_true(model->kernels[0].compatibility_values != vector);
    assert_int_equal(dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_POTTS, NULL, NULL),
                     DCRF_OK);
    assert_int_equal(model->kernels[0].compatibility, DCRF_COMPATIBILITY_POTTS);
    assert_null(model->kernels[0].compatibility_values);
    dcrf_model_free(&model);
}

static void bad_kernels_are_refused(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    float image[VARIABLES * 20] = {0};
    image[(2 * WIDTH + 3) * 3 + 2] = NAN;
    const dcrf_view broken = dcrf_view_interleaved(image, DCRF_F32, &model->grid, 3),
                    wide = dcrf_view_interleaved(image, DCRF_F32, &model->grid, 17);
    dcrf_kernel kernel = dcrf_kernel_spatial(0, 1);
    assert_refused(model, DCRF_ERROR_ARGUMENT, "the sigma of axis 0 is 0",
                   dcrf_model_add_kernel(model, &kernel, &error));
    kernel = dcrf_kernel_spatial(1, -1);
    assert_refused(model, DCRF_ERROR_ARGUMENT, "-1; it must not be negative",
                   dcrf_model_add_kernel(model, &kernel, &error));
    kernel = dcrf_kernel_spatial(1, 1);
    kernel.reserved[63] = 1;
    assert_refused(model, DCRF_ERROR_ARGUMENT, "reserved bytes of a kernel",
                   dcrf_model_add_kernel(model, &kernel, &error));
    kernel = dcrf_kernel_spatial(1, NAN);
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "weight of a kernel is nan",
                   dcrf_model_add_kernel(model, &kernel, &error));
    kernel = dcrf_kernel_spatial(1, 1e39);
    assert_refused(model, DCRF_ERROR_SIZE, "weight of a kernel is 1e+39: too large for a float",
                   dcrf_model_add_kernel(model, &kernel, &error));
    assert_refused(model, DCRF_ERROR_SIZE, "too large for a float",
                   dcrf_model_set_weight(model, 0, 1e39, &error));
    assert_int_equal(dcrf_model_set_weight(model, 0, (double)FLT_MAX, NULL), DCRF_OK);
    kernel = dcrf_kernel_bilateral(1, 1, broken, 1);
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "nan at x = 3, y = 2, channel 2",
                   dcrf_model_add_kernel(model, &kernel, &error));
    kernel = dcrf_kernel_features(wide, 1);
    assert_refused(model, DCRF_ERROR_SIZE, "17 channels",
                   dcrf_model_add_kernel(model, &kernel, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "no kernel",
                   dcrf_model_add_kernel(model, NULL, &error));
    assert_int_equal(dcrf_model_kernels(model), 2);
    assert_refused(model, DCRF_ERROR_ARGUMENT, "no kernel 2; the model has 2",
                   dcrf_model_set_weight(model, 2, 1, &error));
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "inf",
                   dcrf_model_set_weight(model, 0, INFINITY, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "-3", dcrf_model_set_weight(model, 0, -3, &error));
    dcrf_model_free(&model);
}

static void bad_compatibilities_are_refused(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    float matrix[LABELS * LABELS] = {0, 1, 2, 1, 0, 3, 2, 3.5f, 0};
    const float vector[LABELS] = {0, 1, INFINITY};
    assert_refused(
        model, DCRF_ERROR_ARGUMENT,
        "matrix of kernel 1 is not symmetric: (1, 2) is 3 and (2, 1) is 3.5",
        dcrf_model_set_compatibility(model, 1, DCRF_COMPATIBILITY_MATRIX, matrix, &error));
    matrix[1 * LABELS + 0] = NAN;
    assert_refused(
        model, DCRF_ERROR_NOT_FINITE, "matrix of kernel 0 holds nan at (1, 0)",
        dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, matrix, &error));
    assert_refused(
        model, DCRF_ERROR_NOT_FINITE, "vector of kernel 1 holds inf at label 2",
        dcrf_model_set_compatibility(model, 1, DCRF_COMPATIBILITY_VECTOR, vector, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "compatibility values of kernel 1 are missing",
                   dcrf_model_set_compatibility(model, 1, DCRF_COMPATIBILITY_VECTOR, NULL, &error));
    assert_refused(
        model, DCRF_ERROR_ARGUMENT, "no kernel 7",
        dcrf_model_set_compatibility(model, 7, DCRF_COMPATIBILITY_VECTOR, vector, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "9 is not a kind of label compatibility",
                   dcrf_model_set_compatibility(model, 0, (dcrf_compatibility)9, vector, &error));
    dcrf_model_free(&model);
}

static void assert_kernel(const dcrf_model *model, dcrf_compatibility compatibility,
                          double weight) {
    assert_int_equal(model->kernels[0].compatibility, compatibility);
    assert_true(model->kernels[0].weight == weight);
}

/* If the product is not a valid weight, or the factor is not positive, a matrix stays a matrix. */
static void multiples_of_potts_are_folded(void **state) {
    (void)state;
    dcrf_model *model = new_full_model(); /* kernel 0 has weight 3 */
    const struct {
        float c;
        double weight, folded;
        dcrf_compatibility compatibility;
    } cases[] = {{1, 3, 3, DCRF_COMPATIBILITY_POTTS},
                 {2.5f, 3, 7.5, DCRF_COMPATIBILITY_POTTS},
                 {2.5f, 0, 0, DCRF_COMPATIBILITY_POTTS},
                 {-1, 3, 3, DCRF_COMPATIBILITY_MATRIX},
                 {-1, 0, 0, DCRF_COMPATIBILITY_MATRIX},
                 {0, 3, 3, DCRF_COMPATIBILITY_MATRIX},
                 {1e30f, 1e30, 1e30, DCRF_COMPATIBILITY_MATRIX},
                 {1e-30f, 1e-300, 1e-300, DCRF_COMPATIBILITY_MATRIX}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const float c = cases[k].c, matrix[] = {0, c, c, c, 0, c, c, c, 0};
        assert_int_equal(
            dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, matrix, NULL),
            DCRF_OK);
        assert_int_equal(dcrf_model_set_weight(model, 0, cases[k].weight, NULL), DCRF_OK);
        assert_kernel(model, cases[k].compatibility, cases[k].folded);
        /* Later changes start from the values that were given. */
        assert_int_equal(
            dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, matrix, NULL),
            DCRF_OK);
        assert_kernel(model, cases[k].compatibility, cases[k].folded);
        assert_int_equal(
            dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_POTTS, NULL, NULL), DCRF_OK);
        assert_kernel(model, DCRF_COMPATIBILITY_POTTS, cases[k].weight);
    }
    const float diagonal[] = {0.5f, 1, 1, 1, 0, 1, 1, 1, 0};
    assert_int_equal(
        dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, diagonal, NULL), DCRF_OK);
    assert_int_equal(model->kernels[0].compatibility, DCRF_COMPATIBILITY_MATRIX);
    dcrf_model_free(&model);
}

/* ---- cliques -------------------------------------------------------------------------------- */

static void assert_members(const dcrf_model *model, size_t clique, size_t count,
                           const uint32_t *members) {
    assert_int_equal(dcrf_model_clique_size(model, clique), count);
    assert_memory_equal(model->cliques.members + model->cliques.offsets[clique], members,
                        count * sizeof *members);
}

static void cliques_come_as_lists(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    assert_int_equal(dcrf_model_cliques(model), 2);
    assert_members(model, 0, 2, (const uint32_t[]){3, 1});
    assert_members(model, 1, 3, (const uint32_t[]){4, 11, 0});
    assert_true(dcrf_model_clique_cost(model, 0) == 0.5 && dcrf_model_clique_cost(model, 1) == 2);
    /* Offsets into the middle of an array of members. */
    const size_t offsets[] = {2, 3, 5}, members[] = {99, 99, 7, 5, 6};
    const double costs[] = {0, 1};
    assert_int_equal(dcrf_model_set_cliques(model, 2, offsets, members, costs, NULL), DCRF_OK);
    assert_members(model, 0, 1, (const uint32_t[]){7});
    assert_members(model, 1, 2, (const uint32_t[]){5, 6});
    assert_int_equal(dcrf_model_set_cliques(model, 0, NULL, NULL, NULL, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_cliques(model), 0);
    dcrf_model_free(&model);
}

static void bad_clique_lists_are_refused(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    size_t offsets[VARIABLES + 2] = {0, 2, 4}, members[] = {0, 1, 2, 3};
    double costs[VARIABLES + 1] = {1, 1};
#define set_cliques(count) dcrf_model_set_cliques(model, count, offsets, members, costs, &error)
    members[3] = 0;
    assert_refused(model, DCRF_ERROR_OVERLAP, "variable 0 is in clique 0 and in clique 1",
                   set_cliques(2));
    members[3] = 2;
    assert_refused(model, DCRF_ERROR_OVERLAP, "clique 1 has variable 2 twice", set_cliques(2));
    members[3] = VARIABLES;
    assert_refused(model, DCRF_ERROR_ARGUMENT,
                   "clique 1 has the member 12; the model has 12 variables", set_cliques(2));
    members[3] = 3;
    costs[1] = -0.5;
    assert_refused(model, DCRF_ERROR_ARGUMENT, "cost of clique 1 is -0.5", set_cliques(2));
    costs[1] = NAN;
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "cost of clique 1 is nan", set_cliques(2));
    costs[1] = 1e39;
    assert_refused(model, DCRF_ERROR_SIZE, "cost of clique 1 is 1e+39: too large for a float",
                   set_cliques(2));
    costs[1] = 1;
    offsets[2] = 1;
    assert_refused(model, DCRF_ERROR_ARGUMENT, "not ascending: offset 1 is 2 and offset 2 is 1",
                   set_cliques(2));
    offsets[2] = 2;
    assert_refused(model, DCRF_ERROR_SIZE, "clique 1 is empty", set_cliques(2));
    offsets[2] = SIZE_MAX / 2; /* caught at the first repeated variable */
    members[2] = 1;
    assert_refused(model, DCRF_ERROR_OVERLAP, "variable 1 is in clique 0 and in clique 1",
                   set_cliques(2));
    assert_refused(model, DCRF_ERROR_SIZE, "13 cliques cannot be disjoint over 12 variables",
                   set_cliques(VARIABLES + 1));
#undef set_cliques
    assert_refused(model, DCRF_ERROR_ARGUMENT, "members of the cliques are missing",
                   dcrf_model_set_cliques(model, 2, offsets, NULL, costs, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "costs of the cliques are missing",
                   dcrf_model_set_cliques(model, 2, offsets, members, NULL, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "offsets of the cliques are missing",
                   dcrf_model_set_cliques(model, 2, NULL, members, costs, &error));
    dcrf_model_free(&model);
}

static void cliques_come_as_maps(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    const int32_t numbers[VARIABLES] = {2000000000, 5, 5, -1, 0, 5, -7, -1, 2000000000, 0, -1, 0};
    dcrf_view map = dcrf_view_interleaved(numbers, DCRF_I32, &model->grid, 1);
    assert_int_equal(dcrf_model_set_clique_map(model, &map, 2.5, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_cliques(model), 3);
    assert_members(model, 0, 3, (const uint32_t[]){4, 9, 11});
    assert_members(model, 1, 3, (const uint32_t[]){1, 2, 5});
    assert_members(model, 2, 2, (const uint32_t[]){0, 8});
    for (size_t p = 0; p < 3; p++)
        assert_true(dcrf_model_clique_cost(model, p) == 2.5);
    /* Bytes, upside down: rows 2, 1, 0 of the array are rows 0, 1, 2 of the map. */
    const uint8_t bytes[VARIABLES] = {9, 9, 9, 9, 1, 1, 9, 9, 1, 1, 1, 1};
    map = dcrf_view_interleaved(bytes + 2 * WIDTH, DCRF_U8, &model->grid, 1);
    map.stride[1] = -WIDTH;
    assert_int_equal(dcrf_model_set_clique_map(model, &map, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_cliques(model), 2);
    assert_members(model, 0, 6, (const uint32_t[]){0, 1, 2, 3, 4, 5});
    assert_members(model, 1, 6, (const uint32_t[]){6, 7, 8, 9, 10, 11});
    const int16_t none[VARIABLES] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    map = dcrf_view_interleaved(none, DCRF_I16, &model->grid, 1);
    assert_int_equal(dcrf_model_set_clique_map(model, &map, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_cliques(model), 0);
    dcrf_model_free(&model);
}

static void bad_clique_maps_are_refused(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    const float numbers[VARIABLES * 2] = {0};
    const dcrf_view floats = dcrf_view_interleaved(numbers, DCRF_F32, &model->grid, 1),
                    pairs = dcrf_view_interleaved(numbers, DCRF_U8, &model->grid, 2),
                    good = dcrf_view_interleaved(numbers, DCRF_U8, &model->grid, 1);
    assert_refused(model, DCRF_ERROR_ARGUMENT, "the clique map must hold integers",
                   dcrf_model_set_clique_map(model, &floats, 1, &error));
    assert_refused(model, DCRF_ERROR_SIZE, "the clique map has 2 channels",
                   dcrf_model_set_clique_map(model, &pairs, 1, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "the clique map: no data",
                   dcrf_model_set_clique_map(model, NULL, 1, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "cost of the cliques is -1",
                   dcrf_model_set_clique_map(model, &good, -1, &error));
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "cost of the cliques is nan",
                   dcrf_model_set_clique_map(model, &good, NAN, &error));
    assert_refused(model, DCRF_ERROR_SIZE, "cost of the cliques is 1e+39: too large for a float",
                   dcrf_model_set_clique_map(model, &good, 1e39, &error));
    dcrf_model_free(&model);
}

static void clique_costs_follow_the_colour_variance(void **state) {
    (void)state;
    dcrf_model *model = new_full_model(); /* cliques {3, 1} and {4, 11, 0} */
    const size_t members[2][3] = {{3, 1, 0}, {4, 11, 0}}, sizes[2] = {2, 3};
    const double gamma = 3, eta = 900;
    uint8_t image[3][VARIABLES]; /* planes */
    for (size_t c = 0; c < 3; c++)
        for (size_t a = 0; a < VARIABLES; a++)
            image[c][a] = (uint8_t)(200 + (a * 29 + c * 17) % 50);
    const dcrf_view view = dcrf_view_planar(image, DCRF_U8, &model->grid, 3);
    assert_int_equal(dcrf_model_set_clique_costs(model, &view, gamma, eta, NULL), DCRF_OK);
    for (size_t p = 0; p < 2; p++) {
        /* Half the mean squared distance over all ordered pairs is the variance. */
        double squared = 0;
        for (size_t i = 0; i < sizes[p]; i++)
            for (size_t j = 0; j < sizes[p]; j++)
                for (size_t c = 0; c < 3; c++) {
                    const double d =
                        (double)image[c][members[p][i]] - (double)image[c][members[p][j]];
                    squared += d * d;
                }
        const double variance = squared / 2 / (double)(sizes[p] * sizes[p]);
        const double expected = gamma * exp(-variance / eta);
        assert_true(variance > 1);
        /* Sums of a few integers in double. */
        assert_true(fabs(dcrf_model_clique_cost(model, p) - expected) < 1e-12);
    }
    dcrf_model_free(&model);
}

static void bad_clique_costs_are_refused(void **state) {
    (void)state;
    dcrf_model *model = new_full_model();
    float image[VARIABLES * 3] = {0};
    dcrf_view view = dcrf_view_interleaved(image, DCRF_F32, &model->grid, 3);
    assert_refused(model, DCRF_ERROR_ARGUMENT, "eta of the clique costs is 0",
                   dcrf_model_set_clique_costs(model, &view, 1, 0, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "gamma of the clique costs is -1",
                   dcrf_model_set_clique_costs(model, &view, -1, 1, &error));
    assert_refused(model, DCRF_ERROR_SIZE, "gamma of the clique costs is 1e+39: too large",
                   dcrf_model_set_clique_costs(model, &view, 1e39, 1, &error));
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "eta = nan",
                   dcrf_model_set_clique_costs(model, &view, 1, NAN, &error));
    assert_refused(model, DCRF_ERROR_NOT_FINITE, "gamma = inf",
                   dcrf_model_set_clique_costs(model, &view, INFINITY, 1, &error));
    assert_refused(model, DCRF_ERROR_ARGUMENT, "image of the clique costs is missing",
                   dcrf_model_set_clique_costs(model, NULL, 1, 1, &error));
    image[5 * 3 + 1] = NAN;
    assert_refused(model, DCRF_ERROR_NOT_FINITE,
                   "the image of the clique costs holds nan at x = 1, y = 1, channel 1",
                   dcrf_model_set_clique_costs(model, &view, 1, 1, &error));
    view.channels = 0;
    assert_refused(model, DCRF_ERROR_SIZE, "no channels",
                   dcrf_model_set_clique_costs(model, &view, 1, 1, &error));
    view.channels = SIZE_MAX / 2;
    assert_refused(model, DCRF_ERROR_SIZE, "too many",
                   dcrf_model_set_clique_costs(model, &view, 1, 1, &error));
    dcrf_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_model_is_empty),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(unary_energies_come_in_every_type_and_layout),
        cmocka_unit_test(bad_unary_energies_are_refused),
        cmocka_unit_test(kernels_are_numbered_and_can_be_changed),
        cmocka_unit_test(bad_kernels_are_refused),
        cmocka_unit_test(bad_compatibilities_are_refused),
        cmocka_unit_test(multiples_of_potts_are_folded),
        cmocka_unit_test(cliques_come_as_lists),
        cmocka_unit_test(bad_clique_lists_are_refused),
        cmocka_unit_test(cliques_come_as_maps),
        cmocka_unit_test(bad_clique_maps_are_refused),
        cmocka_unit_test(clique_costs_follow_the_colour_variance),
        cmocka_unit_test(bad_clique_costs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
