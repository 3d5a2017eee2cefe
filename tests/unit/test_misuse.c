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
    size_t called, refused;
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
    assert_null_is_refused(dcrf_operator_row_sums(NULL, s.workspace, block, &error));
    assert_null_is_refused(dcrf_operator_row_sums(planned, s.workspace, NULL, &error));
    assert_null_is_refused(dcrf_operator_diagonal(planned, NULL, block, &error));
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
    dcrf_proof *proof = NULL;
    dcrf_proof_settings settings;
    float marginals[PIXELS * LABELS] = {9};
    uint16_t out[PIXELS] = {9};
    make(&s);
    assert_true(dcrf_solver_run(s.solver, &error) > 0);
    dcrf_proof_settings_defaults(&settings);
    assert_int_equal(dcrf_proof_new(&proof, s.solver, &settings, &error), DCRF_OK);
    const size_t few = PIXELS - 1, few_floats = PIXELS * LABELS - 1;
    assert_fails(DCRF_ERROR_SIZE, "the labels", error,
                 dcrf_solver_labels(s.solver, out, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the counts", error,
                 dcrf_solver_labels_left(s.solver, out, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the labels", error, dcrf_proof_labels(proof, out, few, &error));
    assert_fails(DCRF_ERROR_SIZE, "the counts", error, dcrf_proof_counts(proof, out, few, &error));
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
    dcrf_proof_free(&proof);
    destroy(&s);
}

static void null_for_defaults(void **state) {
    (void)state;
    dcrf_settings_defaults(NULL, DCRF_METHOD_LP);
    dcrf_arrays_defaults(NULL);
    dcrf_certify_settings_defaults(NULL);
    dcrf_mask_settings_defaults(NULL);
    dcrf_proof_settings_defaults(NULL);
    dcrf_scribbles_settings_defaults(NULL);
    dcrf_superpixel_settings_defaults(NULL);
}

static void null_for_a_proof(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    dcrf_proof *proof = NULL;
    dcrf_proof_info info;
    dcrf_proof_settings settings;
    uint16_t counts[PIXELS] = {7};
    size_t size = 7;
    make(&s);
    dcrf_proof_settings_defaults(&settings);
    assert_null_is_refused(dcrf_proof_new(NULL, s.solver, &settings, &error));
    assert_null_is_refused(dcrf_proof_new(&proof, NULL, &settings, &error));
    assert_null_is_refused(dcrf_proof_new(&proof, s.solver, NULL, &error));
    memset(&info, 0xa5, sizeof info);
    dcrf_proof_get_info(NULL, &info);
    assert_int_equal(info.variables, 0);
    assert_null(dcrf_proof_possible(NULL));
    assert_null(dcrf_proof_certificate(NULL, &size));
    assert_int_equal(size, 0);
    s.labels[0] = 9;
    dcrf_proof_labels(NULL, s.labels, PIXELS, NULL);
    assert_int_equal(s.labels[0], 9);
    dcrf_proof_counts(NULL, counts, PIXELS, NULL);
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
    dcrf_proof *proof = NULL;
    dcrf_proof_info info;
    dcrf_proof_settings settings;
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
    dcrf_proof_settings_defaults(&settings);
    settings.certificate = 1;
    assert_int_equal(dcrf_proof_new(&proof, s.solver, &settings, &error), DCRF_OK);
    dcrf_solver_labels(s.solver, s.labels, PIXELS, NULL);
    dcrf_solver_free(&s.solver);
    assert_int_equal(dcrf_unrolled_forward(unrolled, NULL, block, PIXELS * 8, 8, &error), DCRF_OK);
    dcrf_unrolled_free(&unrolled);
    dcrf_proof_get_info(proof, &info);
    dcrf_proof_labels(proof, s.labels, PIXELS, NULL);
    dcrf_proof_counts(proof, NULL, PIXELS, NULL);
    dcrf_proof_labels(proof, NULL, PIXELS, NULL);
    dcrf_proof_counts(proof, counts, PIXELS, NULL);
    for (size_t a = 0; a < PIXELS; a++)
        assert_true(counts[a] >= 1 && dcrf_proof_possible(proof)[a * LABELS + s.labels[a]]);
    dcrf_proof_free(&proof);
    destroy(&s);
}

#ifndef __wasm__
/* Calls that use a workspace, by number; a positive status if there are no more. */
static dcrf_status call(struct scene *s, int number, dcrf_error *error) {
    float block[PIXELS * 8] = {0};
    uint16_t label;
    dcrf_energy energy;
    dcrf_certify_info certificate;
    dcrf_verification verification;
    dcrf_certify_settings settings;
    dcrf_operator *op = NULL;
    dcrf_plan *plan = NULL;
    const dcrf_operator *planned = dcrf_plan_operator(s->plan, 0);
    dcrf_certify_settings_defaults(&settings);
    switch (number) {
    case 0:
        return dcrf_best_constant(s->plan, s->workspace, &label, &energy, error);
    case 1:
        return dcrf_energy_of_labels(s->plan, s->workspace, s->labels, &energy, NULL, 0, error);
    case 2:
        return dcrf_energy_at_most(s->plan, s->workspace, s->labels, &energy, NULL, 0, error);
    case 3:
        return dcrf_certify(s->plan, s->workspace, s->labels, &settings, &certificate, error);
    case 4:
        return dcrf_verify_certificate((const uint8_t *)"", 0, s->model, s->workspace, NULL, NULL,
                                       0, &verification, error);
    case 5:
        return dcrf_operator_row_sums(planned, s->workspace, block, error);
    case 6:
        return dcrf_operator_diagonal(planned, s->workspace, block, error);
    case 7:
        return dcrf_operator_new(&op, &s->grid, &s->kernel, DCRF_OPERATOR_EXACT, s->workspace,
                                 error);
    case 8:
        return dcrf_plan_new(&plan, s->model, DCRF_OPERATOR_EXACT, s->workspace, error);
    case 9:
        return dcrf_solver_run(s->solver, error);
    default:
        return DCRF_STOP_ITERATIONS;
    }
}

static void *make_calls(void *user) {
    struct scene *s = user;
    dcrf_error error = {DCRF_OK, ""};
    for (int k = 0; call(s, k, &error) <= 0; k++) {
        s->refused += strstr(error.message, "in use by another thread") != NULL;
        s->called++;
        error = (dcrf_error){DCRF_OK, ""};
    }
    return NULL;
}

/* While one thread is inside a call, every call from another reports an error. */
static void a_workspace_is_one_threads(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    pthread_t thread;
    make(&s);
    dcrf_workspace *entered = dcrf_workspace_enter(s.workspace, &error);
    assert_non_null(entered);
    assert_int_equal(pthread_create(&thread, NULL, make_calls, &s), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    dcrf_workspace_leave(&entered);
    assert_true(s.called >= 10);
    assert_int_equal(s.refused, s.called);
    destroy(&s);
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
    dcrf_proof_free(NULL);
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
