/* Splatting and slicing where every variable is its own run, for rows of multiples of eight floats
 * and one instruction set: a part of dsp_vector.h. Sums are sequences of fused multiply-adds. */

/* Prefetch distances, in variables: for vertices sliced from anywhere, and for consecutive rows. */
#define VERTICES_EARLY 26
#define ROWS_AHEAD 16

/* Prefetch the rows of a variable's vertices that will be added to: both ends of each, as it
 * usually spans two cache lines. */
INLINE void ask_for_sums(const struct dcrf_runs *runs, size_t variable, size_t corners,
                         size_t width) {
    UNROLL_CONSTANT
    for (size_t k = 0; k < corners; k++) {
        const float *row = runs->vertices + runs->vertex[variable * corners + k] * width;
        __builtin_prefetch(row, 1, 2);
        if (width > TAIL_LANES)
            __builtin_prefetch(row + width - 1, 1, 2);
    }
}

/* Add a variable's row to its corners. */
INLINE void splat_variable(const struct dcrf_runs *runs, size_t variable, size_t corners,
                           size_t wide, size_t tail) {
    const struct row in = row_load(runs->variables + variable * runs->stride, wide, tail);
    UNROLL_CONSTANT
    for (size_t k = 0; k < corners; k++) {
        float *out = runs->vertices + runs->vertex[variable * corners + k] * row_floats(wide, tail);
        struct row sum = row_load(out, wide, tail);
        row_add_row(&sum, runs->weight[variable * corners + k], &in, wide, tail);
        row_store(&sum, out, wide, tail);
    }
}

INLINE void splat_rows(const struct dcrf_runs *given, size_t begin, size_t end, size_t corners,
                       size_t wide, size_t tail) {
    const struct dcrf_runs copy = *given, *runs = &copy; /* no store can alias it */
    const size_t width = row_floats(wide, tail);
    for (size_t a = begin; a < end; a++) {
        const float *soon = runs->variables + (a + ROWS_AHEAD) * runs->stride;
        __builtin_prefetch(soon);
        if (width > TAIL_LANES)
            __builtin_prefetch(soon + width - 1);
        if (runs->is_near && a + ROWS_AHEAD < end)
            ask_for_sums(runs, a + ROWS_AHEAD, corners, width);
        splat_variable(runs, a, corners, wide, tail);
    }
}

/* A sum waits for its own additions; meanwhile the processor works on the next rows. */
INLINE void slice_singles(const struct dcrf_runs *given, size_t begin, size_t end, size_t wide,
                          size_t tail) {
    const struct dcrf_runs copy = *given, *runs = &copy;
    const size_t width = row_floats(wide, tail), corners = runs->corners;
    for (size_t a = begin; a < end; a++) {
        float *out = runs->variables + a * runs->stride;
        struct row sum;
        row_zero(&sum, wide, tail);
        __builtin_prefetch(out + ROWS_AHEAD * runs->stride, 1);
        if (width > TAIL_LANES)
            __builtin_prefetch(out + ROWS_AHEAD * runs->stride + width - 1, 1);
        for (size_t k = 0; k < corners; k++) {
            const size_t e = a * corners + k;
            if (runs->is_near && a + VERTICES_EARLY < end)
                ask_for(runs->vertices + runs->vertex[e + VERTICES_EARLY * corners] * width, width,
                        false);
            row_add(&sum, runs->weight[e], runs->vertices + runs->vertex[e] * width, wide, tail);
        }
        row_scale_to(&sum, out, runs->factor, runs->accumulate, wide, tail);
    }
}

/* With the corner count in five dimensions (positions and colours) as a constant. */
INLINE void splat_singles(const struct dcrf_runs *runs, size_t begin, size_t end, size_t wide,
                          size_t tail) {
    if (runs->corners == RUN_CORNERS)
        splat_rows(runs, begin, end, RUN_CORNERS, wide, tail);
    else
        splat_rows(runs, begin, end, runs->corners, wide, tail);
}
