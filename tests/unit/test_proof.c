/* Proofs for single variables, against all labellings of small models: an excluded label must be in
 * no optimal labelling, ties included. The matrices are the operators' own, from unit vectors, so
 * that the comparison needs no tolerance. */
#include "toy.h"

#include "filter/plan.h"
#include "solver/solver.h"

#include <dcrf/proof.h>
#include <math.h>
#include <stdlib.h>

#define MOST_VARIABLES 9
#define MOST_LABELS 4

/* A toy with the matrix that the operators of a plan apply. */
struct seen {
    struct toy *toy;
    dcrf_plan *plan;
    long double matrix[MOST_VARIABLES * MOST_VARIABLES];
    long double lowest[MOST_VARIABLES * MOST_LABELS]; /* minimum energy with that label there */
    long double optimum;
};

static struct seen see(struct toy *toy, dcrf_operator_kind kind) {
    struct seen seen = {.toy = toy, .optimum = (long double)INFINITY};
    const size_t n = toy->variables;
    double unit[MOST_VARIABLES], column[MOST_VARIABLES];
    assert_int_equal(dcrf_plan_new(&seen.plan, toy->model, kind, toy->workspace, NULL), DCRF_OK);
    for (size_t m = 0; m < seen.plan->kernel_count; m++) {
        const long double factor = m == 1 && toy->values ? (long double)toy->values[1] : 1;
        const long double weight = (long double)toy->model->kernels[m].given_weight * factor;
        for (size_t b = 0; b < n; b++) {
            const dcrf_operator *op = seen.plan->kernels[m].op;
            for (size_t a = 0; a < n; a++)
                unit[a] = a == b;
            assert_int_equal(op->methods->apply_double(op, toy->workspace, unit, column, 1, NULL),
                             DCRF_OK);
            for (size_t a = 0; a < n; a++)
                seen.matrix[a * n + b] += weight * (long double)column[a];
        }
    }
    for (size_t k = 0; k < MOST_VARIABLES * MOST_LABELS; k++)
        seen.lowest[k] = (long double)INFINITY;
    return seen;
}

static long double energy_of(const struct seen *seen, const uint16_t *labels) {
    const struct toy *toy = seen->toy;
    const size_t n = toy->variables;
    long double sum = 0;
    for (size_t a = 0; a < n; a++) {
        sum += (long double)toy->model->unary[a * toy->model->stride + labels[a]];
        for (size_t b = 0; b < n; b++)
            sum += labels[a] != labels[b] ? seen->matrix[a * n + b] : 0;
    }
    for (size_t p = 0; p < toy->cliques; p++)
        for (size_t k = toy->offsets[p]; k < toy->offsets[p + 1]; k++)
            if (labels[toy->members[k]] != labels[toy->members[toy->offsets[p]]]) {
                sum += (long double)toy->costs[p];
                break;
            }
    return sum;
}

static void enumerate(struct seen *seen) {
    const size_t n = seen->toy->variables, labels = seen->toy->labels;
    uint16_t x[MOST_VARIABLES] = {0};
    for (;;) {
        const long double energy = energy_of(seen, x);
        for (size_t a = 0; a < n; a++)
            seen->lowest[a * labels + x[a]] = fminl(seen->lowest[a * labels + x[a]], energy);
        seen->optimum = fminl(seen->optimum, energy);
        size_t a = 0;
        while (a < n && ++x[a] == labels)
            x[a++] = 0;
        if (a == n)
            return;
    }
}

struct count {
    size_t variables, proven, by_gap, excluded, optimal;
};

/* Energies are sums of a few hundred long doubles: smaller differences are ties. */
#define TIE 1e-14L

/* `start`: the solver's starting labelling; NULL: its own. */
static void check(struct seen *seen, size_t iterations, const uint16_t *start,
                  struct count *count) {
    struct toy *toy = seen->toy;
    const size_t n = toy->variables, labels = toy->labels;
    dcrf_settings settings;
    dcrf_solver *solver;
    dcrf_solver_info solved;
    dcrf_proof_info info;
    uint16_t found[MOST_VARIABLES], counts[MOST_VARIABLES];
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.iterations = iterations;
    settings.lp.clique_form = iterations % 2 ? DCRF_CLIQUE_SPREAD : DCRF_CLIQUE_MIN;
    assert_int_equal(dcrf_solver_new(&solver, seen->plan, toy->workspace, &settings, NULL),
                     DCRF_OK);
    if (start)
        assert_int_equal(dcrf_solver_start_labels(solver, start, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) > 0);
    assert_int_equal(dcrf_solver_prove(solver, NULL), DCRF_OK);
    dcrf_proof_get_info(dcrf_solver_proof(solver), &info);
    dcrf_solver_get_info(solver, &solved);
    dcrf_solver_labels(solver, found, MOST_VARIABLES, NULL);
    dcrf_solver_labels_left(solver, counts, MOST_VARIABLES, NULL);
    const uint8_t *possible = dcrf_proof_possible(dcrf_solver_proof(solver));
    const long double scale = 1 + fabsl(seen->optimum);
    size_t single = 0, left = 0;
    for (size_t a = 0; a < n; a++) {
        size_t at = 0;
        for (size_t i = 0; i < labels; i++) {
            at += possible[a * labels + i];
            if (possible[a * labels + i])
                continue;
            count->excluded++;
            assert_true(seen->lowest[a * labels + i] > seen->optimum + TIE * scale);
        }
        assert_int_equal(counts[a], at);
        assert_true(at >= 1);
        assert_true(possible[a * labels + found[a]]);
        single += at == 1;
        left += at;
    }
    assert_int_equal(info.variables, n);
    assert_int_equal(info.proven, single);
    assert_int_equal(solved.proven, single);
    assert_int_equal(info.possible, left);
    assert_true(info.proven_by_gap <= info.proven);
    /* No tolerance here: the bound is never above the optimum. */
    assert_true((long double)solved.lower_bound <= seen->optimum);
    assert_true(fabsl((long double)solved.energy.total - energy_of(seen, found)) <= 1e-10L * scale);
    if (single == n) {
        assert_true(energy_of(seen, found) <= seen->optimum + TIE * scale);
        assert_true(solved.relative_gap == 0);
    }
    count->variables += n;
    count->proven += single;
    count->by_gap += info.proven_by_gap;
    count->optimal += single == n;
    dcrf_solver_free(&solver);
    dcrf_plan_free(&seen->plan);
}

static struct count check_toys(uint64_t first, uint64_t many, dcrf_operator_kind kind,
                               enum toy_pairs pairs) {
    const double strengths[] = {0.05, 0.2, 0.6, 3, 100};
    const size_t iterations[] = {1, 4, 40};
    struct count count = {0};
    many = SANITIZED ? 240 : many; /* all strengths with all cliques and counts of labels, twice */
    for (uint64_t seed = first; seed < first + many; seed++) {
        const size_t labels = 2 + seed % 3;
        struct toy toy = new_toy(seed, (labels == 4 ? 4 : 5) + seed % 3, labels, seed / 2 % 4,
                                 strengths[seed / 3 % 5], pairs, 1);
        struct seen seen = see(&toy, kind);
        enumerate(&seen);
        check(&seen, iterations[seed / 7 % 3], NULL, &count);
        free_toy(&toy);
    }
    print_message("%zu variables, %zu proven (%zu by the gap), %zu labels excluded, %zu optima\n",
                  count.variables, count.proven, count.by_gap, count.excluded, count.optimal);
    return count;
}

/* A proof that proves nothing is not wrong, but useless. */
static void excluded_labels_are_in_no_optimum(void **state) {
    (void)state;
    struct count count = check_toys(0, 1500, DCRF_OPERATOR_EXACT, TOY_POTTS);
    assert_true(count.proven * 10 > count.variables * 8);
    assert_true(count.proven > count.by_gap);
    count = check_toys(10000, 1500, DCRF_OPERATOR_LATTICE, TOY_POTTS);
    assert_true(count.proven * 10 > count.variables * 8);
    assert_true(count.proven > count.by_gap);
}

/* A matrix c (1 - I) is Potts, and proofs are for Potts models only. */
static void multiples_of_potts_are_proven(void **state) {
    (void)state;
    const struct count count = check_toys(20000, 300, DCRF_OPERATOR_EXACT, TOY_MULTIPLE);
    assert_true(count.proven * 10 > count.variables * 8);
}

/* Two labels with equal unaries: nothing may tell them apart. */
static void ties_stay(void **state) {
    (void)state;
    struct count count = {0};
    for (uint64_t seed = 0; seed < 150; seed++) {
        const size_t labels = 3, n = 5 + seed % 3;
        struct toy toy = new_toy(seed, n, labels, seed % 3, seed % 2 ? 0.3 : 2, TOY_POTTS, 1);
        const dcrf_grid grid = dcrf_grid_1d(n);
        for (size_t a = 0; a < n; a++) {
            /* Integers make many more ties. */
            for (size_t i = 0; i < labels && seed % 4 < 2; i++)
                toy.unary[a * labels + i] = floor(toy.unary[a * labels + i]);
            toy.unary[a * labels + 1] = toy.unary[a * labels];
        }
        const dcrf_view unary = dcrf_view_interleaved(toy.unary, DCRF_F64, &grid, labels);
        assert_int_equal(dcrf_model_set_unary(toy.model, &unary, NULL), DCRF_OK);
        if (seed % 5 == 0) /* nothing but unaries */
            for (size_t m = 0; m < 2; m++)
                assert_int_equal(dcrf_model_set_weight(toy.model, m, 0, NULL), DCRF_OK);
        struct seen seen = see(&toy, seed % 2 ? DCRF_OPERATOR_LATTICE : DCRF_OPERATOR_EXACT);
        enumerate(&seen);
        for (size_t a = 0; a < n; a++) /* the oracle sees the ties */
            assert_true(fabsl(seen.lowest[a * labels] - seen.lowest[a * labels + 1]) <=
                        TIE * (1 + fabsl(seen.optimum)));
        check(&seen, 40, NULL, &count);
        free_toy(&toy);
    }
    print_message("with ties: %zu of %zu variables proven\n", count.proven, count.variables);
    assert_true(count.proven > 0 && count.proven < count.variables);
}

/* Kernels that overwhelm the unaries: two constant labellings are optimal. Whichever of the two the
 * solver starts from, it is not the only one. */
static void constants_that_tie(void **state) {
    (void)state;
    struct count count = {0};
    size_t constant = 0;
    for (uint64_t seed = 0; seed < 90; seed++) {
        const size_t labels = 3, n = 6, one = seed % 3, other = (seed / 3 + 1 + one) % 3;
        struct toy toy = new_toy(seed, n, labels, seed % 2, 60, TOY_POTTS, 1);
        const dcrf_grid grid = dcrf_grid_1d(n);
        uint16_t start[MOST_VARIABLES];
        for (size_t a = 0; a < n; a++) {
            toy.unary[a * labels + one] *= 0.1;
            toy.unary[a * labels + other] = toy.unary[a * labels + one];
            start[a] = (uint16_t)one;
        }
        const dcrf_view unary = dcrf_view_interleaved(toy.unary, DCRF_F64, &grid, labels);
        assert_int_equal(dcrf_model_set_unary(toy.model, &unary, NULL), DCRF_OK);
        struct seen seen = see(&toy, seed % 4 < 2 ? DCRF_OPERATOR_LATTICE : DCRF_OPERATOR_EXACT);
        enumerate(&seen);
        constant += energy_of(&seen, start) <= seen.optimum + TIE * (1 + seen.optimum);
        check(&seen, seed % 5 ? 40 : 2, start, &count);
        free_toy(&toy);
    }
    print_message("%zu of 90 have a constant optimum; %zu of %zu variables proven\n", constant,
                  count.proven, count.variables);
    assert_true(constant > 60);
}

/* A run with each kind of proof. */
static void prove_each(const struct seen *seen, size_t iterations,
                       dcrf_solver_info info[DCRF_PROVE_CERTIFICATE + 1]) {
    for (dcrf_proving proof = DCRF_PROVE_BY_GAP; proof <= DCRF_PROVE_CERTIFICATE; proof++) {
        dcrf_settings settings;
        dcrf_solver *solver;
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.iterations = iterations;
        settings.gap = 0;
        settings.proof = proof;
        assert_int_equal(
            dcrf_solver_new(&solver, seen->plan, seen->toy->workspace, &settings, NULL), DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        dcrf_solver_get_info(solver, &info[proof]);
        assert_true((long double)info[proof].lower_bound <= seen->optimum);
        dcrf_solver_free(&solver);
    }
}

/* A proof that is no certificate proves no less than one, and neither loses a labelling. */
static void no_less_than_a_certificate(void **state) {
    (void)state;
    size_t by_gap = 0, by_certificate = 0, proven = 0;
    const uint64_t many = SANITIZED ? 120 : 600;
    for (uint64_t seed = 0; seed < many; seed++) {
        const double strengths[] = {0.05, 0.2, 0.6, 1e4, 1e6};
        struct toy toy =
            new_toy(seed, 6 + seed % 4, 2 + seed % 3, seed % 3, strengths[seed % 5], TOY_POTTS, 1);
        struct seen seen = see(&toy, seed % 4 == 0   ? DCRF_OPERATOR_EXACT
                                     : seed % 4 == 1 ? DCRF_OPERATOR_FAST
                                                     : DCRF_OPERATOR_LATTICE);
        dcrf_solver_info info[DCRF_PROVE_CERTIFICATE + 1];
        enumerate(&seen);
        prove_each(&seen, 1 + seed / 3 % 24, info);
        const dcrf_solver_info *whole = &info[DCRF_PROVE_VARIABLES];
        const dcrf_solver_info *certified = &info[DCRF_PROVE_CERTIFICATE];
        assert_true(whole->proven >= certified->proven);
        assert_true(whole->energy.total <= info[DCRF_PROVE_BY_GAP].energy.total);
        assert_true(certified->energy.total <= info[DCRF_PROVE_BY_GAP].energy.total);
        /* The rest is bounded in two ways: with cliques by a few steps that begin elsewhere, else
         * by thousands that converge to seven digits. */
        const double tolerance = (toy.cliques > 0 ? 1e-4 : 1e-7) * whole->energy.total;
        assert_true(whole->lower_bound >= certified->lower_bound - tolerance);
        by_gap += info[0].proven;
        by_certificate += certified->proven;
        proven += whole->proven;
        dcrf_plan_free(&seen.plan);
        free_toy(&toy);
    }
    print_message("%zu proven by the gap, %zu by certificates, %zu in all\n", by_gap,
                  by_certificate, proven);
    assert_true(proven >= by_certificate && by_certificate > by_gap);
}

static int always(void *user) {
    (void)user;
    return 1;
}

/* What a solver tells after a proof belongs together. */
static void check_solver(dcrf_solver *solver, const struct seen *seen) {
    dcrf_solver_info info;
    dcrf_proof_info proven;
    uint16_t labels[MOST_VARIABLES], counts[MOST_VARIABLES];
    size_t single = 0;
    dcrf_solver_get_info(solver, &info);
    dcrf_proof_get_info(dcrf_solver_proof(solver), &proven);
    assert_int_equal(dcrf_solver_labels(solver, labels, MOST_VARIABLES, NULL), DCRF_OK);
    assert_int_equal(dcrf_solver_labels_left(solver, counts, MOST_VARIABLES, NULL), DCRF_OK);
    for (size_t a = 0; a < seen->toy->variables; a++)
        single += counts[a] == 1;
    assert_int_equal(info.proven, single);
    if (dcrf_solver_proof(solver))
        assert_int_equal(proven.proven, single);
    /* The energy is rounded up, the bound down. */
    assert_true((long double)info.energy.total >= energy_of(seen, labels));
    assert_true((long double)info.energy.total <= energy_of(seen, labels) + 1e-3L);
    assert_true((long double)info.lower_bound <= seen->optimum);
    assert_true(info.relative_gap <=
                dcrf_relative_gap(info.energy.total, info.lower_bound, info.unary_floor));
}

/* A proof by steps finishes the run and is the same as in a run; a run without a proof drops it,
 * and a proof that is cancelled at once leaves the one before. */
static void a_proof_after_steps(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct toy toy = new_toy(seed, 9, 3, seed % 3, 0.3, TOY_POTTS, 1);
        struct seen seen = see(&toy, DCRF_OPERATOR_FAST);
        dcrf_settings settings;
        dcrf_solver *solver, *other;
        dcrf_solver_info info[2];
        enumerate(&seen);
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.iterations = 1 + seed % 4;
        settings.gap = 0;
        settings.proof = seed % 2 ? DCRF_PROVE_VARIABLES : DCRF_PROVE_CERTIFICATE;
        assert_int_equal(dcrf_solver_new(&other, seen.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_true(dcrf_solver_run(other, NULL) > 0);
        if (seed % 2) /* the same proof, only later */
            settings.proof = DCRF_PROVE_BY_GAP;
        assert_int_equal(dcrf_solver_new(&solver, seen.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        while (dcrf_solver_step(solver, NULL) == DCRF_OK)
            continue;
        assert_int_equal(dcrf_solver_prove(solver, NULL), DCRF_OK);
        check_solver(solver, &seen);
        dcrf_solver_get_info(other, &info[0]);
        dcrf_solver_get_info(solver, &info[1]);
        assert_true(info[1].energy.total == info[0].energy.total);
        assert_true(info[1].lower_bound == info[0].lower_bound);
        assert_int_equal(info[1].proven, info[0].proven);
        dcrf_workspace_set_limit(toy.workspace, 0, always, NULL);
        const dcrf_proof *before = dcrf_solver_proof(solver);
        assert_int_equal(dcrf_solver_prove(solver, NULL), DCRF_STOP_CANCELLED);
        assert_ptr_equal(dcrf_solver_proof(solver), before);
        check_solver(solver, &seen);
        dcrf_workspace_set_limit(toy.workspace, 0, NULL, NULL);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        assert_int_equal(dcrf_solver_proof(solver) != NULL, seed % 2 == 0);
        check_solver(solver, &seen);
        dcrf_solver_free(&other);
        dcrf_solver_free(&solver);
        dcrf_plan_free(&seen.plan);
        free_toy(&toy);
    }
}

/* The proof as a stage: the solver reports the labels, energy, bound and gap of the proof, none of
 * them stale. */
static void a_stage_of_the_run(void **state) {
    (void)state;
    size_t changed = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = new_toy(seed, 9, 3, seed % 3, seed % 2 ? 0.2 : 0.6, TOY_POTTS, 1);
        struct seen seen = see(&toy, DCRF_OPERATOR_FAST);
        dcrf_settings settings;
        dcrf_solver *solver;
        dcrf_solver_info info;
        dcrf_proof_info proven;
        uint16_t labels[9], counts[9], before[9];
        enumerate(&seen);
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.iterations = 1; /* leaves the proof something to improve */
        settings.polish = 0;
        assert_int_equal(dcrf_solver_new(&solver, seen.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        assert_null(dcrf_solver_proof(solver));
        dcrf_solver_labels(solver, before, 9, NULL);
        assert_int_equal(dcrf_solver_labels_left(solver, counts, 9, NULL), DCRF_OK);
        dcrf_solver_get_info(solver, &info);
        size_t single = 0;
        for (size_t a = 0; a < 9; a++)
            single += counts[a] == 1;
        assert_int_equal(single, info.proven);
        dcrf_solver_free(&solver);
        settings.proof = seed % 4 ? DCRF_PROVE_VARIABLES : DCRF_PROVE_CERTIFICATE;
        assert_int_equal(dcrf_solver_new(&solver, seen.plan, toy.workspace, &settings, NULL),
                         DCRF_OK);
        assert_true(dcrf_solver_run(solver, NULL) > 0);
        const dcrf_proof *proof = dcrf_solver_proof(solver);
        assert_non_null(proof);
        dcrf_proof_get_info(proof, &proven);
        dcrf_solver_get_info(solver, &info);
        dcrf_solver_labels(solver, labels, 9, NULL);
        assert_int_equal(dcrf_solver_labels_left(solver, counts, 9, NULL), DCRF_OK);
        assert_int_equal(info.proof_stop, DCRF_OK);
        assert_int_equal(info.proven, proven.proven);
        bool is_constant = true;
        for (size_t a = 0; a < 9; a++)
            is_constant &= labels[a] == labels[0];
        assert_int_equal(info.is_constant, is_constant);
        changed += memcmp(labels, before, sizeof labels) != 0;
        /* The energy is rounded up, the bound down. */
        assert_true((long double)info.energy.total >= energy_of(&seen, labels));
        assert_true((long double)info.energy.total <= energy_of(&seen, labels) + 1e-9L);
        assert_true((long double)info.lower_bound <= seen.optimum);
        if (proven.proven == 9)
            assert_true(info.relative_gap == 0);
        dcrf_solver_free(&solver);
        dcrf_plan_free(&seen.plan);
        free_toy(&toy);
    }
    assert_true(changed > 0);
}

/* Kernels of weight zero do not count, whatever their compatibility, and a matrix can be Potts. */
static void what_is_potts(void **state) {
    (void)state;
    const float potts[] = {0, 1, 1, 1, 0, 1, 1, 1, 0}, other[] = {0, 1, 2, 1, 0, 1, 2, 1, 0};
    for (int k = 0; k < 3; k++) {
        struct toy toy = new_toy(7, 9, 3, 0, 0.3, TOY_POTTS, 1);
        dcrf_settings settings;
        dcrf_solver *solver = NULL;
        dcrf_error error;
        assert_int_equal(dcrf_model_set_compatibility(toy.model, 1, DCRF_COMPATIBILITY_MATRIX,
                                                      k == 0 ? potts : other, NULL),
                         DCRF_OK);
        if (k == 1)
            assert_int_equal(dcrf_model_set_weight(toy.model, 1, 0, NULL), DCRF_OK);
        dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
        settings.proof = DCRF_PROVE_VARIABLES;
        if (k == 2) {
            assert_fails(DCRF_ERROR_UNSUPPORTED, "kernel 1 has another one", error,
                         dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, &error));
        } else {
            assert_int_equal(dcrf_solver_new(&solver, toy.plan, toy.workspace, &settings, NULL),
                             DCRF_OK);
            assert_true(dcrf_solver_run(solver, &error) > 0);
            assert_non_null(dcrf_solver_proof(solver));
        }
        dcrf_solver_free(&solver);
        free_toy(&toy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(excluded_labels_are_in_no_optimum),
        cmocka_unit_test(multiples_of_potts_are_proven),
        cmocka_unit_test(ties_stay),
        cmocka_unit_test(constants_that_tie),
        cmocka_unit_test(no_less_than_a_certificate),
        cmocka_unit_test(a_proof_after_steps),
        cmocka_unit_test(a_stage_of_the_run),
        cmocka_unit_test(what_is_potts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
