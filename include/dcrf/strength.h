/* The default kernels, and how strong they should be for a model's unary energies.
 *
 * The strength of a model is what it costs a variable to disagree with everything around it: twice
 * the sum of the weights of its (symmetrically normalized) kernels, in nats, the unit of unary
 * energies -ln p. The best strength depends on the unary energies. If their errors are independent
 * from pixel to pixel, the neighbours' votes are worth a lot. If errors come in patches, neighbours
 * repeat each other. If the energies are a multiple of -ln p, the strength must scale with them.
 * dcrf_model_measure_strength measures which it is.
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

/* The strength in nats if no variable prefers a label. */
#define DCRF_FALLBACK_STRENGTH 1

/* Sigmas in the unit of the grid's spacing, and of channels from 0 to 255. */
#define DCRF_DEFAULT_SPATIAL_SIGMA 2
#define DCRF_DEFAULT_BILATERAL_SIGMA 40
#define DCRF_DEFAULT_COLOUR_SIGMA 8
/* The spatial kernel's fraction of the strength if there are both kernels. */
#define DCRF_DEFAULT_SPATIAL_SHARE 0.3

#define DCRF_DEFAULT_KERNELS 2

/* The default kernels with strength 1: spatial and bilateral, or only spatial without an image
 * (NULL). Returns their number. */
DCRF_API size_t dcrf_default_kernels(const dcrf_view *image,
                                     dcrf_kernel kernels[DCRF_DEFAULT_KERNELS]);

/* The cost of a clique that is not unanimous is gamma * exp(-variance / eta); gamma is proportional
 * to the strength of the kernels. */
#define DCRF_DEFAULT_GAMMA_PER_STRENGTH 10
#define DCRF_DEFAULT_ETA 500

/* DCRF_DEFAULT_GAMMA_PER_STRENGTH times the strength of the model, or times the fallback if it has
 * no kernels. */
DCRF_API double dcrf_default_gamma(const dcrf_model *model);

/* ---- the strength of a model ---------------------------------------------------------------- */

/* Twice the sum of the weights. */
DCRF_API double dcrf_model_strength(const dcrf_model *model);

/* Scale all weights by one factor so that the model has this strength. If all weights are zero,
 * this fails unless the strength is zero too. */
DCRF_API dcrf_status dcrf_model_set_strength(dcrf_model *model, double strength, dcrf_error *error);

/* Divide the model's unary energies by a temperature above zero. Above 1 it makes them less
 * confident. */
DCRF_API dcrf_status dcrf_model_apply_temperature(dcrf_model *model, double temperature,
                                                  dcrf_error *error);

/* ---- the strength that suits the unary energies --------------------------------------------- */

typedef struct dcrf_measured_strength {
    double strength;    /* recommended, in nats */
    double rho;         /* disagreement of neighbours, relative to that of independent errors with
                         * the probabilities that the unary energies state */
    double temperature; /* dividing the unary energies by this makes rho 1 */
    double margin;      /* geometric mean of the differences of the two lowest unary energies */
    size_t pairs;       /* pairs of neighbours with similar colours that were compared */
    unsigned char reserved[64];
} dcrf_measured_strength;

/* The minimum number of pairs. With fewer, rho and temperature are NaN and the strength is the
 * margin, or DCRF_FALLBACK_STRENGTH if there is none either. */
#define DCRF_LEAST_STRENGTH_PAIRS 64

/* Measure the strength by comparing neighbours on the grid. Colours are those of the model's first
 * bilateral kernel; without one, all neighbours count as similar. A model with neither spatial nor
 * bilateral kernels (a point set with its own features) has no neighbours. The result does not
 * depend on the weights or the number of threads. */
DCRF_API dcrf_status dcrf_model_measure_strength(const dcrf_model *model, dcrf_workspace *workspace,
                                                 dcrf_measured_strength *measured,
                                                 dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
