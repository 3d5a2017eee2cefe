#include "prior/carry.h"

#include "io/label_map.h"
#include "prior/motion.h"

#include <float.h>
#include <stdlib.h>

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

/* Take the map of frame `from` to its neighbour `to`, along `steps`; NULL: everything stays. What
 * comes into the picture is unknown. */
static void carry(prior_map *map, const cli_image *video, size_t from, size_t to,
                  const motion_step *steps) {
    const size_t width = video->width, pixels = width * video->height;
    for (size_t i = 0; i < pixels; i++) {
        const motion_step step = steps ? steps[i] : (motion_step){0, 0};
        const long x = (long)(i % width) + step.x, y = (long)(i / width) + step.y;
        const bool is_seen = x >= 0 && y >= 0 && x < (long)width && y < (long)video->height;
        const size_t source = from * pixels + (is_seen ? (size_t)y * width + (size_t)x : i);
        map->numbers[to * pixels + i] = map->numbers[source];
        map->confidence[to * pixels + i] =
            is_seen ? SURENESS_PER_FRAME * map->confidence[source] : 0;
    }
}

/* Frames next to a map first, then those next to them. */
static bool carry_all(prior_map *map, const cli_image *video, const bool *given,
                      motion_step *steps) {
    const size_t frames = video->depth;
    for (size_t distance = 1; distance < frames; distance++)
        for (size_t frame = 0; frame < frames; frame++) {
            const size_t first = nearest_map(given, frames, frame);
            if (first == frames || (first > frame ? first - frame : frame - first) != distance)
                continue;
            const size_t from = first > frame ? frame + 1 : frame - 1;
            if (video->colours && !motion_find(video, frame, from, steps))
                return false;
            carry(map, video, from, frame, video->colours ? steps : NULL);
        }
    return true;
}

bool prior_carry_on(const unary_options *options, const cli_image *image, prior_map *map,
                    cli_problem *problem) {
    const size_t pixels = image->width * image->height, frames = image->depth;
    bool *given = calloc(frames, sizeof *given), is_any_missing = false;
    motion_step *steps = malloc(pixels * sizeof *steps);
    bool done = given && steps;
    for (size_t frame = 0; done && frame < frames; frame++) {
        given[frame] = has_map(map, frame, pixels);
        is_any_missing = is_any_missing || !given[frame];
    }
    if (done && is_any_missing)
        done = make_confidence(image_pixels(image), map) && carry_all(map, image, given, steps);
    free(given);
    free(steps);
    return done || out_of_memory(problem, options->prior_file);
}
