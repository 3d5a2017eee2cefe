/* Groups, their cliques, the relaxation of the rest and its gap (proof/groups.h, rest.h), against
 * the formulas at the top of those files, by sums over all pairs in long double, and against all
 * labellings of the rest. */
#include "known_toy.h"

#include "proof/groups.h"
#include "proof/rest.h"

#include <math.h>
#include <stdlib.h>

#define MOST_VARIABLES 24
#define MOST_LABELS 5
#define LAST_NODE (DCRF_VALUE_NODES - 1)

typedef long double table[MOST_VARIABLES * MOST_LABELS];

/* ---- the formulas --------------------------------------------------------------------------- */

/* The clipped line at the nodes, linear in between. */
static long double plain_line(long double v, long double w, long double epsilon) {
    const long double h = fminl(floorl(v), LAST_NODE - 1), k = fminl(floorl(w), LAST_NODE - 1);
    long double sum = 0;
    for (int up = 0; up < 2; up++)
        for (int right = 0; right < 2; right++) {
            const long double at = (k + right - h - up) / (LAST_NODE * epsilon);
            sum += (up ? v - h : 1 - (v - h)) * (right ? w - k : 1 - (w - k)) *
                   fmaxl(-1, fminl(1, at));
        }
    return sum;
}

/* Values, in nodes, as a certificate stores them: rounded, and on the correct side of the middle if
 * they must tell x apart. */
static void plain_values(const struct known_toy *t, const struct dcrf_groups *groups, bool is_free,
                         long double *values) {
    const long double span = fmaxl(1, ceill((long double)groups->epsilon * LAST_NODE - 1e-9L));
    const long double low = floorl((LAST_NODE - span) / 2), high = low + span;
    for (size_t k = 0; k < t->toy.variables * t->toy.labels; k++) {
        const bool is_own = t->known.labels[k / t->toy.labels] == k % t->toy.labels;
        const long double most = LAST_NODE;
        values[k] = rintl((long double)groups->y[k] * most * DCRF_VALUE_STEPS) / DCRF_VALUE_STEPS;
        values[k] = fmaxl(0, fminl(most, values[k]));
        if (!is_free)
            values[k] = is_own ? fmaxl(values[k], high) : fminl(values[k], low);
    }
}

/* r_ai for a member a. */
static long double plain_reduced(const struct known_toy *t, const long double *values,
                                 const bool *member, long double epsilon, size_t a, size_t i) {
    const size_t n = t->toy.variables, labels = t->toy.labels;
    long double r = plain_cost(t, a, i);
    for (size_t b = 0; b < n; b++) {
        if (b == a || t->known.round[b] != 0)
            continue;
        if (member[b])
            r -= t->matrix[a * n + b] *
                 plain_line(values[a * labels + i], values[b * labels + i], epsilon);
        else if (i != t->known.labels[a] && t->known.possible[b * labels + i])
            r -= 2 * t->matrix[a * n + b];
    }
    return r;
}

/* ---- toys ----------------------------------------------------------------------------------- */

/* Marginals that lean towards x. */
static void draw_marginals(struct known_toy *t, float *y) {
    const size_t labels = t->toy.labels;
    for (size_t a = 0; a < t->toy.variables; a++) {
        double sum = 0;
        for (size_t i = 0; i < labels; i++)
            sum += y[a * labels + i] = (float)(dcrf_rng_uniform(&t->rng) * 0.3 + 1e-3);
        const float own = (float)(0.3 + 0.7 * dcrf_rng_uniform(&t->rng));
        for (size_t i = 0; i < labels; i++)
            y[a * labels + i] *= (1 - own) / (float)sum;
        y[a * labels + t->known.labels[a]] += own;
    }
}

/* The groups hold pointers into the toy. */
static void make(struct known_toy *t, struct dcrf_groups *groups, uint64_t seed, size_t cliques) {
    const double strengths[] = {0.03, 0.08, 0.2};
    const double widths[] = {0.03125, 0.25, 1.0 / 13, 0.6};
    *t = new_known_toy(seed, 8 + seed % 16, 2 + seed % 4, cliques, strengths[seed / 3 % 3]);
    exclude_some(t, 0.2);
    for (uint64_t round = 0; round < seed % 4; round++)
        decide_some(t, 0.25);
    assert_int_equal(dcrf_groups_init(groups, &t->known, widths[seed / 2 % 4], NULL), DCRF_OK);
    draw_marginals(t, groups->y);
}

static void free_groups(struct known_toy *t, struct dcrf_groups *groups) {
    dcrf_groups_clear(groups);
    free_known_toy(t);
}

/* ---- groups --------------------------------------------------------------------------------- */

/* Remove variables without a margin until all have one. False: a margin is too close to zero to
 * decide. */
static bool plain_group(const struct known_toy *t, const long double *values, long double epsilon,
                        bool *member) {
    const size_t n = t->toy.variables, labels = t->toy.labels;
    for (bool is_new = true; is_new;) {
        bool out[MOST_VARIABLES] = {false};
        is_new = false;
        for (size_t a = 0; a < n; a++) {
            if (!member[a])
                continue;
            const size_t x = t->known.labels[a];
            const long double own = plain_reduced(t, values, member, epsilon, a, x);
            for (size_t i = 0; i < labels; i++) {
                if (i == x || !t->known.possible[a * labels + i])
                    continue;
                const long double margin = plain_reduced(t, values, member, epsilon, a, i) - own;
                if (fabsl(margin) <= 2 * (long double)t->known.error[a])
                    return false;
                out[a] |= margin < 0;
            }
        }
        for (size_t a = 0; a < n; a++)
            if (out[a]) {
                member[a] = false;
                is_new = true;
            }
    }
    return true;
}

static void the_largest_group_is_decided(void **state) {
    (void)state;
    size_t decided = 0, left = 0, close = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct dcrf_groups groups;
        struct known_toy t;
        make(&t, &groups, seed, 0);
        const size_t n = t.toy.variables, rounds = t.known.rounds;
        table values;
        bool member[MOST_VARIABLES], before[MOST_VARIABLES];
        plain_values(&t, &groups, false, values);
        for (size_t a = 0; a < n; a++)
            before[a] = member[a] = t.known.round[a] == 0;
        const bool is_sure = plain_group(&t, values, (long double)groups.epsilon, member);
        /* If only one label is left, a variable is decided whatever its margin. */
        for (size_t a = 0; a < n; a++) {
            size_t count = 0;
            for (size_t i = 0; i < t.toy.labels; i++)
                count += t.known.possible[a * t.toy.labels + i];
            member[a] |= before[a] && count == 1;
        }
        assert_int_equal(dcrf_groups_decide(&groups, NULL), DCRF_OK);
        close += !is_sure;
        for (size_t a = 0; a < n && is_sure; a++) {
            assert_int_equal(t.known.round[a] == rounds + 1, member[a]);
            decided += member[a];
            left += before[a] && !member[a];
            /* The values are those that the certificate will hold. */
            for (size_t i = 0; i < t.toy.labels && before[a]; i++)
                assert_true((long double)groups.value[a * t.toy.labels + i] ==
                            values[a * t.toy.labels + i] * DCRF_VALUE_STEPS);
        }
        free_groups(&t, &groups);
    }
    print_message("%zu variables decided, %zu left; %zu toys too close to tell\n", decided, left,
                  close);
    assert_true(decided > 500 && left > 500 && close < 20);
}

static bool yes(void *user) {
    ++*(size_t *)user;
    return true;
}

static void nothing_is_decided_when_it_is_over(void **state) {
    (void)state;
    struct dcrf_groups groups;
    struct known_toy t;
    make(&t, &groups, 16, 0);
    const size_t undecided = t.known.undecided;
    size_t asked = 0;
    groups.is_over = yes;
    groups.is_over_user = &asked;
    assert_int_equal(dcrf_groups_decide(&groups, NULL), DCRF_OK);
    assert_int_equal(dcrf_groups_relax(&groups, 5, 0.1, NULL), DCRF_OK);
    assert_true(asked == 2 && t.known.undecided == undecided && groups.sweeps == 0);
    free_groups(&t, &groups);
}

/* ---- cliques -------------------------------------------------------------------------------- */

struct payment {
    const struct known_toy *t;
    table reduced;
    bool member[MOST_VARIABLES];
};

static long double plain_margin(const struct payment *p, size_t a, size_t i) {
    const long double *reduced = p->reduced + a * p->t->toy.labels;
    return reduced[i] - reduced[p->t->known.labels[a]] - (long double)p->t->known.error[a];
}

static long double plain_least_margin(const struct payment *p, size_t a) {
    long double least = (long double)INFINITY;
    for (size_t i = 0; i < p->t->toy.labels; i++)
        if (i != p->t->known.labels[a] && p->t->known.possible[a * p->t->toy.labels + i])
            least = fminl(least, plain_margin(p, a, i));
    return least;
}

/* The level to which C raises the smallest margins: tries the lowest one, two, three ... */
static long double plain_level(const long double *margins, size_t count, long double cost) {
    for (size_t low = 0; low < count; low++) {
        long double sum = cost, level;
        size_t below = 0;
        for (size_t k = 0; k < count; k++)
            if (margins[k] <= margins[low]) {
                sum += margins[k];
                below++;
            }
        level = sum / (long double)below;
        bool fits = isfinite(level) && level >= margins[low];
        for (size_t k = 0; k < count; k++)
            fits &= margins[k] <= margins[low] || margins[k] >= level;
        if (fits)
            return level;
    }
    return -(long double)INFINITY;
}

static size_t plain_pay(struct payment *p, size_t clique, bool *is_close) {
    const struct known_toy *t = p->t;
    const size_t *members = t->toy.members + t->toy.offsets[clique], labels = t->toy.labels;
    const size_t size = t->toy.offsets[clique + 1] - t->toy.offsets[clique];
    const long double cost = (long double)t->toy.costs[clique];
    long double margins[MOST_VARIABLES];
    bool is_whole = true;
    size_t count = 0;
    if (size < 2)
        return 0;
    for (size_t k = 0; k < size; k++) {
        is_whole &= (p->member[members[k]] || t->known.round[members[k]] != 0) &&
                    t->known.labels[members[k]] == t->known.labels[members[0]];
        margins[k] =
            p->member[members[k]] ? plain_least_margin(p, members[k]) : (long double)INFINITY;
    }
    const long double level = plain_level(margins, size, cost);
    for (size_t k = 0; k < size && is_whole; k++)
        p->reduced[members[k] * labels + t->known.labels[members[k]]] -=
            fmaxl(0, level - margins[k]);
    for (size_t i = 0; i < labels; i++) {
        long double sum = 0;
        for (size_t k = 0; k < size; k++)
            if (p->member[members[k]] && t->known.labels[members[k]] != i)
                sum += fmaxl(0, plain_margin(p, members[k], i));
        if (!plain_may_agree(t, clique, i))
            continue;
        *is_close |= fabsl(sum - cost) <= 1e-9L * (cost + 1);
        for (size_t k = 0; k < size; k++) {
            if (!p->member[members[k]] || t->known.labels[members[k]] == i)
                continue;
            if (sum > cost)
                p->reduced[members[k] * labels + i] -=
                    cost / sum * fmaxl(0, plain_margin(p, members[k], i));
            else
                p->member[members[k]] = false;
            count += sum <= cost;
        }
    }
    return count;
}

/* 60 bisections and parts of 1e-12: payments are right to 1e-9 relative. */
static void cliques_are_paid_for(void **state) {
    (void)state;
    size_t compared = 0, out = 0, gained = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        struct dcrf_groups groups;
        struct known_toy t;
        make(&t, &groups, seed, 1 + seed % 4);
        const size_t n = t.toy.variables, cells = n * t.toy.labels;
        struct payment p = {.t = &t};
        bool is_close = false;
        size_t count = 0;
        for (size_t c = 0; c < t.toy.cliques && seed % 3; c++) /* x does not split it */
            for (size_t k = t.toy.offsets[c]; k < t.toy.offsets[c + 1]; k++)
                t.known.labels[t.toy.members[k]] = t.known.labels[t.toy.members[t.toy.offsets[c]]];
        for (size_t k = 0; k < cells; k++) {
            p.reduced[k] = (long double)(groups.reduced[k] = 3 * dcrf_rng_uniform(&t.rng));
            if (k % t.toy.labels == t.known.labels[k / t.toy.labels])
                p.reduced[k] = (long double)(groups.reduced[k] *= 0.3);
        }
        for (size_t a = 0; a < n; a++)
            groups.member[a] = p.member[a] =
                (t.known.round[a] == 0 && dcrf_rng_next(&t.rng) % 8 > 0);
        const struct payment before = p;
        for (size_t c = 0; c < t.toy.cliques; c++)
            count += plain_pay(&p, c, &is_close);
        const size_t found = dcrf_groups_pay_cliques(&groups);
        for (size_t k = 0; k < cells && !is_close; k++) {
            assert_true(fabsl((long double)groups.reduced[k] - p.reduced[k]) <= 1e-8L);
            assert_int_equal(groups.member[k / t.toy.labels], p.member[k / t.toy.labels]);
            compared += p.reduced[k] != before.reduced[k];
            gained += p.reduced[k] < before.reduced[k] &&
                      k % t.toy.labels == t.known.labels[k / t.toy.labels];
        }
        if (!is_close)
            assert_int_equal(found, count);
        out += count;
        free_groups(&t, &groups);
    }
    print_message("%zu reduced costs changed, %zu of them of x, %zu variables put out\n", compared,
                  gained, out);
    assert_true(compared > 1000 && gained > 300 && out > 100);
}

/* ---- the relaxation of the rest ------------------------------------------------------------- */

/* The nearest distribution: max(0, row - theta), theta by bisection. */
static void plain_project(long double *row, size_t count) {
    long double low = -1e9L, high = 1e9L;
    for (int k = 0; k < 200; k++) {
        const long double theta = (low + high) / 2;
        long double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += fmaxl(0, row[i] - theta);
        *(sum > 1 ? &low : &high) = theta;
    }
    for (size_t i = 0; i < count; i++)
        row[i] = fmaxl(0, row[i] - low);
}

/* One step is y = P(y - tau r) over the possible labels, with the handicap added to r of x. The
 * error is that of a few dozen float roundings times a slope of 1 / epsilon times tau = epsilon /
 * row sum. */
static void a_step_is_projected_descent(void **state) {
    (void)state;
    size_t moved = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct dcrf_groups groups;
        struct known_toy t;
        make(&t, &groups, seed, 0);
        const size_t n = t.toy.variables, labels = t.toy.labels;
        const double handicap = seed % 2 ? 0.05 : 0;
        const long double epsilon = fmaxl((long double)groups.epsilon, 1.0L / LAST_NODE);
        table values, expected;
        bool member[MOST_VARIABLES];
        for (size_t a = 0; a < n; a++)
            member[a] = t.known.round[a] == 0;
        for (size_t k = 0; k < n * labels; k++)
            values[k] = (long double)groups.y[k] * LAST_NODE;
        for (size_t a = 0; a < n; a++)
            for (size_t i = 0; i < labels; i++) {
                long double *y = expected + a * labels;
                const bool is_own = i == t.known.labels[a];
                y[i] = (long double)groups.y[a * labels + i];
                if (!member[a])
                    continue;
                const long double row = fmaxl(plain_row(&t, a), 1e-3L * t.known.row_sums[a]);
                const long double r = plain_reduced(&t, values, member, groups.epsilon, a, i) +
                                      (is_own ? (long double)handicap : 0);
                y[i] = t.known.possible[a * labels + i] ? y[i] - epsilon / row * r : -1e8L;
                if (i + 1 == labels)
                    plain_project(y, labels);
            }
        table before;
        for (size_t k = 0; k < n * labels; k++)
            before[k] = (long double)groups.y[k];
        assert_int_equal(dcrf_groups_relax(&groups, 1, handicap, NULL), DCRF_OK);
        assert_true(groups.sweeps == (double)t.known.member_count / (double)n);
        for (size_t k = 0; k < n * labels; k++) {
            const long double error = t.known.error[k / labels] / plain_row(&t, k / labels);
            assert_true(!member[k / labels] || fabsl((long double)groups.y[k] - expected[k]) <=
                                                   1e-4L + 4 * epsilon * error);
            moved += member[k / labels] && fabsl(expected[k] - before[k]) > 0.01L;
        }
        free_groups(&t, &groups);
    }
    print_message("%zu marginals moved\n", moved);
    assert_true(moved > 2000);
}

/* ---- the gap of the rest -------------------------------------------------------------------- */

/* The energy of x among the undecided variables, from their pairs and from the decided ones. */
static long double plain_energy(const struct known_toy *t, const uint16_t *x) {
    const size_t n = t->toy.variables;
    long double sum = 0;
    for (size_t a = 0; a < n; a++) {
        if (t->known.round[a] != 0)
            continue;
        sum += plain_cost(t, a, x[a]);
        for (size_t b = 0; b < n; b++)
            if (t->known.round[b] == 0 && x[a] != x[b])
                sum += t->matrix[a * n + b];
    }
    return sum;
}

static bool is_broken(const struct known_toy *t, size_t clique) {
    for (size_t k = t->toy.offsets[clique]; k < t->toy.offsets[clique + 1]; k++)
        if (t->known.labels[t->toy.members[k]] !=
            t->known.labels[t->toy.members[t->toy.offsets[clique]]])
            return true;
    return false;
}

/* excess = energy of x - sum_a min_i r_ai, plus the cliques that x splits and that could be whole;
 * labels that lie further above the minimum are excluded. The excess is never too small, and too
 * large by at most 2^-20 of itself and the errors of the rest. */
static void the_gap_of_the_rest(void **state) {
    (void)state;
    size_t excluded = 0, stayed = 0, close = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct dcrf_groups groups;
        struct known_toy t;
        make(&t, &groups, seed, seed % 3);
        const size_t n = t.toy.variables, labels = t.toy.labels;
        table values, r;
        long double expected, errors = 0;
        long double least[MOST_VARIABLES];
        uint8_t before[MOST_VARIABLES * MOST_LABELS];
        bool member[MOST_VARIABLES];
        double excess = (double)NAN;
        if (seed % 50 == 0) /* nothing is left */
            decide_some(&t, 1);
        expected = plain_energy(&t, t.known.labels);
        for (size_t a = 0; a < n; a++)
            member[a] = t.known.round[a] == 0;
        plain_values(&t, &groups, true, values);
        for (size_t a = 0; a < n; a++) {
            least[a] = (long double)INFINITY;
            for (size_t i = 0; i < labels && member[a]; i++) {
                r[a * labels + i] = plain_reduced(&t, values, member, groups.epsilon, a, i);
                if (t.known.possible[a * labels + i])
                    least[a] = fminl(least[a], r[a * labels + i]);
            }
            expected -= member[a] ? least[a] : 0;
            errors += member[a] ? (long double)t.known.error[a] : 0;
        }
        for (size_t p = 0; p < t.toy.cliques; p++) {
            bool may_agree = false;
            for (size_t i = 0; i < labels; i++)
                may_agree |= plain_may_agree(&t, p, i);
            expected += is_broken(&t, p) && may_agree ? (long double)t.toy.costs[p] : 0;
        }
        memcpy(before, t.known.possible, n * labels);
        assert_int_equal(dcrf_groups_excess(&groups, &excess, NULL), DCRF_OK);
        if (t.known.undecided == 0) {
            assert_true(excess == 0);
            free_groups(&t, &groups);
            continue;
        }
        assert_true((long double)excess >= expected);
        assert_true((long double)excess <= expected * (1 + 0x1p-19L) + 3 * errors);
        for (size_t k = 0; k < n * labels; k++) {
            const long double error =
                3 * (long double)t.known.error[k / labels] + 3 * errors + 0x1p-19L * expected;
            const long double more = r[k] - least[k / labels];
            if (!before[k] || !member[k / labels]) {
                assert_int_equal(t.known.possible[k], before[k]);
            } else if (fabsl(more - expected) <= error) { /* e.g. if one variable is left */
                close++;
            } else {
                assert_int_equal(t.known.possible[k], more < expected);
                *(more < expected ? &stayed : &excluded) += 1;
            }
        }
        free_groups(&t, &groups);
    }
    print_message("%zu labels excluded, %zu not, %zu too close to tell\n", excluded, stayed, close);
    assert_true(excluded > 1000 && stayed > 1000 && close * 20 < excluded + stayed);
}

/* ---- the rest, solved ----------------------------------------------------------------------- */

/* The lowest energy of all labellings of the rest, and of those with label i at a. */
static long double plain_optimum(const struct known_toy *t, long double *lowest) {
    const size_t n = t->toy.variables, labels = t->toy.labels;
    uint16_t x[MOST_VARIABLES];
    long double optimum = (long double)INFINITY;
    for (size_t a = 0; a < n; a++)
        x[a] = t->known.round[a] != 0 ? t->known.labels[a] : 0;
    for (size_t k = 0; k < n * labels; k++)
        lowest[k] = (long double)INFINITY;
    for (;;) {
        bool is_possible = true;
        for (size_t a = 0; a < n; a++)
            is_possible &= t->known.possible[a * labels + x[a]] != 0;
        const long double energy = is_possible ? plain_energy(t, x) : (long double)INFINITY;
        for (size_t a = 0; a < n; a++)
            lowest[a * labels + x[a]] = fminl(lowest[a * labels + x[a]], energy);
        optimum = fminl(optimum, energy);
        size_t a = 0;
        while (a < n && (t->known.round[a] != 0 || ++x[a] == labels))
            x[a] = t->known.round[a] != 0 ? x[a] : 0, a++;
        if (a == n)
            return optimum;
    }
}

/* The smoothing of the narrowest line costs half its width per pair and label, and for two labels
 * the LP's value is the optimum: anything beyond that is lack of convergence, allowed for by a
 * factor of 4. */
static void a_small_rest_is_solved(void **state) {
    (void)state;
    size_t excluded = 0, better = 0, optimal = 0, solved = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const double strengths[] = {0.05, 0.2, 0.6};
        const size_t labels = 2 + seed % 2, n = 7 + seed % 3;
        struct known_toy t = new_known_toy(seed, n, labels, 0, strengths[seed / 3 % 3]);
        float y[MOST_VARIABLES * MOST_LABELS];
        table lowest;
        uint8_t before[MOST_VARIABLES * MOST_LABELS];
        bool is_better;
        double excess;
        long double pairs = 0, errors = 0;
        exclude_some(&t, 0.1);
        decide_some(&t, seed % 4 ? 0.2 : 0);
        for (size_t a = 0; a < n && seed % 5 == 0; a++) { /* x is arbitrary */
            const size_t label = dcrf_rng_next(&t.rng) % labels;
            if (t.known.possible[a * labels + label])
                t.known.labels[a] = (uint16_t)label;
        }
        assert_true(dcrf_rest_is_small(&t.known) == (t.known.undecided > 0));
        if (t.known.undecided == 0) {
            free_known_toy(&t);
            continue;
        }
        draw_marginals(&t, y);
        const long double optimum = plain_optimum(&t, lowest);
        const long double energy = plain_energy(&t, t.known.labels);
        for (size_t a = 0; a < n; a++) {
            errors += t.known.round[a] == 0 ? (long double)t.known.error[a] : 0;
            pairs += t.known.round[a] == 0 ? plain_row(&t, a) / 2 : 0;
        }
        memcpy(before, t.known.possible, n * labels);
        assert_int_equal(dcrf_rest_solve(&t.known, y, seed % 6 > 0, &is_better, &excess, NULL),
                         DCRF_OK);
        const long double found = plain_energy(&t, t.known.labels);
        assert_true(found <= energy + errors);
        assert_true(is_better ? found < energy : found == energy);
        assert_true((long double)excess >= found - optimum);
        better += is_better;
        optimal += found <= optimum + errors;
        solved++;
        if (labels == 2) {
            assert_true(found <= optimum + errors);
            assert_true((long double)excess <= 4 * pairs * 2 * (1.0L / 2048) / 2 + 2 * errors);
        }
        for (size_t k = 0; k < n * labels; k++) {
            if (t.known.possible[k] == before[k])
                continue;
            assert_true(seed % 6 > 0 && t.known.round[k / labels] == 0);
            assert_true(lowest[k] > optimum);
            excluded++;
        }
        for (size_t a = 0; a < n; a++) {
            double sum = 0;
            for (size_t i = 0; i < labels; i++)
                sum += (double)y[a * labels + i];
            assert_true(fabs(sum - 1) <= 1e-5);
            assert_true(t.known.possible[a * labels + t.known.labels[a]]);
        }
        free_known_toy(&t);
    }
    print_message("%zu of %zu optimal, %zu better than before, %zu labels excluded\n", optimal,
                  solved, better, excluded);
    assert_true(optimal * 20 > solved * 19 && better > 30 && excluded > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_group_is_decided),
        cmocka_unit_test(nothing_is_decided_when_it_is_over),
        cmocka_unit_test(cliques_are_paid_for),
        cmocka_unit_test(a_step_is_projected_descent),
        cmocka_unit_test(the_gap_of_the_rest),
        cmocka_unit_test(a_small_rest_is_solved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
