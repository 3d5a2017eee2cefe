#include "io/sample_range.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLES ((size_t)UINT16_MAX + 1)
#define LEFT_OUT 0.001 /* share of the samples at either end */

struct sample_range {
    size_t counts[SAMPLES];
    size_t total;
};

sample_range *sample_range_new(void) {
    return calloc(1, sizeof(sample_range));
}

bool picture_is_nodata(const picture *described, const uint16_t *pixel) {
    bool is_nodata = described->has_nodata;
    for (size_t c = 0; is_nodata && c < described->channels; c++)
        is_nodata = pixel[c] == described->nodata;
    return is_nodata;
}

void sample_range_add(sample_range *range, const picture *described, const uint16_t *samples,
                      size_t pixels) {
    const size_t channels = described->channels;
    for (size_t i = 0; i < pixels; i++) {
        const uint16_t *pixel = samples + i * channels;
        if (picture_is_nodata(described, pixel))
            continue;
        for (size_t c = 0; c < channels; c++)
            range->counts[pixel[c]]++;
        range->total += channels;
    }
}

bool sample_range_matters(const picture *described) {
    return described->largest == UINT16_MAX;
}

/* The sample with this share of all samples below it, or above it if counted from the top. */
static size_t sample_after(const sample_range *range, double part, bool from_top) {
    const double beyond = part * (double)range->total;
    double seen = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        const size_t sample = from_top ? SAMPLES - 1 - i : i;
        seen += (double)range->counts[sample];
        if (seen > beyond)
            return sample;
    }
    return from_top ? SAMPLES - 1 : 0;
}

static sample_scale scale_between(const picture *described, double low, double high) {
    /* The number for sample 0, and the step between samples. */
    const double first = described->is_measured ? described->low : 0;
    const double step =
        described->is_measured ? (described->high - described->low) / described->largest : 1;
    const double wide = high > low ? high - low : step * described->largest;
    return (sample_scale){(low - first) / step, 255 * step / wide, false, low, high};
}

sample_scale sample_scale_of(const sample_range *range, const picture *described) {
    const double last = described->largest;
    if (!range || range->total == 0)
        return scale_between(described, described->is_measured ? described->low : 0,
                             described->is_measured ? described->high : last);
    const double first = described->is_measured ? described->low : 0;
    const double step = described->is_measured ? (described->high - described->low) / last : 1;
    const double smallest = first + step * (double)sample_after(range, 0, false);
    const double largest = first + step * (double)sample_after(range, 0, true);
    /* Usual scales: the full range of integers, or floats up to 1 or 255. */
    const double usual[] = {described->is_measured ? 1 : last, described->is_measured ? 255 : last};
    for (size_t i = 0; i < 2; i++)
        if (smallest >= 0 && largest <= usual[i] * (1 + 1e-6) && largest > usual[i] / 2)
            return scale_between(described, 0, usual[i]);
    sample_scale scale =
        scale_between(described, first + step * (double)sample_after(range, LEFT_OUT, false),
                      first + step * (double)sample_after(range, LEFT_OUT, true));
    scale.is_stretched = true;
    if (fabs(scale.low) < 1e-9 * scale.high) /* rounding error of the steps */
        scale.low = 0;
    return scale;
}
