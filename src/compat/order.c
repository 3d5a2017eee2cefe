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
#include "compat/densecrf.h"
#include "core/memory.h"

/* Few labels have short rows, of which more fit in the cache. */
#define FEW_LABELS 4
#define STRIP_BITS_FEW 6
#define STRIP_BITS_MANY 5

/* `next` is where the next variable of each band goes. */
static void walk(const dcrf_densecrf *crf, unsigned strip_bits, size_t *next) {
    const size_t width = crf->grid.size[0], height = crf->variables / width;
    const size_t strip = (size_t)1 << strip_bits;
    uint32_t a = 0;
    for (size_t y = 0; y < height; y++) {
        const size_t top = y - y % strip, lines = height - top < strip ? height - top : strip;
        const bool is_back = y / strip % 2;
        for (size_t x = 0; x < width; x++) {
            const size_t column = is_back ? width - 1 - x : x;
            const size_t walked = top * width + column * lines + (y - top);
            crf->order[next[walked >> (2 * strip_bits)]++] = a++;
        }
    }
}

/* Write the first place of each segment, where there is memory for it, and the first segment of
 * each band. Returns how many there are. */
static size_t find_segments(const dcrf_densecrf *crf, uint32_t *segment, size_t *band_segment) {
    size_t count = 0;
    for (size_t band = 0; band < crf->bands; band++) {
        const size_t begin = band * crf->band;
        const size_t left = crf->variables - begin,
                     end = left < crf->band ? crf->variables : begin + crf->band;
        band_segment[band] = count;
        for (size_t place = begin; place < end; place++)
            if (place == begin || crf->order[place] != crf->order[place - 1] + 1) {
                if (segment)
                    segment[count] = (uint32_t)place;
                count++;
            }
    }
    return count;
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
    walk(crf, strip_bits, crf->band_segment);
    const size_t count = find_segments(crf, NULL, crf->band_segment);
    crf->segment = dcrf_allocate(count + 1, sizeof *crf->segment);
    if (!crf->segment)
        return false;
    find_segments(crf, crf->segment, crf->band_segment);
    crf->band_segment[crf->bands] = count;
    crf->segment[count] = (uint32_t)crf->variables;
    return true;
}
