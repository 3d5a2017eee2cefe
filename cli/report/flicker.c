#include "report/flicker.h"

#include <math.h>

/* Channels of a still pixel may differ by this much: noise, not motion. */
#define STILL_COLOUR 10.0

static bool is_still(const float *now, const float *next, size_t channels) {
    for (size_t c = 0; c < channels; c++)
        if (fabs((double)now[c] - (double)next[c]) > STILL_COLOUR)
            return false;
    return true;
}

void flicker_add(flicker *measured, const float *colours, const float *next_colours,
                 size_t channels, const uint16_t *labels, const uint16_t *next_labels,
                 size_t pixels) {
    for (size_t i = 0; i < pixels; i++) {
        if (!is_still(colours + i * channels, next_colours + i * channels, channels))
            continue;
        measured->still++;
        measured->changed += labels[i] != next_labels[i];
    }
}

flicker flicker_of(const cli_image *video, const uint16_t *labels) {
    const size_t pixels = video->width * video->height;
    flicker measured = {0};
    for (size_t first = 0; first + pixels < image_pixels(video); first += pixels) {
        const float *colours = video->colours + first * video->channels;
        flicker_add(&measured, colours, colours + pixels * video->channels, video->channels,
                    labels + first, labels + first + pixels, pixels);
    }
    return measured;
}

double flicker_share(const flicker *measured) {
    return measured->still > 0 ? (double)measured->changed / (double)measured->still : 0;
}
