/* Calls that are cancelled at the first call of the callback, at the second, and so on. They end
 * with the right status and call it at most a few times more, which bounds the work they still do.
 * Also, a workspace that two threads share. */
#include "scene.h"

#include "core/workspace.h"
#include "filter/lattice/lattice.h"
#include "filter/plan.h"
#include "superpixel/regions.h"
#include "verify/certificate.h"

#include <dcrf/certify.h>
#include <dcrf/experimental.h>
#include <dcrf/labelling.h>
#include <dcrf/scribbles.h>
#include <dcrf/solver.h>
#include <dcrf/strength.h>
#include <dcrf/superpixel.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct patience {
    size_t asked, most;
};

static int is_over(void *user) {
    struct patience *patience = user;
    return ++patience->asked > patience->most;
}

/* Several chunks in every loop that calls the callback. */
static struct scene new_large_scene(dcrf_operator_kind kind, size_t threads) {
    struct scene scene = new_scene(dcrf_grid_2d(40, 27), 3, threads, kind, NO_MATRICES);
    for (size_t m = 0; m < KERNELS; m++)
        set_weight(&scene, m, 0.02);
    dcrf_workspace_ask_always(scene.workspace);
    return scene;
}

/* The call under test; returns a success status or an error. */
typedef dcrf_status (*attempt)(struct scene *scene, uint16_t *labels, dcrf_error *error);

static dcrf_status try_plan(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    (void)labels;
    dcrf_plan *plan;
    const dcrf_operator *op = dcrf_plan_operator(scene->plan, 0);
    const dcrf_operator_kind kind =
        dcrf_operator_kind_of(op) == DCRF_OPERATOR_EXACT ? DCRF_OPERATOR_EXACT : DCRF_OPERATOR_FAST;
    const dcrf_status status = dcrf_plan_new(&plan, scene->model, kind, scene->workspace, error);
    assert_true((status < 0) == !plan);
    dcrf_plan_free(&plan);
    return status;
}

static dcrf_status try_energy(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    dcrf_energy energy;
    return dcrf_energy_of_labels(scene->plan, scene->workspace, labels, &energy, NULL, 0, error);
}

static dcrf_status try_double(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    dcrf_energy energy;
    return dcrf_energy_at_most(scene->plan, scene->workspace, labels, &energy, NULL, 0, error);
}

static dcrf_status try_row_sums(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    (void)labels;
    dcrf_status status = DCRF_OK;
    float *sums = malloc(scene->variables * sizeof *sums);
    for (size_t m = 0; m < KERNELS && status == DCRF_OK; m++)
        status = dcrf_operator_row_sums(dcrf_plan_operator(scene->plan, m), scene->workspace, sums,
                                        scene->variables, error);
    free(sums);
    return status;
}

static dcrf_status try_certify(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    dcrf_certify_settings settings;
    dcrf_certify_info certificate;
    dcrf_certify_settings_defaults(&settings);
    settings.iterations = 3;
    return dcrf_certify(scene->plan, scene->workspace, labels, &settings, &certificate, error);
}

/* The hashes of a certificate. */
static dcrf_status try_identity(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    struct dcrf_identity identity;
    (void)labels;
    dcrf_status status =
        dcrf_identity_of_model(&identity, scene->model, false, scene->workspace, error);
    if (status == DCRF_OK)
        status = dcrf_identity_take_matrices(&identity, scene->plan, scene->workspace, error);
    dcrf_identity_clear(&identity);
    return status;
}

static dcrf_status try_regions(struct scene *scene, dcrf_superpixel_method method,
                               dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(60, 70);
    const size_t pixels = grid.size[0] * grid.size[1];
    uint8_t *rgb = malloc(3 * pixels);
    int32_t *regions = malloc(pixels * sizeof *regions);
    dcrf_superpixel_settings settings;
    size_t count;
    dcrf_superpixel_settings_defaults(&settings);
    settings.method = method;
    for (size_t i = 0; i < 3 * pixels; i++)
        rgb[i] = (uint8_t)(i * i / 7);
    const dcrf_view view = dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3);
    const dcrf_status status =
        dcrf_superpixels(&grid, &view, &settings, scene->workspace, regions, pixels, &count, error);
    free(regions);
    free(rgb);
    return status;
}

static dcrf_status try_mean_shift(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    (void)labels;
    return try_regions(scene, DCRF_SUPERPIXEL_MEAN_SHIFT, error);
}

static dcrf_status try_slic(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    (void)labels;
    return try_regions(scene, DCRF_SUPERPIXEL_SLIC, error);
}

/* Regions of one pixel each; must change nothing if it ends early. */
static dcrf_status try_joining(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(80, 70);
    enum { PIXELS = 80 * 70 };
    static uint8_t grey[PIXELS];
    static int32_t regions[PIXELS];
    struct dcrf_colours colours;
    size_t count = PIXELS;
    (void)labels;
    for (int32_t a = 0; a < PIXELS; a++)
        regions[a] = a;
    const dcrf_view view = dcrf_view_interleaved(grey, DCRF_U8, &grid, 1);
    assert_int_equal(dcrf_colours_new(&colours, &grid, &view, DCRF_COLOUR_LUV,
                                      dcrf_workspace_pool(scene->workspace), NULL),
                     DCRF_OK);
    const dcrf_status status =
        dcrf_regions_join_small(regions, &count, &colours, 4, scene->workspace, error);
    for (int32_t a = 0; a < PIXELS && status < 0; a++)
        assert_int_equal(regions[a], a);
    dcrf_colours_clear(&colours);
    return status;
}

#define STROKES_WIDTH 40
#define STROKES_HEIGHT 70
static dcrf_scribbles *scribbles; /* made before the limit is set */

static void make_scribbles(dcrf_workspace *workspace) {
    static uint8_t grey[STROKES_WIDTH * STROKES_HEIGHT];
    const dcrf_grid grid = dcrf_grid_2d(STROKES_WIDTH, STROKES_HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(grey, DCRF_U8, &grid, 1);
    for (size_t a = 0; a < STROKES_WIDTH * STROKES_HEIGHT; a++)
        grey[a] = (uint8_t)(a * a / 11);
    assert_int_equal(dcrf_scribbles_new(&scribbles, &grid, &image, 2, NULL, workspace, NULL),
                     DCRF_OK);
}

static dcrf_status try_scribbles(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    static uint8_t strokes[STROKES_WIDTH * STROKES_HEIGHT];
    const dcrf_grid grid = dcrf_grid_2d(STROKES_WIDTH, STROKES_HEIGHT);
    const dcrf_view drawn = dcrf_view_interleaved(strokes, DCRF_U8, &grid, 1);
    (void)scene;
    (void)labels;
    for (size_t a = 0; a < STROKES_WIDTH * STROKES_HEIGHT; a++)
        strokes[a] = a < STROKES_WIDTH ? (uint8_t)(2 * a / STROKES_WIDTH) : 255;
    assert_int_equal(dcrf_scribbles_set_strokes(scribbles, &drawn, NULL), DCRF_OK);
    return dcrf_scribbles_update(scribbles, error);
}

static void patience_is_respected(struct scene *scene, uint16_t *labels, attempt make,
                                  bool asks_much) {
    for (size_t most = 0;; most += 1 + most / (SANITIZED ? 1 : 3)) {
        struct patience patience = {0, most};
        dcrf_error error = {.message = ""};
        dcrf_workspace_set_limit(scene->workspace, 0, is_over, &patience);
        const dcrf_status status = make(scene, labels, &error);
        dcrf_workspace_set_limit(scene->workspace, 0, NULL, NULL);
        if (patience.asked <= most) {
            assert_true(status >= 0);
            assert_true(!asks_much || most > 3);
            return;
        }
        if (status < 0 && status != DCRF_ERROR_INTERRUPTED)
            fail_msg("at question %zu: %s", most, error.message);
        if (status < 0)
            assert_non_null(strstr(error.message, "interrupted while "));
        /* Once it has cancelled, it is not called again in the same call. */
        assert_int_equal(patience.asked, most + 1);
    }
}

static void every_call_ends(void **state) {
    (void)state;
    static const struct {
        attempt make;
        bool asks_much[2]; /* fast operators, exact operators */
    } attempts[] = {{try_plan, {false, true}},    {try_energy, {false, true}},
                    {try_double, {true, true}},   {try_row_sums, {false, true}},
                    {try_certify, {false, true}}, {try_identity, {true, true}}};
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        /* One thread, which calls back at every chunk: with two, the other may take them all. */
        struct scene scene =
            new_large_scene(is_exact ? DCRF_OPERATOR_EXACT : DCRF_OPERATOR_FAST, 1);
        uint16_t *labels = new_labels(&scene);
        for (size_t k = 0; k < sizeof attempts / sizeof attempts[0]; k++)
            patience_is_respected(&scene, labels, attempts[k].make,
                                  attempts[k].asks_much[is_exact]);
        free(labels);
        free_scene(&scene);
    }
}

static void superpixels_and_scribbles_end(void **state) {
    (void)state;
    struct scene scene = new_large_scene(DCRF_OPERATOR_FAST, 1);
    patience_is_respected(&scene, NULL, try_mean_shift, true);
    patience_is_respected(&scene, NULL, try_slic, true);
    patience_is_respected(&scene, NULL, try_joining, true);
    make_scribbles(scene.workspace);
    /* First, cancelled before the field is run. */
    struct patience none = {0, 0};
    dcrf_error error;
    dcrf_workspace_set_limit(scene.workspace, 0, is_over, &none);
    assert_fails(DCRF_ERROR_INTERRUPTED, "while working with scribbles", error,
                 try_scribbles(&scene, NULL, &error));
    patience_is_respected(&scene, NULL, try_scribbles, true);
    dcrf_scribbles_free(&scribbles);
    free_scene(&scene);
}

/* The number of callback calls at which the call can be cancelled with a message containing these
 * words. */
static size_t questions(struct scene *scene, attempt make, const char *words) {
    for (size_t most = 0, count = 0;; most++) {
        struct patience patience = {0, most};
        dcrf_error error = {.message = ""};
        dcrf_workspace_set_limit(scene->workspace, 0, is_over, &patience);
        const dcrf_status status = make(scene, NULL, &error);
        dcrf_workspace_set_limit(scene->workspace, 0, NULL, NULL);
        if (status == DCRF_OK)
            return count;
        count += strstr(error.message, words) != NULL;
    }
}

static const dcrf_operator *lattice_of(const struct scene *scene) {
    for (size_t m = 0; m < KERNELS; m++)
        if (dcrf_operator_kind_of(dcrf_plan_operator(scene->plan, m)) == DCRF_OPERATOR_LATTICE)
            return dcrf_plan_operator(scene->plan, m);
    fail_msg("there is no lattice");
    return NULL;
}

static dcrf_status try_lattice_in_double(struct scene *scene, uint16_t *labels, dcrf_error *error) {
    const dcrf_operator *op = lattice_of(scene);
    double *in = calloc(2 * scene->variables, sizeof *in);
    (void)labels;
    const dcrf_status status =
        op->methods->apply_double(op, scene->workspace, in, in + scene->variables, 1, error);
    free(in);
    return status;
}

/* Hashes call back once per 4096 numbers of pixels; the lattice at every chunk of its loops but the
 * first. */
static void long_loops_ask(void **state) {
    (void)state;
    enum { WIDTH = 72, HEIGHT = 64 };
    struct scene scene =
        new_scene(dcrf_grid_2d(WIDTH, HEIGHT), 3, 1, DCRF_OPERATOR_FAST, NO_MATRICES);
    dcrf_workspace_ask_always(scene.workspace);
    const size_t rows = (scene.variables + 4095) / 4096,
                 probes = (2 * scene.variables + 4095) / 4096;
    assert_int_equal(questions(&scene, try_identity, "hashing"),
                     rows * (1 + KERNELS) + probes * KERNELS);
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)lattice_of(&scene);
    const size_t blurs = 2 * lattice->corners, chunk_rows = dcrf_even_grain(lattice->vertices, 512);
    assert_int_equal(questions(&scene, try_lattice_in_double, "filtering"),
                     2 * (lattice->runs.sectors.count - 1) +
                         blurs * ((lattice->vertices - 1) / chunk_rows));
    free_scene(&scene);
}

/* Of two calls in a row, the second calls back again. */
static void calls_in_a_row_end(void **state) {
    (void)state;
    struct scene scene = new_large_scene(DCRF_OPERATOR_EXACT, 1);
    uint16_t *labels = new_labels(&scene);
    struct patience patience = {0, 0};
    dcrf_error error;
    dcrf_workspace_set_limit(scene.workspace, 0, is_over, &patience);
    for (size_t k = 0; k < 2; k++)
        assert_fails(DCRF_ERROR_INTERRUPTED, "interrupted while", error,
                     try_energy(&scene, labels, &error));
    assert_int_equal(patience.asked, 2);
    free(labels);
    free_scene(&scene);
}

/* How far an energy in float can be from the one in double, and what the LP adds to it if there is
 * no time for double: at most some hundred successive roundings, far fewer on average. */
static double of_floats(const dcrf_energy *energy) {
    return 128 * 0x1p-24 * fabs(energy->total);
}

/* The energy of a run is at most that of its labels; if it was cut short, it is the float energy,
 * rounded up if there is a bound. */
static void assert_energy(const dcrf_solver_info *info, bool is_whole, const dcrf_energy *at_most,
                          const dcrf_energy *floats) {
    const double found = info->energy.total;
    if (found == at_most->total)
        return;
    assert_false(is_whole);
    if (isnan(info->lower_bound))
        assert_true(found == floats->total);
    else
        assert_true(found >= floats->total && found <= floats->total + of_floats(floats));
}

/* A run stops with the labelling it has and its energy, unless there was no time for the first
 * one. */
static void runs_end_with_what_they_have(void **state) {
    (void)state;
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        struct scene scene =
            new_large_scene(is_exact ? DCRF_OPERATOR_EXACT : DCRF_OPERATOR_FAST, is_exact ? 2 : 1);
        uint16_t *labels = malloc(scene.variables * sizeof *labels);
        float *marginals = malloc(scene.variables * 3 * sizeof *marginals);
        for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++)
            for (size_t most = 0, is_whole = 0; !is_whole; most += 1 + most) {
                struct patience patience = {0, most};
                dcrf_settings settings;
                dcrf_solver *solver;
                dcrf_solver_info info;
                dcrf_energy energy, at_most;
                dcrf_settings_defaults(&settings, method);
                settings.iterations = 3;
                settings.cancel = is_over;
                settings.cancel_user = &patience;
                assert_int_equal(
                    dcrf_solver_new(&solver, scene.plan, scene.workspace, &settings, NULL),
                    DCRF_OK);
                const dcrf_status stop = dcrf_solver_run(solver, NULL);
                is_whole = patience.asked <= most;
                assert_true(is_whole ? stop > 0 && stop != DCRF_STOP_CANCELLED : stop > 0);
                dcrf_solver_get_info(solver, &info);
                dcrf_solver_labels(solver, labels, scene.variables, NULL);
                assert_int_equal(
                    dcrf_solver_marginals(solver, marginals, scene.variables * 3, 3, NULL),
                    DCRF_OK);
                assert_int_equal(dcrf_energy_of_labels(scene.plan, scene.workspace, labels, &energy,
                                                       NULL, 0, NULL),
                                 DCRF_OK);
                assert_int_equal(dcrf_energy_at_most(scene.plan, scene.workspace, labels, &at_most,
                                                     NULL, 0, NULL),
                                 DCRF_OK);
                if (isnan(info.energy.total))
                    assert_int_equal(stop, DCRF_STOP_CANCELLED);
                else
                    assert_energy(&info, is_whole, &at_most, &energy);
                /* The same solver continues when allowed. */
                patience.most = SIZE_MAX;
                assert_true(dcrf_solver_run(solver, NULL) > 0);
                dcrf_solver_get_info(solver, &info);
                assert_true(info.energy.total <= energy.total + of_floats(&energy));
                dcrf_solver_free(&solver);
            }
        free(marginals);
        free(labels);
        free_scene(&scene);
    }
}

/* A limit of the workspace also applies to the run, and the run names the cause. */
static void time_of_a_workspace(void **state) {
    (void)state;
    struct scene scene = new_large_scene(DCRF_OPERATOR_EXACT, 1);
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_solver_info info;
    dcrf_error error;
    uint16_t *labels = new_labels(&scene);
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    assert_int_equal(dcrf_solver_new(&solver, scene.plan, scene.workspace, &settings, NULL),
                     DCRF_OK);
    dcrf_workspace_set_limit(scene.workspace, 1e-9, NULL, NULL);
    assert_fails(DCRF_ERROR_INTERRUPTED, "the time limit ended while summing up", error,
                 try_energy(&scene, labels, &error));
    assert_int_equal(dcrf_solver_run(solver, &error), DCRF_STOP_TIME);
    dcrf_solver_get_info(solver, &info);
    assert_int_equal(info.iterations, 0);
    assert_true(isnan(info.energy.total));
    dcrf_workspace_set_limit(scene.workspace, 0, NULL, NULL);
    assert_int_equal(dcrf_solver_run(solver, &error), DCRF_STOP_ITERATIONS);
    dcrf_solver_free(&solver);
    free(labels);
    free_scene(&scene);
}

/* Whether there is time for a plan is estimated before it starts; one band is measured even if
 * there is no time. */
static void plans_are_estimated(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(1000, 501); /* larger than a small plan */
    uint8_t *grey = calloc(501, 1000);
    const dcrf_view image = dcrf_view_interleaved(grey, DCRF_U8, &grid, 1);
    const dcrf_kernel kernel = dcrf_kernel_bilateral(50, 10, image, 1);
    struct patience patience = {0, 0};
    dcrf_workspace *workspace;
    dcrf_model *model;
    dcrf_plan *plan;
    dcrf_error error;
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &kernel, &error), DCRF_OK);
    dcrf_workspace_set_limit(workspace, 1e-9, NULL, NULL);
    assert_fails(DCRF_ERROR_INTERRUPTED, "setting up takes about", error,
                 dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error));
    assert_null(plan);
    /* Cancelling ends the estimate too. */
    dcrf_workspace_ask_always(workspace);
    dcrf_workspace_set_limit(workspace, 1e-9, is_over, &patience);
    assert_fails(DCRF_ERROR_INTERRUPTED, "interrupted while", error,
                 dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error));
    dcrf_workspace_set_limit(workspace, 1e9, NULL, NULL);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), DCRF_OK);
    assert_int_equal(dcrf_plan_fits(8, 8, &error), DCRF_OK);
    assert_fails(DCRF_ERROR_INTERRUPTED, "takes about 8 s, and the time limit leaves 4 s", error,
                 dcrf_plan_fits(8, 4, &error));
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    dcrf_workspace_free(&workspace);
    free(grey);
}

/* ---- two threads ---------------------------------------------------------------------------- */

struct intruder {
    struct scene *scene;
    uint16_t *labels;
    dcrf_error error;
    size_t failures;
};

static void *intrude(void *argument) {
    struct intruder *intruder = argument;
    intruder->failures +=
        try_energy(intruder->scene, intruder->labels, &intruder->error) == DCRF_ERROR_ARGUMENT;
    return NULL;
}

/* During a call, another thread makes a call. */
static int let_in(void *user) {
    struct intruder *intruder = user;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, intrude, intruder), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return intruder->failures >= 3;
}

static void one_thread_at_a_time(void **state) {
    (void)state;
    /* A single thread, so that it calls back at every chunk. */
    struct scene scene = new_large_scene(DCRF_OPERATOR_EXACT, 1);
    struct intruder intruder = {.scene = &scene, .labels = new_labels(&scene)};
    dcrf_workspace_set_limit(scene.workspace, 0, let_in, &intruder);
    assert_int_equal(try_row_sums(&scene, NULL, NULL), DCRF_ERROR_INTERRUPTED);
    assert_int_equal(intruder.failures, 3);
    assert_non_null(strstr(intruder.error.message, "in use by another thread"));
    dcrf_workspace_set_limit(scene.workspace, 0, NULL, NULL);
    intrude(&intruder); /* no call is in progress */
    assert_int_equal(intruder.failures, 3);
    free(intruder.labels);
    free_scene(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_ends),
        cmocka_unit_test(superpixels_and_scribbles_end),
        cmocka_unit_test(long_loops_ask),
        cmocka_unit_test(calls_in_a_row_end),
        cmocka_unit_test(runs_end_with_what_they_have),
        cmocka_unit_test(time_of_a_workspace),
        cmocka_unit_test(plans_are_estimated),
        cmocka_unit_test(one_thread_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
