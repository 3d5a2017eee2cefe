/* Devices through src/backend/backend.h, with a fake device (tests/device/fake_backend.c):
 * operators and energies match the CPU's, and the device's errors are reported. The methods are
 * tested in test_device_methods.c. */
#include "elsewhere.h"
#include "places.h"

#include "core/lanes.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the library ---------------------------------------------------------------------------- */

/* Must run before the first test that finds the library, which then stays loaded. */
/* An existing library that is not ours. */
#ifdef __GLIBC__
#define SOME_LIBRARY "libm.so.6"
#else
#define SOME_LIBRARY "libm.so"
#endif

static void says_why_there_is_none(void **state) {
    (void)state;
    size_t count = 7;
    dcrf_device_info info;
    dcrf_error error;
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    setenv("DCRF_CUDA_LIBRARY", "/nowhere/libdcrf-cuda.so.0", 1);
    assert_fails(DCRF_ERROR_DEVICE, "/nowhere/libdcrf-cuda.so.0", error,
                 dcrf_device_count(&count, &error));
    assert_int_equal(count, 0);
    assert_fails(DCRF_ERROR_DEVICE, "/nowhere/libdcrf-cuda.so.0", error,
                 dcrf_device_describe(0, &info, &error));
    assert_fails(DCRF_ERROR_DEVICE, "/nowhere/libdcrf-cuda.so.0", error,
                 dcrf_workspace_set_device(workspace, "cuda", &error));
    setenv("DCRF_CUDA_LIBRARY", __FILE__, 1); /* a file, but not a library */
    assert_fails(DCRF_ERROR_DEVICE, "DCRF_CUDA_LIBRARY: ", error,
                 dcrf_device_count(&count, &error));
    setenv("DCRF_CUDA_LIBRARY", SOME_LIBRARY, 1);
    assert_fails(DCRF_ERROR_DEVICE, "install both from one build", error,
                 dcrf_device_count(&count, &error));
    setenv("DCRF_CUDA_LIBRARY", FAKE_BACKEND, 1);
    setenv("FAKE_VERSION", "4711", 1);
    assert_fails(DCRF_ERROR_DEVICE, "is not of this version of dcrf", error,
                 dcrf_workspace_set_device(workspace, "cuda:1", &error));
    unsetenv("FAKE_VERSION");
    setenv("FAKE_DEVICES", "none", 1);
    assert_fails(DCRF_ERROR_DEVICE, "there is no fake driver", error,
                 dcrf_workspace_set_device(workspace, "cuda", &error));
    setenv("FAKE_DEVICES", "0", 1);
    assert_fails(DCRF_ERROR_DEVICE, "there is no device cuda:0: there are 0", error,
                 dcrf_workspace_set_device(workspace, "cuda", &error));
    unsetenv("FAKE_DEVICES");
    assert_string_equal(dcrf_workspace_device(workspace), "cpu");
    dcrf_workspace_free(&workspace);
}

static void lists_what_there_is(void **state) {
    (void)state;
    size_t count;
    dcrf_device_info info;
    dcrf_error error;
    assert_int_equal(dcrf_device_count(&count, NULL), DCRF_OK);
    assert_int_equal(count, 2);
    assert_int_equal(dcrf_device_describe(1, &info, NULL), DCRF_OK);
    assert_string_equal(info.name, "cuda:1");
    assert_string_equal(info.description, "fake 1");
    assert_true(info.free_bytes < info.memory_bytes);
    assert_fails(DCRF_ERROR_DEVICE, "there is no device cuda:2: there are 2", error,
                 dcrf_device_describe(2, &info, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error, dcrf_device_count(NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error, dcrf_device_describe(0, NULL, &error));
}

static void names_devices(void **state) {
    (void)state;
    static const char *const wrong[] = {"",        "gpu",     "CUDA",      "cuda:",   "cuda:x",
                                        "cuda:1 ", "cuda:-1", "cuda:0001", "cuda :0", "cpu:0"};
    dcrf_error error;
    dcrf_workspace *workspace;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_string_equal(dcrf_workspace_device(workspace), "cpu");
    assert_string_equal(dcrf_workspace_device(NULL), "cpu");
    assert_int_equal(dcrf_workspace_set_device(workspace, "cuda", NULL), DCRF_OK);
    assert_string_equal(dcrf_workspace_device(workspace), "cuda:0");
    assert_int_equal(dcrf_workspace_set_device(workspace, "cuda:1", NULL), DCRF_OK);
    assert_string_equal(dcrf_workspace_device(workspace), "cuda:1");
    /* A failure leaves the workspace unchanged. */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_fails(DCRF_ERROR_ARGUMENT, "devices are cpu, cuda and cuda:N", error,
                     dcrf_workspace_set_device(workspace, wrong[i], &error));
    assert_fails(DCRF_ERROR_DEVICE, "there is no device cuda:2", error,
                 dcrf_workspace_set_device(workspace, "cuda:2", &error));
    setenv("FAKE_FAILURE", "open", 1);
    assert_fails(DCRF_ERROR_DEVICE, "refuses open", error,
                 dcrf_workspace_set_device(workspace, "cuda", &error));
    unsetenv("FAKE_FAILURE");
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_workspace_set_device(workspace, NULL, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "is NULL", error,
                 dcrf_workspace_set_device(NULL, "cpu", &error));
    assert_string_equal(dcrf_workspace_device(workspace), "cuda:1");
    assert_int_equal(dcrf_workspace_set_device(workspace, "cpu", NULL), DCRF_OK);
    assert_string_equal(dcrf_workspace_device(workspace), "cpu");
    dcrf_workspace_free(&workspace);
}

/* ---- toys on a device ----------------------------------------------------------------------- */

/* Both round sums of a few dozen floats: a fraction of 1e-6 of the row sum allows ten roundings. */
static void operators_are_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda");
        float in[MOST * DCRF_LANES] = {0}, out[2][MOST * DCRF_LANES], vector[2][MOST];
        for (size_t k = 0; k < toy.variables * 2; k++)
            in[k / 2 * DCRF_LANES + k % 2] = (float)toy.unary[k];
        for (size_t m = 0; m < TOY_KERNELS; m++) {
            const dcrf_operator *ops[] = {dcrf_plan_operator(toy.plan, m),
                                          dcrf_plan_operator(there.plan, m)};
            dcrf_workspace *workspaces[] = {toy.workspace, there.workspace};
            assert_int_equal(dcrf_operator_kind_of(ops[1]), DCRF_OPERATOR_EXACT);
            for (size_t k = 0; k < 2; k++) {
                assert_int_equal(dcrf_operator_apply(ops[k], workspaces[k], DCRF_SYMMETRIC, in,
                                                     out[k],
                                                     dcrf_operator_variables(ops[k]) * DCRF_LANES,
                                                     2, DCRF_LANES, NULL),
                                 DCRF_OK);
                assert_int_equal(dcrf_operator_row_sums(ops[k], workspaces[k], vector[k],
                                                        dcrf_operator_variables(ops[k]), NULL),
                                 DCRF_OK);
            }
            for (size_t a = 0; a < toy.variables; a++) {
                const double scale = 4 * (double)vector[0][a];
                assert_near((double)vector[1][a], (double)vector[0][a], 1e-6 * scale);
                for (size_t c = 0; c < 2; c++)
                    assert_near((double)out[1][a * DCRF_LANES + c],
                                (double)out[0][a * DCRF_LANES + c], 1e-6 * scale);
            }
            for (size_t k = 0; k < 2; k++)
                assert_int_equal(dcrf_operator_diagonal(ops[k], workspaces[k], vector[k],
                                                        dcrf_operator_variables(ops[k]), NULL),
                                 DCRF_OK);
            for (size_t a = 0; a < toy.variables; a++)
                assert_near((double)vector[1][a], (double)vector[0][a], 1e-6);
        }
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* Features start at the model's origin: the lattices of neighbouring tiles are aligned. */
static void features_have_an_origin(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(4, 3);
    const size_t origin[DCRF_MAX_AXES] = {31, 27, 0};
    const uint8_t colours[12] = {13};
    const dcrf_kernel kernel =
        dcrf_kernel_bilateral(2, 10, dcrf_view_interleaved(colours, DCRF_U8, &grid, 1), 1);
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_workspace *workspace;
    double (*first_feature)(size_t) =
        (double (*)(size_t))find_in_fake("fake_backend_first_feature");
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_set_device(workspace, "cuda", NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_origin(model, origin, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
    assert_near(first_feature(0), 31.0 / 2, 1e-12);
    assert_near(first_feature(1), 27.0 / 2, 1e-12);
    assert_near(first_feature(2), 1.3, 1e-12);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
}

static void energies_are_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct toy toy = toy_of(seed);
        struct elsewhere there = plan_elsewhere(&toy, "cuda:1");
        uint16_t labels[MOST];
        dcrf_energy energy;
        for (size_t a = 0; a < toy.variables; a++)
            labels[a] = (uint16_t)((a * 7 + seed) % toy.labels);
        assert_int_equal(
            dcrf_energy_of_labels(there.plan, there.workspace, labels, &energy, NULL, 0, NULL),
            DCRF_OK);
        assert_near(energy.total, toy_energy(&toy, labels), 1e-5);
        free_elsewhere(&there);
        free_toy(&toy);
    }
}

/* ---- lives ---------------------------------------------------------------------------------- */

/* What was planned on a device stays there, even if the workspace is freed. */
static void plans_outlive_their_workspace(void **state) {
    (void)state;
    struct toy toy = toy_of(2);
    struct elsewhere there = plan_elsewhere(&toy, "cuda:1");
    uint16_t labels[MOST] = {0};
    dcrf_energy energy[2];
    labels[0] = 1;
    assert_int_equal(
        dcrf_energy_of_labels(there.plan, there.workspace, labels, &energy[0], NULL, 0, NULL),
        DCRF_OK);
    assert_int_equal(dcrf_workspace_set_device(there.workspace, "cpu", NULL), DCRF_OK);
    dcrf_workspace_free(&there.workspace);
    assert_int_equal(
        dcrf_energy_of_labels(there.plan, toy.workspace, labels, &energy[1], NULL, 0, NULL),
        DCRF_OK);
    assert_true(energy[0].total == energy[1].total);
    free_elsewhere(&there);
    free_toy(&toy);
}

/* Existing plans with workspaces of the same device, of another device, and of the CPU. */
static void plans_meet_other_workspaces(void **state) {
    (void)state;
    static const char *const devices[] = {"cuda", "cuda:0", "cuda:1", "cpu"};
    struct toy toy = toy_of(4);
    struct elsewhere there = plan_elsewhere(&toy, "cuda");
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    dcrf_solver *expected = run_solver(toy.plan, toy.workspace, &settings, NULL);
    uint16_t labels[2][MOST];
    dcrf_solver_labels(expected, labels[0], MOST, NULL);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        dcrf_workspace *other;
        assert_int_equal(dcrf_workspace_new(&other, 1, NULL), DCRF_OK);
        assert_int_equal(dcrf_workspace_set_device(other, devices[i], NULL), DCRF_OK);
        dcrf_solver *solver = run_solver(there.plan, other, &settings, NULL);
        dcrf_solver_labels(solver, labels[1], MOST, NULL);
        assert_memory_equal(labels[1], labels[0], toy.variables * sizeof labels[0][0]);
        dcrf_solver_free(&solver);
        /* And a plan on the CPU with a workspace that has a device. */
        solver = run_solver(toy.plan, other, &settings, NULL);
        dcrf_solver_labels(solver, labels[1], MOST, NULL);
        assert_memory_equal(labels[1], labels[0], toy.variables * sizeof labels[0][0]);
        dcrf_solver_free(&solver);
        dcrf_workspace_free(&other);
    }
    dcrf_solver_free(&expected);
    free_elsewhere(&there);
    free_toy(&toy);
}

/* A run on a device whose `entry` fails reports it; so does a proof, if the entry is one of the
 * LP. */
static void assert_told(const struct toy *toy, dcrf_method method, const char *entry) {
    dcrf_workspace *workspace;
    dcrf_plan *plan = NULL;
    dcrf_solver *solver = NULL;
    dcrf_settings settings;
    dcrf_error error = {0};
    float q[MOST * 8];
    dcrf_settings_defaults(&settings, method);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_set_device(workspace, "cuda", NULL), DCRF_OK);
    setenv("FAKE_FAILURE", entry, 1);
    dcrf_status status = dcrf_plan_new(&plan, toy->model, DCRF_OPERATOR_EXACT, workspace, &error);
    if (status == DCRF_OK)
        status = dcrf_solver_new(&solver, plan, workspace, &settings, &error);
    if (status == DCRF_OK)
        status = dcrf_solver_run(solver, &error);
    if (status >= 0)
        status = dcrf_solver_marginals(solver, q, MOST * 8, toy->labels, &error);
    if (status >= 0 && method == DCRF_METHOD_LP)
        status = dcrf_solver_prove(solver, &error);
    unsetenv("FAKE_FAILURE");
    if (status != DCRF_ERROR_DEVICE || !strstr(error.message, entry))
        fail_msg("%s: status %d, \"%s\"", entry, (int)status, error.message);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
}

static void failures_are_told(void **state) {
    (void)state;
    static const char *const of_mean_field[] = {
        "operator_new", "diagonal",         "disagreements",  "iterate_make",
        "iterate_read", "mean_field_start", "mean_field_step"};
    static const char *const of_qp[] = {"qp_start", "qp_bend", "qp_move"};
    static const char *const of_lp[] = {
        "lp_make",       "lp_start",       "lp_restart",   "lp_read",   "lp_read_best",
        "lp_reset_best", "lp_find_point",  "lp_advance",   "lp_energy", "lp_labels",
        "sum",           "iterate_labels", "disagreements"};
    static const char *const of_flow[] = {"flow_make", "flow_iterate", "flow_read",
                                          "lp_write_best"};
    static const char *const of_moves[] = {"moves_make",   "moves_load",       "moves_read",
                                           "moves_tables", "moves_find_gains", "moves_change"};
    struct toy toy = toy_of(1), cliques = toy_of(3);
    struct toy general = new_toy(1, 9, 3, 0, 0.2, TOY_GENERAL, 1), strong = strong_toy(0);
    for (size_t i = 0; i < sizeof of_mean_field / sizeof *of_mean_field; i++)
        assert_told(&toy, DCRF_METHOD_MF, of_mean_field[i]);
    for (size_t i = 0; i < sizeof of_qp / sizeof *of_qp; i++)
        assert_told(&toy, DCRF_METHOD_QP, of_qp[i]);
    for (size_t i = 0; i < sizeof of_lp / sizeof *of_lp; i++)
        assert_told(&toy, DCRF_METHOD_LP, of_lp[i]);
    for (size_t i = 0; i < sizeof of_moves / sizeof *of_moves; i++)
        assert_told(&toy, DCRF_METHOD_LP, of_moves[i]);
    assert_told(&cliques, DCRF_METHOD_LP, "lp_find_cliques");
    assert_told(&cliques, DCRF_METHOD_LP, "moves_find_clique_gains");
    for (size_t i = 0; i < sizeof of_flow / sizeof *of_flow; i++)
        assert_told(&strong, DCRF_METHOD_LP, of_flow[i]);
    assert_told(&general, DCRF_METHOD_MF, "apply");
    free_toy(&strong);
    free_toy(&general);
    free_toy(&cliques);
    free_toy(&toy);
}

static void a_full_device_is_told(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(100, 100);
    const dcrf_kernel kernel = dcrf_kernel_spatial(3, 1);
    dcrf_workspace *workspace;
    dcrf_operator *op;
    dcrf_error error;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_set_device(workspace, "cuda", NULL), DCRF_OK);
    assert_fails(DCRF_ERROR_DEVICE, "not for 10000", error,
                 dcrf_operator_new(&op, &grid, &kernel, DCRF_OPERATOR_FAST, workspace, &error));
    assert_null(op);
    dcrf_workspace_free(&workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why_there_is_none), /* first: the library stays loaded */
        cmocka_unit_test(lists_what_there_is),
        cmocka_unit_test(names_devices),
        cmocka_unit_test(operators_are_the_same),
        cmocka_unit_test(features_have_an_origin),
        cmocka_unit_test(energies_are_the_same),
        cmocka_unit_test(plans_outlive_their_workspace),
        cmocka_unit_test(plans_meet_other_workspaces),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(a_full_device_is_told),
        cmocka_unit_test(nothing_is_left), /* must be last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
