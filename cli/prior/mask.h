/* Models from rough label maps. */
#ifndef DCRF_CLI_PRIOR_MASK_H
#define DCRF_CLI_PRIOR_MASK_H

#include "model/unary.h"

#include <dcrf/dcrf.h>

/* What is known about a model made from a rough map. */
typedef struct mask_summary {
    int32_t *map; /* as given; NULL: the model was not made from one */
    dcrf_mask_info info;
} mask_summary;

/* A model over the image with the energies derived from the borders and colours of the map of
 * --labels-prior, without kernels. *model and the summary must be freed even after a failure. */
bool model_from_mask(const unary_options *options, const cli_image *image,
                     dcrf_workspace *workspace, dcrf_model **model, mask_summary *summary,
                     unary_facts *facts, cli_problem *problem);

void mask_summary_free(mask_summary *summary);

#endif
