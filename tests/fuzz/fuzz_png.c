/* Fuzz target: the PNG reader, for colours and for numbers. Checksums are not checked in this build
 * (see png_read.c), so that damage reaches the decoder. */
#include "io/picture_formats.h"
#include "target.h"

#include <stdlib.h>

/* Every sample must be there and within its depth. */
static void check_pixels(const picture *pixels) {
    const size_t count = pixels->width * pixels->height * pixels->channels;
    const unsigned largest = pixels->largest;
    for (size_t i = 0; i < count; i++)
        if (pixels->samples[i] > largest)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int purpose = PICTURE_AS_COLOURS; purpose <= PICTURE_AS_IS; purpose++) {
        cli_problem problem = {0, ""};
        picture pixels;
        if (png_decode(data, size, (picture_purpose)purpose, "input", &pixels, &problem))
            check_pixels(&pixels);
        picture_free(&pixels);
    }
    return 0;
}
