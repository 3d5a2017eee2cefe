#include "known_toy.h"

#include "filter/plan.h"

#include <stdlib.h>

static void fill_matrix(struct known_toy *t) {
    const size_t n = t->toy.variables;
    double *unit = malloc(n * sizeof *unit), *column = malloc(n * sizeof *column);
    t->matrix = calloc(n * n, sizeof *t->matrix);
    for (size_t m = 0; m < t->plan->kernel_count; m++)
        for (size_t b = 0; b < n; b++) {
            const dcrf_operator *op = t->plan->kernels[m].op;
            for (size_t a = 0; a < n; a++)
                unit[a] = a == b;
            assert_int_equal(op->methods->apply_double(op, t->toy.workspace, unit, column, 1, NULL),
                             DCRF_OK);
            for (size_t a = 0; a < n; a++)
                t->matrix[a * n + b] +=
                    (long double)t->toy.model->kernels[m].weight * (long double)column[a];
        }
    free(unit);
    free(column);
}

struct known_toy new_known_toy(uint64_t seed, size_t variables, size_t labels, size_t cliques,
                               double strength) {
    struct known_toy t = {
        .toy = new_toy(seed, variables, labels, cliques, strength, TOY_POTTS, 1 + seed % 2)};
    const bool is_exact = seed % 2 == 0;
    const size_t n = variables;
    uint16_t *x = malloc(n * sizeof *x);
    dcrf_rng_seed(&t.rng, seed + 1000);
    if (seed % 5 == 0)
        assert_int_equal(dcrf_model_set_weight(t.toy.model, seed / 5 % 2, 0, NULL), DCRF_OK);
    assert_int_equal(dcrf_plan_new(&t.plan, t.toy.model,
                                   is_exact ? DCRF_OPERATOR_EXACT : DCRF_OPERATOR_FAST,
                                   t.toy.workspace, NULL),
                     DCRF_OK);
    fill_matrix(&t);
    /* For exact operators, use the formula itself. */
    for (size_t k = 0; k < n * n && is_exact; k++)
        if (k / n != k % n) {
            t.matrix[k] = 0;
            for (size_t m = 0; m < TOY_KERNELS; m++)
                if (t.toy.model->kernels[m].weight > 0)
                    t.matrix[k] += (long double)t.toy.matrix[m][k];
        }
    for (size_t a = 0; a < n; a++) {
        x[a] = 0;
        for (size_t i = 1; i < labels; i++)
            if (t.toy.unary[a * labels + i] < t.toy.unary[a * labels + x[a]])
                x[a] = (uint16_t)i;
        if (dcrf_rng_next(&t.rng) % 6 == 0)
            x[a] = (uint16_t)(dcrf_rng_next(&t.rng) % labels);
    }
    assert_int_equal(dcrf_knowledge_init(&t.known, t.plan, t.toy.workspace, x, NULL), DCRF_OK);
    assert_memory_equal(t.known.labels, x, n * sizeof *x);
    free(x);
    return t;
}

void free_known_toy(struct known_toy *t) {
    dcrf_knowledge_clear(&t->known);
    dcrf_plan_free(&t->plan);
    free(t->matrix);
    free_toy(&t->toy);
}

void exclude_some(struct known_toy *t, double part) {
    const size_t labels = t->toy.labels;
    for (size_t a = 0; a < t->toy.variables; a++)
        for (size_t i = 0; i < labels; i++)
            if (t->known.round[a] == 0 && i != t->known.labels[a] &&
                dcrf_rng_uniform(&t->rng) < part)
                t->known.possible[a * labels + i] = 0;
}

void decide_some(struct known_toy *t, double part) {
    const size_t n = t->toy.variables, labels = t->toy.labels;
    const size_t round = t->known.rounds + 1;
    size_t undecided = 0, before = t->known.undecided;
    uint8_t *marked = calloc(n, 1), *must = calloc(n, 1);
    for (size_t a = 0; a < n; a++) {
        uint8_t *possible = t->known.possible + a * labels;
        size_t count = 0;
        if (t->known.round[a] == 0 && dcrf_rng_uniform(&t->rng) < part) {
            if (dcrf_rng_next(&t->rng) % 2)
                marked[a] = 1;
            else /* the remaining label may differ from that of x */
                for (size_t i = 0, kept = dcrf_rng_next(&t->rng) % labels; i < labels; i++)
                    possible[i] = i == kept;
        }
        for (size_t i = 0; i < labels; i++)
            count += possible[i];
        must[a] = t->known.round[a] == 0 && (marked[a] || count == 1);
    }
    assert_int_equal(dcrf_knowledge_decide(&t->known, marked, NULL), DCRF_OK);
    for (size_t a = 0; a < n; a++) {
        const uint8_t *possible = t->known.possible + a * labels;
        if (must[a])
            assert_int_equal(t->known.round[a], round);
        else
            assert_true(t->known.round[a] < round);
        undecided += t->known.round[a] == 0;
        for (size_t i = 0; i < labels && t->known.round[a] != 0; i++)
            assert_int_equal(possible[i], i == t->known.labels[a]);
    }
    assert_int_equal(t->known.undecided, undecided);
    assert_int_equal(t->known.rounds, undecided < before ? round : round - 1);
    free(marked);
    free(must);
}

long double plain_cost(const struct known_toy *t, size_t a, size_t i) {
    const size_t n = t->toy.variables;
    long double cost = (long double)t->toy.model->unary[a * t->toy.model->stride + i];
    for (size_t b = 0; b < n; b++)
        if (t->known.round[b] != 0 && t->known.labels[b] == i)
            cost -= 2 * t->matrix[a * n + b];
    return cost;
}

bool plain_may_agree(const struct known_toy *t, size_t clique, size_t label) {
    for (size_t k = t->toy.offsets[clique]; k < t->toy.offsets[clique + 1]; k++)
        if (!t->known.possible[t->toy.members[k] * t->toy.labels + label])
            return false;
    return true;
}

long double plain_row(const struct known_toy *t, size_t a) {
    const size_t n = t->toy.variables;
    long double sum = 0;
    for (size_t b = 0; b < n; b++)
        sum += t->known.round[b] == 0 ? t->matrix[a * n + b] : 0;
    return sum;
}
