#include "io/picture.h"

#include "io/picture_formats.h"
#include "io/room.h"

#include <stdlib.h>

static const struct {
    bool (*recognize)(const uint8_t *data, size_t size);
    picture_decoder *decode;
    bool keeps_numbers;
} formats[] = {
    {png_recognize, png_decode, true},   {jpeg_recognize, jpeg_decode, false},
    {pnm_recognize, pnm_decode, true},   {tiff_recognize, tiff_decode, true},
    {webp_recognize, webp_decode, true}, {bmp_recognize, bmp_decode, true},
};
/* A photograph of fewer bytes is none: these are what deflate reaches on bytes that are all alike.
 * Small pictures may be of one colour. */
#define PIXELS_PER_BYTE_MAX 1040
#define PIXELS_ALWAYS ((size_t)4 << 20)

/* For which the machine is not asked. */
#define ROOM_ALWAYS_BYTES ((size_t)1 << 20)

#define FORMATS (sizeof formats / sizeof formats[0])

bool picture_recognize(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return true;
    return false;
}

bool picture_keeps_numbers(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return formats[i].keeps_numbers;
    return false;
}

static bool decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                   picture *decoded, cli_problem *problem) {
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return formats[i].decode(data, size, purpose, file, decoded, problem) ||
                   (decoded->bytes_wanted > 0 && room_check(decoded->bytes_wanted, file, problem) &&
                    out_of_memory(problem, file));
    return bad_input(problem, file, "is not a picture; " PICTURE_FORMATS_TEXT " can be read");
}

bool picture_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                    picture *decoded, cli_problem *problem) {
    *decoded = (picture){0};
    return decode(data, size, purpose, file, decoded, problem);
}

/* A sink that remembers that it was the one to stop. */
typedef struct watched_sink {
    const picture_sink *inner;
    bool has_stopped;
} watched_sink;

static bool take_watched(void *user, const picture *described, const uint16_t *samples,
                         size_t rows) {
    watched_sink *watched = user;
    watched->has_stopped = !watched->inner->take(watched->inner->user, described, samples, rows);
    return !watched->has_stopped;
}

bool picture_decode_rows(const uint8_t *data, size_t size, picture_purpose purpose,
                         const char *file, const picture_sink *sink, picture *described,
                         cli_problem *problem) {
    watched_sink watched = {sink, false};
    const picture_sink outer = {take_watched, &watched, sink->band_bytes_max};
    cli_problem own;
    *described = (picture){.sink = &outer};
    const bool done = decode(data, size, purpose, file, described, &own);
    if (!done && described->is_band_too_large)
        bad_input(
            problem, file,
            "cannot be read row by row, and is too large to be read at once; save it as a PNG "
            "without interlacing, or as a TIFF with strips of few rows");
    else if (!done && !watched.has_stopped)
        *problem = own;
    free(described->samples);
    described->samples = NULL;
    described->sink = NULL;
    return done;
}

void picture_free(picture *decoded) {
    free(decoded->samples);
    picture_begin(decoded);
}

void picture_begin(picture *decoded) {
    *decoded = (picture){.sink = decoded->sink,
                         .is_band_too_large = decoded->is_band_too_large,
                         .bytes_wanted = decoded->bytes_wanted};
}

const char *picture_refusal(size_t width, size_t height, size_t file_bytes,
                            picture_purpose purpose) {
    if (height > PICTURE_PIXELS_MAX / width)
        return PICTURE_TOO_LARGE;
    /* Maps are measured, and compared with their image, before they are decoded. */
    const bool unchecked = purpose == PICTURE_AS_COLOURS && width * height > PIXELS_ALWAYS;
    return unchecked && (width * height - PIXELS_ALWAYS) / PIXELS_PER_BYTE_MAX > file_bytes
               ? PICTURE_TOO_SMALL_A_FILE
               : NULL;
}

size_t picture_channels(picture_purpose purpose, bool one_channel) {
    return purpose == PICTURE_AS_COLOURS || (purpose == PICTURE_AS_IS && !one_channel) ? 3 : 1;
}

static size_t band_rows_of(const picture *made, size_t height, size_t band_rows) {
    return made->sink && band_rows < height ? band_rows : height;
}

bool picture_has_room(picture *made, size_t width, size_t height, size_t channels, size_t band_rows,
                      size_t working_bytes) {
    /* Without a sink numbers of 32 bits are made of the samples. */
    const size_t sample_bytes = sizeof *made->samples + (made->sink ? 0 : sizeof(float));
    const size_t bytes =
        width * channels * sample_bytes * band_rows_of(made, height, band_rows) + working_bytes;
    if (bytes <= ROOM_ALWAYS_BYTES || bytes <= room_bytes())
        return true;
    made->bytes_wanted = bytes;
    return false;
}

bool picture_allocate(picture *made, size_t width, size_t height, size_t channels,
                      size_t band_rows) {
    /* Below 2^31 pixels, 3 channels and 2 bytes: no overflow on 64 bits; calloc checks the rest. */
    made->width = width;
    made->height = height;
    made->channels = channels;
    made->band_rows = band_rows_of(made, height, band_rows);
    const size_t row_bytes = width * channels * sizeof *made->samples;
    if (made->sink && made->band_rows > made->sink->band_bytes_max / row_bytes) {
        made->is_band_too_large = true;
        return false;
    }
    if (!picture_has_room(made, width, height, channels, band_rows, 0))
        return false;
    made->samples = calloc(made->band_rows, row_bytes);
    return made->samples != NULL;
}

uint16_t *picture_row(const picture *decoded, size_t row) {
    return decoded->samples + row % decoded->band_rows * decoded->width * decoded->channels;
}

bool picture_rows_done(picture *decoded, size_t end) {
    if (!decoded->sink)
        return true;
    const size_t in_band = end % decoded->band_rows;
    if (in_band != 0 && end < decoded->height)
        return true;
    return decoded->sink->take(decoded->sink->user, decoded, decoded->samples,
                               in_band ? in_band : decoded->band_rows);
}
