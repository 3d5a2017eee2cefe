#include "report/flicker.h"

#include <math.h>

/* By which channels may differ in a pixel that stays what it is: noise, not motion. */
#define STILL_COLOUR 10.0

static bool is_still(const float *now, const float *next, size_t channels) {
    for (size_t c = 0; c < channels; c++)
        if (fabs((double)now[c] - (double)next[c]) > STILL_COLOUR)
            return false;
    return true;
}

flicker flicker_of(const cli_image *video, const uint16_t *labels) {
    const size_t pixels = video->width * video->height;
    flicker measured = {0};
    for (size_t i = 0; i + pixels < image_pixels(video); i++) {
        const float *now = video->colours + i * video->channels;
        if (!is_still(now, now + pixels * video->channels, video->channels))
            continue;
        measured.still++;
        measured.changed += labels[i] != labels[i + pixels];
    }
    return measured;
}

double flicker_share(const flicker *measured) {
    return measured->still > 0 ? (double)measured->changed / (double)measured->still : 0;
}
