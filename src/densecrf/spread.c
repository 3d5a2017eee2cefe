/* Rows on the lattices of the compatible mean field, from one update to the next.
 *
 * An update slices its messages from the blurred lattices of the last q, and splats the new q
 * onto them band by band while its rows are in the cache. So every lattice has two sets of rows:
 * `blurred`, which are sliced, and `splat`, which are blurred when all bands are done; sectors of
 * bands work on copies of some of them (lattice_sectors.c). Labels come in blocks of at most
 * DCRF_DSP_WIDTH, each with its own rows, one block after the other. Lattices with a ring are not
 * stored here. */
#include "densecrf/densecrf.h"

#include <string.h>

const struct dcrf_slot dcrf_spread_slot = {"lattices of the compatible mean field"};

static bool has_rows(const struct dcrf_spread *spread, size_t term) {
    return !dcrf_densecrf_has_ring(&spread->crf->terms[term]);
}

static const struct dcrf_lattice *lattice_of(const struct dcrf_spread *spread, size_t term) {
    return dcrf_densecrf_lattice(&spread->crf->terms[term]);
}

/* The rows of a term: of the vertices, copies of all sectors, and copies taken by all threads. */
struct row_counts {
    size_t vertices, copies, taken;
};

static struct row_counts count_rows(const struct dcrf_spread *spread, size_t term) {
    const struct dcrf_lattice *lattice = lattice_of(spread, term);
    const size_t threads = dcrf_pool_threads(spread->pool);
    return (struct row_counts){dcrf_lattice_rows(lattice), dcrf_lattice_copies(lattice),
                               threads * dcrf_lattice_most_copies(lattice)};
}

bool dcrf_spread_init(struct dcrf_spread *spread, const dcrf_densecrf *crf,
                      dcrf_workspace *workspace, size_t most_stride) {
    size_t rows = 0;
    *spread = (struct dcrf_spread){.crf = crf, .pool = dcrf_workspace_pool(workspace)};
    for (size_t m = 0; m < crf->term_count; m++)
        if (has_rows(spread, m)) {
            const struct row_counts own = count_rows(spread, m);
            rows += 2 * own.vertices + own.copies + own.taken;
        }
    spread->memory = dcrf_workspace_slot(workspace, &dcrf_spread_slot, rows,
                                         most_stride * sizeof *spread->memory);
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
        const struct row_counts own = count_rows(spread, m);
        rows->blurred = memory;
        rows->splat = rows->blurred + own.vertices * stride;
        rows->copies = rows->splat + own.vertices * stride;
        rows->taken = rows->copies + own.copies * stride;
        memory = rows->taken + own.taken * stride;
    }
}

/* ---- splatting ------------------------------------------------------------------------------ */

/* The sums of the block of labels at `at`. */
static struct dcrf_lattice_sums sums_of(const struct dcrf_spread *spread, size_t term, size_t at) {
    const struct dcrf_spread_rows *rows = &spread->term[term];
    const struct row_counts own = count_rows(spread, term);
    return (struct dcrf_lattice_sums){.lattice = lattice_of(spread, term),
                                      .width = dcrf_spread_block_width(spread->width, at),
                                      .is_alone = dcrf_pool_threads(spread->pool) == 1,
                                      .vertices = rows->splat + own.vertices * at,
                                      .copies = rows->copies + own.copies * at};
}

/* All sums of the lattices without a ring, for some of the labels: at most one per term. Returns
 * their number. */
static size_t all_sums(const struct dcrf_spread *spread, size_t at,
                       struct dcrf_lattice_sums sums[DCRF_DENSECRF_MOST_TERMS]) {
    size_t count = 0;
    for (size_t m = 0; m < spread->crf->term_count; m++)
        if (has_rows(spread, m))
            sums[count++] = sums_of(spread, m, at);
    return count;
}

void dcrf_spread_start(const struct dcrf_spread *spread) {
    struct dcrf_lattice_sums sums[DCRF_DENSECRF_MOST_TERMS];
    for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH)
        dcrf_lattice_sums_start(sums, all_sums(spread, at, sums), spread->pool);
}

void dcrf_spread_begin(const struct dcrf_spread *spread, size_t sector) {
    struct dcrf_lattice_sums sums[DCRF_DENSECRF_MOST_TERMS];
    for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH)
        for (size_t i = all_sums(spread, at, sums); i-- > 0;)
            dcrf_lattice_sums_begin(&sums[i], sector);
}

void dcrf_spread_splat(const struct dcrf_spread *spread, size_t term, struct dcrf_spread_place at,
                       size_t band, const float *rows) {
    if (!has_rows(spread, term))
        return;
    for (size_t k = 0; k < spread->width; k += DCRF_DSP_WIDTH) {
        const struct dcrf_lattice_sums sums = sums_of(spread, term, k);
        dcrf_lattice_splat_band(sums.lattice, band, rows + k, spread->stride, sums.width,
                                dcrf_lattice_sums_rows(&sums, at.sector));
    }
}

void dcrf_spread_end(const struct dcrf_spread *spread, size_t sector) {
    struct dcrf_lattice_sums sums[DCRF_DENSECRF_MOST_TERMS];
    for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH)
        for (size_t i = all_sums(spread, at, sums); i-- > 0;)
            dcrf_lattice_sums_end(&sums[i], sector);
}

void dcrf_spread_join(const struct dcrf_spread *spread) {
    struct dcrf_lattice_sums sums[DCRF_DENSECRF_MOST_TERMS];
    for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH)
        dcrf_lattice_sums_join(sums, all_sums(spread, at, sums), spread->pool);
}

/* ---- slicing -------------------------------------------------------------------------------- */

static_assert(DCRF_DENSECRF_MOST_TERMS <= DCRF_LATTICE_TOGETHER, "all are blurred together");

void dcrf_spread_blur(struct dcrf_spread *spread) {
    for (size_t at = 0; at < spread->width; at += DCRF_DSP_WIDTH) {
        const size_t width = dcrf_spread_block_width(spread->width, at);
        struct dcrf_lattice_passes blurs[DCRF_DENSECRF_MOST_TERMS];
        size_t count = 0;
        for (size_t m = 0; m < spread->crf->term_count; m++) {
            if (!has_rows(spread, m))
                continue;
            const struct dcrf_spread_rows *rows = &spread->term[m];
            const struct dcrf_lattice *lattice = lattice_of(spread, m);
            const size_t first = dcrf_lattice_rows(lattice) * at;
            float *other = rows->blurred + first, *splat = rows->splat + first;
            /* Clear the row of missing neighbours; in `splat` it is already clear. */
            memset(other + lattice->vertices * width, 0, width * sizeof *other);
            blurs[count++] = (struct dcrf_lattice_passes){lattice, width, true, lattice->corners,
                                                          splat,   other, splat};
        }
        dcrf_lattice_blur_together(blurs, count, spread->pool);
    }
    for (size_t m = 0; m < spread->crf->term_count; m++) {
        if (!has_rows(spread, m))
            continue;
        struct dcrf_spread_rows *rows = &spread->term[m];
        if (lattice_of(spread, m)->corners % 2 == 0) { /* the result is in `splat` */
            float *kept = rows->blurred;
            rows->blurred = rows->splat;
            rows->splat = kept;
        }
    }
    spread->sliced_width = spread->width;
}

/* The rows to which the runs of a thread's sector refer, for the block of labels at `at`; `take`:
 * fill the copies. */
static float *sliced_rows(const struct dcrf_spread *spread, size_t term,
                          struct dcrf_spread_place place, size_t at, bool take) {
    const struct dcrf_spread_rows *rows = &spread->term[term];
    const struct dcrf_lattice *lattice = lattice_of(spread, term);
    float *vertices = rows->blurred + dcrf_lattice_rows(lattice) * at;
    float *taken =
        rows->taken + dcrf_lattice_most_copies(lattice) * (place.worker * spread->stride + at);
    if (take)
        dcrf_lattice_take(lattice, place.sector, dcrf_spread_block_width(spread->sliced_width, at),
                          vertices, taken);
    return lattice->runs.sectors.is_joint ? vertices : taken;
}

void dcrf_spread_take(const struct dcrf_spread *spread, struct dcrf_spread_place place) {
    for (size_t m = 0; m < spread->crf->term_count; m++)
        for (size_t at = 0; has_rows(spread, m) && at < spread->sliced_width; at += DCRF_DSP_WIDTH)
            sliced_rows(spread, m, place, at, true);
}

void dcrf_spread_slice(const struct dcrf_spread *spread, size_t term, struct dcrf_spread_place at,
                       size_t band, float factor, bool accumulate, float *rows) {
    for (size_t k = 0; k < spread->sliced_width; k += DCRF_DSP_WIDTH)
        dcrf_lattice_slice_band(lattice_of(spread, term), band,
                                sliced_rows(spread, term, at, k, false),
                                dcrf_spread_block_width(spread->sliced_width, k), factor,
                                accumulate, rows + k, spread->stride);
}
