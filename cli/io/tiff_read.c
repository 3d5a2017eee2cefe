/* TIFF pictures, through libtiff: the first page of a file, grey, RGB, with a palette or in bands,
 * of 1, 2, 4, 8 or 16 bits, in strips or tiles, with interleaved or separate channels. The first
 * three bands are the colours.
 *
 * Samples that are floats, signed or longer integers are called deep: as colours they are mapped to
 * 16-bit samples, from the smallest number at 1 to the largest at 65535, in a second pass; 0 means
 * no data. As numbers they must be integers and fit.
 *
 * A strip is read as a tile as wide as the picture. In an uncompressed file, each row of a strip
 * is read in place instead: some writers store a whole picture as one strip. */
#include "io/picture_formats.h"
#include "io/tiff_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The ratio that compression reaches on a picture of one colour, with a margin. */
#define EXPANSION_MAX 4096
/* Less slack than other formats have for their headers: strip tables count like pixels. */
#define TIFF_SLACK_BYTES 256
#define STRIP_TOO_SHORT "is truncated: a strip or tile is too short"
#define BLOCK_BYTES_SPARE ((size_t)64 << 20)

typedef struct decoding {
    tiff_memory memory;
    TIFF *tiff;
    const char *own_message;
    bool out_of_memory;

    size_t width, height;
    size_t bits;          /* per sample */
    size_t file_channels; /* including alpha and others that are not used */
    uint16_t photometric;
    uint16_t format; /* SAMPLEFORMAT_UINT, _INT or _IEEEFP */
    bool is_deep;
    bool in_colour; /* at least three channels */
    bool planes_apart;
    bool compressed;
    const uint16_t *palette[3]; /* NULL: no palette, or not to be resolved */
    bool white_is_zero;         /* and colours are requested */

    bool has_nodata;
    double nodata;
    bool is_measuring; /* the range of deep samples is being measured */
    double low, high;
    bool has_bad_number; /* a deep sample that is not valid in a map */

    bool in_place; /* rows are read where they are in the file */
    size_t strip_height;
    uint8_t *room;        /* buffer for one strip or tile; NULL: in place */
    const uint8_t *block; /* the current one */
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

/* ---- the header ----------------------------------------------------------------------------- */

/* Which samples can be read, and how. */
static bool check_samples(decoding *d) {
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_SAMPLEFORMAT, &d->format);
    if (d->format == SAMPLEFORMAT_VOID)
        d->format = SAMPLEFORMAT_UINT;
    const bool is_plain = d->format == SAMPLEFORMAT_UINT;
    const bool is_whole = is_plain || d->format == SAMPLEFORMAT_INT;
    d->is_deep = !is_plain || d->bits > 16;
    if (!is_whole && d->format != SAMPLEFORMAT_IEEEFP)
        return refuse(d, "its samples are complex or of no known kind; save it with 8 or 16 bits");
    if (d->is_deep && !(is_whole ? d->bits == 8 || d->bits == 16 || d->bits == 32
                                 : d->bits == 32 || d->bits == 64))
        return refuse(d, "its samples have an unusual size; save it with 8 or 16 bits");
    if (d->is_deep && d->photometric == PHOTOMETRIC_PALETTE)
        return refuse(d, "has a palette with more than 8 bits");
    return d->is_deep || d->bits == 1 || d->bits == 2 || d->bits == 4 || d->bits == 8 ||
           d->bits == 16 ||
           refuse(d, "its samples have not 1, 2, 4, 8 or 16 bits; save it with 8 or 16");
}

static bool check_kind(decoding *d) {
    uint16_t compression = 0;
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_COMPRESSION, &compression);
    d->compressed = compression != COMPRESSION_NONE;
    if (!TIFFIsCODECConfigured(compression) || compression == COMPRESSION_OJPEG)
        return refuse(d, "its compression is not known; save it with another or none");
    if (!check_samples(d))
        return false;
    if (d->photometric == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG) {
        TIFFSetField(d->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        d->photometric = PHOTOMETRIC_RGB;
    }
    d->in_colour = d->photometric == PHOTOMETRIC_RGB ||
                   (d->photometric == PHOTOMETRIC_MINISBLACK && d->file_channels >= 3);
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
    const char *refusal = picture_refusal(d->width, d->height, d->memory.size, purpose);
    if (refusal)
        return refuse(d, refusal);
    if (channels == 0 || d->width * d->height / 8 * d->bits * channels / EXPANSION_MAX >
                             d->memory.size + TIFF_SLACK_BYTES)
        return refuse(d, PICTURE_TOO_SMALL_A_FILE);
    return check_kind(d);
}

/* ---- pixels --------------------------------------------------------------------------------- */

/* Whole bytes in this machine's byte order, interleaved channels, consecutive rows. */
static bool can_be_read_in_place(const decoding *d) {
    uint16_t fill_order = 0;
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_FILLORDER, &fill_order);
    return !d->is_deep && !TIFFIsTiled(d->tiff) && !d->compressed && !d->planes_apart &&
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
    if (d->block_bytes >
        d->width * d->height * d->file_channels * sizeof(double) + BLOCK_BYTES_SPARE)
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

/* If a file lies about its size, libtiff derives the byte counts from that size: then strips
 * overlap, or extend beyond the end. */
static bool check_places(decoding *d) {
    const uint32_t count =
        TIFFIsTiled(d->tiff) ? TIFFNumberOfTiles(d->tiff) : TIFFNumberOfStrips(d->tiff);
    uint64_t end_before = 0, place_before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t place = TIFFGetStrileOffset(d->tiff, i);
        const uint64_t bytes = TIFFGetStrileByteCount(d->tiff, i);
        if (bytes == 0 || place > d->memory.size || bytes > d->memory.size - place)
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
    /* Without compression libtiff reads as many bytes as there should be, not as many as there
     * are. */
    if (!d->compressed && TIFFGetStrileByteCount(d->tiff, index) < needed)
        return refuse(d, STRIP_TOO_SHORT);
    if (d->in_place) { /* check_places has checked that it is in the file */
        d->block =
            d->memory.data + TIFFGetStrileOffset(d->tiff, index) + rows_before * d->block_row_bytes;
        return true;
    }
    const tmsize_t room = (tmsize_t)d->block_bytes;
    const tmsize_t got = tiled ? TIFFReadEncodedTile(d->tiff, index, d->room, room)
                               : TIFFReadEncodedStrip(d->tiff, index, d->room, room);
    return got >= 0 && ((size_t)got >= needed || refuse(d, STRIP_TOO_SHORT));
}

/* Sample `index` of a row; 16-bit samples are in this machine's byte order. */
static uint16_t sample_at(const uint8_t *row, size_t index, size_t bits) {
    if (bits == 16) {
        uint16_t sample;
        memcpy(&sample, row + 2 * index, sizeof sample);
        return sample;
    }
    const size_t bit = index * bits;
    return (uint16_t)(row[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1));
}

/* A deep sample, in this machine's byte order. */
static double deep_at(const decoding *d, const uint8_t *row, size_t index) {
    const uint8_t *at = row + index * d->bits / 8;
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        uint32_t u32;
        float f32;
        double f64;
    } value;
    memcpy(&value, at, d->bits / 8);
    if (d->format == SAMPLEFORMAT_IEEEFP)
        return d->bits == 32 ? (double)value.f32 : value.f64;
    if (d->format == SAMPLEFORMAT_UINT)
        return value.u32;
    return d->bits == 8 ? value.i8 : d->bits == 16 ? value.i16 : value.i32;
}

/* Writers print the largest floats with few digits. */
#define NEARLY_LARGEST 1e30

static bool has_data(const decoding *d, double number) {
    if (d->has_nodata && fabs(d->nodata) > NEARLY_LARGEST &&
        fabs(number - d->nodata) <= 1e-5 * fabs(d->nodata))
        return false;
    return isfinite(number) &&
           !(d->has_nodata && (number == d->nodata || number == (double)(float)d->nodata));
}

static void measure(decoding *d, double number) {
    if (!has_data(d, number))
        return;
    d->low = fmin(d->low, number);
    d->high = fmax(d->high, number);
}

/* A deep number as a sample: unchanged in a map, otherwise by its position in the measured
 * range. */
static uint16_t sample_of_deep(decoding *d, double number, bool as_number) {
    if (as_number) {
        const bool fits = number >= 0 && number <= UINT16_MAX && number == floor(number);
        d->has_bad_number = d->has_bad_number || !fits;
        return fits ? (uint16_t)number : 0;
    }
    if (!has_data(d, number))
        return 0;
    const double place = d->high > d->low ? (number - d->low) / (d->high - d->low) : 0;
    return (uint16_t)(1 + lround(place * (UINT16_MAX - 1)));
}

/* Copy channel `source` of the block at (x, y) to channel `target` of the picture. */
static void copy_channel(decoding *d, picture *decoded, size_t x, size_t y, size_t source,
                         size_t target) {
    const size_t step = d->planes_apart ? 1 : d->file_channels;
    const size_t first = d->planes_apart ? 0 : source;
    const uint16_t top = d->is_deep ? UINT16_MAX : (uint16_t)((1u << d->bits) - 1);
    for (size_t row = 0; row < d->block_height && y + row < d->height; row++)
        for (size_t column = 0; column < d->block_width && x + column < d->width; column++) {
            const uint8_t *from = d->block + row * d->block_row_bytes;
            if (d->is_measuring) {
                measure(d, deep_at(d, from, column * step + first));
                continue;
            }
            uint16_t *out = picture_row(decoded, y + row) + (x + column) * decoded->channels;
            uint16_t sample = d->is_deep
                                  ? sample_of_deep(d, deep_at(d, from, column * step + first),
                                                   decoded->channels == 1)
                                  : sample_at(from, column * step + first, d->bits);
            if (d->palette[0])
                sample = d->palette[target][sample];
            else if (d->white_is_zero)
                sample = (uint16_t)(top - sample);
            out[target] = sample;
        }
}

static bool read_pixels(decoding *d, picture *decoded) {
    const bool rgb = d->in_colour;
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
        if (!d->is_measuring && !picture_rows_done(decoded, y + rows))
            return refuse(d, PICTURE_STOPPED);
    }
    return !d->has_bad_number ||
           refuse(d, "holds numbers that are not whole or not between 0 and 65535, where one label "
                     "a pixel is needed");
}

/* The range of deep colour samples is measured first. */
static bool measure_pixels(decoding *d, picture *decoded) {
    if (!d->is_deep || decoded->channels == 1)
        return true;
    d->low = INFINITY;
    d->high = -INFINITY;
    d->is_measuring = true;
    const bool done = read_pixels(d, decoded);
    d->is_measuring = false;
    if (done && !(d->low <= d->high))
        return refuse(d, "has no data: every number is missing");
    if (d->high == d->low) /* a constant picture: any range will do */
        d->high = d->low + fmax(1, fabs(d->low));
    const double step = (d->high - d->low) / (UINT16_MAX - 1);
    decoded->is_measured = true;
    decoded->low = d->low - step;
    decoded->high = d->high;
    return done;
}

/* The sample of pixels without data. */
static void name_nodata(const decoding *d, picture *decoded) {
    const bool is_sample =
        d->nodata >= 0 && d->nodata <= decoded->largest && d->nodata == floor(d->nodata);
    decoded->has_nodata = d->is_deep || (d->has_nodata && !d->palette[0] && is_sample);
    decoded->nodata = d->is_deep || !decoded->has_nodata ? 0 : (uint16_t)d->nodata;
}

/* The palette, and its value of full brightness: some writers fill it with 8-bit values. */
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
    d->tiff = tiff_memory_open(&d->memory);
    if (!d->tiff || !read_header(d, purpose))
        return false;
    if (purpose == PICTURE_MEASURED) {
        decoded->width = d->width;
        decoded->height = d->height;
        return true;
    }
    const bool one_channel = !d->in_colour && d->file_channels == 1;
    const size_t channels = picture_channels(purpose, one_channel);
    decoded->largest = d->is_deep ? UINT16_MAX : (uint16_t)((1u << d->bits) - 1);
    decoded->bands = d->file_channels;
    d->has_nodata = tiff_nodata(d->tiff, &d->nodata);
    d->white_is_zero = channels == 3 && !d->is_deep && d->photometric == PHOTOMETRIC_MINISWHITE;
    if (channels == 3 && d->photometric == PHOTOMETRIC_PALETTE && !look_up_palette(d, decoded))
        return false;
    if (channels == 3)
        name_nodata(d, decoded);
    return measure_blocks(d) && check_places(d) && take_memory(d, decoded, channels) &&
           measure_pixels(d, decoded) && read_pixels(d, decoded);
}

bool tiff_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                 picture *decoded, cli_problem *problem) {
    decoding d = {.memory = {.data = data, .size = size}};
    picture_begin(decoded);
    const bool done = decode(&d, purpose, decoded);
    if (!done && (d.out_of_memory || d.memory.out_of_memory))
        out_of_memory(problem, file);
    else if (!done)
        bad_input(problem, file, "bad TIFF: %s",
                  d.own_message         ? d.own_message
                  : d.memory.message[0] ? d.memory.message
                                        : "it cannot be decoded");
    if (d.tiff)
        TIFFClose(d.tiff);
    free(d.room);
    if (!done)
        picture_free(decoded);
    return done;
}
