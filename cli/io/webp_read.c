/* WebP pictures, through libwebp if it was available at build time. */
#include "io/picture_formats.h"

#include <string.h>

bool webp_recognize(const uint8_t *data, size_t size) {
    return size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}

#ifdef HAVE_WEBP

#include <stdlib.h>
#include <webp/decode.h>

#define LOSSLESS 2 /* libwebp's value */

bool webp_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                 picture *decoded, cli_problem *problem) {
    WebPBitstreamFeatures features;
    picture_begin(decoded);
    if (WebPGetFeatures(data, size, &features) != VP8_STATUS_OK)
        return bad_input(problem, file, "bad WebP: its header is broken or truncated");
    if (features.has_animation)
        return bad_input(problem, file, "bad WebP: it is animated; save one picture of it");
    const size_t width = (size_t)features.width, height = (size_t)features.height;
    const char *refusal = picture_refusal(width, height, size, purpose);
    if (refusal)
        return bad_input(problem, file, "bad WebP: %s", refusal);
    decoded->width = width;
    decoded->height = height;
    if (purpose == PICTURE_MEASURED)
        return true;
    if (purpose == PICTURE_AS_IS && features.format != LOSSLESS)
        return bad_input(problem, file, "is a WebP" PICTURE_ROUNDS_NUMBERS);
    const size_t row_bytes = 3 * width;
    decoded->largest = UINT8_MAX;
    uint8_t *rgb = picture_has_room(decoded, width, height, 3, height, 2 * row_bytes * height) &&
                           picture_allocate(decoded, width, height, 3, height)
                       ? malloc(row_bytes * height)
                       : NULL;
    const bool room = rgb != NULL;
    bool done = room ? WebPDecodeRGBInto(data, size, rgb, row_bytes * height, (int)row_bytes) ||
                           bad_input(problem, file, "bad WebP: its data are broken or truncated")
                     : out_of_memory(problem, file);
    for (size_t i = 0; done && i < row_bytes * height; i++)
        decoded->samples[i] = rgb[i];
    done = done && (picture_rows_done(decoded, height) ||
                    bad_input(problem, file, "bad WebP: " PICTURE_STOPPED));
    if (!done)
        picture_free(decoded);
    free(rgb);
    return done;
}

#else

bool webp_decode(const uint8_t *data, size_t size, picture_purpose purpose, const char *file,
                 picture *decoded, cli_problem *problem) {
    (void)data, (void)size, (void)purpose;
    picture_begin(decoded);
    return bad_input(problem, file,
                     "is a WebP picture, and this dcrf was built without libwebp; convert it to "
                     "PNG");
}

#endif
