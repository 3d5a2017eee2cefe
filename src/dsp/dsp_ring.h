/* Splatting, blurring and slicing in a ring (filter/lattice/lattice_ring.c) for one instruction
 * set: a part of dsp_vector.h, for vectors as long as a cache line.
 *
 * Rows of vertices are in two pieces: whole vectors, which then are cache lines, and behind those
 * of all rows the remainders. A row of 20 floats in one piece spans two cache lines, and so does
 * its vector of 16 three times out of four, which hurts the stores of a splat most.
 *
 * Nothing else uses the caches here, so rows of variables are prefetched, and those of vertices,
 * which are near, are not. */
#define RING_PIECE DSP_LANES
/* Prefetch distance in places, reaching into the next layer too. */
#define RING_AHEAD 96

/* Where the pieces of a row are. */
INLINE float *first_piece(float *rows, size_t row, size_t wide) {
    return rows + row * wide * DSP_LANES;
}

INLINE float *last_piece(float *rows, size_t last_pieces, size_t row, size_t tail) {
    return rows + last_pieces + row * tail * HALF_LANES;
}

/* Prefetch the row of the variable at a place, or at the last one. */
INLINE void ask_for_place(const struct dcrf_runs *runs, size_t place, size_t last, size_t width) {
    const size_t variable = runs->variable[place < last ? place : last];
    ask_for(runs->variables + variable * runs->stride, width, true);
}

/* Corners `corner` .. corner + corners - 1 of one run. */
INLINE void splat_pieces(const struct dcrf_runs *runs, size_t run, size_t last_place, size_t corner,
                         size_t corners, bool is_single, size_t wide, size_t tail) {
    struct row sum[RUN_CORNERS];
    UNROLL
    for (size_t k = 0; k < corners; k++)
        row_zero(&sum[k], wide, tail);
    const size_t begin = is_single ? run : runs->first[run];
    const size_t end = is_single ? run + 1 : runs->first[run + 1];
    for (size_t place = begin; place < end; place++) {
        const float *weight = runs->weight + place * runs->corners + corner;
        ask_for_place(runs, place + RING_AHEAD, last_place, row_floats(wide, tail));
        const struct row in =
            row_load(runs->variables + runs->variable[place] * runs->stride, wide, tail);
        UNROLL
        for (size_t k = 0; k < corners; k++)
            row_add_row(&sum[k], weight[k], &in, wide, tail);
    }
    const uint32_t *vertex = runs->vertex + run * runs->corners + corner;
    UNROLL
    for (size_t k = 0; k < corners; k++) {
        row_add_to(&sum[k], first_piece(runs->vertices, vertex[k], wide), wide, 0);
        row_add_to(&sum[k], last_piece(runs->vertices, runs->last_pieces, vertex[k], tail), 0,
                   tail);
    }
}

INLINE void slice_pieces(const struct dcrf_runs *runs, size_t run, size_t last_place, size_t corner,
                         size_t corners, bool is_single, size_t wide, size_t tail) {
    const uint32_t *vertex = runs->vertex + run * runs->corners + corner;
    struct row in[RUN_CORNERS];
    UNROLL
    for (size_t k = 0; k < corners; k++) {
        in[k] = row_load(first_piece(runs->vertices, vertex[k], wide), wide, 0);
        const struct row rest =
            row_load(last_piece(runs->vertices, runs->last_pieces, vertex[k], tail), 0, tail);
        if (tail & 2)
            in[k].tail = rest.tail;
        if (tail & 1)
            in[k].half = rest.half;
    }
    const size_t begin = is_single ? run : runs->first[run];
    const size_t end = is_single ? run + 1 : runs->first[run + 1];
    for (size_t place = begin; place < end; place++) {
        const float *weight = runs->weight + place * runs->corners + corner;
        ask_for_place(runs, place + RING_AHEAD, last_place, row_floats(wide, tail));
        struct row sum[RUN_SUMS];
        row_slice(sum, weight, in, corners, wide, tail);
        row_scale_to(&sum[0], runs->variables + runs->variable[place] * runs->stride, runs->factor,
                     runs->accumulate || corner > 0, wide, tail);
    }
}

/* All corners of runs that have three or six: the usual counts are constants, and are assigned to
 * the copy for the compiler to see. Runs with three are those of a spatial kernel, whose small
 * widths make each variable its own run. */
#define PIECES_LOOP(work, runs, begin, end, count, is_single, wide, tail)                          \
    for (size_t run = (begin); run < (end); run++)                                                 \
        work(runs, run, last_place, 0, count, is_single, wide, tail);
#define FOR_PIECES(work, given, begin, end, wide, tail)                                            \
    struct dcrf_runs copy = *(given);                                                              \
    const size_t last_place = copy.places - 1;                                                     \
    if (copy.corners == 3) {                                                                       \
        copy.corners = 3;                                                                          \
        if (copy.is_single) {                                                                      \
            PIECES_LOOP(work, &copy, begin, end, 3, true, wide, tail)                              \
        } else {                                                                                   \
            PIECES_LOOP(work, &copy, begin, end, 3, false, wide, tail)                             \
        }                                                                                          \
    } else if (copy.corners == RUN_CORNERS) {                                                      \
        copy.corners = RUN_CORNERS;                                                                \
        PIECES_LOOP(work, &copy, begin, end, RUN_CORNERS, false, wide, tail)                       \
    } else { /* as many at a time as with narrow rows, for the same sums */                        \
        for (size_t run = (begin); run < (end); run++)                                             \
            for (size_t corner = 0; corner < copy.corners;)                                        \
                if (copy.corners - corner >= 3) {                                                  \
                    work(&copy, run, last_place, corner, 3, false, wide, tail);                    \
                    corner += 3;                                                                   \
                } else {                                                                           \
                    work(&copy, run, last_place, corner, 1, false, wide, tail);                    \
                    corner += 1;                                                                   \
                }                                                                                  \
    }

INLINE void splat_all_pieces(const struct dcrf_runs *given, size_t begin, size_t end, size_t wide,
                             size_t tail){FOR_PIECES(splat_pieces, given, begin, end, wide, tail)}

INLINE void slice_all_pieces(const struct dcrf_runs *given, size_t begin, size_t end, size_t wide,
                             size_t tail){FOR_PIECES(slice_pieces, given, begin, end, wide, tail)}

INLINE void blur_pieces(const struct dcrf_blur *given, size_t begin, size_t end, size_t wide,
                        size_t tail) {
    const struct dcrf_blur copy = *given, *b = &copy; /* no store can alias it */
    for (size_t v = begin; v < end; v++) {
        struct row sum;
        row_blur(&sum, b->in[0], b->neighbour[0], v, b, false, wide, 0);
        row_blur(&sum, b->in[0] + b->last_pieces, b->neighbour[0], v, b, false, 0, tail);
        row_store(&sum, first_piece(b->out, v, wide), wide, 0);
        row_store(&sum, last_piece(b->out, b->last_pieces, v, tail), 0, tail);
    }
}

/* With the usual widths as constants; rows shorter than a vector are in one piece, as elsewhere. */
#define FOR_PIECED(width, body, whole, ...)                                                        \
    switch ((width) / HALF_LANES) {                                                                \
        WIDTH_CASE(4, body, __VA_ARGS__)                                                           \
        WIDTH_CASE(5, body, __VA_ARGS__)                                                           \
        WIDTH_CASE(6, body, __VA_ARGS__)                                                           \
        WIDTH_CASE(7, body, __VA_ARGS__)                                                           \
        WIDTH_CASE(8, body, __VA_ARGS__)                                                           \
    default:                                                                                       \
        whole(__VA_ARGS__);                                                                        \
        break;                                                                                     \
    }

static void splat_ring(const struct dcrf_runs *runs, size_t begin, size_t end) {
    FOR_PIECED(runs->width, splat_all_pieces, splat_runs, runs, begin, end)
}

static void slice_ring(const struct dcrf_runs *runs, size_t begin, size_t end) {
    FOR_PIECED(runs->width, slice_all_pieces, slice_runs, runs, begin, end)
}

static void blur_ring(const struct dcrf_blur *b, size_t begin, size_t end) {
    FOR_PIECED(b->width, blur_pieces, blur, b, begin, end)
}
