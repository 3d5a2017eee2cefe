/* Misuse of handles: NULL where an object is required, arrays that are too small, freeing NULL and
 * a workspace in two threads (test_model_changes.c: a model that changes). Each gives an error with
 * a message, or an empty answer; none crashes. */
#include "unit.h"

#include "core/workspace.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#ifndef __wasm__ /* no threads there */
#include <pthread.h>
#endif

#define PIXELS 12
#define LABELS 2

struct scene {
    dcrf_grid grid;
    float unary[PIXELS][LABELS];
    unsigned char grey[PIXELS];
    uint16_t labels[PIXELS];
    dcrf_view energies, image;
    dcrf_kernel kernel;
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
};

static void make(struct scene *s) {
    dcrf_error error;
    memset(s, 0, sizeof *s);
    s->grid = dcrf_grid_2d(4, 3);
    for (size_t a = 0; a < PIXELS; a++) {
        s->unary[a][a % 2] = 1;
        s->grey[a] = (unsigned char)(20 * a);
    }
    s->energies = dcrf_view_interleaved(s->unary, DCRF_F32, &s->grid, LABELS);
    s->image = dcrf_view_interleaved(s->grey, DCRF_U8, &s->grid, 1);
    s->kernel = dcrf_kernel_bilateral(2, 30, s->image, 0.5);
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    assert_int_equal(dcrf_model_new(&s->model, &s->grid, LABELS, &error), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(s->model, &s->energies, &error), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(s->model, &s->kernel, &error), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&s->workspace, 1, &error), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&s->plan, s->model, DCRF_OPERATOR_EXACT, s->workspace, &error),
                     DCRF_OK);
    assert_int_equal(dcrf_solver_new(&s->solver, s->plan, s->workspace, &settings, &error),
                     DCRF_OK);
}

static void destroy(struct scene *s) {
    dcrf_solver_free(&s->solver);
    dcrf_plan_free(&s->plan);
    dcrf_workspace_free(&s->workspace);
    dcrf_model_free(&s->model);
}

/* The call fails, and its message says that something is NULL. */
#define assert_null_is_refused(call)                                                               \
    do {                                                                                           \
        error = (dcrf_error){DCRF_OK, ""};                                                         \
        assert_int_equal((call), DCRF_ERROR_ARGUMENT);                                             \
        assert_int_equal(error.status, DCRF_ERROR_ARGUMENT);                                       \
        assert_true(error.message[0] != '\0');                                                     \
    } while (0)

static void null_for_a_model(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    size_t stride = 7;
    make(&s);
    assert_null_is_refused(dcrf_model_new(NULL, &s.grid, 2, &error));
    dcrf_model *model = NULL;
    assert_null_is_refused(dcrf_model_new(&model, NULL, 2, &error));
    assert_null_is_refused(dcrf_model_set_unary(NULL, &s.energies, &error));
    assert_null_is_refused(dcrf_model_set_unary(s.model, NULL, &error));
    assert_null_is_refused(dcrf_model_add_kernel(NULL, &s.kernel, &error));
    assert_null_is_refused(dcrf_model_add_kernel(s.model, NULL, &error));
    assert_null_is_refused(dcrf_model_set_weight(NULL, 0, 1, &error));
    assert_null_is_refused(
        dcrf_model_set_compatibility(NULL, 0, DCRF_COMPATIBILITY_POTTS, NULL, &error));
    assert_null_is_refused(dcrf_model_set_cliques(NULL, 0, NULL, NULL, NULL, &error));
    assert_null_is_refused(dcrf_model_set_clique_map(NULL, &s.image, 1, &error));
    assert_null_is_refused(dcrf_model_set_clique_map(s.model, NULL, 1, &error));
    assert_null_is_refused(dcrf_model_set_clique_costs(NULL, &s.image, 1, 1, &error));
    assert_null_is_refused(dcrf_model_set_clique_costs(s.model, NULL, 1, 1, &error));
    assert_int_equal(dcrf_model_variables(NULL), 0);
    assert_int_equal(dcrf_model_labels(NULL), 0);
    assert_int_equal(dcrf_model_kernels(NULL), 0);
    assert_int_equal(dcrf_model_cliques(NULL), 0);
    assert_int_equal(dcrf_model_clique_size(NULL, 0), 0);
    assert_true(isnan(dcrf_model_clique_cost(NULL, 0)));
    assert_null(dcrf_model_grid(NULL));
    assert_null(dcrf_model_unary(NULL, &stride));
    assert_int_equal(stride, 0);
    destroy(&s);
}

static void null_for_an_operator(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    dcrf_operator *op = NULL;
    float block[PIXELS * 8] = {0};
    dcrf_plan *plan = NULL;
    make(&s);
    const dcrf_operator *planned = dcrf_plan_operator(s.plan, 0);
    assert_null_is_refused(
        dcrf_operator_new(NULL, &s.grid, &s.kernel, DCRF_OPERATOR_EXACT, s.workspace, &error));
    assert_null_is_refused(
        dcrf_operator_new(&op, NULL, &s.kernel, DCRF_OPERATOR_EXACT, s.workspace, &error));
    assert_null_is_refused(
        dcrf_operator_new(&op, &s.grid, NULL, DCRF_OPERATOR_EXACT, s.workspace, &error));
    assert_null_is_refused(
        dcrf_operator_new(&op, &s.grid, &s.kernel, DCRF_OPERATOR_EXACT, NULL, &error));
    assert_null_is_refused(dcrf_operator_row_sums(NULL, s.workspace, block, PIXELS, &error));
    assert_null_is_refused(dcrf_operator_row_sums(planned, s.workspace, NULL, PIXELS, &error));
    assert_null_is_refused(dcrf_operator_diagonal(planned, NULL, block, PIXELS, &error));
    assert_int_equal(dcrf_operator_variables(NULL), 0);
    assert_int_equal(dcrf_operator_bytes(NULL), 0);
    assert_null_is_refused(dcrf_plan_new(NULL, s.model, DCRF_OPERATOR_EXACT, s.workspace, &error));
    assert_null_is_refused(dcrf_plan_new(&plan, NULL, DCRF_OPERATOR_EXACT, s.workspace, &error));
    assert_null_is_refused(dcrf_plan_new(&plan, s.model, DCRF_OPERATOR_EXACT, NULL, &error));
    assert_null(dcrf_plan_model(NULL));
    assert_null(dcrf_plan_operator(NULL, 0));
    assert_int_equal(dcrf_plan_bytes(NULL), 0);
    assert_int_equal(dcrf_workspace_threads(NULL), 0);
    assert_int_equal(dcrf_workspace_bytes(NULL), 0);
    destroy(&s);
}

static void null_for_a_solver(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    dcrf_settings settings;
    dcrf_solver *solver = NULL;
    dcrf_solver_info info;
    dcrf_energy energy;
    size_t count = 7;
    float marginals[PIXELS * LABELS];
    make(&s);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    assert_null_is_refused(dcrf_solver_new(NULL, s.plan, s.workspace, &settings, &error));
    assert_null_is_refused(dcrf_solver_new(&solver, NULL, s.workspace, &settings, &error));
    assert_null_is_refused(dcrf_solver_new(&solver, s.plan, NULL, &settings, &error));
    assert_null_is_refused(dcrf_solver_new(&solver, s.plan, s.workspace, NULL, &error));
    assert_null_is_refused(dcrf_solver_run(NULL, &error));
    assert_null_is_refused(
        dcrf_label_by_marginals(NULL, PIXELS, LABELS, LABELS, s.labels, PIXELS, &error));
    assert_null_is_refused(
        dcrf_label_by_marginals(s.unary[0], PIXELS, LABELS, LABELS, NULL, PIXELS, &error));
    assert_null_is_refused(dcrf_solver_step(NULL, &error));
    assert_null_is_refused(dcrf_solver_finish(NULL, &error));
    assert_null_is_refused(dcrf_solver_start_labels(NULL, s.labels, &error));
    assert_null_is_refused(dcrf_solver_start_labels(s.solver, NULL, &error));
    assert_null_is_refused(dcrf_solver_start_marginals(NULL, marginals, LABELS, &error));
    assert_null_is_refused(dcrf_solver_marginals(NULL, marginals, PIXELS * LABELS, LABELS, &error));
    assert_null_is_refused(
        dcrf_energy_of_labels(NULL, s.workspace, s.labels, &energy, NULL, 0, &error));
    assert_null_is_refused(
        dcrf_energy_of_labels(s.plan, s.workspace, NULL, &energy, NULL, 0, &error));
    assert_null(dcrf_solver_trace(NULL, &count));
    assert_int_equal(count, 0);
    dcrf_solver_get_info(NULL, &info);
    assert_int_equal(info.iterations, 0);
    dcrf_solver_labels(NULL, s.labels, PIXELS, NULL);
    destroy(&s);
}

/* Arrays for results that are one element short: refused, and nothing is written. */
static void arrays_too_small(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    float marginals[PIXELS * LABELS] = {9};
    uint16_t out[PIXELS] = {9};
    make(&s);
    assert_true(dcrf_solver_run(s.solver, &error) > 0);
    assert_int_equal(dcrf_solver_prove(s.solver, &error), DCRF_OK);
    const size_t few = PIXELS - 1, few_floats = PIXELS * LABELS - 1;
    assert_fails(DCRF_ERROR_SIZE, "the labels", error,
                 dcrf_solver_labels(s.solver, out, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the counts", error,
                 dcrf_solver_labels_left(s.solver, out, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the labels", error,
                 dcrf_label_by_unary(s.model, out, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the labels", error,
                 dcrf_label_by_marginals(s.unary[0], PIXELS, LABELS, LABELS, out, few, &error));
    assert_int_equal(out[0], 9);
    assert_fails(DCRF_ERROR_SIZE, "the marginals", error,
                 dcrf_solver_marginals(s.solver, marginals, few_floats, LABELS, &error));
    assert_fails(DCRF_ERROR_SIZE, "too large", error,
                 dcrf_solver_marginals(s.solver, marginals, few_floats, SIZE_MAX / 2, &error));
    assert_true(marginals[0] == 9);
    assert_int_equal(dcrf_solver_marginals(s.solver, marginals, few_floats + 1, LABELS, &error),
                     DCRF_OK);
    const dcrf_operator *planned = dcrf_plan_operator(s.plan, 0);
    const dcrf_levels sign = {.count = 2, .levels = &(float){0.5f}};
    const float block[PIXELS * 8] = {0};
    float sums[PIXELS * 8] = {9};
    assert_fails(DCRF_ERROR_SIZE, "the row sums", error,
                 dcrf_operator_row_sums(planned, s.workspace, sums, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the diagonal", error,
                 dcrf_operator_diagonal(planned, s.workspace, sums, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the output", error,
                 dcrf_operator_apply(planned, s.workspace, DCRF_SYMMETRIC, block, sums,
                                     PIXELS * 8 - 1, 1, 8, &error));
    assert_fails(DCRF_ERROR_SIZE, "the output", error,
                 dcrf_operator_ordered(planned, s.workspace, &sign, block, sums,
                                       (PIXELS - 1) * 8 + 1, 2, 8, &error));
    assert_true(sums[0] == 9);
    assert_int_equal(dcrf_operator_ordered(planned, s.workspace, &sign, block, sums,
                                           (PIXELS - 1) * 8 + 2, 2, 8, &error),
                     DCRF_OK);
    destroy(&s);
}

static void null_for_defaults(void **state) {
    (void)state;
    dcrf_settings_defaults(NULL, DCRF_METHOD_LP);
    dcrf_arrays_defaults(NULL);
    dcrf_certify_settings_defaults(NULL);
    dcrf_mask_settings_defaults(NULL);
    dcrf_scribbles_settings_defaults(NULL);
    dcrf_superpixel_settings_defaults(NULL);
}

static void null_for_a_proof(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    dcrf_proof_info info;
    uint16_t counts[PIXELS] = {7};
    size_t size = 7;
    make(&s);
    assert_null_is_refused(dcrf_solver_prove(NULL, &error));
    assert_null(dcrf_solver_proof(NULL));
    assert_null_is_refused(dcrf_solver_labels_left(NULL, counts, PIXELS, &error));
    memset(&info, 0xa5, sizeof info);
    dcrf_proof_get_info(NULL, &info);
    assert_int_equal(info.variables, 0);
    assert_null(dcrf_proof_possible(NULL));
    assert_null(dcrf_proof_certificate(NULL, &size));
    assert_int_equal(size, 0);
    assert_int_equal(counts[0], 7);
    destroy(&s);
}

static void null_for_a_certificate(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    dcrf_certify_settings settings;
    dcrf_certify_info found;
    dcrf_verification checked;
    const uint8_t byte = 0;
    uint8_t possible[PIXELS * LABELS] = {9};
    make(&s);
    dcrf_certify_settings_defaults(&settings);
    assert_null_is_refused(dcrf_certify(NULL, s.workspace, s.labels, &settings, &found, &error));
    assert_null_is_refused(dcrf_certify(s.plan, NULL, s.labels, &settings, &found, &error));
    assert_null_is_refused(dcrf_certify(s.plan, s.workspace, NULL, &settings, &found, &error));
    assert_null_is_refused(dcrf_certify(s.plan, s.workspace, s.labels, NULL, &found, &error));
    assert_null_is_refused(dcrf_certify(s.plan, s.workspace, s.labels, &settings, NULL, &error));
    assert_null_is_refused(
        dcrf_verify_certificate(NULL, 1, s.model, s.workspace, NULL, NULL, 0, &checked, &error));
    assert_null_is_refused(
        dcrf_verify_certificate(&byte, 1, NULL, s.workspace, NULL, NULL, 0, &checked, &error));
    assert_null_is_refused(
        dcrf_verify_certificate(&byte, 1, s.model, NULL, NULL, NULL, 0, &checked, &error));
    assert_null_is_refused(
        dcrf_verify_certificate(&byte, 1, s.model, s.workspace, NULL, NULL, 0, NULL, &error));
    assert_fails(DCRF_ERROR_SIZE, "the possible labels: the array holds 23 elements, 24 are needed",
                 error,
                 dcrf_verify_certificate(&byte, 1, s.model, s.workspace, NULL, possible,
                                         sizeof possible - 1, &checked, &error));
    assert_int_equal(possible[0], 9);
    destroy(&s);
}

/* Handles keep what they depend on alive, so they can be freed in any order. */
static void any_order_of_freeing(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    dcrf_unrolled *unrolled = NULL;
    uint16_t counts[PIXELS];
    float block[PIXELS * 8];
    make(&s);
    assert_int_equal(dcrf_unrolled_new(&unrolled, s.plan, s.workspace, 2, &error), DCRF_OK);
    dcrf_workspace_free(&s.workspace);
    assert_null(s.workspace);
    dcrf_model_free(&s.model);
    assert_null(s.model);
    dcrf_plan_free(&s.plan);
    assert_true(dcrf_solver_run(s.solver, &error) > 0);
    assert_int_equal(dcrf_solver_prove(s.solver, &error), DCRF_OK);
    dcrf_solver_labels(s.solver, s.labels, PIXELS, NULL);
    dcrf_solver_labels_left(s.solver, counts, PIXELS, NULL);
    const uint8_t *possible = dcrf_proof_possible(dcrf_solver_proof(s.solver));
    for (size_t a = 0; a < PIXELS; a++)
        assert_true(counts[a] >= 1 && possible[a * LABELS + s.labels[a]]);
    dcrf_solver_free(&s.solver);
    assert_int_equal(dcrf_unrolled_forward(unrolled, NULL, block, PIXELS * 8, 8, &error), DCRF_OK);
    dcrf_unrolled_free(&unrolled);
    destroy(&s);
}

#ifndef __wasm__
/* What calls need that use a workspace of their own. */
struct busy {
    struct scene scene;
    dcrf_unrolled *unrolled;
    dcrf_scribbles *scribbles;
    dcrf_densecrf *crf;
    size_t called;
    const char *accepted; /* a call that was not refused */
};

static void take(struct busy *busy, const char *call, dcrf_status status, const dcrf_error *error) {
    busy->called++;
    if (status != DCRF_ERROR_ARGUMENT || !strstr(error->message, "in use by another thread"))
        busy->accepted = call;
}

#define TRY_CALL(call)                                                                             \
    do {                                                                                           \
        error = (dcrf_error){DCRF_OK, ""};                                                         \
        const dcrf_status status = (call);                                                         \
        take(busy, #call, status, &error);                                                         \
    } while (0)

static void call_on_models(struct busy *busy) {
    const struct scene *s = &busy->scene;
    dcrf_workspace *workspace = s->workspace;
    const dcrf_operator *op = dcrf_plan_operator(s->plan, 0);
    const dcrf_levels levels = {3, (const float[]){0.3f, 0.6f}, NULL};
    const dcrf_derivatives nothing = {0};
    dcrf_error error;
    dcrf_operator *made = NULL;
    dcrf_plan *plan = NULL;
    dcrf_solver *solver = NULL;
    dcrf_unrolled *unrolled = NULL;
    dcrf_settings settings;
    dcrf_energy energy;
    dcrf_measured_strength strength;
    double sum;
    uint16_t label;
    float in[PIXELS * 8] = {0}, out[PIXELS * 8];
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    TRY_CALL(dcrf_model_set_unary_with(s->model, workspace, &s->energies, &error));
    TRY_CALL(dcrf_model_measure_strength(s->model, workspace, &strength, &error));
    TRY_CALL(
        dcrf_operator_new(&made, &s->grid, &s->kernel, DCRF_OPERATOR_EXACT, workspace, &error));
    TRY_CALL(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, in, out, PIXELS * 8, 2, 8, &error));
    TRY_CALL(dcrf_operator_row_sums(op, workspace, out, PIXELS, &error));
    TRY_CALL(dcrf_operator_diagonal(op, workspace, out, PIXELS, &error));
    TRY_CALL(dcrf_operator_ordered(op, workspace, &levels, in, out, PIXELS * 8, 2, 8, &error));
    TRY_CALL(dcrf_plan_new(&plan, s->model, DCRF_OPERATOR_EXACT, workspace, &error));
    TRY_CALL(dcrf_plan_reach(s->plan, 0, workspace, &sum, &error));
    TRY_CALL(dcrf_best_constant(s->plan, workspace, &label, &energy, &error));
    TRY_CALL(dcrf_energy_of_labels(s->plan, workspace, s->labels, &energy, NULL, 0, &error));
    TRY_CALL(dcrf_energy_at_most(s->plan, workspace, s->labels, &energy, NULL, 0, &error));
    TRY_CALL(
        dcrf_pairwise_gradient(s->plan, workspace, in, 8, &sum, out, PIXELS * 8, &nothing, &error));
    TRY_CALL(dcrf_unrolled_new(&unrolled, s->plan, workspace, 2, &error));
    TRY_CALL(dcrf_unrolled_forward(busy->unrolled, NULL, out, PIXELS * 8, 8, &error));
    TRY_CALL(dcrf_unrolled_log_q(busy->unrolled, out, PIXELS * 8, 8, &error));
    TRY_CALL(dcrf_unrolled_backward(busy->unrolled, in, 8, &nothing, &error));
    TRY_CALL(dcrf_unrolled_backward_log_q(busy->unrolled, in, 8, &nothing, &error));
    TRY_CALL(dcrf_solver_new(&solver, s->plan, workspace, &settings, &error));
    TRY_CALL(dcrf_solver_start_labels(s->solver, s->labels, &error));
    TRY_CALL(dcrf_solver_start_marginals(s->solver, in, 8, &error));
    TRY_CALL(dcrf_solver_step(s->solver, &error));
    TRY_CALL(dcrf_solver_finish(s->solver, &error));
    TRY_CALL(dcrf_solver_run(s->solver, &error));
    TRY_CALL(dcrf_solver_prove(s->solver, &error));
    TRY_CALL(dcrf_solver_labels_left(s->solver, &label, 1, &error));
    TRY_CALL(dcrf_solver_marginals(s->solver, out, PIXELS * 8, 8, &error));
}

static dcrf_status no_model(void *user, const dcrf_tile *tile, dcrf_model **model,
                            dcrf_error *error) {
    (void)user, (void)tile, (void)model, (void)error;
    return DCRF_ERROR_UNSUPPORTED;
}

static dcrf_status no_result(void *user, const dcrf_tile_result *result, dcrf_error *error) {
    (void)user, (void)result, (void)error;
    return DCRF_OK;
}

static void call_on_images(struct busy *busy) {
    const struct scene *s = &busy->scene;
    dcrf_workspace *workspace = s->workspace;
    const size_t whole[DCRF_MAX_AXES] = {0};
    const dcrf_tile_callbacks callbacks = {.model = no_model, .result = no_result};
    const int32_t strokes[PIXELS] = {0, 1};
    const dcrf_view map = dcrf_view_interleaved(strokes, DCRF_I32, &s->grid, 1);
    const float weight = 1;
    dcrf_error error;
    dcrf_scribbles *scribbles = NULL;
    dcrf_certify_settings certifying;
    dcrf_certify_info certificate;
    dcrf_verification verification;
    dcrf_mask_moves moves;
    dcrf_tiling tiling;
    dcrf_tiles_info tiles;
    dcrf_settings settings;
    dcrf_arrays arrays;
    int32_t regions[PIXELS];
    size_t count;
    double sum;
    float q[PIXELS * LABELS] = {0};
    dcrf_certify_settings_defaults(&certifying);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    dcrf_arrays_defaults(&arrays);
    dcrf_tiling_make(&tiling, &s->grid, whole, whole, NULL);
    TRY_CALL(dcrf_certify(s->plan, workspace, s->labels, &certifying, &certificate, &error));
    TRY_CALL(dcrf_verify_certificate((const uint8_t *)"", 0, s->model, workspace, NULL, NULL, 0,
                                     &verification, &error));
    TRY_CALL(dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings, &tiles,
                              &error));
    TRY_CALL(
        dcrf_superpixels(&s->grid, &s->image, NULL, workspace, regions, PIXELS, &count, &error));
    TRY_CALL(dcrf_mask_energies(&s->grid, &s->image, &map, LABELS, NULL, NULL, workspace, q,
                                PIXELS * LABELS, NULL, &error));
    TRY_CALL(dcrf_mask_compare(&s->grid, &map, s->labels, workspace, &moves, &error));
    TRY_CALL(dcrf_scribbles_new(&scribbles, &s->grid, &s->image, LABELS, NULL, workspace, &error));
    TRY_CALL(dcrf_scribbles_update(busy->scribbles, &error));
    TRY_CALL(dcrf_mean_field_arrays(workspace, &arrays, &error));
    TRY_CALL(dcrf_mean_field_arrays_many(workspace, &arrays, 1, &count, &error));
    TRY_CALL(dcrf_densecrf_set_unary_with(busy->crf, workspace, &s->energies, &error));
    TRY_CALL(dcrf_densecrf_set_device(busy->crf, workspace, &error));
    TRY_CALL(dcrf_densecrf_add_kernel(busy->crf, workspace, &s->kernel, DCRF_DENSECRF_NONE,
                                      DCRF_COMPATIBILITY_POTTS, &weight, &error));
    TRY_CALL(dcrf_densecrf_start(busy->crf, workspace, q, PIXELS * LABELS, &error));
    TRY_CALL(dcrf_densecrf_step(busy->crf, workspace, q, PIXELS * LABELS, &error));
    TRY_CALL(dcrf_densecrf_infer(busy->crf, workspace, 1, q, PIXELS * LABELS, NULL, NULL, &error));
    TRY_CALL(dcrf_densecrf_divergence(busy->crf, workspace, q, &sum, &error));
}

static void call_on_devices(struct busy *busy) {
    dcrf_workspace *workspace = busy->scene.workspace;
    dcrf_error error;
    dcrf_device_memory *memory = NULL;
    dcrf_operator *made = NULL;
    const float from[4] = {0};
    float to[4];
    TRY_CALL(dcrf_workspace_set_device(workspace, "cpu", &error));
    TRY_CALL(dcrf_device_memory_new(&memory, workspace, 8, &error));
    TRY_CALL(dcrf_device_copy(workspace, to, from, sizeof to, &error));
    TRY_CALL(dcrf_device_use_stream(workspace, NULL, &error));
    TRY_CALL(dcrf_device_wait(workspace, NULL, &error));
    TRY_CALL(dcrf_operator_new_on_device(&made, from, 4, 1, 1, 0, 0, workspace, &error));
}

static void *make_calls(void *user) {
    call_on_models(user);
    call_on_images(user);
    call_on_devices(user);
    return NULL;
}

/* While one thread is inside a call, every call from another reports an error. */
static void a_workspace_is_one_threads(void **state) {
    (void)state;
    struct busy busy = {0};
    struct scene *s = &busy.scene;
    dcrf_error error;
    pthread_t thread;
    make(s);
    assert_int_equal(dcrf_unrolled_new(&busy.unrolled, s->plan, s->workspace, 2, &error), DCRF_OK);
    assert_int_equal(dcrf_scribbles_new(&busy.scribbles, &s->grid, &s->image, LABELS, NULL,
                                        s->workspace, &error),
                     DCRF_OK);
    assert_int_equal(dcrf_densecrf_new(&busy.crf, &s->grid, LABELS, &error), DCRF_OK);
    dcrf_workspace *entered = dcrf_workspace_enter(s->workspace, &error);
    assert_non_null(entered);
    assert_int_equal(pthread_create(&thread, NULL, make_calls, &busy), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    dcrf_workspace_leave(&entered);
    if (busy.accepted)
        fail_msg("it runs in two threads: %s", busy.accepted);
    assert_true(busy.called > 44);
    dcrf_densecrf_free(&busy.crf);
    dcrf_scribbles_free(&busy.scribbles);
    dcrf_unrolled_free(&busy.unrolled);
    destroy(s);
}
#endif

static void more_iterations_than_memory(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    dcrf_unrolled *unrolled = NULL;
    make(&s);
    assert_int_equal(dcrf_unrolled_new(&unrolled, s.plan, s.workspace, SIZE_MAX, &error),
                     DCRF_ERROR_MEMORY);
    assert_null(unrolled);
    destroy(&s);
}

static void nothing_to_free(void **state) {
    (void)state;
    dcrf_model *model = NULL;
    dcrf_model_free(&model);
    dcrf_model_free(NULL);
    dcrf_workspace_free(NULL);
    dcrf_operator_free(NULL);
    dcrf_plan_free(NULL);
    dcrf_solver_free(NULL);
    dcrf_densecrf_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_for_a_model),
        cmocka_unit_test(null_for_an_operator),
        cmocka_unit_test(null_for_a_solver),
        cmocka_unit_test(arrays_too_small),
        cmocka_unit_test(null_for_defaults),
        cmocka_unit_test(null_for_a_proof),
        cmocka_unit_test(null_for_a_certificate),
        cmocka_unit_test(any_order_of_freeing),
        cmocka_unit_test(more_iterations_than_memory),
        cmocka_unit_test(nothing_to_free),
#ifndef __wasm__
        cmocka_unit_test(a_workspace_is_one_threads),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
