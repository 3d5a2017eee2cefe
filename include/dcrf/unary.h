/* Unary energies from energies, probabilities or logits, at the size of the image or smaller.
 *
 *   energies        phi = x
 *   probabilities   phi = -ln max(x, DCRF_PROBABILITY_MIN)
 *   logits          phi = -ln softmax(x)_i = ln sum_j exp(x_j) - x_i
 *
 * where x is a number of the array times the caller's scale. Log-probabilities are logits. Adding a
 * constant to the logits of a variable does not change its energies.
 *
 * Every front end builds the same model from the same array with three calls. dcrf_unary_inspect
 * says what the numbers look like. dcrf_unary_resolve_kind decides what they are: does that agree
 * with what the user says or, if the user says nothing, is it unambiguous? dcrf_unary_energies
 * makes energies over the grid of the model, for dcrf_model_set_unary.
 *
 * The messages name no options; a front end adds its own, based on the traits.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_UNARY_H
#define DCRF_UNARY_H

#include <dcrf/grid.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A probability rounded to zero must not exclude a label for good: -ln of this is 13.8. */
#define DCRF_PROBABILITY_MIN 1e-6
/* Above 1, for probabilities rounded to half precision. */
#define DCRF_PROBABILITY_MAX 1.001

typedef enum dcrf_unary_kind {
    DCRF_UNARY_AUTO = 0, /* unspecified, or ambiguous */
    DCRF_UNARY_ENERGIES,
    DCRF_UNARY_PROBABILITIES,
    DCRF_UNARY_LOGITS
} dcrf_unary_kind;
/* "auto", "energies", "probabilities", "logits". */
DCRF_API const char *dcrf_unary_kind_name(dcrf_unary_kind kind);
DCRF_API int dcrf_unary_kind_from_name(const char *name, dcrf_unary_kind *kind);

#define DCRF_UNARY_REASON_BYTES 96

/* What an array looks like, from a sample of its variables. */
typedef struct dcrf_unary_traits {
    dcrf_unary_kind kind; /* DCRF_UNARY_AUTO: ambiguous */
    int is_certain;       /* the numbers of a variable, or their exponentials, sum to 1 */
    double scale;         /* factor that makes them do so: 1, or for example 1 / 255 */
    size_t labels;
    double smallest;
    double largest;
    char reason[DCRF_UNARY_REASON_BYTES]; /* "the numbers of a pixel sum to 1" */
    unsigned char reserved[64];
} dcrf_unary_traits;

/* Examine an array over `grid` with one channel per label, its numbers times `scale` (0: 1). */
DCRF_API dcrf_status dcrf_unary_inspect(const dcrf_view *view, const dcrf_grid *grid, double scale,
                                        dcrf_unary_traits *traits, dcrf_error *error);

/* The kind to use if the user claims `claimed`. Fails if the traits contradict the claim, or if
 * the claim is DCRF_UNARY_AUTO and the traits are ambiguous. */
DCRF_API dcrf_status dcrf_unary_resolve_kind(const dcrf_unary_traits *traits,
                                             dcrf_unary_kind claimed, dcrf_unary_kind *kind,
                                             dcrf_error *error);

/* Whether an array over `from` could be a network's output for an image over `to`: of the same
 * size, or smaller with the same proportions (up to rounding of sizes). Returns 1 or 0. */
DCRF_API int dcrf_unary_fits(const dcrf_grid *from, const dcrf_grid *to);

/* Energies over `to`, with the labels of a variable adjacent, from an array over `from`, which must
 * not be larger along any axis. If it is smaller, sample k of n along an axis is the centre of its
 * cell, at (k + 1/2) / n, and energies are interpolated: guided by the colours of an image over
 * `to` (joint bilateral upsampling), or linearly along each axis if `guide` is NULL. Energies from
 * probabilities and logits are normalized again. `energies` holds `count` floats; too few are an
 * error, and nothing is written. After any other failure `energies` is unspecified. */
DCRF_API dcrf_status dcrf_unary_energies(const dcrf_view *view, const dcrf_grid *from,
                                         dcrf_unary_kind kind, double scale, const dcrf_grid *to,
                                         const dcrf_view *guide, float *energies, size_t count,
                                         dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
