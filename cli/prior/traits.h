/* What a label map holds: labels, a mask of 0 and 255, or a soft one. */
#ifndef DCRF_CLI_PRIOR_TRAITS_H
#define DCRF_CLI_PRIOR_TRAITS_H

#include "model/unary.h"

#define PRIOR_VOID 255 /* what most label pictures call unknown */
#define PRIOR_NUMBERS 256

/* Gathered piece by piece. */
typedef struct prior_traits {
    size_t counts[PRIOR_NUMBERS]; /* how often each number of 8 bits occurs */
    size_t pixels;
    size_t changes;   /* pixels between 0 and 255 whose right neighbour has another number */
    bool is_wide;     /* there are others than 0 to 255 */
    bool is_rounded;  /* by the format: it can be a mask and nothing else */
    int32_t end;      /* above all labels */
    int32_t bad;      /* the first number that is no label, */
    size_t bad_pixel; /* and where it stands */
    bool has_bad;
} prior_traits;

/* Look at numbers of the map from pixel `first` on, whole rows. When all were looked at, settle how
 * many labels there are and whether it is a mask; labels that cannot be are refused. */
void prior_inspect(const unary_options *options, const cli_image *image, const int32_t *numbers,
                   size_t first, size_t count, prior_traits *traits);
bool prior_resolve(const unary_options *options, const cli_image *image, const prior_traits *traits,
                   size_t *labels, unary_facts *facts, cli_problem *problem);

/* What a number says: a label, -1 where the map does not know; and how sure it is of it, 1 but for
 * soft masks. */
int32_t prior_label(const unary_options *options, const unary_facts *facts, int32_t number);
double prior_sureness(const unary_facts *facts, int32_t number);

#endif
