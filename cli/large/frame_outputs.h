/* Outputs of a video that is solved in tiles, some frames at a time: a picture per frame, and
 * the flicker of the labels. */
#ifndef DCRF_CLI_LARGE_FRAME_OUTPUTS_H
#define DCRF_CLI_LARGE_FRAME_OUTPUTS_H

#include "io/raster.h"
#include "solve_outputs.h"

typedef struct frame_outputs {
    const solve_outputs *options;
    const cli_image *video;
    const palette *palette;
    const raster *colours;
    /* Of the previous frame, and of this one. */
    float *last_colours, *next_colours;
    uint16_t *last_labels, *last_unary;
    flicker before, after; /* by the unaries alone, and of the labelling */
} frame_outputs;

/* The arguments must outlive the outputs. False: out of memory; freeing is allowed. */
bool frame_outputs_init(frame_outputs *outputs, const solve_outputs *options,
                        const cli_image *video, const palette *label_colours,
                        const raster *colours);
void frame_outputs_clear(frame_outputs *outputs);

/* Frames must come in order. */
bool frame_outputs_take(frame_outputs *outputs, size_t first, size_t frames, const uint16_t *labels,
                        const uint16_t *unary_labels, cli_problem *problem);

#endif
