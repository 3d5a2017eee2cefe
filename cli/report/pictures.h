/* Pictures of a labelling: rows from the top, interleaved RGB, from 0 to 255. */
#ifndef DCRF_CLI_REPORT_PICTURES_H
#define DCRF_CLI_REPORT_PICTURES_H

#include "io/image.h"
#include "model/palette.h"

#include <dcrf/model.h>

#include <stdint.h>

/* What pictures show: the photograph, or a slice of a volume, scaled from the volume's darkest
 * to its brightest voxel; every `step`th row and column of it. */
typedef struct scene {
    size_t width;
    size_t height;
    size_t step;
    size_t image_width;
    size_t first; /* pixel of the image */
    uint16_t *colours;
    double darkest;
    double brightest;
} scene;

/* The photograph or the middle slice; false if out of memory. */
bool scene_new(scene *shown, const cli_image *image, size_t step);

/* Show another slice of the same volume. */
void scene_move(scene *shown, const cli_image *image, size_t slice);
void scene_free(scene *shown);

/* Each returns an array that the caller frees, NULL if out of memory. Labels and confidence are
 * those of the whole image. */
uint16_t *picture_overlay(const scene *shown, const uint16_t *labels, const palette *colours);

/* The labels themselves. */
uint16_t *picture_labels(const scene *shown, const uint16_t *labels);

/* The scene with lines where labels change, dark with a light rim, visible on any background. */
uint16_t *picture_boundaries(const scene *shown, const uint16_t *labels);

/* The scene in pale grey where one label is left, coloured where there are more: two orange,
 * three red, more purple. */
uint16_t *picture_proof(const scene *shown, const uint16_t *labels_left);

/* The scene in pale grey, with strokes in the colours of their labels: the pixels that unary
 * energies from scribbles fix to one label. */
uint16_t *picture_strokes(const scene *shown, const dcrf_model *model, const palette *colours);

/* A label map over the scene, as picture_overlay draws labels; pale grey where it is below zero,
 * unknown. */
uint16_t *picture_mask(const scene *shown, const int32_t *map, const palette *colours);

/* Numbers from 0 to 1 as grey values. */
uint16_t *picture_grey(const scene *shown, const float *numbers);

#endif
