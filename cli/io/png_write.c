#include "io/png_format.h"
#include "io/png_session.h"

#include <stdlib.h>

typedef struct encoding {
    FILE *stream;
    const uint16_t *numbers;
    size_t width;
    size_t height;
    bool wide;    /* 16 bits a pixel */
    uint8_t *row; /* room for one */
} encoding;

static void write_to_stream(png_structp png, png_bytep data, size_t bytes) {
    const encoding *e = png_get_io_ptr(png);
    if (fwrite(data, 1, bytes, e->stream) != bytes)
        png_error(png, "cannot write");
}

static void flush_nothing(png_structp png) {
    (void)png;
}

static void encode_rows(png_session *session, void *argument) {
    const encoding *e = argument;
    png_structp png = session->png;
    png_set_write_fn(png, argument, write_to_stream, flush_nothing);
    png_set_IHDR(png, session->info, (png_uint_32)e->width, (png_uint_32)e->height,
                 e->wide ? 16 : 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, session->info);
    for (size_t y = 0; y < e->height; y++) {
        const uint16_t *numbers = e->numbers + y * e->width;
        for (size_t x = 0; x < e->width; x++)
            if (e->wide) {
                e->row[2 * x] = (uint8_t)(numbers[x] >> 8);
                e->row[2 * x + 1] = (uint8_t)numbers[x];
            } else {
                e->row[x] = (uint8_t)numbers[x];
            }
        png_write_row(png, e->row);
    }
    png_write_end(png, session->info);
}

static bool need_16_bits(const uint16_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (numbers[i] > UINT8_MAX)
            return true;
    return false;
}

bool png_write_numbers(FILE *stream, const char *file, const uint16_t *numbers, size_t width,
                       size_t height, cli_problem *problem) {
    png_session session;
    const bool wide = need_16_bits(numbers, width * height);
    encoding e = {stream, numbers, width, height, wide, calloc(width, 2)};
    if (!e.row || !png_session_open_writing(&session)) {
        free(e.row);
        return out_of_memory(problem, file);
    }
    const bool done = png_session_run(&session, encode_rows, &e);
    if (!done && session.out_of_memory)
        out_of_memory(problem, file);
    else if (!done)
        failure(problem, file, "%s", session.message);
    png_session_close_writing(&session);
    free(e.row);
    return done;
}
