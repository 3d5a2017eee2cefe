/* Unary energies from scribbles: a model of colours for every label. */
#ifndef DCRF_CLI_COLOUR_MODEL_H
#define DCRF_CLI_COLOUR_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a scribbled pixel pays for any label but its own: more than the kernels of a usual model
 * could win back, and little enough for sums in double. */
#define SCRIBBLE_ENERGY 1e6f

typedef struct coloured_scribbles {
    const float *colours; /* finite; the channels of a pixel next to each other */
    size_t channels;      /* at most MIXTURE_DIMENSION_MAX */
    size_t pixels;
    const int32_t *labels; /* -1: not scribbled; every label below label_count occurs */
    size_t label_count;
} coloured_scribbles;

/* Write label_count energies a pixel, next to each other. False: out of memory. */
bool colour_model_energies(const coloured_scribbles *scribbles, float *energies);

#endif
