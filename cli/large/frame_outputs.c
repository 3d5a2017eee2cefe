#include "large/frame_outputs.h"

#include "io/frames.h"

#include <stdlib.h>
#include <string.h>

static size_t pixels_of(const frame_outputs *o) {
    return o->video->width * o->video->height;
}

bool frame_outputs_init(frame_outputs *o, const solve_outputs *options, const cli_image *video,
                        const palette *label_colours, const raster *colours) {
    const size_t pixels = video->width * video->height;
    *o = (frame_outputs){.options = options,
                         .video = video,
                         .palette = label_colours,
                         .colours = colours,
                         .last_colours = malloc(pixels * colours->channels * sizeof(float)),
                         .next_colours = malloc(pixels * colours->channels * sizeof(float)),
                         .last_labels = malloc(pixels * sizeof(uint16_t)),
                         .last_unary = malloc(pixels * sizeof(uint16_t))};
    return o->last_colours && o->next_colours && o->last_labels && o->last_unary;
}

void frame_outputs_clear(frame_outputs *o) {
    free(o->last_colours);
    free(o->next_colours);
    free(o->last_labels);
    free(o->last_unary);
    *o = (frame_outputs){0};
}

static bool count_flicker(frame_outputs *o, size_t frame, const uint16_t *labels,
                          const uint16_t *unary_labels, cli_problem *problem) {
    const size_t pixels = pixels_of(o), channels = o->colours->channels;
    const raster_window window = {{0, 0, frame}, {o->video->width, o->video->height, 1}};
    if (!raster_read(o->colours, &window, o->next_colours, problem))
        return false;
    if (frame > 0) {
        flicker_add(&o->before, o->last_colours, o->next_colours, channels, o->last_unary,
                    unary_labels, pixels);
        flicker_add(&o->after, o->last_colours, o->next_colours, channels, o->last_labels, labels,
                    pixels);
    }
    float *seen = o->last_colours;
    o->last_colours = o->next_colours;
    o->next_colours = seen;
    memcpy(o->last_labels, labels, pixels * sizeof *labels);
    memcpy(o->last_unary, unary_labels, pixels * sizeof *unary_labels);
    return true;
}

bool frame_outputs_take(frame_outputs *o, size_t first, size_t frames, const uint16_t *labels,
                        const uint16_t *unary_labels, cli_problem *problem) {
    const char *folder = o->options->labels_file;
    const bool is_folder = folder && path_names_folder(folder);
    const size_t pixels = pixels_of(o);
    bool done = true;
    for (size_t i = 0; done && i < frames; i++)
        done =
            count_flicker(o, first + i, labels + i * pixels, unary_labels + i * pixels, problem) &&
            (!is_folder || solve_outputs_write_frame(o->options, o->video, o->palette, first + i,
                                                     labels + i * pixels, problem));
    return done;
}
