/* The default kernels, and how strong they should be for the unary energies of a model.
 *
 * The strength of a model is what it costs a variable to disagree with everything around it: twice
 * the sum of the weights of its (symmetrically normalized) kernels, in nats, the unit of unary
 * energies that are -ln p. What suits depends on the unaries: where their errors are independent
 * from pixel to pixel a vote of the neighbours is worth much, where errors come in patches
 * neighbours repeat each other, and where energies are a multiple of -ln p everything has to be
 * multiplied with them. dcrf_model_measure_strength finds out which it is.
 *
 *   const size_t count = dcrf_default_kernels(&image, kernels);
 *   ... dcrf_model_set_unary, dcrf_model_add_kernel for each ...
 *   dcrf_model_measure_strength(model, workspace, &measured, &error);
 *   dcrf_model_set_strength(model, measured.strength, &error);
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_STRENGTH_H
#define DCRF_STRENGTH_H

#include <dcrf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the default kernels -------------------------------------------------------------------- */

/* In nats, where no variable prefers a label. */
#define DCRF_FALLBACK_STRENGTH 1

/* Sigmas in units of the grid's spacing and of the channels, colours from 0 to 255. */
#define DCRF_DEFAULT_SPATIAL_SIGMA 2
#define DCRF_DEFAULT_BILATERAL_SIGMA 40
#define DCRF_DEFAULT_COLOUR_SIGMA 8
/* What part of the strength is the spatial kernel's, where there are both. */
#define DCRF_DEFAULT_SPATIAL_SHARE 0.3

#define DCRF_DEFAULT_KERNELS 2

/* The default kernels, with the strength 1: spatial and bilateral, or without an image (NULL) the
 * spatial one alone. Returns how many there are. */
DCRF_API size_t dcrf_default_kernels(const dcrf_view *image,
                                     dcrf_kernel kernels[DCRF_DEFAULT_KERNELS]);

/* The cost of a clique that is not of one label, gamma * exp(-variance / eta): gamma goes with the
 * strength of the kernels. */
#define DCRF_DEFAULT_GAMMA_PER_STRENGTH 10
#define DCRF_DEFAULT_ETA 500

/* DCRF_DEFAULT_GAMMA_PER_STRENGTH times the strength of the model, or times the fallback where it
 * has no kernels. */
DCRF_API double dcrf_default_gamma(const dcrf_model *model);

/* ---- the strength of a model ---------------------------------------------------------------- */

/* Twice the sum of the weights. */
DCRF_API double dcrf_model_strength(const dcrf_model *model);

/* Multiply all weights by one factor, so that the model has this strength. Where all weights are
 * zero there is nothing to multiply, which is an error unless the strength is zero too. */
DCRF_API dcrf_status dcrf_model_set_strength(dcrf_model *model, double strength, dcrf_error *error);

/* Divide the unary energies that the model holds by a temperature above zero. Above 1 it makes
 * them less confident. */
DCRF_API dcrf_status dcrf_model_apply_temperature(dcrf_model *model, double temperature,
                                                  dcrf_error *error);

/* ---- the strength that suits the unary energies ---------------------------------------------- */

typedef struct dcrf_measured_strength {
    double strength;    /* recommended, in nats */
    double rho;         /* disagreement of neighbours, as a part of what independent errors of the
                         * probability that the unaries state would give */
    double temperature; /* what the unaries have to be divided by to make rho 1 */
    double margin;      /* geometric mean of the differences between the two best unary energies */
    size_t pairs;       /* of neighbours with like colours that were compared */
    unsigned char reserved[64];
} dcrf_measured_strength;

/* Pairs that tell enough. With fewer, rho and the temperature are NaN and the strength is the
 * margin, or DCRF_FALLBACK_STRENGTH where there is none either. */
#define DCRF_LEAST_STRENGTH_PAIRS 64

/* Compare neighbours on the grid. Colours are those of the model's first bilateral kernel; where
 * there is none, all neighbours count as alike. A model without spatial and bilateral kernels (a
 * point set with features of its own) has no neighbours. Weights do not matter, nor do thread
 * counts. */
DCRF_API dcrf_status dcrf_model_measure_strength(const dcrf_model *model, dcrf_workspace *workspace,
                                                 dcrf_measured_strength *measured,
                                                 dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
