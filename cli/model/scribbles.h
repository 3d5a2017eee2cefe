/* Models from scribbles. */
#ifndef DCRF_CLI_MODEL_SCRIBBLES_H
#define DCRF_CLI_MODEL_SCRIBBLES_H

#include "model/unary.h"

#include <dcrf/dcrf.h>

/* What is known about a model made from strokes. */
typedef struct scribble_summary {
    dcrf_scribbles_settings settings; /* as used */
    dcrf_scribbles_info info;
} scribble_summary;

/* A model over the image with the energies derived from the strokes of --scribbles, without
 * kernels. *model must be freed even after a failure. */
bool model_from_scribbles(const unary_options *options, const cli_image *image,
                          dcrf_workspace *workspace, dcrf_model **model, scribble_summary *summary,
                          cli_problem *problem);

/* The kernels that go with these energies; returns their number, at most 2. The image must
 * outlive them. */
size_t scribble_kernels(const scribble_summary *summary, const cli_image *image,
                        dcrf_kernel kernels[2]);

#endif
