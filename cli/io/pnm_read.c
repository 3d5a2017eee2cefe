/* PNM pictures: the portable bitmap, greymap and pixmap of Netpbm, plain (P1, P2, P3) and raw (P4,
 * P5, P6).
 *
 *   P5 WIDTH HEIGHT LARGEST raster      decimal numbers, separated by spaces and comments, which
 *                                       run from # to the end of the line
 *
 * A bitmap has no LARGEST, and its 1 is black. Raw samples take one byte, or two in big-endian
 * order if LARGEST is above 255; the rows of a raw bitmap start at whole bytes. One space
 * separates a raw raster from the header. Nothing may follow the raster, though Netpbm allows
 * another picture: this detects headers that give too small a size. */
#include "io/picture_formats.h"
#include "io/pnm.h"

#include <string.h>

typedef struct pnm_reader {
    const uint8_t *at;
    const uint8_t *end;
    const char *problem; /* NULL: none so far */
} pnm_reader;

typedef struct pnm_header {
    bool plain;
    bool bitmap;
    size_t channels;
    size_t width;
    size_t height;
    size_t largest;
} pnm_header;

static bool is_blank(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool pnm_recognize(const uint8_t *data, size_t size) {
    return size >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6' &&
           (is_blank(data[2]) || data[2] == '#');
}

static bool bad(pnm_reader *r, const char *problem) {
    if (!r->problem)
        r->problem = problem;
    return false;
}

static void skip_blanks(pnm_reader *r) {
    while (r->at < r->end && (is_blank(*r->at) || *r->at == '#')) {
        if (*r->at == '#') {
            const uint8_t *line_end = memchr(r->at, '\n', (size_t)(r->end - r->at));
            r->at = line_end ? line_end : r->end;
        } else {
            r->at++;
        }
    }
}

/* Below 2^32, which is more than any of them may be. */
static bool read_number(pnm_reader *r, size_t *number) {
    skip_blanks(r);
    if (r->at == r->end)
        return bad(r, "is truncated");
    if (*r->at < '0' || *r->at > '9')
        return bad(r, "holds something that is not a number");
    *number = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        *number = *number * 10 + (size_t)(*r->at - '0');
        if (*number > UINT32_MAX)
            return bad(r, "holds an absurdly large number");
    }
    return r->at == r->end || is_blank(*r->at) || *r->at == '#' ||
           bad(r, "holds something that is not a number");
}

static bool read_header(pnm_reader *r, pnm_header *header) {
    const unsigned kind = (unsigned)(r->at[1] - '0');
    header->plain = kind <= 3;
    header->bitmap = kind == 1 || kind == 4;
    header->channels = kind == 3 || kind == 6 ? 3 : 1;
    header->largest = 1;
    r->at += 2;
    if (!read_number(r, &header->width) || !read_number(r, &header->height) ||
        (!header->bitmap && !read_number(r, &header->largest)))
        return false;
    if (header->width == 0 || header->height == 0)
        return bad(r, "has no pixels");
    if (header->largest == 0 || header->largest > UINT16_MAX)
        return bad(r, "its largest value is not from 1 to 65535");
    if (header->height > PICTURE_PIXELS_MAX / header->width)
        return bad(r, PICTURE_TOO_LARGE);
    if (r->at == r->end)
        return bad(r, "is truncated");
    if (!is_blank(*r->at))
        return bad(r, "has no blank before its raster");
    r->at++;
    return true;
}

static size_t raw_row_bytes(const pnm_header *header) {
    if (header->bitmap)
        return (header->width + 7) / 8;
    return header->width * header->channels * (header->largest > UINT8_MAX ? 2 : 1);
}

/* Does the raster have the right length? Checked before memory is allocated. */
static bool check_length(pnm_reader *r, const pnm_header *header) {
    const size_t available = (size_t)(r->end - r->at);
    /* A plain sample takes a digit, and a separator unless it is a bit. */
    const size_t samples = header->width * header->height * header->channels;
    const size_t wanted = !header->plain   ? raw_row_bytes(header) * header->height
                          : header->bitmap ? samples
                                           : 2 * samples - 1;
    if (available < wanted)
        return bad(r, "is truncated: its raster is shorter than its size says");
    if (!header->plain && available > wanted)
        return bad(r, "has bytes after its raster; save it again");
    return true;
}

static bool read_plain_bit(pnm_reader *r, size_t *bit) {
    skip_blanks(r);
    if (r->at == r->end)
        return bad(r, "is truncated");
    if (*r->at != '0' && *r->at != '1')
        return bad(r, "holds something that is not a bit");
    *bit = *r->at++ == '1';
    return true;
}

static size_t raw_sample(const pnm_reader *r, const pnm_header *header, size_t row, size_t i) {
    const uint8_t *start = r->at + row * raw_row_bytes(header);
    if (header->bitmap)
        return start[i / 8] >> (7 - i % 8) & 1;
    if (header->largest <= UINT8_MAX)
        return start[i];
    return (size_t)start[2 * i] << 8 | start[2 * i + 1];
}

static bool read_sample(pnm_reader *r, const pnm_header *header, size_t row, size_t i,
                        size_t *sample) {
    if (!header->plain)
        *sample = raw_sample(r, header, row, i);
    else if (!(header->bitmap ? read_plain_bit(r, sample) : read_number(r, sample)))
        return false;
    return *sample <= header->largest || bad(r, "holds a sample above its largest value");
}

static bool read_raster(pnm_reader *r, const pnm_header *header, picture *decoded) {
    const size_t repeat = decoded->channels / header->channels;
    for (size_t row = 0; row < header->height; row++) {
        uint16_t *out = picture_row(decoded, row);
        for (size_t i = 0; i < header->width * header->channels; i++) {
            size_t sample;
            if (!read_sample(r, header, row, i, &sample))
                return false;
            /* As a colour, a set bit is black. */
            if (header->bitmap && decoded->channels == 3)
                sample = 1 - sample;
            for (size_t c = 0; c < repeat; c++)
                *out++ = (uint16_t)sample;
        }
        if (!picture_rows_done(decoded, row + 1))
            return bad(r, PICTURE_STOPPED);
    }
    if (header->plain) {
        skip_blanks(r);
        if (r->at != r->end)
            return bad(r, "has something after its raster; save it again");
    }
    return true;
}

bool pnm_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                picture *decoded, cli_problem *problem) {
    pnm_reader r = {data, data + size, NULL};
    pnm_header header = {0};
    picture_begin(decoded);
    bool done = read_header(&r, &header) && check_length(&r, &header);
    const size_t channels = picture_channels(purpose, header.channels == 1);
    if (done && purpose == PICTURE_MEASURED) {
        decoded->width = header.width;
        decoded->height = header.height;
        return true;
    }
    decoded->largest = (uint16_t)header.largest;
    if (done && !picture_allocate(decoded, header.width, header.height, channels, 1))
        return out_of_memory(problem, file);
    if (done)
        done = read_raster(&r, &header, decoded);
    if (!done) {
        picture_free(decoded);
        bad_input(problem, file, "bad PNM: %s", r.problem);
    }
    return done;
}

bool pnm_locate(const uint8_t *data, size_t size, pnm_place *place) {
    pnm_reader r = {data, data + size, NULL};
    pnm_header header = {0};
    if (!pnm_recognize(data, size) || !read_header(&r, &header) || header.plain || header.bitmap ||
        !check_length(&r, &header))
        return false;
    *place = (pnm_place){.width = header.width,
                         .height = header.height,
                         .channels = header.channels,
                         .largest = header.largest,
                         .sample_bytes = header.largest > UINT8_MAX ? 2 : 1,
                         .offset = (size_t)(r.at - data)};
    return header.largest == UINT8_MAX || header.largest == UINT16_MAX;
}
