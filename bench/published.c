#include "published.h"

#include "core/rng.h"
#include "measure.h"

const struct published published_settings[PUBLISHED_COUNT] = {
    {21, 3, 3, 80, 13, 10}, {21, 1, 3, 67, 3, 4}, {3, 3, 3, 50, 5, 10}, {81, 1, 3, 67, 3, 4}};

float *published_unary(const struct published *setting, size_t width, size_t height) {
    const size_t labels = setting->labels, variables = width * height;
    const size_t present = labels < 5 ? labels : 5;
    float *unary = require(malloc(labels * variables * sizeof *unary));
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 1);
    for (size_t i = 0; i < labels; i++)
        for (size_t a = 0; a < variables; a++) {
            const size_t region = (a % width / 61 + a / width / 47 * 3) % present;
            unary[i * variables + a] =
                (float)(2 * dcrf_rng_uniform(&rng)) + (region == i ? 0.0f : 2.0f);
        }
    return unary;
}
