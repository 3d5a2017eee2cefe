/* One pass over all pairs at construction: the row sums, and which pairs of tiles matter.
 *
 * Boxes give only a lower bound on the distance of two tiles. This pass sees the kernel values
 * themselves, so it knows the most that a tile contributes to any row of another; with that and the
 * row sums, many more pairs can be omitted (rule: exact_near.c).
 *
 * The row sums determine the scales of the normalization, so they need more than float precision:
 * tiles whose values can exceed 2^-CORE are summed in double, the small rest in float. A bound on
 * the remaining error is stored with them. */
#include "core/error.h"
#include "filter/exact/exact.h"

#include <math.h>
#include <string.h>

#define CORE 15

struct measure {
    const struct dcrf_exact *op;
    double *sums, *rest; /* one per place: the total, and the part summed in float */
    uint8_t *step;       /* one per pair of tiles, i.e. per bit of the words */
};

/* 1 for every place that holds a variable. */
#define FILL_ONES(op, tile, ones)                                                                  \
    for (size_t k = 0; k < DCRF_TILE; k++)                                                         \
    (ones)[k] = (tile)*DCRF_TILE + k < (op)->base.variables

/* The contributions of tiles a and b to each other: sums[0] for the rows of a, sums[1] for those of
 * b. */
static void sum_in_double(const struct dcrf_exact *op, size_t a, size_t b,
                          double sums[2][DCRF_TILE]) {
    const size_t size = op->metric.features * DCRF_TILE;
    double ones[2][DCRF_TILE];
    FILL_ONES(op, a, ones[0]);
    FILL_ONES(op, b, ones[1]);
    dcrf_dsp()->pairs_double.sums(&op->metric, op->features + a * size, op->features + b * size,
                                  ones[0], ones[1], sums[0], sums[1]);
}

static void sum_in_float(const struct dcrf_exact *op, size_t a, size_t b,
                         double sums[2][DCRF_TILE]) {
    const size_t size = op->metric.features * DCRF_TILE;
    float ones[2][DCRF_TILE], part[2][DCRF_TILE];
    FILL_ONES(op, a, ones[0]);
    FILL_ONES(op, b, ones[1]);
    dcrf_dsp()->pairs.sums(&op->metric, op->features_single + a * size,
                           op->features_single + b * size, ones[0], ones[1], part[0], part[1]);
    for (size_t side = 0; side < 2; side++)
        for (size_t k = 0; k < DCRF_TILE; k++)
            sums[side][k] = (double)part[side][k];
}

static void measure_blocks(void *context, size_t i, size_t j, size_t worker) {
    (void)worker;
    const struct measure *m = context;
    const struct dcrf_exact *op = m->op;
    const size_t index = dcrf_exact_word(op, i, j);
    const uint64_t word = op->near_double.words[index];
    for (size_t bit = 0; bit < BLOCK_TILES * BLOCK_TILES; bit++) {
        const size_t tile[2] = {i * BLOCK_TILES + bit / BLOCK_TILES,
                                j * BLOCK_TILES + bit % BLOCK_TILES};
        if (!(word >> bit & 1))
            continue;
        const bool is_core = dcrf_exact_nearest(op, tile[0], tile[1]) < CORE;
        double sums[2][DCRF_TILE] = {{0}}, largest = 0;
        (is_core ? sum_in_double : sum_in_float)(op, tile[0], tile[1], sums);
        for (size_t side = 0; side < (tile[0] == tile[1] ? 1 : 2); side++) {
            double *all = m->sums + tile[side] * DCRF_TILE;
            double *rest = m->rest + tile[side] * DCRF_TILE;
            for (size_t k = 0; k < DCRF_TILE; k++) {
                all[k] += sums[side][k];
                largest = sums[side][k] > largest ? sums[side][k] : largest;
            }
            for (size_t k = 0; k < DCRF_TILE && !is_core; k++)
                rest[k] += sums[side][k];
        }
        m->step[index * BLOCK_TILES * BLOCK_TILES + bit] = dcrf_exact_step(largest);
    }
}

/* Float error in the rest r of a row, relative to the row sum: that of the values (dsp/pairs.h),
 * whose mean exponent x is at most ln(N / r) (exact.c), and that of a sum over a tile. */
static double error_of_rest(const struct dcrf_exact *op, const double *sums, const double *rest) {
    double worst = 0;
    for (size_t place = 0; place < op->base.variables; place++) {
        const double exponent = log((double)op->base.variables / fmax(rest[place], 1e-30));
        const double roundings = dcrf_exact_value_roundings(op, exponent) + DCRF_TILE + 1;
        worst = fmax(worst, rest[place] * roundings / sums[place]);
    }
    return worst * 0x1p-24 + DCRF_EXACT_ERROR_DOUBLE + DCRF_EXACT_LEFT_OUT_DOUBLE;
}

dcrf_status dcrf_exact_measure(struct dcrf_exact *op, dcrf_workspace *workspace,
                               dcrf_error *error) {
    const size_t places = op->tiles * DCRF_TILE, words = op->blocks * (op->blocks + 1) / 2;
    struct measure m = {.op = op, .sums = op->row_sums};
    memset(op->row_sums, 0, places * sizeof *op->row_sums);
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    m.rest = dcrf_own_zero(&owned, places, sizeof *m.rest);
    m.step = dcrf_own(&owned, words, BLOCK_TILES * BLOCK_TILES);
    if (owned.is_short)
        return dcrf_fail_memory(error, "the tiles of an exact operator");
    TRY(dcrf_exact_rounds(op, workspace, measure_blocks, &m, error));
    op->row_sum_error = error_of_rest(op, m.sums, m.rest);
    return dcrf_exact_refine(op, m.step, workspace, error);
}
