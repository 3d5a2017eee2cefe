/* The table of one instruction set, with the loops of dsp_vector.h: constant data, so that no code
 * compiled for the set runs before the processor is known to support it.
 *
 * The including file defines DSP_TABLE, its name, and DSP_CPU, the set; it may name other functions
 * for the entries below. script/check-dsp checks that its object exports nothing but this table. */
#include "dsp/plain.h"

#ifndef DSP_CONVOLVE
#define DSP_CONVOLVE convolve
#endif
#ifndef DSP_SHARED_SOFTMAX
#define DSP_SHARED_SOFTMAX shared_softmax
#endif
#ifndef DSP_SPLAT_RUNS
#define DSP_SPLAT_RUNS splat_runs
#define DSP_SLICE_RUNS slice_runs
#endif

const struct dcrf_dsp DSP_TABLE = {
    .cpu = DSP_CPU,
#if DSP_LANES > 4
    .embed_single = embed_single,
    .embed_double = embed_double,
#else /* plain C has such vectors too */
    .embed_single = dcrf_plain_embed_single,
    .embed_double = dcrf_plain_embed_double,
#endif
    .splat_runs = DSP_SPLAT_RUNS,
    .slice_runs = DSP_SLICE_RUNS,
    .blur = blur,
#if DSP_LANES == 16
    .ring_piece = RING_PIECE,
    .splat_ring = splat_ring,
    .slice_ring = slice_ring,
    .blur_ring = blur_ring,
#else
    .splat_ring = DSP_SPLAT_RUNS,
    .slice_ring = DSP_SLICE_RUNS,
    .blur_ring = blur,
#endif
    .convolve = DSP_CONVOLVE,
    .scale = scale_rows,
    .weigh = weigh,
    .read = read,
    .gaussian_sum = gaussian_sum,
    .softmax = softmax,
    .shared_softmax = DSP_SHARED_SOFTMAX,
    .negative_exponential = negative_exponential,
    .log_sums = log_sums,
    .sum_window = sum_window,
    .pairs = {pair_values, pair_product, pair_transpose, pair_line, pair_sums, pair_disagreement},
    .pairs_double = {pair_double_values, pair_double_product, pair_double_transpose,
                     pair_double_line, pair_double_sums, pair_double_disagreement},
};
