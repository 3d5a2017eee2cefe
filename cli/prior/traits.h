/* What a label map contains: labels, a mask of 0 and 255, or a soft mask. */
#ifndef DCRF_CLI_PRIOR_TRAITS_H
#define DCRF_CLI_PRIOR_TRAITS_H

#include "model/unary.h"

#define PRIOR_VOID 255 /* what most label pictures use for unknown */
#define PRIOR_NUMBERS 256

/* Accumulated piece by piece. */
typedef struct prior_traits {
    size_t counts[PRIOR_NUMBERS]; /* histogram of the 8-bit numbers */
    size_t pixels;
    size_t changes;   /* pixels strictly between 0 and 255 whose right neighbour has another
                       * number */
    bool is_wide;     /* there are numbers outside 0 to 255 */
    bool is_rounded;  /* the format rounds numbers, so it can only be a mask */
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
