#include "io/picture.h"

#include "io/exif.h"
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
/* A file with more pixels per byte is not a photograph: this is the ratio that deflate reaches
 * on constant bytes. Small pictures may be of one colour. */
#define PIXELS_PER_BYTE_MAX 1040
#define PIXELS_ALWAYS ((size_t)4 << 20)

/* Less than this is not checked against the available memory. */
#define ROOM_ALWAYS_BYTES ((size_t)1 << 20)

/* What is requested of a file. */
typedef struct picture_wish {
    picture_purpose asked; /* from the decoder */
    bool numbers;          /* also of colours that are grey, */
    uint16_t tolerance;    /* or nearly so */
    int orientation;
} picture_wish;

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

/* Without turning or converting. */
static bool decode_stored(const uint8_t *data, size_t size, picture_purpose purpose,
                          const char *file, picture *decoded, cli_problem *problem) {
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].recognize(data, size))
            return formats[i].decode(data, size, purpose, file, decoded, problem) ||
                   (decoded->bytes_wanted > 0 && room_check(decoded->bytes_wanted, file, problem) &&
                    out_of_memory(problem, file));
    return bad_input(problem, file, "is not a picture; " PICTURE_FORMATS_TEXT " can be read");
}

/* ---- numbers in colour ---------------------------------------------------------------------- */

/* How much the channels of a grey may differ if the format has rounded them. */
#define GREY_TOLERANCE 8

static bool not_grey(const char *file, cli_problem *problem) {
    return bad_input(problem, file,
                     "has colours where one number per pixel is needed; save it as a grey or an "
                     "indexed PNG");
}

static bool is_near(uint16_t a, uint16_t b, uint16_t tolerance) {
    return (a > b ? a - b : b - a) <= tolerance;
}

/* One number for every three equal ones; false: they differ. `numbers` may be `colours`. */
static bool take_greys(const uint16_t *colours, size_t pixels, uint16_t tolerance,
                       uint16_t *numbers) {
    for (size_t i = 0; i < pixels; i++) {
        const uint16_t *c = colours + 3 * i;
        if (!is_near(c[0], c[1], tolerance) || !is_near(c[1], c[2], tolerance))
            return false;
        numbers[i] = c[1];
    }
    return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* A sink that passes on numbers if they are requested, and records what stopped the decoder. */
typedef struct watched_sink {
    const picture_sink *inner;
    const picture_wish *wish;
    uint16_t *numbers; /* buffer for those of one call */
    size_t numbers_room;
    bool has_stopped;
    bool has_colours; /* although numbers are requested */
    bool out_of_memory;
} watched_sink;

static bool hand_on(watched_sink *watched, const picture *described, const uint16_t *samples,
                    size_t rows) {
    watched->has_stopped = !watched->inner->take(watched->inner->user, described, samples, rows);
    return !watched->has_stopped;
}

static bool take_watched(void *user, const picture *described, const uint16_t *samples,
                         size_t rows) {
    watched_sink *watched = user;
    const size_t pixels = described->width * rows;
    if (!watched->wish->numbers || described->channels == 1)
        return hand_on(watched, described, samples, rows);
    if (pixels > watched->numbers_room) {
        free(watched->numbers);
        watched->numbers = malloc(pixels * sizeof *watched->numbers);
        watched->numbers_room = watched->numbers ? pixels : 0;
    }
    watched->out_of_memory = !watched->numbers;
    watched->has_colours = watched->numbers &&
                           !take_greys(samples, pixels, watched->wish->tolerance, watched->numbers);
    picture grey = *described;
    grey.channels = 1;
    return watched->numbers && !watched->has_colours &&
           hand_on(watched, &grey, watched->numbers, rows);
}

/* ---- turning upright ------------------------------------------------------------------------ */

static bool turn_upright(picture *decoded, int orientation) {
    const size_t width = decoded->width, height = decoded->height;
    decoded->orientation = orientation;
    if (exif_swaps_axes(orientation)) {
        decoded->width = height;
        decoded->height = width;
        decoded->band_rows = width;
    }
    if (orientation == EXIF_UPRIGHT || !decoded->samples)
        return true;
    uint16_t *upright = malloc(width * height * decoded->channels * sizeof *upright);
    if (!upright)
        return false;
    exif_turn(orientation, decoded->samples, width, height, decoded->channels, upright);
    free(decoded->samples);
    decoded->samples = upright;
    return true;
}

/* ---- whole pictures ------------------------------------------------------------------------- */

/* What to request from the decoder, and what remains to be done. */
static picture_wish wish_for(const uint8_t *data, size_t size, picture_purpose purpose) {
    const bool rounded = !picture_keeps_numbers(data, size);
    picture_wish wish = {purpose, false, 0, exif_orientation(data, size)};
    if (purpose == PICTURE_AS_NUMBERS || purpose == PICTURE_AS_MASK) {
        wish.numbers = true;
        wish.asked = rounded && purpose == PICTURE_AS_MASK ? PICTURE_AS_COLOURS : PICTURE_AS_IS;
        wish.tolerance = rounded ? GREY_TOLERANCE : 0;
    }
    return wish;
}

/* Without a sink. */
static bool decode_whole(const uint8_t *data, size_t size, const picture_wish *wish,
                         const char *file, picture *decoded, cli_problem *problem) {
    if (!decode_stored(data, size, wish->asked, file, decoded, problem))
        return false;
    bool done = true;
    if (wish->numbers && decoded->channels == 3) {
        done = take_greys(decoded->samples, decoded->width * decoded->height, wish->tolerance,
                          decoded->samples) ||
               not_grey(file, problem);
        decoded->channels = 1;
    }
    done = done && (turn_upright(decoded, wish->orientation) || out_of_memory(problem, file));
    if (!done)
        picture_free(decoded);
    return done;
}

bool picture_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                    picture *decoded, cli_problem *problem) {
    const picture_wish wish = wish_for(data, size, purpose);
    *decoded = (picture){0};
    return decode_whole(data, size, &wish, file, decoded, problem);
}

/* A picture that has to be turned is decoded whole, unless it is too large. */
static bool decode_turned(const uint8_t *data, size_t size, const picture_wish *wish,
                          const char *file, watched_sink *watched, picture *described,
                          cli_problem *problem) {
    const picture_wish as_stored = {PICTURE_MEASURED, false, 0, wish->orientation};
    if (!decode_whole(data, size, &as_stored, file, described, problem))
        return false;
    described->is_band_too_large = described->width * described->height >
                                   watched->inner->band_bytes_max / (3 * sizeof(uint16_t));
    if (described->is_band_too_large)
        return false;
    *described = (picture){0};
    return decode_whole(data, size, wish, file, described, problem) &&
           hand_on(watched, described, described->samples, described->height);
}

bool picture_decode_rows(const uint8_t *data, size_t size, picture_purpose purpose,
                         const char *file, const picture_sink *sink, picture *described,
                         cli_problem *problem) {
    const picture_wish wish = wish_for(data, size, purpose);
    watched_sink watched = {.inner = sink, .wish = &wish};
    const picture_sink outer = {take_watched, &watched, sink->band_bytes_max};
    cli_problem own;
    *described = (picture){.sink = &outer};
    const bool done = wish.orientation == EXIF_UPRIGHT
                          ? decode_stored(data, size, wish.asked, file, described, &own)
                          : decode_turned(data, size, &wish, file, &watched, described, &own);
    if (!done && described->is_band_too_large)
        bad_input(
            problem, file,
            "cannot be read row by row, and is too large to be read at once; save it as a PNG "
            "without interlacing, or as a TIFF with strips of few rows, upright");
    else if (!done && watched.has_colours)
        not_grey(file, problem);
    else if (!done && watched.out_of_memory)
        out_of_memory(problem, file);
    else if (!done && !watched.has_stopped)
        *problem = own;
    if (wish.numbers)
        described->channels = 1;
    described->orientation = wish.orientation;
    free(watched.numbers);
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
    /* The size of a map is compared with its image's before it is decoded. */
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
    /* Without a sink the samples are converted to 32-bit numbers. */
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
