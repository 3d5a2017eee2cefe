/* Certificates that need not be true: sums of small numbers, forbidden labels, sums that overflow,
 * and a check that is stopped. */
#include "unit.h"

#include "core/memory.h"
#include "core/workspace.h"
#include "verify/check.h"

#include <dcrf/dcrf.h>
#include <math.h>

#define CROWD 302
#define MOST_LABELS 20

/* A model and a certificate for it that need not be true. */
struct claim {
    dcrf_workspace *workspace;
    dcrf_model *model;
    struct dcrf_certificate_content content;
    uint16_t labels[CROWD], round[CROWD], plane[MOST_LABELS];
    double epsilon[CROWD];
};

static void new_model(struct claim *claim, size_t n, size_t labels, const double *unary,
                      const double *feature, double weight) {
    const dcrf_grid grid = dcrf_grid_1d(n);
    const dcrf_view energies = dcrf_view_interleaved(unary, DCRF_F64, &grid, labels);
    dcrf_kernel kernel =
        dcrf_kernel_features(dcrf_view_interleaved(feature, DCRF_F64, &grid, 1), weight);
    *claim = (struct claim){0};
    assert_int_equal(dcrf_workspace_new(&claim->workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&claim->model, &grid, labels, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_unary(claim->model, &energies, NULL), DCRF_OK);
    kernel.normalization = DCRF_NORMALIZE_NONE;
    assert_int_equal(dcrf_model_add_kernel(claim->model, &kernel, NULL), DCRF_OK);
}

/* About the model, without rounds and mixtures. */
static void new_content(struct claim *claim, bool is_exact) {
    dcrf_plan *plan;
    assert_int_equal(dcrf_identity_of_model(&claim->content.identity, claim->model, is_exact,
                                            claim->workspace, NULL),
                     DCRF_OK);
    if (!is_exact) {
        assert_int_equal(
            dcrf_plan_new(&plan, claim->model, DCRF_OPERATOR_FAST, claim->workspace, NULL),
            DCRF_OK);
        assert_int_equal(
            dcrf_identity_take_matrices(&claim->content.identity, plan, claim->workspace, NULL),
            DCRF_OK);
        dcrf_plan_free(&plan);
    }
    claim->content.labels = claim->labels;
    claim->content.round = claim->round;
    claim->content.plane = claim->plane;
    claim->content.epsilon = claim->epsilon;
}

static void new_claim(struct claim *claim, size_t n, const double *unary, const double *feature) {
    new_model(claim, n, 2, unary, feature, 1);
    new_content(claim, true);
}

static dcrf_status check_claim(const struct claim *claim, dcrf_verification *found,
                               dcrf_error *error) {
    uint8_t *bytes;
    size_t size;
    assert_int_equal(dcrf_certificate_encode(&claim->content, &bytes, &size, NULL), DCRF_OK);
    const dcrf_status status = dcrf_verify_certificate(bytes, size, claim->model, claim->workspace,
                                                       NULL, NULL, 0, found, error);
    dcrf_release(bytes);
    return status;
}

static void free_claim(struct claim *claim) {
    dcrf_identity_clear(&claim->content.identity);
    dcrf_model_free(&claim->model);
    dcrf_workspace_free(&claim->workspace);
}

/* Variable 0 costs 1.5 * 2^20 with either label. The last one pulls it to label 1 by 100 units in
 * the last place, 300 others to label 0 by 0.45 of one each: 135 in all, which would be lost
 * entirely if each were subtracted by itself. */
static void many_small_rounds_count(void **state) {
    (void)state;
    double unary[2 * CROWD], feature[CROWD];
    struct claim claim;
    dcrf_verification found;
    dcrf_error error = {0};
    unary[0] = unary[1] = 0x1.8p20;
    feature[0] = 0;
    for (size_t a = 1; a < CROWD; a++) {
        const bool is_last = a + 1 == CROWD;
        unary[2 * a] = is_last ? 10000 : 0;
        unary[2 * a + 1] = is_last ? 0 : 10000;
        feature[a] = (is_last ? -1 : 1) * sqrt(-2 * log((is_last ? 50 : 0.225) * 0x1p-32));
    }
    new_claim(&claim, CROWD, unary, feature);
    claim.content.rounds = CROWD;
    for (size_t a = 0; a < CROWD; a++) {
        claim.round[a] = (uint16_t)(a == 0 ? CROWD : a);
        claim.labels[a] = a == 0 || a + 1 == CROWD;
        claim.epsilon[a] = 0.25;
    }
    claim.content.energy = 0x1.8p20 + 1;
    claim.content.lower_bound = 0;
    assert_fails(DCRF_ERROR_ARGUMENT, "round 302", error, check_claim(&claim, &found, &error));
    /* The true claim passes. */
    claim.labels[0] = 0;
    claim.content.proven = CROWD;
    if (check_claim(&claim, &found, &error) < 0)
        fail_msg("%s", error.message);
    free_claim(&claim);
}

/* A margin counts from where it is above the errors of both of its ends. Two variables at one place
 * with weight w: label 1 costs variable 0 at least 1 - 2 w more, whatever the other one has. */
static void margins_exceed_both_errors(void **state) {
    (void)state;
    const double unary[] = {0, 1, 0, 1}, feature[] = {0, 0};
    const double error_of_sum = (4 * (66 * 0x1p-52 + 1e-12) + 8 * 5e-18) / 2;
    for (int is_enough = 0; is_enough < 2; is_enough++) {
        struct claim claim;
        dcrf_verification found;
        dcrf_error error = {0};
        const double margin = (is_enough ? 2.01 : 1.99) * error_of_sum;
        new_model(&claim, 2, 2, unary, feature, (1 - margin) / 2);
        new_content(&claim, true);
        uint8_t values[] = {DCRF_VALUE_MOST, DCRF_VALUE_MOST};
        claim.plane[0] = 1;
        claim.content.plane_count = 1;
        claim.content.values = values;
        claim.content.rounds = 1;
        claim.epsilon[0] = 0.25;
        claim.round[0] = 1;
        claim.content.proven = 1;
        if (is_enough && check_claim(&claim, &found, &error) < 0)
            fail_msg("%s", error.message);
        if (!is_enough)
            assert_fails(DCRF_ERROR_ARGUMENT, "round 1", error,
                         check_claim(&claim, &found, &error));
        free_claim(&claim);
    }
}

/* Kernel values that the check leaves out count as errors: here one of exp(-40.5) is all that
 * there is, and more than the unaries differ by. */
static void what_is_left_out_counts(void **state) {
    (void)state;
    const double weight = 1e12, small = 1e-18 * weight, large = 1e-15 * weight;
    for (int is_true = 0; is_true < 2; is_true++) {
        const double difference = is_true ? large : small;
        const double unary[] = {0, difference, difference, 0}, feature[] = {0, 9};
        struct claim claim;
        dcrf_verification found;
        dcrf_error error = {0};
        new_model(&claim, 2, 2, unary, feature, weight);
        new_content(&claim, true);
        claim.labels[1] = 1;
        claim.content.proven = 2;
        claim.content.lower_bound = -1;
        if (is_true && check_claim(&claim, &found, &error) < 0)
            fail_msg("%s", error.message);
        if (!is_true)
            assert_fails(DCRF_ERROR_ARGUMENT, "claims more", error,
                         check_claim(&claim, &found, &error));
        free_claim(&claim);
    }
}

/* More labels than are filtered together. Variables 2, 4 and 6 cannot have label 17, and once that
 * is known, variable 0 cannot either: it costs more than the diagonal, which fast operators have,
 * but less than the neighbours. All other labels but 3 are far too expensive, except for the odd
 * variables, which are far away. */
static void dead_ends_of_many_labels(void **state) {
    (void)state;
    enum { STRIP = 7 };
    double unary[STRIP * MOST_LABELS], feature[STRIP];
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        struct claim claim;
        dcrf_verification found;
        dcrf_error error = {0};
        for (size_t k = 0; k < STRIP * MOST_LABELS; k++)
            unary[k] = k % MOST_LABELS == 3 ? 0 : 100;
        for (size_t a = 0; a < STRIP; a++) {
            feature[a] = a % 2 ? 50 * (double)a : 0.1 * (double)a;
            unary[a * MOST_LABELS + 5] = a % 2 ? 0 : 100;
        }
        unary[17] = 5;
        new_model(&claim, STRIP, MOST_LABELS, unary, feature, 1);
        new_content(&claim, is_exact);
        for (size_t a = 0; a < STRIP; a++)
            claim.labels[a] = 3;
        claim.content.proven = 4;
        claim.content.lower_bound = -1;
        if (check_claim(&claim, &found, &error) < 0)
            fail_msg("%s", error.message);
        assert_int_equal(found.proven, 4);
        free_claim(&claim);
    }
}

/* The cost of a forbidden label must not loosen the check for the others. */
static void forbidden_labels_cost_nothing(void **state) {
    (void)state;
    const double unary[] = {0, 1e20, 1, 1e20}, feature[] = {0, 1};
    struct claim claim;
    dcrf_verification found;
    dcrf_error error = {0};
    new_claim(&claim, 2, unary, feature);
    claim.content.energy = 1;
    claim.content.rounds = 1;
    claim.round[0] = claim.round[1] = 1;
    claim.epsilon[0] = 0.25;
    claim.content.proven = 2;
    claim.content.lower_bound = 1 - 1e-9;
    if (check_claim(&claim, &found, &error) < 0)
        fail_msg("%s", error.message);
    const double false_bounds[] = {1 + 1e-9, 3.5e5, INFINITY, NAN, -INFINITY};
    for (size_t k = 0; k < sizeof false_bounds / sizeof *false_bounds; k++) {
        claim.content.lower_bound = false_bounds[k];
        assert_fails(DCRF_ERROR_ARGUMENT, "claims more", error,
                     check_claim(&claim, &found, &error));
    }
    claim.content.lower_bound = 0;
    const double false_energies[] = {0.999, 1.001, NAN, INFINITY};
    for (size_t k = 0; k < sizeof false_energies / sizeof *false_energies; k++) {
        claim.content.energy = false_energies[k];
        assert_fails(DCRF_ERROR_ARGUMENT, "claims more", error,
                     check_claim(&claim, &found, &error));
    }
    free_claim(&claim);
}

/* Six variables that all want label 1, with an x of label 0 everywhere, claimed to be the only
 * optimum. Alternating values make alpha as large as the kernel, and all sums overflow. */
static void what_overflows_proves_nothing(void **state) {
    (void)state;
    enum { STRIP = 6 };
    double unary[2 * STRIP], feature[STRIP];
    uint32_t values[STRIP];
    struct claim claim;
    dcrf_verification found;
    dcrf_error error = {0};
    for (size_t a = 0; a < STRIP; a++) {
        unary[2 * a] = 10;
        unary[2 * a + 1] = 0;
        feature[a] = 1.2 * (double)a;
        values[a] = a % 2 ? 100 : 0;
    }
    new_claim(&claim, STRIP, unary, feature);
    claim.plane[0] = 1;
    struct dcrf_certificate_point point = {.weight = 1,
                                           .epsilon = 0.25,
                                           .levels = 100,
                                           .plane_count = 1,
                                           .plane = claim.plane,
                                           .values = values};
    struct dcrf_certificate_mixture mixture = {.size = STRIP, .point_count = 1, .points = &point};
    uint8_t group[STRIP] = {0};
    claim.content.values = group;
    claim.content.plane_count = 1;
    claim.content.mixtures = &mixture;
    claim.content.mixture_count = 1;
    claim.content.energy = 60;
    claim.content.lower_bound = -1;
    claim.content.proven = STRIP;
    claim.model->kernels[0].weight = claim.content.identity.kernels[0].weight = 15;
    assert_fails(DCRF_ERROR_ARGUMENT, "claims more", error, check_claim(&claim, &found, &error));
    /* The model refuses such a weight. */
    claim.model->kernels[0].weight = claim.content.identity.kernels[0].weight = 1.5e308;
    assert_fails(DCRF_ERROR_SIZE, "too large", error, check_claim(&claim, &found, &error));
    claim.content.mixture_count = 0;
    free_claim(&claim);
    assert_true(isnan(dcrf_check_least(NAN, 0)) && isnan(dcrf_check_least(0, NAN)));
    assert_true(isnan(dcrf_check_most(NAN, 0)) && isnan(dcrf_check_most(0, NAN)));
    assert_true(dcrf_check_least(1, 2) == 1 && dcrf_check_least(2, 1) == 1);
    assert_true(dcrf_check_most(1, 2) == 2 && dcrf_check_most(2, 1) == 2);
}

/* Says no so many times, and then yes. */
struct patience {
    size_t asked, most;
};

static int is_enough(void *user) {
    struct patience *patience = user;
    return patience->asked++ >= patience->most;
}

static void checks_can_be_stopped(void **state) {
    (void)state;
    const double unary[] = {0, 1, 1, 0}, feature[] = {0, 1};
    struct claim claim;
    dcrf_verification found;
    dcrf_error error;
    struct patience patience = {0};
    new_claim(&claim, 2, unary, feature);
    dcrf_workspace_ask_always(claim.workspace);
    dcrf_workspace_set_limit(claim.workspace, 0, is_enough, &patience);
    assert_fails(DCRF_ERROR_INTERRUPTED, "reading a certificate", error,
                 check_claim(&claim, &found, &error));
    dcrf_status status = DCRF_ERROR_INTERRUPTED;
    for (size_t most = 0; status == DCRF_ERROR_INTERRUPTED; most++) {
        patience = (struct patience){.most = most};
        dcrf_workspace_set_limit(claim.workspace, 0, is_enough, &patience);
        status = check_claim(&claim, &found, &error);
        assert_int_equal(patience.asked, status == DCRF_ERROR_INTERRUPTED ? most + 1 : most);
    }
    assert_true(patience.most > 5);
    dcrf_workspace_set_limit(claim.workspace, 1e-9, NULL, NULL);
    assert_fails(DCRF_ERROR_INTERRUPTED, "certificate", error, check_claim(&claim, &found, &error));
    dcrf_workspace_set_limit(claim.workspace, 0, NULL, NULL);
    /* Rounds that decide nothing are refused. */
    claim.content.rounds = 3;
    claim.epsilon[0] = claim.epsilon[1] = claim.epsilon[2] = 0.25;
    assert_fails(DCRF_ERROR_ARGUMENT, "empty", error, check_claim(&claim, &found, &error));
    free_claim(&claim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_small_rounds_count),
        cmocka_unit_test(margins_exceed_both_errors),
        cmocka_unit_test(what_is_left_out_counts),
        cmocka_unit_test(dead_ends_of_many_labels),
        cmocka_unit_test(forbidden_labels_cost_nothing),
        cmocka_unit_test(what_overflows_proves_nothing),
        cmocka_unit_test(checks_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
