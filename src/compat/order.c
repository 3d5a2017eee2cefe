/* The order of the variables inside the compatible mean field: squares of the picture.
 *
 * Variables near each other in a picture share the vertices of lattices. So a band, the variables
 * that an update works on while they are in the cache, is not a few lines of the picture but a
 * square of it: strips of DCRF_DENSECRF_STRIP lines are walked column by column, to and fro, and
 * cut every `band` variables. Within a band variables are in the order of the picture. What the
 * caller gives and gets is in the order of the picture always; unary energies, features and rows
 * are in this one.
 *
 * Segments are places whose variables follow each other in the picture, a line of a square: what is
 * copied between both orders is copied by segments.
 *
 * A grid of three axes is walked as its planes below each other, one of a single axis as it is. */
#include "compat/densecrf.h"
#include "core/memory.h"

/* Few labels have short rows, of which more fit in the cache. */
#define FEW_LABELS 4
#define BAND_FEW 4096
#define BAND_MANY 1024
#define STRIP_FEW 64
#define STRIP_MANY 32

static void walk(dcrf_densecrf *crf, size_t *next) {
    const size_t n = crf->variables, width = crf->grid.size[0], height = n / width;
    const size_t strip = crf->labels <= FEW_LABELS ? STRIP_FEW : STRIP_MANY;
    for (size_t a = 0; a < n; a++) {
        const size_t y = a / width, x = a % width, top = y - y % strip;
        const size_t lines = height - top < strip ? height - top : strip;
        const size_t column = y / strip % 2 ? width - 1 - x : x;
        const size_t walked = top * width + column * lines + (y - top);
        crf->order[next[walked / crf->band]++] = (uint32_t)a;
    }
}

static bool begins_segment(const dcrf_densecrf *crf, size_t place) {
    return place % crf->band == 0 || crf->order[place] != crf->order[place - 1] + 1;
}

bool dcrf_densecrf_order_new(dcrf_densecrf *crf) {
    const size_t n = crf->variables;
    crf->band = crf->labels <= FEW_LABELS ? BAND_FEW : BAND_MANY;
    crf->bands = (n + crf->band - 1) / crf->band;
    crf->order = dcrf_allocate(n, sizeof *crf->order);
    crf->band_segment = dcrf_allocate(crf->bands + 1, sizeof *crf->band_segment);
    if (!crf->order || !crf->band_segment)
        return false;
    for (size_t i = 0; i < crf->bands; i++)
        crf->band_segment[i] = i * crf->band; /* the next place of each band */
    walk(crf, crf->band_segment);
    size_t count = 0;
    for (size_t place = 0; place < n; place++)
        count += begins_segment(crf, place);
    crf->segment = dcrf_allocate(count + 1, sizeof *crf->segment);
    if (!crf->segment)
        return false;
    count = 0;
    for (size_t place = 0; place < n; place++) {
        if (place % crf->band == 0)
            crf->band_segment[place / crf->band] = count;
        if (begins_segment(crf, place))
            crf->segment[count++] = (uint32_t)place;
    }
    crf->band_segment[crf->bands] = count;
    crf->segment[count] = (uint32_t)n;
    return true;
}
