#include "large/frames.h"

#include "io/frames.h"
#include "io/spool.h"
#include "io/video.h"
#include "prior/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool large_frames_have_energies(const large_inputs *inputs) {
    return image_is_video(&inputs->image) && path_is_folder(unary_file(&inputs->options->unary));
}

/* ---- temporary storage ---------------------------------------------------------------------- */

static bool open_spool(FILE **stream, const char *file, cli_problem *problem) {
    *stream = spool_open(NULL);
    return *stream || failure(problem, file, "no temporary file can be made for its pixels: %s",
                              strerror(errno));
}

static bool close_spool(FILE *stream, const large_inputs *inputs, size_t channels, const char *file,
                        raster *made, cli_problem *problem) {
    const cli_image *video = &inputs->image;
    const size_t size[RASTER_AXES] = {video->width, video->height, video->depth};
    raster_from_floats(NULL, size, channels, made);
    made->path = file;
    made->descriptor = spool_close(stream, file, problem);
    return made->descriptor >= 0;
}

/* ---- energies ------------------------------------------------------------------------------- */

static bool store_array(large_inputs *inputs, size_t index, const cli_image *frame, FILE *stream,
                        cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    float *energies;
    if (!unary_read_frame(unary, &inputs->image, index, frame, &inputs->labels, &inputs->facts,
                          &energies, problem))
        return false;
    const bool done = spool_floats(stream, energies, image_pixels(frame) * inputs->labels,
                                   unary->array_file, problem);
    free(energies);
    return done;
}

/* Maps have one number per pixel, which is little compared with a tile's memory. All of them are
 * inspected before any is converted, and propagated to frames without one. */
static bool store_maps(large_inputs *inputs, FILE *stream, cli_problem *problem) {
    const unary_options *unary = &inputs->options->unary;
    const cli_image *video = &inputs->image;
    const size_t pixels = video->width * video->height;
    prior_map map;
    if (!prior_map_read(unary, video, NULL, &map, &inputs->facts, problem))
        return false;
    inputs->labels = map.labels;
    inputs->facts.is_left_rough = !(unary->confidence > 0);
    float *energies = malloc(pixels * map.labels * sizeof *energies);
    bool done = energies || out_of_memory(problem, unary->prior_file);
    for (size_t first = 0; done && first < image_pixels(video); first += pixels) {
        prior_energies(unary, &inputs->facts, map.numbers + first,
                       map.confidence ? map.confidence + first : NULL, pixels, map.labels,
                       energies);
        done = spool_floats(stream, energies, pixels * map.labels, unary->prior_file, problem);
    }
    free(energies);
    prior_map_free(&map);
    return done;
}

/* ---- frames --------------------------------------------------------------------------------- */

static bool store_frame(large_inputs *inputs, size_t index, FILE *colours, FILE *numbers,
                        cli_problem *problem) {
    cli_image frame;
    if (!video_read_frame(&inputs->image, index, &frame, problem))
        return false;
    if (index == 0)
        inputs->image.scale = frame.scale;
    const bool done = spool_floats(colours, frame.colours, image_pixels(&frame) * frame.channels,
                                   inputs->image_file, problem) &&
                      (!numbers || store_array(inputs, index, &frame, numbers, problem));
    image_free(&frame);
    return done;
}

static bool store_all(large_inputs *inputs, FILE *colours, FILE *numbers, cli_problem *problem) {
    const bool in_arrays = numbers && inputs->options->unary.array_file;
    bool done = true;
    for (size_t i = 0; done && i < inputs->image.depth; i++)
        done = store_frame(inputs, i, colours, in_arrays ? numbers : NULL, problem);
    return done && (!numbers || in_arrays || store_maps(inputs, numbers, problem));
}

bool large_frames_open(large_inputs *inputs, cli_problem *problem) {
    const char *file = unary_file(&inputs->options->unary);
    FILE *colours = NULL, *numbers = NULL;
    if (!video_measure(inputs->image_file, &inputs->image, problem))
        return false;
    const bool in_folder = large_frames_have_energies(inputs);
    bool done = open_spool(&colours, inputs->image_file, problem) &&
                (!in_folder || open_spool(&numbers, file, problem)) &&
                store_all(inputs, colours, numbers, problem);
    if (done) {
        done = close_spool(colours, inputs, inputs->image.channels, inputs->image_file,
                           &inputs->colours, problem);
        colours = NULL;
    }
    if (done && numbers) {
        done = close_spool(numbers, inputs, inputs->labels, file, &inputs->numbers, problem);
        numbers = NULL;
        inputs->are_energies = true;
    }
    if (colours)
        fclose(colours);
    if (numbers)
        fclose(numbers);
    return done;
}
