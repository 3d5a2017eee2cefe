/* The shared softmax of sixteen rows at a time, with 32 registers of 16 lanes: a part of
 * dsp_shared_softmax.h, for rows without labels outside.
 *
 * As there, each label is a vector, so that nothing goes across lanes. The energies of up to 24
 * labels stay in registers until they are probabilities; with more labels they go through memory
 * between steps. Rows are transposed in blocks of eight labels. The number of labels in the last
 * block is tested where that block is processed, and is the same for all rows. */

#define BLOCK 8
/* Blocks whose vectors fit in registers. */
#define MOST_BLOCKS 3
#define UNROLL_BLOCKS _Pragma("GCC unroll 3")
/* Prefetch distance for unary energies, in groups of eight rows; into the second-level cache,
 * because in the first they would evict the working set. */
#define UNARY_EIGHTS_AHEAD 12

/* If the lowest energy is larger than this in size, it is subtracted first. */
#define LARGE_ENERGY 1e6f

/* exp(low - energy), up to a factor common to all labels: the rounding of the lowest energy in base
 * two does not matter, as it is the same for all labels, unless the energy is so large that its
 * last digit is worth more than a few binary orders. */
INLINE wide_vector sixteen_exponentials(wide_vector energy, wide_vector low_in_base_two) {
    const wide_vector y = FNMA(TO_BASE_TWO, energy, low_in_base_two);
    const __m512 k = _mm512_roundscale_ps((__m512)y, _MM_FROUND_TO_NEAREST_INT);
    const wide_vector f = y - (wide_vector)k;
    return (wide_vector)_mm512_scalef_ps((__m512)POWER(f), k);
}

INLINE bool is_large(wide_vector low) {
    const __m512 size = _mm512_abs_ps((__m512)low);
    return _mm512_cmp_ps_mask(size, _mm512_set1_ps(LARGE_ENERGY), _CMP_GT_OQ) != 0;
}

/* Transpose the lanes of four vectors, each as a matrix of four by four. */
INLINE void transpose_lanes(wide_vector *v) {
    const __m512 low = _mm512_unpacklo_ps((__m512)v[0], (__m512)v[1]);
    const __m512 high = _mm512_unpackhi_ps((__m512)v[0], (__m512)v[1]);
    const __m512 next_low = _mm512_unpacklo_ps((__m512)v[2], (__m512)v[3]);
    const __m512 next_high = _mm512_unpackhi_ps((__m512)v[2], (__m512)v[3]);
    v[0] = (wide_vector)_mm512_shuffle_ps(low, next_low, 0x44);
    v[1] = (wide_vector)_mm512_shuffle_ps(low, next_low, 0xee);
    v[2] = (wide_vector)_mm512_shuffle_ps(high, next_high, 0x44);
    v[3] = (wide_vector)_mm512_shuffle_ps(high, next_high, 0xee);
}

INLINE wide_vector load_both(const float *low, const float *high) {
    const __m512d lower = _mm512_castpd256_pd512(_mm256_loadu_pd((const double *)low));
    return (wide_vector)_mm512_insertf64x4(lower, _mm256_loadu_pd((const double *)high), 1);
}

INLINE void store_both(float *low, float *high, __m512d v) {
    _mm256_storeu_pd((double *)low, _mm512_castpd512_pd256(v));
    _mm256_storeu_pd((double *)high, _mm512_extractf64x4_pd(v, 1));
}

/* Eight labels of sixteen rows as eight vectors, and back. */
INLINE void load_block(const float *rows, size_t stride, wide_vector *label) {
    wide_vector v[BLOCK];
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        v[i] = load_both(rows + i * stride, rows + (i + 4) * stride);
        v[i + 4] = load_both(rows + (i + 8) * stride, rows + (i + 12) * stride);
    }
    transpose_lanes(v);
    transpose_lanes(v + 4);
    UNROLL
    for (size_t i = 0; i < 4; i++) { /* labels i and i + 4 alternate in the lanes */
        label[i] = (wide_vector)_mm512_shuffle_f32x4((__m512)v[i], (__m512)v[i + 4], 0x88);
        label[i + 4] = (wide_vector)_mm512_shuffle_f32x4((__m512)v[i], (__m512)v[i + 4], 0xdd);
    }
}

INLINE void store_block(wide_vector *label, float *rows, size_t stride) {
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    transpose_lanes(label);
    transpose_lanes(label + 4);
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        const __m512d low = (__m512d)label[i], high = (__m512d)label[i + 4];
        store_both(rows + i * stride, rows + (i + 4) * stride,
                   _mm512_permutex2var_pd(low, first, high));
        store_both(rows + (i + 8) * stride, rows + (i + 12) * stride,
                   _mm512_permutex2var_pd(low, second, high));
    }
}

INLINE wide_vector smaller_of(wide_vector a, wide_vector b) {
    return (wide_vector)_mm512_min_ps((__m512)a, (__m512)b);
}

INLINE void raise_peaks(const struct dcrf_shared_softmax *s, const wide_vector *peak) {
    for (size_t i = 0; s->peak && i < s->labels; i++) {
        const float largest = _mm512_reduce_max_ps((__m512)peak[i]);
        s->peak[i] = largest > s->peak[i] ? largest : s->peak[i];
    }
}

/* ---- more than four labels ------------------------------------------------------------------- */

/* Properties common to all rows: constants in each copy of the loop, except for `left`. */
struct sixteens_kind {
    size_t blocks;
    size_t left;  /* labels in the last block */
    bool sums_up; /* there is a total */
};

/* Is there a label i in the block at `at`? */
INLINE bool has_label(struct sixteens_kind kind, size_t at, size_t i) {
    return at + BLOCK < kind.blocks * BLOCK || i < kind.left;
}

/* The energies unary + message of the rows r .. r + 15; returns the lowest. A cache line holds the
 * unary energies of two labels, so each label prefetches one line. */
INLINE wide_vector sixteen_energies(const struct dcrf_shared_softmax *s, size_t r,
                                    struct sixteens_kind kind, wide_vector *value) {
    const size_t stride = kind.blocks * BLOCK;
    const float *eight = s->unary + r / TAIL_LANES * s->eight_step;
    wide_vector low[2], messages[2] = {{0}};
    low[0] = low[1] = (wide_vector){0} + 1e30f;
    UNROLL_BLOCKS
    for (size_t at = 0; at < stride; at += BLOCK) {
        wide_vector block[BLOCK] = {{0}};
        if (s->message)
            load_block(s->message + r * stride + at, stride, block);
        UNROLL
        for (size_t i = 0; i < BLOCK; i++) {
            value[at + i] = (wide_vector){0};
            if (!has_label(kind, at, i))
                continue;
            if (kind.sums_up && s->has_total && at + i + 1 == s->labels)
                block[i] = load_wide(s->total + r) - (messages[0] + messages[1]);
            if (kind.sums_up)
                messages[i % 2] += block[i];
            const float *unary = eight + (at + i) * TAIL_LANES, *next = unary + s->eight_step;
            value[at + i] = block[i] + load_both(unary, next);
            low[i % 2] = smaller_of(value[at + i], low[i % 2]);
            __builtin_prefetch((i % 2 ? next : unary) + UNARY_EIGHTS_AHEAD * s->eight_step, 0, 2);
        }
    }
    if (kind.sums_up && !s->has_total)
        store_wide(s->total + r, messages[0] + messages[1]);
    return smaller_of(low[0], low[1]);
}

INLINE void shared_sixteen(const struct dcrf_shared_softmax *s, size_t r, struct sixteens_kind kind,
                           wide_vector *value, wide_vector *peak) {
    const size_t stride = kind.blocks * BLOCK;
    wide_vector low = sixteen_energies(s, r, kind, value), sum[2] = {{0}};
    if (is_large(low)) {
        for (size_t i = 0; i < stride; i++)
            value[i] -= low;
        low = (wide_vector){0};
    }
    low *= TO_BASE_TWO;
    UNROLL_BLOCKS
    for (size_t at = 0; at < stride; at += BLOCK) {
        UNROLL
        for (size_t i = 0; i < BLOCK; i++) {
            if (!has_label(kind, at, i)) {
                value[at + i] = (wide_vector){0};
                continue;
            }
            value[at + i] = sixteen_exponentials(value[at + i], low);
            sum[i % 2] += value[at + i];
        }
    }
    const wide_vector scale = 1 / (sum[0] + sum[1]);
    UNROLL_BLOCKS
    for (size_t at = 0; at < stride; at += BLOCK) {
        wide_vector block[BLOCK];
        UNROLL
        for (size_t i = 0; i < BLOCK; i++) {
            block[i] = scale * value[at + i];
            if (s->peak)
                peak[at + i] = (wide_vector)_mm512_max_ps((__m512)block[i], (__m512)peak[at + i]);
            if (s->q_planes && has_label(kind, at, i))
                store_wide(s->q_planes + (at + i) * s->q_plane_step + r, block[i]);
        }
        if (s->q)
            store_block(block, s->q + r * stride + at, stride);
    }
}

INLINE void many_sixteens(const struct dcrf_shared_softmax *s, size_t rows, size_t blocks,
                          bool sums_up, wide_vector *value, wide_vector *peak) {
    const struct sixteens_kind kind = {blocks, s->labels - (blocks - 1) * BLOCK, sums_up};
    for (size_t r = 0; r + 16 <= rows; r += 16)
        shared_sixteen(s, r, kind, value, peak);
}

INLINE void few_sixteens(const struct dcrf_shared_softmax *s, size_t rows, size_t blocks,
                         bool sums_up, wide_vector *peak) {
    wide_vector value[MOST_BLOCKS * BLOCK];
    many_sixteens(s, rows, blocks, sums_up, value, peak);
}

INLINE void sixteens(const struct dcrf_shared_softmax *s, size_t rows, bool sums_up) {
    wide_vector *peak = (wide_vector *)s->work, *value = peak + s->stride;
    for (size_t i = 0; i < s->stride; i++)
        peak[i] = (wide_vector){0};
    switch (s->stride / BLOCK) {
    case 1:
        few_sixteens(s, rows, 1, sums_up, peak);
        break;
    case 2:
        few_sixteens(s, rows, 2, sums_up, peak);
        break;
    case MOST_BLOCKS:
        few_sixteens(s, rows, MOST_BLOCKS, sums_up, peak);
        break;
    default:
        many_sixteens(s, rows, s->stride / BLOCK, sums_up, value, peak);
        break;
    }
    raise_peaks(s, peak);
}

/* ---- up to four labels ---------------------------------------------------------------------- */

/* Sixteen consecutive rows of four floats as four vectors, and back: four rows are one vector, so
 * the lanes are transposed too. */
INLINE wide_vector transpose_rows(wide_vector v) {
    const __m512i index = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return (wide_vector)_mm512_permutexvar_ps(index, (__m512)v);
}

INLINE void load_rows(const float *rows, size_t labels, wide_vector *label) {
    UNROLL
    for (size_t i = 0; i < 4; i++)
        label[i] = load_wide(rows + i * 16);
    transpose_lanes(label);
    UNROLL
    for (size_t i = 0; i < labels; i++)
        label[i] = transpose_rows(label[i]);
}

INLINE void store_rows(wide_vector *label, size_t labels, float *rows) {
    UNROLL
    for (size_t i = 0; i < labels; i++)
        label[i] = transpose_rows(label[i]);
    transpose_lanes(label);
    UNROLL
    for (size_t i = 0; i < 4; i++)
        store_wide(rows + i * 16, label[i]);
}

/* The rows r .. r + 15; `peak` has one vector per label. */
INLINE void shared_few_sixteen(const struct dcrf_shared_softmax *s, size_t r, size_t labels,
                               wide_vector *peak) {
    const float *eight = s->unary + r / TAIL_LANES * s->eight_step;
    wide_vector value[4] = {{0}}, messages = {0}, sum = {0};
    wide_vector low = (wide_vector){0} + 1e30f;
    if (s->message)
        load_rows(s->message + r * 4, labels, value);
    UNROLL
    for (size_t i = 0; i < labels; i++) {
        const float *unary = eight + i * TAIL_LANES, *next = unary + s->eight_step;
        if (i + 1 == labels && s->has_total)
            value[i] = load_wide(s->total + r) - messages;
        messages += value[i];
        value[i] += load_both(unary, next);
        low = smaller_of(value[i], low);
        __builtin_prefetch((i % 2 ? next : unary) + UNARY_EIGHTS_AHEAD * s->eight_step, 0, 2);
    }
    if (s->total && !s->has_total)
        store_wide(s->total + r, messages);
    if (is_large(low)) {
        UNROLL
        for (size_t i = 0; i < labels; i++)
            value[i] -= low;
        low = (wide_vector){0};
    }
    low *= TO_BASE_TWO;
    UNROLL
    for (size_t i = 0; i < labels; i++) {
        value[i] = sixteen_exponentials(value[i], low);
        sum += value[i];
    }
    const wide_vector scale = 1 / sum;
    UNROLL
    for (size_t i = 0; i < labels; i++) {
        value[i] *= scale;
        peak[i] = (wide_vector)_mm512_max_ps((__m512)value[i], (__m512)peak[i]);
        if (s->q_planes)
            store_wide(s->q_planes + i * s->q_plane_step + r, value[i]);
    }
    UNROLL
    for (size_t i = labels; i < 4; i++)
        value[i] = (wide_vector){0};
    if (s->q)
        store_rows(value, labels, s->q + r * 4);
}

INLINE void fewest_sixteens(const struct dcrf_shared_softmax *s, size_t rows, size_t labels) {
    wide_vector peak[4] = {{0}};
    for (size_t r = 0; r + 16 <= rows; r += 16)
        shared_few_sixteen(s, r, labels, peak);
    raise_peaks(s, peak);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* All full groups of sixteen rows; returns the number of rows done. */
static size_t shared_sixteens(const struct dcrf_shared_softmax *s, size_t rows) {
    switch (s->labels) {
    case 1:
        fewest_sixteens(s, rows, 1);
        break;
    case 2:
        fewest_sixteens(s, rows, 2);
        break;
    case 3:
        fewest_sixteens(s, rows, 3);
        break;
    case 4:
        fewest_sixteens(s, rows, 4);
        break;
    default:
        if (s->total)
            sixteens(s, rows, true);
        else
            sixteens(s, rows, false);
        break;
    }
    return rows - rows % 16;
}
