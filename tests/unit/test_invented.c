/* Made-up certificates. Whatever the check accepts is true of an enumerated model, and a mixture of
 * dual points proves what its formula says, no more and no less:
 *
 *   bound = sum_a min_i (theta_ai - sum_p w_p sum_b K_ab F_p(v_ai, v_bi) - shares_ai) + sum_p C_p,
 *
 * the last two only if the mixture has shares; F is the clipped line of
 * docs/reference/certificate.md. */
#include "toy.h"

#include "core/memory.h"
#include "filter/plan.h"
#include "proof/knowledge.h"
#include "verify/certificate.h"

#include <math.h>

enum { MOST_VARIABLES = 6, MOST_LABELS = 3, ROUNDS = 3, POINTS = 2 };
#define CELLS ((size_t)MOST_VARIABLES * MOST_LABELS)

/* A certificate that owns its arrays. */
struct invention {
    struct dcrf_certificate_content content;
    uint16_t labels[MOST_VARIABLES], round[MOST_VARIABLES], plane[MOST_LABELS];
    double epsilon[ROUNDS];
    uint8_t values[CELLS];
    struct dcrf_certificate_mixture mixture;
    struct dcrf_certificate_point points[POINTS];
    uint32_t point_values[POINTS][CELLS], shares[CELLS];
};

static size_t below(dcrf_rng *rng, size_t limit) {
    return (size_t)(dcrf_rng_uniform(rng) * (double)limit);
}

static void begin(struct invention *made, const struct toy *toy, bool is_exact) {
    *made = (struct invention){0};
    struct dcrf_certificate_content *content = &made->content;
    assert_int_equal(
        dcrf_identity_of_model(&content->identity, toy->model, is_exact, toy->workspace, NULL),
        DCRF_OK);
    content->labels = made->labels;
    content->round = made->round;
    content->epsilon = made->epsilon;
    content->plane = made->plane;
    content->plane_count = toy->labels;
    content->values = made->values;
    content->mixtures = &made->mixture;
    made->mixture.size = toy->variables;
    made->mixture.points = made->points;
    for (size_t i = 0; i < toy->labels; i++)
        made->plane[i] = (uint16_t)(i + 1);
}

/* Groups, one after the other, with values that separate labels more or less clearly. */
static void invent_rounds(struct invention *made, const struct toy *toy, dcrf_rng *rng) {
    made->content.rounds = below(rng, ROUNDS + 1);
    for (size_t a = 0; a < toy->variables; a++)
        made->round[a] = (uint16_t)below(rng, made->content.rounds + 1);
    for (size_t r = 0; r < made->content.rounds; r++) {
        made->epsilon[r] = 0.0625 * (double)(1 + below(rng, 8));
        made->round[r] = (uint16_t)(r + 1); /* none is empty */
    }
    for (size_t i = 0; i < toy->labels; i++)
        for (size_t a = 0; a < toy->variables; a++)
            made->values[i * toy->variables + a] =
                (uint8_t)(i == made->labels[a] ? DCRF_VALUE_MOST - below(rng, 40) : below(rng, 40));
}

/* Values are higher for cheaper labels, as in a good bound; shares are arbitrary. */
static void invent_mixture(struct invention *made, const struct toy *toy, dcrf_rng *rng,
                           bool has_nodes) {
    struct dcrf_certificate_mixture *mixture = &made->mixture;
    made->content.mixture_count = 1;
    mixture->point_count = 1 + below(rng, POINTS);
    for (size_t p = 0; p < mixture->point_count; p++) {
        struct dcrf_certificate_point *point = &mixture->points[p];
        point->weight = dcrf_rng_uniform(rng) / (double)mixture->point_count;
        point->epsilon = 0.0625 * (double)(1 + below(rng, 16));
        point->nodes = has_nodes || below(rng, 2) ? 2 + (uint32_t)below(rng, 40) : 0;
        point->levels = 1 + (uint32_t)below(rng, 1000);
        point->plane = made->plane;
        point->plane_count = toy->labels;
        point->values = made->point_values[p];
        for (size_t i = 0; i < toy->labels; i++)
            for (size_t a = 0; a < toy->variables; a++) {
                const double value =
                    1 - (toy->unary[a * toy->labels + i] + dcrf_rng_uniform(rng)) / 5;
                point->values[i * toy->variables + a] = (uint32_t)(value * point->levels);
            }
    }
    for (size_t k = 0; k < CELLS; k++)
        made->shares[k] = (uint32_t)below(rng, 4);
    mixture->shares = toy->cliques > 0 && below(rng, 2) ? made->shares : NULL;
}

/* `bound` NULL: claim only a trivial bound. */
static dcrf_status check(struct invention *made, const struct toy *toy, const double *bound,
                         uint8_t *possible) {
    uint8_t *bytes;
    size_t size;
    dcrf_verification found;
    dcrf_error error;
    made->content.lower_bound = bound ? *bound : -1e6;
    assert_int_equal(dcrf_certificate_encode(&made->content, &bytes, &size, NULL), DCRF_OK);
    const dcrf_status status = dcrf_verify_certificate(bytes, size, toy->model, toy->workspace,
                                                       NULL, possible, CELLS, &found, &error);
    dcrf_release(bytes);
    return status;
}

/* least[a * labels + i]: the minimum over all labellings with i at a; returns the overall
 * minimum. */
static double enumerate(const struct toy *toy, double *least, uint16_t *best) {
    uint16_t labels[MOST_VARIABLES] = {0};
    double optimum = (double)INFINITY;
    size_t a = 0;
    for (size_t k = 0; k < toy->variables * toy->labels; k++)
        least[k] = (double)INFINITY;
    while (a < toy->variables) {
        const double energy = toy_energy(toy, labels);
        if (energy < optimum)
            memcpy(best, labels, toy->variables * sizeof *best);
        optimum = fmin(optimum, energy);
        for (a = 0; a < toy->variables; a++)
            least[a * toy->labels + labels[a]] = fmin(least[a * toy->labels + labels[a]], energy);
        for (a = 0; a < toy->variables && ++labels[a] == toy->labels; a++)
            labels[a] = 0;
    }
    return optimum;
}

static struct toy toy_of(uint64_t seed, double strength) {
    return new_toy(seed, 3 + seed % 4, 2 + seed / 2 % 2, seed % 3,
                   strength * (double)(1 + seed % 9), TOY_POTTS, 1);
}

static void what_is_accepted_is_true(void **state) {
    (void)state;
    size_t accepted = 0, excluded = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct toy toy = toy_of(seed, 0.05);
        double least[CELLS];
        uint16_t best[MOST_VARIABLES] = {0};
        const double optimum = enumerate(&toy, least, best), rounding = 1e-12 * (1 + fabs(optimum));
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        for (int k = 0; k < 12; k++) {
            struct invention made;
            uint8_t possible[CELLS];
            begin(&made, &toy, true);
            memcpy(made.labels, best, sizeof best);
            if (k % 2)
                made.labels[below(&rng, toy.variables)] = (uint16_t)below(&rng, toy.labels);
            invent_rounds(&made, &toy, &rng);
            if (k % 3)
                invent_mixture(&made, &toy, &rng, false);
            if (made.content.rounds > 0 && below(&rng, 2)) /* sometimes without mixtures */
                made.content.mixture_count = 0;
            made.content.energy = toy_energy(&toy, made.labels) + 1e-9;
            const double too_much = optimum + 10 * rounding;
            if (check(&made, &toy, NULL, possible) == DCRF_OK) {
                accepted++;
                assert_true(check(&made, &toy, &too_much, NULL) < 0);
                for (size_t cell = 0; cell < toy.variables * toy.labels; cell++) {
                    assert_true(possible[cell] || least[cell] > optimum + rounding);
                    excluded += !possible[cell];
                }
            }
            dcrf_identity_clear(&made.content.identity);
        }
        free_toy(&toy);
    }
    print_message("%zu of 1200 inventions are true, and exclude %zu labels\n", accepted, excluded);
    assert_true(accepted > 300 && excluded > 1000);
}

/* ---- the formula of a mixture --------------------------------------------------------------- */

static double clipped(double difference, double epsilon) {
    return fmax(-1, fmin(1, difference / epsilon));
}

static double line(const struct dcrf_certificate_point *point, uint32_t from, uint32_t to) {
    const double v = (double)from / point->levels, w = (double)to / point->levels;
    if (point->nodes == 0)
        return clipped(w - v, point->epsilon);
    const double last = point->nodes - 1.0;
    double sum = 0;
    for (uint32_t h = 0; h < point->nodes; h++)
        for (uint32_t k = 0; k < point->nodes; k++)
            sum += fmax(0, 1 - fabs(v * last - h)) * fmax(0, 1 - fabs(w * last - k)) *
                   clipped(((double)k - h) / last, point->epsilon);
    return sum;
}

/* What a clique pays to a member for a label. */
static double share_of(const struct toy *toy, const uint32_t *shares, size_t a, size_t label) {
    for (size_t p = 0; p < toy->cliques; p++) {
        const size_t size = toy->offsets[p + 1] - toy->offsets[p];
        const size_t *members = toy->members + toy->offsets[p];
        double sum = 0;
        bool is_member = false;
        for (size_t k = 0; k < size; k++) {
            sum += shares[label * toy->variables + members[k]];
            is_member |= members[k] == a;
        }
        if (is_member)
            return toy->costs[p] *
                   (sum > 0 ? shares[label * toy->variables + a] / sum : 1 / (double)size);
    }
    return 0;
}

static double bound_of(const struct toy *toy, const double *k,
                       const struct dcrf_certificate_mixture *mixture) {
    double bound = 0;
    for (size_t p = 0; p < toy->cliques && mixture->shares; p++)
        bound += toy->costs[p];
    for (size_t a = 0; a < toy->variables; a++) {
        double lowest = (double)INFINITY;
        for (size_t i = 0; i < toy->labels; i++) {
            double reduced = toy->unary[a * toy->labels + i];
            for (size_t p = 0; p < mixture->point_count; p++) {
                const struct dcrf_certificate_point *point = &mixture->points[p];
                const uint32_t *values = point->values + i * toy->variables;
                for (size_t b = 0; b < toy->variables; b++)
                    reduced -= point->weight * k[a * toy->variables + b] *
                               line(point, values[a], values[b]);
            }
            if (mixture->shares)
                reduced -= share_of(toy, mixture->shares, a, i);
            lowest = fmin(lowest, reduced);
        }
        bound += lowest;
    }
    return bound;
}

/* K as the operators apply it, column by column. */
static void fill_matrix(const struct toy *toy, const dcrf_plan *plan, double *k) {
    const size_t n = toy->variables;
    memset(k, 0, n * n * sizeof *k);
    for (size_t b = 0; b < n; b++)
        for (size_t m = 0; m < TOY_KERNELS; m++) {
            double in[MOST_VARIABLES] = {0}, out[MOST_VARIABLES];
            const dcrf_operator *op = dcrf_plan_operator(plan, m);
            in[b] = 1;
            assert_int_equal(op->methods->apply_double(op, toy->workspace, in, out, 1, NULL),
                             DCRF_OK);
            for (size_t a = 0; a < n; a++)
                k[a * n + b] += toy->model->kernels[m].weight * out[a];
        }
}

static double energy_with(const struct toy *toy, const double *k, const uint16_t *labels) {
    const size_t n = toy->variables;
    double energy = 0;
    for (size_t a = 0; a < n; a++) {
        energy += toy->unary[a * toy->labels + labels[a]];
        for (size_t b = 0; b < n; b++)
            energy += labels[a] != labels[b] ? k[a * n + b] : 0;
    }
    for (size_t p = 0; p < toy->cliques; p++) {
        bool agree = true;
        for (size_t j = toy->offsets[p]; j < toy->offsets[p + 1]; j++)
            agree &= labels[toy->members[j]] == labels[toy->members[toy->offsets[p]]];
        energy += agree ? 0 : toy->costs[p];
    }
    return energy;
}

static void mixtures_prove_what_their_formula_says(void **state) {
    (void)state;
    size_t counts[2] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        const bool is_exact = seed % 2;
        struct toy toy = toy_of(seed / 2, 0.2);
        double k[MOST_VARIABLES * MOST_VARIABLES], floor = 0;
        struct invention made;
        uint8_t possible[CELLS];
        dcrf_plan *plan;
        dcrf_rng rng;
        dcrf_rng_seed(&rng, seed);
        assert_int_equal(dcrf_plan_new(&plan, toy.model,
                                       is_exact ? DCRF_OPERATOR_EXACT : DCRF_OPERATOR_FAST,
                                       toy.workspace, NULL),
                         DCRF_OK);
        fill_matrix(&toy, plan, k);
        begin(&made, &toy, is_exact);
        if (!is_exact)
            assert_int_equal(
                dcrf_identity_take_matrices(&made.content.identity, plan, toy.workspace, NULL),
                DCRF_OK);
        for (size_t a = 0; a < toy.variables; a++) {
            made.labels[a] = (uint16_t)below(&rng, toy.labels);
            double least = (double)INFINITY;
            for (size_t i = 0; i < toy.labels; i++)
                least = fmin(least, toy.unary[a * toy.labels + i]);
            floor += least;
        }
        invent_mixture(&made, &toy, &rng, !is_exact);
        made.content.energy = energy_with(&toy, k, made.labels) + 1e-9;
        /* Sums of some hundred terms, each right to 1e-12 (check_sums.c), of energies below 100. */
        const double bound = fmax(floor, bound_of(&toy, k, &made.mixture));
        const double less = bound - 1e-9, more = bound + 1e-9;
        assert_int_equal(check(&made, &toy, &less, possible), DCRF_OK);
        bool is_all = true;
        for (size_t cell = 0; cell < toy.variables * toy.labels; cell++)
            is_all &= possible[cell];
        if (is_all) /* excluded labels improve the bound */
            assert_true(check(&made, &toy, &more, possible) < 0);
        counts[is_exact] += is_all && bound > floor;
        dcrf_identity_clear(&made.content.identity);
        dcrf_plan_free(&plan);
        free_toy(&toy);
    }
    print_message("%zu bounds of fast operators and %zu of exact ones\n", counts[0], counts[1]);
    assert_true(counts[0] > 10 && counts[1] > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_accepted_is_true),
        cmocka_unit_test(mixtures_prove_what_their_formula_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
