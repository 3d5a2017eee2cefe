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
    const struct dcrf_lattice *lattice;
    dcrf_pool *pool;
    const struct dcrf_application *application;
    size_t count;
    struct block {
        size_t channel, width;
        float *rows; /* of the vertices */
    } block[MOST_BLOCKS];
    struct dcrf_lattice_sums sums[MOST_BLOCKS];
    float *spare[DCRF_LATTICE_BUFFERS]; /* for the blur; rows of the first block's width */
    size_t spares;                      /* one more if both orders are blurred together */
};

/* Take as many of the remaining channels as the size limit allows. */
static dcrf_status blocks_init(struct blocks *blocks, size_t channel, dcrf_workspace *workspace,
                               dcrf_error *error) {
    const struct dcrf_lattice *lattice = blocks->lattice;
    const size_t rows = dcrf_lattice_rows(lattice), copies = dcrf_lattice_copies(lattice);
    const size_t padded = dcrf_padded(blocks->application->channels);
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
    if (blocks->application->direction == DCRF_SYMMETRIC &&
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
        blocks->sums[i] =
            (struct dcrf_lattice_sums){.lattice = lattice,
                                       .width = block->width,
                                       .is_alone = dcrf_workspace_threads(workspace) == 1,
                                       .vertices = block->rows,
                                       .copies = block->rows + rows * block->width};
        memory += (rows + copies) * block->width;
    }
    return DCRF_OK;
}

static void splat_sectors(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct blocks *blocks = context;
    const struct dcrf_lattice *lattice = blocks->lattice;
    const struct dcrf_application *application = blocks->application;
    const size_t step = lattice->runs.band_variables * application->stride;
    for (size_t sector = begin; sector < end; sector++) {
        float *rows[MOST_BLOCKS];
        for (size_t i = 0; i < blocks->count; i++)
            rows[i] = dcrf_lattice_sums_begin(&blocks->sums[i], sector);
        for (size_t band = dcrf_lattice_sector_first(lattice, sector);
             band < dcrf_lattice_sector_first(lattice, sector + 1); band++)
            for (size_t i = 0; i < blocks->count; i++)
                dcrf_lattice_splat_band(lattice, band,
                                        application->in + band * step + blocks->block[i].channel,
                                        application->stride, blocks->block[i].width, rows[i]);
        for (size_t i = 0; i < blocks->count; i++)
            dcrf_lattice_sums_end(&blocks->sums[i], sector);
    }
}

static void splat_blocks(struct blocks *blocks) {
    dcrf_lattice_sums_start(blocks->sums, blocks->count, blocks->pool);
    dcrf_parallel_for(blocks->pool, blocks->lattice->runs.sectors.count, 1, splat_sectors, blocks);
    dcrf_lattice_sums_join(blocks->sums, blocks->count, blocks->pool);
}

/* Blur block by block. If the result is in a spare buffer, swap it with the block's rows. */
static void blur_blocks(struct blocks *blocks) {
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *block = &blocks->block[i];
        float *const buffer[DCRF_LATTICE_BUFFERS] = {block->rows, blocks->spare[0],
                                                     blocks->spare[1]};
        float *blurred =
            blocks->spares == DCRF_LATTICE_BUFFERS
                ? dcrf_lattice_blur_both(blocks->lattice, blocks->pool, block->width, buffer,
                                         blocks->spare[DCRF_LATTICE_BUFFERS - 1])
                : dcrf_lattice_blur_all(blocks->lattice, blocks->pool, block->width,
                                        blocks->application->direction, buffer);
        for (size_t k = 0; k < blocks->spares; k++)
            if (blocks->spare[k] == blurred)
                blocks->spare[k] = block->rows;
        block->rows = blurred;
    }
}

static void slice_sectors(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct blocks *blocks = context;
    const struct dcrf_lattice *lattice = blocks->lattice;
    const struct dcrf_application *application = blocks->application;
    const float mean = application->direction == DCRF_SYMMETRIC ? 0.5f : 1.0f;
    const size_t step = lattice->runs.band_variables * application->stride;
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
                                        application->factor * mean, application->accumulate,
                                        application->out + band * step + blocks->block[i].channel,
                                        application->stride);
    }
}

static dcrf_status apply(const dcrf_operator *base, dcrf_workspace *workspace,
                         const struct dcrf_application *application, dcrf_error *error) {
    const struct dcrf_lattice *lattice = (const struct dcrf_lattice *)base;
    struct blocks blocks = {
        .lattice = lattice, .pool = dcrf_workspace_pool(workspace), .application = application};
    for (size_t channel = 0; channel < dcrf_padded(application->channels);) {
        const dcrf_status status = blocks_init(&blocks, channel, workspace, error);
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
