#include "io/png_format.h"
#include "io/png_session.h"

#include <stdlib.h>
#include <string.h>

bool is_png_name(const char *path) {
    const size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".png") == 0;
}

typedef struct encoding {
    FILE *stream;
    const uint16_t *samples;
    size_t width;
    size_t height;
    size_t channels;
    bool wide;                /* 16 bits a sample */
    const png_color *colours; /* of an indexed picture, or NULL */
    size_t colour_count;
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

static int colour_type(const encoding *e) {
    if (e->colours)
        return PNG_COLOR_TYPE_PALETTE;
    return e->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
}

static void encode_rows(png_session *session, void *argument) {
    const encoding *e = argument;
    png_structp png = session->png;
    png_set_write_fn(png, argument, write_to_stream, flush_nothing);
    png_set_IHDR(png, session->info, (png_uint_32)e->width, (png_uint_32)e->height,
                 e->wide ? 16 : 8, colour_type(e), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (e->colours)
        png_set_PLTE(png, session->info, e->colours, (int)e->colour_count);
    png_write_info(png, session->info);
    for (size_t y = 0; y < e->height; y++) {
        const size_t samples_a_row = e->width * e->channels;
        const uint16_t *samples = e->samples + y * samples_a_row;
        for (size_t i = 0; i < samples_a_row; i++)
            if (e->wide) {
                e->row[2 * i] = (uint8_t)(samples[i] >> 8);
                e->row[2 * i + 1] = (uint8_t)samples[i];
            } else {
                e->row[i] = (uint8_t)samples[i];
            }
        png_write_row(png, e->row);
    }
    png_write_end(png, session->info);
}

static bool need_16_bits(const uint16_t *samples, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (samples[i] > UINT8_MAX)
            return true;
    return false;
}

static bool encode(encoding *e, const char *file, cli_problem *problem) {
    png_session session;
    e->row = calloc(e->width, 2 * e->channels);
    if (!e->row || !png_session_open_writing(&session)) {
        free(e->row);
        return out_of_memory(problem, file);
    }
    const bool done = png_session_run(&session, encode_rows, e);
    if (!done && session.out_of_memory)
        out_of_memory(problem, file);
    else if (!done)
        failure(problem, file, "%s", session.message);
    png_session_close_writing(&session);
    free(e->row);
    return done;
}

bool png_write_samples(FILE *stream, const char *file, const uint16_t *samples, size_t width,
                       size_t height, size_t channels, cli_problem *problem) {
    encoding e = {.stream = stream,
                  .samples = samples,
                  .width = width,
                  .height = height,
                  .channels = channels,
                  .wide = need_16_bits(samples, width * height * channels)};
    return encode(&e, file, problem);
}

bool png_write_labels(FILE *stream, const char *file, const uint16_t *labels, size_t width,
                      size_t height, const uint8_t palette[256][3], cli_problem *problem) {
    png_color colours[PNG_MAX_PALETTE_LENGTH];
    if (need_16_bits(labels, width * height))
        return png_write_samples(stream, file, labels, width, height, 1, problem);
    for (size_t i = 0; i < PNG_MAX_PALETTE_LENGTH; i++)
        colours[i] = (png_color){palette[i][0], palette[i][1], palette[i][2]};
    encoding e = {.stream = stream,
                  .samples = labels,
                  .width = width,
                  .height = height,
                  .channels = 1,
                  .colours = colours,
                  .colour_count = PNG_MAX_PALETTE_LENGTH};
    return encode(&e, file, problem);
}
