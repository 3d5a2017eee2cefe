#include "made_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

static bool has_room(const made_file *made, size_t bytes) {
    return bytes <= MADE_BYTES_MAX - made->size;
}

static void add_bytes(made_file *made, const void *bytes, size_t count) {
    memcpy(made->data + made->size, bytes, count);
    made->size += count;
}

/* The caller ensures that there is room. */
static void add_number(made_file *made, size_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        made->data[made->size++] = (uint8_t)(number >> (8 * i));
}

__attribute__((format(printf, 2, 3))) static void add_text(made_file *made, const char *format,
                                                           ...) {
    va_list arguments;
    va_start(arguments, format);
    made->size += (size_t)vsnprintf((char *)made->data + made->size, MADE_BYTES_MAX - made->size,
                                    format, arguments);
    va_end(arguments);
}

static bool add_repeated(made_file *made, const uint8_t *fill, size_t size, size_t count) {
    if (!has_room(made, count) || size == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        made->data[made->size++] = fill[i % size];
    return true;
}

/* ---- PNG ------------------------------------------------------------------------------------ */

static const struct {
    uint8_t depth, colour, channels;
} png_kinds[MADE_PNG_KINDS] = {{1, 0, 1}, {2, 0, 1},  {4, 0, 1},  {8, 0, 1}, {16, 0, 1},
                               {8, 2, 3}, {16, 2, 3}, {1, 3, 1},  {2, 3, 1}, {4, 3, 1},
                               {8, 3, 1}, {8, 4, 2},  {16, 4, 2}, {8, 6, 4}, {16, 6, 4}};

static void put_32(uint8_t *at, size_t value) {
    for (size_t i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Completes a chunk whose content is already in place. */
static void finish_chunk(made_file *made, const char *type, size_t size) {
    uint8_t *chunk = made->data + made->size;
    put_32(chunk, size);
    memcpy(chunk + 4, type, 4);
    put_32(chunk + 8 + size, crc32(0, chunk + 4, (uInt)size + 4));
    made->size += size + 12;
}

static void add_chunk(made_file *made, const char *type, const uint8_t *content, size_t size) {
    memcpy(made->data + made->size + 8, content, size);
    finish_chunk(made, type, size);
}

size_t made_png_row_bytes(size_t kind, size_t width) {
    return 1 + (width * png_kinds[kind].channels * png_kinds[kind].depth + 7) / 8;
}

bool make_png(made_file *made, size_t kind, size_t width, size_t height, bool interlaced,
              const uint8_t palette[3], const uint8_t *rows, size_t size) {
    uint8_t header[13] = {[8] = png_kinds[kind].depth, png_kinds[kind].colour, [12] = interlaced};
    put_32(header, width);
    put_32(header + 4, height);
    made->size = 0;
    add_bytes(made, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(made, "IHDR", header, sizeof header);
    if (png_kinds[kind].colour == 3)
        add_chunk(made, "PLTE", palette, 3);
    uLongf compressed = MADE_BYTES_MAX - 1024;
    if (compress(made->data + made->size + 8, &compressed, rows, (uLong)size) != Z_OK)
        return false;
    finish_chunk(made, "IDAT", compressed);
    finish_chunk(made, "IEND", 0);
    return true;
}

/* ---- TIFF ----------------------------------------------------------------------------------- */

enum { TIFF_SHORT = 3, TIFF_LONG = 4, TIFF_TILE_PX = 16, TIFF_ENTRIES = 11 };

static void add_entry(made_file *made, size_t tag, size_t type, size_t count, size_t value) {
    add_number(made, tag, 2);
    add_number(made, type, 2);
    add_number(made, count, 4);
    add_number(made, value, 4);
}

/* The tables of offsets and of sizes, one after the other, and where they begin. */
typedef struct tiff_blocks {
    size_t count;
    size_t full_bytes;
    size_t last_bytes;
} tiff_blocks;

static size_t block_bytes(const tiff_blocks *blocks, size_t i) {
    return i + 1 == blocks->count ? blocks->last_bytes : blocks->full_bytes;
}

/* An entry with a single number holds it inline. */
static void add_table(made_file *made, size_t tag, const tiff_blocks *blocks, size_t at,
                      size_t alone) {
    add_entry(made, tag, TIFF_LONG, blocks->count, blocks->count == 1 ? alone : at);
}

static bool add_blocks(made_file *made, const tiff_blocks *blocks, const uint8_t *fill,
                       size_t size) {
    const size_t first = made->size + (blocks->count > 1 ? 8 * blocks->count : 0);
    for (size_t i = 0; blocks->count > 1 && i < blocks->count; i++)
        add_number(made, first + i * blocks->full_bytes, 4);
    for (size_t i = 0; blocks->count > 1 && i < blocks->count; i++)
        add_number(made, block_bytes(blocks, i), 4);
    return add_repeated(made, fill, size,
                        (blocks->count - 1) * blocks->full_bytes + blocks->last_bytes);
}

bool make_tiff(made_file *made, size_t width, size_t height, size_t channels, size_t bits,
               size_t strip_rows, const uint8_t *fill, size_t size) {
    const bool tiled = strip_rows == 0;
    const size_t pixel_bytes = channels * bits / 8, row_bytes = width * pixel_bytes;
    const size_t across = (width + TIFF_TILE_PX - 1) / TIFF_TILE_PX;
    const size_t block_rows = tiled ? TIFF_TILE_PX : strip_rows < height ? strip_rows : height;
    const size_t down = (height + block_rows - 1) / block_rows;
    const size_t tile_bytes = TIFF_TILE_PX * TIFF_TILE_PX * pixel_bytes;
    const tiff_blocks blocks = {
        .count = tiled ? across * down : down,
        .full_bytes = tiled ? tile_bytes : block_rows * row_bytes,
        .last_bytes = tiled ? tile_bytes : (height - (down - 1) * block_rows) * row_bytes};
    made->size = 0;
    add_bytes(made, "II*\0\x08\0\0\0", 8);
    add_number(made, TIFF_ENTRIES, 2);
    const size_t tables = made->size + TIFF_ENTRIES * 12 + 4;
    if (!has_room(made, 1024 + 8 * blocks.count))
        return false;
    add_entry(made, 256, TIFF_LONG, 1, width);
    add_entry(made, 257, TIFF_LONG, 1, height);
    /* Two shorts fit into an entry, three do not: give only the first sample's bits. */
    add_entry(made, 258, TIFF_SHORT, 1, bits);
    add_entry(made, 259, TIFF_SHORT, 1, 1);                     /* no compression */
    add_entry(made, 262, TIFF_SHORT, 1, channels == 3 ? 2 : 1); /* RGB, or black is zero */
    if (!tiled)
        add_table(made, 273, &blocks, tables, tables);
    add_entry(made, 277, TIFF_SHORT, 1, channels);
    if (!tiled) {
        add_entry(made, 278, TIFF_LONG, 1, block_rows);
        add_table(made, 279, &blocks, tables + 4 * blocks.count, blocks.last_bytes);
    }
    add_entry(made, 284, TIFF_SHORT, 1, 1); /* channels interleaved */
    if (tiled) {
        add_entry(made, 322, TIFF_LONG, 1, TIFF_TILE_PX);
        add_entry(made, 323, TIFF_LONG, 1, TIFF_TILE_PX);
        add_table(made, 324, &blocks, tables, tables);
        add_table(made, 325, &blocks, tables + 4 * blocks.count, blocks.last_bytes);
    } else {
        add_entry(made, 296, TIFF_SHORT, 1, 2); /* inches: keeps the number of entries constant */
    }
    add_number(made, 0, 4); /* no next page */
    return add_blocks(made, &blocks, fill, size);
}

/* ---- NIfTI ---------------------------------------------------------------------------------- */

/* A float that is a small integer. */
static void add_float(made_file *made, float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    add_number(made, bits, 4);
}

static void skip_to(made_file *made, size_t place) {
    while (made->size < place)
        made->data[made->size++] = 0;
}

bool make_nifti(made_file *made, const size_t size[3], size_t channels, size_t bytes,
                const uint8_t *fill, size_t fill_size) {
    enum { HEADER_BYTES = 348, OFFSET = 352, DIM = 40, TYPE = 70, PIXDIM = 76 };
    const size_t dim[8] = {channels > 1 ? 4 : 3, size[0], size[1], size[2], channels, 1, 1, 1};
    made->size = 0;
    add_number(made, HEADER_BYTES, 4);
    skip_to(made, DIM);
    for (size_t i = 0; i < 8; i++)
        add_number(made, dim[i], 2);
    skip_to(made, TYPE);
    add_number(made, bytes == 1 ? 2 : bytes == 2 ? 4 : 16, 2);
    add_number(made, 8 * bytes, 2);
    skip_to(made, PIXDIM);
    for (size_t i = 0; i < 8; i++)
        add_float(made, 1);
    add_float(made, OFFSET);
    add_float(made, 1); /* slope; the intercept is 0 */
    skip_to(made, HEADER_BYTES - 4);
    add_bytes(made, "n+1", 4);
    skip_to(made, OFFSET);
    return add_repeated(made, fill, fill_size, size[0] * size[1] * size[2] * channels * bytes);
}

/* ---- PNM and .npy --------------------------------------------------------------------------- */

bool make_pnm(made_file *made, size_t kind, size_t width, size_t height, size_t largest,
              const uint8_t *fill, size_t size) {
    const bool bitmap = kind == 1 || kind == 4;
    const size_t samples = width * height * (kind % 3 == 0 ? 3 : 1);
    made->size = 0;
    add_text(made, "P%zu\n%zu %zu\n", kind, width, height);
    if (!bitmap)
        add_text(made, "%zu\n", largest);
    if (kind == 4)
        return add_repeated(made, fill, size, (width + 7) / 8 * height);
    if (kind > 3)
        return add_repeated(made, fill, size, samples * (largest > UINT8_MAX ? 2 : 1));
    if (size == 0 || !has_room(made, 8 * samples))
        return false;
    for (size_t i = 0; i < samples; i++)
        add_text(made, "%zu\n", fill[i % size] * (size_t)257 % ((bitmap ? 1 : largest) + 1));
    return true;
}

bool make_npy(made_file *made, const char *type, size_t item_bytes, bool fortran,
              const size_t *shape, size_t axes, const uint8_t *fill, size_t size) {
    size_t count = 1;
    made->size = 0;
    add_bytes(made, "\x93NUMPY\1\0\0\0", 10);
    add_text(made, "{'descr': '%s', 'fortran_order': %s, 'shape': (", type,
             fortran ? "True" : "False");
    for (size_t axis = 0; axis < axes; axis++) {
        add_text(made, "%zu,", shape[axis]);
        count *= shape[axis];
    }
    add_text(made, ")}\n");
    made->data[8] = (uint8_t)(made->size - 10);
    return add_repeated(made, fill, size, count * item_bytes);
}
