/* BMP pictures: with a palette of 1, 4 or 8 bits, or colours of 16, 24 or 32 bits, uncompressed.
 *
 * A file consists of a 14-byte header, a description whose first field is its length (40 bytes
 * or more; 12 in OS/2 files, which are no longer written), masks or a palette, and rows padded
 * to 4 bytes, from the bottom up if the height is positive. */
#include "io/picture_formats.h"

#include <string.h>

#define FILE_HEADER_BYTES 14
#define DESCRIPTION_BYTES 40
#define PALETTE_MAX 256

enum { BMP_PLAIN = 0, BMP_RLE8 = 1, BMP_RLE4 = 2, BMP_MASKS = 3, BMP_MASKS_WITH_ALPHA = 6 };

/* A channel among the bits of a pixel. */
typedef struct bit_field {
    uint32_t mask;
    unsigned shift;
    uint32_t largest;
} bit_field;

typedef struct bmp_reader {
    const uint8_t *data;
    size_t size;
    size_t width, height;
    bool bottom_up;
    size_t bits; /* per pixel */
    size_t raster, row_bytes;
    uint8_t palette[PALETTE_MAX][3];
    size_t palette_count; /* 0: the raster holds colours */
    bit_field fields[3];
    const char *problem;
} bmp_reader;

bool bmp_recognize(const uint8_t *data, size_t size) {
    return size >= FILE_HEADER_BYTES + 4 && data[0] == 'B' && data[1] == 'M' &&
           /* Known descriptions are shorter than 256 bytes; text that begins with BM fails this. */
           data[15] == 0 && data[16] == 0 && data[17] == 0;
}

static bool bad(bmp_reader *r, const char *problem) {
    r->problem = problem;
    return false;
}

static uint32_t number_at(const bmp_reader *r, size_t place, size_t bytes) {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint32_t)r->data[place + i] << (8 * i);
    return number;
}

/* ---- the header ----------------------------------------------------------------------------- */

static bit_field field_of(uint32_t mask) {
    bit_field field = {mask, 0, mask};
    for (; field.largest && !(field.largest & 1); field.largest >>= 1)
        field.shift++;
    return field;
}

static bool is_contiguous(const bit_field *field) {
    return field->mask != 0 && (field->largest & (field->largest + 1)) == 0 &&
           field->largest <= UINT16_MAX;
}

static bool read_masks(bmp_reader *r, uint32_t compression) {
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    if (compression != BMP_PLAIN &&
        (r->bits < 16 || r->bits == 24 ||
         r->size < FILE_HEADER_BYTES + DESCRIPTION_BYTES + 3 * sizeof(uint32_t)))
        return bad(r, "its header is broken");
    for (size_t c = 0; c < 3; c++) {
        r->fields[c] = field_of(
            compression == BMP_PLAIN
                ? usual[r->bits != 16][c]
                : number_at(r, FILE_HEADER_BYTES + DESCRIPTION_BYTES + c * sizeof(uint32_t), 4));
        if (!is_contiguous(&r->fields[c]) || (r->bits < 32 && r->fields[c].mask >> r->bits))
            return bad(r, "the bits of its colours are not what any program writes");
    }
    return true;
}

static bool read_palette(bmp_reader *r, size_t description_bytes) {
    const size_t place = FILE_HEADER_BYTES + description_bytes;
    const uint32_t stated = number_at(r, 46, 4);
    const size_t most = (size_t)1 << r->bits;
    r->palette_count = stated == 0 ? most : stated;
    if (r->palette_count > most)
        return bad(r, "its palette has more colours than its bits can name");
    if (place > r->size || r->size - place < 4 * r->palette_count)
        return bad(r, "is truncated: its palette is not there");
    for (size_t i = 0; i < r->palette_count; i++)
        for (size_t c = 0; c < 3; c++) /* stored blue first */
            r->palette[i][c] = r->data[place + 4 * i + (2 - c)];
    return true;
}

static bool read_size(bmp_reader *r) {
    const uint32_t width = number_at(r, 18, 4), height = number_at(r, 22, 4);
    r->bottom_up = height <= INT32_MAX;
    /* The absolute value, also of the most negative number. */
    const uint32_t rows = r->bottom_up ? height : 0 - height;
    if (width == 0 || rows == 0)
        return bad(r, "has no pixels");
    if (width > INT32_MAX)
        return bad(r, "its width is negative");
    if (rows > PICTURE_PIXELS_MAX / width)
        return bad(r, PICTURE_TOO_LARGE);
    r->width = width;
    r->height = rows;
    return true;
}

static bool read_header(bmp_reader *r) {
    if (r->size < FILE_HEADER_BYTES + DESCRIPTION_BYTES)
        return bad(r, "is truncated");
    const size_t description_bytes = number_at(r, 14, 4);
    if (description_bytes < DESCRIPTION_BYTES)
        return bad(r, "is of a version before Windows 3; save it again, as PNG for example");
    if (!read_size(r))
        return false;
    const uint32_t compression = number_at(r, 30, 4);
    r->bits = number_at(r, 28, 2);
    r->raster = number_at(r, 10, 4);
    if (compression == BMP_RLE8 || compression == BMP_RLE4)
        return bad(r, "is compressed (RLE); save it without compression, or as PNG");
    if (compression != BMP_PLAIN && compression != BMP_MASKS && compression != BMP_MASKS_WITH_ALPHA)
        return bad(r, "its compression is not known; save it without, or as PNG");
    if (r->bits != 1 && r->bits != 4 && r->bits != 8 && r->bits != 16 && r->bits != 24 &&
        r->bits != 32)
        return bad(r, "its pixels have not 1, 4, 8, 16, 24 or 32 bits");
    if (r->bits <= 8 ? compression != BMP_PLAIN || !read_palette(r, description_bytes)
                     : !read_masks(r, compression))
        return r->problem ? false : bad(r, "its header is broken");
    r->row_bytes = (r->width * r->bits + 31) / 32 * 4;
    if (r->raster < FILE_HEADER_BYTES + DESCRIPTION_BYTES || r->raster > r->size ||
        (r->size - r->raster) / r->row_bytes < r->height)
        return bad(r, "is truncated: its raster is shorter than its size says");
    return true;
}

/* ---- pixels --------------------------------------------------------------------------------- */

static const uint8_t *row_at(const bmp_reader *r, size_t y) {
    return r->data + r->raster + (r->bottom_up ? r->height - 1 - y : y) * r->row_bytes;
}

static uint32_t pixel_at(const bmp_reader *r, size_t x, size_t y) {
    const uint8_t *row = row_at(r, y);
    if (r->bits < 8) {
        const size_t bit = x * r->bits;
        return (uint32_t)(row[bit / 8] >> (8 - r->bits - bit % 8) & ((1u << r->bits) - 1));
    }
    return number_at(r, (size_t)(row - r->data) + x * r->bits / 8, r->bits / 8);
}

/* A channel of a pixel, scaled to 8 bits. */
static uint16_t colour_at(const bmp_reader *r, uint32_t pixel, size_t channel) {
    if (r->palette_count > 0)
        return r->palette[pixel][channel];
    const bit_field *field = &r->fields[channel];
    const uint32_t sample = (pixel & field->mask) >> field->shift;
    return (uint16_t)((sample * 255u + field->largest / 2) / field->largest);
}

static bool read_raster(bmp_reader *r, picture *decoded) {
    for (size_t y = 0; y < r->height; y++) {
        uint16_t *out = picture_row(decoded, y);
        for (size_t x = 0; x < r->width; x++) {
            const uint32_t pixel = pixel_at(r, x, y);
            if (decoded->channels == 1) {
                *out++ = (uint16_t)pixel;
                continue;
            }
            if (r->palette_count > 0 && pixel >= r->palette_count)
                return bad(r, "uses colours that its palette does not have");
            for (size_t c = 0; c < 3; c++)
                *out++ = colour_at(r, pixel, c);
        }
        if (!picture_rows_done(decoded, y + 1))
            return bad(r, PICTURE_STOPPED);
    }
    return true;
}

bool bmp_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                picture *decoded, cli_problem *problem) {
    bmp_reader r = {.data = data, .size = size};
    picture_begin(decoded);
    bool done = read_header(&r);
    const bool one_channel = done && r.bits <= 8;
    const size_t channels = picture_channels(purpose, one_channel);
    if (done && purpose == PICTURE_MEASURED) {
        decoded->width = r.width;
        decoded->height = r.height;
        return true;
    }
    decoded->largest = UINT8_MAX;
    if (done && !picture_allocate(decoded, r.width, r.height, channels, 1))
        return out_of_memory(problem, file);
    if (done)
        done = read_raster(&r, decoded);
    if (!done) {
        picture_free(decoded);
        bad_input(problem, file, "bad BMP: %s", r.problem);
    }
    return done;
}
