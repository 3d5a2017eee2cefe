#include "superpixel_pictures.h"
#include "unit.h"

#include <stdlib.h>

uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

uint8_t *draw(enum kind kind, size_t width, size_t height, uint32_t seed) {
    uint8_t *rgb = malloc(width * height * 3);
    uint32_t state = seed;
    for (size_t a = 0; a < width * height; a++)
        for (size_t c = 0; c < 3; c++) {
            const size_t x = a % width, y = a / width;
            const uint32_t random = next_random(&state);
            uint32_t value = 90;
            if (kind == NOISE)
                value = random % 256;
            else if (kind == GRADIENT)
                value = (uint32_t)(x * 200 / width + y * 50 / height);
            else if (kind == PATCHES)
                value = (uint32_t)((x / 7 * 3 + y / 5 * 5 + c) % 4) * 60 + random % 12;
            else if (kind == FIELDS)
                value = (uint32_t)((x / 40 * 3 + y / 30 * 5 + c) % 4) * 60 + random % 12;
            else if (kind == CHECKERBOARD)
                value = (x + y) % 2 ? 255 : 0;
            rgb[a * 3 + c] = (uint8_t)value;
        }
    return rgb;
}

struct picture picture_of(enum kind kind, size_t width, size_t height) {
    struct picture p = {.grid = dcrf_grid_2d(width, height), .pixels = width * height};
    p.rgb = draw(kind, width, height, (uint32_t)(7 + kind));
    p.view = dcrf_view_interleaved(p.rgb, DCRF_U8, &p.grid, 3);
    return p;
}

struct dcrf_colours colours_of(const struct picture *p, enum dcrf_colour_space space) {
    struct dcrf_colours colours;
    dcrf_error error;
    assert_int_equal(dcrf_colours_new(&colours, &p->grid, &p->view, space, NULL, &error), DCRF_OK);
    return colours;
}

int32_t *regions_of(const struct picture *p, const dcrf_superpixel_settings *settings,
                    size_t threads, size_t *count) {
    dcrf_workspace *workspace = NULL;
    dcrf_error error;
    int32_t *regions = malloc(p->pixels * sizeof *regions);
    assert_int_equal(dcrf_workspace_new(&workspace, threads, &error), DCRF_OK);
    assert_int_equal(dcrf_superpixels(&p->grid, &p->view, settings, workspace, regions, p->pixels,
                                      count, &error),
                     DCRF_OK);
    dcrf_workspace_free(&workspace);
    return regions;
}

dcrf_superpixel_settings settings_of(dcrf_superpixel_method method, size_t min_region_px) {
    dcrf_superpixel_settings settings;
    dcrf_superpixel_settings_defaults(&settings);
    settings.method = method;
    settings.min_region_px = min_region_px;
    return settings;
}
