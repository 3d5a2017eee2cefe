/* The order of the variables inside the compatible mean field: squares of the image.
 *
 * Variables near each other in an image share the vertices of lattices. So a band, the variables
 * that an update works on while they are in the cache, is a square of the image rather than a few
 * lines: the image is cut into panels, each panel into strips of some lines, which are walked
 * column by column in alternating directions and cut into bands of as many columns as there are
 * lines. Within a band, variables are in the order of the image. The caller's arrays are always in
 * the order of the image; unary energies, features and rows are in this one.
 *
 * A segment is a run of places whose variables are consecutive in the image, one line of a square:
 * copies between the two orders go by segments.
 *
 * A grid of three axes is treated as its planes stacked, one of a single axis as a single line. */
#include "core/memory.h"
#include "densecrf/densecrf.h"

/* With few labels rows are short, so more of them fit in the cache. */
#define FEW_LABELS 4
#define STRIP_BITS_FEW 6
#define STRIP_BITS_MANY 5

/* Panels such that sectors of bands (lattice_sectors.c) are about square, which shares fewer
 * vertices. */
static size_t panels_of(const dcrf_densecrf *crf) {
    const size_t width = crf->grid.size[0], height = crf->variables / width;
    size_t panels = 1;
    while (2 * panels <= crf->sectors &&
           width / panels > 2 * (height * panels / crf->sectors)) /* a sector: columns, lines */
        panels *= 2;
    return panels;
}

/* Consecutive columns of one line of a strip that are in the same band. */
struct stretch {
    size_t first, columns;
};

/* The stretch of a line that starts at column `from` in walking order, where `walked` is its place
 * in a walk by columns of `lines` lines. */
static struct stretch stretch_at(size_t width, size_t lines, size_t walked, size_t from,
                                 unsigned band_bits, bool is_back) {
    const size_t end = ((walked >> band_bits) + 1) << band_bits; /* of the band */
    const size_t fit = (end - walked + lines - 1) / lines;
    const size_t columns = fit < width - from ? fit : width - from;
    return (struct stretch){is_back ? width - from - columns : from, columns};
}

/* Fill crf->order by walking through the image. `next`: where the next variable of each band goes.
 * Returns the number of stretches. */
static size_t walk(const dcrf_densecrf *crf, unsigned strip_bits, size_t *next) {
    const size_t all = crf->grid.size[0], height = crf->variables / all;
    const size_t strip = (size_t)1 << strip_bits, panels = panels_of(crf);
    size_t stretches = 0;
    for (size_t panel = 0; panel < panels; panel++) {
        const size_t left = panel * all / panels, width = (panel + 1) * all / panels - left;
        for (size_t y = 0; y < height; y++) {
            const size_t top = y - y % strip, lines = height - top < strip ? height - top : strip;
            const bool is_back = (y / strip + panel) % 2;
            for (size_t from = 0; from < width;) {
                const size_t walked = left * height + top * width + from * lines + (y - top);
                const struct stretch stretch =
                    stretch_at(width, lines, walked, from, 2 * strip_bits, is_back);
                uint32_t *to = crf->order + next[walked >> (2 * strip_bits)];
                for (size_t i = 0; i < stretch.columns; i++)
                    to[i] = (uint32_t)(y * all + left + stretch.first + i);
                next[walked >> (2 * strip_bits)] += stretch.columns;
                from += stretch.columns;
                stretches++;
            }
        }
    }
    return stretches;
}

/* Write the first place of each segment and the first segment of each band. */
static void find_segments(const dcrf_densecrf *crf) {
    size_t count = 0;
    for (size_t band = 0; band < crf->bands; band++) {
        const size_t begin = band * crf->band;
        const size_t left = crf->variables - begin,
                     end = left < crf->band ? crf->variables : begin + crf->band;
        crf->band_segment[band] = count;
        crf->segment[count++] = (uint32_t)begin;
        for (size_t place = begin + 1; place < end; place++)
            if (crf->order[place] != crf->order[place - 1] + 1)
                crf->segment[count++] = (uint32_t)place;
    }
    crf->band_segment[crf->bands] = count;
    crf->segment[count] = (uint32_t)crf->variables;
}

bool dcrf_densecrf_order_new(dcrf_densecrf *crf) {
    const unsigned strip_bits = crf->labels <= FEW_LABELS ? STRIP_BITS_FEW : STRIP_BITS_MANY;
    crf->band = (size_t)1 << (2 * strip_bits);
    crf->bands = (crf->variables + crf->band - 1) / crf->band;
    crf->sectors = dcrf_lattice_sector_count(crf->variables, crf->bands);
    crf->order = dcrf_allocate(crf->variables, sizeof *crf->order);
    crf->band_segment = dcrf_allocate(crf->bands + 1, sizeof *crf->band_segment);
    if (!crf->order || !crf->band_segment)
        return false;
    for (size_t i = 0; i < crf->bands; i++)
        crf->band_segment[i] = i * crf->band;
    const size_t stretches =
        walk(crf, strip_bits, crf->band_segment); /* a segment has one or more */
    crf->segment = dcrf_allocate(stretches + 1, sizeof *crf->segment);
    if (!crf->segment)
        return false;
    find_segments(crf);
    return true;
}
