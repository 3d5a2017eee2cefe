/* Certificates and proofs of models with distances between labels: what they say is true by
 * enumeration (oracle/metric_toy.h), and modified cuts are refused. */
#include "unit.h"

#include "core/memory.h"
#include "core/workspace.h"
#include "metric_toy.h"
#include "model/model.h"
#include "verify/check.h"

#include <dcrf/grid.h>
#include <math.h>

struct certificate {
    uint8_t *bytes;
    size_t size;
};

static dcrf_solver *solve(const struct metric_toy *toy, dcrf_proving proof, size_t iterations) {
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = iterations;
    settings.gap = 0;
    settings.proof = proof;
    assert_int_equal(dcrf_solver_new(&solver, toy->plan, toy->workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) >= 0);
    return solver;
}

/* A proof without a certificate excludes no label of an optimal labelling. Returns how many
 * variables it decides. */
static size_t prove(const struct metric_toy *toy) {
    uint16_t best[METRIC_TOY_VARIABLES];
    dcrf_solver *solver = solve(toy, DCRF_PROVE_VARIABLES, 60);
    dcrf_solver_info info;
    dcrf_solver_get_info(solver, &info);
    assert_true((long double)info.lower_bound <= metric_toy_optimum(toy, best));
    const uint8_t *possible = dcrf_proof_possible(dcrf_solver_proof(solver));
    for (size_t a = 0; a < toy->variables; a++)
        assert_true(possible[a * toy->labels + best[a]]);
    dcrf_solver_free(&solver);
    return info.proven;
}

/* The run's own certificate; release it. */
static struct certificate certify(const struct metric_toy *toy, size_t iterations) {
    dcrf_solver *solver = solve(toy, DCRF_PROVE_CERTIFICATE, iterations);
    struct certificate made;
    const uint8_t *bytes = dcrf_proof_certificate(dcrf_solver_proof(solver), &made.size);
    made.bytes = dcrf_allocate(made.size, 1);
    memcpy(made.bytes, bytes, made.size);
    dcrf_solver_free(&solver);
    return made;
}

static dcrf_status verify(const struct metric_toy *toy, const struct certificate *certificate,
                          uint8_t *possible, dcrf_verification *found) {
    return dcrf_verify_certificate(certificate->bytes, certificate->size, toy->model,
                                   toy->workspace, NULL, possible,
                                   METRIC_TOY_VARIABLES * METRIC_TOY_LABELS, found, NULL);
}

/* What was accepted is true. */
static void compare(const struct metric_toy *toy, const dcrf_verification *found,
                    const uint8_t *possible) {
    uint16_t best[METRIC_TOY_VARIABLES];
    const long double optimum = metric_toy_optimum(toy, best);
    assert_true((long double)found->lower_bound <= optimum);
    assert_true((long double)found->energy >= optimum);
    for (size_t a = 0; a < toy->variables; a++)
        assert_true(possible[a * toy->labels + best[a]]);
}

/* ---- forgeries ------------------------------------------------------------------------------ */

enum forgery { LONGER, OTHER_SET, NEGATIVE, NOT_FINITE, NO_CUTS, MORE_CUTS, FORGERIES };

static void forge(struct dcrf_certificate_content *content, enum forgery kind, dcrf_rng *rng) {
    const size_t labels = content->identity.labels;
    const size_t cut = dcrf_rng_next(rng) % content->cut_count;
    switch (kind) {
    case LONGER:
        content->cut_lengths[cut] *= 1.0001;
        content->cut_lengths[cut] += 1e-5;
        break;
    case OTHER_SET:
        content->cut_sets[cut * labels + dcrf_rng_next(rng) % labels] ^= 1;
        break;
    case NEGATIVE:
        content->cut_lengths[cut] = -1;
        break;
    case NOT_FINITE:
        content->cut_lengths[cut] = (double)NAN;
        break;
    case NO_CUTS:
        content->has_cuts = false; /* as if for Potts */
        break;
    default:
        content->cut_lengths[cut] *= 2;
    }
    content->lower_bound += 1e-3 * fabs(content->lower_bound);
}

static void try_forgery(const struct metric_toy *toy, const struct certificate *honest,
                        enum forgery kind, dcrf_rng *rng) {
    struct dcrf_certificate_content content;
    struct certificate forged;
    dcrf_verification found;
    uint8_t possible[METRIC_TOY_VARIABLES * METRIC_TOY_LABELS];
    assert_int_equal(dcrf_certificate_decode(&content, toy->variables, toy->labels, honest->bytes,
                                             honest->size, NULL, NULL),
                     DCRF_OK);
    if (content.cut_count > 0) {
        forge(&content, kind, rng);
        assert_int_equal(dcrf_certificate_encode(&content, &forged.bytes, &forged.size, NULL),
                         DCRF_OK);
        const dcrf_status status = verify(toy, &forged, possible, &found);
        if (kind == LONGER || kind == MORE_CUTS || kind == NEGATIVE || kind == NOT_FINITE ||
            kind == NO_CUTS)
            assert_true(status < 0);
        if (status == DCRF_OK)
            compare(toy, &found, possible);
        dcrf_release(forged.bytes);
    }
    dcrf_certificate_clear(&content);
}

/* ---- the formula of a mixture --------------------------------------------------------------- */

static double clipped(double difference, double epsilon) {
    return fmax(-1, fmin(1, difference / epsilon));
}

/* F of docs/reference/certificate.md. */
static double line(const struct dcrf_certificate_point *point, double from, double to) {
    const double v = from / point->levels, w = to / point->levels, last = point->nodes - 1.0;
    double sum = 0;
    if (point->nodes == 0)
        return clipped(w - v, point->epsilon);
    for (uint32_t h = 0; h < point->nodes; h++)
        for (uint32_t k = 0; k < point->nodes; k++)
            sum += fmax(0, 1 - fabs(v * last - h)) * fmax(0, 1 - fabs(w * last - k)) *
                   clipped(((double)k - h) / last, point->epsilon);
    return sum;
}

/* The value of a cut at a variable. */
static double value_of(const struct dcrf_certificate_content *content,
                       const struct dcrf_certificate_point *point, size_t cut, size_t a) {
    const size_t labels = content->identity.labels, n = content->identity.variables;
    double sum = 0;
    for (size_t i = 0; i < labels; i++)
        if (content->cut_sets[cut * labels + i] && point->plane[i] > 0)
            sum += point->values[(point->plane[i] - (size_t)1) * n + a];
    return fmin(sum, point->levels);
}

/* sum_b alpha_ab:c */
static long double alpha_of(const struct metric_toy *toy,
                            const struct dcrf_certificate_content *content, size_t cut, size_t a) {
    const struct dcrf_certificate_mixture *mixture = &content->mixtures[0];
    long double sum = 0;
    for (size_t p = 0; p < mixture->point_count; p++)
        for (size_t b = 0; b < toy->variables; b++)
            for (size_t k = 0; k < toy->model->kernel_count && b != a; k++) {
                const struct dcrf_certificate_point *point = &mixture->points[p];
                sum += (long double)point->weight * toy->matrix[k][a][b] *
                       (long double)line(point, value_of(content, point, cut, a),
                                         value_of(content, point, cut, b));
            }
    return sum;
}

/* sum_a min_i (cost_ai - sum_{c holds i} 2 length_c sum_b alpha_ab:c) */
static double bound_of(const struct metric_toy *toy,
                       const struct dcrf_certificate_content *content) {
    long double bound = 0;
    for (size_t a = 0; a < toy->variables; a++) {
        long double lowest = (long double)INFINITY;
        for (size_t i = 0; i < toy->labels; i++) {
            long double reduced = (long double)toy->unary[a * toy->labels + i];
            for (size_t c = 0; c < content->cut_count; c++)
                if (content->cut_sets[c * toy->labels + i])
                    reduced -=
                        2 * (long double)content->cut_lengths[c] * alpha_of(toy, content, c, a);
            lowest = fminl(lowest, reduced);
        }
        bound += lowest;
    }
    return (double)bound;
}

static dcrf_status claim(const struct metric_toy *toy, struct dcrf_certificate_content *content,
                         double bound) {
    struct certificate made;
    dcrf_verification found;
    content->lower_bound = bound;
    content->proven = 0;
    assert_int_equal(dcrf_certificate_encode(content, &made.bytes, &made.size, NULL), DCRF_OK);
    const dcrf_status status = verify(toy, &made, NULL, &found);
    dcrf_release(made.bytes);
    return status;
}

/* ---- the tests ------------------------------------------------------------------------------ */

static bool has_distance(const struct metric_toy *toy) {
    const float *distance;
    assert_int_equal(dcrf_model_find_distance(toy->model, "a test", &distance, NULL), DCRF_OK);
    return distance != NULL;
}

static void test_certificates(void **state) {
    (void)state;
    size_t models = 0, close = 0, proven = 0;
    for (uint64_t seed = 5000; seed < 5200; seed++) {
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        struct metric_toy toy = metric_toy_make(seed, METRIC_TOY_SAME, seed % 5 == 0, &rng);
        uint8_t possible[METRIC_TOY_VARIABLES * METRIC_TOY_LABELS];
        dcrf_verification found;
        if (has_distance(&toy)) {
            struct certificate made = certify(&toy, 60);
            assert_int_equal(verify(&toy, &made, possible, &found), DCRF_OK);
            compare(&toy, &found, possible);
            models++;
            close += found.relative_gap < 0.02;
            proven += found.proven == toy.variables;
            assert_true(prove(&toy) >= found.proven);
            for (enum forgery kind = 0; kind < FORGERIES; kind++)
                try_forgery(&toy, &made, kind, &rng);
            dcrf_release(made.bytes);
        }
        metric_toy_clear(&toy);
    }
    /* A check that accepts nothing would pass too. */
    assert_true(models >= 100);
    assert_true(close >= models / 2);
    assert_true(proven >= models / 3);
}

/* A mixture proves what its formula says, no more and no less. */
static void test_formula(void **state) {
    (void)state;
    size_t compared[2] = {0};
    for (uint64_t seed = 6000; seed < 6080; seed++) {
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        struct metric_toy toy = metric_toy_make(seed, METRIC_TOY_SAME, false, &rng);
        if (has_distance(&toy)) {
            struct certificate made = certify(&toy, 3);
            struct dcrf_certificate_content content;
            assert_int_equal(dcrf_certificate_decode(&content, toy.variables, toy.labels,
                                                     made.bytes, made.size, NULL, NULL),
                             DCRF_OK);
            const double bound = bound_of(&toy, &content), claimed = content.lower_bound;
            const bool is_only_one = content.proven == toy.variables;
            /* Sums of some hundred terms, of energies below 1e4, and 2^-38 of the lengths. */
            assert_int_equal(claim(&toy, &content, bound - 1e-5), DCRF_OK);
            if (!is_only_one && bound > claimed - 1e-4) {
                assert_true(claim(&toy, &content, bound + 1e-5) < 0);
                compared[content.identity.is_exact]++;
            }
            dcrf_certificate_clear(&content);
            dcrf_release(made.bytes);
        }
        metric_toy_clear(&toy);
    }
    print_message("%zu fast and %zu exact\n", compared[0], compared[1]);
    assert_true(compared[0] > 10 && compared[1] > 10);
}

/* Errors grow with the lengths of the cuts or with the distance, whichever is larger. */
static void test_scale(void **state) {
    (void)state;
    const float distance[] = {0, 8, 8, 0};
    double lengths[] = {0.25, 0.5};
    const struct dcrf_certificate_content content = {.cut_count = 2, .cut_lengths = lengths};
    assert_true(dcrf_check_cuts_scale(&content, NULL, 2) == 1);
    assert_true(dcrf_check_cuts_scale(&content, distance, 2) == 4 * 8 * (1 + 2.0 / 64));
    lengths[1] = 16;
    assert_true(dcrf_check_cuts_scale(&content, distance, 2) == 4 * 33.5 * (1 + 2.0 / 64));
}

/* Cuts may be longer than the distance by 2^-39 of it, no more, and count for 2^-38 less. */
static void test_slack(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_1d(2);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1, 1);
    double lengths[] = {1, 1};
    uint8_t sets[] = {1, 0, 0, 0, 0, 1}; /* 0 | 1 2 and 0 1 | 2 */
    const struct dcrf_certificate_content content = {
        .has_cuts = true, .cut_count = 2, .cut_lengths = lengths, .cut_sets = sets};
    struct dcrf_check check = {.content = &content};
    dcrf_model *model;
    assert_int_equal(dcrf_workspace_new(&check.workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_new(&model, &grid, 3, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
    assert_int_equal(dcrf_model_set_linear(model, 0, INFINITY, NULL), DCRF_OK);
    check.model = model;
    for (size_t cut = 0; cut < 2; cut++) {
        lengths[cut] = 1 + 0x1p-39;
        assert_int_equal(dcrf_check_cuts(&check, NULL), DCRF_OK);
        lengths[cut] += 0x1p-52;
        assert_true(dcrf_check_cuts(&check, NULL) < 0);
        lengths[cut] = 1;
    }
    double sums[3] = {0};
    dcrf_check_spread(&check, 1, 3, sums);
    assert_true(sums[0] == 0 && sums[1] == 0 && sums[2] == 6 * (1 - 0x1p-38));
    dcrf_model_free(&model);
    dcrf_workspace_free(&check.workspace);
}

static int count_questions(void *user) {
    ++*(size_t *)user;
    return 0;
}

/* Comparing the cuts with a large matrix takes long, and asks at every label. */
static void test_cuts_ask(void **state) {
    (void)state;
    dcrf_rng rng;
    size_t asked = 0, tried = 0;
    dcrf_rng_seed(&rng, 1);
    for (uint64_t seed = 5000; tried < 3; seed++) {
        struct metric_toy toy = metric_toy_make(seed, METRIC_TOY_SAME, false, &rng);
        if (has_distance(&toy)) {
            const struct dcrf_certificate_content content = {.has_cuts = true};
            struct dcrf_check check = {
                .model = toy.model, .content = &content, .workspace = toy.workspace};
            dcrf_workspace_ask_always(toy.workspace);
            dcrf_workspace_set_limit(toy.workspace, 0, count_questions, &asked);
            asked = 0;
            assert_int_equal(dcrf_check_cuts(&check, NULL), DCRF_OK);
            assert_int_equal(asked, toy.labels);
            dcrf_workspace_set_limit(toy.workspace, 1e-9, NULL, NULL);
            assert_int_equal(dcrf_check_cuts(&check, NULL), DCRF_ERROR_INTERRUPTED);
            tried++;
        }
        metric_toy_clear(&toy);
    }
}

/* ---- proofs without a certificate ----------------------------------------------------------- */

/* The labels of all labellings of lowest energy are possible, by enumeration. */
static void check_possible(const struct metric_toy *toy, const uint8_t *possible) {
    uint16_t best[METRIC_TOY_VARIABLES], x[METRIC_TOY_VARIABLES] = {0};
    const long double optimum = metric_toy_optimum(toy, best);
    for (size_t a = 0; a < toy->variables;) {
        /* Sums in another order may be equal up to rounding. */
        if (metric_toy_energy(toy, x) <= optimum)
            for (size_t b = 0; b < toy->variables; b++)
                assert_true(possible[b * toy->labels + x[b]]);
        for (a = 0; a < toy->variables && ++x[a] == toy->labels; a++)
            x[a] = 0;
    }
}

static void test_proofs(void **state) {
    (void)state;
    size_t models = 0, proven = 0, excluded = 0;
    for (uint64_t seed = 7000; seed < 7240; seed++) {
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        struct metric_toy toy = metric_toy_make(seed, METRIC_TOY_SAME, seed % 4 == 0, &rng);
        dcrf_solver *solver;
        dcrf_settings settings;
        dcrf_solver_info info;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.iterations = 60;
        settings.gap = 0;
        settings.proof = DCRF_PROVE_VARIABLES;
        assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) >= 0);
        dcrf_solver_get_info(solver, &info);
        const uint8_t *possible = dcrf_proof_possible(dcrf_solver_proof(solver));
        assert_non_null(possible);
        if (has_distance(&toy)) {
            check_possible(&toy, possible);
            models++;
            proven += info.proven == toy.variables;
            for (size_t k = 0; k < toy.variables * toy.labels; k++)
                excluded += !possible[k];
        }
        dcrf_solver_free(&solver);
        metric_toy_clear(&toy);
    }
    /* A proof that excludes nothing would pass too. */
    assert_true(models >= 120);
    assert_true(proven >= models / 3);
    assert_true(excluded >= 10 * models);
}

/* Kernels with different distances are refused before the run. */
static void test_two_distances(void **state) {
    (void)state;
    const dcrf_grid grid = dcrf_grid_1d(4);
    const dcrf_kernel kernel = dcrf_kernel_spatial(1, 0.7);
    dcrf_model *model;
    dcrf_workspace *workspace;
    dcrf_plan *plan;
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_error error;
    assert_int_equal(dcrf_model_new(&model, &grid, 3, NULL), DCRF_OK);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(dcrf_model_add_kernel(model, &kernel, NULL), DCRF_OK);
        assert_int_equal(dcrf_model_set_linear(model, k, k == 0 ? INFINITY : 1.5, NULL), DCRF_OK);
    }
    const float unary[12] = {0};
    const dcrf_view view = dcrf_view_interleaved(unary, DCRF_F32, &grid, 3);
    assert_int_equal(dcrf_model_set_unary(model, &view, NULL), DCRF_OK);
    assert_int_equal(dcrf_workspace_new(&workspace, 1, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&plan, model, DCRF_OPERATOR_EXACT, workspace, NULL), DCRF_OK);
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.proof = DCRF_PROVE_CERTIFICATE;
    assert_int_equal(dcrf_solver_new(&solver, plan, workspace, &settings, &error),
                     DCRF_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "one distance"));
    dcrf_plan_free(&plan);
    dcrf_workspace_free(&workspace);
    dcrf_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificates), cmocka_unit_test(test_formula),
        cmocka_unit_test(test_scale),        cmocka_unit_test(test_slack),
        cmocka_unit_test(test_cuts_ask),     cmocka_unit_test(test_proofs),
        cmocka_unit_test(test_two_distances)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
