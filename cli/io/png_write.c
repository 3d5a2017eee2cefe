#include "io/png_format.h"
#include "io/png_session.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

bool is_png_name(const char *path) {
    const size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".png") == 0;
}

struct png_writer {
    png_session session;
    FILE *stream;
    const char *file;
    size_t width;
    size_t height;
    size_t channels;
    bool wide;                                 /* 16 bits per sample */
    png_color colours[PNG_MAX_PALETTE_LENGTH]; /* of an indexed picture */
    bool is_indexed;
    bool is_fast;
    uint8_t *row; /* buffer for one row */

    /* The rows being written. */
    const uint16_t *samples;
    size_t rows;
};

static void write_to_stream(png_structp png, png_bytep data, size_t bytes) {
    const png_writer *w = png_get_io_ptr(png);
    if (fwrite(data, 1, bytes, w->stream) != bytes)
        png_error(png, "cannot write");
}

static void flush_nothing(png_structp png) {
    (void)png;
}

static int colour_type(const png_writer *w) {
    if (w->is_indexed)
        return PNG_COLOR_TYPE_PALETTE;
    return w->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
}

static void write_header(png_session *session, void *argument) {
    const png_writer *w = argument;
    png_structp png = session->png;
    png_set_write_fn(png, argument, write_to_stream, flush_nothing);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_IHDR(png, session->info, (png_uint_32)w->width, (png_uint_32)w->height,
                 w->wide ? 16 : 8, colour_type(w), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (w->is_fast) {
        png_set_compression_level(png, 1);
        png_set_compression_strategy(png, Z_RLE);
        png_set_filter(png, PNG_FILTER_TYPE_BASE, w->is_indexed ? PNG_FILTER_NONE : PNG_FILTER_SUB);
    }
    if (w->is_indexed)
        png_set_PLTE(png, session->info, w->colours, PNG_MAX_PALETTE_LENGTH);
    png_write_info(png, session->info);
}

static void write_rows(png_session *session, void *argument) {
    const png_writer *w = argument;
    const size_t samples_a_row = w->width * w->channels;
    for (size_t y = 0; y < w->rows; y++) {
        const uint16_t *samples = w->samples + y * samples_a_row;
        for (size_t i = 0; i < samples_a_row; i++)
            if (w->wide) {
                w->row[2 * i] = (uint8_t)(samples[i] >> 8);
                w->row[2 * i + 1] = (uint8_t)samples[i];
            } else {
                w->row[i] = (uint8_t)samples[i];
            }
        png_write_row(session->png, w->row);
    }
}

static void write_end(png_session *session, void *argument) {
    (void)argument;
    png_write_end(session->png, session->info);
}

static bool run(png_writer *w, void (*work)(png_session *session, void *argument),
                cli_problem *problem) {
    if (png_session_run(&w->session, work, w))
        return true;
    return w->session.out_of_memory ? out_of_memory(problem, w->file)
                                    : failure(problem, w->file, "%s", w->session.message);
}

bool png_writer_new(png_writer **made, FILE *stream, const char *file, const png_layout *layout,
                    cli_problem *problem) {
    png_writer *w = *made = calloc(1, sizeof *w);
    if (!w)
        return out_of_memory(problem, file);
    w->stream = stream;
    w->file = file;
    w->width = layout->width;
    w->height = layout->height;
    w->channels = layout->channels;
    w->wide = layout->wide;
    w->is_indexed = layout->palette && !layout->wide;
    w->is_fast = layout->is_fast;
    for (size_t i = 0; w->is_indexed && i < PNG_MAX_PALETTE_LENGTH; i++)
        w->colours[i] =
            (png_color){layout->palette[i][0], layout->palette[i][1], layout->palette[i][2]};
    w->row = calloc(w->width, 2 * w->channels);
    if (w->row && png_session_open_writing(&w->session)) {
        if (run(w, write_header, problem))
            return true;
        png_writer_free(made);
        return false;
    }
    free(w->row);
    free(w);
    *made = NULL;
    return out_of_memory(problem, file);
}

bool png_writer_rows(png_writer *writer, const uint16_t *samples, size_t rows,
                     cli_problem *problem) {
    writer->samples = samples;
    writer->rows = rows;
    return run(writer, write_rows, problem);
}

bool png_writer_end(png_writer *writer, cli_problem *problem) {
    return run(writer, write_end, problem);
}

void png_writer_free(png_writer **writer) {
    if (!*writer)
        return;
    png_session_close_writing(&(*writer)->session);
    free((*writer)->row);
    free(*writer);
    *writer = NULL;
}

/* ---- whole pictures ------------------------------------------------------------------------- */

static bool need_16_bits(const uint16_t *samples, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (samples[i] > UINT8_MAX)
            return true;
    return false;
}

bool png_write(FILE *stream, const char *file, const uint16_t *samples, png_layout layout,
               cli_problem *problem) {
    png_writer *writer;
    layout.wide = need_16_bits(samples, layout.width * layout.height * layout.channels);
    if (!png_writer_new(&writer, stream, file, &layout, problem))
        return false;
    const bool done =
        png_writer_rows(writer, samples, layout.height, problem) && png_writer_end(writer, problem);
    png_writer_free(&writer);
    return done;
}
