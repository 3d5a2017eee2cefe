/* Unary energies from what people have: energies, probabilities or logits, at the size of the image
 * or smaller.
 *
 *   energies        phi = x
 *   probabilities   phi = -ln max(x, DCRF_PROBABILITY_MIN)
 *   logits          phi = -ln softmax(x)_i = ln sum_j exp(x_j) - x_i
 *
 * with x a number of the array times the caller's scale. Log-probabilities are logits. An offset of
 * the logits of a variable does not change their energies, hence neither energy nor gap.
 *
 * Every front end builds the same model from the same array with three calls:
 *
 *   dcrf_unary_look_at    what do the numbers look like?
 *   dcrf_unary_settle     does that agree with what the user says they are (or, where nothing was
 *                         said, can it be told)?
 *   dcrf_unary_energies   energies over the grid of the model, for dcrf_model_set_unary.
 *
 * The messages name no option: a front end adds which of its own to use, from the look.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_UNARY_H
#define DCRF_UNARY_H

#include <dcrf/grid.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A probability that was rounded to zero must not forbid a label for good: -ln of this is 13.8. */
#define DCRF_PROBABILITY_MIN 1e-6
/* Rounding in half precision. */
#define DCRF_PROBABILITY_MAX 1.001

typedef enum dcrf_unary_kind {
    DCRF_UNARY_AUTO = 0, /* not said, or it cannot be told */
    DCRF_UNARY_ENERGIES,
    DCRF_UNARY_PROBABILITIES,
    DCRF_UNARY_LOGITS
} dcrf_unary_kind;
/* "auto", "energies", "probabilities", "logits". */
DCRF_API const char *dcrf_unary_kind_name(dcrf_unary_kind kind);
DCRF_API int dcrf_unary_kind_from_name(const char *name, dcrf_unary_kind *kind);

#define DCRF_UNARY_REASON_BYTES 96

/* What an array looks like, from a sample of its variables. */
typedef struct dcrf_unary_look {
    dcrf_unary_kind kind; /* DCRF_UNARY_AUTO: it could be more than one */
    int is_certain;       /* the numbers of a variable sum to 1, or their exponentials do */
    double scale; /* what they have to be multiplied by for that: 1, or for example 1 / 255 */
    size_t labels;
    double smallest;
    double largest;
    char reason[DCRF_UNARY_REASON_BYTES]; /* "the numbers of a pixel sum to 1" */
    unsigned char reserved[64];
} dcrf_unary_look;

/* Look at an array over `grid`, one channel per label, its numbers times `scale` (0: 1). */
DCRF_API dcrf_status dcrf_unary_look_at(const dcrf_view *view, const dcrf_grid *grid, double scale,
                                        dcrf_unary_look *look, dcrf_error *error);

/* The kind to use where the user claims `claimed`. Fails where the look contradicts the claim, and
 * for DCRF_UNARY_AUTO where the kind cannot be told. */
DCRF_API dcrf_status dcrf_unary_settle(const dcrf_unary_look *look, dcrf_unary_kind claimed,
                                       dcrf_unary_kind *kind, dcrf_error *error);

/* Could an array over `from` be the answer of a network for an image over `to`: of the same size,
 * or of the same proportions (up to the rounding of sizes) and smaller? Returns 1 or 0. */
DCRF_API int dcrf_unary_fits(const dcrf_grid *from, const dcrf_grid *to);

/* Energies over `to`, the labels of a variable next to each other, from an array over `from`, which
 * must not be larger along any axis. Where it is smaller, sample k of n along an axis stands for
 * the middle of its cell, (k + 1/2) / n of the way, and energies are interpolated: guided by the
 * colours of an image over `to` (joint bilateral upsampling), or where `guide` is NULL linearly
 * along each axis. Those of probabilities and logits are normalized again. On failure `energies`
 * may be half written. */
DCRF_API dcrf_status dcrf_unary_energies(const dcrf_view *view, const dcrf_grid *from,
                                         dcrf_unary_kind kind, double scale, const dcrf_grid *to,
                                         const dcrf_view *guide, float *energies,
                                         dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
