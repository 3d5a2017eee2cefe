/* The lattice operator: splat, blur along each axis, slice.
 *
 *   K~ = S^T B S,   S: variables -> vertices (barycentric weights),   B = B_d ... B_1 B_0
 *
 * On a lattice that holds only the vertices that variables touch, the blurs along the axes do not
 * commute, so B is not symmetric; the reverse order is its transpose. The model's operator is their
 * mean, (B + B^T) / 2: symmetric exactly, nonnegative, with the diagonal of B. The first pass of
 * one order and the last of the other cannot be shared, but both last passes are one. */
#include "filter/lattice/lattice.h"
#include "dsp/dsp.h"

#include "core/error.h"
#include "core/memory.h"

#include <string.h>

/* Rows a task takes. */
#define VERTEX_GRAIN 128
#define VARIABLE_GRAIN 1024
/* The same where blocks of channels take turns: their rows stay in the cache meanwhile. */
#define BLOCKS_GRAIN 512
/* Blocks that take turns: at most so many, and their rows of vertices take no more than this. */
#define MOST_BLOCKS 8
#define TOGETHER_BYTES ((size_t)16 << 20)
/* Rows of vertices that are found without asking for them ahead. */
#define NEAR_BYTES ((size_t)4 << 20)
/* Rows that a histogram is summed up in. */
#define TURNS 4
/* Buffers that a blur works in. */
#define BUFFERS 3

/* ---- the blur ------------------------------------------------------------------------------- */

static void blur_task(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    dcrf_dsp()->blur(context, begin, end);
}

struct blurrer {
    const struct dcrf_lattice *lattice;
    dcrf_pool *pool;
    size_t width;
    float *buffer[BUFFERS]; /* (vertices + 1) x width; row `vertices` is zero */
};

static float *blur_chain(const struct blurrer *blurrer, const float *in, bool upwards, size_t count,
                         float *one, float *other) {
    return dcrf_lattice_blur(blurrer->lattice, blurrer->pool, blurrer->width, in, upwards, count,
                             one, other);
}

/* Blur buffer[0] in one direction. Returns the buffer that holds the result, doubled where it is
 * the symmetric one. */
static float *blur_all(const struct blurrer *blurrer, dcrf_direction direction) {
    const size_t axes = blurrer->lattice->corners;
    const size_t count = blurrer->lattice->rounds * axes;
    float *const *buffer = blurrer->buffer;
    if (direction != DCRF_SYMMETRIC)
        return blur_chain(blurrer, buffer[0], direction == DCRF_FORWARD, count, buffer[1],
                          buffer[0]);
    /* All but the last axis in both orders, then both last axes in one pass. */
    float *up = blur_chain(blurrer, buffer[0], true, count - 1, buffer[1], buffer[2]);
    float *spare = up == buffer[1] ? buffer[2] : buffer[1];
    float *down = blur_chain(blurrer, buffer[0], false, count - 1, spare, buffer[0]);
    struct dcrf_blur blur = {.neighbour = {dcrf_lattice_neighbours(blurrer->lattice, axes - 1),
                                           dcrf_lattice_neighbours(blurrer->lattice, 0)},
                             .in = {up, down},
                             .out = down == spare ? buffer[0] : spare,
                             .width = blurrer->width,
                             .centre = DCRF_LATTICE_CENTRE,
                             .side = DCRF_LATTICE_SIDE};
    dcrf_parallel_for(blurrer->pool, blurrer->lattice->vertices, VERTEX_GRAIN, blur_task, &blur);
    return blur.out;
}

static dcrf_status blurrer_init(struct blurrer *blurrer, const struct dcrf_lattice *lattice,
                                dcrf_workspace *workspace, size_t width, dcrf_error *error) {
    const size_t rows = lattice->vertices + 1;
    float *memory =
        dcrf_workspace_slot(workspace, &dcrf_operator_slot, rows, BUFFERS * width * sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "a lattice filter");
    *blurrer = (struct blurrer){lattice, dcrf_workspace_pool(workspace), width, {NULL}};
    for (size_t i = 0; i < BUFFERS; i++) {
        blurrer->buffer[i] = memory + i * rows * width;
        memset(blurrer->buffer[i] + lattice->vertices * width, 0, width * sizeof *memory);
    }
    return DCRF_OK;
}

/* ---- apply ---------------------------------------------------------------------------------- */

/* Blocks of channels that go through a lattice together, so that the rows of variables, of which
 * each block is a part, come from memory once for all of them. */
struct blocks {
    const struct dcrf_lattice *lattice;
    dcrf_pool *pool;
    const struct dcrf_application *application;
    size_t count;
    struct block {
        size_t channel, width;
        float *rows; /* (vertices + 1) x width */
    } block[MOST_BLOCKS];
    float *spare[BUFFERS - 1]; /* for the blur: as many rows of the first block's width */
    bool is_near;
};

/* As many blocks as there are channels left, as long as their rows are few. */
static dcrf_status blocks_init(struct blocks *blocks, size_t channel, dcrf_workspace *workspace,
                               dcrf_error *error) {
    const size_t rows = blocks->lattice->vertices + 1;
    const size_t padded = dcrf_padded(blocks->application->channels);
    size_t floats = 0; /* of a vertex, in all blocks */
    blocks->count = 0;
    while (channel < padded && blocks->count < MOST_BLOCKS) {
        const size_t left = padded - channel;
        const size_t width = left < DCRF_DSP_WIDTH ? left : DCRF_DSP_WIDTH;
        if (blocks->count > 0 && rows * (floats + width) * sizeof(float) > TOGETHER_BYTES)
            break;
        blocks->block[blocks->count++] = (struct block){.channel = channel, .width = width};
        floats += width;
        channel += width;
    }
    const size_t width = blocks->block[0].width;
    float *memory = dcrf_workspace_slot(workspace, &dcrf_operator_slot, rows,
                                        (floats + (BUFFERS - 1) * width) * sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "a lattice filter");
    for (size_t i = 0; i < BUFFERS - 1; i++, memory += rows * width)
        blocks->spare[i] = memory;
    for (size_t i = 0; i < blocks->count; i++) {
        blocks->block[i].rows = memory;
        memory += rows * blocks->block[i].width;
    }
    blocks->is_near = rows * floats * sizeof *memory <= NEAR_BYTES;
    return DCRF_OK;
}

/* S in, variable by variable, whose rows come in a stream. */
static void scatter_blocks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct blocks *blocks = context;
    const struct dcrf_lattice *lattice = blocks->lattice;
    for (size_t i = 0; i < blocks->count; i++) {
        const struct block *block = &blocks->block[i];
        const struct dcrf_scatter scatter = {.entries = lattice->corners,
                                             .index = lattice->corner_vertex,
                                             .weight = lattice->corner_weight,
                                             .in = blocks->application->in + block->channel,
                                             .in_stride = blocks->application->stride,
                                             .out = block->rows,
                                             .width = block->width,
                                             .is_near = blocks->is_near};
        dcrf_dsp()->scatter(&scatter, begin, end);
    }
}

/* The same vertex by vertex. */
static void gather_blocks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct blocks *blocks = context;
    const struct dcrf_lattice *lattice = blocks->lattice;
    for (size_t i = 0; i < blocks->count; i++) {
        const struct block *block = &blocks->block[i];
        const struct dcrf_gather gather = {.first = lattice->first,
                                           .index = lattice->entry_variable,
                                           .weight = lattice->entry_weight,
                                           .in = blocks->application->in + block->channel,
                                           .in_stride = blocks->application->stride,
                                           .out = block->rows,
                                           .out_stride = block->width,
                                           .width = block->width,
                                           .factor = 1};
        dcrf_dsp()->gather(&gather, begin, end);
    }
}

/* One thread scatters, several gather, each for its own vertices. The entries of a vertex are in
 * the order of their variables, so that both make the same bits. */
static void splat_blocks(struct blocks *blocks) {
    const struct dcrf_lattice *lattice = blocks->lattice;
    if (dcrf_pool_threads(blocks->pool) > 1) {
        dcrf_parallel_for(blocks->pool, lattice->vertices, VERTEX_GRAIN, gather_blocks, blocks);
        return;
    }
    for (size_t i = 0; i < blocks->count; i++)
        memset(blocks->block[i].rows, 0,
               lattice->vertices * blocks->block[i].width * sizeof(float));
    dcrf_parallel_for(blocks->pool, lattice->base.variables,
                      blocks->count > 1 ? BLOCKS_GRAIN : lattice->base.variables, scatter_blocks,
                      blocks);
}

/* Each block in its turn; what a blur leaves in a spare buffer takes the place of the rows. */
static void blur_blocks(struct blocks *blocks) {
    const size_t vertices = blocks->lattice->vertices;
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *block = &blocks->block[i];
        struct blurrer blurrer = {blocks->lattice,
                                  blocks->pool,
                                  block->width,
                                  {block->rows, blocks->spare[0], blocks->spare[1]}};
        for (size_t k = 0; k < BUFFERS; k++)
            memset(blurrer.buffer[k] + vertices * block->width, 0, block->width * sizeof(float));
        float *blurred = blur_all(&blurrer, blocks->application->direction);
        for (size_t k = 0; k < BUFFERS - 1; k++)
            if (blocks->spare[k] == blurred)
                blocks->spare[k] = block->rows;
        block->rows = blurred;
    }
}

static void slice_blocks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct blocks *blocks = context;
    const struct dcrf_lattice *lattice = blocks->lattice;
    const struct dcrf_application *application = blocks->application;
    const float mean = application->direction == DCRF_SYMMETRIC ? 0.5f : 1.0f;
    for (size_t i = 0; i < blocks->count; i++) {
        const struct block *block = &blocks->block[i];
        const struct dcrf_gather slice = {.entries = lattice->corners,
                                          .index = lattice->corner_vertex,
                                          .weight = lattice->corner_weight,
                                          .in = block->rows,
                                          .in_stride = block->width,
                                          .out = application->out + block->channel,
                                          .out_stride = application->stride,
                                          .width = block->width,
                                          .factor = application->factor * mean,
                                          .accumulate = application->accumulate,
                                          .is_near = blocks->is_near};
        dcrf_dsp()->gather(&slice, begin, end);
    }
}

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    struct blocks blocks = {.lattice = (const struct dcrf_lattice *)base,
                            .pool = dcrf_workspace_pool(workspace),
                            .application = application};
    for (size_t channel = 0; channel < dcrf_padded(application->channels);) {
        const dcrf_status status = blocks_init(&blocks, channel, workspace, error);
        if (status < 0)
            return status;
        splat_blocks(&blocks);
        blur_blocks(&blocks);
        if (!dcrf_parallel_while(workspace, base->variables,
                                 blocks.count > 1 ? BLOCKS_GRAIN : VARIABLE_GRAIN, slice_blocks,
                                 &blocks))
            return dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
        const struct block *last = &blocks.block[blocks.count - 1];
        channel = last->channel + last->width;
    }
    return DCRF_OK;
}

/* ---- the ordered filter --------------------------------------------------------------------- */

struct histograms {
    const struct dcrf_lattice *lattice;
    const struct dcrf_ordered *ordered;
    float *splat;   /* the bins first .. first + width - 1 of every vertex */
    float *blurred; /* the same after the blur */
    size_t first, width;
    float *all; /* all bins of every vertex, `row` floats each; later F times them */
    size_t row;
};

static void splat_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    const struct dcrf_lattice *lattice = h->lattice;
    const uint8_t *bin = h->ordered->bin;
    const float *fraction = h->ordered->table ? h->ordered->fraction : NULL;
    for (size_t v = begin; v < end; v++) {
        /* Four rows in turn: variables that follow each other often fall into one bin, and would
         * wait for each other's addition. row[][0] takes what belongs to the block of bins below.
         * In double: a vertex may have thousands of entries, and their rounding would weigh on the
         * lower bound. */
        double row[TURNS][DCRF_DSP_WIDTH + 1] = {{0}};
        for (size_t e = lattice->first[v]; e < lattice->first[v + 1]; e++) {
            const size_t b = lattice->entry_variable[e];
            const float weight = lattice->entry_weight[e];
            const size_t at = (size_t)bin[b] + 1 - h->first; /* wraps below the block */
            const float upper = fraction ? fraction[b] * weight : 0;
            if (at <= h->width)
                row[e % TURNS][at] += (double)(weight - upper);
            if (fraction && at + 1 <= h->width)
                row[e % TURNS][at + 1] += (double)upper;
        }
        for (size_t i = 0; i < h->width; i++)
            h->splat[v * h->width + i] =
                (float)((row[0][i + 1] + row[1][i + 1]) + (row[2][i + 1] + row[3][i + 1]));
    }
}

static void collect_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    for (size_t v = begin; v < end; v++)
        memcpy(h->all + v * h->row + h->first, h->blurred + v * h->width,
               h->width * sizeof *h->all);
}

/* Replace the histogram of a vertex by what a variable in each of its bins sees: sum_k F(h, k)
 * histogram_k. For the sign that is (all above) - (all below). */
static void weigh_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    const size_t bins = h->ordered->bins;
    if (h->ordered->table) {
        const struct dcrf_histograms histograms = {bins, h->row, h->ordered->table, h->all};
        dcrf_dsp()->weigh(&histograms, begin, end);
        return;
    }
    for (size_t v = begin; v < end; v++) {
        float *row = h->all + v * h->row;
        float seen[DCRF_MAX_BINS];
        float below = 0, above = 0;
        for (size_t i = 0; i < bins; i++) {
            seen[i] = -below;
            below += row[i];
        }
        for (size_t i = bins; i-- > 0;) {
            seen[i] += above;
            above += row[i];
        }
        memcpy(row, seen, bins * sizeof *row);
    }
}

static void slice_histograms(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct histograms *h = context;
    const struct dcrf_lattice *lattice = h->lattice;
    for (size_t a = begin; a < end; a++) {
        const size_t bin = h->ordered->bin[a];
        const float fraction = h->ordered->table ? h->ordered->fraction[a] : 0;
        const size_t next = fraction > 0 ? bin + 1 : bin;
        float low = 0, high = 0;
        for (size_t k = 0; k < lattice->corners; k++) {
            const size_t e = a * lattice->corners + k;
            const float *row = h->all + lattice->corner_vertex[e] * h->row;
            low += lattice->corner_weight[e] * row[bin];
            high += lattice->corner_weight[e] * row[next];
        }
        h->ordered->out[a] = 0.5f * (low + fraction * (high - low));
    }
}

static dcrf_status ordered(const dcrf_operator *base, dcrf_workspace *workspace,
                           const struct dcrf_ordered *channel, dcrf_error *error) {
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)base;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    struct histograms h = {
        .lattice = lattice, .ordered = channel, .row = dcrf_bin_row(channel->bins)};
    /* Where all bins are one block, they stay where the blur leaves them. */
    const bool is_one_block = h.row <= DCRF_DSP_WIDTH;
    if (!is_one_block && !(h.all = dcrf_workspace_slot(workspace, &dcrf_histogram_slot,
                                                       lattice->vertices, h.row * sizeof *h.all)))
        return dcrf_fail_memory(error, "the ordered filter");
    for (h.first = 0; h.first < h.row; h.first += h.width) {
        const size_t left = h.row - h.first;
        struct blurrer blurrer;
        h.width = left < DCRF_DSP_WIDTH ? left : DCRF_DSP_WIDTH;
        const dcrf_status status = blurrer_init(&blurrer, lattice, workspace, h.width, error);
        if (status < 0)
            return status;
        h.splat = blurrer.buffer[0];
        if (!dcrf_parallel_while(workspace, lattice->vertices, VERTEX_GRAIN, splat_histograms, &h))
            return dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
        h.blurred = blur_all(&blurrer, DCRF_SYMMETRIC);
        if (is_one_block)
            h.all = h.blurred;
        else
            dcrf_parallel_for(pool, lattice->vertices, VERTEX_GRAIN, collect_histograms, &h);
    }
    dcrf_parallel_for(pool, lattice->vertices, VERTEX_GRAIN, weigh_histograms, &h);
    return dcrf_parallel_while(workspace, base->variables, VARIABLE_GRAIN, slice_histograms, &h)
               ? DCRF_OK
               : dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
}

/* Two for the fraction, one to float; two along each axis, and two more where both orders meet; a
 * product and its sum over the bins; a product and its sum over the corners; five between two
 * nodes. */
static size_t ordered_roundings(const dcrf_operator *base, size_t bins) {
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)base;
    const size_t corners = lattice->corners;
    return 3 + 2 * corners * lattice->rounds + 2 + bins + 1 + corners + 1 + 5;
}

/* ---- the rest ------------------------------------------------------------------------------- */

struct scaling {
    struct dcrf_lattice *lattice;
    const float *scale;
};

static void scale_corners(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct scaling *scaling = context;
    const size_t corners = scaling->lattice->corners;
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < corners; k++)
            scaling->lattice->corner_weight[a * corners + k] *= scaling->scale[a];
}

static void scale_entries(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct scaling *scaling = context;
    for (size_t e = begin; e < end; e++)
        scaling->lattice->entry_weight[e] *= scaling->scale[scaling->lattice->entry_variable[e]];
}

static dcrf_status rescale(dcrf_operator *base, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error) {
    (void)error;
    struct scaling scaling = {(struct dcrf_lattice *)base, scale};
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const size_t n = base->variables, grain = 8 * VARIABLE_GRAIN;
    dcrf_parallel_for(pool, n, grain, scale_corners, &scaling);
    dcrf_parallel_for(pool, n * scaling.lattice->corners, grain, scale_entries, &scaling);
    return DCRF_OK;
}

void dcrf_lattice_free(dcrf_operator *base) {
    struct dcrf_lattice *lattice = (struct dcrf_lattice *)base;
    dcrf_release(lattice->corner_vertex);
    dcrf_release(lattice->corner_weight);
    dcrf_release(lattice->first);
    dcrf_release(lattice->entry_variable);
    dcrf_release(lattice->entry_weight);
    dcrf_release(lattice->neighbours);
    dcrf_release(lattice->layers.first);
    dcrf_lattice_runs_clear(&lattice->runs);
    dcrf_release(lattice->ring.run);
    dcrf_release(lattice);
}

const struct dcrf_operator_methods dcrf_lattice_methods = {.kind = DCRF_OPERATOR_LATTICE,
                                                           .apply = apply,
                                                           .ordered = ordered,
                                                           .apply_double =
                                                               dcrf_lattice_apply_double,
                                                           .ordered_roundings = ordered_roundings,
                                                           .diagonal = dcrf_lattice_diagonal,
                                                           .calibrate = dcrf_lattice_calibrate,
                                                           .rescale = rescale,
                                                           .free = dcrf_lattice_free};
