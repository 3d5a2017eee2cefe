/* Which pairs of tiles count, and how much is left out at most.
 *
 * No kernel value between two tiles is above 2^-d^2, d the distance of their boxes, and none below
 * 2^-D^2, D the largest distance of two of their points. Both are sorted into steps of a quarter of
 * the exponent, rounded to the safe side. So the row sums of a tile have a lower bound, and the
 * sum over the tiles beyond a step an upper one; the limit of a tile is the first step beyond which
 * all tiles together stay below a given part of its row sums. A pair is left out where it is beyond
 * the limits of both, so that what is left out is the same seen from either side. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/exact.h"

#include <math.h>
#include <string.h>

/* What may be left out, of every row sum. */
#define MOST_LEFT_OUT 0x1p-22
#define MOST_LEFT_OUT_DOUBLE 0x1p-44

/* Steps of a quarter. All that is beyond the last is counted as if it were there. */
#define STEPS_PER_BIT 4
#define STEPS 255
/* For the rounding of the distances. */
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

/* The squared distances of a tile's box to those of the tiles begin .. end - 1. */
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

struct near_context {
    struct dcrf_exact *op;
    double *row_sums; /* one a tile: lower bounds */
    double *distance; /* two rows of tiles for each worker */
    const double *scale_sums;
    const uint16_t *limit;
    double *left_out;
};

static uint16_t find_limit(const double *mass, double allowed) {
    size_t step = STEPS + 1;
    double sum = 0;
    while (step > 0 && sum + mass[step - 1] <= allowed)
        sum += mass[--step];
    return (uint16_t)step;
}

static void find_limits(void *context, size_t begin, size_t end, size_t worker) {
    const struct near_context *c = context;
    struct dcrf_exact *op = c->op;
    double *nearest = c->distance + worker * 2 * op->tiles, *farthest = nearest + op->tiles;
    for (size_t tile = begin; tile < end; tile++) {
        double mass[STEPS + 1] = {0}, count[STEPS + 1] = {0};
        distances(op, tile, 0, op->tiles, nearest, farthest);
        for (size_t t = 0; t < op->tiles; t++) {
            const double size = (double)tile_size(op, t);
            mass[step_of(nearest[t])] += size;
            count[step_of(farthest[t] * (1 + SAFE))] += size;
        }
        double row_sum = 0;
        for (size_t step = 0; step <= STEPS; step++) {
            mass[step] *= value_at(step);
            row_sum += step < STEPS ? count[step] * value_at(step + 1) : 0;
        }
        /* A row holds its own diagonal. */
        c->row_sums[tile] = row_sum = row_sum > 1 ? row_sum : 1;
        op->limit[tile] = find_limit(mass, MOST_LEFT_OUT * row_sum);
        op->limit_double[tile] = find_limit(mass, MOST_LEFT_OUT_DOUBLE * row_sum);
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
                if (!is_left_out(op->limit, tile, t, step))
                    op->near.words[word] |= bit;
                if (!is_left_out(op->limit_double, tile, t, step))
                    op->near_double.words[word] |= bit;
            }
        }
}

/* Pairs of two tiles; those of a block with itself stand there twice. */
static size_t count_pairs(const struct dcrf_exact *op, const struct dcrf_exact_near *near) {
    size_t count = 0;
    for (size_t i = 0; i < op->blocks; i++)
        for (size_t j = i; j < op->blocks; j++) {
            const size_t bits =
                (size_t)__builtin_popcountll(near->words[dcrf_exact_word(op, i, j)]);
            count += i < j ? bits : (bits + BLOCK_TILES) / 2;
        }
    return count;
}

dcrf_status dcrf_exact_find_near(struct dcrf_exact *op, dcrf_workspace *workspace,
                                 dcrf_error *error) {
    const size_t workers = dcrf_workspace_threads(workspace);
    const size_t words = op->blocks * (op->blocks + 1) / 2;
    struct near_context context = {.op = op};
    context.row_sums = dcrf_allocate(op->tiles, sizeof(double));
    context.distance = dcrf_allocate(op->tiles, 2 * workers * sizeof(double));
    op->limit = dcrf_allocate(op->tiles, sizeof(uint16_t));
    op->limit_double = dcrf_allocate(op->tiles, sizeof(uint16_t));
    op->near.words = dcrf_allocate_zero(words, sizeof(uint64_t));
    op->near_double.words = dcrf_allocate_zero(words, sizeof(uint64_t));
    op->base.bytes += 2 * (op->tiles * sizeof(uint16_t) + words * sizeof(uint64_t));
    dcrf_status status = DCRF_OK;
    if (context.row_sums && context.distance && op->limit && op->limit_double && op->near.words &&
        op->near_double.words) {
        dcrf_pool *pool = dcrf_workspace_pool(workspace);
        dcrf_parallel_for(pool, op->tiles, BLOCK_TILES, find_limits, &context);
        dcrf_parallel_for(pool, op->blocks, 1, find_words, &context);
        op->least_row_sum = INFINITY;
        for (size_t t = 0; t < op->tiles; t++)
            op->least_row_sum = fmin(op->least_row_sum, context.row_sums[t]);
        op->near.pairs_of_tiles = count_pairs(op, &op->near);
        op->near_double.pairs_of_tiles = count_pairs(op, &op->near_double);
    } else {
        status = dcrf_fail_memory(error, "the tiles of an exact operator");
    }
    dcrf_release(context.row_sums);
    dcrf_release(context.distance);
    return status;
}

static void sum_left_out(void *context, size_t begin, size_t end, size_t worker) {
    const struct near_context *c = context;
    const struct dcrf_exact *op = c->op;
    double *nearest = c->distance + worker * 2 * op->tiles;
    for (size_t tile = begin; tile < end; tile++) {
        double sum = 0;
        distances(op, tile, 0, op->tiles, nearest, NULL);
        for (size_t t = 0; t < op->tiles; t++) {
            const size_t step = step_of(nearest[t]);
            if (is_left_out(c->limit, tile, t, step))
                sum += value_at(step) * c->scale_sums[t];
        }
        for (size_t k = 0; k < tile_size(op, tile); k++) {
            const size_t place = tile * DCRF_TILE + k;
            c->left_out[op->order[place]] = sum * op->scale[place] * (1 + SAFE);
        }
    }
}

dcrf_status dcrf_exact_left_out(const struct dcrf_exact *op, dcrf_workspace *workspace,
                                bool in_double, double *left_out, dcrf_error *error) {
    const size_t workers = dcrf_workspace_threads(workspace);
    double *memory = dcrf_allocate(op->tiles, (1 + 2 * workers) * sizeof *memory);
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
                                   .limit = in_double ? op->limit_double : op->limit,
                                   .left_out = left_out};
    dcrf_parallel_for(dcrf_workspace_pool(workspace), op->tiles, BLOCK_TILES, sum_left_out,
                      &context);
    dcrf_release(memory);
    return DCRF_OK;
}

void dcrf_exact_keep_all(dcrf_operator *base) {
    struct dcrf_exact *op = (struct dcrf_exact *)base;
    for (size_t t = 0; t < op->tiles; t++)
        op->limit[t] = op->limit_double[t] = STEPS + 1;
    for (size_t i = 0; i < op->tiles; i++)
        for (size_t j = i / BLOCK_TILES * BLOCK_TILES; j < op->tiles; j++) {
            const size_t word = dcrf_exact_word(op, i / BLOCK_TILES, j / BLOCK_TILES);
            op->near.words[word] |= (uint64_t)1
                                    << (i % BLOCK_TILES * BLOCK_TILES + j % BLOCK_TILES);
            op->near_double.words[word] = op->near.words[word];
        }
}
