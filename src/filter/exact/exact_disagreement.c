/* sum_ab K_ab [x_a != x_b] of a labelling x, which is all that an energy needs from a kernel. There
 * are no per-variable sums, each pair is computed once, and pairs of tiles with a single common
 * label are skipped. */
#include "core/error.h"
#include "filter/exact/exact.h"

#include <string.h>

#define PACK_GRAIN 16
/* Marks a tile with several labels. */
#define MIXED UINT32_MAX

struct labels {
    const struct dcrf_exact *op;
    const uint16_t *label_of; /* one per variable */
    uint32_t *tile_label;
    float *single; /* one per place */
    double *wide;  /* one per place; NULL: sums are in float */
    double *sums;  /* one per block */
};

static void pack(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct labels *x = context;
    for (size_t t = begin; t < end; t++) {
        const size_t first = t * DCRF_TILE;
        x->tile_label[t] = x->label_of[x->op->order[first]];
        for (size_t place = first; place < first + DCRF_TILE; place++) {
            const uint16_t label = x->label_of[x->op->order[place]];
            if (x->wide)
                x->wide[place] = label;
            else
                x->single[place] = label;
            if (label != x->tile_label[t])
                x->tile_label[t] = MIXED;
        }
    }
}

/* Add the sum over pairs of tiles a and b, in one direction. */
static void add_tiles(const struct labels *x, size_t a, size_t b, double *sum) {
    const struct dcrf_exact *op = x->op;
    const size_t size = op->metric.features * DCRF_TILE, at = a * DCRF_TILE, to = b * DCRF_TILE;
    if (x->tile_label[a] == x->tile_label[b] && x->tile_label[a] != MIXED)
        return;
    if (x->wide)
        dcrf_dsp()->pairs_double.disagreement(&op->metric, op->features + a * size,
                                              op->features + b * size, op->scale + at,
                                              op->scale + to, x->wide + at, x->wide + to, sum);
    else
        dcrf_dsp()->pairs.disagreement(&op->metric, op->features_single + a * size,
                                       op->features_single + b * size, op->scale_single + at,
                                       op->scale_single + to, x->single + at, x->single + to, sum);
}

static void add_blocks(void *context, size_t i, size_t j, size_t worker) {
    (void)worker;
    const struct labels *x = context;
    const struct dcrf_exact_near *near = x->wide ? &x->op->near_double : &x->op->near;
    const uint64_t word = near->words[dcrf_exact_word(x->op, i, j)];
    double apart = 0, own = 0;
    for (uint64_t left = word; left != 0; left &= left - 1) {
        const size_t bit = (size_t)__builtin_ctzll(left);
        const size_t a = i * BLOCK_TILES + bit / BLOCK_TILES,
                     b = j * BLOCK_TILES + bit % BLOCK_TILES;
        add_tiles(x, a, b, a == b ? &own : &apart);
    }
    x->sums[i] += 2 * apart + own;
}

dcrf_status dcrf_exact_disagreement(const dcrf_operator *base, dcrf_workspace *workspace,
                                    const uint16_t *labels, bool in_double, double *sum,
                                    dcrf_error *error) {
    const struct dcrf_exact *op = dcrf_exact_of(base);
    const size_t places = op->tiles * DCRF_TILE;
    struct labels x = {.op = op, .label_of = labels};
    x.sums = dcrf_workspace_slot(workspace, &dcrf_operator_slot, places + op->blocks,
                                 2 * sizeof(double));
    if (!x.sums)
        return dcrf_fail_memory(error, "the energy of an exact operator");
    x.tile_label = (uint32_t *)(x.sums + op->blocks);
    x.wide = in_double ? x.sums + op->blocks + op->tiles : NULL;
    x.single = (float *)(x.sums + op->blocks + op->tiles);
    memset(x.sums, 0, op->blocks * sizeof *x.sums);
    dcrf_parallel_for(dcrf_workspace_pool(workspace), op->tiles, PACK_GRAIN, pack, &x);
    const dcrf_status status = dcrf_exact_rounds(op, workspace, add_blocks, &x, error);
    *sum = 0;
    for (size_t i = 0; i < op->blocks; i++)
        *sum += x.sums[i];
    return status;
}
