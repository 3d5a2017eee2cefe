/* JPEG pictures, through libjpeg(-turbo).
 *
 * libjpeg ends the program on errors and prints warnings; both handlers are replaced by one that
 * jumps out. A warning means that pixels were made up (a truncated file is filled with grey), so
 * a warning is an error here, except for bytes that libjpeg skipped between segments. As with
 * libpng, everything that has to survive the jump is outside the function that calls setjmp. */
#include "io/picture_formats.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

/* A block of 8 x 8 pixels takes at least one bit, so a byte holds at most 512 pixels; twice that
 * is allowed. */
#define PIXELS_A_BYTE_MAX 1024
/* Every scan of a progressive file decodes the whole picture; legitimate files have about ten. */
#define SCANS_MAX 200

typedef struct decoding {
    struct jpeg_error_mgr errors; /* the first member: libjpeg returns its address */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
    const char *own_message; /* instead of libjpeg's */
    bool out_of_memory;
    size_t file_bytes;
    picture_purpose purpose;
    picture *decoded;
    JSAMPLE *row;
} decoding;

bool jpeg_recognize(const uint8_t *data, size_t size) {
    return size >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

static _Noreturn void escape(decoding *d) {
    longjmp(d->escape, 1);
}

static _Noreturn void refuse(decoding *d, const char *message) {
    d->own_message = message;
    escape(d);
}

static void on_error(j_common_ptr jpeg) {
    decoding *d = (decoding *)jpeg->err;
    d->out_of_memory = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
    jpeg->err->format_message(jpeg, d->message);
    escape(d);
}

static void on_message(j_common_ptr jpeg, int level) {
    const int code = jpeg->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_TOO_MUCH_DATA)
        on_error(jpeg);
}

static void print_nothing(j_common_ptr jpeg) {
    (void)jpeg;
}

static void count_scans(j_common_ptr jpeg) {
    decoding *d = (decoding *)jpeg->err;
    if (d->jpeg.input_scan_number > SCANS_MAX)
        refuse(d, "has hundreds of scans");
}

static void check_header(decoding *d) {
    const size_t width = d->jpeg.image_width, height = d->jpeg.image_height;
    const char *refusal = picture_refusal(width, height, d->file_bytes, d->purpose);
    if (refusal)
        refuse(d, refusal);
    if (width * height / PIXELS_A_BYTE_MAX > d->file_bytes + PICTURE_SLACK_BYTES)
        refuse(d, PICTURE_TOO_SMALL_A_FILE);
    if (d->jpeg.jpeg_color_space == JCS_CMYK || d->jpeg.jpeg_color_space == JCS_YCCK)
        refuse(d, "has the colours of a printer (CMYK); convert it to RGB");
    if (d->jpeg.num_components != 1 && d->jpeg.num_components != 3)
        refuse(d, "is neither grey nor in colour; convert it to RGB");
}

static void decode_rows(decoding *d) {
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    jpeg_read_header(jpeg, TRUE);
    check_header(d);
    if (d->purpose == PICTURE_MEASURED) {
        d->decoded->width = jpeg->image_width;
        d->decoded->height = jpeg->image_height;
        return;
    }
    jpeg->out_color_space = jpeg->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    /* For a picture with several scans, all coefficients are kept in memory. */
    const size_t kept = jpeg_has_multiple_scans(jpeg)
                            ? (size_t)jpeg->image_width * jpeg->image_height *
                                  (size_t)jpeg->num_components * sizeof(JCOEF)
                            : 0;
    if (!picture_has_room(d->decoded, jpeg->image_width, jpeg->image_height, 3, 1, kept)) {
        d->out_of_memory = true;
        escape(d);
    }
    jpeg_start_decompress(jpeg);
    const size_t width = jpeg->output_width, height = jpeg->output_height;
    const size_t file_channels = (size_t)jpeg->output_components;
    d->row = malloc(width * file_channels);
    d->decoded->largest = UINT8_MAX;
    if (!d->row || !picture_allocate(d->decoded, width, height, 3, 1)) {
        d->out_of_memory = true;
        escape(d);
    }
    while (jpeg->output_scanline < jpeg->output_height) {
        uint16_t *out = picture_row(d->decoded, jpeg->output_scanline);
        jpeg_read_scanlines(jpeg, &d->row, 1);
        for (size_t x = 0; x < width; x++)
            for (size_t c = 0; c < 3; c++)
                *out++ = d->row[x * file_channels + c % file_channels];
        if (!picture_rows_done(d->decoded, jpeg->output_scanline))
            refuse(d, PICTURE_STOPPED);
    }
    jpeg_finish_decompress(jpeg);
}

static bool run(decoding *d, const uint8_t *data, size_t size) {
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = on_error;
    d->errors.emit_message = on_message;
    d->errors.output_message = print_nothing;
    if (setjmp(d->escape))
        return false;
    jpeg_create_decompress(&d->jpeg);
    d->progress.progress_monitor = count_scans;
    d->jpeg.progress = &d->progress;
    jpeg_mem_src(&d->jpeg, data, (unsigned long)size);
    decode_rows(d);
    return true;
}

bool jpeg_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                 picture *decoded, cli_problem *problem) {
    picture_begin(decoded);
    if (purpose == PICTURE_AS_IS)
        return bad_input(problem, file, "is a JPEG" PICTURE_ROUNDS_NUMBERS);
    decoding *d = calloc(1, sizeof *d);
    if (!d)
        return out_of_memory(problem, file);
    d->file_bytes = size;
    d->purpose = purpose;
    d->decoded = decoded;
    const bool done = run(d, data, size);
    if (!done && d->out_of_memory)
        out_of_memory(problem, file);
    else if (!done)
        bad_input(problem, file, "bad JPEG: %s", d->own_message ? d->own_message : d->message);
    jpeg_destroy_decompress(&d->jpeg);
    free(d->row);
    free(d);
    if (!done)
        picture_free(decoded);
    return done;
}
