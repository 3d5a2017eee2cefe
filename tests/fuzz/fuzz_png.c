/* Fuzz target: the PNG reader, for colours and for numbers. Checksums are not checked in this build
 * (see png_read.c), so that damage reaches the decoder. */
#include "io/png_format.h"
#include "target.h"

#include <stdlib.h>

/* Every sample must be there and within its depth. */
static void check_pixels(const png_pixels *pixels) {
    const size_t count = pixels->width * pixels->height * pixels->channels;
    const unsigned largest = pixels->bit_depth == 16 ? UINT16_MAX : UINT8_MAX;
    for (size_t i = 0; i < count; i++)
        if (pixels->samples[i] > largest)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int purpose = PNG_AS_COLOURS; purpose <= PNG_AS_NUMBERS; purpose++) {
        cli_problem problem = {0, ""};
        png_pixels pixels;
        if (png_pixels_decode(data, size, (png_purpose)purpose, "input", &pixels, &problem))
            check_pixels(&pixels);
        png_pixels_free(&pixels);
    }
    return 0;
}
