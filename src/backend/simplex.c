/* The Euclidean projection onto a simplex (Michelot 1986).
 *
 *   argmin_y |y - v|^2  over  y >= 0, sum y = total   is   y = max(0, v - theta),
 *
 * where theta is the root of the convex, decreasing, piecewise linear function  sum_i max(0, v_i -
 * theta) - total. Newton's method from the left never overshoots: it drops entries until none is
 * left to drop, which takes a few sweeps and ends at the exact root. No entry of y exceeds the
 * total, so entries that far below the largest, usually most of them, can be left out from the
 * start. */
#include "backend/simplex.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

double dcrf_simplex_threshold(const float *values, size_t count, double total) {
    float largest = values[0];
    for (size_t i = 1; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    double sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const int is_near = (double)values[i] > (double)largest - total;
        kept += (size_t)is_near;
        sum += is_near ? (double)values[i] : 0;
    }
    if (kept == 0) { /* the total is negligible next to the values */
        for (size_t i = 0; i < count; i++)
            sum += (double)values[i];
        kept = count;
    }
    for (;;) {
        const double theta = (sum - total) / (double)kept;
        size_t above = 0;
        sum = 0;
        for (size_t i = 0; i < count; i++) {
            const int is_above = (double)values[i] > theta;
            above += (size_t)is_above;
            sum += is_above ? (double)values[i] : 0;
        }
        /* No entries to drop: the root. None above, or more than before, is rounding error, if the
         * total is negligible next to the values or the reverse. */
        if (above >= kept || above == 0)
            return theta;
        kept = above;
    }
}

/* ---- eight rows at a time --------------------------------------------------------------------
 *
 * The same sums in the same order, with a lane for each row. Vectors of two doubles: every
 * processor has them. */

#define LANES DCRF_SIMPLEX_ROWS
#define PAIRS (LANES / 2)
#define MOST_COLUMNS ((size_t)64)

typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_mask __attribute__((vector_size(16)));

struct lanes {
    pair of[PAIRS];
};

static struct lanes load(const double *values) {
    struct lanes lanes;
    memcpy(&lanes, values, sizeof lanes);
    return lanes;
}

static pair choose(pair_mask is_first, pair first, pair second) {
    return (pair)(((pair_mask)first & is_first) | ((pair_mask)second & ~is_first));
}

/* The largest entry of every row. */
static struct lanes largest_of(double columns[][LANES], size_t count) {
    struct lanes largest;
    for (size_t p = 0; p < PAIRS; p++)
        largest.of[p] = (pair){-(double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < count; i++) {
        const struct lanes values = load(columns[i]);
        for (size_t p = 0; p < PAIRS; p++)
            largest.of[p] = choose(values.of[p] > largest.of[p], values.of[p], largest.of[p]);
    }
    return largest;
}

/* The sums of the entries above theta, and their numbers. */
static struct lanes sum_above(double columns[][LANES], size_t count, struct lanes theta,
                              struct lanes *above) {
    struct lanes sum = {{{0}}};
    pair_mask number[PAIRS] = {{0}};
    for (size_t i = 0; i < count; i++) {
        const struct lanes values = load(columns[i]);
        for (size_t p = 0; p < PAIRS; p++) {
            const pair_mask is_above = values.of[p] > theta.of[p];
            sum.of[p] += (pair)((pair_mask)values.of[p] & is_above);
            number[p] -= is_above;
        }
    }
    for (size_t p = 0; p < PAIRS; p++)
        above->of[p] = __builtin_convertvector(number[p], pair);
    return sum;
}

/* Newton's method in every lane until the last is done. Lanes that start without entries, because
 * their total is negligible next to the values, end as NaN or infinite. */
static struct lanes find_roots(double columns[][LANES], size_t count, struct lanes total) {
    struct lanes theta = largest_of(columns, count), kept, above;
    for (size_t p = 0; p < PAIRS; p++)
        theta.of[p] -= total.of[p];
    struct lanes sum = sum_above(columns, count, theta, &kept);
    for (pair_mask is_done[PAIRS] = {{0}}, all = {0}; !(all[0] && all[1]);) {
        for (size_t p = 0; p < PAIRS; p++)
            theta.of[p] = choose(is_done[p], theta.of[p], (sum.of[p] - total.of[p]) / kept.of[p]);
        sum = sum_above(columns, count, theta, &above);
        all = (pair_mask){-1, -1};
        for (size_t p = 0; p < PAIRS; p++) {
            is_done[p] |= (above.of[p] >= kept.of[p]) | (above.of[p] == 0);
            all &= is_done[p];
        }
        kept = above;
    }
    return theta;
}

static double threshold_of(const float *row, size_t count, double total) {
    return total > 0 ? dcrf_simplex_threshold(row, count, total) : (double)INFINITY;
}

void dcrf_simplex_thresholds(const float *rows, size_t stride, size_t row_count, size_t count,
                             const double *totals, double *thetas) {
    if (count > MOST_COLUMNS || row_count < LANES) {
        for (size_t r = 0; r < row_count; r++)
            thetas[r] = threshold_of(rows + r * stride, count, totals[r]);
        return;
    }
    double columns[MOST_COLUMNS][LANES];
    for (size_t r = 0; r < LANES; r++)
        for (size_t i = 0; i < count; i++)
            columns[i][r] = (double)rows[r * stride + i];
    const struct lanes theta = find_roots(columns, count, load(totals));
    memcpy(thetas, &theta, sizeof theta);
    for (size_t r = 0; r < LANES; r++)
        if (!(totals[r] > 0 && isfinite(thetas[r])))
            thetas[r] = threshold_of(rows + r * stride, count, totals[r]);
}

/* ---- projections ---------------------------------------------------------------------------- */

static void lower(float *row, size_t count, double theta) {
    for (size_t i = 0; i < count; i++) {
        const double value = (double)row[i] - theta;
        row[i] = value > 0 ? (float)value : 0;
    }
}

void dcrf_simplex_project(float *row, size_t count) {
    lower(row, count, dcrf_simplex_threshold(row, count, 1));
}

void dcrf_simplex_project_rows(float *rows, size_t stride, size_t row_count, size_t count) {
    static const double one[LANES] = {1, 1, 1, 1, 1, 1, 1, 1};
    double thetas[LANES];
    for (size_t r = 0; r < row_count; r += LANES) {
        const size_t now = row_count - r < LANES ? row_count - r : LANES;
        dcrf_simplex_thresholds(rows + r * stride, stride, now, count, one, thetas);
        for (size_t k = 0; k < now; k++)
            lower(rows + (r + k) * stride, count, thetas[k]);
    }
}
