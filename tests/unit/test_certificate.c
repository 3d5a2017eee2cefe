/* Certificates: what is written passes the check, and nothing else does. */
#include "toy.h"

#include "core/memory.h"
#include "core/workspace.h"
#include "filter/plan.h"
#include "proof/knowledge.h"
#include "solver/solver.h"
#include "verify/certificate.h"

#include <dcrf/dcrf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- toys ----------------------------------------------------------------------------------- */

/* A solver with a certificate. */
static dcrf_solver *prove_after(const struct toy *toy, const dcrf_plan *plan, size_t iterations,
                                size_t sweeps) {
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.proof = DCRF_PROVE_CERTIFICATE;
    settings.iterations = iterations;
    assert_int_equal(dcrf_solver_new(&solver, plan, toy->workspace, &settings, NULL), DCRF_OK);
    solver->most_sweeps = sweeps;
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    return solver;
}

static dcrf_solver *prove(const struct toy *toy, const dcrf_plan *plan) {
    return prove_after(toy, plan, DCRF_DEFAULT_LP_ITERATIONS, DCRF_MOST_SWEEPS);
}

static const uint8_t *bytes_of(const dcrf_solver *solver, size_t *size) {
    return dcrf_proof_certificate(dcrf_solver_proof(solver), size);
}

static struct toy toy_of(uint64_t seed) {
    const double strengths[] = {0.05, 0.2, 0.6, 3};
    return new_toy(seed, 6 + seed % 5, 2 + seed % 3, seed / 2 % 4, strengths[seed / 3 % 4],
                   TOY_POTTS, 1);
}

/* What a proof claims and what the check finds. Exact toys are also compared with the formula's
 * optimum: the check has its own kernels. */
static void certificates_hold(void **state) {
    (void)state;
    size_t proven = 0, variables = 0, by_gap = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct toy toy = toy_of(seed);
        const size_t cells = toy.variables * toy.labels;
        dcrf_plan *plan;
        dcrf_solver_info info;
        dcrf_proof_info proof;
        dcrf_verification found;
        dcrf_error error = {0};
        uint8_t possible[10 * 4];
        uint16_t labels[10];
        size_t size;
        const dcrf_operator_kind kind = seed % 2 ? DCRF_OPERATOR_FAST : DCRF_OPERATOR_EXACT;
        assert_int_equal(dcrf_plan_new(&plan, toy.model, kind, toy.workspace, NULL), DCRF_OK);
        dcrf_solver *solver = prove(&toy, plan);
        dcrf_solver_get_info(solver, &info);
        dcrf_proof_get_info(dcrf_solver_proof(solver), &proof);
        dcrf_solver_labels(solver, labels, 10, NULL);
        const uint8_t *bytes = bytes_of(solver, &size);
        assert_non_null(bytes);
        const dcrf_status status =
            dcrf_verify_certificate(bytes, size, toy.model, toy.workspace, labels, possible,
                                    sizeof possible, &found, &error);
        if (status < 0)
            fail_msg("toy %zu: %s", (size_t)seed, error.message);
        const double scale = 1 + fabs(info.energy.total);
        assert_int_equal(found.is_exact, kind == DCRF_OPERATOR_EXACT);
        assert_int_equal(found.variables, toy.variables);
        assert_true(found.proven >= info.proven);
        assert_true(fabs(found.energy - info.energy.total) <= 1e-6 * scale);
        assert_true(found.energy == found.labels_energy);
        assert_true(found.lower_bound >= info.lower_bound - 1e-9 * scale);
        assert_true(found.lower_bound <= found.energy);
        assert_int_equal(found.wrong, 0);
        assert_int_equal(found.right, found.proven);
        for (size_t k = 0; k < cells; k++)
            assert_true(possible[k] <= dcrf_proof_possible(dcrf_solver_proof(solver))[k]);
        if (kind == DCRF_OPERATOR_EXACT) {
            uint16_t best[10];
            const double optimum = toy_optimum(&toy, best);
            assert_true(found.lower_bound <= optimum + 1e-12 * scale);
            for (size_t a = 0; a < toy.variables; a++) /* unique, barring ties */
                assert_true(possible[a * toy.labels + best[a]]);
            assert_int_equal(dcrf_verify_certificate(bytes, size, toy.model, toy.workspace, best,
                                                     NULL, 0, &found, NULL),
                             DCRF_OK);
            assert_int_equal(found.wrong, 0);
            /* Rounded up, including what the operator leaves out. */
            assert_true(found.labels_energy >= optimum - 1e-12 * scale);
            assert_true(found.labels_energy <= optimum + 1e-6 * scale);
        }
        /* A wrong labelling is detected if anything is proven. */
        if (found.proven > 0) {
            size_t a = 0;
            while (info.proven < toy.variables && a + 1 < toy.variables &&
                   possible[a * toy.labels + (labels[a] + 1) % toy.labels])
                a++;
            labels[a] = (uint16_t)((labels[a] + 1) % toy.labels);
            assert_int_equal(dcrf_verify_certificate(bytes, size, toy.model, toy.workspace, labels,
                                                     NULL, 0, &found, NULL),
                             DCRF_OK);
            assert_int_equal(found.wrong, !possible[a * toy.labels + labels[a]]);
            if (kind == DCRF_OPERATOR_EXACT) {
                const double energy = toy_energy(&toy, labels);
                assert_true(found.labels_energy >= energy - 1e-12 * scale);
                assert_true(found.labels_energy <= energy + 1e-9 * scale);
            }
        }
        proven += info.proven;
        by_gap += proof.proven_by_gap;
        variables += toy.variables;
        assert_true(proof.proven_by_gap <= proof.proven && proof.proven == info.proven);
        dcrf_solver_free(&solver);
        dcrf_plan_free(&plan);
        free_toy(&toy);
    }
    print_message("%zu of %zu variables proven by certificates, %zu of them by the gap\n", proven,
                  variables, by_gap);
    assert_true(proven * 10 > variables * 8 && by_gap > 0);
}

/* ---- refusals ------------------------------------------------------------------------------- */

struct example {
    struct toy toy;
    dcrf_solver *solver;
    struct dcrf_certificate_content content;
};

static struct example example_of(struct toy toy, dcrf_solver *solver) {
    struct example example = {.toy = toy, .solver = solver};
    size_t size;
    const uint8_t *bytes = bytes_of(example.solver, &size);
    assert_int_equal(dcrf_certificate_decode(&example.content, example.toy.variables,
                                             example.toy.labels, bytes, size, NULL, NULL),
                     DCRF_OK);
    return example;
}

static struct example new_example(uint64_t seed) {
    struct toy toy = toy_of(seed);
    return example_of(toy, prove(&toy, toy.plan));
}

static void free_example(struct example *example) {
    dcrf_certificate_clear(&example->content);
    dcrf_solver_free(&example->solver);
    free_toy(&example->toy);
}

static dcrf_status check_content(const struct example *example, dcrf_error *error) {
    uint8_t *bytes;
    size_t size;
    dcrf_verification found;
    assert_int_equal(dcrf_certificate_encode(&example->content, &bytes, &size, NULL), DCRF_OK);
    const dcrf_status status = dcrf_verify_certificate(
        bytes, size, example->toy.model, example->toy.workspace, NULL, NULL, 0, &found, error);
    dcrf_release(bytes);
    return status;
}

/* Without the LP's dual point, rounds rely on their values alone. */
static void drop_mixtures(struct dcrf_certificate_content *content) {
    for (size_t k = 0; k < content->mixture_count; k++)
        for (size_t p = 0; p < content->mixtures[k].point_count; p++)
            content->mixtures[k].points[p].weight = 0;
}

/* Files with corrected checksums: their claims are checked anyway. One step and one sweep leave
 * some variables open. */
static void forgeries_are_refused(void **state) {
    (void)state;
    size_t refused = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct toy toy = toy_of(seed);
        struct example example = example_of(toy, prove_after(&toy, toy.plan, 1, 1));
        struct dcrf_certificate_content *content = &example.content;
        const size_t n = example.toy.variables;
        dcrf_error error = {0};
        assert_int_equal(check_content(&example, NULL), DCRF_OK);
        /* Another label. */
        const size_t a = seed % n;
        const uint16_t kept = content->labels[a];
        content->labels[a] = (uint16_t)((kept + 1) % example.toy.labels);
        assert_true(check_content(&example, &error) < 0);
        content->labels[a] = kept;
        /* Claims everything that was left open. */
        size_t open = 0;
        for (size_t b = 0; b < n; b++)
            if (content->round[b] == 0) {
                content->round[b] = (uint16_t)(content->rounds > 0 ? content->rounds : 0);
                open++;
            }
        if (open > 0 && content->rounds > 0) {
            assert_true(check_content(&example, &error) < 0);
            refused++;
        }
        free_example(&example);
    }
    print_message("%zu certificates claimed more than was proven\n", refused);
    assert_true(refused >= 10);
    struct example example = new_example(0);
    dcrf_error error;
    example.content.lower_bound += 1e-3;
    assert_fails(DCRF_ERROR_ARGUMENT, "claims more", error, check_content(&example, &error));
    example.content.lower_bound -= 1e-3;
    example.content.proven++;
    assert_fails(DCRF_ERROR_ARGUMENT, "claims more", error, check_content(&example, &error));
    example.content.proven--;
    example.content.energy *= 1.01;
    assert_fails(DCRF_ERROR_ARGUMENT, "claims more", error, check_content(&example, &error));
    free_example(&example);
}

/* A run that ends early proves little, and claims all of it. The check may exclude more labels on
 * its way than the proof did; otherwise it finds no more than what the proof subtracts from its own
 * bound for rounding to float: at most three times the errors of its sums, each at most 1e-4 of a
 * row sum (test_knowledge.c), and 2^-20 of the excess (dcrf_groups_excess). */
static void claims_are_what_is_proven(void **state) {
    (void)state;
    size_t undecided = 0, decided = 0, more = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy =
            new_toy(seed, 10, 4, seed % 3, 0.5 + 0.1 * (double)(seed % 8), TOY_POTTS, 1);
        struct example example = example_of(toy, prove_after(&toy, toy.plan, 2 + seed % 30, 0));
        uint8_t possible[10 * 4];
        dcrf_verification found;
        dcrf_solver_info info;
        size_t size;
        const uint8_t *bytes = bytes_of(example.solver, &size);
        dcrf_solver_get_info(example.solver, &info);
        assert_int_equal(dcrf_verify_certificate(bytes, size, toy.model, toy.workspace, NULL,
                                                 possible, sizeof possible, &found, NULL),
                         DCRF_OK);
        if (memcmp(possible, dcrf_proof_possible(dcrf_solver_proof(example.solver)),
                   sizeof possible) != 0) {
            more++;
        } else {
            double rows = 0;
            for (size_t k = 0; k < 10 * 10; k++)
                rows += toy.matrix[0][k] + toy.matrix[1][k];
            example.content.lower_bound +=
                3e-4 * rows + 0x1p-19 * (info.energy.total - info.lower_bound) + 1e-9;
            assert_true(check_content(&example, NULL) < 0);
            *(info.proven < toy.variables ? &undecided : &decided) += 1;
        }
        free_example(&example);
    }
    print_message("%zu undecided and %zu decided claim all that they prove; of %zu the check finds "
                  "more\n",
                  undecided, decided, more);
    assert_true(undecided > 0 && decided > 0);
}

/* Weights that are negative, or sum to more than 1 by however little, prove nothing. */
static void weights_add_up_to_one(void **state) {
    (void)state;
    size_t mixtures = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct example example = new_example(seed);
        for (size_t k = 0; k < example.content.mixture_count; k++) {
            struct dcrf_certificate_mixture *mixture = &example.content.mixtures[k];
            dcrf_error error;
            if (mixture->point_count < 2)
                continue;
            for (size_t p = 2; p < mixture->point_count; p++)
                mixture->points[p].weight = 0;
            mixture->points[0].weight = 0.5;
            mixture->points[1].weight = 0.5 + 0x1p-52;
            assert_fails(DCRF_ERROR_ARGUMENT, "weights", error, check_content(&example, &error));
            mixture->points[0].weight = 2; /* a mean, but not a convex one */
            mixture->points[1].weight = -1;
            assert_true(check_content(&example, &error) < 0);
            mixtures++;
        }
        free_example(&example);
    }
    assert_true(mixtures > 10);
}

/* Sizes whose low 32 bits are right: a machine with a 32-bit size_t must not read those alone. */
static void sizes_beyond_32_bits_are_refused(void **state) {
    (void)state;
    struct example example = new_example(0);
    const size_t first = 16; /* after 8 bytes of magic, the version and the operator */
    for (size_t field = 0; field < 7; field++) {
        uint8_t *bytes;
        size_t size;
        dcrf_verification found;
        dcrf_error error;
        assert_int_equal(dcrf_certificate_encode(&example.content, &bytes, &size, NULL), DCRF_OK);
        assert_int_equal(bytes[first], example.toy.variables);
        bytes[first + 8 * field + 4] = 1;
        struct dcrf_sha256 hash;
        dcrf_sha256_begin(&hash);
        dcrf_sha256_add(&hash, bytes, size - DCRF_SHA256_BYTES);
        dcrf_sha256_end(&hash, bytes + size - DCRF_SHA256_BYTES);
        assert_true(dcrf_verify_certificate(bytes, size, example.toy.model, example.toy.workspace,
                                            NULL, NULL, 0, &found, &error) < 0);
        dcrf_release(bytes);
    }
    free_example(&example);
}

/* Values that do not tell labels apart prove nothing. */
static void values_matter(void **state) {
    (void)state;
    size_t refused = 0, changed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct example example = new_example(seed);
        memset(example.content.values, 0, example.content.plane_count * example.toy.variables);
        drop_mixtures(&example.content);
        refused += check_content(&example, NULL) < 0;
        changed++;
        free_example(&example);
    }
    assert_true(refused * 2 > changed);
}

static dcrf_status check_against(const struct example *example, const struct toy *other,
                                 dcrf_error *error) {
    size_t size;
    dcrf_verification found;
    const uint8_t *bytes = bytes_of(example->solver, &size);
    return dcrf_verify_certificate(bytes, size, other->model, other->workspace, NULL, NULL, 0,
                                   &found, error);
}

static void other_problems_are_refused(void **state) {
    (void)state;
    struct example example = new_example(4);
    struct toy *toy = &example.toy, larger = toy_of(5);
    const double constants[10] = {1};
    const size_t same[] = {0, 1, 2, 3};
    dcrf_error error;
    assert_int_equal(check_against(&example, toy, NULL), DCRF_OK);
    assert_fails(DCRF_ERROR_SIZE, "variables", error, check_against(&example, &larger, &error));
    free_toy(&larger);
    /* The same sizes, other numbers. */
    struct toy other = new_toy(1004, toy->variables, toy->labels, 2, 0.2, TOY_POTTS, 1);
    assert_fails(DCRF_ERROR_ARGUMENT, "unary", error, check_against(&example, &other, &error));
    free_toy(&other);
    const double weight = toy->model->kernels[0].weight;
    assert_int_equal(dcrf_model_set_weight(toy->model, 0, weight * 1.0000001, NULL), DCRF_OK);
    assert_fails(DCRF_ERROR_ARGUMENT, "weight", error, check_against(&example, toy, &error));
    assert_int_equal(dcrf_model_set_weight(toy->model, 0, weight, NULL), DCRF_OK);
    float *channel = toy->model->kernels[1].features.channel;
    const float first = channel[0];
    channel[0] = nextafterf(first, INFINITY);
    assert_fails(DCRF_ERROR_ARGUMENT, "image", error, check_against(&example, toy, &error));
    channel[0] = first;
    assert_int_equal(dcrf_model_set_cliques(toy->model, 0, NULL, NULL, NULL, NULL), DCRF_OK);
    assert_fails(DCRF_ERROR_ARGUMENT, "cliques", error, check_against(&example, toy, &error));
    change_toy(toy, constants, same);
    assert_fails(DCRF_ERROR_ARGUMENT, "unary", error, check_against(&example, toy, &error));
    free_example(&example);
}

/* A change of any byte is detected. */
static void changed_bytes_are_refused(void **state) {
    (void)state;
    struct example example = new_example(7);
    size_t size;
    dcrf_verification found;
    dcrf_error error;
    const uint8_t *bytes = bytes_of(example.solver, &size);
    uint8_t *changed = malloc(size);
    for (size_t k = 0; k < size; k++) {
        memcpy(changed, bytes, size);
        changed[k] ^= (uint8_t)(1u << k % 8);
        assert_true(dcrf_verify_certificate(changed, size, example.toy.model, example.toy.workspace,
                                            NULL, NULL, 0, &found, &error) < 0);
        assert_true(dcrf_verify_certificate(bytes, k, example.toy.model, example.toy.workspace,
                                            NULL, NULL, 0, &found, &error) < 0);
    }
    memcpy(changed, bytes, size);
    changed[size - 1] ^= 1;
    assert_fails(DCRF_ERROR_ARGUMENT, "checksum", error,
                 dcrf_verify_certificate(changed, size, example.toy.model, example.toy.workspace,
                                         NULL, NULL, 0, &found, &error));
    free(changed);
    free_example(&example);
}

/* ---- scales and matrices --------------------------------------------------------------------- */

/* Weights from 1e-8 to 1e12, with unaries to match: true certificates hold. */
static void scales_do_not_matter(void **state) {
    (void)state;
    for (int exponent = -8; exponent <= 12; exponent += 4)
        for (uint64_t seed = 0; seed < 12; seed++) {
            struct toy toy = toy_of(seed);
            const double scale = pow(10, exponent);
            dcrf_verification found;
            dcrf_error error = {0};
            size_t size;
            for (size_t k = 0; k < toy.variables * toy.model->stride; k++)
                toy.model->unary[k] *= seed % 2 ? (float)scale : 1;
            for (size_t m = 0; m < toy.model->kernel_count; m++)
                assert_int_equal(
                    dcrf_model_set_weight(toy.model, m, toy.model->kernels[m].weight * scale, NULL),
                    DCRF_OK);
            dcrf_solver *solver = prove(&toy, toy.plan);
            const uint8_t *bytes = bytes_of(solver, &size);
            if (dcrf_verify_certificate(bytes, size, toy.model, toy.workspace, NULL, NULL, 0,
                                        &found, &error) < 0)
                fail_msg("scale 1e%d, toy %zu: %s", exponent, (size_t)seed, error.message);
            dcrf_solver_free(&solver);
            free_toy(&toy);
        }
}

/* The fast operators' matrix is part of the model; exact operators have none. */
static void matrices_are_fixed(void **state) {
    (void)state;
    struct example example = new_example(3);
    example.content.identity.kernels[1].matrix[5] ^= 1;
    assert_true(check_content(&example, NULL) < 0);
    free_example(&example);
    struct toy toy = toy_of(3);
    dcrf_plan *plan;
    dcrf_verification found;
    dcrf_error error;
    size_t size, count;
    uint8_t *again;
    struct dcrf_certificate_content content;
    assert_int_equal(dcrf_plan_new(&plan, toy.model, DCRF_OPERATOR_FAST, toy.workspace, NULL),
                     DCRF_OK);
    dcrf_solver *solver = prove(&toy, plan);
    const uint8_t *bytes = bytes_of(solver, &size);
    assert_int_equal(
        dcrf_certificate_decode(&content, toy.variables, toy.labels, bytes, size, NULL, NULL),
        DCRF_OK);
    content.identity.kernels[1].matrix[5] ^= 1;
    assert_int_equal(dcrf_certificate_encode(&content, &again, &count, NULL), DCRF_OK);
    assert_fails(DCRF_ERROR_ARGUMENT, "lattice", error,
                 dcrf_verify_certificate(again, count, toy.model, toy.workspace, NULL, NULL, 0,
                                         &found, &error));
    dcrf_release(again);
    dcrf_certificate_clear(&content);
    dcrf_solver_free(&solver);
    dcrf_plan_free(&plan);
    free_toy(&toy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_do_not_matter),
        cmocka_unit_test(matrices_are_fixed),
        cmocka_unit_test(certificates_hold),
        cmocka_unit_test(forgeries_are_refused),
        cmocka_unit_test(claims_are_what_is_proven),
        cmocka_unit_test(weights_add_up_to_one),
        cmocka_unit_test(sizes_beyond_32_bits_are_refused),
        cmocka_unit_test(values_matter),
        cmocka_unit_test(other_problems_are_refused),
        cmocka_unit_test(changed_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
