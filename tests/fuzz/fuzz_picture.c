/* Fuzz target: the picture reader DECODER, reading as colours and as is. PNG checksums are not
 * checked in this build (see png_read.c), so that damage reaches the decoder. */
#include "check.h"
#include "io/picture_formats.h"
#include "target.h"

#define MAP_PIXELS_MAX ((size_t)1 << 22)

/* Every sample must be present and within its depth. */
static void check_picture(const picture *decoded) {
    fuzz_check(decoded->width > 0 && decoded->height > 0 && decoded->largest > 0);
    fuzz_check(decoded->channels == 1 || decoded->channels == 3);
    const size_t count = decoded->width * decoded->height * decoded->channels;
    for (size_t i = 0; i < count; i++)
        fuzz_check(decoded->samples[i] <= decoded->largest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const picture_purpose purposes[] = {PICTURE_AS_COLOURS, PICTURE_AS_IS};
    /* Decoders may rely on their format having been recognized. */
    if (!RECOGNIZER(data, size))
        return 0;
    for (size_t i = 0; i < sizeof purposes / sizeof purposes[0]; i++) {
        cli_problem problem = {0, ""};
        picture decoded = {0};
        /* Maps are compared with their image before decoding, so that a small file cannot claim to
         * be huge. */
        if (purposes[i] == PICTURE_AS_IS &&
            DECODER(data, size, PICTURE_MEASURED, "input", &decoded, &problem) &&
            decoded.width * decoded.height > MAP_PIXELS_MAX)
            continue;
        if (DECODER(data, size, purposes[i], "input", &decoded, &problem))
            check_picture(&decoded);
        else
            fuzz_check(problem.text[0] && !decoded.samples);
        picture_free(&decoded);
    }
    return 0;
}
