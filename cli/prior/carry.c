#include "prior/carry.h"

#include "io/label_map.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The factor by which confidence decreases per frame. */
#define SURENESS_PER_FRAME 0.8

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

static bool make_confidence(const unary_options *options, size_t count, prior_map *map,
                            cli_problem *problem) {
    if (map->confidence)
        return true;
    map->confidence = malloc(count * sizeof *map->confidence);
    for (size_t i = 0; map->confidence && i < count; i++)
        map->confidence[i] = 1 - FLT_EPSILON / 2;
    return map->confidence || out_of_memory(problem, options->prior_file);
}

bool prior_carry_on(const unary_options *options, const cli_image *image, prior_map *map,
                    cli_problem *problem) {
    const size_t pixels = image->width * image->height, frames = image->depth;
    bool *given = calloc(frames, sizeof *given), is_any_missing = false;
    if (!given)
        return out_of_memory(problem, options->prior_file);
    for (size_t frame = 0; frame < frames; frame++) {
        given[frame] = has_map(map, frame, pixels);
        is_any_missing = is_any_missing || !given[frame];
    }
    const bool done =
        !is_any_missing || make_confidence(options, image_pixels(image), map, problem);
    for (size_t frame = 0; done && frame < frames; frame++) {
        const size_t from = nearest_map(given, frames, frame);
        if (given[frame] || from == frames)
            continue;
        const double distance = fabs((double)frame - (double)from);
        const float sureness = (float)pow(SURENESS_PER_FRAME, distance);
        memcpy(map->numbers + frame * pixels, map->numbers + from * pixels,
               pixels * sizeof *map->numbers);
        for (size_t i = 0; i < pixels; i++)
            map->confidence[frame * pixels + i] = sureness * map->confidence[from * pixels + i];
    }
    free(given);
    return done;
}
