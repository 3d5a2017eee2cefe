/* What the colours of an image say about its labels. */
#ifndef DCRF_SCRIBBLE_COLOUR_MODEL_H
#define DCRF_SCRIBBLE_COLOUR_MODEL_H

#include "scribble/colour_bins.h"
#include "scribble/mixture.h"

#include <stdbool.h>

struct dcrf_colour_model {
    const struct dcrf_colour_bins *bins;
    size_t labels;
    struct dcrf_mixture_settings settings;
    struct dcrf_mixture_settings refit_settings;
    bool is_refit; /* set during a fit */
    /* Per bin and label: */
    float *deficit;     /* ln of the likelihood of the most likely label, minus that of this one */
    float *probability; /* of the label, with a uniform prior */
    /* Per label: */
    double *weight; /* of each bin: how much of it belongs to the label */
    struct dcrf_mixture *mixtures;
    uint8_t *cluster; /* scratch memory, one byte per bin */
    struct dcrf_owned owned;
};

/* The bins must outlive the model. False: out of memory; it can be cleared in any case. */
int dcrf_colour_model_init(struct dcrf_colour_model *model, const struct dcrf_colour_bins *bins,
                           size_t labels, size_t components);
void dcrf_colour_model_clear(struct dcrf_colour_model *model);

/* Fit the mixtures to the variables of each label, members[a] being the label of variable a or
 * negative, and compute `deficit` and `probability`. A label without members has probability 0
 * everywhere; at least one label must have members. `is_refit`: the members are similar to those of
 * the last fit, and mixtures with all their components start from their current state. */
void dcrf_colour_model_fit(struct dcrf_colour_model *model, const int32_t *members,
                           size_t variables, bool is_refit, dcrf_pool *pool);

#endif
