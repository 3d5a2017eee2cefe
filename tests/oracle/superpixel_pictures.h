/* Pictures for the tests of superpixels, and the library's regions for them. */
#ifndef DCRF_TESTS_SUPERPIXEL_PICTURES_H
#define DCRF_TESTS_SUPERPIXEL_PICTURES_H

#include "superpixel/method.h"

#include <dcrf/dcrf.h>

enum kind { CONSTANT, NOISE, GRADIENT, PATCHES, FIELDS, CHECKERBOARD, KINDS };

uint32_t next_random(uint32_t *state);

/* width x height x 3; free it. */
uint8_t *draw(enum kind kind, size_t width, size_t height, uint32_t seed);

struct picture {
    dcrf_grid grid;
    uint8_t *rgb; /* owned */
    dcrf_view view;
    size_t pixels;
};

struct picture picture_of(enum kind kind, size_t width, size_t height);
/* Clear it after use. */
struct dcrf_colours colours_of(const struct picture *p, enum dcrf_colour_space space);
/* The library's regions; free them. */
int32_t *regions_of(const struct picture *p, const dcrf_superpixel_settings *settings,
                    size_t threads, size_t *count);
dcrf_superpixel_settings settings_of(dcrf_superpixel_method method, size_t min_region_px);

#endif
