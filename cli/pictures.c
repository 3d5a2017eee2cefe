#include "pictures.h"

#include <math.h>
#include <stdlib.h>

#define OVERLAY_OPACITY 0.55

static uint16_t to_sample(double value) {
    return (uint16_t)lround(fmin(fmax(value, 0), 255));
}

static uint16_t *new_picture(const cli_image *image) {
    return calloc(image->width * image->height, IMAGE_CHANNELS * sizeof(uint16_t));
}

uint16_t *picture_of_image(const cli_image *image) {
    uint16_t *picture = new_picture(image);
    const size_t count = image->width * image->height * IMAGE_CHANNELS;
    for (size_t i = 0; picture && i < count; i++)
        picture[i] = to_sample((double)image->colours[i]);
    return picture;
}

uint16_t *picture_overlay(const cli_image *image, const uint16_t *labels, const palette *colours) {
    uint16_t *picture = new_picture(image);
    for (size_t a = 0; picture && a < image->width * image->height; a++)
        for (size_t c = 0; c < IMAGE_CHANNELS; c++) {
            const double below = (double)image->colours[a * IMAGE_CHANNELS + c];
            const double above = colours->rgb[labels[a] % PALETTE_COLOURS][c];
            picture[a * IMAGE_CHANNELS + c] = to_sample(below + OVERLAY_OPACITY * (above - below));
        }
    return picture;
}

/* ---- boundaries ----------------------------------------------------------------------------- */

/* Does the label change to the right of or below a pixel? */
static bool is_boundary(const cli_image *image, const uint16_t *labels, size_t x, size_t y) {
    const size_t a = y * image->width + x;
    return (x + 1 < image->width && labels[a] != labels[a + 1]) ||
           (y + 1 < image->height && labels[a] != labels[a + image->width]);
}

static void paint(const cli_image *image, uint16_t *picture, size_t x, size_t y, uint16_t sample) {
    for (size_t c = 0; c < IMAGE_CHANNELS; c++)
        picture[(y * image->width + x) * IMAGE_CHANNELS + c] = sample;
}

static void paint_rim(const cli_image *image, uint16_t *picture, size_t x, size_t y) {
    for (size_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < image->height; v++)
        for (size_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < image->width; u++)
            paint(image, picture, u, v, 255);
}

uint16_t *picture_boundaries(const cli_image *image, const uint16_t *labels) {
    uint16_t *picture = picture_of_image(image);
    for (int pass = 0; picture && pass < 2; pass++)
        for (size_t y = 0; y < image->height; y++)
            for (size_t x = 0; x < image->width; x++) {
                if (!is_boundary(image, labels, x, y))
                    continue;
                if (pass == 0)
                    paint_rim(image, picture, x, y);
                else
                    paint(image, picture, x, y, 0);
            }
    return picture;
}

/* ---- confidence ----------------------------------------------------------------------------- */

float *confidence_of(const solution *found, size_t variables) {
    float *confidence = calloc(variables, sizeof *confidence);
    for (size_t a = 0; confidence && a < variables; a++)
        confidence[a] = found->marginals[a * found->stride + found->labels[a]];
    return confidence;
}

uint16_t *picture_confidence(const solution *found, size_t variables) {
    uint16_t *picture = calloc(variables, sizeof *picture);
    for (size_t a = 0; picture && a < variables; a++)
        picture[a] =
            to_sample(255 * (double)found->marginals[a * found->stride + found->labels[a]]);
    return picture;
}
