/* Runs with distances between labels: the same bytes for every number of threads and for every
 * spelling of Potts, and an end wherever they are cancelled. */
#include "unit.h"

#include "core/rng.h"
#include "core/workspace.h"

#include <dcrf/cpu.h>
#include <dcrf/dcrf.h>
#include <math.h>
#include <stdlib.h>

enum { LABELS = 9 };

/* ---- compatibilities ------------------------------------------------------------------------ */

typedef dcrf_status setter(dcrf_model *model, size_t kernel);

static dcrf_status set_truncated(dcrf_model *model, size_t kernel) {
    return dcrf_model_set_distance(model, kernel, "truncated-linear:2.5", NULL);
}

static dcrf_status set_tree(dcrf_model *model, size_t kernel) {
    size_t ends[2 * 10];
    double lengths[10];
    for (size_t i = 0; i < 10; i++) { /* two groups in a third */
        ends[2 * i] = i < LABELS ? i : LABELS;
        ends[2 * i + 1] = i < LABELS ? LABELS + i % 2 : LABELS + 1;
        lengths[i] = 0.25 + 0.125 * (double)i;
    }
    return dcrf_model_set_tree(model, kernel, 10, ends, lengths, NULL);
}

static dcrf_status set_cuts(dcrf_model *model, size_t kernel) {
    unsigned char sets[5 * LABELS];
    const double lengths[5] = {0.3, 0.2, 0.7, 0.1, 0.4};
    for (size_t k = 0; k < sizeof sets; k++)
        sets[k] = k * k / 7 % 2;
    return dcrf_model_set_cuts(model, kernel, 5, sets, lengths, NULL);
}

static dcrf_status set_matrix(dcrf_model *model, size_t kernel, float (*mu)(float difference)) {
    float matrix[LABELS * LABELS];
    for (size_t k = 0; k < LABELS * LABELS; k++)
        matrix[k] = mu((float)(k / LABELS) - (float)(k % LABELS));
    return dcrf_model_set_compatibility(model, kernel, DCRF_COMPATIBILITY_MATRIX, matrix, NULL);
}

static float squared(float difference) {
    return fminf(4, difference * difference) / 4;
}

/* No sum of cuts. */
static dcrf_status set_squares(dcrf_model *model, size_t kernel) {
    return set_matrix(model, kernel, squared);
}

static setter *const setters[] = {set_truncated, set_tree, set_cuts, set_squares};
#define SETTERS (sizeof setters / sizeof setters[0])

/* ---- a slope with noise --------------------------------------------------------------------- */

struct scene {
    size_t width, height;
    dcrf_operator_kind operator_kind;
};

static dcrf_model *new_model(const struct scene *s, setter *set) {
    const size_t pixels = s->width * s->height;
    const dcrf_grid grid = dcrf_grid_2d(s->width, s->height);
    float *unary = malloc(pixels * LABELS * sizeof *unary);
    uint8_t *image = malloc(3 * pixels);
    dcrf_model *model;
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 11);
    for (size_t a = 0; a < pixels; a++) {
        const double level = LABELS * (double)(a % s->width) / (double)s->width;
        for (size_t c = 0; c < 3; c++)
            image[3 * a + c] = (uint8_t)(20 * level + 30 * dcrf_rng_uniform(&rng));
        for (size_t i = 0; i < LABELS; i++)
            unary[LABELS * a + i] =
                (float)(fmin(2, fabs((double)i - level)) + 1.5 * dcrf_rng_uniform(&rng));
    }
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F32, &grid, LABELS);
    const dcrf_kernel kernels[] = {
        dcrf_kernel_spatial(1.5, 0.3),
        dcrf_kernel_bilateral(6, 20, dcrf_view_interleaved(image, DCRF_U8, &grid, 3), 0.4)};
    assert_int_equal(dcrf_model_new(&model, &grid, LABELS, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(model, &energies, NULL), DCRF_OK);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(dcrf_model_add_kernel(model, &kernels[k], NULL), DCRF_OK);
        assert_int_equal(set(model, k), DCRF_OK);
    }
    free(image);
    free(unary);
    return model;
}

/* ---- runs ----------------------------------------------------------------------------------- */

struct run {
    size_t pixels;
    uint16_t *labels;
    float *marginals;
    dcrf_solver_info info;
    uint8_t *certificate; /* NULL: none */
    size_t size;
};

static void free_run(struct run *r) {
    free(r->labels);
    free(r->marginals);
    free(r->certificate);
}

static dcrf_settings settings_of(dcrf_method method) {
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, method);
    settings.iterations = 18; /* moves are tried after 16 */
    settings.rounding_draws = 2;
    if (method == DCRF_METHOD_LP)
        settings.proof = DCRF_PROVE_CERTIFICATE;
    return settings;
}

static void take_certificate(const dcrf_solver *solver, struct run *r) {
    const uint8_t *bytes = dcrf_proof_certificate(dcrf_solver_proof(solver), &r->size);
    if (!bytes)
        return;
    r->certificate = malloc(r->size);
    memcpy(r->certificate, bytes, r->size);
}

static struct run run(const struct scene *s, setter *set, dcrf_method method, size_t threads) {
    struct run r = {.pixels = s->width * s->height};
    const dcrf_settings settings = settings_of(method);
    const size_t stride = dcrf_padded(LABELS);
    dcrf_model *model = new_model(s, set);
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    r.labels = calloc(r.pixels, sizeof *r.labels);
    r.marginals = calloc(r.pixels, stride * sizeof *r.marginals);
    assert_int_equal(dcrf_workspace_new(&workspace, threads, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, s->operator_kind, workspace, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    dcrf_solver_get_info(solver, &r.info);
    dcrf_solver_labels(solver, r.labels, r.pixels, NULL);
    dcrf_solver_marginals(solver, r.marginals, r.pixels * stride, stride, NULL);
    take_certificate(solver, &r);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
    return r;
}

#define assert_same_number(one, other) assert_memory_equal(&(one), &(other), sizeof(one))

static void assert_same(const struct run *one, const struct run *other) {
    const size_t stride = dcrf_padded(LABELS);
    assert_memory_equal(one->labels, other->labels, one->pixels * sizeof *one->labels);
    for (size_t a = 0; a < one->pixels; a++) /* padding is unspecified */
        assert_memory_equal(one->marginals + a * stride, other->marginals + a * stride,
                            LABELS * sizeof(float));
    assert_same_number(one->info.energy, other->info.energy);
    assert_same_number(one->info.objective, other->info.objective);
    assert_same_number(one->info.lower_bound, other->info.lower_bound);
    assert_same_number(one->info.relative_gap, other->info.relative_gap);
    assert_same_number(one->info.bound_left_out, other->info.bound_left_out);
    assert_int_equal(one->info.proven, other->info.proven);
    assert_int_equal(one->info.iterations, other->info.iterations);
    assert_int_equal(one->size, other->size);
    if (one->size > 0)
        assert_memory_equal(one->certificate, other->certificate, one->size);
}

/* ---- threads and instruction sets ----------------------------------------------------------- */

static void compare_threads(const struct scene *s, setter *set, dcrf_method method) {
    static const size_t threads[] = {3, 2, 8, 16};
    struct run once = run(s, set, method, 1);
    assert_true((once.certificate != NULL) == (method == DCRF_METHOD_LP));
    for (size_t t = 0; t < (SANITIZED ? 1 : sizeof threads / sizeof threads[0]); t++) {
        struct run again = run(s, set, method, threads[t]);
        assert_same(&once, &again);
        free_run(&again);
    }
    free_run(&once);
}

static void threads_do_not_change_a_byte(void **state) {
    (void)state;
    const struct scene scene = {48, 24, DCRF_OPERATOR_FAST}; /* two chunks of 1024 variables */
    for (size_t k = 0; k < SETTERS; k++)
        for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++)
            compare_threads(&scene, setters[k], method);
}

static void nor_do_they_with_any_instruction_set(void **state) {
    (void)state;
    const struct scene wide = {60, 36, DCRF_OPERATOR_FAST}, exact = {24, 18, DCRF_OPERATOR_EXACT};
    const dcrf_cpu best = dcrf_cpu_best(), in_use = dcrf_cpu_in_use();
    for (dcrf_cpu cpu = DCRF_CPU_C; cpu <= best; cpu++)
        if (dcrf_cpu_limit(cpu, NULL) == DCRF_OK) {
            compare_threads(&wide, set_truncated, DCRF_METHOD_LP);
            compare_threads(&exact, set_truncated, DCRF_METHOD_LP);
        }
    assert_int_equal(dcrf_cpu_limit(in_use, NULL), DCRF_OK);
}

/* ---- Potts ---------------------------------------------------------------------------------- */

static dcrf_status set_potts(dcrf_model *model, size_t kernel) {
    return dcrf_model_set_distance(model, kernel, "potts", NULL);
}

static float differs(float difference) {
    return difference != 0;
}

static dcrf_status set_potts_matrix(dcrf_model *model, size_t kernel) {
    return set_matrix(model, kernel, differs);
}

static dcrf_status set_potts_cuts(dcrf_model *model, size_t kernel) {
    unsigned char sets[LABELS * LABELS] = {0};
    double lengths[LABELS];
    for (size_t i = 0; i < LABELS; i++) {
        sets[i * LABELS + i] = 1;
        lengths[i] = 0.5;
    }
    return dcrf_model_set_cuts(model, kernel, LABELS, sets, lengths, NULL);
}

static dcrf_status set_potts_tree(dcrf_model *model, size_t kernel) {
    size_t ends[2 * LABELS];
    double lengths[LABELS];
    for (size_t i = 0; i < LABELS; i++) {
        ends[2 * i] = i;
        ends[2 * i + 1] = LABELS;
        lengths[i] = 0.5;
    }
    return dcrf_model_set_tree(model, kernel, LABELS, ends, lengths, NULL);
}

static dcrf_status set_potts_windows(dcrf_model *model, size_t kernel) {
    return dcrf_model_set_distance(model, kernel, "truncated-linear:1", NULL);
}

static void potts_is_potts_however_it_is_given(void **state) {
    (void)state;
    static setter *const spellings[] = {set_potts_matrix, set_potts_cuts, set_potts_tree,
                                        set_potts_windows};
    const struct scene scene = {50, 34, DCRF_OPERATOR_FAST};
    for (dcrf_method method = DCRF_METHOD_MF; method <= DCRF_METHOD_LP; method++) {
        struct run potts = run(&scene, set_potts, method, 2);
        for (size_t k = 0; k < sizeof spellings / sizeof spellings[0]; k++) {
            struct run other = run(&scene, spellings[k], method, 2);
            assert_same(&potts, &other);
            free_run(&other);
        }
        free_run(&potts);
    }
}

/* ---- cancelling ----------------------------------------------------------------------------- */

struct patience {
    size_t asked, most;
};

static int is_over(void *user) {
    struct patience *patience = user;
    return ++patience->asked > patience->most;
}

struct problem {
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    uint16_t *labels;
};

static struct problem new_problem(const struct scene *s, setter *set) {
    struct problem p = {.model = new_model(s, set),
                        .labels = calloc(s->width * s->height, sizeof *p.labels)};
    assert_int_equal(dcrf_workspace_new(&p.workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&p.plan, p.model, s->operator_kind, p.workspace, NULL), DCRF_OK);
    dcrf_workspace_ask_always(p.workspace); /* regardless of the elapsed time */
    return p;
}

static void free_problem(struct problem *p) {
    dcrf_plan_free(&p->plan);
    dcrf_workspace_free(&p->workspace);
    dcrf_model_free(&p->model);
    free(p->labels);
}

/* The labelling's energy is not understated, and the bound and what it leaves out are valid. */
static void check_cancelled(const struct problem *p, const dcrf_solver_info *info) {
    dcrf_energy energy;
    assert_int_equal(
        dcrf_energy_of_labels(p->plan, p->workspace, p->labels, &energy, NULL, 0, NULL), DCRF_OK);
    assert_true(info->energy.total >= energy.total * (1 - 1e-6));
    assert_true(!(info->lower_bound > info->energy.total));
    assert_true(
        !(info->bound_left_out.energy > (info->energy.total - info->lower_bound) * (1 + 1e-6)));
}

/* Returns the number of questions. */
static size_t run_until(struct problem *p, size_t most, bool has_certificate) {
    struct patience patience = {0, most};
    dcrf_settings settings = settings_of(DCRF_METHOD_LP);
    dcrf_solver *solver;
    dcrf_solver_info info;
    settings.iterations = 2;
    settings.rounding_draws = 1;
    settings.polish_rounds = 2;
    settings.proof = has_certificate ? DCRF_PROVE_CERTIFICATE : DCRF_PROVE_VARIABLES;
    settings.cancel = is_over;
    settings.cancel_user = &patience;
    assert_int_equal(dcrf_solver_new(&solver, p->plan, p->workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    dcrf_solver_get_info(solver, &info);
    assert_int_equal(dcrf_solver_labels(solver, p->labels, dcrf_model_variables(p->model), NULL),
                     DCRF_OK);
    check_cancelled(p, &info);
    dcrf_solver_free(&solver);
    return patience.asked;
}

static void runs_are_cancelled_at_every_question(void **state) {
    (void)state;
    const struct scene scene = {9, 8, DCRF_OPERATOR_FAST};
    for (size_t k = 0; k < SETTERS; k++) {
        struct problem p = new_problem(&scene, setters[k]);
        size_t most = 0;
        for (;; most += 1 + (SANITIZED ? most / 8 : most / 64)) {
            const size_t asked = run_until(&p, most, k % 2 == 0);
            if (asked <= most)
                break;
            assert_int_equal(asked, most + 1); /* it is not called again */
        }
        assert_true(most > 50);
        free_problem(&p);
    }
}

static void certifying_is_cancelled_at_every_question(void **state) {
    (void)state;
    const struct scene scene = {9, 8, DCRF_OPERATOR_FAST};
    for (size_t k = 0; k < SETTERS; k++) {
        struct problem p = new_problem(&scene, setters[k]);
        for (size_t most = 0;; most++) {
            struct patience patience = {0, most};
            dcrf_certify_settings settings;
            dcrf_certify_info found;
            dcrf_certify_settings_defaults(&settings);
            settings.iterations = 2;
            settings.cancel = is_over;
            settings.cancel_user = &patience;
            assert_int_equal(dcrf_certify(p.plan, p.workspace, p.labels, &settings, &found, NULL),
                             DCRF_OK);
            assert_true(found.lower_bound <= found.best_energy);
            assert_true(patience.asked <= most + 1);
            if (patience.asked <= most)
                break;
        }
        free_problem(&p);
    }
}

static void checking_is_cancelled_at_every_question(void **state) {
    (void)state;
    const struct scene scene = {9, 8, DCRF_OPERATOR_EXACT};
    for (size_t k = 0; k < SETTERS; k++) {
        struct run made = run(&scene, setters[k], DCRF_METHOD_LP, 1);
        struct problem p = new_problem(&scene, setters[k]);
        for (size_t most = 0;; most++) {
            struct patience patience = {0, most};
            dcrf_verification found;
            dcrf_workspace_set_limit(p.workspace, 0, is_over, &patience);
            const dcrf_status status = dcrf_verify_certificate(
                made.certificate, made.size, p.model, p.workspace, NULL, NULL, 0, &found, NULL);
            dcrf_workspace_set_limit(p.workspace, 0, NULL, NULL);
            assert_true(patience.asked <= most + 1);
            if (patience.asked <= most) {
                assert_int_equal(status, DCRF_OK);
                assert_true(most > 3);
                break;
            }
            assert_int_equal(status, DCRF_ERROR_INTERRUPTED);
        }
        free_problem(&p);
        free_run(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_change_a_byte),
        cmocka_unit_test(nor_do_they_with_any_instruction_set),
        cmocka_unit_test(potts_is_potts_however_it_is_given),
        cmocka_unit_test(runs_are_cancelled_at_every_question),
        cmocka_unit_test(certifying_is_cancelled_at_every_question),
        cmocka_unit_test(checking_is_cancelled_at_every_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
