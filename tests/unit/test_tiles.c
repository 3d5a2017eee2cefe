/* Tiles: windows against the whole, and what happens when something stops or fails. */
#include "unit.h"

#include "core/rng.h"
#include "core/workspace.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <math.h>
#include <stdlib.h>

/* ---- a picture with grain ------------------------------------------------------------------- */

#define LABELS 2
#define LEVELS 6 /* labels of the scene where they are ordered */
#define SIGMA 5
#define MOST_TILES 32

struct scene {
    dcrf_grid grid;
    size_t label_count;
    float *colours; /* 3 per pixel */
    float *unary;
    size_t models;        /* made so far */
    size_t fail_at;       /* the model that fails; 0: none */
    const char *distance; /* NULL: Potts */
    /* Only every `tile_step`-th tile, starting from `next_tile`; a step of 0: all. */
    size_t next_tile;
    size_t tile_step;
    dcrf_tile_facts facts[MOST_TILES];
    size_t workspace_bytes; /* at the end */
    uint16_t *labels;
    float *marginals;
};

/* Grainy discs on a grainy background; unaries that are wrong at a fifth of the pixels. */
static struct scene new_scene(size_t width, size_t height) {
    struct scene s = {.grid = dcrf_grid_2d(width, height), .label_count = LABELS};
    const size_t pixels = width * height;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 7);
    s.colours = calloc(pixels, 3 * sizeof *s.colours);
    s.unary = calloc(pixels, LABELS * sizeof *s.unary);
    s.labels = calloc(pixels, sizeof *s.labels);
    s.marginals = calloc(pixels, LABELS * sizeof *s.marginals);
    for (size_t a = 0; a < pixels; a++) {
        const double x = (double)(a % width % 37) - 18, y = (double)(a / width % 29) - 14;
        const int inside = x * x + y * y < 90;
        for (size_t c = 0; c < 3; c++)
            s.colours[3 * a + c] = (float)(90 + (inside ? 20 : 0) + 30 * dcrf_rng_uniform(&rng));
        const int right = dcrf_rng_uniform(&rng) > 0.2;
        s.unary[LABELS * a + (size_t)(inside == right)] = (float)dcrf_rng_uniform(&rng);
        s.unary[LABELS * a + (size_t)(inside != right)] = 1.2f;
    }
    return s;
}

/* The same colours; a slope and discs above it, with noise. Distances are cut off at 2. */
static struct scene new_slope(size_t width, size_t height) {
    struct scene s = new_scene(width, height);
    const size_t pixels = width * height;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 8);
    free(s.unary);
    free(s.marginals);
    s.label_count = LEVELS;
    s.distance = "truncated-linear:2";
    s.unary = calloc(pixels, LEVELS * sizeof *s.unary);
    s.marginals = calloc(pixels, LEVELS * sizeof *s.marginals);
    for (size_t a = 0; a < pixels; a++) {
        const double x = (double)(a % width % 37) - 18, y = (double)(a / width % 29) - 14;
        const double level =
            x * x + y * y < 90 ? LEVELS - 1 : 3 * (double)(a % width) / (double)width;
        for (size_t i = 0; i < LEVELS; i++)
            s.unary[LEVELS * a + i] =
                (float)(fmin(2, fabs((double)i - level)) + 0.8 * dcrf_rng_uniform(&rng));
    }
    return s;
}

static void free_scene(struct scene *s) {
    free(s->colours);
    free(s->unary);
    free(s->labels);
    free(s->marginals);
}

static void check_scene(struct scene s, void (*check)(struct scene *s)) {
    check(&s);
    free_scene(&s);
}

static dcrf_status model_of_window(void *user, const dcrf_tile *tile, dcrf_model **model,
                                   dcrf_error *error) {
    struct scene *s = user;
    const size_t width = s->grid.size[0], first = tile->first[1] * width + tile->first[0];
    const size_t labels = s->label_count;
    const dcrf_grid grid = dcrf_grid_2d(tile->size[0], tile->size[1]);
    dcrf_view colours = dcrf_view_interleaved(s->colours + 3 * first, DCRF_F32, &grid, 3);
    dcrf_view unary = dcrf_view_interleaved(s->unary + labels * first, DCRF_F32, &grid, labels);
    colours.stride[1] = (ptrdiff_t)(3 * width * sizeof(float));
    unary.stride[1] = (ptrdiff_t)(labels * width * sizeof(float));
    const dcrf_kernel kernels[] = {dcrf_kernel_spatial(1.5, 0.4),
                                   dcrf_kernel_bilateral(SIGMA, 15, colours, 0.8)};
    if (++s->models == s->fail_at) {
        *error = (dcrf_error){DCRF_ERROR_NOT_FINITE, "the disc is broken"};
        return DCRF_ERROR_NOT_FINITE;
    }
    dcrf_status status = dcrf_model_new(model, &grid, labels, error);
    if (status == DCRF_OK)
        status = dcrf_model_set_origin(*model, tile->first, error);
    if (status == DCRF_OK)
        status = dcrf_model_set_unary(*model, &unary, error);
    for (size_t k = 0; status == DCRF_OK && k < 2; k++)
        status = dcrf_model_add_kernel(*model, &kernels[k], error);
    for (size_t k = 0; status == DCRF_OK && k < 2 && s->distance; k++)
        status = dcrf_model_set_distance(*model, k, s->distance, error);
    return status;
}

static dcrf_status take_labels(void *user, const dcrf_tile_result *result, dcrf_error *error) {
    struct scene *s = user;
    const dcrf_tile *tile = result->tile;
    (void)error;
    assert_true(tile->index < MOST_TILES);
    assert_int_equal(result->facts->is_solved, result->is_solved);
    s->facts[tile->index] = *result->facts;
    for (size_t y = 0; y < tile->inner_size[1]; y++)
        for (size_t x = 0; x < tile->inner_size[0]; x++) {
            const size_t from =
                (y + tile->inner_first[1]) * tile->size[0] + x + tile->inner_first[0];
            const size_t to = (tile->first[1] + tile->inner_first[1] + y) * s->grid.size[0] +
                              tile->first[0] + tile->inner_first[0] + x;
            s->labels[to] = result->labels[from];
            memcpy(s->marginals + s->label_count * to, result->marginals + from * result->stride,
                   s->label_count * sizeof(float));
        }
    return DCRF_OK;
}

static size_t next_in_steps(void *user) {
    struct scene *s = user;
    const size_t index = s->next_tile;
    s->next_tile += s->tile_step;
    return index;
}

static dcrf_tiles_info solve(struct scene *s, dcrf_method method, size_t window, size_t overlap,
                             size_t threads) {
    const size_t windows[3] = {window, window, 0}, overlaps[3] = {overlap, overlap, 0};
    const dcrf_tile_callbacks callbacks = {.model = model_of_window,
                                           .result = take_labels,
                                           .user = s,
                                           .next = s->tile_step > 0 ? next_in_steps : NULL};
    dcrf_tiling tiling;
    dcrf_workspace *workspace;
    dcrf_settings settings;
    dcrf_tiles_info info;
    dcrf_error error;
    dcrf_settings_defaults(&settings, method);
    assert_int_equal(dcrf_tiling_make(&tiling, &s->grid, windows, overlaps, &error), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, threads, &error), DCRF_OK);
    assert_int_equal(dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings,
                                      &info, &error),
                     DCRF_OK);
    s->workspace_bytes = dcrf_workspace_bytes(workspace);
    dcrf_workspace_free(&workspace);
    if (s->tile_step == 0)
        assert_int_equal(info.tiles, dcrf_tiling_count(&tiling));
    return info;
}

/* The same problem solved as a whole. */
static dcrf_energy solve_whole(struct scene *s, dcrf_method method, uint16_t *labels) {
    const dcrf_tile all = {.size = {s->grid.size[0], s->grid.size[1], 1}};
    dcrf_model *model = NULL;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_energy energy;
    dcrf_error error;
    dcrf_settings_defaults(&settings, method);
    assert_int_equal(model_of_window(s, &all, &model, &error), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 2, &error), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), DCRF_OK);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, &error), DCRF_OK);
    assert_true(dcrf_solver_run(solver, &error) >= 0);
    dcrf_solver_labels(solver, labels, dcrf_model_variables(model), NULL);
    assert_int_equal(dcrf_energy_of_labels(plan, workspace, labels, &energy, NULL, 0, &error),
                     DCRF_OK);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return energy;
}

static void check_one_tile(struct scene *s) {
    uint16_t *labels = calloc(70 * 50, sizeof *labels);
    for (int method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
        const dcrf_energy energy = solve_whole(s, (dcrf_method)method, labels);
        const dcrf_tiles_info info = solve(s, (dcrf_method)method, 0, 10, 2);
        assert_memory_equal(s->labels, labels, 70 * 50 * sizeof *labels);
        assert_int_equal(info.solved, 1);
        assert_int_equal(info.stop, DCRF_OK);
        /* The same sums in the same order. */
        assert_true(info.energy.total == energy.total && info.energy.unary == energy.unary &&
                    info.energy.pairwise == energy.pairwise);
        assert_int_equal(isnan(info.largest_gap) != 0, method != DCRF_METHOD_LP);
    }
    free(labels);
}

static void test_one_tile_is_the_whole(void **state) {
    (void)state;
    check_scene(new_scene(70, 50), check_one_tile);
}

/* Windows of three sigmas, in a picture of which the kernels see a part: seams are rare. The
 * results differ where labels are nearly tied; without an overlap they differ in far more
 * places. */
static void check_seams(struct scene *s) {
    enum { WIDTH = 150, HEIGHT = 120 };
    uint16_t *labels = calloc(WIDTH * HEIGHT, sizeof *labels);
    size_t different[2] = {0, 0};
    const dcrf_energy energy = solve_whole(s, DCRF_METHOD_MF, labels);
    for (int k = 0; k < 2; k++) {
        const size_t overlap = k == 0 ? 0 : DCRF_TILE_OVERLAP_SIGMAS * SIGMA;
        const dcrf_tiles_info info = solve(s, DCRF_METHOD_MF, 40 + 2 * overlap, overlap, 2);
        assert_int_equal(info.tiles, 4 * 3);
        assert_int_equal(info.solved, 12);
        for (size_t a = 0; a < WIDTH * HEIGHT; a++)
            different[k] += s->labels[a] != labels[a];
        if (k == 1) /* up to the effect of the seams */
            assert_true(fabs(info.energy.total - energy.total) < 2e-3 * energy.total);
    }
    assert_true(different[1] * 4 < different[0]);
    /* Windows of 60 pixels are nearly all seam: large ones are held to 0.1 %. */
    assert_true(different[1] * 200 < WIDTH * HEIGHT);
    free(labels);
}

static void test_seams_are_rare(void **state) {
    (void)state;
    check_scene(new_scene(150, 120), check_seams);
}

/* Distances between labels are treated as Potts is. */
static void test_tiles_with_distances(void **state) {
    (void)state;
    check_scene(new_slope(70, 50), check_one_tile);
    check_scene(new_slope(150, 120), check_seams);
}

/* The LP in several tiles: every window has a small gap of its own, and together they are close to
 * the whole. */
static void check_lp_in_tiles(struct scene *s) {
    enum { WIDTH = 96, HEIGHT = 70, OVERLAP = DCRF_TILE_OVERLAP_SIGMAS * SIGMA };
    uint16_t *labels = calloc(WIDTH * HEIGHT, sizeof *labels);
    size_t different = 0;
    const dcrf_energy energy = solve_whole(s, DCRF_METHOD_LP, labels);
    const dcrf_tiles_info info = solve(s, DCRF_METHOD_LP, 48 + 2 * OVERLAP, OVERLAP, 2);
    assert_int_equal(info.tiles, 2 * 2);
    assert_int_equal(info.solved, 4);
    assert_true(info.largest_gap >= 0 && info.largest_gap < 0.01);
    assert_true(info.bound_left_out.fraction == 0);
    for (size_t k = 0; k < 4; k++)
        assert_true(s->facts[k].relative_gap <= info.largest_gap);
    for (size_t a = 0; a < WIDTH * HEIGHT; a++)
        different += s->labels[a] != labels[a];
    assert_true(different * 200 < WIDTH * HEIGHT);
    assert_true(fabs(info.energy.total - energy.total) < 2e-3 * energy.total);
    free(labels);
}

static void test_the_lp_in_tiles(void **state) {
    (void)state;
    check_scene(new_scene(96, 70), check_lp_in_tiles);
    check_scene(new_slope(96, 70), check_lp_in_tiles);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    struct scene one = new_scene(90, 70), four = new_scene(90, 70);
    const dcrf_tiles_info a = solve(&one, DCRF_METHOD_MF, 50, 10, 1);
    const dcrf_tiles_info b = solve(&four, DCRF_METHOD_MF, 50, 10, 4);
    assert_memory_equal(one.labels, four.labels, 90 * 70 * sizeof *one.labels);
    assert_memory_equal(one.marginals, four.marginals, 90 * 70 * LABELS * sizeof(float));
    assert_true(a.energy.total == b.energy.total);
    free_scene(&one);
    free_scene(&four);
}

/* Two runs that share the tiles, one of them in reverse order, give the same labels as one run; and
 * the facts about their tiles, added in order, are bit-identical to those of one run. */
static void test_tiles_can_be_shared(void **state) {
    (void)state;
    enum { TILES = 12, SIZE = 150 * 120 };
    for (int method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method += 2) {
        struct scene alone = new_scene(150, 120), shared = new_scene(150, 120);
        const dcrf_tiles_info wanted = solve(&alone, (dcrf_method)method, 60, 10, 1);
        dcrf_tiles_info info = {0};
        assert_int_equal(wanted.tiles, TILES);
        shared.tile_step = 2;
        assert_int_equal(solve(&shared, (dcrf_method)method, 60, 10, 1).tiles, TILES / 2);
        /* Backwards from the last; stepping below the first wraps around to no tile, since size_t
         * is unsigned. */
        shared.next_tile = TILES - 1;
        shared.tile_step = (size_t)-2;
        assert_int_equal(solve(&shared, (dcrf_method)method, 60, 10, 1).tiles, TILES / 2);
        for (size_t tile = 0; tile < TILES; tile++)
            dcrf_tiles_add(&info, &shared.facts[tile]);
        assert_memory_equal(alone.labels, shared.labels, SIZE * sizeof *alone.labels);
        assert_memory_equal(alone.marginals, shared.marginals, SIZE * LABELS * sizeof(float));
        assert_int_equal(info.tiles, TILES);
        assert_int_equal(info.solved, TILES);
        assert_int_equal(info.changed, wanted.changed);
        assert_int_equal(info.iterations, wanted.iterations);
        assert_int_equal(info.plan_bytes, wanted.plan_bytes);
        assert_int_equal(info.stop, wanted.stop);
        assert_memory_equal(&info.energy, &wanted.energy, sizeof info.energy);
        assert_true(info.largest_gap == wanted.largest_gap ||
                    (isnan(info.largest_gap) && isnan(wanted.largest_gap)));
        free_scene(&alone);
        free_scene(&shared);
    }
}

/* If every window is the whole grid, the energies of the inner regions are parts of one sum. */
enum { PARTS_WIDTH = 41, PARTS_HEIGHT = 31 };

static void check_parts(struct scene *s) {
    enum { WIDTH = PARTS_WIDTH, HEIGHT = PARTS_HEIGHT };
    uint16_t *labels = calloc(WIDTH * HEIGHT, sizeof *labels);
    const dcrf_energy energy = solve_whole(s, DCRF_METHOD_MF, labels);
    /* An overlap as wide as the grid: every window covers it. */
    const dcrf_tiles_info info = solve(s, DCRF_METHOD_MF, 2 * WIDTH + 20, WIDTH, 2);
    assert_int_equal(info.tiles, 1);
    dcrf_tiling tiling;
    dcrf_error error;
    const size_t none[3] = {0, 0, 0}, overlap[3] = {WIDTH, WIDTH, 0};
    assert_int_equal(dcrf_tiling_make(&tiling, &s->grid, none, overlap, &error), DCRF_OK);
    tiling.count[0] = 3;
    tiling.count[1] = 2;
    const dcrf_tile_callbacks callbacks = {
        .model = model_of_window, .result = take_labels, .user = s};
    dcrf_workspace *workspace;
    dcrf_settings settings;
    dcrf_tiles_info parts;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    assert_int_equal(dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings,
                                      &parts, &error),
                     DCRF_OK);
    dcrf_workspace_free(&workspace);
    assert_int_equal(parts.tiles, 6);
    assert_memory_equal(s->labels, labels, WIDTH * HEIGHT * sizeof *labels);
    /* Double sums of some thousand terms in another order. */
    assert_true(fabs(parts.energy.total - energy.total) <= 1e-10 * energy.total);
    assert_true(fabs(parts.energy.pairwise - energy.pairwise) <= 1e-10 * energy.pairwise);
    free(labels);
}

static void test_energies_of_parts_add_up(void **state) {
    (void)state;
    check_scene(new_scene(PARTS_WIDTH, PARTS_HEIGHT), check_parts);
    check_scene(new_slope(PARTS_WIDTH, PARTS_HEIGHT), check_parts);
}

/* ---- the origin ----------------------------------------------------------------------------- */

/* A lattice over a window filters a bump in its middle as the whole lattice does if the window has
 * the right origin, and differently if not. */
static void test_origin_aligns_lattices(void **state) {
    (void)state;
    enum { WIDTH = 140, SIDE = 90, X = 31, Y = 27 };
    struct scene s = new_scene(WIDTH, WIDTH);
    const dcrf_tile all = {.size = {WIDTH, WIDTH, 1}};
    dcrf_tile part = {.first = {X, Y, 0}, .size = {SIDE, SIDE, 1}};
    const size_t nowhere[3] = {0, 0, 0};
    double error_of[2] = {0, 0}, largest = 0;
    dcrf_workspace *workspace;
    dcrf_error error;
    assert_int_equal(dcrf_workspace_new(&workspace, 2, &error), DCRF_OK);
    float *out[3];
    for (int k = 0; k < 3; k++) {
        const size_t side = k == 0 ? WIDTH : SIDE, middle = SIDE / 2 + (k == 0 ? X : 0);
        const size_t row = SIDE / 2 + (k == 0 ? Y : 0);
        dcrf_model *model = NULL;
        dcrf_plan *plan;
        float *in = calloc(side * side, DCRF_LANES * sizeof *in);
        out[k] = calloc(side * side, DCRF_LANES * sizeof *in);
        assert_int_equal(model_of_window(&s, k == 0 ? &all : &part, &model, &error), DCRF_OK);
        if (k == 2)
            assert_int_equal(dcrf_model_set_origin(model, nowhere, &error), DCRF_OK);
        assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error),
                         DCRF_OK);
        for (size_t y = row - 3; y < row + 3; y++)
            for (size_t x = middle - 3; x < middle + 3; x++)
                in[(y * side + x) * DCRF_LANES] = 1;
        assert_int_equal(
            dcrf_operator_apply(dcrf_plan_operator(plan, 1), workspace, DCRF_SYMMETRIC, in, out[k],
                                dcrf_operator_variables(dcrf_plan_operator(plan, 1)) * DCRF_LANES,
                                1, DCRF_LANES, &error),
            DCRF_OK);
        dcrf_plan_free(&plan);
        dcrf_model_free(&model);
        free(in);
    }
    for (size_t y = SIDE / 2 - 8; y < SIDE / 2 + 8; y++)
        for (size_t x = SIDE / 2 - 8; x < SIDE / 2 + 8; x++) {
            const double whole = (double)out[0][((y + Y) * WIDTH + x + X) * DCRF_LANES];
            largest = fmax(largest, whole);
            for (int k = 0; k < 2; k++)
                error_of[k] = fmax(error_of[k],
                                   fabs(whole - (double)out[k + 1][(y * SIDE + x) * DCRF_LANES]));
        }
    for (int k = 0; k < 3; k++)
        free(out[k]);
    /* Vertices made by pixels outside the window contribute a little: the lattice's support is
     * wider than three sigmas. */
    assert_true(error_of[0] < 1e-3 * largest);
    assert_true(error_of[1] > 10 * error_of[0]);
    dcrf_workspace_free(&workspace);
    free_scene(&s);
}

/* ---- when something stops it ---------------------------------------------------------------- */

struct stopper {
    const struct scene *scene;
    size_t after_models;
};

static int stop_later(void *user) {
    const struct stopper *stopper = user;
    return stopper->scene->models > stopper->after_models;
}

static void test_a_stop_leaves_the_unary_minimum(void **state) {
    (void)state;
    enum { WIDTH = 90, HEIGHT = 60 };
    for (int by_time = 0; by_time < 2; by_time++) {
        struct scene s = new_scene(WIDTH, HEIGHT);
        struct stopper stopper = {&s, 2};
        const size_t window[3] = {50, 50, 0}, overlap[3] = {10, 10, 0};
        const dcrf_tile_callbacks callbacks = {
            .model = model_of_window, .result = take_labels, .user = &s};
        dcrf_tiling tiling;
        dcrf_workspace *workspace;
        dcrf_settings settings;
        dcrf_tiles_info info;
        dcrf_error error;
        dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
        if (by_time)
            settings.time_limit_s = 1e-9;
        settings.cancel = by_time ? NULL : stop_later;
        settings.cancel_user = &stopper;
        assert_int_equal(dcrf_tiling_make(&tiling, &s.grid, window, overlap, &error), DCRF_OK);
        assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
        assert_int_equal(dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace,
                                          &settings, &info, &error),
                         DCRF_OK);
        dcrf_workspace_free(&workspace);
        assert_int_equal(info.stop, by_time ? DCRF_STOP_TIME : DCRF_STOP_CANCELLED);
        assert_int_equal(info.tiles, 6);
        assert_int_equal(info.solved, by_time ? 0 : 2);
        assert_true(isnan(info.energy.total));
        /* The last tile has the unary minimum. */
        for (size_t a = WIDTH * HEIGHT - 20; a < WIDTH * HEIGHT; a++) {
            const float *row = s.unary + LABELS * a;
            assert_int_equal(s.labels[a], row[1] < row[0]);
            assert_true(s.marginals[LABELS * a + s.labels[a]] == 1);
        }
        free_scene(&s);
    }
}

struct patience {
    size_t asked, most;
};

static int is_over(void *user) {
    struct patience *patience = user;
    return ++patience->asked > patience->most;
}

/* A run that is cancelled at call number `most` of the callback, through its settings or the
 * workspace. */
static dcrf_tiles_info stop_at(struct scene *s, bool by_workspace, struct patience *patience) {
    const size_t window[3] = {36, 30, 0}, overlap[3] = {5, 5, 0};
    const dcrf_tile_callbacks callbacks = {
        .model = model_of_window, .result = take_labels, .user = s};
    dcrf_tiling tiling;
    dcrf_workspace *workspace;
    dcrf_settings settings;
    dcrf_tiles_info info;
    dcrf_error error;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    settings.iterations = 1;
    settings.polish = 0;
    settings.cancel = by_workspace ? NULL : is_over;
    settings.cancel_user = patience;
    assert_int_equal(dcrf_tiling_make(&tiling, &s->grid, window, overlap, &error), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    dcrf_workspace_ask_always(workspace);
    if (by_workspace)
        dcrf_workspace_set_limit(workspace, 0, is_over, patience);
    const dcrf_status status = dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_EXACT, workspace,
                                                &settings, &info, &error);
    if (status != DCRF_OK)
        fail_msg("at question %zu: %s", patience->most, error.message);
    dcrf_workspace_free(&workspace);
    return info;
}

/* Also in the middle of a plan, a run or an energy; there is a labelling anyway. */
static void test_tiles_are_stopped_inside(void **state) {
    (void)state;
    struct scene s = new_scene(60, 30);
    for (int by_workspace = 0; by_workspace < 2; by_workspace++) {
        size_t most = 0, is_whole = 0;
        for (; !is_whole; most += 1 + most / 4) {
            struct patience patience = {0, most};
            const dcrf_tiles_info info = stop_at(&s, by_workspace, &patience);
            is_whole = patience.asked <= most;
            assert_int_equal(info.tiles, 3);
            assert_int_equal(info.stop, is_whole ? DCRF_OK : DCRF_STOP_CANCELLED);
            assert_true(is_whole ? info.solved == 3 : info.solved <= 3);
            assert_true(!is_whole || isfinite(info.energy.total));
            /* The run of a tile may call it once more, but nothing else does. */
            assert_true(patience.asked <= most + 2);
        }
        /* Plans, runs and energies of three tiles call back many times. */
        assert_true(most > 100);
    }
    free_scene(&s);
}

static void test_errors_of_callbacks_come_back(void **state) {
    (void)state;
    struct scene s = new_scene(60, 40);
    const size_t window[3] = {30, 30, 0}, overlap[3] = {5, 5, 0};
    dcrf_tile_callbacks callbacks = {.model = model_of_window, .result = take_labels, .user = &s};
    dcrf_tiling tiling;
    dcrf_workspace *workspace;
    dcrf_settings settings;
    dcrf_tiles_info info = {.tiles = 77};
    dcrf_error error;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    assert_int_equal(dcrf_tiling_make(&tiling, &s.grid, window, overlap, &error), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    s.fail_at = 3;
    assert_fails(DCRF_ERROR_NOT_FINITE, "the disc is broken", error,
                 dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings,
                                  &info, &error));
    assert_int_equal(info.tiles, 77);
    settings.gap = -1;
    s.fail_at = 0;
    assert_true(dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings,
                                 &info, &error) < 0);
    settings.gap = 0;
    callbacks.reserved[63] = 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "reserved bytes of the callbacks", error,
                 dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings,
                                  &info, &error));
    assert_int_equal(info.tiles, 77);
    callbacks.reserved[63] = 0;
    callbacks.result = NULL;
    assert_fails(DCRF_ERROR_ARGUMENT, "callback", error,
                 dcrf_tiles_solve(&tiling, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings,
                                  &info, &error));
    assert_fails(DCRF_ERROR_ARGUMENT, "NULL", error,
                 dcrf_tiles_solve(NULL, &callbacks, DCRF_OPERATOR_FAST, workspace, &settings, &info,
                                  &error));
    dcrf_workspace_free(&workspace);
    free_scene(&s);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The estimate grows with everything that takes memory, and is not below what a plan and the
 * solver's own blocks take. */
static void test_memory_is_not_underestimated(void **state) {
    (void)state;
    enum { SIDE = 200 };
    assert_true(dcrf_bytes_per_variable(DCRF_METHOD_MF, 2, 3, 1) <
                dcrf_bytes_per_variable(DCRF_METHOD_MF, 2, 3, 2));
    assert_true(dcrf_bytes_per_variable(DCRF_METHOD_MF, 2, 3, 1) <
                dcrf_bytes_per_variable(DCRF_METHOD_MF, 9, 3, 1));
    assert_true(dcrf_bytes_per_variable(DCRF_METHOD_MF, 2, 1, 1) <
                dcrf_bytes_per_variable(DCRF_METHOD_MF, 2, 3, 1));
    assert_true(dcrf_bytes_per_variable(DCRF_METHOD_MF, 2, 3, 1) <
                dcrf_bytes_per_variable(DCRF_METHOD_LP, 2, 3, 1));
    struct scene s = new_scene(SIDE, SIDE);
    const dcrf_tile all = {.size = {SIDE, SIDE, 1}};
    dcrf_model *model = NULL;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_error error;
    const dcrf_tiles_info info = solve(&s, DCRF_METHOD_MF, 0, 10, 1);
    assert_int_equal(model_of_window(&s, &all, &model, &error), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, &error), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, &error), DCRF_OK);
    const double vertices =
        (double)dcrf_operator_vertices(dcrf_plan_operator(plan, 1)) / (SIDE * SIDE);
    /* Three blocks of mean field, one of the model, one of the marginals; features as doubles. */
    const double own = 5.0 * (double)(dcrf_padded(LABELS) * sizeof(float)) + 3 * sizeof(double);
    const double held = (double)(info.plan_bytes + s.workspace_bytes) / (SIDE * SIDE) + own;
    const double estimate = dcrf_bytes_per_variable(DCRF_METHOD_MF, LABELS, 3, vertices);
    if (held >= estimate || 1.5 * held < estimate)
        fail_msg("%.0f bytes per variable, not the %.0f that are held", estimate, held);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    free_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_tile_is_the_whole),
        cmocka_unit_test(test_seams_are_rare),
        cmocka_unit_test(test_tiles_with_distances),
        cmocka_unit_test(test_the_lp_in_tiles),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_tiles_can_be_shared),
        cmocka_unit_test(test_energies_of_parts_add_up),
        cmocka_unit_test(test_origin_aligns_lattices),
        cmocka_unit_test(test_a_stop_leaves_the_unary_minimum),
        cmocka_unit_test(test_tiles_are_stopped_inside),
        cmocka_unit_test(test_errors_of_callbacks_come_back),
        cmocka_unit_test(test_memory_is_not_underestimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
