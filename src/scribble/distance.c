/* Euclidean distances, exactly and in linear time, one axis after the other (Felzenszwalb and
 * Huttenlocher: Distance Transforms of Sampled Functions. Theory of Computing 8, 2012). Given the
 * squared distances f(j) over the previous axes, along a line of points s apart
 *
 *   g(i) = min_j f(j) + s^2 (i - j)^2,
 *
 * the lower envelope of parabolas. The envelope is built from left to right: a parabola is removed
 * if the next one is already lower where it begins. */
#include "scribble/distance.h"

#include "core/memory.h"

#include <math.h>

#define ARRAYS_PER_LINE 4
#define LINES_PER_CHUNK 16
#define VARIABLES_PER_CHUNK 4096

int dcrf_distance_lines_init(struct dcrf_distance_lines *lines, const dcrf_grid *grid,
                             dcrf_pool *pool) {
    lines->longest = 0;
    for (size_t i = 0; i < grid->axes; i++)
        lines->longest = grid->size[i] > lines->longest ? grid->size[i] : lines->longest;
    lines->longest++; /* room for the end of an envelope */
    lines->memory = dcrf_allocate(dcrf_pool_threads(pool) * ARRAYS_PER_LINE,
                                  lines->longest * sizeof *lines->memory);
    return lines->memory != NULL;
}

void dcrf_distance_lines_clear(struct dcrf_distance_lines *lines) {
    dcrf_release(lines->memory);
    lines->memory = NULL;
}

/* One line: its values and the envelope, whose parabola k is the lowest from begin[k] on. */
struct line {
    double *value, *apex, *height, *begin;
    size_t count;
};

static double meeting_point(const struct line *line, size_t k, double apex, double height) {
    return ((height + apex * apex) - (line->height[k] + line->apex[k] * line->apex[k])) /
           (2 * (apex - line->apex[k]));
}

static void build_envelope(struct line *line, size_t points) {
    line->count = 0;
    for (size_t j = 0; j < points; j++) {
        if (!isfinite(line->value[j]))
            continue;
        double begin = -HUGE_VAL;
        while (line->count > 0) {
            begin = meeting_point(line, line->count - 1, (double)j, line->value[j]);
            if (begin > line->begin[line->count - 1])
                break;
            line->count--;
            begin = -HUGE_VAL;
        }
        line->apex[line->count] = (double)j;
        line->height[line->count] = line->value[j];
        line->begin[line->count++] = begin;
    }
}

/* In units of the squared spacing. A line without finite values stays unchanged. */
static void transform_line(struct line *line, size_t points, float *squares, size_t step,
                           double spacing) {
    const double square = spacing * spacing;
    for (size_t i = 0; i < points; i++)
        line->value[i] = (double)squares[i * step] / square;
    build_envelope(line, points);
    size_t k = 0;
    for (size_t i = 0; line->count > 0 && i < points; i++) {
        while (k + 1 < line->count && line->begin[k + 1] <= (double)i)
            k++;
        const double way = (double)i - line->apex[k];
        squares[i * step] = (float)((line->height[k] + way * way) * square);
    }
}

struct transform {
    const dcrf_grid *grid;
    const struct dcrf_distance_lines *lines;
    const int32_t *map;
    int32_t label;
    size_t axis, step;
    float *squares;
};

static void transform_lines(void *context, size_t begin, size_t end, size_t worker) {
    const struct transform *t = context;
    double *memory = t->lines->memory + worker * ARRAYS_PER_LINE * t->lines->longest;
    const size_t points = t->grid->size[t->axis], longest = t->lines->longest;
    struct line line = {memory, memory + longest, memory + 2 * longest, memory + 3 * longest, 0};
    for (size_t i = begin; i < end; i++) {
        const size_t first = i / t->step * (t->step * points) + i % t->step;
        transform_line(&line, points, t->squares + first, t->step, t->grid->spacing[t->axis]);
    }
}

static void mark_label(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct transform *t = context;
    for (size_t a = begin; a < end; a++)
        t->squares[a] = t->map[a] == t->label ? 0 : HUGE_VALF;
}

static void take_roots(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct transform *t = context;
    for (size_t a = begin; a < end; a++)
        t->squares[a] = sqrtf(t->squares[a]);
}

void dcrf_distances_to(const dcrf_grid *grid, const int32_t *map, int32_t label,
                       const struct dcrf_distance_lines *lines, dcrf_pool *pool, float *distances) {
    const size_t variables = grid->size[0] * grid->size[1] * grid->size[2];
    struct transform t = {grid, lines, map, label, 0, 1, distances};
    dcrf_parallel_for(pool, variables, VARIABLES_PER_CHUNK, mark_label, &t);
    for (; t.axis < grid->axes; t.step *= grid->size[t.axis++])
        dcrf_parallel_for(pool, variables / grid->size[t.axis], LINES_PER_CHUNK, transform_lines,
                          &t);
    dcrf_parallel_for(pool, variables, VARIABLES_PER_CHUNK, take_roots, &t);
}
