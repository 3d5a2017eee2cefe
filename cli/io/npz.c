/* A ZIP file ends with a record that locates its directory; the directory has an entry per
 * member, with its sizes and the offset of its local header. Archives of 4 GiB and more (ZIP64)
 * are refused. */
#include "io/npz.h"

#include "io/npy.h"
#include "io/room.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#define END_BYTES 22
#define COMMENT_MAX 65535
#define ENTRY_BYTES 46
#define HEAD_BYTES 30
#define STORED 0
#define DEFLATED 8
#define NAMES_BYTES 160

typedef struct member {
    const uint8_t *name;
    size_t name_length;
    unsigned method;
    const uint8_t *packed;
    size_t packed_bytes;
    size_t bytes;
} member;

static size_t number_at(const uint8_t *at, size_t bytes) {
    size_t number = 0;
    for (size_t i = bytes; i-- > 0;)
        number = number << 8 | at[i];
    return number;
}

bool npz_recognize(const uint8_t *data, size_t size) {
    return size >= 4 && (memcmp(data, "PK\3\4", 4) == 0 || memcmp(data, "PK\5\6", 4) == 0);
}

static const uint8_t *find_end(const file_bytes *bytes) {
    for (size_t back = END_BYTES; back <= bytes->size && back <= END_BYTES + COMMENT_MAX; back++) {
        const uint8_t *at = bytes->data + bytes->size - back;
        if (memcmp(at, "PK\5\6", 4) == 0)
            return at;
    }
    return NULL;
}

/* Read the directory entry at `*at`, which is advanced to the next one; false: it is broken. */
static bool read_entry(const file_bytes *bytes, size_t *at, member *found) {
    if (*at > bytes->size || bytes->size - *at < ENTRY_BYTES ||
        memcmp(bytes->data + *at, "PK\1\2", 4) != 0)
        return false;
    const uint8_t *entry = bytes->data + *at;
    const size_t name_length = number_at(entry + 28, 2);
    const size_t whole =
        ENTRY_BYTES + name_length + number_at(entry + 30, 2) + number_at(entry + 32, 2);
    const size_t head = number_at(entry + 42, 4);
    if (bytes->size - *at < whole || head > bytes->size || bytes->size - head < HEAD_BYTES ||
        memcmp(bytes->data + head, "PK\3\4", 4) != 0)
        return false;
    const size_t skipped =
        HEAD_BYTES + number_at(bytes->data + head + 26, 2) + number_at(bytes->data + head + 28, 2);
    *found = (member){entry + ENTRY_BYTES,
                      name_length,
                      (unsigned)number_at(entry + 10, 2),
                      bytes->data + head + skipped,
                      number_at(entry + 20, 4),
                      number_at(entry + 24, 4)};
    *at += whole;
    const bool is_encrypted = (entry[8] & 1) != 0;
    return !is_encrypted && bytes->size - head >= skipped &&
           found->packed_bytes <= bytes->size - head - skipped &&
           (found->method != STORED || found->packed_bytes == found->bytes);
}

static bool inflate_member(const member *from, uint8_t *out) {
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)from->packed,
                       .avail_in = (uInt)from->packed_bytes,
                       .next_out = out,
                       .avail_out = (uInt)from->bytes};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return false;
    const bool done = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return done;
}

static bool broken(const char *file, cli_problem *problem) {
    return bad_input(problem, file, "is a broken .npz archive; save it again");
}

/* The bytes of a member; the caller frees them. */
static bool unpack(const member *from, const char *file, uint8_t **out, cli_problem *problem) {
    /* Deflate cannot expand by a factor above 1032. */
    if ((from->method != STORED && from->method != DEFLATED) || from->bytes == 0 ||
        from->bytes / 1040 > from->packed_bytes)
        return broken(file, problem);
    if (!room_check(from->bytes, file, problem))
        return false;
    *out = malloc(from->bytes);
    if (!*out)
        return out_of_memory(problem, file);
    if (from->method == STORED)
        memcpy(*out, from->packed, from->bytes);
    else if (!inflate_member(from, *out)) {
        free(*out);
        return broken(file, problem);
    }
    return true;
}

static bool has_pixels(const uint8_t *data, size_t size, const char *file) {
    npy_array array;
    cli_problem ignored;
    return npy_parse(data, size, file, &array, &ignored) && array.axes >= 2;
}

/* "logits, scale" */
static void add_name(char names[NAMES_BYTES], const member *of) {
    const size_t used = strlen(names);
    const size_t length = of->name_length > 4 ? of->name_length - 4 : of->name_length;
    snprintf(names + used, NAMES_BYTES - used, "%s%.*s", used ? ", " : "",
             length < NAMES_BYTES ? (int)length : NAMES_BYTES, (const char *)of->name);
}

bool npz_unpack(file_bytes *bytes, const char *file, cli_problem *problem) {
    if (!npz_recognize(bytes->data, bytes->size))
        return true;
    const uint8_t *end = find_end(bytes);
    char names[NAMES_BYTES] = "";
    uint8_t *chosen = NULL;
    size_t chosen_bytes = 0, candidates = 0;
    bool done = end != NULL || broken(file, problem);
    const size_t count = done ? number_at(end + 10, 2) : 0;
    size_t at = done ? number_at(end + 16, 4) : 0;
    for (size_t i = 0; done && i < count; i++) {
        member next = {0};
        uint8_t *data = NULL;
        done = read_entry(bytes, &at, &next) ? unpack(&next, file, &data, problem)
                                             : broken(file, problem);
        if (!done)
            break;
        const bool is_candidate = has_pixels(data, next.bytes, file);
        add_name(names, &next);
        candidates += is_candidate;
        if (is_candidate && !chosen) {
            chosen = data;
            chosen_bytes = next.bytes;
        } else {
            free(data);
        }
    }
    if (done && candidates != 1)
        done = bad_input(problem, file,
                         "is a .npz archive with %s (it has %.140s); save the one that is meant "
                         "with numpy.save",
                         candidates ? "several arrays that could be meant" : "no array over pixels",
                         count ? names : "none");
    if (done) {
        file_free(bytes);
        *bytes = (file_bytes){chosen, chosen_bytes, false};
    } else {
        free(chosen);
    }
    return done;
}
