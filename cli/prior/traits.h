/* What a label map contains: labels, a mask of 0 and 255, or a soft mask (dcrf/masks.h). */
#ifndef DCRF_CLI_PRIOR_TRAITS_H
#define DCRF_CLI_PRIOR_TRAITS_H

#include "model/unary.h"

#define PRIOR_VOID 255 /* what most label pictures use for unknown */

/* Accumulated piece by piece. */
typedef struct prior_traits {
    dcrf_mask_traits numbers;
    int32_t end;      /* one above the largest label */
    int32_t bad;      /* the first number that is not a label, */
    size_t bad_pixel; /* and its pixel */
    bool has_bad;
} prior_traits;

/* Inspect numbers of the map from pixel `first` on, in whole rows. After the last ones,
 * determine the number of labels and whether it is a mask; invalid labels are refused. */
void prior_inspect(const unary_options *options, const cli_image *image, const int32_t *numbers,
                   size_t first, size_t count, prior_traits *traits);
bool prior_resolve(const unary_options *options, const cli_image *image, const prior_traits *traits,
                   size_t *labels, unary_facts *facts, cli_problem *problem);

/* The meaning of a number: its label, or -1 if unknown; and its confidence, which is 1 except in
 * soft masks. */
int32_t prior_label(const unary_options *options, const unary_facts *facts, int32_t number);
double prior_sureness(const unary_facts *facts, int32_t number);

#endif
