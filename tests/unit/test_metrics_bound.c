/* The LP's bound for distances between labels is never above the optimum (oracle/metric_toy.h), not
 * even by a rounding error. No comparison here has a tolerance in the direction that matters. For a
 * tight model the bound of the right point, computed without error, is the optimum, and a bound
 * that rounds the wrong way is above it. */
#include "unit.h"

#include "metric_toy.h"

#include <dcrf/experimental.h>
#include <math.h>

struct found {
    double bound, energy, gap;
    dcrf_left_out left_out;
    uint16_t labels[METRIC_TOY_VARIABLES];
};

static struct found run_lp(const struct metric_toy *p, uint64_t seed) {
    dcrf_solver *solver;
    dcrf_settings settings;
    dcrf_solver_info info;
    struct found found;
    dcrf_settings_defaults(&settings, DCRF_METHOD_LP);
    settings.lp.schedule = seed % 5 == 3   ? DCRF_LP_SCHEDULE_PROXIMAL
                           : seed % 5 == 4 ? DCRF_LP_SCHEDULE_PAPER
                                           : DCRF_LP_SCHEDULE_HUBER;
    settings.lp.clique_form = seed % 7 < 4 ? DCRF_CLIQUE_MIN : DCRF_CLIQUE_SPREAD;
    settings.iterations = settings.lp.schedule == DCRF_LP_SCHEDULE_HUBER ? 60 : 6;
    settings.gap = 0;
    assert_int_equal(dcrf_solver_new(&solver, p->plan, p->workspace, &settings, NULL), DCRF_OK);
    assert_true(dcrf_solver_run(solver, NULL) >= 0);
    dcrf_solver_get_info(solver, &info);
    found = (struct found){.bound = info.lower_bound,
                           .energy = info.energy.total,
                           .gap = info.relative_gap,
                           .left_out = info.bound_left_out};
    dcrf_solver_labels(solver, found.labels, sizeof found.labels / sizeof *found.labels, NULL);
    dcrf_solver_free(&solver);
    return found;
}

struct tally {
    size_t models, close, optimal, lossy;
};

/* The part that the bound leaves out is what the sums say, and the bound stays below the rest. */
static void check_left_out(const struct metric_toy *p, const dcrf_left_out *said,
                           const uint16_t *labels, double bound, double gap) {
    const struct metric_toy_left_out truth = metric_toy_left_out(p, labels);
    assert_true(fabs(said->fraction - (double)truth.fraction) <= 1e-9);
    assert_true((said->distance > 0) == (truth.fraction > 0));
    if (said->fraction > 0)
        assert_true(fabs(said->energy - (double)truth.energy) <= 1e-6 * (1 + (double)truth.energy));
    else
        assert_true(said->energy == 0);
    assert_true(said->gap >= 0 && said->gap <= gap + 1e-6);
    const long double energy = metric_toy_energy(p, labels);
    assert_true((long double)bound <= energy - truth.energy);
}

/* No label of an optimal labelling is called wrong. */
static void check_certify(const struct metric_toy *p, const uint16_t *best, long double optimum) {
    dcrf_certify_settings settings;
    dcrf_certify_info info;
    dcrf_certify_settings_defaults(&settings);
    settings.iterations = 30;
    assert_int_equal(dcrf_certify(p->plan, p->workspace, best, &settings, &info, NULL), DCRF_OK);
    assert_int_equal(info.wrong, 0);
    assert_true((long double)info.lower_bound <= optimum);
    check_left_out(p, &info.bound_left_out, best, info.lower_bound, info.relative_gap);
}

static void check(uint64_t seed, bool is_tight, bool has_cliques, struct tally *tally) {
    dcrf_rng rng;
    dcrf_rng_seed(&rng, seed);
    struct metric_toy p =
        metric_toy_make(seed, is_tight ? METRIC_TOY_TIGHT : METRIC_TOY_ANY, has_cliques, &rng);
    uint16_t best[METRIC_TOY_VARIABLES];
    const long double optimum = metric_toy_optimum(&p, best);
    const struct found found = run_lp(&p, seed);
    if (!((long double)found.bound <= optimum))
        fail_msg("model %zu: the bound is above the optimum by %Lg", (size_t)seed,
                 (long double)found.bound - optimum);
    /* The reported energy is not below that of the labelling. */
    const long double energy = metric_toy_energy(&p, found.labels);
    assert_true((long double)found.energy >= energy);
    assert_true((double)((long double)found.energy - energy) <= 1e-5 * (1 + fabs((double)energy)));
    check_left_out(&p, &found.left_out, found.labels, found.bound, found.gap);
    tally->lossy += found.left_out.fraction > 0;
    if (seed % 4 == 0)
        check_certify(&p, best, optimum);
    tally->models++;
    tally->optimal += energy <= optimum + 1e-6L * fabsl(optimum);
    long double scale = 0; /* the optimum of a tight model is about zero */
    for (size_t k = 0; k < p.variables * p.labels; k++)
        scale += fabsl((long double)p.unary[k]) / (long double)p.labels;
    tally->close += optimum - (long double)found.bound <= (is_tight ? 1e-5L : 0.01L) * scale;
    metric_toy_clear(&p);
}

static void test_random(void **state) {
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < 400; seed++)
        check(seed, false, seed % 2 == 1, &tally);
    /* A bound of minus infinity would pass too: most must be close, and most labellings optimal. */
    assert_true(tally.close >= tally.models / 2);
    assert_true(tally.optimal >= tally.models * 9 / 10);
    assert_true(tally.lossy >= tally.models / 20);
}

static void test_tight(void **state) {
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 1000; seed < 1600; seed++)
        check(seed, true, false, &tally);
    assert_true(tally.close >= tally.models / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_tight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
