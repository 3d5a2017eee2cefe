#include "picture.h"

#include <math.h>
#include <stdlib.h>

/* A fixed hash of a lattice point, uniform on [-1, 1]. */
static double hash_noise(int32_t x, int32_t y, uint32_t seed) {
    uint32_t h = (uint32_t)x * 0x85ebca6bu ^ (uint32_t)y * 0xc2b2ae35u ^ seed * 0x27d4eb2fu;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return (double)(h ^ h >> 15) / 2147483648.0 - 1;
}

static double smooth_noise(double x, double y, uint32_t seed) {
    const double x0 = floor(x), y0 = floor(y);
    const double u = x - x0, v = y - y0;
    const double s = u * u * (3 - 2 * u), t = v * v * (3 - 2 * v);
    const int32_t i = (int32_t)x0, j = (int32_t)y0;
    const double top = hash_noise(i, j, seed) * (1 - s) + hash_noise(i + 1, j, seed) * s;
    const double bottom = hash_noise(i, j + 1, seed) * (1 - s) + hash_noise(i + 1, j + 1, seed) * s;
    return top * (1 - t) + bottom * t;
}

/* Octaves from `coarsest` pixels down, each with half the amplitude of the previous. */
static double natural_noise(double x, double y, double coarsest, uint32_t seed) {
    double sum = 0, amplitude = 1;
    for (double scale = coarsest; scale >= 2; scale /= 2, amplitude /= 2)
        sum += amplitude * smooth_noise(x / scale, y / scale, seed++);
    return sum;
}

#define DISCS 12

/* Which disc covers a point of the unit square; DISCS if none does. */
static size_t disc_at(double x, double y) {
    for (size_t i = 0; i < DISCS; i++) {
        const int32_t k = (int32_t)i;
        const double dx = x - (0.5 + 0.5 * hash_noise(k, 1, 7));
        const double dy = y - (0.5 + 0.5 * hash_noise(k, 2, 7));
        if (hypot(dx, dy) < 0.12 + 0.08 * hash_noise(k, 3, 7))
            return i;
    }
    return DISCS;
}

static uint8_t to_byte(double value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

uint8_t *picture_draw(size_t width, size_t height) {
    uint8_t *rgb = malloc(width * height * 3);
    for (size_t a = 0; rgb && a < width * height; a++) {
        const double x = (double)(a % width), y = (double)(a / width);
        const size_t disc = disc_at(x / (double)width, y / (double)height);
        const double light = 128 + 55 * natural_noise(x, y, (double)width / 3, 11);
        for (size_t c = 0; c < 3; c++) {
            const int32_t channel = (int32_t)c, shape = (int32_t)disc;
            const double tint = 60 * hash_noise(shape, channel, 3) +
                                18 * natural_noise(x, y, (double)width / 4, 31 + 10 * (uint32_t)c);
            const double sensor = 5 * hash_noise((int32_t)a, channel, 5);
            rgb[a * 3 + c] = to_byte(light + tint + sensor);
        }
    }
    return rgb;
}

float *picture_labels(size_t width, size_t height, size_t labels, size_t stride) {
    float *y = calloc(width * height * stride, sizeof *y);
    for (size_t a = 0; y && a < width * height; a++) {
        const double column = (double)(a % width), row = (double)(a / width);
        const size_t disc = disc_at(column / (double)width, row / (double)height);
        double sum = 0;
        for (size_t i = 0; i < labels; i++) {
            const double score = (disc % labels == i ? 3 : 0) +
                                 2 * natural_noise(column, row, 40, 101 + 10 * (uint32_t)i);
            y[a * stride + i] = (float)exp(score);
            sum += exp(score);
        }
        for (size_t i = 0; i < labels; i++)
            y[a * stride + i] /= (float)sum;
    }
    return y;
}
