#include "report/pictures.h"

#include <dcrf/scribbles.h>
#include <math.h>
#include <stdlib.h>

#define OVERLAY_OPACITY 0.55

static uint16_t to_sample(double value) {
    return !(value > 0) ? 0 : value < 255 ? (uint16_t)(value + 0.5) : 255;
}

static size_t scene_pixels(const scene *shown) {
    return shown->width * shown->height;
}

static uint16_t *new_picture(const scene *shown) {
    return malloc(scene_pixels(shown) * IMAGE_CHANNELS * sizeof(uint16_t));
}

/* The image pixel at pixel `a` of the scene. */
static size_t pixel_of(const scene *shown, size_t a) {
    if (shown->step == 1)
        return shown->first + a;
    return shown->first + (a / shown->width * shown->image_width + a % shown->width) * shown->step;
}

/* ---- the scene ------------------------------------------------------------------------------ */

/* Voxels can have any scale; a photograph keeps its own. */
static void find_range(const cli_image *image, double *low, double *high) {
    *low = 0;
    *high = 255;
    if (!image_is_volume(image) || image_is_video(image))
        return;
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < image_pixels(image) * image->channels; i++) {
        *low = fmin(*low, (double)image->colours[i]);
        *high = fmax(*high, (double)image->colours[i]);
    }
    if (!(*high > *low))
        *high = *low + 1;
}

void scene_move(scene *shown, const cli_image *image, size_t slice) {
    shown->first = slice * image->width * image->height;
    for (size_t a = 0; a < scene_pixels(shown); a++)
        for (size_t c = 0; c < IMAGE_CHANNELS; c++) {
            const size_t channel = c < image->channels ? c : image->channels - 1;
            const double value =
                (double)image->colours[pixel_of(shown, a) * image->channels + channel];
            shown->colours[a * IMAGE_CHANNELS + c] =
                to_sample(255 * (value - shown->darkest) / (shown->brightest - shown->darkest));
        }
}

bool scene_new(scene *shown, const cli_image *image, size_t step) {
    *shown = (scene){.width = (image->width - 1) / step + 1,
                     .height = (image->height - 1) / step + 1,
                     .step = step,
                     .image_width = image->width};
    shown->colours = new_picture(shown);
    if (!shown->colours)
        return false;
    find_range(image, &shown->darkest, &shown->brightest);
    scene_move(shown, image, image->depth / 2);
    return true;
}

void scene_free(scene *shown) {
    free(shown->colours);
    shown->colours = NULL;
}

/* ---- labels on top -------------------------------------------------------------------------- */

/* Label 0, if black, is the background and stays transparent. */
static bool is_background(const palette *colours, uint16_t label) {
    const uint8_t *rgb = colours->rgb[0];
    return label == 0 && rgb[0] == 0 && rgb[1] == 0 && rgb[2] == 0;
}

static void lay_over(const scene *shown, uint16_t *picture, size_t a, uint16_t label,
                     const palette *colours) {
    const double opacity = is_background(colours, label) ? 0 : OVERLAY_OPACITY;
    for (size_t c = 0; c < IMAGE_CHANNELS; c++) {
        const double below = shown->colours[a * IMAGE_CHANNELS + c];
        const double above = colours->rgb[label % PALETTE_COLOURS][c];
        picture[a * IMAGE_CHANNELS + c] = to_sample(below + opacity * (above - below));
    }
}

uint16_t *picture_overlay(const scene *shown, const uint16_t *labels, const palette *colours) {
    uint16_t *picture = new_picture(shown);
    for (size_t a = 0; picture && a < scene_pixels(shown); a++)
        lay_over(shown, picture, a, labels[pixel_of(shown, a)], colours);
    return picture;
}

uint16_t *picture_labels(const scene *shown, const uint16_t *labels) {
    uint16_t *picture = malloc(scene_pixels(shown) * sizeof *picture);
    for (size_t a = 0; picture && a < scene_pixels(shown); a++)
        picture[a] = labels[pixel_of(shown, a)];
    return picture;
}

/* Does the label change to the right of or below a pixel? */
static bool is_boundary(const scene *shown, const uint16_t *labels, size_t x, size_t y) {
    const size_t a = y * shown->width + x;
    const uint16_t label = labels[pixel_of(shown, a)];
    return (x + 1 < shown->width && label != labels[pixel_of(shown, a + 1)]) ||
           (y + 1 < shown->height && label != labels[pixel_of(shown, a + shown->width)]);
}

static void paint(const scene *shown, uint16_t *picture, size_t x, size_t y, uint16_t sample) {
    for (size_t c = 0; c < IMAGE_CHANNELS; c++)
        picture[(y * shown->width + x) * IMAGE_CHANNELS + c] = sample;
}

static void paint_rim(const scene *shown, uint16_t *picture, size_t x, size_t y) {
    for (size_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < shown->height; v++)
        for (size_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < shown->width; u++)
            paint(shown, picture, u, v, 255);
}

uint16_t *picture_boundaries(const scene *shown, const uint16_t *labels) {
    uint16_t *picture = new_picture(shown);
    for (size_t i = 0; picture && i < scene_pixels(shown) * IMAGE_CHANNELS; i++)
        picture[i] = shown->colours[i];
    for (int pass = 0; picture && pass < 2; pass++)
        for (size_t y = 0; y < shown->height; y++)
            for (size_t x = 0; x < shown->width; x++) {
                if (!is_boundary(shown, labels, x, y))
                    continue;
                if (pass == 0)
                    paint_rim(shown, picture, x, y);
                else
                    paint(shown, picture, x, y, 0);
            }
    return picture;
}

/* A pale grey on which colours stand out. */
static double pale(const uint16_t rgb[IMAGE_CHANNELS]) {
    return 110 + 0.5 * (rgb[0] + rgb[1] + rgb[2]) / 3.0;
}

uint16_t *picture_proof(const scene *shown, const uint16_t *labels_left) {
    static const double colours[][IMAGE_CHANNELS] = {{255, 150, 0}, {220, 30, 0}, {120, 0, 140}};
    uint16_t *picture = new_picture(shown);
    for (size_t a = 0; picture && a < scene_pixels(shown); a++) {
        const uint16_t *below = shown->colours + a * IMAGE_CHANNELS;
        const size_t left = labels_left[pixel_of(shown, a)];
        for (size_t c = 0; c < IMAGE_CHANNELS; c++)
            picture[a * IMAGE_CHANNELS + c] =
                to_sample(left <= 1 ? pale(below) : colours[left > 4 ? 2 : left - 2][c]);
    }
    return picture;
}

/* The label that a stroke fixes a pixel to: every other one has a prohibitive energy. `labels`
 * if there is none. */
static size_t bound_label(const float *row, size_t labels) {
    size_t best = 0;
    for (size_t i = 1; i < labels; i++)
        if (row[i] < row[best])
            best = i;
    for (size_t i = 0; i < labels; i++)
        if (i != best && row[i] - row[best] < DCRF_SCRIBBLES_BINDING_ENERGY / 2)
            return labels;
    return best;
}

uint16_t *picture_strokes(const scene *shown, const dcrf_model *model, const palette *colours) {
    size_t stride;
    const float *unary = dcrf_model_unary(model, &stride);
    const size_t labels = dcrf_model_labels(model);
    uint16_t *picture = new_picture(shown);
    for (size_t a = 0; picture && a < scene_pixels(shown); a++) {
        const size_t label = bound_label(unary + pixel_of(shown, a) * stride, labels);
        for (size_t c = 0; c < IMAGE_CHANNELS; c++)
            picture[a * IMAGE_CHANNELS + c] =
                label < labels ? colours->rgb[label % PALETTE_COLOURS][c]
                               : to_sample(pale(shown->colours + a * IMAGE_CHANNELS));
    }
    return picture;
}

uint16_t *picture_mask(const scene *shown, const int32_t *map, const palette *colours) {
    uint16_t *picture = new_picture(shown);
    for (size_t a = 0; picture && a < scene_pixels(shown); a++) {
        const int32_t label = map[pixel_of(shown, a)];
        if (label >= 0) {
            lay_over(shown, picture, a, (uint16_t)label, colours);
            continue;
        }
        for (size_t c = 0; c < IMAGE_CHANNELS; c++)
            picture[a * IMAGE_CHANNELS + c] = to_sample(pale(shown->colours + a * IMAGE_CHANNELS));
    }
    return picture;
}

uint16_t *picture_grey(const scene *shown, const float *numbers) {
    uint16_t *picture = malloc(scene_pixels(shown) * sizeof *picture);
    for (size_t a = 0; picture && a < scene_pixels(shown); a++)
        picture[a] = to_sample(255 * (double)numbers[pixel_of(shown, a)]);
    return picture;
}
