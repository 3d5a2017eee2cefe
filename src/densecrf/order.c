/* The order of the variables inside the compatible mean field: squares of the image.
 *
 * Variables near each other in an image share the vertices of lattices. So a band, the variables
 * that an update works on while they are in the cache, is a square of the image rather than a few
 * lines: the image is cut into panels, each panel into strips of some lines, which are walked
 * column by column in alternating directions and cut into bands of about as many columns as there
 * are lines. Within a band, variables are in the order of the image. The caller's arrays are always
 * in the order of the image; unary energies, features and rows are in this one.
 *
 * A segment is a run of places whose variables are consecutive in the image, one line of a square:
 * copies between the two orders go by segments.
 *
 * A grid of three axes is treated as its planes stacked, one of a single axis as a single line. */
#include "core/owned.h"
#include "densecrf/densecrf.h"

/* Columns of a band, and about as many lines. With few labels rows are short, so more of them fit
 * in the cache. A segment of whole blocks of eight is copied fastest (dcrf_densecrf_unary_at). */
#define FEW_LABELS 4
#define COLUMNS_FEW 64
#define COLUMNS_MANY 32

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
                                 size_t band, bool is_back) {
    const size_t end = (walked / band + 1) * band; /* of the band */
    const size_t fit = (end - walked + lines - 1) / lines;
    const size_t columns = fit < width - from ? fit : width - from;
    return (struct stretch){is_back ? width - from - columns : from, columns};
}

/* The next segment of each band, and its next place. */
struct filling {
    const dcrf_densecrf *crf;
    size_t *segment, *place;
};

static void count_segment(const struct filling *filling, size_t band, size_t variable,
                          size_t count) {
    (void)variable, (void)count;
    filling->segment[band]++;
}

/* Write a segment and its part of the order: `count` variables from `variable` on. */
static void fill_segment(const struct filling *filling, size_t band, size_t variable,
                         size_t count) {
    uint32_t *to = filling->crf->order + filling->place[band];
    filling->crf->segment[filling->segment[band]++] = (uint32_t)filling->place[band];
    for (size_t i = 0; i < count; i++)
        to[i] = (uint32_t)(variable + i);
    filling->place[band] += count;
}

/* Visit all stretches, line by line, panel by panel. */
static void walk(const struct filling *filling, size_t strip,
                 void (*visit)(const struct filling *filling, size_t band, size_t variable,
                               size_t count)) {
    const dcrf_densecrf *crf = filling->crf;
    const size_t all = crf->grid.size[0], height = crf->variables / all, panels = panels_of(crf);
    for (size_t panel = 0; panel < panels; panel++) {
        const size_t left = panel * all / panels, width = (panel + 1) * all / panels - left;
        for (size_t y = 0; y < height; y++) {
            const size_t top = y - y % strip, lines = height - top < strip ? height - top : strip;
            const bool is_back = (y / strip + panel) % 2;
            for (size_t from = 0; from < width;) {
                const size_t walked = left * height + top * width + from * lines + (y - top);
                const struct stretch stretch =
                    stretch_at(width, lines, walked, from, crf->band, is_back);
                visit(filling, walked / crf->band, y * all + left + stretch.first, stretch.columns);
                from += stretch.columns;
            }
        }
    }
}

bool dcrf_densecrf_order_new(dcrf_densecrf *crf) {
    const size_t columns = crf->labels <= FEW_LABELS ? COLUMNS_FEW : COLUMNS_MANY;
    /* The lines of a strip are such that all sectors have as many bands. */
    const size_t even = dcrf_even_grain(crf->variables, columns * columns);
    const size_t strip = (even + columns - 1) / columns;
    crf->band = strip * columns;
    crf->bands = (crf->variables + crf->band - 1) / crf->band;
    crf->sectors = dcrf_lattice_sector_count(crf->variables, crf->bands);
    crf->order = dcrf_allocate(crf->variables, sizeof *crf->order);
    crf->band_segment = dcrf_allocate(crf->bands + 1, sizeof *crf->band_segment);
    DCRF_SCOPED size_t *next = dcrf_allocate_zero(crf->bands, 2 * sizeof *next);
    if (!crf->order || !crf->band_segment || !next)
        return false;
    const struct filling filling = {crf, next, next + crf->bands};
    walk(&filling, strip, count_segment);
    size_t count = 0;
    for (size_t band = 0; band < crf->bands; band++) {
        crf->band_segment[band] = count;
        count += filling.segment[band];
        filling.segment[band] = crf->band_segment[band];
        filling.place[band] = band * crf->band;
    }
    crf->band_segment[crf->bands] = count;
    crf->segment = dcrf_allocate(count + 1, sizeof *crf->segment);
    if (!crf->segment)
        return false;
    walk(&filling, strip, fill_segment);
    crf->segment[count] = (uint32_t)crf->variables;
    return true;
}
