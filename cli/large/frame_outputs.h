/* What is written of a video that is solved in tiles, some frames at a time: a picture for each,
 * and a count of labels that flicker. */
#ifndef DCRF_CLI_LARGE_FRAME_OUTPUTS_H
#define DCRF_CLI_LARGE_FRAME_OUTPUTS_H

#include "io/raster.h"
#include "solve_outputs.h"

typedef struct frame_outputs {
    const solve_outputs *options;
    const cli_image *video;
    const palette *palette;
    const raster *colours;
    /* Of the frame before, and of this one. */
    float *last_colours, *next_colours;
    uint16_t *last_labels, *last_unary;
    flicker before, after; /* by the unaries alone, and of the labelling */
} frame_outputs;

/* All that is handed over must outlive the outputs. False: out of memory; freeing is allowed. */
bool frame_outputs_init(frame_outputs *outputs, const solve_outputs *options,
                        const cli_image *video, const palette *label_colours,
                        const raster *colours);
void frame_outputs_clear(frame_outputs *outputs);

/* Frames come in their order. */
bool frame_outputs_take(frame_outputs *outputs, size_t first, size_t frames, const uint16_t *labels,
                        const uint16_t *unary_labels, cli_problem *problem);

#endif
