#include "io/picture_formats.h"
#include "io/png_session.h"

#include <stdlib.h>
#include <string.h>

/* Deflate cannot expand its input by more than this (1032:1), so a header that claims more than
 * the file can hold is detected at once. */
#define INFLATE_RATIO_MAX 1040

typedef struct decoding {
    const uint8_t *at;
    size_t left;
    size_t file_bytes;
    picture_purpose purpose;
    picture *pixels;
    size_t channels; /* to be returned */
    bool interlaced; /* rows come in passes, and are complete after the last */
    uint8_t *rows;   /* as returned by libpng: one row, or all of an interlaced picture */
    size_t row_bytes;
    size_t file_channels; /* after the transformations: 1, or 3 */
    size_t bit_depth;     /* after them: 8 or 16 */
    png_color palette[PNG_MAX_PALETTE_LENGTH];
    size_t palette_count; /* 0: the samples are not palette indices */
} decoding;

bool png_recognize(const uint8_t *data, size_t size) {
    return size >= 8 && png_sig_cmp(data, 0, 8) == 0;
}

static void read_from_memory(png_structp png, png_bytep out, size_t bytes) {
    decoding *d = png_get_io_ptr(png);
    if (bytes > d->left)
        png_error(png, "is truncated");
    memcpy(out, d->at, bytes);
    d->at += bytes;
    d->left -= bytes;
}

static void check_size(const png_session *session, const decoding *d) {
    const size_t width = png_get_image_width(session->png, session->info);
    const size_t height = png_get_image_height(session->png, session->info);
    const char *refusal = picture_refusal(width, height, d->file_bytes, d->purpose);
    if (refusal)
        png_error(session->png, refusal);
    /* As stored, before any transformation. */
    const size_t stored = png_get_rowbytes(session->png, session->info) * height;
    if (stored / INFLATE_RATIO_MAX > d->file_bytes + PICTURE_SLACK_BYTES)
        png_error(session->png, PICTURE_TOO_SMALL_A_FILE);
}

static void choose_transformations(const png_session *session, decoding *d) {
    png_structp png = session->png;
    const int type = png_get_color_type(png, session->info);
    const int depth = png_get_bit_depth(png, session->info);
    const bool one_channel = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE;
    d->channels = picture_channels(d->purpose, one_channel);
    if (d->channels == 3) {
        if (type == PNG_COLOR_TYPE_GRAY && depth < 8)
            png_set_expand_gray_1_2_4_to_8(png);
        /* No background is made up: the colours count as stored. */
        png_set_strip_alpha(png);
    }
    png_set_packing(png); /* one byte per number or index of fewer bits */
    d->interlaced = png_get_interlace_type(png, session->info) == PNG_INTERLACE_ADAM7;
    png_set_interlace_handling(png);
    png_read_update_info(png, session->info);
    d->row_bytes = png_get_rowbytes(png, session->info);
    d->file_channels = png_get_channels(png, session->info);
    d->bit_depth = png_get_bit_depth(png, session->info);
}

static void take_memory(png_session *session, decoding *d) {
    const size_t width = png_get_image_width(session->png, session->info);
    const size_t height = png_get_image_height(session->png, session->info);
    d->pixels->largest = d->bit_depth == 16 ? UINT16_MAX : UINT8_MAX;
    const bool room =
        picture_has_room(d->pixels, width, height, d->channels, d->interlaced ? height : 1,
                         (d->interlaced ? height : 1) * d->row_bytes) &&
        picture_allocate(d->pixels, width, height, d->channels, d->interlaced ? height : 1);
    d->rows = room ? calloc(d->interlaced ? height : 1, d->row_bytes) : NULL;
    if (!d->rows) {
        session->out_of_memory = true;
        png_error(session->png, "out of memory");
    }
}

/* The palette of an indexed picture in colours. */
static void take_palette(png_session *session, decoding *d) {
    png_colorp palette = NULL;
    int count = 0;
    if (png_get_color_type(session->png, session->info) != PNG_COLOR_TYPE_PALETTE ||
        d->channels == 1)
        return;
    png_get_PLTE(session->png, session->info, &palette, &count);
    for (int i = 0; i < count; i++)
        d->palette[i] = palette[i];
    d->palette_count = (size_t)count;
}

/* One sample of 8 or 16 bits (PNG stores the high byte first). */
static uint16_t sample_at(const uint8_t *row, size_t index, size_t bit_depth) {
    if (bit_depth == 16)
        return (uint16_t)(row[2 * index] << 8 | row[2 * index + 1]);
    return row[index];
}

static uint16_t colour_at(const decoding *d, const uint8_t *row, size_t x, size_t channel) {
    if (d->palette_count > 0) {
        const png_color *colour = &d->palette[row[x]];
        return channel == 0 ? colour->red : channel == 1 ? colour->green : colour->blue;
    }
    return sample_at(row, x * d->file_channels + channel % d->file_channels, d->bit_depth);
}

/* Row y of the picture, from the row as returned by libpng. */
static void take_row(png_session *session, const decoding *d, const uint8_t *row, size_t y) {
    uint16_t *out = picture_row(d->pixels, y);
    /* An index beyond the palette means a damaged file, not black. */
    for (size_t x = 0; d->palette_count > 0 && x < d->pixels->width; x++)
        if (row[x] >= d->palette_count)
            png_error(session->png, "uses colours that its palette does not have");
    for (size_t x = 0; x < d->pixels->width; x++)
        for (size_t c = 0; c < d->pixels->channels; c++)
            *out++ = colour_at(d, row, x, c);
    if (!picture_rows_done(d->pixels, y + 1))
        png_error(session->png, PICTURE_STOPPED);
}

static void decode_interlaced(png_session *session, const decoding *d) {
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (size_t y = 0; y < d->pixels->height; y++)
            png_read_row(session->png, d->rows + y * d->row_bytes, NULL);
    for (size_t y = 0; y < d->pixels->height; y++)
        take_row(session, d, d->rows + y * d->row_bytes, y);
}

static void decode_rows(png_session *session, void *argument) {
    decoding *d = argument;
    png_structp png = session->png;
    png_set_read_fn(png, d, read_from_memory);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff); /* check_size gives a better message */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    /* A fuzzer cannot guess checksums; let it reach the code behind them. */
    png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
#endif
    png_read_info(png, session->info);
    check_size(session, d);
    if (d->purpose == PICTURE_MEASURED) {
        d->pixels->width = png_get_image_width(png, session->info);
        d->pixels->height = png_get_image_height(png, session->info);
        return;
    }
    choose_transformations(session, d);
    take_memory(session, d);
    take_palette(session, d);
    if (d->interlaced)
        decode_interlaced(session, d);
    for (size_t y = 0; !d->interlaced && y < d->pixels->height; y++) {
        png_read_row(png, d->rows, NULL);
        take_row(session, d, d->rows, y);
    }
    png_read_end(png, NULL);
}

bool png_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                picture *decoded, cli_problem *problem) {
    png_session session;
    decoding d = {
        .at = data, .left = size, .file_bytes = size, .purpose = purpose, .pixels = decoded};
    picture_begin(decoded);
    if (!png_recognize(data, size))
        return bad_input(problem, file, "is not a PNG picture");
    if (!png_session_open_reading(&session))
        return out_of_memory(problem, file);
    const bool done = png_session_run(&session, decode_rows, &d);
    if (!done && session.out_of_memory)
        out_of_memory(problem, file);
    else if (!done)
        bad_input(problem, file, "bad PNG: %s", session.message);
    png_session_close_reading(&session);
    free(d.rows);
    if (!done)
        picture_free(decoded);
    return done;
}
