/* A model that changes under a plan, a solver, a proof or mean field with derivatives: after each
 * kind of change every call either is an error that says so, or works with the new model, or still
 * gives the results from before. */
#include "unit.h"

#include <dcrf/dcrf.h>
#include <dcrf/experimental.h>
#include <stdbool.h>

#define PIXELS 12
#define LABELS 2
#define STRIDE 4 /* of a block of two channels */
#define FLOATS (PIXELS * STRIDE)

struct scene {
    dcrf_grid grid;
    float unary[PIXELS][LABELS];
    unsigned char grey[PIXELS];
    int32_t regions[PIXELS];
    uint16_t labels[PIXELS];
    float block[FLOATS];
    dcrf_view energies, image, map;
    dcrf_kernel kernel;
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_unrolled *unrolled;
};

static void make(struct scene *s) {
    dcrf_error error;
    dcrf_settings settings;
    memset(s, 0, sizeof *s);
    s->grid = dcrf_grid_2d(4, 3);
    for (size_t a = 0; a < PIXELS; a++) {
        s->unary[a][a % 2] = 1;
        s->grey[a] = (unsigned char)(20 * a);
        s->regions[a] = a < 2 ? 0 : -1;
        for (size_t i = 0; i < LABELS; i++)
            s->block[a * STRIDE + i] = 0.5f;
    }
    s->energies = dcrf_view_interleaved(s->unary, DCRF_F32, &s->grid, LABELS);
    s->image = dcrf_view_interleaved(s->grey, DCRF_U8, &s->grid, 1);
    s->map = dcrf_view_interleaved(s->regions, DCRF_I32, &s->grid, 1);
    s->kernel = dcrf_kernel_bilateral(2, 30, s->image, 0.5);
    assert_int_equal(dcrf_model_new(&s->model, &s->grid, LABELS, &error), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(s->model, &s->energies, &error), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(s->model, &s->kernel, &error), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&s->workspace, 1, &error), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&s->plan, s->model, DCRF_OPERATOR_EXACT, s->workspace, &error),
                     DCRF_OK);
    assert_int_equal(dcrf_unrolled_new(&s->unrolled, s->plan, s->workspace, 2, &error), DCRF_OK);
    float q[FLOATS];
    assert_int_equal(dcrf_unrolled_forward(s->unrolled, NULL, q, FLOATS, STRIDE, &error), DCRF_OK);
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.trace = 1;
    settings.iterations = 3;
    settings.proof = DCRF_PROVE_CERTIFICATE;
    assert_int_equal(dcrf_solver_new(&s->solver, s->plan, s->workspace, &settings, &error),
                     DCRF_OK);
    assert_true(dcrf_solver_run(s->solver, &error) >= 0);
}

static void destroy(struct scene *s) {
    dcrf_unrolled_free(&s->unrolled);
    dcrf_solver_free(&s->solver);
    dcrf_plan_free(&s->plan);
    dcrf_workspace_free(&s->workspace);
    dcrf_model_free(&s->model);
}

/* ---- the changes ---------------------------------------------------------------------------- */

static dcrf_status set_unary(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_unary(s->model, &s->energies, error);
}

static dcrf_status set_unary_with(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_unary_with(s->model, s->workspace, &s->energies, error);
}

static dcrf_status apply_temperature(struct scene *s, dcrf_error *error) {
    return dcrf_model_apply_temperature(s->model, 2, error);
}

static dcrf_status set_weight(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_weight(s->model, 0, 2, error);
}

static dcrf_status set_strength(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_strength(s->model, 3, error);
}

static dcrf_status set_compatibility(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_compatibility(s->model, 0, DCRF_COMPATIBILITY_POTTS, NULL, error);
}

static dcrf_status set_linear(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_linear(s->model, 0, 1, error);
}

static dcrf_status set_distance(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_distance(s->model, 0, "linear", error);
}

static dcrf_status set_tree(struct scene *s, dcrf_error *error) {
    const size_t ends[] = {0, 1};
    const double length = 1;
    return dcrf_model_set_tree(s->model, 0, 1, ends, &length, error);
}

static dcrf_status set_cuts(struct scene *s, dcrf_error *error) {
    const unsigned char sets[] = {1, 0};
    const double length = 1;
    return dcrf_model_set_cuts(s->model, 0, 1, sets, &length, error);
}

static dcrf_status add_clique(struct scene *s, dcrf_error *error) {
    const size_t offsets[] = {0, 2}, members[] = {0, 1};
    const double cost = 1;
    return dcrf_model_set_cliques(s->model, 1, offsets, members, &cost, error);
}

static dcrf_status add_clique_map(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_clique_map(s->model, &s->map, 1, error);
}

static dcrf_status remove_cliques(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_cliques(s->model, 0, NULL, NULL, NULL, error);
}

static dcrf_status set_clique_costs(struct scene *s, dcrf_error *error) {
    return dcrf_model_set_clique_costs(s->model, &s->image, 1, 100, error);
}

static dcrf_status add_kernel(struct scene *s, dcrf_error *error) {
    return dcrf_model_add_kernel(s->model, &s->kernel, error);
}

static dcrf_status set_origin(struct scene *s, dcrf_error *error) {
    const size_t origin[DCRF_MAX_AXES] = {1};
    return dcrf_model_set_origin(s->model, origin, error);
}

static const struct change {
    const char *name;
    dcrf_status (*make)(struct scene *s, dcrf_error *error);
    const char *plan_error; /* what calls with an old plan say; NULL: the plan stays valid */
    bool has_cliques;       /* after the change */
} changes[] = {
    {"set_unary", set_unary, NULL, false},
    {"set_unary_with", set_unary_with, NULL, false},
    {"apply_temperature", apply_temperature, NULL, false},
    {"set_weight", set_weight, NULL, false},
    {"set_strength", set_strength, NULL, false},
    {"set_compatibility", set_compatibility, NULL, false},
    {"set_linear", set_linear, NULL, false},
    {"set_distance", set_distance, NULL, false},
    {"set_tree", set_tree, NULL, false},
    {"set_cuts", set_cuts, NULL, false},
    {"set_cliques", add_clique, NULL, true},
    {"set_clique_map", add_clique_map, NULL, true},
    {"set_cliques to none", remove_cliques, NULL, false},
    {"set_clique_costs", set_clique_costs, NULL, false},
    {"add_kernel", add_kernel, "make a new plan", false},
    {"set_origin", set_origin, "make a new plan", false},
};
enum { CHANGES = sizeof changes / sizeof *changes };

/* ---- the calls ------------------------------------------------------------------------------ */

static dcrf_status step(struct scene *s, dcrf_error *error) {
    return dcrf_solver_step(s->solver, error);
}

static dcrf_status run(struct scene *s, dcrf_error *error) {
    return dcrf_solver_run(s->solver, error);
}

static dcrf_status finish(struct scene *s, dcrf_error *error) {
    return dcrf_solver_finish(s->solver, error);
}

static dcrf_status start_labels(struct scene *s, dcrf_error *error) {
    return dcrf_solver_start_labels(s->solver, s->labels, error);
}

static dcrf_status start_marginals(struct scene *s, dcrf_error *error) {
    return dcrf_solver_start_marginals(s->solver, s->block, STRIDE, error);
}

static dcrf_status prove(struct scene *s, dcrf_error *error) {
    return dcrf_solver_prove(s->solver, error);
}

static dcrf_status backward(struct scene *s, dcrf_error *error) {
    const dcrf_derivatives none = {0};
    return dcrf_unrolled_backward(s->unrolled, s->block, STRIDE, &none, error);
}

static dcrf_status backward_log_q(struct scene *s, dcrf_error *error) {
    const dcrf_derivatives none = {0};
    return dcrf_unrolled_backward_log_q(s->unrolled, s->block, STRIDE, &none, error);
}

static dcrf_status forward(struct scene *s, dcrf_error *error) {
    float q[FLOATS];
    return dcrf_unrolled_forward(s->unrolled, NULL, q, FLOATS, STRIDE, error);
}

static dcrf_status new_unrolled(struct scene *s, dcrf_error *error) {
    dcrf_unrolled *unrolled = NULL;
    const dcrf_status status = dcrf_unrolled_new(&unrolled, s->plan, s->workspace, 2, error);
    dcrf_unrolled_free(&unrolled);
    return status;
}

static dcrf_status new_solver(struct scene *s, dcrf_error *error) {
    dcrf_solver *solver = NULL;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_MF);
    const dcrf_status status = dcrf_solver_new(&solver, s->plan, s->workspace, &settings, error);
    dcrf_solver_free(&solver);
    return status;
}

static dcrf_status energy_of_labels(struct scene *s, dcrf_error *error) {
    dcrf_energy energy;
    return dcrf_energy_of_labels(s->plan, s->workspace, s->labels, &energy, NULL, 0, error);
}

static dcrf_status energy_at_most(struct scene *s, dcrf_error *error) {
    dcrf_energy energy;
    return dcrf_energy_at_most(s->plan, s->workspace, s->labels, &energy, NULL, 0, error);
}

static dcrf_status best_constant(struct scene *s, dcrf_error *error) {
    uint16_t label;
    dcrf_energy energy;
    return dcrf_best_constant(s->plan, s->workspace, &label, &energy, error);
}

static dcrf_status certify(struct scene *s, dcrf_error *error) {
    dcrf_certify_settings settings;
    dcrf_certify_info info;
    dcrf_certify_settings_defaults(&settings);
    return dcrf_certify(s->plan, s->workspace, s->labels, &settings, &info, error);
}

static dcrf_status pairwise_gradient(struct scene *s, dcrf_error *error) {
    const dcrf_derivatives none = {0};
    double energy;
    return dcrf_pairwise_gradient(s->plan, s->workspace, s->block, STRIDE, &energy, NULL, 0, &none,
                                  error);
}

static const struct call {
    const char *name;
    dcrf_status (*make)(struct scene *s, dcrf_error *error);
    const char *error; /* after any change; NULL: the call uses the plan and the new model */
    bool knows_no_cliques;
} calls[] = {
    {"dcrf_solver_step", step, "make a new solver", false},
    {"dcrf_solver_run", run, "make a new solver", false},
    {"dcrf_solver_finish", finish, "make a new solver", false},
    {"dcrf_solver_start_labels", start_labels, "make a new solver", false},
    {"dcrf_solver_start_marginals", start_marginals, "make a new solver", false},
    {"dcrf_solver_prove", prove, "make a new solver", false},
    {"dcrf_unrolled_backward", backward, "run it again", true},
    {"dcrf_unrolled_backward_log_q", backward_log_q, "run it again", true},
    {"dcrf_unrolled_forward", forward, NULL, true},
    {"dcrf_unrolled_new", new_unrolled, NULL, true},
    {"dcrf_solver_new", new_solver, NULL, false},
    {"dcrf_energy_of_labels", energy_of_labels, NULL, false},
    {"dcrf_energy_at_most", energy_at_most, NULL, false},
    {"dcrf_best_constant", best_constant, NULL, false},
    {"dcrf_certify", certify, NULL, false},
    {"dcrf_pairwise_gradient", pairwise_gradient, NULL, false},
};
enum { CALLS = sizeof calls / sizeof *calls };

static void fails_or_uses_the_new_model(void **state) {
    (void)state;
    for (size_t c = 0; c < CHANGES; c++)
        for (size_t k = 0; k < CALLS; k++) {
            struct scene s;
            dcrf_error error = {DCRF_OK, ""};
            make(&s);
            if (calls[k].make(&s, &error) < 0)
                fail_msg("%s fails without a change: %s", calls[k].name, error.message);
            if (changes[c].make(&s, &error) < 0)
                fail_msg("dcrf_model_%s fails: %s", changes[c].name, error.message);
            const char *expected = calls[k].error ? calls[k].error : changes[c].plan_error;
            if (!expected && calls[k].knows_no_cliques && changes[c].has_cliques)
                expected = "knows no cliques";
            const dcrf_status status = calls[k].make(&s, &error);
            if ((status < 0) != (expected != NULL) ||
                (expected && !strstr(error.message, expected)))
                fail_msg("%s after dcrf_model_%s: status %d, \"%s\"", calls[k].name,
                         changes[c].name, (int)status, error.message);
            destroy(&s);
        }
}

/* ---- the results ---------------------------------------------------------------------------- */

struct results {
    dcrf_solver_info info;
    dcrf_energy candidate;
    uint16_t labels[PIXELS], left[PIXELS];
    float marginals[FLOATS], log_q[FLOATS];
    const dcrf_moment *trace;
    size_t trace_count, certificate_size;
    dcrf_moment last;
    const dcrf_proof *proof;
    dcrf_proof_info proof_info;
    uint8_t possible[PIXELS * LABELS];
    uint32_t certificate_sum;
};

static void read_results(struct scene *s, struct results *r) {
    dcrf_error error;
    memset(r, 0, sizeof *r);
    dcrf_solver_get_info(s->solver, &r->info);
    dcrf_solver_candidate_energy(s->solver, DCRF_CANDIDATE_UNARY, &r->candidate);
    assert_int_equal(dcrf_solver_labels(s->solver, r->labels, PIXELS, &error), DCRF_OK);
    assert_int_equal(dcrf_solver_labels_left(s->solver, r->left, PIXELS, &error), DCRF_OK);
    assert_int_equal(dcrf_solver_marginals(s->solver, r->marginals, FLOATS, STRIDE, &error),
                     DCRF_OK);
    r->trace = dcrf_solver_trace(s->solver, &r->trace_count);
    r->last = r->trace[r->trace_count - 1];
    r->proof = dcrf_solver_proof(s->solver);
    dcrf_proof_get_info(r->proof, &r->proof_info);
    memcpy(r->possible, dcrf_proof_possible(r->proof), sizeof r->possible);
    const uint8_t *certificate = dcrf_proof_certificate(r->proof, &r->certificate_size);
    for (size_t k = 0; k < r->certificate_size; k++)
        r->certificate_sum = r->certificate_sum * 31 + certificate[k];
    assert_int_equal(dcrf_unrolled_log_q(s->unrolled, r->log_q, FLOATS, STRIDE, &error), DCRF_OK);
}

static void results_can_still_be_read(void **state) {
    (void)state;
    for (size_t c = 0; c < CHANGES; c++) {
        struct scene s;
        struct results before, after;
        dcrf_error error;
        make(&s);
        read_results(&s, &before);
        assert_non_null(before.proof);
        assert_true(before.certificate_size > 0);
        assert_true(changes[c].make(&s, &error) >= 0);
        read_results(&s, &after);
        if (memcmp(&before, &after, sizeof before) != 0)
            fail_msg("dcrf_model_%s changes results", changes[c].name);
        destroy(&s);
    }
}

/* Without a proof, the labels left follow from the dual point, which proves nothing about another
 * model. */
static void labels_left_need_the_model(void **state) {
    (void)state;
    for (size_t c = 0; c < CHANGES; c++) {
        struct scene s;
        dcrf_error error;
        dcrf_settings settings;
        uint16_t left[PIXELS];
        make(&s);
        dcrf_solver_free(&s.solver);
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        assert_int_equal(dcrf_solver_new(&s.solver, s.plan, s.workspace, &settings, &error),
                         DCRF_OK);
        assert_true(dcrf_solver_step(s.solver, &error) >= 0);
        assert_int_equal(dcrf_solver_labels_left(s.solver, left, PIXELS, &error), DCRF_OK);
        assert_true(changes[c].make(&s, &error) >= 0);
        assert_fails(DCRF_ERROR_ARGUMENT, "make a new solver", error,
                     dcrf_solver_labels_left(s.solver, left, PIXELS, &error));
        destroy(&s);
    }
}

/* A call that fails has not changed the model. */
static void a_failed_change_is_none(void **state) {
    (void)state;
    struct scene s;
    dcrf_error error;
    make(&s);
    assert_int_equal(dcrf_model_set_weight(s.model, 9, 2, &error), DCRF_ERROR_ARGUMENT);
    assert_int_equal(dcrf_model_set_distance(s.model, 0, "none", &error), DCRF_ERROR_ARGUMENT);
    assert_true(dcrf_model_apply_temperature(s.model, 0, &error) < 0);
    for (size_t k = 0; k < CALLS; k++)
        if (calls[k].make(&s, &error) < 0)
            fail_msg("%s: %s", calls[k].name, error.message);
    destroy(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_or_uses_the_new_model),
        cmocka_unit_test(results_can_still_be_read),
        cmocka_unit_test(labels_left_need_the_model),
        cmocka_unit_test(a_failed_change_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
