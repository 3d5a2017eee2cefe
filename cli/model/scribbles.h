/* Models from scribbles. */
#ifndef DCRF_CLI_MODEL_SCRIBBLES_H
#define DCRF_CLI_MODEL_SCRIBBLES_H

#include "model/unary.h"

#include <dcrf/dcrf.h>

/* What is known of a model that was made from strokes. */
typedef struct scribble_summary {
    dcrf_scribbles_settings settings; /* as used */
    dcrf_scribbles_info info;
} scribble_summary;

/* A model over the image with the energies that follow from the strokes of --scribbles, without
 * kernels. *model may be left to be freed after a failure, too. */
bool model_from_scribbles(const unary_options *options, const cli_image *image,
                          dcrf_workspace *workspace, dcrf_model **model, scribble_summary *summary,
                          cli_problem *problem);

/* The kernels that belong to such energies; returns how many there are, at most 2. The image must
 * outlive them. */
size_t scribble_kernels(const scribble_summary *summary, const cli_image *image,
                        dcrf_kernel kernels[2]);

#endif
