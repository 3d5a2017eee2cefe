#include "io/tiff_write.h"

#include "io/tiff_memory.h"

#include <stdlib.h>
#include <string.h>

/* Larger pictures are tiled, so that programs can read parts of them. */
#define TILED_PIXELS ((size_t)512 * 512)
#define TILE_SIDE ((size_t)256)
#define STRIP_ROWS ((size_t)64)

struct tiff_writer {
    tiff_memory memory;
    TIFF *tiff;
    FILE *stream;
    const char *file;
    size_t width, height;
    size_t sample_bytes;
    bool is_tiled;
    size_t band_rows;   /* of a strip, or of tiles */
    size_t band_stride; /* bytes per row in `band`, including the padding of tiles */
    uint8_t *band;
    uint8_t *tile;
    size_t rows_done; /* of the picture, including those in the band */
};

bool is_tiff_name(const char *path) {
    const char *point = strrchr(path, '.');
    return point && (strcmp(point, ".tif") == 0 || strcmp(point, ".tiff") == 0);
}

static bool failed(const tiff_writer *w, cli_problem *problem) {
    return w->memory.out_of_memory
               ? out_of_memory(problem, w->file)
               : failure(problem, w->file, "cannot be encoded: %s",
                         w->memory.message[0] ? w->memory.message : "libtiff says no more");
}

/* ---- the header ----------------------------------------------------------------------------- */

/* Declare the tags that libtiff does not know. */
static bool declare_tags(TIFF *tiff) {
    static const TIFFFieldInfo infos[] = {
        {33550, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, (char *)"ModelPixelScale"},
        {33922, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, (char *)"ModelTiepoint"},
        {34264, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, (char *)"ModelTransformation"},
        {34735, -1, -1, TIFF_SHORT, FIELD_CUSTOM, 1, 1, (char *)"GeoKeyDirectory"},
        {34736, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, (char *)"GeoDoubleParams"},
        {34737, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, (char *)"GeoAsciiParams"},
        {TIFF_TAG_NODATA, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, (char *)"GDALNoData"},
    };
    return TIFFMergeFieldInfo(tiff, infos, sizeof infos / sizeof infos[0]) == 0;
}

/* A text in a file may lack its terminating zero. */
static bool set_text(TIFF *tiff, uint16_t number, const char *data, size_t count) {
    char *text = malloc(count + 1);
    if (!text)
        return false;
    memcpy(text, data, count);
    text[count] = '\0';
    const bool done = TIFFSetField(tiff, number, text) == 1;
    free(text);
    return done;
}

static bool set_tags(TIFF *tiff, const geo_reference *geo) {
    bool done = true;
    for (int tag = 0; done && tag < GEO_TAGS; tag++) {
        const uint16_t number = geo_tag_number((geo_tag)tag);
        if (!geo->data[tag])
            continue;
        done = geo_tag_type((geo_tag)tag) == GEO_OF_CHARACTERS
                   ? set_text(tiff, number, geo->data[tag], geo->count[tag])
                   : geo->count[tag] <= UINT16_MAX &&
                         TIFFSetField(tiff, number, (int)geo->count[tag], geo->data[tag]) == 1;
    }
    return done;
}

/* The position from a world file. */
static bool set_matrix(TIFF *tiff, const double m[GEO_MATRIX]) {
    const double scale[3] = {m[1], -m[5], 0}, tie[6] = {0, 0, 0, m[0], m[3], 0};
    const double four[16] = {m[1], m[2], 0, m[0], m[4], m[5], 0, m[3], 0, 0, 0, 0, 0, 0, 0, 1};
    const bool is_straight = m[2] == 0 && m[4] == 0 && m[1] > 0 && m[5] < 0;
    return is_straight ? TIFFSetField(tiff, geo_tag_number(GEO_PIXEL_SCALE), 3, scale) == 1 &&
                             TIFFSetField(tiff, geo_tag_number(GEO_TIEPOINTS), 6, tie) == 1
                       : TIFFSetField(tiff, geo_tag_number(GEO_TRANSFORMATION), 16, four) == 1;
}

static bool set_place(TIFF *tiff, const tiff_layout *layout) {
    const geo_reference *geo = layout->geo;
    char text[32];
    if (!declare_tags(tiff) || (geo && !set_tags(tiff, geo)))
        return false;
    if (geo && geo->has_matrix && !geo->data[GEO_TIEPOINTS] && !geo->data[GEO_TRANSFORMATION] &&
        !set_matrix(tiff, geo->matrix))
        return false;
    if (!layout->nodata)
        return true;
    snprintf(text, sizeof text, "%.17g", *layout->nodata);
    return TIFFSetField(tiff, TIFF_TAG_NODATA, text) == 1;
}

static bool set_colours(TIFF *tiff, const uint8_t (*palette)[3]) {
    uint16_t channels[3][256];
    if (!palette)
        return TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) == 1;
    for (size_t i = 0; i < 256; i++)
        for (size_t c = 0; c < 3; c++)
            channels[c][i] = (uint16_t)(palette[i][c] * 257u);
    return TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_PALETTE) == 1 &&
           TIFFSetField(tiff, TIFFTAG_COLORMAP, channels[0], channels[1], channels[2]) == 1;
}

static bool set_header(const tiff_writer *w, const tiff_layout *layout) {
    TIFF *tiff = w->tiff;
    const uint16_t compression = TIFFIsCODECConfigured(COMPRESSION_ADOBE_DEFLATE)
                                     ? COMPRESSION_ADOBE_DEFLATE
                                     : COMPRESSION_LZW;
    const bool done = TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, (uint32_t)w->width) == 1 &&
                      TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, (uint32_t)w->height) == 1 &&
                      TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, (int)(8 * w->sample_bytes)) == 1 &&
                      TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1) == 1 &&
                      TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == 1 &&
                      TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression) == 1 &&
                      set_colours(tiff, layout->wide ? NULL : layout->palette) &&
                      set_place(tiff, layout);
    if (!w->is_tiled)
        return done && TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, (uint32_t)w->band_rows) == 1;
    return done && TIFFSetField(tiff, TIFFTAG_TILEWIDTH, (uint32_t)TILE_SIDE) == 1 &&
           TIFFSetField(tiff, TIFFTAG_TILELENGTH, (uint32_t)TILE_SIDE) == 1;
}

bool tiff_writer_new(tiff_writer **made, FILE *stream, const char *file, const tiff_layout *layout,
                     cli_problem *problem) {
    tiff_writer *w = *made = calloc(1, sizeof *w);
    if (!w)
        return out_of_memory(problem, file);
    w->stream = stream;
    w->file = file;
    w->width = layout->width;
    w->height = layout->height;
    w->sample_bytes = layout->wide ? 2 : 1;
    w->is_tiled = w->width * w->height > TILED_PIXELS;
    w->band_rows = w->is_tiled ? TILE_SIDE : STRIP_ROWS < w->height ? STRIP_ROWS : w->height;
    const size_t columns =
        w->is_tiled ? (w->width + TILE_SIDE - 1) / TILE_SIDE * TILE_SIDE : w->width;
    w->band_stride = columns * w->sample_bytes;
    w->band = calloc(w->band_rows, w->band_stride);
    w->tile = calloc(TILE_SIDE, TILE_SIDE * w->sample_bytes);
    w->memory.out_of_memory = !w->band || !w->tile;
    w->tiff = w->memory.out_of_memory ? NULL : tiff_memory_open(&w->memory);
    if (w->tiff && set_header(w, layout))
        return true;
    failed(w, problem);
    tiff_writer_free(made);
    return false;
}

void tiff_writer_free(tiff_writer **writer) {
    tiff_writer *w = *writer;
    if (!w)
        return;
    if (w->tiff)
        TIFFCleanup(w->tiff);
    free(w->memory.written);
    free(w->band);
    free(w->tile);
    free(w);
    *writer = NULL;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool write_tiles(tiff_writer *w, size_t first_row) {
    const size_t tile_bytes = TILE_SIDE * w->sample_bytes;
    bool done = true;
    for (size_t x = 0; done && x < w->width; x += TILE_SIDE) {
        for (size_t row = 0; row < TILE_SIDE; row++)
            memcpy(w->tile + row * tile_bytes, w->band + row * w->band_stride + x * w->sample_bytes,
                   tile_bytes);
        const uint32_t index = TIFFComputeTile(w->tiff, (uint32_t)x, (uint32_t)first_row, 0, 0);
        done =
            TIFFWriteEncodedTile(w->tiff, index, w->tile, (tmsize_t)(TILE_SIDE * tile_bytes)) >= 0;
    }
    return done;
}

/* Write the band when it is full, or the last one. */
static bool write_band(tiff_writer *w) {
    const size_t first_row = (w->rows_done - 1) / w->band_rows * w->band_rows;
    const size_t rows = w->rows_done - first_row;
    const bool done =
        w->is_tiled
            ? write_tiles(w, first_row)
            : TIFFWriteEncodedStrip(w->tiff, TIFFComputeStrip(w->tiff, (uint32_t)first_row, 0),
                                    w->band, (tmsize_t)(rows * w->band_stride)) >= 0;
    memset(w->band, 0, w->band_rows * w->band_stride);
    return done;
}

bool tiff_writer_rows(tiff_writer *w, const uint16_t *samples, size_t rows, cli_problem *problem) {
    bool done = true;
    for (size_t y = 0; done && y < rows; y++) {
        uint8_t *out = w->band + w->rows_done % w->band_rows * w->band_stride;
        for (size_t x = 0; x < w->width; x++) {
            const uint16_t sample = samples[y * w->width + x];
            if (w->sample_bytes == 2)
                memcpy(out + 2 * x, &sample, sizeof sample); /* libtiff expects the machine's
                                                              * byte order */
            else
                out[x] = (uint8_t)sample;
        }
        w->rows_done++;
        if (w->rows_done % w->band_rows == 0 || w->rows_done == w->height)
            done = write_band(w);
    }
    return done || failed(w, problem);
}

bool tiff_writer_end(tiff_writer *w, cli_problem *problem) {
    if (TIFFFlush(w->tiff) != 1 || w->memory.out_of_memory)
        return failed(w, problem);
    fwrite(w->memory.written, 1, w->memory.size, w->stream); /* errors are detected at the commit */
    return true;
}
