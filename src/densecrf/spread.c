/* Rows on the lattices of the compatible mean field, from one update to the next.
 *
 * An update slices its messages from the blurred lattices of the last q, and splats the new q
 * onto them band by band while its rows are in the cache. So every lattice has two sets of rows:
 * `blurred`, which are sliced, and `splat`, which are blurred when all bands are done. Labels come
 * in blocks of at most DCRF_DSP_WIDTH, each with its own rows, one block after the other. Lattices
 * with a ring are not stored here. */
#include "densecrf/densecrf.h"

#include <string.h>

const struct dcrf_slot dcrf_spread_slot = {"lattices of the compatible mean field"};

static bool has_rows(const struct dcrf_spread *spread, size_t term) {
    return !dcrf_densecrf_has_ring(&spread->crf->terms[term]);
}

static const struct dcrf_lattice *lattice_of(const struct dcrf_spread *spread, size_t term) {
    return dcrf_densecrf_lattice(&spread->crf->terms[term]);
}

static size_t floats_of(const struct dcrf_spread *spread, size_t term, size_t stride) {
    return dcrf_lattice_rows(lattice_of(spread, term)) * stride;
}

bool dcrf_spread_init(struct dcrf_spread *spread, const dcrf_densecrf *crf,
                      dcrf_workspace *workspace, size_t most_stride) {
    size_t floats = 0;
    *spread = (struct dcrf_spread){.crf = crf, .pool = dcrf_workspace_pool(workspace)};
    for (size_t m = 0; m < crf->term_count; m++)
        if (has_rows(spread, m))
            floats += 2 * floats_of(spread, m, most_stride);
    spread->memory =
        dcrf_workspace_slot(workspace, &dcrf_spread_slot, floats, sizeof *spread->memory);
    return spread->memory;
}

void dcrf_spread_layout(struct dcrf_spread *spread, size_t stride, size_t width) {
    float *memory = spread->memory;
    spread->stride = stride;
    spread->width = spread->sliced_width = width;
    for (size_t m = 0; m < spread->crf->term_count; m++) {
        if (!has_rows(spread, m))
            continue;
        struct dcrf_spread_rows *rows = &spread->term[m];
        const size_t floats = floats_of(spread, m, stride);
        rows->blurred = memory;
        rows->splat = memory + floats;
        memory += 2 * floats;
    }
}

void dcrf_spread_clear(const struct dcrf_spread *spread) {
    for (size_t m = 0; m < spread->crf->term_count; m++)
        if (has_rows(spread, m)) /* all blocks at once */
            dcrf_lattice_clear(lattice_of(spread, m), spread->pool, spread->width,
                               spread->term[m].splat);
}

void dcrf_spread_splat(const struct dcrf_spread *spread, size_t term, size_t band,
                       const float *rows) {
    if (!has_rows(spread, term))
        return;
    for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH)
        dcrf_lattice_splat_band(lattice_of(spread, term), band, rows + at, spread->stride,
                                dcrf_spread_block_width(spread->width, at),
                                dcrf_spread_block(spread, term, spread->term[term].splat, at));
}

size_t dcrf_spread_tasks(const struct dcrf_spread *spread, size_t term) {
    return has_rows(spread, term) ? dcrf_lattice_splat_tasks(lattice_of(spread, term)) : 0;
}

void dcrf_spread_splat_task(const struct dcrf_spread *spread, size_t term, size_t task,
                            const float *rows) {
    for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH)
        dcrf_lattice_splat_task(lattice_of(spread, term), task, rows + at, spread->stride,
                                dcrf_spread_block_width(spread->width, at),
                                dcrf_spread_block(spread, term, spread->term[term].splat, at));
}

void dcrf_spread_blur(struct dcrf_spread *spread) {
    for (size_t m = 0; m < spread->crf->term_count; m++) {
        if (!has_rows(spread, m))
            continue;
        struct dcrf_spread_rows *rows = &spread->term[m];
        const struct dcrf_lattice *lattice = lattice_of(spread, m);
        bool is_swapped = false;
        for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH) {
            const size_t width = dcrf_spread_block_width(spread->width, at);
            float *other = dcrf_spread_block(spread, m, rows->blurred, at);
            float *splat = dcrf_spread_block(spread, m, rows->splat, at), *blurred;
            dcrf_lattice_join(lattice, spread->pool, width, splat);
            /* Clear the row of missing neighbours; in `splat` it is already clear. */
            memset(other + lattice->vertices * width, 0, width * sizeof *other);
            blurred = dcrf_lattice_blur(lattice, spread->pool, width, splat, true, lattice->corners,
                                        other, splat);
            dcrf_lattice_repeat(lattice, spread->pool, width, blurred);
            is_swapped = blurred == splat;
        }
        if (is_swapped) { /* the same for all blocks: it depends on the number of axes */
            float *kept = rows->blurred;
            rows->blurred = rows->splat;
            rows->splat = kept;
        }
    }
    spread->sliced_width = spread->width;
}

void dcrf_spread_slice(const struct dcrf_spread *spread, size_t term, size_t band, float factor,
                       bool accumulate, float *rows) {
    for (size_t at = 0; at < spread->sliced_width; at += DCRF_DSP_WIDTH)
        dcrf_lattice_slice_band(lattice_of(spread, term), band,
                                dcrf_spread_block(spread, term, spread->term[term].blurred, at),
                                dcrf_spread_block_width(spread->sliced_width, at), factor,
                                accumulate, rows + at, spread->stride);
}
