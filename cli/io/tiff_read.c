/* TIFF pictures, through libtiff: the first page of a file, grey, RGB or with a palette, of 1, 2,
 * 4, 8 or 16 bits, in strips or tiles, channels together or apart.
 *
 * A strip is read as a tile as wide as the picture; where nothing is compressed, a row of a strip
 * is, where it lies in the file: some writers make one strip of a whole picture. libtiff's messages
 * come to a handler of this one file, which keeps the first. */
#include "io/picture_formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

/* What the compressions reach on a picture of one colour, with room to spare. */
#define EXPANSION_MAX 4096
/* Tables of strips count as pixels would: less than the other formats need for their headers. */
#define TIFF_SLACK_BYTES 256
#define LIBTIFF_MEMORY_MAX ((tmsize_t)1 << 31)
#define STRIP_TOO_SHORT "is truncated: a strip or tile is too short"
#define BLOCK_BYTES_SPARE ((size_t)64 << 20)

typedef struct decoding {
    const uint8_t *data;
    size_t size;
    uint64_t position;
    TIFF *tiff;
    char message[160]; /* the first one of libtiff */
    const char *own_message;
    bool out_of_memory;

    size_t width, height;
    size_t bits;          /* a sample */
    size_t file_channels; /* with alpha and others that are not used */
    uint16_t photometric;
    bool planes_apart;
    bool compressed;
    const uint16_t *palette[3]; /* NULL: no palette, or not to be looked up */
    bool white_is_zero;         /* and colours are wanted */

    bool in_place; /* rows are as they are stored */
    size_t strip_height;
    uint8_t *room;        /* for one strip or tile; NULL: in place */
    const uint8_t *block; /* the one in hand */
    size_t block_bytes;
    size_t block_width, block_height, block_row_bytes;
} decoding;

bool tiff_recognize(const uint8_t *data, size_t size) {
    return size >= 4 && (memcmp(data, "II*\0", 4) == 0 || memcmp(data, "MM\0*", 4) == 0 ||
                         memcmp(data, "II+\0", 4) == 0 || memcmp(data, "MM\0+", 4) == 0);
}

static bool refuse(decoding *d, const char *message) {
    d->own_message = message;
    return false;
}

/* ---- a file in memory ----------------------------------------------------------------------- */

static tmsize_t read_bytes(thandle_t handle, void *out, tmsize_t wanted) {
    decoding *d = handle;
    if (d->position >= d->size || wanted <= 0)
        return 0;
    const size_t left = d->size - (size_t)d->position;
    const size_t count = (size_t)wanted < left ? (size_t)wanted : left;
    memcpy(out, d->data + d->position, count);
    d->position += count;
    return (tmsize_t)count;
}

static tmsize_t write_nothing(thandle_t handle, void *data, tmsize_t bytes) {
    (void)handle, (void)data, (void)bytes;
    return 0;
}

static toff_t seek_to(thandle_t handle, toff_t offset, int whence) {
    decoding *d = handle;
    d->position = offset + (whence == SEEK_CUR ? d->position : whence == SEEK_END ? d->size : 0);
    return d->position;
}

static int close_nothing(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle) {
    return ((decoding *)handle)->size;
}

static int keep_message(TIFF *tiff, void *user_data, const char *module, const char *format,
                        va_list arguments) {
    decoding *d = user_data;
    (void)tiff, (void)module;
    if (d->message[0] == '\0')
        vsnprintf(d->message, sizeof d->message, format, arguments);
    return 1; /* handled: nothing is printed */
}

static int ignore_message(TIFF *tiff, void *user_data, const char *module, const char *format,
                          va_list arguments) {
    (void)tiff, (void)user_data, (void)module, (void)format, (void)arguments;
    return 1;
}

static bool open_tiff(decoding *d) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) {
        d->out_of_memory = true;
        return false;
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, LIBTIFF_MEMORY_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, d);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_message, d);
    d->tiff = TIFFClientOpenExt("", "rm", d, read_bytes, write_nothing, seek_to, close_nothing,
                                size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return d->tiff != NULL;
}

/* ---- the header ----------------------------------------------------------------------------- */

static bool check_kind(decoding *d) {
    uint16_t format = 0, compression = 0;
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_COMPRESSION, &compression);
    d->compressed = compression != COMPRESSION_NONE;
    if (!TIFFIsCODECConfigured(compression) || compression == COMPRESSION_OJPEG)
        return refuse(d, "its compression is not known; save it with another or none");
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
        return refuse(d, "its samples are not unsigned integers; save it with 8 or 16 bits");
    if (d->bits != 1 && d->bits != 2 && d->bits != 4 && d->bits != 8 && d->bits != 16)
        return refuse(d, "its samples have not 1, 2, 4, 8 or 16 bits; save it with 8 or 16");
    if (d->photometric == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG) {
        TIFFSetField(d->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        d->photometric = PHOTOMETRIC_RGB;
    }
    switch (d->photometric) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_MINISWHITE:
        return true;
    case PHOTOMETRIC_PALETTE:
        return d->bits <= 8 || refuse(d, "has a palette with more than 8 bits");
    case PHOTOMETRIC_RGB:
        return d->file_channels >= 3 || refuse(d, "is in colour and has fewer than three channels");
    case PHOTOMETRIC_SEPARATED:
        return refuse(d, "has the colours of a printer (CMYK); convert it to RGB");
    default:
        return refuse(d, "is neither grey nor RGB nor has it a palette; convert it to RGB");
    }
}

static bool read_header(decoding *d, picture_purpose purpose) {
    uint32_t width = 0, height = 0;
    uint16_t bits = 0, channels = 0, planes = 0;
    if (!TIFFGetField(d->tiff, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(d->tiff, TIFFTAG_IMAGELENGTH, &height) || width == 0 || height == 0)
        return refuse(d, "has no pixels");
    if (!TIFFGetField(d->tiff, TIFFTAG_PHOTOMETRIC, &d->photometric))
        return refuse(d, "does not say what its samples mean");
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_SAMPLESPERPIXEL, &channels);
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_PLANARCONFIG, &planes);
    d->width = width;
    d->height = height;
    d->bits = bits;
    d->file_channels = channels;
    d->planes_apart = planes == PLANARCONFIG_SEPARATE && channels > 1;
    const char *refusal = picture_refusal(d->width, d->height, d->size, purpose);
    if (refusal)
        return refuse(d, refusal);
    if (channels == 0 ||
        d->width * d->height / 8 * d->bits * channels / EXPANSION_MAX > d->size + TIFF_SLACK_BYTES)
        return refuse(d, PICTURE_TOO_SMALL_A_FILE);
    return check_kind(d);
}

/* ---- pixels --------------------------------------------------------------------------------- */

/* Whole bytes in the order of this machine, channels together, rows one after the other. */
static bool can_be_read_in_place(const decoding *d) {
    uint16_t fill_order = 0;
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_FILLORDER, &fill_order);
    return !TIFFIsTiled(d->tiff) && !d->compressed && !d->planes_apart &&
           fill_order == FILLORDER_MSB2LSB &&
           (d->bits == 8 || (d->bits == 16 && !TIFFIsByteSwapped(d->tiff)));
}

static bool measure_blocks(decoding *d) {
    uint32_t width = 0, height = 0;
    const bool tiled = TIFFIsTiled(d->tiff);
    if (tiled) {
        TIFFGetField(d->tiff, TIFFTAG_TILEWIDTH, &width);
        TIFFGetField(d->tiff, TIFFTAG_TILELENGTH, &height);
    } else {
        width = (uint32_t)d->width;
        TIFFGetFieldDefaulted(d->tiff, TIFFTAG_ROWSPERSTRIP, &height);
        if (height > d->height)
            height = (uint32_t)d->height;
    }
    d->strip_height = height;
    d->in_place = can_be_read_in_place(d);
    const tmsize_t bytes = tiled ? TIFFTileSize(d->tiff) : TIFFStripSize(d->tiff);
    const tmsize_t row_bytes = tiled ? TIFFTileRowSize(d->tiff) : TIFFScanlineSize(d->tiff);
    if (width == 0 || height == 0 || bytes <= 0 || row_bytes <= 0)
        return refuse(d, "the size of its strips or tiles is broken");
    d->block_width = width;
    d->block_height = height;
    d->block_bytes = (size_t)bytes;
    d->block_row_bytes = (size_t)row_bytes;
    const size_t together = d->planes_apart ? 1 : d->file_channels;
    if (d->block_row_bytes < (d->block_width * together * d->bits + 7) / 8 ||
        d->block_bytes / d->block_row_bytes < d->block_height)
        return refuse(d, "the size of its strips or tiles is broken");
    if (d->block_bytes > d->width * d->height * d->file_channels * 2 + BLOCK_BYTES_SPARE)
        return refuse(d, "its strips or tiles are absurdly large");
    if (d->in_place)
        d->block_height = 1;
    return true;
}

static bool take_memory(decoding *d, picture *decoded, size_t channels) {
    if (picture_has_room(decoded, d->width, d->height, channels, d->block_height,
                         d->in_place ? 0 : d->block_bytes) &&
        picture_allocate(decoded, d->width, d->height, channels, d->block_height) && !d->in_place)
        d->room = calloc(1, d->block_bytes);
    d->out_of_memory = !decoded->samples || (!d->in_place && !d->room);
    d->block = d->room;
    return !d->out_of_memory;
}

/* libtiff repairs the byte counts of a file that lies about its size, from that size: then the
 * strips overlap, or lie beyond the end. */
static bool check_places(decoding *d) {
    const uint32_t count =
        TIFFIsTiled(d->tiff) ? TIFFNumberOfTiles(d->tiff) : TIFFNumberOfStrips(d->tiff);
    uint64_t end_before = 0, place_before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t place = TIFFGetStrileOffset(d->tiff, i);
        const uint64_t bytes = TIFFGetStrileByteCount(d->tiff, i);
        if (bytes == 0 || place > d->size || bytes > d->size - place)
            return refuse(d, "is truncated: a strip or tile is not there");
        if (place > place_before && place < end_before)
            return refuse(d, "its strips or tiles overlap");
        place_before = place;
        end_before = place + bytes;
    }
    return true;
}

/* Read the strip or tile with the pixel (x, y); `rows` of it lie inside the picture. */
static bool read_block(decoding *d, size_t x, size_t y, size_t rows, size_t plane) {
    const bool tiled = TIFFIsTiled(d->tiff);
    const uint32_t index =
        tiled ? TIFFComputeTile(d->tiff, (uint32_t)x, (uint32_t)y, 0, (uint16_t)plane)
              : TIFFComputeStrip(d->tiff, (uint32_t)y, (uint16_t)plane);
    const size_t rows_before = d->in_place ? y % d->strip_height : 0;
    const size_t needed = (rows_before + rows) * d->block_row_bytes;
    /* Without compression libtiff reads as many bytes as there should be, not as there are. */
    if (!d->compressed && TIFFGetStrileByteCount(d->tiff, index) < needed)
        return refuse(d, STRIP_TOO_SHORT);
    if (d->in_place) { /* check_places has seen that it lies in the file */
        d->block = d->data + TIFFGetStrileOffset(d->tiff, index) + rows_before * d->block_row_bytes;
        return true;
    }
    const tmsize_t room = (tmsize_t)d->block_bytes;
    const tmsize_t got = tiled ? TIFFReadEncodedTile(d->tiff, index, d->room, room)
                               : TIFFReadEncodedStrip(d->tiff, index, d->room, room);
    return got >= 0 && ((size_t)got >= needed || refuse(d, STRIP_TOO_SHORT));
}

/* Sample `index` of a row; 16 bits are in the order of this machine. */
static uint16_t sample_at(const uint8_t *row, size_t index, size_t bits) {
    if (bits == 16) {
        uint16_t sample;
        memcpy(&sample, row + 2 * index, sizeof sample);
        return sample;
    }
    const size_t bit = index * bits;
    return (uint16_t)(row[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1));
}

/* Put channel `source` of the block at (x, y) into channel `target` of the picture. */
static void copy_channel(const decoding *d, picture *decoded, size_t x, size_t y, size_t source,
                         size_t target) {
    const size_t step = d->planes_apart ? 1 : d->file_channels;
    const size_t first = d->planes_apart ? 0 : source;
    const uint16_t top = (uint16_t)((1u << d->bits) - 1);
    for (size_t row = 0; row < d->block_height && y + row < d->height; row++)
        for (size_t column = 0; column < d->block_width && x + column < d->width; column++) {
            uint16_t *out = picture_row(decoded, y + row) + (x + column) * decoded->channels;
            uint16_t sample =
                sample_at(d->block + row * d->block_row_bytes, column * step + first, d->bits);
            if (d->palette[0])
                sample = d->palette[target][sample];
            else if (d->white_is_zero)
                sample = (uint16_t)(top - sample);
            out[target] = sample;
        }
}

static bool read_pixels(decoding *d, picture *decoded) {
    const bool rgb = d->photometric == PHOTOMETRIC_RGB;
    const size_t planes = d->planes_apart && rgb ? 3 : 1;
    for (size_t y = 0; y < d->height; y += d->block_height) {
        const size_t rows = d->height - y < d->block_height ? d->height - y : d->block_height;
        for (size_t x = 0; x < d->width; x += d->block_width)
            for (size_t plane = 0; plane < planes; plane++) {
                if (!read_block(d, x, y, rows, plane))
                    return false;
                for (size_t c = 0; c < decoded->channels; c++)
                    if (!d->planes_apart || !rgb || c == plane)
                        copy_channel(d, decoded, x, y, rgb ? c : 0, c);
            }
        if (!picture_rows_done(decoded, y + rows))
            return refuse(d, PICTURE_STOPPED);
    }
    return true;
}

/* The palette, and the value in it that means full brightness: some writers fill it with 8 bits. */
static bool look_up_palette(decoding *d, picture *decoded) {
    uint16_t *red, *green, *blue;
    if (!TIFFGetField(d->tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
        return refuse(d, "its palette is missing");
    d->palette[0] = red;
    d->palette[1] = green;
    d->palette[2] = blue;
    decoded->largest = UINT8_MAX;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < (size_t)1 << d->bits; i++)
            if (d->palette[c][i] > UINT8_MAX)
                decoded->largest = UINT16_MAX;
    return true;
}

static bool decode(decoding *d, picture_purpose purpose, picture *decoded) {
    if (!open_tiff(d) || !read_header(d, purpose))
        return false;
    if (purpose == PICTURE_MEASURED) {
        decoded->width = d->width;
        decoded->height = d->height;
        return true;
    }
    const bool one_channel = d->photometric != PHOTOMETRIC_RGB && d->file_channels == 1;
    const size_t channels = picture_channels(purpose, one_channel);
    decoded->largest = (uint16_t)((1u << d->bits) - 1);
    d->white_is_zero = channels == 3 && d->photometric == PHOTOMETRIC_MINISWHITE;
    if (channels == 3 && d->photometric == PHOTOMETRIC_PALETTE && !look_up_palette(d, decoded))
        return false;
    return measure_blocks(d) && check_places(d) && take_memory(d, decoded, channels) &&
           read_pixels(d, decoded);
}

bool tiff_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                 picture *decoded, cli_problem *problem) {
    decoding d = {.data = data, .size = size};
    picture_begin(decoded);
    const bool done = decode(&d, purpose, decoded);
    if (!done && d.out_of_memory)
        out_of_memory(problem, file);
    else if (!done)
        bad_input(problem, file, "bad TIFF: %s",
                  d.own_message  ? d.own_message
                  : d.message[0] ? d.message
                                 : "it cannot be decoded");
    if (d.tiff)
        TIFFClose(d.tiff);
    free(d.room);
    if (!done)
        picture_free(decoded);
    return done;
}
