/* The orientation is tag 274 of the first directory of a TIFF structure. JPEG has that structure
 * in an APP1 segment, PNG in an eXIf chunk, WebP in an EXIF chunk, and a TIFF file is one. If
 * anything on the way there is broken, the picture counts as upright: the decoders report what
 * is wrong with a file. */
#include "io/exif.h"

#include <string.h>

enum {
    TAG_ORIENTATION = 274,
    TAG_PIXEL_SCALE = 33550,
    TAG_TRANSFORMATION = 34264,
    TAG_GEO_KEYS = 34735,
    TYPE_SHORT = 3,
    ENTRY_BYTES = 12
};

/* Bytes of a file, and the byte order of its numbers. */
typedef struct part {
    const uint8_t *data;
    size_t size;
    bool little_endian;
} part;

/* A number of 2 or 4 bytes; 0 beyond the end. */
static uint32_t number_at(const part *p, size_t at, size_t bytes) {
    uint32_t number = 0;
    if (at > p->size || bytes > p->size - at)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | p->data[at + (p->little_endian ? bytes - 1 - i : i)];
    return number;
}

static bool has_text(const part *p, size_t at, const char *text, size_t length) {
    return at <= p->size && length <= p->size - at && memcmp(p->data + at, text, length) == 0;
}

/* ---- the structure -------------------------------------------------------------------------- */

static int orientation_of_tiff(part p) {
    int orientation = EXIF_UPRIGHT;
    p.little_endian = has_text(&p, 0, "II*\0", 4);
    if (!p.little_endian && !has_text(&p, 0, "MM\0*", 4))
        return EXIF_UPRIGHT;
    const size_t directory = number_at(&p, 4, 4);
    const size_t entries = number_at(&p, directory, 2);
    for (size_t i = 0; i < entries; i++) {
        const size_t at = directory + 2 + i * ENTRY_BYTES;
        const uint32_t tag = number_at(&p, at, 2), value = number_at(&p, at + 8, 2);
        if (tag == TAG_PIXEL_SCALE || tag == TAG_TRANSFORMATION || tag == TAG_GEO_KEYS)
            return EXIF_UPRIGHT;
        if (tag == TAG_ORIENTATION && number_at(&p, at + 2, 2) == TYPE_SHORT &&
            number_at(&p, at + 4, 4) == 1 && value >= 1 && value <= 8)
            orientation = (int)value;
    }
    return orientation;
}

static part part_from(const part *p, size_t at, size_t bytes) {
    return (part){p->data + at, bytes < p->size - at ? bytes : p->size - at, false};
}

/* ---- locating the structure ----------------------------------------------------------------- */

static int orientation_of_jpeg(const part *p) {
    const uint8_t start_of_scan = 0xda, app1 = 0xe1;
    size_t at = 2;
    while (at + 4 <= p->size && p->data[at] == 0xff && p->data[at + 1] != start_of_scan) {
        const size_t length = number_at(p, at + 2, 2);
        if (p->data[at + 1] == app1 && length > 8 && has_text(p, at + 4, "Exif\0\0", 6))
            return orientation_of_tiff(part_from(p, at + 10, length - 8));
        at += 2 + length;
    }
    return EXIF_UPRIGHT;
}

static int orientation_of_png(const part *p) {
    size_t at = 8;
    while (at + 12 <= p->size) {
        const size_t length = number_at(p, at, 4);
        if (has_text(p, at + 4, "eXIf", 4))
            return orientation_of_tiff(part_from(p, at + 8, length));
        if (length > p->size - at - 12)
            break;
        at += 12 + length;
    }
    return EXIF_UPRIGHT;
}

static int orientation_of_webp(const part *p) {
    const part little = {p->data, p->size, true};
    size_t at = 12;
    while (at + 8 <= p->size) {
        const size_t length = number_at(&little, at + 4, 4);
        if (has_text(p, at, "EXIF", 4)) {
            /* Some writers keep the prefix that JPEG has. */
            const size_t head = has_text(p, at + 8, "Exif\0\0", 6) ? 6 : 0;
            return orientation_of_tiff(part_from(p, at + 8 + head, length - head));
        }
        if (length > p->size - at - 8)
            break;
        at += 8 + length + length % 2;
    }
    return EXIF_UPRIGHT;
}

int exif_orientation(const uint8_t *data, size_t size) {
    const part p = {data, size, false};
    if (has_text(&p, 0, "\xff\xd8\xff", 3))
        return orientation_of_jpeg(&p);
    if (has_text(&p, 0, "\x89PNG", 4))
        return orientation_of_png(&p);
    if (has_text(&p, 0, "RIFF", 4) && has_text(&p, 8, "WEBP", 4))
        return orientation_of_webp(&p);
    return orientation_of_tiff(p);
}

/* ---- turning -------------------------------------------------------------------------------- */

bool exif_swaps_axes(int orientation) {
    return orientation >= 5;
}

const char *exif_turn_text(int orientation) {
    static const char *const texts[] = {"not at all",
                                        "left to right",
                                        "by 180 degrees",
                                        "upside down",
                                        "about its diagonal",
                                        "by 90 degrees clockwise",
                                        "about its other diagonal",
                                        "by 90 degrees counterclockwise"};
    return texts[orientation - 1];
}

void exif_turn(int orientation, const uint16_t *stored, size_t width, size_t height,
               size_t channels, uint16_t *upright) {
    const bool swapped = exif_swaps_axes(orientation);
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 ||
                            orientation == 8; /* of the stored columns */
    const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 ||
                             orientation == 7; /* of the stored rows */
    const size_t columns = swapped ? height : width, rows = swapped ? width : height;
    for (size_t y = 0; y < rows; y++)
        for (size_t x = 0; x < columns; x++) {
            const size_t column = swapped ? y : x, row = swapped ? x : y;
            const size_t from = (from_bottom ? height - 1 - row : row) * width +
                                (from_right ? width - 1 - column : column);
            memcpy(upright, stored + from * channels, channels * sizeof *upright);
            upright += channels;
        }
}
