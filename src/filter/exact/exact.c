/* The exact operator: its plan and the methods of the interface. */
#include "filter/exact/exact.h"

#include "core/error.h"

#include <math.h>
#include <string.h>

/* ---- methods -------------------------------------------------------------------------------- */

/* Products are summed over a tile, over a block, and then in double; the result is rounded. */
#define SUM_ROUNDINGS (DCRF_TILE + BLOCK_TILES + 2)

double dcrf_exact_value_roundings(const struct dcrf_exact *op, double exponent) {
    const struct dcrf_metric *metric = &op->metric;
    size_t largest = 0;
    for (size_t g = 0; g < metric->groups; g++)
        largest = metric->size[g] > largest ? metric->size[g] : largest;
    const double per_exponent =
        (double)(op->has_exact_squares ? metric->groups + 1 : largest + metric->groups + 3);
    /* |f - (float)f| = e changes x by at most 2 e sqrt(2 x) <= e (2 x + 1). */
    return DCRF_PAIR_ROUNDINGS + exponent * per_exponent +
           op->rounded_features * 0x1p24 * (2 * exponent + 1);
}

/* The effect of the errors of the kernel values on a row: sum_b K_ab (c + x_ab e), K_ab = exp(-x).
 * The sum of K x is at most R ln(N / R), R the sum of K, by Jensen's inequality for -K ln K. The
 * scales inherit the error of the row sums. No error exceeds twice the row sum, so capping the
 * count at MOST is safe even for features with a huge offset. */
#define MOST 0x1p30

static size_t roundings(const dcrf_operator *base) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    const double exponent = fmax(1, log((double)base->variables / op->least_row_sum));
    const double of_scales = op->is_normalized ? op->row_sum_error * 0x1p24 : 0;
    const double of_values = ceil(dcrf_exact_value_roundings(op, exponent) + of_scales);
    return (size_t)fmin(of_values, MOST) + SUM_ROUNDINGS;
}

/* Interpolating F between two nodes takes four roundings. */
static size_t ordered_roundings(const dcrf_operator *base, size_t bins, bool is_sign) {
    (void)is_sign;
    return roundings(base) + bins + 4;
}

/* The rounded y / epsilon is taken as exact (see struct dcrf_line); differences add one rounding.
 */
static size_t line_roundings(const dcrf_operator *base) {
    return roundings(base) + 1;
}

/* The error of values and sums in double, plus that of the scales. */
static double double_error(const dcrf_operator *base) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    return DCRF_EXACT_ERROR_DOUBLE + (op->is_normalized ? op->row_sum_error : 0);
}

static dcrf_status diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                            dcrf_error *error) {
    (void)workspace;
    (void)error;
    const struct dcrf_exact *op = dcrf_exact_of(base);
    for (size_t place = 0; place < base->variables; place++)
        out[op->order[place]] = (float)(op->scale[place] * op->scale[place]);
    return DCRF_OK;
}

static dcrf_status normalize(dcrf_operator *base, dcrf_workspace *workspace, dcrf_error *error) {
    (void)workspace;
    (void)error;
    struct dcrf_exact *op = (struct dcrf_exact *)base;
    op->is_normalized = true;
    for (size_t place = 0; place < base->variables; place++) {
        op->scale[place] = 1 / sqrt(op->row_sums[place]);
        op->scale_single[place] = (float)op->scale[place];
    }
    return DCRF_OK;
}

static void free_exact(dcrf_operator *base) {
    struct dcrf_exact *op = (struct dcrf_exact *)base;
    dcrf_disown(&op->owned);
    dcrf_release(op);
}

static const struct dcrf_operator_methods methods = {.kind = DCRF_OPERATOR_EXACT,
                                                     .apply = dcrf_exact_apply,
                                                     .ordered = dcrf_exact_ordered,
                                                     .line = dcrf_exact_line,
                                                     .apply_double = dcrf_exact_apply_double,
                                                     .line_double = dcrf_exact_line_double,
                                                     .disagreement = dcrf_exact_disagreement,
                                                     .ordered_roundings = ordered_roundings,
                                                     .line_roundings = line_roundings,
                                                     .double_error = double_error,
                                                     .left_out = dcrf_exact_left_out,
                                                     .part = dcrf_exact_part,
                                                     .diagonal = diagonal,
                                                     .normalize = normalize,
                                                     .free = free_exact};

/* ---- the plan ------------------------------------------------------------------------------- */

/* Permutation and scaling of the features: the operator's feature k is the caller's feature[k]
 * times unit[k]. */
struct arrangement {
    size_t feature[DCRF_MAX_FEATURES];
    double unit[DCRF_MAX_FEATURES]; /* a power of two, so that the product is exact */
    double weight[DCRF_MAX_FEATURES];
};

/* Features with the same sigma become a group. Features are scaled so that sigma is between 1 and
 * 2, so no square that matters overflows. */
static void arrange(const struct dcrf_features *features, struct dcrf_metric *metric,
                    struct arrangement *arrangement) {
    bool is_taken[DCRF_MAX_FEATURES] = {false};
    size_t count = 0;
    *metric = (struct dcrf_metric){.features = features->dimension};
    for (size_t i = 0; i < features->dimension; i++) {
        const double factor = dcrf_features_factor(features, i);
        if (is_taken[i])
            continue;
        const double unit = exp2(floor(log2(factor)));
        const double weight = factor / unit * (factor / unit) * (1 / (2 * log(2)));
        metric->weight[metric->groups] = weight;
        for (size_t k = i; k < features->dimension; k++)
            if (!is_taken[k] && dcrf_features_factor(features, k) == factor) {
                is_taken[k] = true;
                arrangement->feature[count] = k;
                arrangement->unit[count] = unit;
                arrangement->weight[count++] = weight;
                metric->size[metric->groups]++;
            }
        metric->groups++;
    }
}

/* Order the variables by a tree over their feature rows. */
static dcrf_status order(struct dcrf_exact *op, const struct dcrf_features *features,
                         dcrf_workspace *workspace, dcrf_error *error) {
    const size_t n = op->base.variables, d = op->metric.features;
    float *rows = dcrf_allocate(n, d * sizeof *rows);
    if (!rows)
        return dcrf_fail_memory(error, "an exact operator");
    for (size_t a = 0; a < n; a++)
        dcrf_features_row(features, a, rows + a * d);
    const dcrf_status status = dcrf_exact_order(rows, n, d, op->order, workspace, error);
    for (size_t place = n; place < op->tiles * DCRF_TILE; place++)
        op->order[place] = op->order[n - 1];
    dcrf_release(rows);
    return status;
}

/* Kernels depend on differences only, so float features are stored relative to the first
 * variable's: a common offset then costs no precision. Origins near the largest float are not
 * subtracted, to avoid overflow. */
#define LARGEST_ORIGIN 0x1p100

static void fill_planes(struct dcrf_exact *op, const struct dcrf_features *features,
                        const struct arrangement *arrangement) {
    const size_t d = op->metric.features;
    double rounded[DCRF_MAX_FEATURES] = {0}, largest[DCRF_MAX_FEATURES] = {0};
    bool is_whole = true;
    for (size_t k = 0; k < d; k++) {
        const double first = dcrf_features_value(features, 0, arrangement->feature[k]);
        const double origin = fabs(first * arrangement->unit[k]) < LARGEST_ORIGIN ? first : 0;
        for (size_t place = 0; place < op->tiles * DCRF_TILE; place++) {
            const size_t at = dcrf_exact_at(op, place, k);
            const double raw =
                dcrf_features_value(features, op->order[place], arrangement->feature[k]);
            const double relative = raw - origin, value = relative * arrangement->unit[k];
            op->features[at] = raw * arrangement->unit[k];
            op->features_single[at] = (float)value;
            rounded[k] =
                fmax(rounded[k], fabs(value - (double)(float)value) + 0x1p-53 * fabs(value));
            largest[k] = fmax(largest[k], fabs(relative));
            is_whole &= raw == floor(raw);
        }
    }
    double squared = 0, reach = 0;
    for (size_t k = 0; k < d; k++) {
        squared += rounded[k] * rounded[k] * arrangement->weight[k] * 2 * log(2);
        reach += 4 * largest[k] * largest[k];
    }
    op->rounded_features = sqrt(squared);
    op->has_exact_squares = is_whole && reach <= 0x1p24;
}

static void fill_boxes(struct dcrf_exact *op) {
    size_t k = 0;
    for (size_t g = 0; g < op->metric.groups; g++) {
        const double root = sqrt(op->metric.weight[g]);
        for (size_t last = k + op->metric.size[g]; k < last; k++)
            for (size_t t = 0; t < op->tiles; t++) {
                double low = INFINITY, high = -INFINITY;
                for (size_t place = t * DCRF_TILE; place < (t + 1) * DCRF_TILE; place++) {
                    low = fmin(low, op->features[dcrf_exact_at(op, place, k)]);
                    high = fmax(high, op->features[dcrf_exact_at(op, place, k)]);
                }
                op->box[2 * k * op->tiles + t] = low * root;
                op->box[(2 * k + 1) * op->tiles + t] = high * root;
            }
    }
}

dcrf_status dcrf_exact_measure_tiles(struct dcrf_exact *op, dcrf_workspace *workspace,
                                     dcrf_error *error) {
    fill_boxes(op);
    TRY(dcrf_exact_find_near(op, workspace, error));
    return dcrf_exact_measure(op, workspace, error);
}

dcrf_status dcrf_exact_allocate(struct dcrf_exact **out, size_t variables,
                                const struct dcrf_metric *metric, dcrf_error *error) {
    struct dcrf_exact *op = dcrf_allocate_zero(1, sizeof *op);
    *out = NULL;
    if (!op)
        return dcrf_fail_memory(error, "an exact operator");
    op->base.methods = &methods;
    op->base.variables = variables;
    op->metric = *metric;
    op->tiles = (variables + DCRF_TILE - 1) / DCRF_TILE;
    op->blocks = (op->tiles + BLOCK_TILES - 1) / BLOCK_TILES;
    const size_t d = metric->features, places = op->tiles * DCRF_TILE;
    op->order = dcrf_own(&op->owned, places, sizeof *op->order);
    op->features = dcrf_own(&op->owned, places, d * sizeof *op->features);
    op->features_single = dcrf_own(&op->owned, places, d * sizeof *op->features_single);
    op->scale = dcrf_own_zero(&op->owned, places, sizeof *op->scale);
    op->scale_single = dcrf_own_zero(&op->owned, places, sizeof *op->scale_single);
    op->row_sums = dcrf_own(&op->owned, places, sizeof *op->row_sums);
    op->box = dcrf_own(&op->owned, op->tiles, 2 * d * sizeof *op->box);
    op->base.bytes = sizeof *op + op->tiles * 2 * d * sizeof *op->box +
                     places * (sizeof *op->order + sizeof *op->row_sums +
                               (d + 1) * (sizeof(double) + sizeof(float)));
    if (op->owned.is_short) {
        free_exact(&op->base);
        return dcrf_fail_memory(error, "an exact operator");
    }
    *out = op;
    return DCRF_OK;
}

dcrf_status dcrf_exact_new(dcrf_operator **out, const struct dcrf_features *features,
                           dcrf_workspace *workspace, dcrf_error *error) {
    struct dcrf_metric metric;
    struct arrangement arrangement;
    struct dcrf_exact *op;
    *out = NULL;
    arrange(features, &metric, &arrangement);
    TRY(dcrf_exact_allocate(&op, features->variables, &metric, error));
    dcrf_status status = order(op, features, workspace, error);
    if (status == DCRF_OK) {
        fill_planes(op, features, &arrangement);
        for (size_t place = 0; place < features->variables; place++)
            op->scale[place] = op->scale_single[place] = 1;
        status = dcrf_exact_measure_tiles(op, workspace, error);
    }
    if (status < 0) {
        free_exact(&op->base);
        return status;
    }
    *out = &op->base;
    return DCRF_OK;
}
