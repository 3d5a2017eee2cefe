/* Block matching from coarse to fine. Frames are reduced by 2 again and again. In the smallest
 * ones, each block of frame A takes the step d, up to SEARCH pixels long, with the least
 *
 *   mean over a window around the block of |A(p) - B(p + d)| + STEP_COST |d - predicted|,
 *
 * where 0 is predicted. In the larger ones the steps of the block above and of its neighbours,
 * doubled, are tried, and then all steps that differ from the best one by a pixel. The second term
 * decides where a picture has no details. Windows are larger than blocks, and overlap. */
#include "prior/motion.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK 4        /* pixels */
#define MARGIN 4       /* pixels of a window around its block */
#define SEARCH 5       /* pixels of the smallest frames */
#define SMALLEST 32    /* the shorter side is not reduced below this */
#define STEP_COST 0.5F /* grey levels per pixel */
#define LEVELS 16

typedef struct plane {
    size_t width, height;
    float *grey;
} plane;

/* ---- planes --------------------------------------------------------------------------------- */

static plane plane_new(size_t width, size_t height) {
    return (plane){width, height, malloc(width * height * sizeof(float))};
}

static plane plane_of_frame(const cli_image *video, size_t frame) {
    plane grey = plane_new(video->width, video->height);
    const size_t pixels = video->width * video->height, channels = video->channels;
    for (size_t i = 0; grey.grey && i < pixels; i++) {
        const float *colour = video->colours + (frame * pixels + i) * channels;
        float sum = 0;
        for (size_t c = 0; c < channels; c++)
            sum += colour[c];
        grey.grey[i] = sum / (float)channels;
    }
    return grey;
}

static plane plane_reduced(const plane *large) {
    plane small = plane_new(large->width / 2, large->height / 2);
    for (size_t y = 0; small.grey && y < small.height; y++)
        for (size_t x = 0; x < small.width; x++) {
            const float *corner = large->grey + 2 * y * large->width + 2 * x;
            small.grey[y * small.width + x] =
                (corner[0] + corner[1] + corner[large->width] + corner[large->width + 1]) / 4;
        }
    return small;
}

static float grey_at(const plane *p, long x, long y) {
    const long right = (long)p->width - 1, bottom = (long)p->height - 1;
    const size_t column = (size_t)(x < 0 ? 0 : x > right ? right : x);
    const size_t row = (size_t)(y < 0 ? 0 : y > bottom ? bottom : y);
    return p->grey[row * p->width + column];
}

/* ---- blocks --------------------------------------------------------------------------------- */

typedef struct block_steps {
    size_t columns, rows;
    motion_step *steps;
} block_steps;

static block_steps blocks_new(const plane *p) {
    block_steps blocks = {(p->width + BLOCK - 1) / BLOCK, (p->height + BLOCK - 1) / BLOCK, NULL};
    blocks.steps = calloc(blocks.columns * blocks.rows, sizeof *blocks.steps);
    return blocks;
}

typedef struct block_search {
    const plane *a, *b;
    long left, top; /* of the block */
    motion_step predicted, best;
    float least;
} block_search;

static void try_step(block_search *s, motion_step step) {
    float sum = 0;
    const int side = BLOCK + 2 * MARGIN;
    for (long y = s->top - MARGIN; y < s->top - MARGIN + side; y++)
        for (long x = s->left - MARGIN; x < s->left - MARGIN + side; x++)
            sum += fabsf(grey_at(s->a, x, y) - grey_at(s->b, x + step.x, y + step.y));
    const float dx = (float)(step.x - s->predicted.x), dy = (float)(step.y - s->predicted.y);
    const float cost = sum / (float)(side * side) + STEP_COST * hypotf(dx, dy);
    if (cost < s->least) {
        s->least = cost;
        s->best = step;
    }
}

static void try_around(block_search *s, motion_step middle, int radius) {
    for (int y = -radius; y <= radius; y++)
        for (int x = -radius; x <= radius; x++)
            try_step(s, (motion_step){middle.x + x, middle.y + y});
}

/* The doubled steps of the block above, which is predicted, and of its four neighbours. */
static void try_above(block_search *s, const block_steps *above, size_t column, size_t row) {
    static const int around[][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        const long x = (long)(column / 2) + around[i][0], y = (long)(row / 2) + around[i][1];
        if (x < 0 || y < 0 || x >= (long)above->columns || y >= (long)above->rows)
            continue;
        const motion_step small = above->steps[(size_t)y * above->columns + (size_t)x];
        const motion_step step = {2 * small.x, 2 * small.y};
        if (i == 0)
            s->predicted = step;
        try_step(s, step);
    }
}

/* `above`: the steps of the planes of half the size; NULL: these are the smallest. */
static block_steps match(const plane *a, const plane *b, const block_steps *above) {
    block_steps blocks = blocks_new(a);
    for (size_t i = 0; blocks.steps && i < blocks.columns * blocks.rows; i++) {
        const size_t column = i % blocks.columns, row = i / blocks.columns;
        block_search s = {a,      b,        (long)(column * BLOCK), (long)(row * BLOCK), {0, 0},
                          {0, 0}, HUGE_VALF};
        if (above)
            try_above(&s, above, column, row);
        try_around(&s, s.best, above ? 1 : SEARCH);
        blocks.steps[i] = s.best;
    }
    return blocks;
}

/* ---- frames --------------------------------------------------------------------------------- */

static block_steps match_reduced(const plane *a, const plane *b, size_t levels) {
    if (levels == 0 || a->width < 2 * SMALLEST || a->height < 2 * SMALLEST)
        return match(a, b, NULL);
    plane small_a = plane_reduced(a), small_b = plane_reduced(b);
    block_steps above = {0}, blocks = {0};
    if (small_a.grey && small_b.grey)
        above = match_reduced(&small_a, &small_b, levels - 1);
    free(small_a.grey);
    free(small_b.grey);
    if (above.steps)
        blocks = match(a, b, &above);
    free(above.steps);
    return blocks;
}

bool motion_find(const cli_image *video, size_t to, size_t from, motion_step *steps) {
    plane a = plane_of_frame(video, to), b = plane_of_frame(video, from);
    block_steps blocks = {0};
    if (a.grey && b.grey)
        blocks = match_reduced(&a, &b, LEVELS);
    const bool is_found = blocks.steps != NULL;
    for (size_t i = 0; is_found && i < a.width * a.height; i++)
        steps[i] = blocks.steps[i / a.width / BLOCK * blocks.columns + i % a.width / BLOCK];
    free(a.grey);
    free(b.grey);
    free(blocks.steps);
    return is_found;
}
