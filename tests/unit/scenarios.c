#include "scenarios.h"

#include "dense.h"

#include "core/error.h"
#include "core/owned.h"
#include "core/workspace.h"
#include "lp/lp.h"
#include "model/kernel.h"
#include "solver/solver.h"

#include <dcrf/dcrf.h>
#include <stdlib.h>

#define WIDTH 6
#define HEIGHT 5
#define LABELS 2

static const uint8_t *test_image(void) {
    static uint8_t image[WIDTH * HEIGHT * 3];
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(i * 37);
    return image;
}

static dcrf_kernel bilateral_kernel(void) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    return dcrf_kernel_bilateral(3, 40, dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 3), 1);
}

static dcrf_status make_workspace(dcrf_error *error) {
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    const dcrf_status status = dcrf_workspace_new(&workspace, 3, error);
    /* A failure leaves the handle NULL. */
    if ((status < 0) != (workspace == NULL))
        return DCRF_ERROR_ARGUMENT;
    return status;
}

static dcrf_status make_features(dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel kernel = bilateral_kernel();
    struct dcrf_features features;
    const dcrf_status status = dcrf_features_new(&features, &grid, &kernel, error);
    if (status == DCRF_OK)
        dcrf_features_clear(&features);
    return status;
}

/* ---- operators: planned, applied, ordered --------------------------------------------------- */

static dcrf_status use_operator(const dcrf_kernel *kernel, dcrf_operator_kind kind,
                                dcrf_error *error) {
    enum { VARIABLES = WIDTH * HEIGHT, CHANNELS = 3 };
    static float in[VARIABLES * DCRF_LANES], out[VARIABLES * DCRF_LANES];
    const float thresholds[] = {0.25f, 0.5f, 0.75f};
    const float nodes[] = {0, 1}, table[] = {0, 1, -1, 0};
    const dcrf_levels sign = {.count = 4, .levels = thresholds};
    const dcrf_levels interpolated = {.count = 2, .levels = nodes, .table = table};
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_operator_free) dcrf_operator *op = NULL;
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++)
        in[i] = (float)(i % 7) / 7;
    TRY(dcrf_workspace_new(&workspace, 1, error));
    TRY(dcrf_operator_new(&op, &grid, kernel, kind, workspace, error));
    TRY(dcrf_operator_apply(op, workspace, DCRF_SYMMETRIC, in, out,
                            dcrf_operator_variables(op) * DCRF_LANES, CHANNELS, DCRF_LANES, error));
    TRY(dcrf_operator_ordered(op, workspace, &interpolated, in, out,
                              dcrf_operator_variables(op) * DCRF_LANES, CHANNELS, DCRF_LANES,
                              error));
    TRY(dcrf_operator_ordered(op, workspace, &sign, in, out,
                              dcrf_operator_variables(op) * DCRF_LANES, CHANNELS, DCRF_LANES,
                              error));
    TRY(dcrf_operator_diagonal(op, workspace, out, dcrf_operator_variables(op), error));
    return dcrf_operator_row_sums(op, workspace, out, dcrf_operator_variables(op), error);
}

static dcrf_status use_exact(dcrf_error *error) {
    const dcrf_kernel kernel = bilateral_kernel();
    return use_operator(&kernel, DCRF_OPERATOR_EXACT, error);
}

static dcrf_status use_grid(dcrf_error *error) {
    const dcrf_kernel kernel = dcrf_kernel_spatial(1.5, 1);
    return use_operator(&kernel, DCRF_OPERATOR_GRID, error);
}

static dcrf_status use_lattice(dcrf_error *error) {
    const dcrf_kernel kernel = bilateral_kernel();
    return use_operator(&kernel, DCRF_OPERATOR_LATTICE, error);
}

/* Without normalization, so that it is calibrated. */
static dcrf_status use_calibrated_lattice(dcrf_error *error) {
    dcrf_kernel kernel = bilateral_kernel();
    kernel.normalization = DCRF_NORMALIZE_NONE;
    return use_operator(&kernel, DCRF_OPERATOR_LATTICE, error);
}

/* ---- a model, its plan and its energies ----------------------------------------------------- */

static dcrf_status build_model(dcrf_model *model, dcrf_error *error) {
    static const float unary[WIDTH * HEIGHT * LABELS], matrix[LABELS * LABELS] = {0, 1, 1, 0};
    static const size_t offsets[] = {0, 2, 4}, members[] = {0, 1, 2, 3};
    static const double costs[] = {1, 2};
    static const uint8_t regions[WIDTH * HEIGHT];
    const dcrf_grid *grid = dcrf_model_grid(model);
    const dcrf_view energies = dcrf_view_planar(unary, DCRF_F32, grid, LABELS);
    const dcrf_view map = dcrf_view_interleaved(regions, DCRF_U8, grid, 1);
    const dcrf_view image = dcrf_view_interleaved(test_image(), DCRF_U8, grid, 3);
    const dcrf_kernel spatial = dcrf_kernel_spatial(1.5, 1), bilateral = bilateral_kernel();
    TRY(dcrf_model_set_unary(model, &energies, error));
    TRY(dcrf_model_add_kernel(model, &spatial, error));
    TRY(dcrf_model_add_kernel(model, &bilateral, error));
    TRY(dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, matrix, error));
    TRY(dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_POTTS, NULL, error));
    TRY(dcrf_model_set_cliques(model, 2, offsets, members, costs, error));
    TRY(dcrf_model_set_clique_map(model, &map, 1, error));
    return dcrf_model_set_clique_costs(model, &image, 20, 100, error);
}

static dcrf_status use_model(dcrf_error *error) {
    static const uint16_t labels[WIDTH * HEIGHT];
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = NULL;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = NULL;
    dcrf_energy energy;
    double of_kernel[2], reach;
    TRY(dcrf_model_new(&model, &grid, LABELS, error));
    TRY(build_model(model, error));
    TRY(dcrf_workspace_new(&workspace, 2, error));
    TRY(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, error));
    TRY(dcrf_plan_reach(plan, 1, workspace, &reach, error));
    return dcrf_energy_of_labels(plan, workspace, labels, &energy, of_kernel, 2, error);
}

/* ---- solvers -------------------------------------------------------------------------------- */

/* Once there is a solver, it holds a labelling, whatever fails. */
static dcrf_status run_solver(dcrf_solver *solver, dcrf_error *error) {
    uint16_t labels[WIDTH * HEIGHT];
    dcrf_solver_info info;
    dcrf_status status = dcrf_solver_run(solver, error);
    dcrf_solver_get_info(solver, &info);
    dcrf_solver_labels(solver, labels, WIDTH * HEIGHT, NULL);
    for (size_t a = 0; a < WIDTH * HEIGHT; a++)
        assert_true(labels[a] < LABELS);
    /* Optional parts were left out, and the run continued to its end. */
    if (status >= 0) {
        assert_true(info.energy.total < 1e6 && info.stop > 0);
        status = info.left_out < 0 ? info.left_out : info.proof_stop;
    }
    if (status >= 0)
        status = dcrf_solver_start_labels(solver, labels, error);
    return status;
}

static dcrf_status prove(dcrf_solver *solver, const dcrf_model *model, dcrf_workspace *workspace,
                         dcrf_error *error) {
    dcrf_solver_info info;
    dcrf_status status = dcrf_solver_prove(solver, error);
    dcrf_solver_get_info(solver, &info);
    if (status == DCRF_OK)
        status = info.left_out;
    if (status == DCRF_OK) {
        dcrf_verification found;
        size_t size;
        const uint8_t *bytes = dcrf_proof_certificate(dcrf_solver_proof(solver), &size);
        status =
            dcrf_verify_certificate(bytes, size, model, workspace, NULL, NULL, 0, &found, error);
    }
    return status;
}

/* No cliques on a device, so that mean field runs there too. */
static dcrf_status solve(dcrf_method method, dcrf_compatibility compatibility, const char *device,
                         dcrf_error *error) {
    static const float values[] = {0.25f, 1, 1, 0}; /* not a multiple of Potts */
    static const size_t none;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = NULL;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = NULL;
    DCRF_AT_END(dcrf_solver_free) dcrf_solver *solver = NULL;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, method);
    settings.rounding_draws = 1;
    settings.trace = 1;
    settings.proof = method == DCRF_METHOD_LP ? DCRF_PROVE_CERTIFICATE : DCRF_PROVE_BY_GAP;
    TRY(dcrf_model_new(&model, &grid, LABELS, error));
    TRY(build_model(model, error));
    TRY(dcrf_model_set_compatibility(model, 1, compatibility, values, error));
    if (strcmp(device, "cpu") != 0)
        TRY(dcrf_model_set_cliques(model, 0, &none, NULL, NULL, error));
    TRY(dcrf_workspace_new(&workspace, 2, error));
    TRY(dcrf_workspace_set_device(workspace, device, error));
    TRY(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, error));
    TRY(dcrf_solver_new(&solver, plan, workspace, &settings, error));
    TRY(run_solver(solver, error));
    if (method == DCRF_METHOD_LP)
        TRY(prove(solver, model, workspace, error));
    return DCRF_OK;
}

static dcrf_status solve_mean_field(dcrf_error *error) {
    return solve(DCRF_METHOD_MF, DCRF_COMPATIBILITY_POTTS, "cpu", error);
}

static dcrf_status solve_qp(dcrf_error *error) {
    return solve(DCRF_METHOD_QP, DCRF_COMPATIBILITY_MATRIX, "cpu", error);
}

static dcrf_status solve_lp(dcrf_error *error) {
    return solve(DCRF_METHOD_LP, DCRF_COMPATIBILITY_POTTS, "cpu", error);
}

/* A strip whose best labelling is constant, though its left part disagrees. */
static dcrf_status solve_lp_off_the_corner(dcrf_error *error) {
    enum { LENGTH = 24, BREADTH = 4, LEFT = 8 };
    static float unary[LENGTH * BREADTH * LABELS];
    const dcrf_grid grid = dcrf_grid_2d(LENGTH, BREADTH);
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1.5, 12);
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = NULL;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = NULL;
    DCRF_AT_END(dcrf_solver_free) dcrf_solver *solver = NULL;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.polish = 0;
    for (size_t a = 0; a < LENGTH * BREADTH; a++)
        unary[a * LABELS + (a % LENGTH < LEFT ? 0 : 1)] = 1;
    TRY(dcrf_model_new(&model, &grid, LABELS, error));
    TRY(dcrf_model_set_unary(model, &view, error));
    TRY(dcrf_model_add_kernel(model, &kernel, error));
    TRY(dcrf_workspace_new(&workspace, 1, error));
    TRY(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, error));
    TRY(dcrf_solver_new(&solver, plan, workspace, &settings, error));
    const dcrf_status status = dcrf_solver_run(solver, error);
    dcrf_solver_info info;
    dcrf_solver_get_info(solver, &info);
    /* Without memory for the flow the corner is the start. */
    assert_true(status < 0 || info.left_out < 0 ||
                ((const struct dcrf_lp *)solver->state)->huber.lift.is_on);
    return status < 0 ? status : info.left_out;
}

static dcrf_status solve_mean_field_on_device(dcrf_error *error) {
    return solve(DCRF_METHOD_MF, DCRF_COMPATIBILITY_POTTS, "cuda", error);
}

static dcrf_status solve_qp_on_device(dcrf_error *error) {
    return solve(DCRF_METHOD_QP, DCRF_COMPATIBILITY_MATRIX, "cuda", error);
}

/* Host arrays for input and output, and one device array. */
static dcrf_status use_arrays(const char *device, dcrf_error *error) {
    static float q[WIDTH * HEIGHT * LABELS];
    static uint16_t labels[WIDTH * HEIGHT];
    static const float logits[WIDTH * HEIGHT * LABELS] = {1, -1, 2};
    const dcrf_kernel kernels[] = {bilateral_kernel()};
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_device_memory_free) dcrf_device_memory *memory = NULL;
    dcrf_arrays arrays;
    dcrf_arrays_defaults(&arrays);
    arrays.grid = dcrf_grid_2d(WIDTH, HEIGHT);
    arrays.unary = dcrf_view_planar(logits, DCRF_F32, &arrays.grid, LABELS);
    arrays.unary_kind = DCRF_UNARY_LOGITS;
    arrays.kernels = kernels;
    arrays.kernel_count = 1;
    arrays.operator_kind = DCRF_OPERATOR_EXACT;
    arrays.marginals = dcrf_output_planar(q, DCRF_F32, &arrays.grid, LABELS);
    arrays.labels = dcrf_output_planar(labels, DCRF_U16, &arrays.grid, 1);
    dcrf_status status = dcrf_workspace_new(&workspace, 1, error);
    if (status == DCRF_OK)
        status = dcrf_workspace_set_device(workspace, device, error);
    if (status == DCRF_OK && strcmp(device, "cpu") != 0)
        status = dcrf_device_memory_new(&memory, workspace, sizeof q, error);
    if (memory)
        arrays.marginals.data = dcrf_device_memory_data(memory);
    if (status == DCRF_OK)
        status = dcrf_mean_field_arrays(workspace, &arrays, error);
    return status;
}

static dcrf_status use_arrays_here(dcrf_error *error) {
    return use_arrays("cpu", error);
}

static dcrf_status use_arrays_on_device(dcrf_error *error) {
    return use_arrays("cuda", error);
}

static dcrf_status solve_lp_on_device(dcrf_error *error) {
    return solve(DCRF_METHOD_LP, DCRF_COMPATIBILITY_POTTS, "cuda", error);
}

/* ---- tiles ---------------------------------------------------------------------------------- */

static dcrf_status model_of_tile(void *user, const dcrf_tile *tile, dcrf_model **model,
                                 dcrf_error *error) {
    static const float unary[WIDTH * HEIGHT * LABELS] = {0, 1, 1, 0, 0, 1};
    const dcrf_grid grid = dcrf_tiling_window(user, tile);
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_kernel kernel = bilateral_kernel();
    TRY(dcrf_model_new(model, &grid, LABELS, error));
    TRY(dcrf_model_set_unary(*model, &view, error));
    return dcrf_model_add_kernel(*model, &kernel, error);
}

static dcrf_status look_at_tile(void *user, const dcrf_tile_result *result, dcrf_error *error) {
    (void)user, (void)error;
    assert_true(result->labels[0] < LABELS);
    return DCRF_OK;
}

static dcrf_status use_tiles(dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const size_t window[DCRF_MAX_AXES] = {WIDTH / 2 + 2, 0, 0}, overlap[DCRF_MAX_AXES] = {1, 1, 1};
    dcrf_tiling tiling;
    dcrf_workspace *workspace = NULL;
    dcrf_settings settings;
    dcrf_tiles_info info = {0};
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    dcrf_status status = dcrf_tiling_make(&tiling, &grid, window, overlap, error);
    const dcrf_tile_callbacks callbacks = {
        .model = model_of_tile, .result = look_at_tile, .user = &tiling};
    if (status == DCRF_OK)
        status = dcrf_workspace_new(&workspace, 1, error);
    if (status == DCRF_OK)
        status = dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings,
                                  &info, error);
    dcrf_workspace_free(&workspace);
    if (status == DCRF_OK && info.left_out < 0) {
        /* There is a labelling anyway; report what was left out. */
        *error = (dcrf_error){info.left_out, "out of memory: a part was left out"};
        status = info.left_out;
    }
    return status;
}

/* ---- superpixels ---------------------------------------------------------------------------- */

static dcrf_status use_superpixels(dcrf_superpixel_method method, dcrf_error *error) {
    static int32_t regions[WIDTH * HEIGHT];
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 3);
    dcrf_superpixel_settings settings;
    dcrf_superpixel_settings_defaults(&settings);
    settings.method = method;
    settings.min_region_px = 4;
    settings.region_size_px = 2; /* several regions, so that some are joined */
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    size_t count;
    TRY(dcrf_workspace_new(&workspace, 1, error));
    return dcrf_superpixels(&grid, &image, &settings, workspace, regions, WIDTH * HEIGHT, &count,
                            error);
}

static dcrf_status use_mean_shift(dcrf_error *error) {
    return use_superpixels(DCRF_SUPERPIXEL_MEAN_SHIFT, error);
}

static dcrf_status use_slic(dcrf_error *error) {
    return use_superpixels(DCRF_SUPERPIXEL_SLIC, error);
}

static dcrf_status use_slic_of_a_volume(dcrf_error *error) {
    static int32_t regions[WIDTH * HEIGHT * 3];
    const dcrf_grid grid = dcrf_grid_3d(WIDTH, HEIGHT, 3);
    const dcrf_view image = dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 1);
    dcrf_superpixel_settings settings;
    dcrf_superpixel_settings_defaults(&settings);
    settings.method = DCRF_SUPERPIXEL_SLIC;
    settings.min_region_px = 4;
    settings.region_size_px = 2;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    size_t count;
    TRY(dcrf_workspace_new(&workspace, 1, error));
    return dcrf_superpixels(&grid, &image, &settings, workspace, regions, WIDTH * HEIGHT * 3,
                            &count, error);
}

/* ---- the compatible mean field -------------------------------------------------------------- */

/* More than the fake device supports (tests/device/fake_compat.c). */
#define MANY_FEATURES 7

/* The device does not support the last kernel, so the model moves back to the host. */
static dcrf_status use_densecrf(const char *device, dcrf_error *error) {
    static const float unary[WIDTH * HEIGHT * LABELS], matrix[LABELS * LABELS] = {-1, 0, 0, -2};
    static float q[WIDTH * HEIGHT * LABELS];
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view view = dcrf_view_planar(unary, DCRF_F32, &grid, LABELS);
    const dcrf_kernel kernel = bilateral_kernel();
    static const float features[WIDTH * HEIGHT * MANY_FEATURES];
    const dcrf_kernel many =
        dcrf_kernel_features(dcrf_view_interleaved(features, DCRF_F32, &grid, MANY_FEATURES), 1);
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_densecrf_free) dcrf_densecrf *crf = NULL;
    double divergence;
    dcrf_status status = dcrf_workspace_new(&workspace, 1, error);
    if (status == DCRF_OK)
        status = dcrf_workspace_set_device(workspace, device, error);
    if (status == DCRF_OK)
        status = dcrf_densecrf_new(&crf, &grid, LABELS, error);
    if (status == DCRF_OK)
        status = dcrf_densecrf_set_unary(crf, &view, error);
    if (status == DCRF_OK)
        status = dcrf_densecrf_add_kernel(crf, workspace, &kernel, DCRF_DENSECRF_SYMMETRIC,
                                          DCRF_COMPATIBILITY_MATRIX, matrix, error);
    if (status == DCRF_OK)
        status =
            dcrf_densecrf_infer(crf, workspace, 2, q, WIDTH * HEIGHT * LABELS, NULL, NULL, error);
    if (status == DCRF_OK)
        status = dcrf_densecrf_step(crf, workspace, q, WIDTH * HEIGHT * LABELS, error);
    if (status == DCRF_OK)
        status = dcrf_densecrf_divergence(crf, workspace, q, &divergence, error);
    if (status == DCRF_OK && strcmp(device, "cpu") != 0) {
        assert_string_equal(dcrf_densecrf_device(crf), "cuda:0");
        status = dcrf_densecrf_add_kernel(crf, workspace, &many, DCRF_DENSECRF_SYMMETRIC,
                                          DCRF_COMPATIBILITY_POTTS, matrix, error);
        assert_int_equal(dcrf_densecrf_kernels(crf), status == DCRF_OK ? 2 : 1);
        assert_string_equal(dcrf_densecrf_device(crf), status == DCRF_OK ? "cpu" : "cuda:0");
        if (status == DCRF_OK)
            status = dcrf_densecrf_infer(crf, workspace, 1, q, WIDTH * HEIGHT * LABELS, NULL, NULL,
                                         error);
    }
    return status;
}

/* Large enough for three threads to have their own vertices. */
static dcrf_status use_densecrf_threads(dcrf_error *error) {
    static unsigned char picture[80 * 80 * 3];
    static float q[80 * 80 * LABELS];
    const dcrf_grid grid = dcrf_grid_2d(80, 80);
    const dcrf_view image = dcrf_view_interleaved(picture, DCRF_U8, &grid, 3);
    const dcrf_kernel kernel = dcrf_kernel_bilateral(20, 10, image, 1);
    const float weight = 1;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_densecrf_free) dcrf_densecrf *crf = NULL;
    for (size_t i = 0; i < sizeof picture; i++)
        picture[i] = (unsigned char)(i * 7 % 96);
    TRY(dcrf_workspace_new(&workspace, 3, error));
    TRY(dcrf_densecrf_new(&crf, &grid, LABELS, error));
    TRY(dcrf_densecrf_add_kernel(crf, workspace, &kernel, DCRF_DENSECRF_SYMMETRIC,
                                 DCRF_COMPATIBILITY_POTTS, &weight, error));
    return dcrf_densecrf_infer(crf, workspace, 1, q, 80 * 80 * LABELS, NULL, NULL, error);
}

static dcrf_status use_densecrf_here(dcrf_error *error) {
    return use_densecrf("cpu", error);
}

static dcrf_status use_densecrf_on_device(dcrf_error *error) {
    return use_densecrf("cuda", error);
}

static dcrf_status enlarge_unary(dcrf_error *error) {
    static const float values[4 * LABELS];
    static float energies[WIDTH * HEIGHT * LABELS];
    const dcrf_grid small = dcrf_grid_2d(2, 2), grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view view = dcrf_view_interleaved(values, DCRF_F32, &small, LABELS);
    const dcrf_view guide = dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 3);
    const dcrf_status status = dcrf_unary_energies(&view, &small, DCRF_UNARY_LOGITS, 2, &grid, NULL,
                                                   energies, WIDTH * HEIGHT * LABELS, error);
    return status < 0 ? status
                      : dcrf_unary_energies(&view, &small, DCRF_UNARY_LOGITS, 2, &grid, &guide,
                                            energies, WIDTH * HEIGHT * LABELS, error);
}

static dcrf_status use_gradient(dcrf_error *error) {
    enum { VARIABLES = WIDTH * HEIGHT };
    static float block[VARIABLES * DCRF_LANES], features[VARIABLES * 5];
    static double weight[2], sigma[2 * DCRF_MAX_FEATURES], compatibility[2 * LABELS * LABELS];
    float *features_of[2] = {NULL, features};
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel kernels[2] = {dcrf_kernel_spatial(2, 1), bilateral_kernel()};
    dcrf_derivatives wanted = {.weight = weight,
                               .weight_count = 2,
                               .sigma = sigma,
                               .sigma_count = 2 * DCRF_MAX_FEATURES,
                               .compatibility = compatibility,
                               .compatibility_count = 2 * LABELS * LABELS,
                               .features = features_of,
                               .features_count = VARIABLES * 5};
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = NULL;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = NULL;
    DCRF_AT_END(dcrf_unrolled_free) dcrf_unrolled *unrolled = NULL;
    double energy;
    dcrf_status status = dcrf_model_new(&model, &grid, LABELS, error);
    for (size_t m = 0; m < 2 && status == DCRF_OK; m++)
        status = dcrf_model_add_kernel(model, &kernels[m], error);
    if (status == DCRF_OK)
        status = dcrf_workspace_new(&workspace, 1, error);
    if (status == DCRF_OK)
        status = dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, error);
    if (status == DCRF_OK)
        status = dcrf_unrolled_new(&unrolled, plan, workspace, 2, error);
    if (status == DCRF_OK)
        status =
            dcrf_unrolled_forward(unrolled, NULL, block, VARIABLES * DCRF_LANES, DCRF_LANES, error);
    if (status == DCRF_OK)
        status = dcrf_unrolled_backward(unrolled, block, DCRF_LANES, &wanted, error);
    if (status == DCRF_OK)
        status = dcrf_pairwise_gradient(plan, workspace, block, DCRF_NARROW_LANES, &energy, NULL, 0,
                                        &wanted, error);
    return status;
}

static dcrf_status measure_strength(dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 3);
    dcrf_kernel kernels[DCRF_DEFAULT_KERNELS];
    const size_t count = dcrf_default_kernels(&image, kernels);
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = NULL;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    dcrf_measured_strength measured;
    dcrf_status status = dcrf_model_new(&model, &grid, LABELS, error);
    for (size_t k = 0; k < count && status >= 0; k++)
        status = dcrf_model_add_kernel(model, &kernels[k], error);
    if (status >= 0)
        status = dcrf_workspace_new(&workspace, 2, error);
    if (status >= 0)
        status = dcrf_model_measure_strength(model, workspace, &measured, error);
    if (status >= 0) {
        static const uint16_t labels[WIDTH * HEIGHT];
        dcrf_changes changes;
        status = dcrf_changes_of(model, NULL, labels, &measured, NULL, NULL, 0, &changes, error);
    }
    return status;
}

static dcrf_status use_scribbles(dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 3);
    uint8_t strokes[WIDTH * HEIGHT];
    const dcrf_view stroke_view = dcrf_view_interleaved(strokes, DCRF_U8, &grid, 1);
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_scribbles_free) dcrf_scribbles *scribbles = NULL;
    memset(strokes, 255, sizeof strokes);
    strokes[0] = 0;
    strokes[WIDTH * HEIGHT - 1] = 1;
    TRY(dcrf_workspace_new(&workspace, 1, error));
    TRY(dcrf_scribbles_new(&scribbles, &grid, &image, LABELS, NULL, workspace, error));
    TRY(dcrf_scribbles_set_strokes(scribbles, &stroke_view, error));
    return dcrf_scribbles_update(scribbles, error);
}

static dcrf_status use_mask(dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(test_image(), DCRF_U8, &grid, 3);
    static uint8_t map[WIDTH * HEIGHT];
    static uint16_t labelling[WIDTH * HEIGHT];
    static float energies[WIDTH * HEIGHT * LABELS];
    const dcrf_view map_view = dcrf_view_interleaved(map, DCRF_U8, &grid, 1);
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    dcrf_mask_moves moves;
    memset(map, 1, sizeof map / 2);
    TRY(dcrf_workspace_new(&workspace, 1, error));
    TRY(dcrf_mask_energies(&grid, &image, &map_view, LABELS, NULL, NULL, workspace, energies,
                           WIDTH * HEIGHT * LABELS, NULL, error));
    return dcrf_mask_compare(&grid, &map_view, labelling, workspace, &moves, error);
}

/* ---- distances between labels --------------------------------------------------------------- */

static dcrf_status use_distances(dcrf_error *error) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel kernel = bilateral_kernel();
    const size_t ends[] = {0, 3, 1, 3, 2, 3};
    const double lengths[] = {1, 2, 3};
    const float matrix[] = {0, 1, 3, 1, 0, 1, 3, 1, 0};
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = NULL;
    size_t count;
    dcrf_left_out left_out;
    TRY(dcrf_model_new(&model, &grid, 3, error));
    TRY(dcrf_model_add_kernel(model, &kernel, error));
    TRY(dcrf_model_set_linear(model, 0, 1.5, error));
    TRY(dcrf_model_set_tree(model, 0, 3, ends, lengths, error));
    TRY(dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, matrix, error));
    return dcrf_model_count_cuts(model, 0, &count, &left_out, error);
}

enum { LEVELS = 4 };

static dcrf_status use_truncated(dcrf_model *model, dcrf_error *error) {
    return dcrf_model_set_linear(model, 0, 1.5, error);
}

static dcrf_status use_tree(dcrf_model *model, dcrf_error *error) {
    const size_t ends[] = {0, 4, 1, 4, 2, 4, 3, 4};
    const double lengths[] = {1, 0.5, 0.25, 1};
    return dcrf_model_set_tree(model, 0, 4, ends, lengths, error);
}

/* No sum of cuts: the run says what its bound leaves out. */
static dcrf_status use_squares(dcrf_model *model, dcrf_error *error) {
    float squares[LEVELS * LEVELS];
    for (size_t k = 0; k < LEVELS * LEVELS; k++) {
        const float difference = (float)(k / LEVELS) - (float)(k % LEVELS);
        squares[k] = difference * difference / 4;
    }
    return dcrf_model_set_compatibility(model, 0, DCRF_COMPATIBILITY_MATRIX, squares, error);
}

typedef dcrf_status distance_setter(dcrf_model *model, dcrf_error *error);

static dcrf_status make_levels(dcrf_model **model, distance_setter *set, dcrf_error *error) {
    static float unary[WIDTH * HEIGHT * LEVELS];
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1.5, 0.4);
    for (size_t k = 0; k < WIDTH * HEIGHT * LEVELS; k++)
        unary[k] = (float)(k * k % 17) / 8;
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LEVELS);
    TRY(dcrf_model_new(model, &grid, LEVELS, error));
    TRY(dcrf_model_set_unary(*model, &energies, error));
    TRY(dcrf_model_add_kernel(*model, &kernel, error));
    return set(*model, error);
}

/* Solve, prove, and check the certificate. */
static dcrf_status prove_levels(distance_setter *set, dcrf_error *error) {
    DCRF_AT_END(dcrf_model_free) dcrf_model *model = NULL;
    DCRF_AT_END(dcrf_workspace_free) dcrf_workspace *workspace = NULL;
    DCRF_AT_END(dcrf_plan_free) dcrf_plan *plan = NULL;
    DCRF_AT_END(dcrf_solver_free) dcrf_solver *solver = NULL;
    dcrf_settings settings;
    dcrf_solver_info info;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = 3;
    settings.gap = 0;
    settings.proof = DCRF_PROVE_CERTIFICATE;
    TRY(make_levels(&model, set, error));
    TRY(dcrf_workspace_new(&workspace, 1, error));
    TRY(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, error));
    TRY(dcrf_solver_new(&solver, plan, workspace, &settings, error));
    const dcrf_status status = dcrf_solver_run(solver, error);
    dcrf_solver_get_info(solver, &info);
    if (status < 0 || info.left_out < 0 || info.proof_stop < 0)
        return status < 0 ? status : info.left_out < 0 ? info.left_out : info.proof_stop;
    assert_true((info.bound_left_out.energy > 0) == (set == use_squares));
    return prove(solver, model, workspace, error);
}

static dcrf_status prove_truncated(dcrf_error *error) {
    return prove_levels(use_truncated, error);
}

static dcrf_status prove_tree(dcrf_error *error) {
    return prove_levels(use_tree, error);
}

static dcrf_status prove_squares(dcrf_error *error) {
    return prove_levels(use_squares, error);
}

const struct named_scenario scenarios[] = {
    {"a workspace", make_workspace, 5}, /* workspace, pool, workers, two threads */
    {"the features of a kernel", make_features, 1},
    {"the exact operator", use_exact, 5},
    {"the grid operator", use_grid, 5},
    {"the lattice operator", use_lattice, 5},
    {"the lattice operator, calibrated", use_calibrated_lattice, 5},
    {"a model, its plan and its energies", use_model, 20},
    {"mean field", solve_mean_field, 40},
    {"the QP relaxation", solve_qp, 40},
    {"the LP relaxation and a proof", solve_lp, 75},
    {"the LP relaxation off the corner", solve_lp_off_the_corner, 40},
    {"tiles", use_tiles, 40},
    {"mean field on a device", solve_mean_field_on_device, 30},
    {"QP on a device", solve_qp_on_device, 30},
    {"the LP relaxation and a proof on a device", solve_lp_on_device, 75},
    {"mean field of arrays", use_arrays_here, 20},
    {"mean field of arrays on a device", use_arrays_on_device, 6},
    {"the compatible mean field", use_densecrf_here, 30},
    {"the compatible mean field on three threads", use_densecrf_threads, 30},
    {"the compatible mean field on a device", use_densecrf_on_device, 30},
    {"derivatives", use_gradient, 60},
    {"superpixels by mean shift", use_mean_shift, 14}, /* 3 for the workspace, 11 of their own */
    {"superpixels by SLIC", use_slic, 17},
    {"superpixels of a volume", use_slic_of_a_volume, 19},
    {"enlarged unaries", enlarge_unary, 9},
    {"the strength that suits a model", measure_strength, 12},
    {"scribbles", use_scribbles, 40},
    {"distances between labels", use_distances, 30},
    {"the LP of a truncated distance, a proof and a certificate", prove_truncated, 100},
    {"the LP of a tree, a proof and a certificate", prove_tree, 100},
    {"the LP of a matrix that is no sum of cuts", prove_squares, 100},
    {"rough masks", use_mask, 40},
};

const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
