/* Well-formed files around fuzzed content, so that inputs get past the decoders.
 *
 * The first byte selects what is made of the rest: a PNG with a valid header and checksums whose
 * compressed rows are the bytes; or a NIfTI volume of the bytes, compressed by gzip. */
#include "check.h"
#include "io/nifti.h"
#include "io/picture_formats.h"
#include "made_file.h"
#include "target.h"

#include <zlib.h>

static made_file made;

static void check_png(const uint8_t *data, size_t size) {
    if (size < 6 || size > 60000)
        return;
    const size_t width = data[1] % 40u + 1, height = data[2] % 40u + 1;
    if (!make_png(&made, data[0] % MADE_PNG_KINDS, width, height, data[3] % 2 != 0, data + 3,
                  data + 4, size - 4))
        return;
    cli_problem problem = {0, ""};
    picture decoded;
    if (picture_decode(made.data, made.size, PICTURE_AS_IS, "input", &decoded, &problem))
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
    stream.next_out = made.data;
    stream.avail_out = MADE_BYTES_MAX;
    const bool is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    const size_t used = stream.total_out;
    deflateEnd(&stream);
    if (!is_whole || !nifti_recognize(made.data, used))
        return;
    if (nifti_parse(made.data, used, "input", &volume, &problem)) {
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
