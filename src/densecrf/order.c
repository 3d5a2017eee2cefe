/* The order of the variables inside the compatible mean field: squares of the picture.
 *
 * Variables near each other in a picture share the vertices of lattices. So a band, the variables
 * that an update works on while they are in the cache, is not a few lines of the picture but a
 * square of it: strips of some lines are walked column by column, to and fro, and cut into bands of
 * as many columns as they have lines. Within a band variables are in the order of the picture. What
 * the caller gives and gets is in the order of the picture always; unary energies, features and
 * rows are in this one.
 *
 * Segments are places whose variables follow each other in the picture, a line of a square: what is
 * copied between both orders is copied by segments.
 *
 * A grid of three axes is walked as its planes below each other, one of a single axis as it is. */
#include "core/memory.h"
#include "densecrf/densecrf.h"

/* Few labels have short rows, of which more fit in the cache. */
#define FEW_LABELS 4
#define STRIP_BITS_FEW 6
#define STRIP_BITS_MANY 5

/* Columns of a strip that are in one band, at a line: they follow each other, from `first` on. */
struct stretch {
    size_t first, columns;
};

/* The columns of a line whose places, `walked` by columns of so many lines, begin with column
 * `from` in the order of the walk. */
static struct stretch stretch_at(size_t width, size_t lines, size_t walked, size_t from,
                                 unsigned band_bits, bool is_back) {
    const size_t end = ((walked >> band_bits) + 1) << band_bits; /* of the band */
    const size_t fit = (end - walked + lines - 1) / lines;
    const size_t columns = fit < width - from ? fit : width - from;
    return (struct stretch){is_back ? width - from - columns : from, columns};
}

/* Walk through the picture. `next` is where the next variable of each band goes. Returns how many
 * stretches there are. */
static size_t walk(const dcrf_densecrf *crf, unsigned strip_bits, size_t *next) {
    const size_t width = crf->grid.size[0], height = crf->variables / width;
    const size_t strip = (size_t)1 << strip_bits;
    size_t stretches = 0;
    for (size_t y = 0; y < height; y++) {
        const size_t top = y - y % strip, lines = height - top < strip ? height - top : strip;
        const bool is_back = y / strip % 2;
        for (size_t from = 0; from < width;) {
            const size_t walked = top * width + from * lines + (y - top);
            const struct stretch stretch =
                stretch_at(width, lines, walked, from, 2 * strip_bits, is_back);
            uint32_t *to = crf->order + next[walked >> (2 * strip_bits)];
            for (size_t i = 0; i < stretch.columns; i++)
                to[i] = (uint32_t)(y * width + stretch.first + i);
            next[walked >> (2 * strip_bits)] += stretch.columns;
            from += stretch.columns;
            stretches++;
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
