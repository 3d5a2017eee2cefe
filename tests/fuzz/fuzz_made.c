/* Files that are well made around what was fuzzed, so that inputs get behind the decoders.
 *
 * The first byte says what is made of the rest: a PNG whose header is right and whose rows are the
 * bytes, compressed, with checksums; or the bytes, compressed by gzip, as a NIfTI volume. */
#include "check.h"
#include "io/nifti.h"
#include "io/picture_formats.h"
#include "target.h"

#include <zlib.h>

#define MADE_BYTES_MAX (1 << 20)
static uint8_t made[MADE_BYTES_MAX];

static void put_32(uint8_t *at, size_t value) {
    for (size_t i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Append a chunk whose content lies at made + used + 8 already; returns the new size. */
static size_t finish_chunk(size_t used, const char *type, size_t size) {
    put_32(made + used, size);
    memcpy(made + used + 4, type, 4);
    put_32(made + used + 8 + size, crc32(0, made + used + 4, (uInt)size + 4));
    return used + size + 12;
}

static size_t add_chunk(size_t used, const char *type, const uint8_t *content, size_t size) {
    if (size > 0)
        memcpy(made + used + 8, content, size);
    return finish_chunk(used, type, size);
}

static void check_png(const uint8_t *data, size_t size) {
    static const struct {
        uint8_t depth, colour, channels;
    } kinds[] = {{1, 0, 1}, {2, 0, 1},  {4, 0, 1},  {8, 0, 1}, {16, 0, 1},
                 {8, 2, 3}, {16, 2, 3}, {1, 3, 1},  {2, 3, 1}, {4, 3, 1},
                 {8, 3, 1}, {8, 4, 2},  {16, 4, 2}, {8, 6, 4}, {16, 6, 4}};
    if (size < 6 || size > 60000)
        return;
    const size_t kind = data[0] % (sizeof kinds / sizeof kinds[0]);
    const size_t width = data[1] % 40u + 1, height = data[2] % 40u + 1;
    uint8_t header[13] = {0};
    put_32(header, width);
    put_32(header + 4, height);
    header[8] = kinds[kind].depth;
    header[9] = kinds[kind].colour;
    header[12] = data[3] % 2;
    memcpy(made, "\x89PNG\r\n\x1a\n", 8);
    size_t used = add_chunk(8, "IHDR", header, sizeof header);
    if (kinds[kind].colour == 3)
        used = add_chunk(used, "PLTE", data + 3, 3);
    uLongf compressed = MADE_BYTES_MAX - 1024;
    if (compress(made + used + 8, &compressed, data + 4, (uLong)(size - 4)) != Z_OK)
        return;
    used = finish_chunk(used, "IDAT", compressed);
    used = add_chunk(used, "IEND", NULL, 0);
    cli_problem problem = {0, ""};
    picture decoded;
    if (picture_decode(made, used, PICTURE_AS_IS, "input", &decoded, &problem))
        fuzz_check(decoded.width == width && decoded.height == height);
    else
        fuzz_check_refused(&problem);
    picture_free(&decoded);
}

static void check_nifti(const uint8_t *data, size_t size) {
    z_stream stream = {0};
    cli_problem problem = {0, ""};
    nifti_volume volume;
    if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = made;
    stream.avail_out = MADE_BYTES_MAX;
    const bool is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    const size_t used = stream.total_out;
    deflateEnd(&stream);
    if (!is_whole || !nifti_recognize(made, used))
        return;
    if (nifti_parse(made, used, "input", &volume, &problem)) {
        fuzz_check(volume.size[0] > 0 && volume.size[1] > 0 && volume.size[2] > 0);
        nifti_free(&volume);
    } else {
        fuzz_check_refused(&problem);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > MADE_BYTES_MAX / 2)
        return 0;
    if (data[0] % 2 == 0)
        check_png(data + 1, size - 1);
    else
        check_nifti(data + 1, size - 1);
    return 0;
}
