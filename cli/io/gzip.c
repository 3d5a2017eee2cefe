#include "io/gzip.h"

#include <limits.h>

#define ZLIB_CONST /* zlib does not modify its input */
#include <zlib.h>

#define GZIP_WINDOW (MAX_WBITS + 16) /* tells zlib to use the gzip header */
#define BUFFER_BYTES 4096            /* on the stack, which may be only a few pages */
/* Padding is short; gigabytes of it are an attack. */
#define BYTES_AFTER_MAX ((size_t)1 << 20)

bool gzip_recognize(const uint8_t *data, size_t size) {
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

/* The size of the next piece: zlib counts with 32 bits. */
static uInt piece(size_t left) {
    return left < UINT_MAX / 2 ? (uInt)left : UINT_MAX / 2;
}

static bool bad_stream(const z_stream *z, int status, const char *file, cli_problem *problem) {
    if (status == Z_MEM_ERROR)
        return out_of_memory(problem, file);
    return bad_input(problem, file, "its compressed data are broken (gzip): %s",
                     z->msg                  ? z->msg
                     : status == Z_BUF_ERROR ? "they end too early"
                                             : "no valid stream");
}

/* Inflate up to `capacity` bytes into `out`, then, if asked, inflate and discard the rest. */
static bool inflate_members(z_stream *z, size_t size, uint8_t *out, size_t capacity,
                            bool to_the_end, size_t *produced, const char *file,
                            cli_problem *problem) {
    uint8_t dropped[BUFFER_BYTES];
    const uint8_t *start = z->next_in, *end = start + size;
    size_t after = 0; /* beyond what was wanted */
    *produced = 0;
    for (;;) {
        const bool full = *produced == capacity;
        if (full && !to_the_end)
            return true;
        z->avail_in = piece((size_t)(end - z->next_in));
        z->next_out = full ? dropped : out + *produced;
        z->avail_out = full ? BUFFER_BYTES : piece(capacity - *produced);
        const uInt room = z->avail_out;
        const int status = inflate(z, Z_NO_FLUSH);
        after += full ? room - z->avail_out : 0;
        if (after > BYTES_AFTER_MAX)
            return bad_input(problem, file, "holds much more than its header says; save it again");
        *produced += full ? 0 : room - z->avail_out;
        if (status == Z_STREAM_END) {
            const size_t left = (size_t)(end - z->next_in);
            /* Another member, or padding, which gzip ignores too. */
            if (!gzip_recognize(z->next_in, left))
                return true;
            if (inflateReset(z) != Z_OK)
                return bad_stream(z, Z_DATA_ERROR, file, problem);
        } else if (status != Z_OK) {
            return bad_stream(z, status, file, problem);
        }
    }
}

static bool inflate_file(const uint8_t *data, size_t size, uint8_t *out, size_t capacity,
                         bool to_the_end, size_t *produced, const char *file,
                         cli_problem *problem) {
    z_stream z = {.next_in = data};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return out_of_memory(problem, file);
    const bool done = inflate_members(&z, size, out, capacity, to_the_end, produced, file, problem);
    inflateEnd(&z);
    return done;
}

bool gzip_inflate_start(const uint8_t *data, size_t size, uint8_t *out, size_t capacity,
                        size_t *produced, const char *file, cli_problem *problem) {
    return inflate_file(data, size, out, capacity, false, produced, file, problem);
}

bool gzip_inflate(const uint8_t *data, size_t size, uint8_t *out, size_t wanted, const char *file,
                  cli_problem *problem) {
    size_t produced;
    if (!inflate_file(data, size, out, wanted, true, &produced, file, problem))
        return false;
    return produced == wanted ||
           bad_input(problem, file, "is truncated: %zu bytes are needed and %zu are there", wanted,
                     produced);
}

/* Deflate one part; after the last one the stream is ended. */
static int deflate_part(z_stream *z, FILE *stream, const gzip_part *part, bool last) {
    uint8_t buffer[BUFFER_BYTES];
    const uint8_t *end = (const uint8_t *)part->data + part->bytes;
    int status;
    z->next_in = part->data;
    do {
        const size_t left = (size_t)(end - z->next_in);
        z->avail_in = piece(left);
        z->next_out = buffer;
        z->avail_out = BUFFER_BYTES;
        status = deflate(z, last && z->avail_in == left ? Z_FINISH : Z_NO_FLUSH);
        fwrite(buffer, 1, BUFFER_BYTES - z->avail_out, stream);
    } while (status == Z_OK && (last || z->next_in < end));
    return status;
}

bool gzip_write(FILE *stream, const char *file, const gzip_part *parts, size_t count,
                cli_problem *problem) {
    z_stream z = {0};
    int status = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL,
                              Z_DEFAULT_STRATEGY);
    if (status != Z_OK)
        return out_of_memory(problem, file);
    for (size_t i = 0; i < count && status == Z_OK; i++)
        status = deflate_part(&z, stream, &parts[i], i + 1 == count);
    deflateEnd(&z);
    return status == Z_STREAM_END || failure(problem, file, "cannot be compressed");
}
