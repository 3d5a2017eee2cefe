/* The best cuts below a matrix.
 *
 *   max sum_{i < j} d(i, j)   such that   d(i, j) <= mu(i, j),   length_c >= 0
 *
 * over candidate cuts: a linear program whose origin is feasible, so the plain simplex method
 * solves it, and may stop at any time. If mu is an L1 distance and the candidates suffice, d = mu.
 *
 * Up to ALL_CUTS labels the candidates are all 2^(M - 1) - 1 cuts. With more labels, the cuts
 * between two runs of labels on a circle come first: there are as many of them as pairs, and the
 * lengths that reproduce mu are known (Bandelt and Dress, "A canonical decomposition theory for
 * metrics on a finite set", 1992):
 *
 *   length of {i + 1 .. j} = ( mu(i, j) + mu(i + 1, j + 1) - mu(i, j + 1) - mu(i + 1, j) ) / 2.
 *
 * Ordered labels, truncated or not, and any concave function of |i - j| have nonnegative lengths.
 * Otherwise the candidates are these cuts and the pairs of labels, and beyond MOST_PROGRAM_LABELS
 * these cuts alone, each given half of the length that the ones before it allow. In the end every
 * cut gets what is still left for it. */
#include "core/error.h"
#include "core/owned.h"
#include "model/cuts.h"

#include <math.h>
#include <string.h>

#define ALL_CUTS 10
#define MOST_PROGRAM_LABELS 36
#define MOST_GREEDY_LABELS 256
/* Relative to the largest entry: a length that is zero up to rounding error. */
#define NEGLIGIBLE 1e-9
/* Likewise, the error of a length that is half a sum of four entries, which are floats. */
#define NOISE 2e-7
/* Relative to an entry: what a sum of cuts loses by being rounded to a matrix of floats. */
#define ROUNDING 1e-6

struct search {
    const float *matrix;
    size_t labels, count;
    uint8_t *sets; /* count x labels */
    double *lengths;
    double largest; /* entry */
};

static double entry(const struct search *s, size_t i, size_t j) {
    return (double)s->matrix[i % s->labels * s->labels + j % s->labels];
}

/* ---- candidates ----------------------------------------------------------------------------- */

static size_t count_candidates(size_t labels) {
    if (labels <= ALL_CUTS)
        return ((size_t)1 << (labels - 1)) - 1;
    const size_t pairs = labels * (labels - 1) / 2;
    return labels <= MOST_PROGRAM_LABELS ? 2 * pairs : pairs;
}

static void list_all(struct search *s) {
    for (size_t c = 0; c < s->count; c++)
        for (size_t i = 0; i < s->labels; i++)
            s->sets[c * s->labels + i] = (c + 1) >> i & 1;
}

static void list_runs(struct search *s) {
    const size_t labels = s->labels;
    size_t c = 0;
    for (size_t i = 0; i < labels; i++)
        for (size_t j = i + 1; j < labels; j++, c++) {
            for (size_t k = 0; k < labels; k++)
                s->sets[c * labels + k] = k > i && k <= j;
            s->lengths[c] = (entry(s, i, j) + entry(s, i + 1, j + 1) - entry(s, i, j + 1) -
                             entry(s, i + 1, j)) /
                            2;
        }
    for (size_t i = 0; i < labels && c < s->count; i++)
        for (size_t j = i + 1; j < labels; j++, c++)
            s->sets[c * labels + i] = s->sets[c * labels + j] = 1;
}

static bool are_runs_enough(const struct search *s) {
    const size_t pairs = s->labels * (s->labels - 1) / 2;
    for (size_t c = 0; c < pairs; c++)
        if (s->lengths[c] < -NOISE * s->largest)
            return false;
    return true;
}

static void drop_noise(struct search *s) {
    for (size_t c = 0; c < s->count; c++)
        if (s->lengths[c] < NOISE * s->largest)
            s->lengths[c] = 0;
}

/* ---- the program ---------------------------------------------------------------------------- */

/* A tableau with one row per pair and one for the objective, one column per candidate and one for
 * the right-hand side; rows and columns swap as variables enter and leave. */
struct program {
    size_t rows, columns;
    double *cells;
    size_t *basic, *free; /* the variable of a row, of a column: a candidate, or columns + a pair */
};

static double *cell(const struct program *p, size_t row, size_t column) {
    return p->cells + row * (p->columns + 1) + column;
}

static bool make_program(const struct search *s, struct dcrf_owned *owned, struct program *p) {
    p->rows = s->labels * (s->labels - 1) / 2;
    p->columns = s->count;
    p->cells = dcrf_own_zero(owned, p->rows + 1, (p->columns + 1) * sizeof *p->cells);
    p->basic = dcrf_own(owned, p->rows, sizeof *p->basic);
    p->free = dcrf_own(owned, p->columns, sizeof *p->free);
    if (owned->is_short)
        return false;
    for (size_t c = 0; c < p->columns; c++)
        p->free[c] = c;
    size_t row = 0;
    for (size_t i = 0; i < s->labels; i++)
        for (size_t j = i + 1; j < s->labels; j++, row++) {
            p->basic[row] = p->columns + row;
            *cell(p, row, p->columns) = entry(s, i, j);
            for (size_t c = 0; c < p->columns; c++) {
                const double cuts = s->sets[c * s->labels + i] != s->sets[c * s->labels + j];
                *cell(p, row, c) = cuts;
                *cell(p, p->rows, c) -= cuts;
            }
        }
    return true;
}

/* The column that gains most, or `columns` if none does. While moves gain nothing, the lowest
 * number is taken, in rows too, which prevents cycling (Bland 1977). */
static size_t choose_column(const struct program *p, bool is_stuck) {
    size_t best = p->columns;
    double least = -1e-9;
    for (size_t c = 0; c < p->columns; c++) {
        const double cost = *cell(p, p->rows, c);
        if (is_stuck ? cost < -1e-9 && (best == p->columns || p->free[c] < p->free[best])
                     : cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

/* The row that limits the move along a column, and how far it goes. Ties: the largest pivot. */
static size_t choose_row(const struct program *p, size_t column, bool is_stuck, double *step) {
    size_t best = p->rows;
    *step = INFINITY;
    for (size_t r = 0; r < p->rows; r++) {
        const double pivot = *cell(p, r, column);
        if (pivot < 1e-9)
            continue;
        const double ratio = fmax(0, *cell(p, r, p->columns)) / pivot;
        if (ratio < *step || (ratio <= *step && (is_stuck ? p->basic[r] < p->basic[best]
                                                          : pivot > *cell(p, best, column)))) {
            *step = ratio;
            best = r;
        }
    }
    return best;
}

static void exchange(struct program *p, size_t row, size_t column) {
    const double pivot = *cell(p, row, column);
    for (size_t c = 0; c <= p->columns; c++)
        *cell(p, row, c) /= pivot;
    *cell(p, row, column) = 1 / pivot;
    for (size_t r = 0; r <= p->rows; r++) {
        const double factor = *cell(p, r, column);
        if (r == row || factor == 0)
            continue;
        *cell(p, r, column) = 0;
        for (size_t c = 0; c <= p->columns; c++)
            *cell(p, r, c) -= factor * *cell(p, row, c);
    }
    const size_t variable = p->basic[row];
    p->basic[row] = p->free[column];
    p->free[column] = variable;
}

/* Stopping early is fine: the number of moves is limited. */
static dcrf_status solve_program(struct search *s, dcrf_error *error) {
    struct program p = {0};
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    bool is_stuck = false;
    if (!make_program(s, &owned, &p))
        return dcrf_fail_memory(error, "the cuts of a matrix");
    for (size_t moves = 0; moves < 100 * (p.rows + 10); moves++) {
        double step = 0;
        const size_t column = choose_column(&p, is_stuck);
        const size_t row = column < p.columns ? choose_row(&p, column, is_stuck, &step) : p.rows;
        if (row == p.rows)
            break;
        exchange(&p, row, column);
        is_stuck = step <= NEGLIGIBLE * s->largest;
    }
    for (size_t c = 0; c < s->count; c++)
        s->lengths[c] = 0;
    for (size_t r = 0; r < p.rows; r++)
        if (p.basic[r] < p.columns)
            s->lengths[p.basic[r]] = *cell(&p, r, p.columns);
    return DCRF_OK;
}

/* ---- one cut after the other ---------------------------------------------------------------- */

/* What is left of the matrix once a cut has become longer. */
static void take_off(const struct search *s, size_t c, double length, double *left) {
    const uint8_t *set = s->sets + c * s->labels;
    for (size_t i = 0; i < s->labels; i++)
        for (size_t j = 0; j < s->labels && set[i]; j++)
            if (!set[j]) {
                left[i * s->labels + j] -= length;
                left[j * s->labels + i] = left[i * s->labels + j];
            }
}

/* The least number in a matrix among the pairs that a cut separates. */
static double least_of_pairs(const struct search *s, size_t c, const double *matrix) {
    const uint8_t *set = s->sets + c * s->labels;
    double least = INFINITY;
    for (size_t i = 0; i < s->labels; i++)
        for (size_t j = 0; j < s->labels && set[i]; j++)
            least = set[j] ? least : fmin(least, matrix[i * s->labels + j]);
    return least;
}

/* Give a cut this share of the length that the others leave it. */
static void lengthen(struct search *s, size_t c, double share, double *left) {
    const double more = share * fmax(0, least_of_pairs(s, c, left));
    s->lengths[c] += more;
    take_off(s, c, more, left);
}

static size_t size_of(const struct search *s, size_t c) {
    size_t size = 0;
    for (size_t i = 0; i < s->labels; i++)
        size += s->sets[c * s->labels + i];
    return size;
}

/* Smaller sets first: they separate the fewest pairs. Only half of what is left: other cuts may
 * need the rest more. */
static dcrf_status raise_in_turn(struct search *s, dcrf_error *error) {
    DCRF_SCOPED double *left = dcrf_allocate(s->labels * s->labels, sizeof *left);
    if (!left)
        return dcrf_fail_memory(error, "the cuts of a matrix");
    for (size_t k = 0; k < s->labels * s->labels; k++)
        left[k] = (double)s->matrix[k];
    for (size_t c = 0; c < s->count; c++)
        s->lengths[c] = 0;
    for (size_t size = 1; size < s->labels; size++)
        for (size_t c = 0; c < s->count; c++)
            if (size_of(s, c) == size)
                lengthen(s, c, 0.5, left);
    return DCRF_OK;
}

/* left = mu - d; returns whether d is below mu. */
static bool find_left(const struct search *s, double *left) {
    bool is_below = true;
    for (size_t k = 0; k < s->labels * s->labels; k++)
        left[k] = (double)s->matrix[k];
    for (size_t c = 0; c < s->count; c++)
        if (s->lengths[c] > 0)
            take_off(s, c, s->lengths[c], left);
    for (size_t k = 0; k < s->labels * s->labels; k++)
        is_below &= left[k] >= 0;
    return is_below;
}

/* Shorten the cuts between pairs that are too far apart, each as much as its worst pair demands. */
static void shorten(struct search *s, double *left) {
    for (size_t k = 0; k < s->labels * s->labels; k++) {
        const double mu = (double)s->matrix[k];
        left[k] = left[k] < 0 ? mu / (mu - left[k]) : 1; /* a factor */
    }
    for (size_t c = 0; c < s->count; c++)
        if (s->lengths[c] > 0)
            s->lengths[c] *= least_of_pairs(s, c, left);
    find_left(s, left);
}

/* Undo what rounding has done to the lengths: shorten them, then lengthen them, one by one. */
static dcrf_status fit(struct search *s, dcrf_error *error) {
    DCRF_SCOPED double *left = dcrf_allocate(s->labels * s->labels, sizeof *left);
    if (!left)
        return dcrf_fail_memory(error, "the cuts of a matrix");
    if (!find_left(s, left))
        shorten(s, left);
    for (size_t c = 0; c < s->count; c++)
        if (s->lengths[c] > 0)
            lengthen(s, c, 1, left);
    return DCRF_OK;
}

/* ---- below ---------------------------------------------------------------------------------- */

/* No cut may separate labels whose entry is zero. */
static void drop_forbidden(struct search *s) {
    for (size_t c = 0; c < s->count; c++) {
        const uint8_t *set = s->sets + c * s->labels;
        if (!(s->lengths[c] > NEGLIGIBLE * s->largest))
            s->lengths[c] = 0;
        for (size_t i = 0; i < s->labels && s->lengths[c] > 0; i++)
            for (size_t j = 0; j < i; j++)
                if (set[i] != set[j] && !(entry(s, i, j) > 0))
                    s->lengths[c] = 0;
    }
}

/* The factor that brings all distances below the matrix; 1 if they are. */
static double factor_below(const struct search *s, const double *distances) {
    double factor = 1;
    for (size_t i = 0; i < s->labels; i++)
        for (size_t j = 0; j < i; j++) {
            const double d = distances[i * s->labels + j], mu = entry(s, i, j);
            if (d > mu)
                factor = fmin(factor, mu / d * (1 - 0x1p-50));
        }
    return factor;
}

static dcrf_left_out compare(const struct search *s, const double *distances) {
    dcrf_left_out left_out = {0};
    for (size_t i = 0; i < s->labels; i++)
        for (size_t j = 0; j < i; j++) {
            const double mu = entry(s, i, j), part = mu - distances[i * s->labels + j];
            if (!(part > ROUNDING * mu))
                continue;
            left_out.distance = fmax(left_out.distance, part);
            left_out.fraction = fmax(left_out.fraction, part / mu);
            left_out.energy = left_out.gap = (double)NAN;
        }
    return left_out;
}

/* Shorten all lengths by one factor, until d <= mu holds as stored. */
static dcrf_status bring_below(struct search *s, struct dcrf_cuts *cuts, dcrf_left_out *left_out,
                               dcrf_error *error) {
    DCRF_SCOPED double *distances = dcrf_allocate(s->labels * s->labels, sizeof *distances);
    if (!distances)
        return dcrf_fail_memory(error, "the cuts of a matrix");
    for (double factor = 0; factor < 1;) {
        TRY(dcrf_cuts_distances(cuts, distances, error));
        factor = factor_below(s, distances);
        for (size_t c = 0; c < cuts->count && factor < 1; c++)
            cuts->lengths[c] *= factor;
    }
    *left_out = compare(s, distances);
    return DCRF_OK;
}

static dcrf_status find_lengths(struct search *s, dcrf_error *error) {
    if (s->labels <= ALL_CUTS) {
        list_all(s);
        return solve_program(s, error);
    }
    list_runs(s);
    if (are_runs_enough(s)) {
        drop_noise(s);
        return DCRF_OK;
    }
    return s->labels <= MOST_PROGRAM_LABELS ? solve_program(s, error) : raise_in_turn(s, error);
}

dcrf_status dcrf_cuts_below(struct dcrf_cuts **cuts, const float *matrix, size_t labels,
                            dcrf_left_out *left_out, dcrf_error *error) {
    struct search s = {.matrix = matrix, .labels = labels};
    *cuts = NULL;
    if (labels > MOST_GREEDY_LABELS)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "a matrix for %zu labels is not searched for cuts (at most %d); give the "
                         "cuts themselves",
                         labels, MOST_GREEDY_LABELS);
    for (size_t k = 0; k < labels * labels; k++)
        s.largest = fmax(s.largest, (double)matrix[k]);
    s.count = count_candidates(labels);
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    s.sets = dcrf_own_zero(&owned, s.count, labels);
    s.lengths = dcrf_own_zero(&owned, s.count, sizeof *s.lengths);
    if (owned.is_short)
        return dcrf_fail_memory(error, "cuts");
    TRY(find_lengths(&s, error));
    drop_forbidden(&s);
    TRY(fit(&s, error));
    TRY(dcrf_cuts_new(cuts, labels, s.count, s.sets, s.lengths, NULL, error));
    const dcrf_status status = bring_below(&s, *cuts, left_out, error);
    if (status < 0)
        dcrf_cuts_free(cuts);
    return status;
}
