/* One pass over all pairs when the operator is made: the row sums, and which pairs of tiles matter.
 *
 * Boxes say only how far apart two tiles are at least. The pass sees all kernel values, so it knows
 * how much each tile gives the rows of another at most; with that and the row sums, many more pairs
 * can be left out (exact_near.c has the rule).
 *
 * The row sums are the scales of the normalization, so they are better than floats: values that can
 * be above 2^-CORE are computed in double, the small rest in float. The error that is left is kept
 * with them. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/exact/exact.h"

#include <math.h>
#include <string.h>

#define CORE 15

struct measure {
    const struct dcrf_exact *op;
    double *sums, *rest; /* one a place: all, and the part in float */
    uint8_t *step;       /* of each pair of tiles: one a bit of the words */
};

/* 1 for every place that holds a variable. */
#define FILL_ONES(op, tile, ones)                                                                  \
    for (size_t k = 0; k < DCRF_TILE; k++)                                                         \
    (ones)[k] = (tile)*DCRF_TILE + k < (op)->base.variables

/* What tiles a and b give each other: sums[0] the rows of a, sums[1] those of b. */
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

/* Errors of floats in the rest r of a row, relative to the whole: values as in dsp/pairs.h, whose x
 * is ln(N / r) in the mean at most (exact.c), and a sum over a tile. */
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
    m.rest = dcrf_allocate_zero(places, sizeof *m.rest);
    m.step = dcrf_allocate(words, BLOCK_TILES * BLOCK_TILES);
    dcrf_status status = DCRF_OK;
    if (m.rest && m.step) {
        status = dcrf_exact_rounds(op, workspace, measure_blocks, &m, error);
        if (status == DCRF_OK) {
            op->row_sum_error = error_of_rest(op, m.sums, m.rest);
            status = dcrf_exact_refine(op, m.step, workspace, error);
        }
    } else {
        status = dcrf_fail_memory(error, "the tiles of an exact operator");
    }
    dcrf_release(m.rest);
    dcrf_release(m.step);
    return status;
}
