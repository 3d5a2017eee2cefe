/* The energy of a labelling by plain loops over all pairs, in double, straight from the formula.
 *
 *   dcrf-plain-energy IMAGE UNARY.npy LABELS.png SIGMA,WEIGHT SIGMA,COLOUR_SIGMA,WEIGHT
 *
 * One spatial and one bilateral kernel, both normalized symmetrically; unaries are energies in the
 * order (height, width, labels). It shares no code with the library, only the command's file
 * readers, and leaves no pair out. Takes half a minute for 320 x 213 pixels. */
#include "io/file.h"
#include "io/image.h"
#include "io/label_map.h"
#include "io/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512

static void stop(const char *why) {
    fprintf(stderr, "dcrf-plain-energy: %s\n", why);
    exit(1);
}

/* A kernel: a product of one factor per coordinate. Coordinates are integers. */
struct kernel {
    size_t coordinates;
    const int32_t *place[5];
    double *factor[5]; /* exp(-d^2 / (2 sigma^2)) at the distance d */
};

/* The kernel values of pixel a with the `count` pixels from b on. */
static void find_values(const struct kernel *kernel, size_t a, size_t b, size_t count,
                        double *value) {
    for (size_t k = 0; k < count; k++)
        value[k] = 1;
    for (size_t f = 0; f < kernel->coordinates; f++)
        for (size_t k = 0; k < count; k++)
            value[k] *= kernel->factor[f][abs(kernel->place[f][a] - kernel->place[f][b + k])];
}

static void add_coordinate(struct kernel *kernel, const int32_t *place, size_t n, double sigma) {
    int32_t largest = 0;
    for (size_t a = 0; a < n; a++)
        largest = place[a] > largest ? place[a] : largest;
    double *factor = malloc(((size_t)largest + 1) * sizeof *factor);
    for (int32_t d = 0; d <= largest; d++)
        factor[d] = exp(-(double)d * (double)d / (2 * sigma * sigma));
    kernel->place[kernel->coordinates] = place;
    kernel->factor[kernel->coordinates++] = factor;
}

/* sum over all ordered pairs with different labels of k(a, b) / sqrt(row sum a * row sum b) */
static double sum_pairs(const struct kernel *kernel, size_t n, const int32_t *label) {
    double *scale = calloc(n, sizeof *scale), value[BLOCK], energy = 0;
    for (size_t a = 0; a < n; a++)
        for (size_t b = a; b < n; b += BLOCK) {
            const size_t count = n - b < BLOCK ? n - b : BLOCK;
            double sum = 0;
            find_values(kernel, a, b, count, value);
            for (size_t k = b == a; k < count; k++) {
                sum += value[k];
                scale[b + k] += value[k];
            }
            scale[a] += sum + (b == a); /* the diagonal is 1 */
        }
    for (size_t a = 0; a < n; a++)
        scale[a] = 1 / sqrt(scale[a]);
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b += BLOCK) {
            const size_t count = n - b < BLOCK ? n - b : BLOCK;
            double sum = 0;
            find_values(kernel, a, b, count, value);
            for (size_t k = 0; k < count; k++)
                sum += label[b + k] != label[a] ? value[k] * scale[b + k] : 0;
            energy += 2 * scale[a] * sum;
        }
    free(scale);
    return energy;
}

int main(int count, char **arguments) {
    double sigma, weight, reach, colour_sigma, colour_weight;
    cli_problem problem = {0};
    cli_image image;
    file_bytes bytes;
    npy_array array;
    float *unary;
    int32_t *label;
    if (count != 6 || sscanf(arguments[4], "%lf,%lf", &sigma, &weight) != 2 ||
        sscanf(arguments[5], "%lf,%lf,%lf", &reach, &colour_sigma, &colour_weight) != 3)
        stop("say IMAGE UNARY.npy LABELS.png SIGMA,WEIGHT SIGMA,COLOUR_SIGMA,WEIGHT");
    if (!image_read(arguments[1], &image, &problem) || image.channels != 3 ||
        !label_map_read(arguments[3], &image, &label, &problem) ||
        !file_read(arguments[2], &bytes, &problem) ||
        !npy_parse(bytes.data, bytes.size, arguments[2], &array, &problem) ||
        !npy_to_floats(&array, arguments[2], &unary, &problem))
        stop("a file cannot be read, or the image has no colours");
    const size_t n = image.width * image.height, labels = array.count / n;
    if (array.count != n * labels)
        stop("the unaries are not those of the image");
    int32_t *place[5];
    struct kernel near = {0}, alike = {0};
    double unaries = 0;
    for (size_t f = 0; f < 5; f++)
        place[f] = malloc(n * sizeof *place[f]);
    for (size_t a = 0; a < n; a++) {
        place[0][a] = (int32_t)(a % image.width);
        place[1][a] = (int32_t)(a / image.width);
        for (size_t c = 0; c < 3; c++) {
            place[2 + c][a] = (int32_t)image.colours[3 * a + c];
            if ((float)place[2 + c][a] != image.colours[3 * a + c])
                stop("colours are not whole numbers");
        }
        unaries += (double)unary[a * labels + (size_t)label[a]];
    }
    for (size_t f = 0; f < 2; f++)
        add_coordinate(&near, place[f], n, sigma);
    for (size_t f = 0; f < 5; f++)
        add_coordinate(&alike, place[f], n, f < 2 ? reach : colour_sigma);
    const double spatial = weight * sum_pairs(&near, n, label);
    const double bilateral = colour_weight * sum_pairs(&alike, n, label);
    printf("%.6f = unary %.6f + spatial %.6f + bilateral %.6f\n", unaries + spatial + bilateral,
           unaries, spatial, bilateral);
    return 0; /* the system reclaims the memory */
}
