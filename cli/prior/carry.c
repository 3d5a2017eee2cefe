#include "prior/carry.h"

#include "io/label_map.h"
#include "prior/motion.h"
#include "prior/traits.h"

#include <dcrf/dcrf.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* The factor by which confidence decreases per frame. */
#define SURENESS_PER_FRAME 0.8F

static bool has_map(const prior_map *map, size_t frame, size_t pixels) {
    return map->numbers[frame * pixels] != MAP_MISSING;
}

/* The nearest frame that has a map, the earlier of two; `frames`: none. */
static size_t nearest_map(const bool *given, size_t frames, size_t frame) {
    for (size_t distance = 0; distance < frames; distance++) {
        if (distance <= frame && given[frame - distance])
            return frame - distance;
        if (frame + distance < frames && given[frame + distance])
            return frame + distance;
    }
    return frames;
}

static bool make_confidence(size_t count, prior_map *map) {
    if (map->confidence)
        return true;
    map->confidence = malloc(count * sizeof *map->confidence);
    for (size_t i = 0; map->confidence && i < count; i++)
        map->confidence[i] = 1 - FLT_EPSILON / 2;
    return map->confidence != NULL;
}

/* ---- frame by frame ------------------------------------------------------------------------- */

typedef struct carrying {
    const unary_options *options;
    const cli_image *video;
    const unary_facts *facts;
    dcrf_workspace *workspace; /* NULL: nothing is refined */
    prior_map *map;
    int32_t *numbers; /* the maps that are carried */
    motion_step *steps;
} carrying;

static void take_cheapest(const carrying *c, const float *energies, int32_t *numbers) {
    const bool is_mask = c->facts->map_kind != DCRF_MASK_LABELS;
    const size_t labels = c->map->labels;
    for (size_t i = 0; i < c->video->width * c->video->height; i++) {
        size_t best = 0;
        for (size_t k = 1; k < labels; k++)
            if (energies[i * labels + k] < energies[i * labels + best])
                best = k;
        numbers[i] = is_mask ? (int32_t)best * PRIOR_VOID : (int32_t)best;
    }
}

/* Move the borders of one frame's map to those of its picture. A map that cannot be refined, for
 * example because it has no label in this frame, stays as it is. */
static bool refine(const carrying *c, size_t frame) {
    const size_t pixels = c->video->width * c->video->height;
    const dcrf_grid grid = dcrf_grid_2d(c->video->width, c->video->height);
    int32_t *numbers = c->numbers + frame * pixels, *labels = malloc(pixels * sizeof *labels);
    float *energies = malloc(pixels * c->map->labels * sizeof *energies);
    const bool has_room = labels && energies;
    for (size_t i = 0; has_room && i < pixels; i++)
        labels[i] = c->map->confidence[frame * pixels + i] > 0
                        ? prior_label(c->options, c->facts, numbers[i])
                        : -1;
    const dcrf_view map = dcrf_view_interleaved(labels, DCRF_I32, &grid, 1);
    const dcrf_view colours =
        dcrf_view_interleaved(c->video->colours + frame * pixels * c->video->channels, DCRF_F32,
                              &grid, c->video->channels);
    dcrf_error error;
    if (has_room &&
        dcrf_mask_energies(&grid, &colours, &map, c->map->labels, NULL, NULL, c->workspace,
                           energies, pixels * c->map->labels, NULL, &error) >= 0)
        take_cheapest(c, energies, numbers);
    free(labels);
    free(energies);
    return has_room;
}

/* Take the map of frame `from` to its neighbour `to`, along `steps`; NULL: everything stays. What
 * comes into the picture is unknown. */
static void carry(const carrying *c, size_t from, size_t to, const motion_step *steps) {
    const size_t width = c->video->width, height = c->video->height, pixels = width * height;
    for (size_t i = 0; i < pixels; i++) {
        const motion_step step = steps ? steps[i] : (motion_step){0, 0};
        const long x = (long)(i % width) + step.x, y = (long)(i / width) + step.y;
        const bool is_seen = x >= 0 && y >= 0 && x < (long)width && y < (long)height;
        const size_t source = from * pixels + (is_seen ? (size_t)y * width + (size_t)x : i);
        c->numbers[to * pixels + i] = c->numbers[source];
        c->map->confidence[to * pixels + i] =
            is_seen ? SURENESS_PER_FRAME * c->map->confidence[source] : 0;
    }
}

/* To a frame from its neighbour on the side of the nearest map; none if it has its own. */
static bool carry_to(const carrying *c, size_t frame, size_t nearest) {
    const bool moves = frame != nearest && c->video->colours;
    const size_t from = nearest > frame ? frame + 1 : frame - 1;
    if (moves && !motion_find(c->video, frame, from, c->steps))
        return false;
    if (frame != nearest)
        carry(c, from, frame, moves ? c->steps : NULL);
    return !c->workspace || refine(c, frame);
}

/* Backwards from each map and then onwards from it, so that the neighbour is always done. */
static bool carry_all(const carrying *c, const bool *given) {
    const size_t frames = c->video->depth;
    bool done = true;
    for (size_t map = 0; map < frames; map++) {
        if (!given[map])
            continue;
        for (size_t frame = map + 1;
             done && frame-- > 0 && nearest_map(given, frames, frame) == map;)
            done = carry_to(c, frame, map);
        for (size_t frame = map + 1;
             done && frame < frames && nearest_map(given, frames, frame) == map; frame++)
            done = carry_to(c, frame, map);
    }
    return done;
}

/* What was carried is the map of a frame that had none. */
static void keep_carried(const carrying *c, const bool *given) {
    const size_t pixels = c->video->width * c->video->height;
    for (size_t i = 0; i < image_pixels(c->video); i++)
        if (!given[i / pixels])
            c->map->numbers[i] = c->numbers[i];
}

bool prior_carry_on(const unary_options *options, const cli_image *image, dcrf_workspace *workspace,
                    const unary_facts *facts, prior_map *map, cli_problem *problem) {
    const size_t pixels = image->width * image->height, frames = image->depth;
    bool *given = calloc(frames, sizeof *given), is_any_missing = false;
    carrying c = {options, image, facts, workspace, map, map->numbers, NULL};
    bool done = given != NULL;
    for (size_t frame = 0; done && frame < frames; frame++) {
        given[frame] = has_map(map, frame, pixels);
        is_any_missing = is_any_missing || !given[frame];
    }
    if (done && is_any_missing) {
        c.steps = malloc(pixels * sizeof *c.steps);
        if (workspace) {
            map->refined = malloc(image_pixels(image) * sizeof *map->refined);
            c.numbers = map->refined;
        }
        done = c.steps && c.numbers && make_confidence(image_pixels(image), map);
        if (done && workspace)
            memcpy(c.numbers, map->numbers, image_pixels(image) * sizeof *c.numbers);
        done = done && carry_all(&c, given);
        if (done && workspace)
            keep_carried(&c, given);
    }
    free(given);
    free(c.steps);
    return done || out_of_memory(problem, options->prior_file);
}
