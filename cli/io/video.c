#include "io/video.h"

#include "io/frames.h"
#include "io/room.h"

#include <stdlib.h>
#include <string.h>

cli_image video_frame(const cli_image *video, size_t frame) {
    const size_t values = video->width * video->height * video->channels;
    return (cli_image){.width = video->width,
                       .height = video->height,
                       .depth = 1,
                       .channels = video->channels,
                       .spacing_mm = {1, 1, 1},
                       .orientation = video->orientation,
                       .colours = video->colours ? video->colours + frame * values : NULL};
}

/* The first frame determines the size. */
static bool begin(cli_image *video, const cli_image *frame, const char *folder,
                  cli_problem *problem) {
    const size_t bytes = frame->width * frame->height * frame->channels * sizeof *video->colours;
    video->width = frame->width;
    video->height = frame->height;
    video->channels = frame->channels;
    video->orientation = frame->orientation;
    video->scale = frame->scale;
    video->depth = video->frames.count;
    if (bytes > SIZE_MAX / video->depth || !room_check(bytes * video->depth, folder, problem))
        return bytes <= SIZE_MAX / video->depth ? false : out_of_memory(problem, folder);
    video->colours = malloc(bytes * video->depth);
    return video->colours || out_of_memory(problem, folder);
}

bool video_read_frame(const cli_image *video, size_t index, cli_image *frame,
                      cli_problem *problem) {
    const char *path = video->frames.lines[index];
    char text[IMAGE_TEXT_BYTES];
    if (!image_read(path, frame, problem))
        return false;
    bool done =
        !image_is_volume(frame) || bad_input(problem, path, "is a volume; frames are photographs");
    if (done && index > 0 && (frame->width != video->width || frame->height != video->height))
        done = bad_input(problem, path, "is %s, and the first frame %zu x %zu; they must agree",
                         image_size_text(frame, text), video->width, video->height);
    if (!done)
        image_free(frame);
    return done;
}

static bool take_frame(cli_image *video, size_t index, const char *folder, cli_problem *problem) {
    cli_image frame;
    if (!video_read_frame(video, index, &frame, problem))
        return false;
    const bool done = index > 0 || begin(video, &frame, folder, problem);
    if (done) {
        const size_t values = image_pixels(&frame) * frame.channels;
        memcpy(video->colours + index * values, frame.colours, values * sizeof *frame.colours);
    }
    image_free(&frame);
    return done;
}

bool video_measure(const char *folder, cli_image *video, cli_problem *problem) {
    cli_image first;
    *video = (cli_image){.depth = 1, .spacing_mm = {1, 1, 1}};
    if (!frames_list(folder, &video->frames, problem))
        return false;
    if (!image_measure(video->frames.lines[0], &first)) {
        bad_input(problem, video->frames.lines[0], "is not a readable picture");
        image_free(video);
        return false;
    }
    video->width = first.width;
    video->height = first.height;
    video->depth = video->frames.count;
    video->channels = first.channels;
    video->orientation = first.orientation;
    return true;
}

bool video_read(const char *folder, cli_image *video, cli_problem *problem) {
    *video = (cli_image){.depth = 1, .spacing_mm = {1, 1, 1}};
    bool done = frames_list(folder, &video->frames, problem);
    for (size_t i = 0; done && i < video->frames.count; i++)
        done = take_frame(video, i, folder, problem);
    if (!done)
        image_free(video);
    return done;
}
