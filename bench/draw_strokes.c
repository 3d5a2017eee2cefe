/* Straight strokes inside regions. A stroke joins two random pixels of a region's core: those at
 * least a quarter as deep inside as the deepest one. It is clipped to a length proportional to the
 * square root of the region's area. Of TRIES candidates, the longest that stays inside is drawn. */
#include "draw_strokes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_MAX 255
#define SHARE_MIN 0.01
#define LARGE_SHARE 0.2
#define REGIONS_MAX 3
#define TRIES 60

struct drawing {
    size_t width, height;
    int32_t *region; /* of every pixel */
    int32_t *depth;  /* steps to the nearest pixel outside the region */
    size_t *queue;   /* scratch */
    size_t *core;    /* pixels of the region where strokes may end */
    int32_t *strokes;
    int radius;
    uint64_t random;
};

static size_t draw_number(struct drawing *d, size_t below) {
    d->random = d->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(d->random >> 33) % below;
}

size_t number_labels(int32_t *truth, size_t width, size_t height, int32_t void_label) {
    size_t count[LABELS_MAX + 1] = {0}, labels = 0;
    int32_t number[LABELS_MAX + 1];
    for (size_t a = 0; a < width * height; a++)
        if (truth[a] >= 0 && truth[a] <= LABELS_MAX && truth[a] != void_label)
            count[truth[a]]++;
    for (size_t label = 0; label <= LABELS_MAX; label++)
        number[label] = (double)count[label] >= SHARE_MIN * (double)(width * height)
                            ? (int32_t)labels++
                            : void_label;
    for (size_t a = 0; a < width * height; a++)
        truth[a] = truth[a] >= 0 && truth[a] <= LABELS_MAX ? number[truth[a]] : void_label;
    return labels;
}

/* ---- regions -------------------------------------------------------------------------------- */

/* The neighbour of a pixel in one of four directions; false at the border. */
static int step(const struct drawing *d, size_t pixel, int direction, size_t *to) {
    const size_t x = pixel % d->width, y = pixel / d->width;
    switch (direction) {
    case 0:
        *to = pixel - 1;
        return x > 0;
    case 1:
        *to = pixel + 1;
        return x + 1 < d->width;
    case 2:
        *to = pixel - d->width;
        return y > 0;
    default:
        *to = pixel + d->width;
        return y + 1 < d->height;
    }
}

/* Flood-fill `region` from `from` over pixels with the same label; returns their number. */
static size_t fill(struct drawing *d, const int32_t *truth, size_t from, int32_t region) {
    size_t count = 0, next = 0, to;
    d->queue[count++] = from;
    d->region[from] = region;
    while (next < count) {
        const size_t pixel = d->queue[next++];
        for (int k = 0; k < 4; k++)
            if (step(d, pixel, k, &to) && d->region[to] < 0 && truth[to] == truth[from]) {
                d->region[to] = region;
                d->queue[count++] = to;
            }
    }
    return count;
}

/* Depths of the pixels of one region; returns the largest. The border of the image does not count
 * as an edge. */
static int32_t measure_depth(struct drawing *d, int32_t region) {
    size_t count = 0, next = 0, to;
    int32_t most = 0;
    for (size_t a = 0; a < d->width * d->height; a++) {
        d->depth[a] = d->region[a] == region ? INT32_MAX : 0;
        for (int k = 0; k < 4 && d->depth[a] == INT32_MAX; k++)
            if (step(d, a, k, &to) && d->region[to] != region)
                d->depth[a] = 1;
        if (d->depth[a] == 1)
            d->queue[count++] = a;
    }
    while (next < count) {
        const size_t pixel = d->queue[next++];
        most = d->depth[pixel];
        for (int k = 0; k < 4; k++)
            if (step(d, pixel, k, &to) && d->depth[to] > most + 1) {
                d->depth[to] = most + 1;
                d->queue[count++] = to;
            }
    }
    return most;
}

/* ---- strokes -------------------------------------------------------------------------------- */

struct line {
    double x, y, dx, dy;
    double length;
};

static size_t pixel_at(const struct drawing *d, const struct line *line, double share) {
    const size_t x = (size_t)(line->x + share * line->dx + 0.5);
    const size_t y = (size_t)(line->y + share * line->dy + 0.5);
    return y * d->width + x;
}

static int stays_inside(const struct drawing *d, const struct line *line, int32_t least_depth) {
    const int points = 1 + (int)(2 * line->length);
    for (int i = 0; i <= points; i++)
        if (d->depth[pixel_at(d, line, (double)i / points)] < least_depth)
            return 0;
    return 1;
}

static struct line propose(struct drawing *d, size_t core_count, double most_length) {
    const size_t from = d->core[draw_number(d, core_count)];
    const size_t to = d->core[draw_number(d, core_count)];
    struct line line = {(double)(from % d->width), (double)(from / d->width), 0, 0, 0};
    line.dx = (double)(to % d->width) - line.x;
    line.dy = (double)(to / d->width) - line.y;
    line.length = hypot(line.dx, line.dy);
    if (line.length > most_length) {
        line.dx *= most_length / line.length;
        line.dy *= most_length / line.length;
        line.length = most_length;
    }
    return line;
}

/* A disc around every point of the line, clipped to the region. */
static void paint(struct drawing *d, const struct line *line, int32_t region, int32_t label) {
    const int points = 1 + (int)(2 * line->length);
    for (int i = 0; i <= points; i++) {
        const size_t centre = pixel_at(d, line, (double)i / points);
        const long cx = (long)(centre % d->width), cy = (long)(centre / d->width);
        for (long y = cy - d->radius; y <= cy + d->radius; y++)
            for (long x = cx - d->radius; x <= cx + d->radius; x++)
                if (x >= 0 && y >= 0 && x < (long)d->width && y < (long)d->height &&
                    (x - cx) * (x - cx) + (y - cy) * (y - cy) <= d->radius * d->radius &&
                    d->region[(size_t)y * d->width + (size_t)x] == region)
                    d->strokes[(size_t)y * d->width + (size_t)x] = label;
    }
}

static void draw_in_region(struct drawing *d, int32_t region, int32_t label, size_t area,
                           int many) {
    const int32_t deepest = measure_depth(d, region);
    const int32_t margin = deepest < d->radius + 1 ? deepest : d->radius + 1;
    const int strokes =
        ((double)area > LARGE_SHARE * (double)(d->width * d->height) ? 3 : 1) + (many ? 2 : 0);
    size_t core_count = 0;
    for (size_t a = 0; a < d->width * d->height; a++)
        if (d->region[a] == region && d->depth[a] >= margin && 4 * d->depth[a] >= deepest)
            d->core[core_count++] = a;
    for (int k = 0; k < strokes; k++) {
        struct line best = {.length = -1};
        for (int t = 0; t < TRIES; t++) {
            const struct line line = propose(d, core_count, (many ? 1 : 0.5) * sqrt((double)area));
            if (line.length > best.length && stays_inside(d, &line, margin))
                best = line;
        }
        paint(d, &best, region, label);
    }
}

/* The up to REGIONS_MAX largest regions of a label, largest first; returns their number. */
static size_t find_regions(struct drawing *d, const int32_t *truth, int32_t label,
                           int32_t *next_region, int32_t regions[REGIONS_MAX],
                           size_t areas[REGIONS_MAX]) {
    size_t found = 0;
    for (size_t a = 0; a < d->width * d->height; a++) {
        if (truth[a] != label || d->region[a] >= 0)
            continue;
        int32_t region = (*next_region)++;
        size_t area = fill(d, truth, a, region);
        for (size_t k = 0; k < REGIONS_MAX; k++)
            if (k >= found || area > areas[k]) {
                const int32_t other_region = k < found ? regions[k] : -1;
                const size_t other_area = k < found ? areas[k] : 0;
                regions[k] = region;
                areas[k] = area;
                region = other_region;
                area = other_area;
                found += k >= found;
                if (region < 0)
                    break;
            }
    }
    return found;
}

int draw_strokes(const int32_t *truth, size_t width, size_t height, size_t labels, int many,
                 int32_t *strokes) {
    const size_t pixels = width * height;
    struct drawing d = {.width = width,
                        .height = height,
                        .region = malloc(pixels * sizeof *d.region),
                        .depth = malloc(pixels * sizeof *d.depth),
                        .queue = malloc(pixels * sizeof *d.queue),
                        .core = malloc(pixels * sizeof *d.core),
                        .strokes = strokes,
                        .radius = pixels > 40000 ? 2 : 1,
                        .random = 1};
    const int done = d.region && d.depth && d.queue && d.core;
    int32_t next_region = 0;
    for (size_t a = 0; done && a < pixels; a++)
        d.region[a] = strokes[a] = -1;
    for (size_t label = 0; done && label < labels; label++) {
        int32_t regions[REGIONS_MAX];
        size_t areas[REGIONS_MAX];
        const size_t found = find_regions(&d, truth, (int32_t)label, &next_region, regions, areas);
        for (size_t k = 0; k < found; k++)
            if (k == 0 || (many && (double)areas[k] >= SHARE_MIN * (double)pixels))
                draw_in_region(&d, regions[k], (int32_t)label, areas[k], many);
    }
    free(d.region);
    free(d.depth);
    free(d.queue);
    free(d.core);
    return done;
}
