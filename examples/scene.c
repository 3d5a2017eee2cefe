/* Draw a small scene for the demonstration: an image with texture, what each of its pixels shows,
 * and a noisy guess at that.
 *
 *   scene DIRECTORY           writes image.png, truth.png, guess.png and unary.npy
 *   scene DIRECTORY NAME      reads NAME.npy, energies like those of unary.npy, and writes
 *                             NAME.png, the label of the lowest energy at each pixel
 *
 * The guess is a classifier that looks at single pixels: it believes in the right label with the
 * probability 0.1 and in some label, drawn at random, otherwise. unary.npy holds its -ln p, and
 * guess.png its favourites. Label maps are indexed PNGs: the index is the label, the palette is for
 * the eye. Everything follows from a fixed seed.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 240
#define HEIGHT 160
#define LABELS 4

enum label { SKY, HILL, HOUSE, TREE };

static const uint8_t palette[LABELS][3] = {
    {150, 180, 215}, {95, 150, 70}, {190, 110, 80}, {55, 100, 45}};

static uint64_t random_state = 1;

/* Uniform on [0, 1): a linear congruential generator's upper bits do for a picture. */
static double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / (double)(1 << 24);
}

static enum label label_at(double x, double y) {
    if (hypot(x - 180, 1.2 * (y - 70)) < 26 || (fabs(x - 180) < 4 && y > 70 && y < 130))
        return TREE;
    if (fabs(x - 80) < 30 && y > 70 && y < 118)
        return HOUSE;
    if (y <= 70 && y > 45 && fabs(x - 80) < 1.5 * (y - 45))
        return HOUSE;
    return y > 105 + 12 * sin(x / 37) ? HILL : SKY;
}

static uint8_t colour_at(enum label label, int x, int y, int channel) {
    double value = palette[label][channel];
    switch (label) {
    case SKY:
        value += 0.25 * y;
        break;
    case HILL:
        value += 12 * sin(0.9 * x + 0.5 * y);
        break;
    case HOUSE:
        value -= y % 8 == 0 || (x + 6 * (y / 8 % 2)) % 12 == 0 ? 45 : 0;
        break;
    case TREE:
        value += 12 * sin(1.7 * x) * cos(1.3 * y);
        break;
    }
    value += 30 * (uniform() - 0.5);
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* The classifier's probabilities for a pixel; returns the label it likes best. */
static uint8_t guess(enum label truth, float energies[LABELS]) {
    const bool right = uniform() < 0.1;
    const uint8_t favourite = right ? (uint8_t)truth : (uint8_t)(uniform() * LABELS);
    double weights[LABELS], sum = 0;
    for (int i = 0; i < LABELS; i++) {
        weights[i] = (i == favourite ? 1.2 : 0.2) + 0.6 * uniform();
        sum += weights[i];
    }
    for (int i = 0; i < LABELS; i++)
        energies[i] = (float)-log(weights[i] / sum);
    return favourite;
}

static bool write_png(const char *directory, const char *name, bool indexed, const void *pixels) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    png_image image = {.version = PNG_IMAGE_VERSION, .width = WIDTH, .height = HEIGHT};
    image.format = indexed ? PNG_FORMAT_RGB_COLORMAP : PNG_FORMAT_RGB;
    image.colormap_entries = indexed ? LABELS : 0;
    if (png_image_write_to_file(&image, path, 0, pixels, 0, indexed ? palette : NULL))
        return true;
    fprintf(stderr, "scene: %s: %s\n", path, image.message);
    return false;
}

/* NumPy's format, version 1: a header padded with blanks to 128 bytes, then the floats. */
static bool write_npy(const char *directory, const float *values) {
    char path[4096], header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    char description[118];
    const int length = snprintf(description, sizeof description,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }",
                                HEIGHT, WIDTH, LABELS);
    memcpy(header + 10, description, (size_t)length);
    header[sizeof header - 1] = '\n';
    snprintf(path, sizeof path, "%s/unary.npy", directory);
    FILE *file = fopen(path, "wb");
    const size_t count = (size_t)WIDTH * HEIGHT * LABELS;
    const bool written = file && fwrite(header, sizeof header, 1, file) == 1 &&
                         fwrite(values, sizeof *values, count, file) == count;
    if ((file && fclose(file) != 0) || !written) {
        fprintf(stderr, "scene: cannot write %s\n", path);
        return false;
    }
    return true;
}

/* Only what is written here and by the command: version 1, the floats after the header. */
static bool read_npy(const char *directory, const char *name, float *values) {
    char path[4096];
    uint8_t start[10];
    snprintf(path, sizeof path, "%s/%s.npy", directory, name);
    FILE *file = fopen(path, "rb");
    const size_t count = (size_t)WIDTH * HEIGHT * LABELS;
    const bool read = file && fread(start, sizeof start, 1, file) == 1 && start[6] == 1 &&
                      fseek(file, start[8] + 256 * start[9], SEEK_CUR) == 0 &&
                      fread(values, sizeof *values, count, file) == count;
    if (file)
        fclose(file);
    if (!read)
        fprintf(stderr, "scene: cannot read %s\n", path);
    return read;
}

static bool write_lowest(const char *directory, const char *name) {
    static uint8_t lowest[HEIGHT * WIDTH];
    static float energies[HEIGHT * WIDTH][LABELS];
    if (!read_npy(directory, name, &energies[0][0]))
        return false;
    for (size_t a = 0; a < (size_t)HEIGHT * WIDTH; a++)
        for (uint8_t i = 1; i < LABELS; i++)
            if (energies[a][i] < energies[a][lowest[a]])
                lowest[a] = i;
    char file[256];
    snprintf(file, sizeof file, "%s.png", name);
    return write_png(directory, file, true, lowest);
}

static bool draw(const char *directory) {
    static uint8_t image[HEIGHT][WIDTH][3], truth[HEIGHT][WIDTH], favourites[HEIGHT][WIDTH];
    static float unary[HEIGHT][WIDTH][LABELS];
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const enum label label = label_at(x, y);
            truth[y][x] = (uint8_t)label;
            for (int channel = 0; channel < 3; channel++)
                image[y][x][channel] = colour_at(label, x, y, channel);
            favourites[y][x] = guess(label, unary[y][x]);
        }
    return write_png(directory, "image.png", false, image) &&
           write_png(directory, "truth.png", true, truth) &&
           write_png(directory, "guess.png", true, favourites) &&
           write_npy(directory, &unary[0][0][0]);
}

int main(int count, char **arguments) {
    if (count == 2)
        return draw(arguments[1]) ? 0 : 1;
    if (count == 3)
        return write_lowest(arguments[1], arguments[2]) ? 0 : 1;
    fprintf(stderr, "usage: scene DIRECTORY [NAME]\n");
    return 2;
}
