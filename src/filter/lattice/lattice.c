/* The lattice operator: splat, blur along each axis, slice.
 *
 *   K~ = S^T B S,   S: variables -> vertices (barycentric weights),   B = B_d ... B_1 B_0
 *
 * On a lattice that has only the vertices touched by variables, the blurs along the axes do not
 * commute, so B is not symmetric; the reverse order is its transpose. The model's operator uses
 * their mean, (B + B^T) / 2: exactly symmetric, nonnegative, with the diagonal of B. */
#include "filter/lattice/lattice.h"

#include "core/error.h"
#include "core/memory.h"

/* Maximum number of blocks of channels processed together, and the size limit of their vertex rows.
 */
#define MOST_BLOCKS 8
#define TOGETHER_BYTES ((size_t)16 << 20)

/* ---- apply ---------------------------------------------------------------------------------- */

/* Blocks of channels that are filtered together, so that the rows of variables, of which each block
 * is a part, are read from memory once for all of them. */
struct blocks {
    struct dcrf_lattice_filter
        filter; /* for rows of variables; the widths are those of the blocks */
    dcrf_direction direction;
    size_t count;
    struct block {
        size_t channel, width;
        float *rows; /* of the vertices */
    } block[MOST_BLOCKS];
    struct dcrf_lattice_sums sums[MOST_BLOCKS];
    float *spare[DCRF_LATTICE_BUFFERS]; /* for the blur; rows of the first block's width */
    size_t spares;                      /* one more if both orders are blurred together */
};

/* Sums in memory where the copies are `copies` floats behind the rows of the vertices. */
static struct dcrf_lattice_sums sums_of(const struct dcrf_lattice_filter *filter, size_t width,
                                        float *rows, size_t copies) {
    return (struct dcrf_lattice_sums){.lattice = filter->lattice,
                                      .width = width,
                                      .is_alone = dcrf_pool_threads(filter->pool) == 1,
                                      .vertices = rows,
                                      .copies = rows + copies};
}

/* Take as many of the remaining channels, up to `padded`, as the size limit allows. */
static dcrf_status blocks_init(struct blocks *blocks, size_t channel, size_t padded,
                               dcrf_workspace *workspace, dcrf_error *error) {
    const struct dcrf_lattice *lattice = blocks->filter.lattice;
    const size_t rows = dcrf_lattice_rows(lattice), copies = dcrf_lattice_copies(lattice);
    size_t floats = 0; /* of a row, in all blocks */
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
    blocks->spares = DCRF_LATTICE_BUFFERS - 1;
    if (blocks->direction == DCRF_SYMMETRIC &&
        dcrf_lattice_is_whole(lattice, width, dcrf_workspace_threads(workspace)))
        blocks->spares++;
    const size_t most = floats + blocks->spares * width;
    if (rows + copies > SIZE_MAX / (most * sizeof(float)))
        return dcrf_fail_memory(error, "a lattice filter");
    float *memory = dcrf_workspace_slot(workspace, &dcrf_operator_slot,
                                        (rows + copies) * floats + rows * blocks->spares * width,
                                        sizeof *memory);
    if (!memory)
        return dcrf_fail_memory(error, "a lattice filter");
    for (size_t i = 0; i < blocks->spares; i++, memory += rows * width)
        blocks->spare[i] = memory;
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *block = &blocks->block[i];
        block->rows = memory;
        blocks->sums[i] = sums_of(&blocks->filter, block->width, memory, rows * block->width);
        memory += (rows + copies) * block->width;
    }
    return DCRF_OK;
}

static void splat_sectors(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct blocks *blocks = context;
    const struct dcrf_lattice_filter *filter = &blocks->filter;
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t step = lattice->runs.band_variables * filter->in_stride;
    for (size_t sector = begin; sector < end; sector++) {
        float *rows[MOST_BLOCKS];
        for (size_t i = 0; i < blocks->count; i++)
            rows[i] = dcrf_lattice_sums_begin(&blocks->sums[i], sector);
        for (size_t band = dcrf_lattice_sector_first(lattice, sector);
             band < dcrf_lattice_sector_first(lattice, sector + 1); band++)
            for (size_t i = 0; i < blocks->count; i++)
                dcrf_lattice_splat_band(lattice, band,
                                        filter->in + band * step + blocks->block[i].channel,
                                        filter->in_stride, blocks->block[i].width, rows[i]);
        for (size_t i = 0; i < blocks->count; i++)
            dcrf_lattice_sums_end(&blocks->sums[i], sector);
    }
}

static void splat_blocks(struct blocks *blocks) {
    dcrf_pool *pool = blocks->filter.pool;
    dcrf_lattice_sums_start(blocks->sums, blocks->count, pool);
    dcrf_parallel_for(pool, blocks->filter.lattice->runs.sectors.count, 1, splat_sectors, blocks);
    dcrf_lattice_sums_join(blocks->sums, blocks->count, pool);
}

/* Blur block by block. If the result is in a spare buffer, swap it with the block's rows. */
static void blur_blocks(struct blocks *blocks) {
    const struct dcrf_lattice_filter *filter = &blocks->filter;
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *block = &blocks->block[i];
        float *const buffer[DCRF_LATTICE_BUFFERS] = {block->rows, blocks->spare[0],
                                                     blocks->spare[1]};
        float *blurred =
            blocks->spares == DCRF_LATTICE_BUFFERS
                ? dcrf_lattice_blur_both(filter->lattice, filter->pool, block->width, buffer,
                                         blocks->spare[DCRF_LATTICE_BUFFERS - 1])
                : dcrf_lattice_blur_all(filter->lattice, filter->pool, block->width,
                                        blocks->direction, buffer);
        for (size_t k = 0; k < blocks->spares; k++)
            if (blocks->spare[k] == blurred)
                blocks->spare[k] = block->rows;
        block->rows = blurred;
    }
}

static void slice_sectors(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct blocks *blocks = context;
    const struct dcrf_lattice_filter *filter = &blocks->filter;
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t step = lattice->runs.band_variables * filter->out_stride;
    for (size_t sector = begin; sector < end; sector++) {
        float *rows[MOST_BLOCKS];
        for (size_t i = 0; i < blocks->count; i++) {
            const struct block *block = &blocks->block[i];
            rows[i] = dcrf_lattice_take(lattice, sector, block->width, block->rows,
                                        dcrf_lattice_sums_rows(&blocks->sums[i], sector));
        }
        for (size_t band = dcrf_lattice_sector_first(lattice, sector);
             band < dcrf_lattice_sector_first(lattice, sector + 1); band++)
            for (size_t i = 0; i < blocks->count; i++)
                dcrf_lattice_slice_band(lattice, band, rows[i], blocks->block[i].width,
                                        filter->factor, filter->accumulate,
                                        filter->out + band * step + blocks->block[i].channel,
                                        filter->out_stride);
    }
}

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)base;
    const float mean = application->direction == DCRF_SYMMETRIC ? 0.5f : 1.0f;
    const size_t padded = dcrf_padded(application->channels);
    struct blocks blocks = {.filter = {.lattice = lattice,
                                       .pool = dcrf_workspace_pool(workspace),
                                       .in = application->in,
                                       .in_stride = application->stride,
                                       .out = application->out,
                                       .out_stride = application->stride,
                                       .factor = application->factor * mean,
                                       .accumulate = application->accumulate},
                            .direction = application->direction};
    for (size_t channel = 0; channel < padded;) {
        const dcrf_status status = blocks_init(&blocks, channel, padded, workspace, error);
        if (status < 0)
            return status;
        splat_blocks(&blocks);
        blur_blocks(&blocks);
        if (!dcrf_parallel_while(workspace, lattice->runs.sectors.count, 1, slice_sectors, &blocks))
            return dcrf_fail_interrupted(workspace, DCRF_FILTERING, error);
        const struct block *last = &blocks.block[blocks.count - 1];
        channel = last->channel + last->width;
    }
    return DCRF_OK;
}

void dcrf_lattice_filter_sectors(const struct dcrf_lattice_filter *filter) {
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t width = filter->width;
    const size_t floats = dcrf_lines_of(dcrf_lattice_rows(lattice) * width);
    float *other = filter->scratch, *splat = other + floats;
    struct blocks blocks = {.filter = *filter, .count = 1, .block = {{.width = width}}};
    blocks.sums[0] = sums_of(filter, width, splat, floats);
    memset(other + lattice->vertices * width, 0, width * sizeof *other);
    splat_blocks(&blocks);
    blocks.block[0].rows = dcrf_lattice_blur(lattice, filter->pool, width, splat, true,
                                             lattice->corners, other, splat);
    dcrf_parallel_for(filter->pool, lattice->runs.sectors.count, 1, slice_sectors, &blocks);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static dcrf_status rescale(dcrf_operator *base, dcrf_workspace *workspace, const float *scale,
                           dcrf_error *error) {
    return dcrf_lattice_scale((struct dcrf_lattice *)base, dcrf_workspace_pool(workspace), scale,
                              scale, error);
}

void dcrf_lattice_free(dcrf_operator *base) {
    struct dcrf_lattice *lattice = (struct dcrf_lattice *)base;
    dcrf_release(lattice->neighbours);
    dcrf_release(lattice->layers.first);
    dcrf_lattice_runs_clear(&lattice->runs);
    dcrf_release(lattice->ring.run);
    dcrf_release(lattice);
}

const struct dcrf_operator_methods dcrf_lattice_methods = {
    .kind = DCRF_OPERATOR_LATTICE,
    .apply = apply,
    .ordered = dcrf_lattice_ordered,
    .apply_double = dcrf_lattice_apply_double,
    .ordered_roundings = dcrf_lattice_ordered_roundings,
    .diagonal = dcrf_lattice_diagonal,
    .calibrate = dcrf_lattice_calibrate,
    .rescale = rescale,
    .free = dcrf_lattice_free};
