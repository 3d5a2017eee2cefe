/* The device compared with the CPU, at sizes for which the dense oracles of the unit tests would
 * take too long: the same matrices, the same marginals, the same bytes on every run.
 *
 * Both have the same vertices and weights up to the rounding of the row sums, so applications
 * differ only by the order of their sums: a few times 2^-24 of the row sum. AGREEMENT leaves room
 * for the longest sums. */
#include "unit.h"

#include "core/rng.h"
#include "round/polisher.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define AGREEMENT 1e-5
#define WIDTH 160
#define HEIGHT 120
#define LABELS 21
#define STRIDE 24
#define VARIABLES ((size_t)WIDTH * HEIGHT)

static dcrf_workspace *cpu, *device;
static uint8_t picture[VARIABLES * 3];
static float unary[VARIABLES * LABELS];

/* Grainy regions, and unaries that are wrong in places. */
static int make_picture(void **state) {
    (void)state;
    dcrf_error error;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 7);
    for (size_t a = 0; a < VARIABLES; a++) {
        const size_t x = a % WIDTH, y = a / WIDTH, region = (x / 40 + 2 * (y / 30)) % LABELS;
        for (size_t c = 0; c < 3; c++)
            picture[3 * a + c] =
                (uint8_t)((double)(60 * ((region + c) % 4)) + 30 * dcrf_rng_uniform(&rng));
        const size_t shown =
            dcrf_rng_uniform(&rng) < 0.2 ? (size_t)(LABELS * dcrf_rng_uniform(&rng)) : region;
        for (size_t i = 0; i < LABELS; i++)
            unary[a * LABELS + i] = (float)((i == shown ? 0 : 2) + dcrf_rng_uniform(&rng));
    }
    if (dcrf_workspace_new(&cpu, 2, &error) < 0 || dcrf_workspace_new(&device, 2, &error) < 0 ||
        dcrf_workspace_set_device(device, "cuda", &error) < 0) {
        printf("%s\n", error.message);
        return -1;
    }
    return 0;
}

static int free_workspaces(void **state) {
    (void)state;
    dcrf_workspace_free(&cpu);
    dcrf_workspace_free(&device);
    return 0;
}

static float *new_block(size_t floats) {
    float *block = calloc(floats, sizeof *block);
    assert_non_null(block);
    return block;
}

/* The kernels that are compared. */
static dcrf_kernel kernel_number(size_t k, dcrf_normalization normalization) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(picture, DCRF_U8, &grid, 3);
    static const double sigmas[] = {80, 13, 67, 3, 30, 8};
    dcrf_kernel kernel =
        k == 0 ? dcrf_kernel_spatial(3, 1)
               : dcrf_kernel_bilateral(sigmas[2 * k - 2], sigmas[2 * k - 1], image, 1);
    kernel.normalization = normalization;
    return kernel;
}

#define KERNELS 4

static dcrf_operator *new_operator(size_t k, dcrf_normalization normalization,
                                   dcrf_operator_kind kind, dcrf_workspace *workspace) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_kernel kernel = kernel_number(k, normalization);
    dcrf_operator *op;
    dcrf_error error;
    if (dcrf_operator_new(&op, &grid, &kernel, kind, workspace, &error) < 0)
        fail_msg("%s", error.message);
    return op;
}

static void assert_agree(const float *one, const float *other, const float *row_sums, size_t rows,
                         size_t channels, size_t stride) {
    for (size_t a = 0; a < rows; a++)
        for (size_t c = 0; c < channels; c++) {
            const double difference =
                fabs((double)one[a * stride + c] - (double)other[a * stride + c]);
            if (!(difference <= AGREEMENT * (double)row_sums[a]))
                fail_msg("row %zu, channel %zu: %g and %g, row sum %g", a, c,
                         (double)one[a * stride + c], (double)other[a * stride + c],
                         (double)row_sums[a]);
        }
}

static void compare_operators(size_t k, dcrf_normalization normalization, dcrf_operator_kind kind) {
    dcrf_operator *one = new_operator(k, normalization, kind, cpu);
    dcrf_operator *other = new_operator(k, normalization, kind, device);
    assert_int_equal(dcrf_operator_vertices(one), dcrf_operator_vertices(other));
    float *sums = new_block(VARIABLES), *other_sums = new_block(VARIABLES);
    assert_int_equal(dcrf_operator_row_sums(one, cpu, sums, VARIABLES, NULL), DCRF_OK);
    assert_int_equal(dcrf_operator_row_sums(other, device, other_sums, VARIABLES, NULL), DCRF_OK);
    assert_agree(sums, other_sums, sums, VARIABLES, 1, 1);
    float *diagonal = new_block(VARIABLES), *other_diagonal = new_block(VARIABLES);
    assert_int_equal(dcrf_operator_diagonal(one, cpu, diagonal, VARIABLES, NULL), DCRF_OK);
    assert_int_equal(dcrf_operator_diagonal(other, device, other_diagonal, VARIABLES, NULL),
                     DCRF_OK);
    assert_agree(diagonal, other_diagonal, diagonal, VARIABLES, 1, 1);

    float *in = new_block(VARIABLES * STRIDE), *out[3];
    dcrf_rng rng;
    dcrf_rng_seed(&rng, k);
    for (size_t i = 0; i < VARIABLES * STRIDE; i++)
        in[i] = (float)dcrf_rng_uniform(&rng);
    for (size_t i = 0; i < 3; i++)
        out[i] = new_block(VARIABLES * STRIDE);
    for (int direction = DCRF_SYMMETRIC; direction <= DCRF_ADJOINT; direction++) {
        const dcrf_direction d = (dcrf_direction)direction;
        assert_int_equal(
            dcrf_operator_apply(one, cpu, d, in, out[0], VARIABLES * STRIDE, LABELS, STRIDE, NULL),
            DCRF_OK);
        for (size_t i = 1; i < 3; i++)
            assert_int_equal(dcrf_operator_apply(other, device, d, in, out[i], VARIABLES * STRIDE,
                                                 LABELS, STRIDE, NULL),
                             DCRF_OK);
        assert_agree(out[0], out[1], sums, VARIABLES, LABELS, STRIDE);
        assert_memory_equal(out[1], out[2], VARIABLES * STRIDE * sizeof(float));
    }
    const float levels[] = {0.1f, 0.4f, 0.5f, 0.9f};
    const dcrf_levels thresholds = {5, levels, NULL};
    assert_int_equal(dcrf_operator_ordered(one, cpu, &thresholds, in, out[0], VARIABLES * STRIDE, 2,
                                           STRIDE, NULL),
                     DCRF_OK);
    assert_int_equal(dcrf_operator_ordered(other, device, &thresholds, in, out[1],
                                           VARIABLES * STRIDE, 2, STRIDE, NULL),
                     DCRF_OK);
    assert_agree(out[0], out[1], sums, VARIABLES, 2, STRIDE);

    for (size_t i = 0; i < 3; i++)
        free(out[i]);
    free(in);
    free(sums);
    free(other_sums);
    free(diagonal);
    free(other_diagonal);
    dcrf_operator_free(&one);
    dcrf_operator_free(&other);
}

static void fast_operators_are_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < KERNELS; k++) {
        compare_operators(k, DCRF_NORMALIZE_SYMMETRIC, DCRF_OPERATOR_FAST);
        compare_operators(k, DCRF_NORMALIZE_NONE, DCRF_OPERATOR_FAST);
    }
}

static void exact_operators_are_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < KERNELS; k++)
        compare_operators(k, k % 2 ? DCRF_NORMALIZE_SYMMETRIC : DCRF_NORMALIZE_NONE,
                          DCRF_OPERATOR_EXACT);
}

/* ---- mean field ----------------------------------------------------------------------------- */

struct outcome {
    float *marginals;
    uint16_t *labels;
    dcrf_solver_info info;
};

/* What to solve, and how. */
struct problem {
    dcrf_method method;
    double damping;
    dcrf_operator_kind kind;
    bool has_cliques; /* squares of 10 x 10 pixels */
    bool is_general;  /* one kernel has a compatibility matrix */
    bool is_strong;   /* kernels are not normalized: the best labelling is constant */
};

static void add_cliques(dcrf_model *model, const dcrf_grid *grid) {
    int32_t *squares = calloc(VARIABLES, sizeof *squares);
    dcrf_error error;
    assert_non_null(squares);
    for (size_t a = 0; a < VARIABLES; a++)
        squares[a] = (int32_t)(a % WIDTH / 10 + a / WIDTH / 10 * WIDTH);
    const dcrf_view map = dcrf_view_interleaved(squares, DCRF_I32, grid, 1);
    if (dcrf_model_set_clique_map(model, &map, 5, &error) < 0)
        fail_msg("%s", error.message);
    free(squares);
}

/* The cost grows with the distance between labels. */
static void generalize(dcrf_model *model) {
    float values[LABELS * LABELS];
    dcrf_error error;
    for (size_t i = 0; i < LABELS; i++)
        for (size_t j = 0; j < LABELS; j++)
            values[i * LABELS + j] = fabsf((float)i - (float)j) / 8;
    if (dcrf_model_set_compatibility(model, 1, DCRF_COMPATIBILITY_MATRIX, values, &error) < 0)
        fail_msg("%s", error.message);
}

static dcrf_model *new_model(const struct problem *problem) {
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    dcrf_model *model;
    dcrf_error error;
    assert_int_equal(dcrf_model_new(&model, &grid, LABELS, &error), DCRF_OK);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    assert_int_equal(dcrf_model_set_unary(model, &energies, &error), DCRF_OK);
    for (size_t k = 0; k < 2; k++) {
        dcrf_kernel kernel =
            kernel_number(k, problem->is_strong ? DCRF_NORMALIZE_NONE : DCRF_NORMALIZE_SYMMETRIC);
        kernel.weight = 3;
        assert_int_equal(dcrf_model_add_kernel(model, &kernel, &error), DCRF_OK);
    }
    if (problem->has_cliques)
        add_cliques(model, &grid);
    if (problem->is_general)
        generalize(model);
    return model;
}

static struct outcome solve(dcrf_workspace *workspace, const struct problem *problem) {
    dcrf_model *model = new_model(problem);
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_error error;
    if (dcrf_plan_new(&plan, model, problem->kind, workspace, &error) < 0)
        fail_msg("%s", error.message);
    dcrf_settings_defaults(&settings, problem->method);
    settings.damping = problem->damping;
    settings.stationarity = 0;
    if (problem->method == DCRF_METHOD_QP)
        settings.iterations = 10;
    settings.polish = problem->method == DCRF_METHOD_LP;
    if (dcrf_solver_new(&solver, plan, workspace, &settings, &error) < 0 ||
        dcrf_solver_run(solver, &error) < 0)
        fail_msg("%s", error.message);
    struct outcome outcome = {.marginals = new_block(VARIABLES * STRIDE),
                              .labels = calloc(VARIABLES, sizeof(uint16_t))};
    assert_non_null(outcome.labels);
    dcrf_solver_get_info(solver, &outcome.info);
    dcrf_solver_labels(solver, outcome.labels, VARIABLES, NULL);
    assert_int_equal(
        dcrf_solver_marginals(solver, outcome.marginals, VARIABLES * STRIDE, STRIDE, &error),
        DCRF_OK);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    return outcome;
}

static void free_outcome(struct outcome *outcome) {
    free(outcome->marginals);
    free(outcome->labels);
}

static double largest_difference(const float *one, const float *other) {
    double largest = 0;
    for (size_t i = 0; i < VARIABLES * STRIDE; i++)
        if (i % STRIDE < LABELS)
            largest = fmax(largest, fabs((double)one[i] - (double)other[i]));
    return largest;
}

static void compare_solvers(const struct problem *problem) {
    const bool is_lp = problem->method == DCRF_METHOD_LP;
    struct outcome here = solve(cpu, problem);
    struct outcome there = solve(device, problem);
    struct outcome again = solve(device, problem);
    const double largest = largest_difference(here.marginals, there.marginals);
    size_t differing = 0;
    for (size_t a = 0; a < VARIABLES; a++)
        differing += here.labels[a] != there.labels[a];
    printf("%s%s%s, damping %g: |dQ| <= %.2g, %zu labels differ, energies %.9g and %.9g, "
           "objectives %.9g and %.9g, bounds %.9g and %.9g\n",
           dcrf_method_name(problem->method), problem->has_cliques ? ", cliques" : "",
           problem->is_general ? ", a matrix" : "", problem->damping, largest, differing,
           here.info.energy.total, there.info.energy.total, here.info.objective,
           there.info.objective, here.info.lower_bound, there.info.lower_bound);
    /* Between equally good labels, QP and the LP may choose either. */
    assert_true(problem->method != DCRF_METHOD_MF || largest <= 1e-3);
    assert_true((double)differing <= 1e-4 * (double)VARIABLES);
    assert_true(fabs(here.info.energy.total - there.info.energy.total) <=
                1e-6 * fabs(here.info.energy.total));
    assert_true(is_lp || fabs(here.info.objective - there.info.objective) <=
                             1e-6 * fabs(here.info.objective));
    assert_memory_equal(there.marginals, again.marginals, VARIABLES * STRIDE * sizeof(float));
    assert_memory_equal(there.labels, again.labels, VARIABLES * sizeof(uint16_t));
    if (is_lp)
        assert_true(there.info.lower_bound <= there.info.energy.total &&
                    there.info.lower_bound <= here.info.energy.total);
    free_outcome(&here);
    free_outcome(&there);
    free_outcome(&again);
}

static void mean_field_is_the_same(void **state) {
    (void)state;
    static const double dampings[] = {0, 0.3, DCRF_DAMPING_AUTO};
    for (size_t k = 0; k < 12; k++) {
        const struct problem problem = {DCRF_METHOD_MF, dampings[k % 3], DCRF_OPERATOR_FAST,
                                        k / 3 % 2,      k / 6,           false};
        compare_solvers(&problem);
    }
    compare_solvers(&(struct problem){.method = DCRF_METHOD_MF, .kind = DCRF_OPERATOR_EXACT});
}

static void relaxations_are_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < 4; k++)
        compare_solvers(&(struct problem){.method = DCRF_METHOD_QP,
                                          .kind = DCRF_OPERATOR_FAST,
                                          .has_cliques = k % 2,
                                          .is_general = k / 2});
    for (size_t k = 0; k < 2; k++)
        compare_solvers(&(struct problem){
            .method = DCRF_METHOD_LP, .kind = DCRF_OPERATOR_FAST, .has_cliques = k});
}

/* A tile of a larger picture: its lattice is aligned with that of the whole picture, as on the CPU,
 * unlike that of the tile alone. */
static void tiles_are_the_same(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const size_t origins[2][DCRF_MAX_AXES] = {{1231, 877, 0}, {0, 0, 0}};
    dcrf_workspace *const workspaces[2] = {cpu, device};
    float *in = new_block(VARIABLES * STRIDE), *out[2][2];
    double differs = 0;
    for (size_t a = 0; a < VARIABLES; a++)
        in[a * STRIDE] = (float)(a % 97 % 2);
    for (size_t k = 0; k < 4; k++) {
        const dcrf_kernel kernel = kernel_number(1, DCRF_NORMALIZE_SYMMETRIC);
        dcrf_model *model;
        dcrf_plan *plan;
        dcrf_workspace *workspace = workspaces[k % 2];
        assert_int_equal(dcrf_model_new(&model, &grid, 2, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_origin(model, origins[k / 2], NULL), DCRF_OK);
        assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
        assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_FAST, workspace, NULL), DCRF_OK);
        out[k / 2][k % 2] = new_block(VARIABLES * STRIDE);
        assert_int_equal(dcrf_operator_apply(dcrf_plan_operator(plan, 0), workspace, DCRF_SYMMETRIC,
                                             in, out[k / 2][k % 2], VARIABLES * STRIDE, 1, STRIDE,
                                             NULL),
                         DCRF_OK);
        dcrf_plan_free(&plan);
        dcrf_model_free(&model);
    }
    for (size_t a = 0; a < VARIABLES * STRIDE; a += STRIDE) {
        for (size_t k = 0; k < 2; k++)
            assert_true(fabs((double)out[k][0][a] - (double)out[k][1][a]) <= AGREEMENT);
        differs = fmax(differs, fabs((double)out[0][0][a] - (double)out[1][0][a]));
    }
    assert_true(differs > 100 * AGREEMENT);
    for (size_t k = 0; k < 4; k++)
        free(out[k / 2][k % 2]);
    free(in);
}

/* The potential flow stops within 2e-6 of the energy. */
static void the_flow_is_the_same(void **state) {
    (void)state;
    const struct problem problem = {.method = DCRF_METHOD_LP, .is_strong = true};
    struct outcome here = solve(cpu, &problem), there = solve(device, &problem);
    const dcrf_candidate *one = &here.info.candidates[DCRF_CANDIDATE_FLOW];
    const dcrf_candidate *other = &there.info.candidates[DCRF_CANDIDATE_FLOW];
    printf("flow: bounds %.9g and %.9g, energies %.9g and %.9g, %.3g and %.3g s\n",
           one->lower_bound, other->lower_bound, here.info.energy.total, there.info.energy.total,
           one->time_s, other->time_s);
    assert_true(one->was_tried && other->was_tried);
    assert_true(fabs(one->lower_bound - other->lower_bound) <= 4e-6 * fabs(one->lower_bound));
    assert_true(other->lower_bound <= here.info.energy.total);
    assert_true(here.info.energy.total - other->lower_bound <= 1e-5 * here.info.energy.total);
    free_outcome(&here);
    free_outcome(&there);
}

/* ---- moves ----------------------------------------------------------------------------------- */

typedef dcrf_status (*move)(struct dcrf_polisher *, bool *, dcrf_error *);

struct moved {
    double before, after;
    bool is_better;
    uint16_t labels[VARIABLES];
};

/* One move from the unary minimum, or polishing to the end (NULL). */
static struct moved *new_moved(dcrf_workspace *workspace, const struct problem *problem,
                               move make) {
    struct moved *moved = calloc(1, sizeof *moved);
    struct dcrf_coupling *coupling;
    struct dcrf_polisher *polisher;
    dcrf_model *model = new_model(problem);
    dcrf_plan *plan;
    dcrf_energy energy;
    dcrf_error error;
    assert_non_null(moved);
    if (dcrf_plan_new(&plan, model, problem->kind, workspace, &error) < 0 ||
        dcrf_coupling_new(&coupling, plan, workspace, &error) < 0 ||
        dcrf_polisher_new(&polisher, coupling, &error) < 0)
        fail_msg("%s", error.message);
    dcrf_label_by_unary(model, moved->labels, VARIABLES, NULL);
    assert_int_equal(dcrf_polisher_load(polisher, moved->labels, 100, &error), DCRF_OK);
    moved->before = polisher->energy;
    if (make) {
        assert_int_equal(make(polisher, &moved->is_better, &error), DCRF_OK);
        moved->after = polisher->energy;
        assert_int_equal(dcrf_polisher_read(polisher, moved->labels, &error), DCRF_OK);
    } else {
        assert_int_equal(dcrf_polish(polisher, moved->labels, 100, NULL, &error), DCRF_OK);
        moved->after = polisher->energy;
    }
    /* The energy that the moves track is the true one. */
    assert_int_equal(
        dcrf_energy_of_labels(plan, workspace, moved->labels, &energy, NULL, 0, &error), DCRF_OK);
    assert_true(fabs(energy.total - moved->after) <= 1e-6 * fabs(energy.total));
    assert_true(moved->after <= moved->before);
    dcrf_polisher_free(&polisher);
    dcrf_coupling_free(&coupling);
    dcrf_plan_free(&plan);
    dcrf_model_free(&model);
    return moved;
}

/* If a gain is zero up to rounding, one side may accept the move and the other not. A single move
 * gives nearly the same result, and polishing from there ends nearly as low. */
static void compare_moves(const struct problem *problem, move make, const char *name) {
    struct moved *here = new_moved(cpu, problem, make);
    struct moved *there = new_moved(device, problem, make);
    struct moved *again = new_moved(device, problem, make);
    size_t differing = 0;
    for (size_t a = 0; a < VARIABLES; a++)
        differing += here->labels[a] != there->labels[a];
    printf("%s%s%s: %.9g to %.9g and %.9g to %.9g, %zu labels differ\n", name,
           problem->has_cliques ? ", cliques" : "", problem->is_general ? ", a matrix" : "",
           here->before, here->after, there->before, there->after, differing);
    assert_true(fabs(here->before - there->before) <= 1e-6 * fabs(here->before));
    assert_true(!make || here->is_better == there->is_better);
    assert_true(fabs(here->after - there->after) <= (make ? 1e-5 : 1e-3) * fabs(here->after));
    assert_true(!make || (double)differing <= 1e-3 * (double)VARIABLES);
    assert_memory_equal(there, again, sizeof *there);
    free(here);
    free(there);
    free(again);
}

static void moves_are_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        const struct problem problem = {
            .kind = DCRF_OPERATOR_FAST, .has_cliques = k % 2, .is_general = k / 2};
        compare_moves(&problem, dcrf_move_classes, "classes");
        compare_moves(&problem, dcrf_move_cliques, "whole cliques");
        compare_moves(&problem, dcrf_move_variables, "variables");
        compare_moves(&problem, NULL, "polishing");
    }
}

/* ---- operators shared with another thread ---------------------------------------------------- */

#define APPLICATIONS 60
#define SOLUTIONS 4

struct visitor {
    const dcrf_operator *op; /* planned with `device`, which is busy meanwhile */
    const float *in, *expected;
    size_t differing;
};

static void *visit(void *argument) {
    struct visitor *visitor = argument;
    float *out = calloc(VARIABLES * STRIDE, sizeof *out);
    dcrf_workspace *own = NULL;
    bool is_done = out && dcrf_workspace_new(&own, 1, NULL) == DCRF_OK &&
                   dcrf_workspace_set_device(own, dcrf_workspace_device(device), NULL) == DCRF_OK;
    for (size_t k = 0; k < APPLICATIONS && is_done; k++) {
        is_done = dcrf_operator_apply(visitor->op, own, DCRF_SYMMETRIC, visitor->in, out,
                                      VARIABLES * STRIDE, LABELS, STRIDE, NULL) == DCRF_OK;
        visitor->differing += memcmp(out, visitor->expected, VARIABLES * STRIDE * sizeof *out) != 0;
    }
    dcrf_workspace_free(&own);
    free(out);
    return is_done ? visitor : NULL;
}

static void kept_operators_meet_other_threads(void **state) {
    (void)state;
    float *in = new_block(VARIABLES * STRIDE), *expected = new_block(VARIABLES * STRIDE);
    const struct problem problem = {.method = DCRF_METHOD_MF, .damping = 0.3};
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 5);
    for (size_t i = 0; i < VARIABLES * STRIDE; i++)
        in[i] = (float)dcrf_rng_uniform(&rng);
    for (size_t k = 0; k < 2; k++) {
        dcrf_operator *op = new_operator(k, DCRF_NORMALIZE_SYMMETRIC, DCRF_OPERATOR_FAST, device);
        assert_int_equal(dcrf_operator_apply(op, device, DCRF_SYMMETRIC, in, expected,
                                             VARIABLES * STRIDE, LABELS, STRIDE, NULL),
                         DCRF_OK);
        struct outcome alone = solve(device, &problem);
        struct visitor visitor = {.op = op, .in = in, .expected = expected};
        pthread_t thread;
        void *done;
        assert_int_equal(pthread_create(&thread, NULL, visit, &visitor), 0);
        for (size_t i = 0; i < SOLUTIONS; i++) {
            struct outcome again = solve(device, &problem);
            assert_memory_equal(alone.marginals, again.marginals,
                                VARIABLES * STRIDE * sizeof(float));
            assert_memory_equal(alone.labels, again.labels, VARIABLES * sizeof(uint16_t));
            free_outcome(&again);
        }
        assert_int_equal(pthread_join(thread, &done), 0);
        assert_ptr_equal(done, &visitor);
        assert_int_equal(visitor.differing, 0);
        free_outcome(&alone);
        dcrf_operator_free(&op);
    }
    free(in);
    free(expected);
}

int main(void) {
    size_t count;
    dcrf_error error;
    if (dcrf_device_count(&count, &error) < 0) {
        printf("skipped: %s\n", error.message);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_operators_are_the_same),
        cmocka_unit_test(exact_operators_are_the_same),
        cmocka_unit_test(tiles_are_the_same),
        cmocka_unit_test(mean_field_is_the_same),
        cmocka_unit_test(relaxations_are_the_same),
        cmocka_unit_test(the_flow_is_the_same),
        cmocka_unit_test(moves_are_the_same),
        cmocka_unit_test(kept_operators_meet_other_threads),
    };
    return cmocka_run_group_tests(tests, make_picture, free_workspaces);
}
