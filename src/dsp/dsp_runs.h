/* Splatting and slicing by runs for one instruction set: a part of dsp_vector.h.
 *
 * A block is as many floats of a row as let those of RUN_CORNERS corners fit in registers together:
 * the whole row with 32 registers of 16 lanes, 16 floats with 16 registers of 8. A simplex with
 * more corners takes several passes. */
#if DSP_LANES == 16
#define RUN_BLOCK DCRF_DSP_WIDTH
#elif DSP_LANES == 8
#define RUN_BLOCK 16
#else
#define RUN_BLOCK 8
#endif
#define RUN_CORNERS 6
#define RUN_SUMS (DSP_LANES == 16 ? 2 : 1)
/* Prefetch distance for rows of variables, in places. */
#define RUN_AHEAD 64

/* Prefetch the row of the variable at a place. */
INLINE void ask_for_row(const struct dcrf_runs *runs, size_t place, size_t width) {
    if (place >= runs->places)
        return;
    const float *row = runs->variables + runs->variable[place] * runs->stride;
    ask_for(row, width, true);
}

/* Prefetch distance for vertices, in runs, if variables are near. Both ends of a row are
 * prefetched: it usually spans two cache lines. */
#define VERTICES_AHEAD 12

INLINE void ask_for_vertices(const struct dcrf_runs *runs, size_t run, size_t end, size_t width) {
    if (run >= end)
        return;
    UNROLL_CONSTANT
    for (size_t k = 0; k < runs->corners; k++) {
        const float *row = runs->vertices + runs->vertex[run * runs->corners + k] * width;
        __builtin_prefetch(row);
        if (width > TAIL_LANES)
            __builtin_prefetch(row + width - 1);
    }
}

/* For one run: the block at `at` of the rows of `corners` corners, from `corner` on. */
INLINE void splat_run(const struct dcrf_runs *runs, size_t run, size_t corner, size_t corners,
                      size_t at, size_t wide, size_t tail) {
    const size_t last = runs->first[run + 1];
    struct row sum[RUN_CORNERS];
    UNROLL
    for (size_t k = 0; k < corners; k++)
        row_zero(&sum[k], wide, tail);
    for (size_t place = runs->first[run]; place < last; place++) {
        const float *weight = runs->weight + place * runs->corners + corner;
        const struct row in =
            row_load(runs->variables + runs->variable[place] * runs->stride + at, wide, tail);
        UNROLL
        for (size_t k = 0; k < corners; k++)
            row_add_row(&sum[k], weight[k], &in, wide, tail);
    }
    const uint32_t *vertex = runs->vertex + run * runs->corners + corner;
    UNROLL
    for (size_t k = 0; k < corners; k++)
        row_add_to(&sum[k], runs->vertices + vertex[k] * runs->width + at, wide, tail);
}

/* sum[0] = the weighted rows of some corners. If there are registers for two sums, corners
 * alternate between them: a single sum would stall on the latency of its additions. */
INLINE void row_slice(struct row *sum, const float *weight, const struct row *in, size_t corners,
                      size_t wide, size_t tail) {
    UNROLL
    for (size_t k = 0; k < corners; k++)
        if (k < RUN_SUMS)
            row_times(&sum[k], weight[k], &in[k], wide, tail);
        else
            row_add_row(&sum[k % RUN_SUMS], weight[k], &in[k], wide, tail);
    if (corners > 1 && RUN_SUMS > 1)
        row_join(&sum[0], &sum[1], wide, tail);
}

/* The same as splat_run for slicing. */
INLINE void slice_run(const struct dcrf_runs *runs, size_t run, size_t corner, size_t corners,
                      size_t at, size_t wide, size_t tail) {
    const uint32_t *vertex = runs->vertex + run * runs->corners + corner;
    const size_t last = runs->first[run + 1];
    struct row in[RUN_CORNERS];
    UNROLL
    for (size_t k = 0; k < corners; k++)
        in[k] = row_load(runs->vertices + vertex[k] * runs->width + at, wide, tail);
    for (size_t place = runs->first[run]; place < last; place++) {
        const float *weight = runs->weight + place * runs->corners + corner;
        struct row sum[RUN_SUMS];
        row_slice(sum, weight, in, corners, wide, tail);
        row_scale_to(&sum[0], runs->variables + runs->variable[place] * runs->stride + at,
                     runs->factor, runs->accumulate || corner > 0, wide, tail);
    }
}

/* All corners of a run, for one block; `work` is one of the two above, inlined. */
#define RUN_CORNERS_BLOCK(work, runs, run, at, wide, tail)                                         \
    if ((runs)->corners == RUN_CORNERS)                                                            \
        work(runs, run, 0, RUN_CORNERS, at, wide, tail);                                           \
    else                                                                                           \
        for (size_t corner = 0; corner < (runs)->corners;) {                                       \
            if ((runs)->corners - corner >= 3) {                                                   \
                work(runs, run, corner, 3, at, wide, tail);                                        \
                corner += 3;                                                                       \
            } else {                                                                               \
                work(runs, run, corner, 1, at, wide, tail);                                        \
                corner += 1;                                                                       \
            }                                                                                      \
        }

/* With 16 lanes whole rows of the runs, else block by block. */
#define FOR_RUNS(work, runs, begin, end, wide, tail)                                               \
    const size_t width = (wide) + (tail) > 0 ? row_floats(wide, tail) : (runs)->width;             \
    for (size_t run = (begin); run < (end); run++) {                                               \
        if ((runs)->is_near) {                                                                     \
            ask_for_vertices(runs, run + VERTICES_AHEAD, end, width);                              \
        } else {                                                                                   \
            for (size_t place = (runs)->first[run]; place < (runs)->first[run + 1]; place++)       \
                ask_for_row(runs, place + RUN_AHEAD, width);                                       \
        }                                                                                          \
        if (RUN_BLOCK >= DCRF_DSP_WIDTH) {                                                         \
            RUN_CORNERS_BLOCK(work, runs, run, 0, wide, tail)                                      \
            continue;                                                                              \
        }                                                                                          \
        size_t at = 0;                                                                             \
        for (; at + RUN_BLOCK <= width; at += RUN_BLOCK)                                           \
            RUN_CORNERS_BLOCK(work, runs, run, at, RUN_BLOCK / DSP_LANES, 0)                       \
        for (; at + DSP_LANES <= width; at += DSP_LANES)                                           \
            RUN_CORNERS_BLOCK(work, runs, run, at, 1, 0)                                           \
        if (at < width) {                                                                          \
            RUN_CORNERS_BLOCK(work, runs, run, at, 0, 1)                                           \
        }                                                                                          \
    }

INLINE void splat_loop(const struct dcrf_runs *runs, size_t begin, size_t end, size_t wide,
                       size_t tail){FOR_RUNS(splat_run, runs, begin, end, wide, tail)}

INLINE void slice_loop(const struct dcrf_runs *runs, size_t begin, size_t end, size_t wide,
                       size_t tail){FOR_RUNS(slice_run, runs, begin, end, wide, tail)}

/* Local copies, which the compiler can tell no store aliases. With 16 lanes the parameters of the
 * usual lattices, of two features and of five, are constants in the loops. */
#define HAS_CONSTANTS(runs)                                                                        \
    (DSP_LANES == 16 && (runs)->is_near && ((runs)->corners == 3 || (runs)->corners == RUN_CORNERS))

INLINE void splat_usual(struct dcrf_runs runs, size_t begin, size_t end, size_t corners,
                        size_t wide, size_t tail) {
    runs.corners = corners;
    runs.is_near = true;
    splat_loop(&runs, begin, end, wide, tail);
}

INLINE void splat_all(const struct dcrf_runs *given, size_t begin, size_t end, size_t wide,
                      size_t tail) {
    const struct dcrf_runs runs = *given;
    if (!HAS_CONSTANTS(&runs))
        splat_loop(&runs, begin, end, wide, tail);
    else if (runs.corners == 3)
        splat_usual(runs, begin, end, 3, wide, tail);
    else
        splat_usual(runs, begin, end, RUN_CORNERS, wide, tail);
}

INLINE void slice_usual(struct dcrf_runs runs, size_t begin, size_t end, size_t corners,
                        bool accumulate, size_t wide, size_t tail) {
    runs.corners = corners;
    runs.is_near = true;
    runs.accumulate = accumulate;
    slice_loop(&runs, begin, end, wide, tail);
}

INLINE void slice_all(const struct dcrf_runs *given, size_t begin, size_t end, size_t wide,
                      size_t tail) {
    const struct dcrf_runs runs = *given;
    if (!HAS_CONSTANTS(&runs))
        slice_loop(&runs, begin, end, wide, tail);
    else if (runs.corners == 3 && runs.accumulate)
        slice_usual(runs, begin, end, 3, true, wide, tail);
    else if (runs.corners == 3)
        slice_usual(runs, begin, end, 3, false, wide, tail);
    else if (runs.accumulate)
        slice_usual(runs, begin, end, RUN_CORNERS, true, wide, tail);
    else
        slice_usual(runs, begin, end, RUN_CORNERS, false, wide, tail);
}

/* Every variable its own run: rows of two floats or four; and longer ones. */
#include "dsp/dsp_singles.h"

#define IS_SHORT(runs) ((runs)->width <= HALF_LANES)

INLINE half_vector load_short(const float *at, size_t width) {
    return width == PAIR ? load_pairs(at, NULL) : load_half(at);
}

INLINE void store_short(float *at, half_vector value, size_t width) {
    if (width == PAIR)
        store_pair(at, value);
    else
        store_half(at, value);
}

INLINE void splat_short(const struct dcrf_runs *given, size_t begin, size_t end, size_t corners,
                        size_t width) {
    const struct dcrf_runs copy = *given, *runs = &copy;
    for (size_t a = begin; a < end; a++) {
        const uint32_t *vertex = runs->vertex + a * corners;
        const float *weight = runs->weight + a * corners;
        const half_vector in = load_short(runs->variables + a * runs->stride, width);
        UNROLL_CONSTANT
        for (size_t k = 0; k < corners; k++) {
            float *row = runs->vertices + vertex[k] * width;
            store_short(row, FMA(weight[k], in, load_short(row, width)), width);
        }
    }
}

INLINE void slice_short(const struct dcrf_runs *given, size_t begin, size_t end, size_t corners,
                        size_t width) {
    const struct dcrf_runs copy = *given, *runs = &copy;
    for (size_t a = begin; a < end; a++) {
        const uint32_t *vertex = runs->vertex + a * corners;
        const float *weight = runs->weight + a * corners;
        float *out = runs->variables + a * runs->stride;
        half_vector sum = {0};
        UNROLL_CONSTANT
        for (size_t k = 0; k < corners; k++)
            sum = FMA(weight[k], load_short(runs->vertices + vertex[k] * width, width), sum);
        sum =
            runs->accumulate ? FMA(runs->factor, sum, load_short(out, width)) : runs->factor * sum;
        store_short(out, sum, width);
    }
}

/* With the usual corner counts as constants. */
#define FOR_SHORT(body, runs, begin, end)                                                          \
    switch ((runs)->width == PAIR ? (runs)->corners : SHORT_FOURS + (runs)->corners) {             \
    case 3:                                                                                        \
        body(runs, begin, end, 3, PAIR);                                                           \
        break;                                                                                     \
    case RUN_CORNERS:                                                                              \
        body(runs, begin, end, RUN_CORNERS, PAIR);                                                 \
        break;                                                                                     \
    case SHORT_FOURS + 3:                                                                          \
        body(runs, begin, end, 3, HALF_LANES);                                                     \
        break;                                                                                     \
    case SHORT_FOURS + RUN_CORNERS:                                                                \
        body(runs, begin, end, RUN_CORNERS, HALF_LANES);                                           \
        break;                                                                                     \
    default:                                                                                       \
        body(runs, begin, end, (runs)->corners, (runs)->width);                                    \
        break;                                                                                     \
    }
#define SHORT_FOURS 1000

#if DSP_LANES == 16
#define FOR_LONG(body, runs, begin, end) FOR_FOURS((runs)->width, body, runs, begin, end)
#else
#define FOR_LONG(body, runs, begin, end) body(runs, begin, end, 0, 0);
#endif

OPTIONAL void splat_runs(const struct dcrf_runs *runs, size_t begin, size_t end) {
    if (runs->first) {
        FOR_LONG(splat_all, runs, begin, end)
    } else if (IS_SHORT(runs)) {
        FOR_SHORT(splat_short, runs, begin, end)
    } else {
        FOR_WIDTH(runs->width, splat_singles, runs, begin, end)
    }
}

OPTIONAL void slice_runs(const struct dcrf_runs *runs, size_t begin, size_t end) {
    if (runs->first) {
        FOR_LONG(slice_all, runs, begin, end)
    } else if (IS_SHORT(runs)) {
        FOR_SHORT(slice_short, runs, begin, end)
    } else {
        FOR_WIDTH(runs->width, slice_singles, runs, begin, end)
    }
}
