/* Convolution of rows with a symmetric kernel for one instruction set: a part of dsp_vector.h.
 *
 * Several outputs are computed at once, so that each row loaded serves all of them. */

/* row += weight * (one + other) */
INLINE void row_add_pair(struct row *row, float weight, const struct row *one,
                         const struct row *other, size_t wide, size_t tail) {
    UNROLL
    for (size_t i = 0; i < wide; i++)
        row->wide[i] = FMA(weight, one->wide[i] + other->wide[i], row->wide[i]);
    if (tail & 2)
        row->tail = FMA(weight, one->tail + other->tail, row->tail);
    if (tail & 1)
        row->half = FMA(weight, one->half + other->half, row->half);
}

/* Outputs whose sums and windows fit in registers together: three vectors each. */
#if DSP_LANES == 8
#define WINDOW_ROWS 4
#else
#define WINDOW_ROWS 8
#endif

/* The state of the outputs computed together. Rows stay in their registers: each turn, which adds
 * one tap to all outputs, shifts the register that an output reads, and WINDOW_ROWS turns restore
 * the first assignment. */
struct windows {
    struct row before[WINDOW_ROWS], after[WINDOW_ROWS], sum[WINDOW_ROWS];
    const float *const *next_before, *const *next_after;
    size_t from;
};

INLINE void turn_windows(struct windows *w, float tap, size_t turn, size_t wide, size_t tail) {
    UNROLL
    for (size_t q = 0; q < WINDOW_ROWS; q++)
        row_add_pair(&w->sum[q], tap, &w->before[(q + turn) % WINDOW_ROWS],
                     &w->after[(q + WINDOW_ROWS - turn) % WINDOW_ROWS], wide, tail);
    w->before[turn] = row_load(*w->next_before++ + w->from, wide, tail);
    w->after[WINDOW_ROWS - 1 - turn] = row_load(*--w->next_after + w->from, wide, tail);
}

/* From the outermost taps inwards: the windows of rows before and after the outputs move by one row
 * per tap, so that two loads serve all outputs. `at` is the offset of the vectors in the rows. */
INLINE void convolve_rows(const struct dcrf_convolve *c, size_t first, size_t at, size_t wide,
                          size_t tail) {
    const size_t radius = c->radius;
    const float *const *in = c->in + first;
    const float *tap = c->tap + radius;
    struct windows w = {
        .next_before = in + WINDOW_ROWS, .next_after = in + 2 * radius, .from = c->in_offset + at};
    UNROLL
    for (size_t q = 0; q < WINDOW_ROWS; q++) {
        w.before[q] = row_load(in[q] + w.from, wide, tail);
        w.after[q] = row_load(w.next_after[q] + w.from, wide, tail);
        row_zero(&w.sum[q], wide, tail);
    }
    for (; tap >= c->tap + WINDOW_ROWS; tap -= WINDOW_ROWS) {
        UNROLL
        for (size_t turn = 0; turn < WINDOW_ROWS; turn++)
            turn_windows(&w, *(tap - turn), turn, wide, tail);
    }
    UNROLL
    for (size_t turn = 0; turn + 1 < WINDOW_ROWS; turn++)
        if (tap > c->tap)
            turn_windows(&w, *tap--, turn, wide, tail);
    UNROLL
    for (size_t q = 0; q < WINDOW_ROWS; q++)
        if (first + q < c->rows) {
            row_add(&w.sum[q], c->tap[0], in[radius + q] + w.from, wide, tail);
            row_scale_to(&w.sum[q], c->out + (first + q) * c->out_step + at, c->factor,
                         c->accumulate, wide, tail);
        }
}

OPTIONAL void convolve(const struct dcrf_convolve *given) {
    const struct dcrf_convolve copy = *given, *c = &copy;       /* no store can alias it */
    const size_t soon = c->floats_soon * WINDOW_ROWS / c->rows; /* per iteration */
    for (size_t first = 0, asked = 0; first < c->rows; first += WINDOW_ROWS) {
        size_t at = 0;
        for (const size_t until = asked + soon; asked < until; asked += 16) {
            __builtin_prefetch(c->read_soon + asked, 0, 2);
            __builtin_prefetch(c->written_soon + asked, 1, 2);
        }
        for (; at + DSP_LANES <= c->floats; at += DSP_LANES)
            convolve_rows(c, first, at, 1, 0);
#if DSP_LANES > TAIL_LANES
        if (at + TAIL_LANES <= c->floats) {
            convolve_rows(c, first, at, 0, 2);
            at += TAIL_LANES;
        }
#endif
        if (at < c->floats)
            convolve_rows(c, first, at, 0, 1);
    }
}
