/* Splatting and slicing by lists of entries for one instruction set: a part of dsp_vector.h.
 *
 * Gathering and scattering make the same sums, one fused multiply-add after the other, so that a
 * splat may be made either way. */

/* Entries between the one that is read and the one whose row is asked for. */
#define GATHER_AHEAD 160
/* The same for rows that come one after the other: of the output, and of the input of a scatter. */
#define ROWS_AHEAD 16

/* A sum waits for its own additions; meanwhile the processor finds those of the next rows, and in
 * long lists a distant cache takes longer. */
INLINE void gather_rows(const struct dcrf_gather *given, size_t begin, size_t end, size_t wide,
                        size_t tail) {
    const struct dcrf_gather copy = *given, *g = &copy; /* which no store can change */
    const size_t width = row_floats(wide, tail);
    /* Rows of the caller's may begin anywhere: of 24 floats, every other one lies in three lines.
     */
    const bool is_aligned =
        (uintptr_t)g->in % (TAIL_LANES * 4) == 0 && g->in_stride % TAIL_LANES == 0;
    const size_t entries = begin == end ? 0 : g->first ? g->first[end] : end * g->entries;
    for (size_t r = begin; r < end; r++) {
        const size_t first = g->first ? g->first[r] : r * g->entries;
        const size_t last = g->first ? g->first[r + 1] : first + g->entries;
        float *out = g->out + r * g->out_stride;
        struct row sum;
        row_zero(&sum, wide, tail);
        __builtin_prefetch(out + ROWS_AHEAD * g->out_stride, 1);
        if (width > TAIL_LANES)
            __builtin_prefetch(out + ROWS_AHEAD * g->out_stride + width - 1, 1);
        for (size_t e = first; e < last; e++) {
            if (!g->is_near && e + GATHER_AHEAD < entries)
                ask_for(g->in + g->index[e + GATHER_AHEAD] * g->in_stride, width, is_aligned);
            row_add(&sum, g->weight[e], g->in + g->index[e] * g->in_stride, wide, tail);
        }
        row_scale_to(&sum, out, g->factor, g->accumulate, wide, tail);
    }
}

static void gather(const struct dcrf_gather *g, size_t begin,
                   size_t end){FOR_WIDTH(g->width, gather_rows, g, begin, end)}

/* Ask for the rows that row r adds to: both ends of each, which lies in two lines most often. */
INLINE void ask_for_outputs(const struct dcrf_scatter *s, size_t r, size_t entries, size_t width) {
    UNROLL_CONSTANT
    for (size_t k = 0; k < entries; k++) {
        const float *row = s->out + s->index[r * entries + k] * width;
        __builtin_prefetch(row, 1, 2);
        if (width > TAIL_LANES)
            __builtin_prefetch(row + width - 1, 1, 2);
    }
}

INLINE void scatter_rows(const struct dcrf_scatter *given, size_t begin, size_t end, size_t entries,
                         size_t wide, size_t tail) {
    const struct dcrf_scatter copy = *given, *s = &copy; /* which no store can change */
    const size_t width = row_floats(wide, tail);
    for (size_t r = begin; r < end; r++) {
        const float *soon = s->in + (r + ROWS_AHEAD) * s->in_stride;
        __builtin_prefetch(soon);
        if (width > TAIL_LANES)
            __builtin_prefetch(soon + width - 1);
        if (!s->is_near && r + ROWS_AHEAD < end)
            ask_for_outputs(s, r + ROWS_AHEAD, entries, width);
        const struct row in = row_load(s->in + r * s->in_stride, wide, tail);
        UNROLL_CONSTANT
        for (size_t k = 0; k < entries; k++) {
            float *out = s->out + s->index[r * entries + k] * width;
            struct row sum = row_load(out, wide, tail);
            row_add_row(&sum, s->weight[r * entries + k], &in, wide, tail);
            row_store(&sum, out, wide, tail);
        }
    }
}

/* The corners of a simplex in five dimensions, of positions and colours: a constant. */
#define USUAL_ENTRIES 6

INLINE void scatter_some(const struct dcrf_scatter *s, size_t begin, size_t end, size_t wide,
                         size_t tail) {
    if (s->entries == USUAL_ENTRIES)
        scatter_rows(s, begin, end, USUAL_ENTRIES, wide, tail);
    else
        scatter_rows(s, begin, end, s->entries, wide, tail);
}

OPTIONAL void scatter(const struct dcrf_scatter *s, size_t begin, size_t end) {
    FOR_WIDTH(s->width, scatter_some, s, begin, end)
}
