/* Which pairs of tiles are kept, and an upper bound on what is omitted.
 *
 * For the sums in double, this is decided by the tiles' bounding boxes: no kernel value between two
 * tiles is above 2^-d^2, d the distance of their boxes, or below 2^-D^2, D the largest distance
 * between their points. This gives a lower bound on the row sums of a tile, and an upper bound on
 * what another tile contributes to them. For the sums in float, it is decided by measured sums
 * (exact_measure.c).
 *
 * Either way, the upper bounds are quantized to steps of a quarter of a binary exponent, rounded to
 * the safe side; the limit of a tile is the first step from which on all tiles together stay below
 * a given fraction of its row sums. A pair is omitted if it is beyond the limits of both tiles, so
 * the rule is symmetric. */
#include "core/error.h"
#include "filter/exact/exact.h"

#include <math.h>
#include <string.h>

/* Quarter steps. Everything beyond the last step counts as the last. */
#define STEPS_PER_BIT 4
#define STEPS 255
#define SEARCH "looking for the pairs of an exact kernel that count"
/* Margin for rounding errors of the distances. */
#define SAFE 1e-10

static inline size_t step_of(double exponent) {
    const double step = exponent * STEPS_PER_BIT;
    return step < STEPS ? (size_t)step : STEPS;
}

static double value_at(size_t step) {
    return exp2(-(double)step / STEPS_PER_BIT);
}

/* The places of a tile that hold a variable. */
static size_t tile_size(const struct dcrf_exact *op, size_t tile) {
    const size_t left = op->base.variables - tile * DCRF_TILE;
    return left < DCRF_TILE ? left : DCRF_TILE;
}

/* The smallest and largest squared distances between a tile's box and those of the tiles begin ..
 * end - 1. */
static void distances(const struct dcrf_exact *op, size_t tile, size_t begin, size_t end,
                      double *nearest, double *farthest) {
    memset(nearest, 0, (end - begin) * sizeof *nearest);
    if (farthest)
        memset(farthest, 0, (end - begin) * sizeof *farthest);
    for (size_t f = 0; f < op->metric.features; f++) {
        const double *low = op->box + 2 * f * op->tiles, *high = low + op->tiles;
        const double own_low = low[tile], own_high = high[tile];
        for (size_t t = begin; t < end; t++) {
            const double above = low[t] - own_high, below = own_low - high[t];
            double gap = above > below ? above : below;
            gap = gap > 0 ? gap : 0;
            nearest[t - begin] += gap * gap;
        }
        for (size_t t = begin; t < end && farthest; t++) {
            const double up = high[t] - own_low, down = own_high - low[t];
            const double reach = up > down ? up : down;
            farthest[t - begin] += reach * reach;
        }
    }
    for (size_t t = 0; t < end - begin; t++)
        nearest[t] *= 1 - SAFE;
}

double dcrf_exact_nearest(const struct dcrf_exact *op, size_t one, size_t other) {
    double nearest;
    distances(op, one, other, other + 1, &nearest, NULL);
    return nearest;
}

struct near_context {
    struct dcrf_exact *op;
    double *distance; /* two rows of tiles for each worker */
    const double *scale_sums;
    double *left_out;
};

static uint16_t find_limit(const double *sum_at, double allowed) {
    size_t step = STEPS + 1;
    double sum = 0;
    while (step > 0 && sum + sum_at[step - 1] <= allowed)
        sum += sum_at[--step];
    return (uint16_t)step;
}

static void find_limits(void *context, size_t begin, size_t end, size_t worker) {
    const struct near_context *c = context;
    struct dcrf_exact *op = c->op;
    double *nearest = c->distance + worker * 2 * op->tiles, *farthest = nearest + op->tiles;
    for (size_t tile = begin; tile < end; tile++) {
        double sum_at[STEPS + 1] = {0}, count[STEPS + 1] = {0};
        distances(op, tile, 0, op->tiles, nearest, farthest);
        for (size_t t = 0; t < op->tiles; t++) {
            const double size = (double)tile_size(op, t);
            sum_at[step_of(nearest[t])] += size;
            count[step_of(farthest[t] * (1 + SAFE))] += size;
        }
        double row_sum = 0;
        for (size_t step = 0; step <= STEPS; step++) {
            sum_at[step] *= value_at(step);
            row_sum += step < STEPS ? count[step] * value_at(step + 1) : 0;
        }
        /* A row includes its diagonal, which is 1. */
        op->limit[tile] = find_limit(sum_at, DCRF_EXACT_LEFT_OUT_DOUBLE * fmax(row_sum, 1));
    }
}

static inline bool is_left_out(const uint16_t *limit, size_t one, size_t other, size_t step) {
    return step >= limit[one] && step >= limit[other];
}

static void find_words(void *context, size_t begin, size_t end, size_t worker) {
    const struct near_context *c = context;
    const struct dcrf_exact *op = c->op;
    double *nearest = c->distance + worker * 2 * op->tiles;
    for (size_t i = begin; i < end; i++)
        for (size_t k = 0; k < BLOCK_TILES && i * BLOCK_TILES + k < op->tiles; k++) {
            const size_t tile = i * BLOCK_TILES + k, first = i * BLOCK_TILES;
            distances(op, tile, first, op->tiles, nearest, NULL);
            for (size_t t = first; t < op->tiles; t++) {
                const size_t step = step_of(nearest[t - first]);
                const size_t word = dcrf_exact_word(op, i, t / BLOCK_TILES);
                const uint64_t bit = (uint64_t)1 << (k * BLOCK_TILES + t % BLOCK_TILES);
                if (t >= tile && !is_left_out(op->limit, tile, t, step))
                    op->near_double.words[word] |= bit;
            }
        }
}

static size_t count_pairs(const struct dcrf_exact *op, const struct dcrf_exact_near *near) {
    size_t count = 0;
    for (size_t word = 0; word < op->blocks * (op->blocks + 1) / 2; word++)
        count += (size_t)__builtin_popcountll(near->words[word]);
    return count;
}

dcrf_status dcrf_exact_find_near(struct dcrf_exact *op, dcrf_workspace *workspace,
                                 dcrf_error *error) {
    const size_t workers = dcrf_workspace_threads(workspace);
    const size_t words = op->blocks * (op->blocks + 1) / 2;
    struct near_context context = {.op = op};
    DCRF_SCOPED double *distance = dcrf_allocate(op->tiles, 2 * workers * sizeof *distance);
    context.distance = distance;
    op->limit = dcrf_own(&op->owned, op->tiles, sizeof *op->limit);
    op->near.words = dcrf_own_zero(&op->owned, words, sizeof(uint64_t));
    op->near_double.words = dcrf_own_zero(&op->owned, words, sizeof(uint64_t));
    op->base.bytes += op->tiles * sizeof *op->limit + 2 * words * sizeof(uint64_t);
    if (!distance || op->owned.is_short)
        return dcrf_fail_memory(error, "the tiles of an exact operator");
    if (!dcrf_parallel_while(workspace, op->tiles, BLOCK_TILES, find_limits, &context) ||
        !dcrf_parallel_while(workspace, op->blocks, 1, find_words, &context))
        return dcrf_fail_interrupted(workspace, SEARCH, error);
    op->near_double.pairs_of_tiles = count_pairs(op, &op->near_double);
    return DCRF_OK;
}

/* ---- by what was measured ------------------------------------------------------------------- */

uint8_t dcrf_exact_step(double sum) {
    const double step = sum > 0 ? floor(-STEPS_PER_BIT * log2(sum / DCRF_TILE)) : STEPS;
    return (uint8_t)(step < 0 ? 0 : step < STEPS ? step : STEPS);
}

/* A lower bound on the row sums of a tile, with a margin for the part summed in float. */
static double least_row_sum(const struct dcrf_exact *op, size_t tile) {
    double least = INFINITY;
    for (size_t k = 0; k < tile_size(op, tile); k++)
        least = fmin(least, op->row_sums[tile * DCRF_TILE + k]);
    return least * (1 - 0x1p-12);
}

/* A pair kept in double. */
struct pair_of_tiles {
    size_t one, other; /* one <= other */
    size_t word;
    uint64_t bit;
    uint8_t step;
};

static bool next_pair(const struct dcrf_exact *op, const uint8_t *steps, size_t i, size_t j,
                      size_t *at, struct pair_of_tiles *pair) {
    const size_t word = dcrf_exact_word(op, i, j);
    for (; *at < BLOCK_TILES * BLOCK_TILES; (*at)++) {
        pair->one = i * BLOCK_TILES + *at / BLOCK_TILES;
        pair->other = j * BLOCK_TILES + *at % BLOCK_TILES;
        if (!(op->near_double.words[word] >> *at & 1) || pair->one > pair->other)
            continue;
        pair->word = word;
        pair->bit = (uint64_t)1 << *at;
        pair->step = steps[word * BLOCK_TILES * BLOCK_TILES + (*at)++];
        return true;
    }
    return false;
}

dcrf_status dcrf_exact_refine(struct dcrf_exact *op, const uint8_t *steps,
                              dcrf_workspace *workspace, dcrf_error *error) {
    bool goes_on = true;
    DCRF_SCOPED double *sum_at = dcrf_allocate_zero(op->tiles, (STEPS + 1) * sizeof *sum_at);
    DCRF_SCOPED uint16_t *limit = dcrf_allocate(op->tiles, sizeof *limit);
    if (!sum_at || !limit)
        return dcrf_fail_memory(error, "the tiles of an exact operator");
    struct pair_of_tiles pair;
    for (size_t i = 0; i < op->blocks && goes_on;
         i++, goes_on = !dcrf_workspace_is_interrupted(workspace))
        for (size_t j = i; j < op->blocks; j++)
            for (size_t at = 0; next_pair(op, steps, i, j, &at, &pair);) {
                const double most = DCRF_TILE * value_at(pair.step);
                sum_at[pair.one * (STEPS + 1) + pair.step] += most;
                sum_at[pair.other * (STEPS + 1) + pair.step] += most;
            }
    op->least_row_sum = INFINITY;
    for (size_t t = 0; t < op->tiles; t++) {
        const double row_sum = least_row_sum(op, t);
        op->least_row_sum = fmin(op->least_row_sum, row_sum);
        limit[t] = find_limit(sum_at + t * (STEPS + 1), DCRF_EXACT_LEFT_OUT * row_sum);
    }
    for (size_t i = 0; i < op->blocks && goes_on;
         i++, goes_on = !dcrf_workspace_is_interrupted(workspace))
        for (size_t j = i; j < op->blocks; j++)
            for (size_t at = 0; next_pair(op, steps, i, j, &at, &pair);)
                if (!is_left_out(limit, pair.one, pair.other, pair.step))
                    op->near.words[pair.word] |= pair.bit;
    op->near.pairs_of_tiles = count_pairs(op, &op->near);
    return goes_on ? DCRF_OK : dcrf_fail_interrupted(workspace, SEARCH, error);
}

/* ---- what is left out ----------------------------------------------------------------------- */

static void sum_left_out(void *context, size_t begin, size_t end, size_t worker) {
    const struct near_context *c = context;
    const struct dcrf_exact *op = c->op;
    double *nearest = c->distance + worker * 2 * op->tiles;
    for (size_t tile = begin; tile < end; tile++) {
        double sum = 0;
        distances(op, tile, 0, op->tiles, nearest, NULL);
        for (size_t t = 0; t < op->tiles; t++) {
            const size_t step = step_of(nearest[t]);
            if (is_left_out(op->limit, tile, t, step))
                sum += value_at(step) * c->scale_sums[t];
        }
        for (size_t k = 0; k < tile_size(op, tile); k++) {
            const size_t place = tile * DCRF_TILE + k;
            c->left_out[op->order[place]] = sum * op->scale[place] * (1 + SAFE);
        }
    }
}

/* Computed from the boxes. */
static dcrf_status left_out_in_double(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                      double *left_out, dcrf_error *error) {
    const size_t workers = dcrf_workspace_threads(workspace);
    DCRF_SCOPED double *memory = dcrf_allocate(op->tiles, (1 + 2 * workers) * sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "what an exact operator leaves out");
    for (size_t t = 0; t < op->tiles; t++) {
        memory[t] = 0;
        for (size_t k = 0; k < DCRF_TILE; k++)
            memory[t] += op->scale[t * DCRF_TILE + k];
    }
    struct near_context context = {.op = (struct dcrf_exact *)op,
                                   .distance = memory + op->tiles,
                                   .scale_sums = memory,
                                   .left_out = left_out};
    return dcrf_parallel_while(workspace, op->tiles, BLOCK_TILES, sum_left_out, &context)
               ? DCRF_OK
               : dcrf_fail_interrupted(workspace, SEARCH, error);
}

/* Adds the pairs kept in double only, summed in float. Values of at least 2^-126 have a bounded
 * number of roundings (MOST_EXPONENT); NOTHING covers smaller ones. */
#define MOST_EXPONENT 88
#define NOTHING 0x1p-120
dcrf_status dcrf_exact_left_out(const dcrf_operator *base, dcrf_workspace *workspace,
                                bool in_double, double *left_out, dcrf_error *error) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    TRY(left_out_in_double(op, workspace, left_out, error));
    if (in_double)
        return DCRF_OK;
    DCRF_SCOPED double *sums = dcrf_allocate(op->base.variables, sizeof *sums);
    if (!sums)
        return dcrf_fail_memory(error, "what an exact operator leaves out");
    const double roundings =
        dcrf_exact_value_roundings(op, MOST_EXPONENT) + DCRF_TILE + BLOCK_TILES + 4;
    TRY(dcrf_exact_sum_difference(op, workspace, sums, error));
    for (size_t a = 0; a < op->base.variables; a++)
        left_out[a] += sums[a] * (1 + roundings * 0x1p-24) + (double)op->base.variables * NOTHING;
    return DCRF_OK;
}

void dcrf_exact_keep_all(dcrf_operator *base) {
    struct dcrf_exact *op = (struct dcrf_exact *)base;
    for (size_t t = 0; t < op->tiles; t++)
        op->limit[t] = STEPS + 1;
    for (size_t i = 0; i < op->tiles; i++)
        for (size_t j = i; j < op->tiles; j++) {
            const size_t word = dcrf_exact_word(op, i / BLOCK_TILES, j / BLOCK_TILES);
            op->near.words[word] |= (uint64_t)1
                                    << (i % BLOCK_TILES * BLOCK_TILES + j % BLOCK_TILES);
            op->near_double.words[word] = op->near.words[word];
        }
}
