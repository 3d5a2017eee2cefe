/* The inner loops of the library, both filters and softmax, in one table per instruction set; the
 * table is chosen at run time.
 *
 * Tables are constant data: choosing one runs no code that is compiled for its set. Rows are
 * `width` floats, DCRF_NARROW_LANES or a multiple of DCRF_LANES up to DCRF_DSP_WIDTH, so that the
 * sums of a row stay in registers. Runs and blurs take any multiple of four, and rows of two floats
 * where stated below. */
#ifndef DCRF_DSP_DSP_H
#define DCRF_DSP_DSP_H

#include "core/lanes.h"
#include "dsp/pairs.h"

#include <dcrf/cpu.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DCRF_DSP_WIDTH 32

/* Runs of variables that share a simplex, and with it their vertices:
 *
 *   splat   vertices row v += sum of weight * variables row a
 *   slice   variables row a = factor * sum of weight * vertices row v, or += that
 *
 * over the places of a run (the variables a) and its corners (the vertices v). The vertex rows of a
 * run are loaded once for all of its variables. Alternatively every variable is its own run, and
 * `first` is NULL: rows as short as two or four floats load faster than the ends of runs are
 * found. */
struct dcrf_runs {
    size_t corners;
    const uint32_t *first;    /* the places of run r: first[r] .. first[r + 1] - 1 */
    const uint32_t *vertex;   /* runs x corners */
    const uint32_t *variable; /* one per place; NULL if `first` is */
    const float *weight;      /* places x corners */
    size_t places;            /* in total; for prefetching rows of variables */
    float *vertices;          /* rows of `width` floats */
    size_t last_pieces;       /* in a ring: offset of the second pieces of rows */
    float *variables;         /* rows `stride` apart; not written by a splat */
    size_t stride;
    size_t width;
    float factor;    /* of a slice */
    bool accumulate; /* in a slice */
    bool is_single;  /* in a ring: run r has one place, r */
    bool is_near;    /* the variables are in a nearby cache, or come in order: prefetch vertices */
};

/* out row v = centre * in row v + side * (in row n[2 v] + in row n[2 v + 1]), plus the same for a
 * second input if there is one; all rows are `width` floats apart. Rows of two floats have one
 * input. */
struct dcrf_blur {
    const uint32_t *neighbour[2];
    const float *in[2]; /* in[1] = NULL: one input */
    float *out;
    size_t width;
    size_t last_pieces; /* in a ring: their offset in rows; then there is one input */
    float centre, side;
};

/* Points of a lattice from their features (filter/lattice/lattice_embed.c), DCRF_EMBED_POINTS at a
 * time, plane by plane: the coordinates and ranks of their simplices, and the weights of the
 * corners. `fits` is 0 where coordinates are too large; the other outputs for such a point are
 * unspecified. All sets give the same bytes. */
#define DCRF_EMBED_POINTS 16
#define DCRF_EMBED_FEATURES 16
struct dcrf_embed {
    size_t dimension;
    const double *factor; /* of each feature */
    const float *feature; /* `dimension` planes; all other arrays have one more */
    int32_t (*origin)[DCRF_EMBED_POINTS];
    int32_t (*rank)[DCRF_EMBED_POINTS];
    float (*weight)[DCRF_EMBED_POINTS];
    int32_t *fits; /* DCRF_EMBED_POINTS */
};

/* A symmetric convolution of neighbouring outputs, DCRF_CONVOLVE_ROWS of them at once:
 *
 *   out row q = tap[0] in[radius + q] + sum_k tap[k] (in[radius + q - k] + in[radius + q + k])
 *
 * for 1 <= k <= radius. Input rows are given by pointer, 2 radius + `rows` rounded up to a multiple
 * of DCRF_CONVOLVE_ROWS of them, so that all those beyond a border can be the same row of zeros. */
#define DCRF_CONVOLVE_ROWS 8
struct dcrf_convolve {
    const float *const *in;
    size_t in_offset; /* added to all of them */
    const float *tap;
    size_t radius;
    float *out;
    size_t out_step;
    size_t rows;   /* of the output */
    size_t floats; /* per row: a multiple of DCRF_NARROW_LANES, possibly large */
    float factor;
    bool accumulate;
    /* What is read and written soon, prefetched gradually during the work. */
    const float *read_soon;
    const float *written_soon;
    size_t floats_soon; /* in each; 0: neither */
};

/* out row r = factor * scale[r] * in row r, or out += that. */
struct dcrf_scaling {
    const float *in;
    size_t in_stride;
    const float *scale; /* NULL: 1 */
    float factor;
    float *out;
    size_t out_stride;
    size_t width;
    bool accumulate;
};

/* Floats in a row of bins. */
static inline size_t dcrf_bin_row(size_t bins) {
    return (bins + DCRF_LANES - 1) / DCRF_LANES * DCRF_LANES;
}

/* Histograms of `bins` bins, in rows of `row` floats (dcrf_bin_row(bins), the padding
 * zero), and the table of the ordered filter in rows of the same length. */
struct dcrf_histograms {
    size_t bins, row;
    const float *table;
    float *values;
};

/* Some of the bins of the histograms that variables see: rows of `width` floats, a multiple of
 * DCRF_LANES, starting with bin `first`; entries beyond the last bin are zero, in the table too. */
struct dcrf_view_of_bins {
    const float *values;
    size_t width, first;
    const float *table; /* NULL: the sign */
    size_t table_row;
};

/* One mean-field update of rows of `labels` floats, `stride` = dcrf_padded(labels) apart:
 *
 *   m = message - diagonal q
 *   s = damping logits + (1 - damping) (extra - unary - factor m)
 *   next = softmax(s), its padding zero; `next` may be q.
 *
 * The message is overwritten. `logits` (NULL: no damping) keeps s. diagonal: one per row, or NULL;
 * extra: rows like `unary`, or NULL. The sums (NULL: not wanted) are over all rows:
 *
 *   energy    sum_i q_i unary_i + m_i (all_factor + same_label_factor q_i)
 *   change    sum_i |next_i - q_i|
 *   entropy   sum_i next_i ln next_i. */
enum { DCRF_SOFTMAX_ENERGY, DCRF_SOFTMAX_CHANGE, DCRF_SOFTMAX_ENTROPY, DCRF_SOFTMAX_SUMS };
struct dcrf_softmax {
    size_t labels;
    size_t stride;
    const float *unary;
    float *message;
    const float *diagonal;
    const float *extra;
    float factor;
    float same_label_factor, all_factor;
    float damping;
    float *logits;
    const float *q;
    float *next;
};

/* A softmax of rows whose normalization includes labels outside of them:
 *
 *   s = -unary - message, rows of `labels` floats
 *   q = exp(s) / (sum_i exp(s_i) + exp(rest)), its padding zero.
 *
 * `rest` (NULL: there are none) is the logarithm of the sum of exp(s) over the labels outside, and
 * `rest_top` the largest s of these, one per row. shift and scale (with rest only) are set such
 * that q = scale exp(s - shift). peak (NULL: not wanted) is raised to the largest q of each label,
 * and *rest_peak to that of the labels outside. q may be the message if their strides are equal. q
 * can instead be written as planes, or not at all (q and q_planes NULL). */
struct dcrf_shared_softmax {
    size_t labels;
    size_t stride; /* of q: dcrf_padded(labels) */
    size_t message_stride;
    const float
        *unary; /* of label i and row r: plane[i] * plane_step + r / 8 * eight_step + r % 8 */
    const size_t *plane;
    size_t plane_step, eight_step;
    const float *message; /* NULL: zero */
    float *total;         /* output: the sum of each row's messages; or NULL */
    bool has_total; /* total is input: the last label's message is what the others leave of it */
    const float *rest, *rest_top;
    float *shift, *scale;
    float *q;
    float *q_planes; /* label i from i * q_plane_step on */
    size_t q_plane_step;
    float *peak;
    float *rest_peak;
    float *work; /* DCRF_SOFTMAX_WORK(labels) floats, aligned to DCRF_ALIGNMENT */
};
#define DCRF_SOFTMAX_WORK(labels) (32 * ((labels) + 7))

/* A window of mean shift (superpixel/mean_shift.c): the pixels of an image whose position is within
 * the radius of the centre, and whose colour differs from the centre's by at most the square root
 * of range_squared. Vectors may read 15 floats beyond the end of a row; no colour there may be in
 * range. Sums of DCRF_WINDOW_TERMS values of a plane must be exact in float. */
#define DCRF_WINDOW_TERMS 1024

struct dcrf_window {
    const float *plane[3];
    size_t width, height, stride;
    float x, y, colour[3]; /* the centre */
    float radius_px, spatial_squared, range_squared;
};

struct dcrf_window_sums {
    double count, x, y, colour[3];
};

struct dcrf_dsp {
    dcrf_cpu cpu;
    size_t ring_piece; /* see below */
    void (*embed_single)(const struct dcrf_embed *embed);
    void (*embed_double)(const struct dcrf_embed *embed);
    void (*splat_runs)(const struct dcrf_runs *runs, size_t begin, size_t end);
    void (*slice_runs)(const struct dcrf_runs *runs, size_t begin, size_t end);
    void (*blur)(const struct dcrf_blur *blur, size_t begin, size_t end);
    /* The same for the ring of a lattice. There, rows of vertices with at least ring_piece floats
     * (0: none) are in two pieces: first the whole multiples of ring_piece, in rows of `width`
     * rounded down to such a multiple; then the remainders of all rows, which begin at offset
     * `last_pieces`. */
    void (*splat_ring)(const struct dcrf_runs *runs, size_t begin, size_t end);
    void (*slice_ring)(const struct dcrf_runs *runs, size_t begin, size_t end);
    void (*blur_ring)(const struct dcrf_blur *blur, size_t begin, size_t end);
    void (*convolve)(const struct dcrf_convolve *convolve);
    void (*scale)(const struct dcrf_scaling *scaling, size_t rows);
    /* Replace each histogram by the table times it; the table is not NULL. */
    void (*weigh)(const struct dcrf_histograms *histograms, size_t begin, size_t end);
    /* out[a] += sum_h F(a, h) values_a[h], for a at bin[a], or fraction[a] of the way to the
     * next. */
    void (*read)(const struct dcrf_view_of_bins *view, const uint8_t *bin, const float *fraction,
                 float *out, size_t count);
    /* sum_b exp(-|f_b - query|^2 / 2) over `count` points stored plane by plane, `plane` floats
     * apart. count is a multiple of 16; points at infinity contribute nothing. */
    double (*gaussian_sum)(const float *points, size_t plane, size_t count, size_t dimension,
                           const float *query);
    /* Adds to sums[DCRF_SOFTMAX_SUMS]. */
    void (*softmax)(const struct dcrf_softmax *softmax, size_t begin, size_t end, double *sums);
    /* For rows 0 .. rows - 1. */
    void (*shared_softmax)(const struct dcrf_shared_softmax *softmax, size_t rows);
    /* out[i] = scale[i] * exp(-in[i] - shift[i]), where -in[i] - shift[i] <= 0 (up to rounding).
     * The exponential is good to 3 ulp; 0 below exp(-87). */
    void (*negative_exponential)(const float *in, const float *shift, const float *scale,
                                 float *out, size_t count);
    /* out[r] = ln sum_i exp(sign rows[r * labels + i]) for r < count, of finite numbers; the error
     * is a few double-precision roundings of the largest of them. */
    void (*log_sums)(const float *rows, size_t labels, size_t count, double sign, double *out);
    /* Sums over the pixels in a window; the same bits from all instruction sets. */
    void (*sum_window)(const struct dcrf_window *window, struct dcrf_window_sums *sums);
    /* All pairs of variables of two tiles. */
    struct dcrf_pairs pairs;
    struct dcrf_pairs_double pairs_double;
};

/* The table in use. */
const struct dcrf_dsp *dcrf_dsp(void);

/* The table for one instruction set, for the test that compares them; NULL if unavailable. */
const struct dcrf_dsp *dcrf_dsp_for(dcrf_cpu cpu);

/* The tables, for dsp.c only. */
extern const struct dcrf_dsp dcrf_dsp_c;
extern const struct dcrf_dsp dcrf_dsp_neon;
extern const struct dcrf_dsp dcrf_dsp_avx2;
extern const struct dcrf_dsp dcrf_dsp_avx512;
extern const struct dcrf_dsp dcrf_dsp_simd128;

#endif
