/* Draw a small scene for the demonstration: a picture with texture, shading and noise, the true
 * label of each pixel, and the outputs of two classifiers.
 *
 *   scene DIRECTORY                 writes image.png, truth.png, unary.npy, network.npy and
 *                                   palette.txt
 *   scene DIRECTORY LABELS.npy      prints the accuracy and the mean intersection over union of a
 *                                   labelling, both in per cent
 *
 * The first classifier looks at single pixels, so most of its errors are scattered, but some come
 * in patches. unary.npy holds its -ln p. The second resembles a network: it has one output per 8 x
 * 8 pixels, blurred over their surroundings, and errs only in patches. network.npy holds its
 * probabilities, at an eighth of the resolution. truth.png is an indexed PNG: the index is the
 * label, the palette is for viewing, and palette.txt names its colours. Everything is generated
 * from a fixed seed.
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
#define LABELS 5

enum label { TREE, HOUSE, SKY, HILL, ROAD };

/* Colours that can be told apart with any common form of colour vision (Okabe and Ito). */
static const uint8_t palette[LABELS][3] = {
    {0, 114, 178}, {230, 159, 0}, {86, 180, 233}, {0, 158, 115}, {240, 228, 66}};

static const char *const names[LABELS] = {"tree", "house", "sky", "hill", "road"};

static uint64_t random_state = 1;

/* Uniform on [0, 1): the upper bits of a linear congruential generator are good enough for a
 * picture. */
static double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / (double)(1 << 24);
}

/* ---- geometry ------------------------------------------------------------------------------- */

static double horizon_at(double x) {
    return 100 + 12 * sin(x / 37);
}

static double road_middle_at(double y) {
    return 118 + 0.012 * (y - 100) * (y - 100);
}

static enum label label_at(double x, double y) {
    const double crown = hypot(x - 185, 1.15 * (y - 62));
    if (crown < 27 + 2.5 * sin(9 * atan2(y - 62, x - 185)) ||
        (fabs(x - 185) < 4 && y > 62 && y < 128))
        return TREE;
    if (fabs(x - 62) < 32 && y > 66 && y < 120)
        return HOUSE;
    if (y <= 66 && y > 40 && fabs(x - 62) < 1.45 * (y - 40))
        return HOUSE;
    if (y > horizon_at(x) && fabs(x - road_middle_at(y)) < 0.16 * (y - 84))
        return ROAD;
    return y > horizon_at(x) ? HILL : SKY;
}

/* ---- appearance ----------------------------------------------------------------------------- */

typedef struct colour {
    double r, g, b;
} colour;

static colour lit(colour c, double light) {
    return (colour){c.r * light, c.g * light, c.b * light};
}

static colour sky_at(double x, double y) {
    const double cloud = fmax(0, sin(x / 31 + 1) * sin(y / 13 + 0.6 * sin(x / 23)) - 0.35);
    const double haze = y / HEIGHT;
    return (colour){105 + 70 * haze + 150 * cloud, 155 + 45 * haze + 110 * cloud,
                    215 + 15 * haze + 45 * cloud};
}

static colour house_at(int x, int y) {
    const bool window = y > 80 && y < 98 && ((x > 40 && x < 52) || (x > 72 && x < 84));
    const bool roof = y <= 66;
    const bool mortar = y % 6 == 0 || (x + 5 * (y / 6 % 2)) % 10 == 0;
    if (window)
        return (colour){70 + x - 40.0, 85, 110};
    if (roof)
        return lit((colour){140, 62, 48}, y % 5 == 0 ? 0.75 : 1);
    return lit((colour){205, 165, 125}, (mortar ? 0.78 : 1) * (x > 62 ? 0.72 : 1));
}

static colour colour_at(enum label label, int x, int y) {
    switch (label) {
    case SKY:
        return sky_at(x, y);
    case HILL:
        return lit((colour){112, 140, 62},
                   0.8 + 0.3 * (y - 88.0) / 72 + 0.09 * sin(0.9 * x + 0.5 * y) * sin(0.23 * x));
    case HOUSE:
        return house_at(x, y);
    case TREE:
        return fabs(x - 185.0) < 4 && y > 90
                   ? lit((colour){105, 78, 55}, x < 185 ? 1 : 0.7)
                   : lit((colour){62, 98, 44}, 1 - 0.45 * ((x - 185) + (y - 62.0)) / 54 +
                                                   0.2 * sin(1.7 * x) * cos(1.3 * y));
    case ROAD:
        return lit((colour){142, 134, 128}, 0.92 + 0.1 * sin(2.1 * x) * sin(1.9 * y));
    }
    return (colour){0, 0, 0};
}

static uint8_t with_noise(double value) {
    const double noisy = value + 22 * (uniform() + uniform() - 1);
    return (uint8_t)(noisy < 0 ? 0 : noisy > 255 ? 255 : noisy);
}

/* ---- the first classifier ------------------------------------------------------------------- */

#define PATCH 10 /* pixels per side */

/* The label that is wrongly preferred in this patch of the picture, or LABELS. */
static uint8_t patch_error(int x, int y) {
    uint32_t hash = (uint32_t)(x / PATCH) * 374761393u + (uint32_t)(y / PATCH) * 668265263u;
    hash = (hash ^ hash >> 13) * 1274126177u;
    hash ^= hash >> 16;
    return hash % 7 == 0 ? (uint8_t)(hash / 7 % LABELS) : LABELS;
}

/* The classifier's energies for a pixel. */
static void guess(enum label truth, int x, int y, float energies[LABELS]) {
    const bool right = uniform() < 0.42;
    const uint8_t favourite = right ? (uint8_t)truth : (uint8_t)(uniform() * LABELS);
    const uint8_t wrong = patch_error(x, y);
    double weights[LABELS], sum = 0;
    for (int i = 0; i < LABELS; i++) {
        weights[i] = (i == favourite ? 1.2 : 0.2) + (i == wrong ? 0.7 : 0) + 0.6 * uniform();
        sum += weights[i];
    }
    for (int i = 0; i < LABELS; i++)
        energies[i] = (float)-log(weights[i] / sum);
}

/* ---- the network ---------------------------------------------------------------------------- */

#define CELL 8
#define REACH 8 /* half the side of what a cell sees, in pixels */
#define COLUMNS (WIDTH / CELL)
#define ROWS (HEIGHT / CELL)

/* Probabilities of a cell: the labels around it, or in some cells a wrong one. */
static void answer(int column, int row, float probabilities[LABELS]) {
    const int centre_x = column * CELL + CELL / 2, centre_y = row * CELL + CELL / 2;
    const uint8_t wrong = patch_error(column * PATCH / 2, row * PATCH / 2);
    double weights[LABELS] = {0}, sum = 0;
    for (int y = centre_y - REACH; y < centre_y + REACH; y++)
        for (int x = centre_x - REACH; x < centre_x + REACH; x++)
            weights[label_at(x, y)] += 1.0 / (4 * REACH * REACH);
    for (int i = 0; i < LABELS; i++) {
        weights[i] += 0.03 + (i == wrong ? 0.9 : 0);
        sum += weights[i];
    }
    for (int i = 0; i < LABELS; i++)
        probabilities[i] = (float)(weights[i] / sum);
}

/* ---- files ---------------------------------------------------------------------------------- */

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
static bool write_npy(const char *directory, const char *name, int rows, int columns,
                      const float *values) {
    char path[4096], header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    char description[118];
    const int length = snprintf(description, sizeof description,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }",
                                rows, columns, LABELS);
    memcpy(header + 10, description, (size_t)length);
    header[sizeof header - 1] = '\n';
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    const size_t count = (size_t)columns * (size_t)rows * LABELS;
    const bool written = file && fwrite(header, sizeof header, 1, file) == 1 &&
                         fwrite(values, sizeof *values, count, file) == count;
    if ((file && fclose(file) != 0) || !written) {
        fprintf(stderr, "scene: cannot write %s\n", path);
        return false;
    }
    return true;
}

/* One byte per pixel, as written by the command; the header's length is at byte 8. */
static bool read_labels(const char *path, uint8_t *labels) {
    uint8_t start[10];
    FILE *file = fopen(path, "rb");
    const size_t count = (size_t)WIDTH * HEIGHT;
    const bool read = file && fread(start, sizeof start, 1, file) == 1 && start[6] == 1 &&
                      fseek(file, start[8] + 256 * start[9], SEEK_CUR) == 0 &&
                      fread(labels, 1, count, file) == count;
    if (file)
        fclose(file);
    if (!read)
        fprintf(stderr, "scene: cannot read %s\n", path);
    return read;
}

static bool score(const char *directory, const char *name) {
    static uint8_t labels[HEIGHT][WIDTH];
    char path[4096];
    size_t right[LABELS] = {0}, shown[LABELS] = {0}, there[LABELS] = {0}, all_right = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!read_labels(path, &labels[0][0]))
        return false;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const enum label truth = label_at(x, y);
            const uint8_t label = labels[y][x] < LABELS ? labels[y][x] : 0;
            there[truth]++;
            shown[label]++;
            right[truth] += label == (uint8_t)truth;
            all_right += label == (uint8_t)truth;
        }
    double overlap = 0;
    for (size_t i = 0; i < LABELS; i++)
        overlap += (double)right[i] / (double)(there[i] + shown[i] - right[i]);
    printf("%.2f %.2f\n", 100.0 * (double)all_right / (WIDTH * HEIGHT), 100 * overlap / LABELS);
    return true;
}

static bool write_palette(const char *directory) {
    char path[4096];
    snprintf(path, sizeof path, "%s/palette.txt", directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; file && i < LABELS; i++)
        fprintf(file, "#%02x%02x%02x %s\n", palette[i][0], palette[i][1], palette[i][2], names[i]);
    if (file && fclose(file) == 0)
        return true;
    fprintf(stderr, "scene: cannot write %s\n", path);
    return false;
}

static bool draw(const char *directory) {
    static uint8_t image[HEIGHT][WIDTH][3], truth[HEIGHT][WIDTH];
    static float unary[HEIGHT][WIDTH][LABELS], network[ROWS][COLUMNS][LABELS];
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const enum label label = label_at(x, y);
            const colour seen = colour_at(label, x, y);
            truth[y][x] = (uint8_t)label;
            image[y][x][0] = with_noise(seen.r);
            image[y][x][1] = with_noise(seen.g);
            image[y][x][2] = with_noise(seen.b);
            guess(label, x, y, unary[y][x]);
        }
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            answer(column, row, network[row][column]);
    return write_png(directory, "image.png", false, image) &&
           write_png(directory, "truth.png", true, truth) && write_palette(directory) &&
           write_npy(directory, "unary.npy", HEIGHT, WIDTH, &unary[0][0][0]) &&
           write_npy(directory, "network.npy", ROWS, COLUMNS, &network[0][0][0]);
}

int main(int count, char **arguments) {
    if (count == 2)
        return draw(arguments[1]) ? 0 : 1;
    if (count == 3)
        return score(arguments[1], arguments[2]) ? 0 : 1;
    fprintf(stderr, "usage: scene DIRECTORY [LABELS.npy]\n");
    return 2;
}
