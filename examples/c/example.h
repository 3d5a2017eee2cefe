/* Shared by the examples: a small picture with the output of a bad classifier, a model of them, and
 * error handling. Your program has its own arrays instead.
 *
 * SPDX-License-Identifier: MIT */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <dcrf/dcrf.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 96, HEIGHT = 64, PIXELS = WIDTH * HEIGHT, LABELS = 3 };

/* Sky above, ground below, and a disc between them. */
static inline int true_label(int x, int y) {
    const int dx = x - WIDTH / 2, dy = y - HEIGHT / 2;
    return dx * dx + dy * dy < 20 * 20 ? 2 : y > HEIGHT / 2;
}

static inline double noise(void) {
    return rand() / (double)RAND_MAX - 0.5;
}

/* Three bytes per pixel, and one logit per pixel and label. */
static inline void draw(unsigned char *rgb, float *logits) {
    static const unsigned char colours[LABELS][3] = {{90, 140, 220}, {80, 150, 70}, {200, 60, 50}};
    srand(1);
    for (int p = 0; p < PIXELS; p++) {
        const int label = true_label(p % WIDTH, p / WIDTH);
        for (int c = 0; c < 3; c++)
            rgb[3 * p + c] = (unsigned char)(colours[label][c] + 30 * noise());
        for (int i = 0; i < LABELS; i++)
            logits[LABELS * p + i] = (float)((i == label) + 4 * noise());
    }
}

static inline double accuracy(const uint16_t *labels) {
    int right = 0;
    for (int p = 0; p < PIXELS; p++)
        right += labels[p] == true_label(p % WIDTH, p / WIDTH);
    return 100.0 * right / (double)PIXELS;
}

/* Errors are values with a message; a program decides what to do with them. */
static inline void check(dcrf_status status, const dcrf_error *error) {
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", dcrf_status_name(status), error->message);
    exit(1);
}

/* The model of solve.c, with fixed kernels. */
static inline dcrf_model *make_model(const unsigned char *rgb, const float *logits) {
    static float energies[PIXELS * LABELS];
    dcrf_error error;
    dcrf_model *model;
    const dcrf_grid grid = dcrf_grid_2d(WIDTH, HEIGHT);
    const dcrf_view image = dcrf_view_interleaved(rgb, DCRF_U8, &grid, 3);
    const dcrf_view scores = dcrf_view_interleaved(logits, DCRF_F32, &grid, LABELS);
    const dcrf_view unary = dcrf_view_interleaved(energies, DCRF_F32, &grid, LABELS);
    const dcrf_kernel smooth = dcrf_kernel_spatial(2, 0.5);
    const dcrf_kernel edges = dcrf_kernel_bilateral(20, 13, image, 2);
    check(dcrf_unary_energies(&scores, &grid, DCRF_UNARY_LOGITS, 1, &grid, NULL, energies,
                              PIXELS * LABELS, &error),
          &error);
    check(dcrf_model_new(&model, &grid, LABELS, &error), &error);
    check(dcrf_model_set_unary(model, &unary, &error), &error);
    check(dcrf_model_add_kernel(model, &smooth, &error), &error);
    check(dcrf_model_add_kernel(model, &edges, &error), &error);
    return model;
}

#endif
