/* The loops over pairs (pairs.h) for one instruction set and one floating-point type: a part of
 * dsp_vector.h, which defines REAL, INTEGER (of the same size), PAIR_LANES, LINE (the struct), NAME
 * (of a function or type), and the terms of the polynomial. */

typedef REAL NAME(vector) __attribute__((vector_size(PAIR_LANES * sizeof(REAL))));
typedef INTEGER NAME(integers) __attribute__((vector_size(PAIR_LANES * sizeof(REAL))));
#define VECTOR NAME(vector)
#define INTEGERS NAME(integers)
/* Vectors per row of a tile. */
#define ROW_VECTORS (DCRF_TILE / PAIR_LANES)

INLINE VECTOR NAME(load)(const REAL *at) {
    VECTOR value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE void NAME(store)(REAL *at, VECTOR value) {
    memcpy(at, &value, sizeof value);
}

/* ---- kernel values -------------------------------------------------------------------------- */

/* 2^x for x <= 0, at least 2^-126. Adding MAGIC rounds to an integer, which then is in the lowest
 * bits; the fraction is exact. */
INLINE VECTOR NAME(power)(VECTOR x) {
    x = LARGER(x, (VECTOR){0} - 126);
    const VECTOR shifted = x + MAGIC;
    const VECTOR f = x - (shifted - MAGIC);
    const REAL term[] = POWER_TERMS;
    VECTOR p = IN_ALL(term[0], f);
#pragma GCC unroll 12
    for (size_t i = 1; i < sizeof term / sizeof *term; i++)
        p = FMA(p, f, term[i]);
    return (VECTOR)((INTEGERS)p + ((INTEGERS)shifted << MANTISSA_BITS));
}

/* Vectors of one row computed together, so that features of b are read once for all of them. */
#define VALUE_VECTORS 2

/* The values of b's variable j with the vectors of a from position v on. */
INLINE void NAME(values_at)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                            size_t v, size_t j, size_t groups, const size_t *size, VECTOR *value) {
    VECTOR exponent[VALUE_VECTORS] = {{0}};
    size_t feature = 0;
#pragma GCC unroll 2
    for (size_t g = 0; g < groups; g++) {
        VECTOR squared[VALUE_VECTORS] = {{0}};
#pragma GCC unroll 8
        for (size_t k = 0; k < size[g]; k++, feature++) {
            const REAL at = b[feature * DCRF_TILE + j];
#pragma GCC unroll 2
            for (size_t q = 0; q < VALUE_VECTORS; q++) {
                const VECTOR difference =
                    NAME(load)(a + feature * DCRF_TILE + v + q * PAIR_LANES) - at;
                squared[q] = FMA(difference, difference, squared[q]);
            }
        }
#pragma GCC unroll 2
        for (size_t q = 0; q < VALUE_VECTORS; q++)
            exponent[q] = FNMA((REAL)metric->weight[g], squared[q], exponent[q]);
    }
#pragma GCC unroll 2
    for (size_t q = 0; q < VALUE_VECTORS; q++)
        value[q] = NAME(power)(exponent[q]);
}

/* Constants for the common groups: two or three coordinates alone, and with three colours. */
#define BY_GROUPS(function, ...)                                                                   \
    do {                                                                                           \
        const size_t *size_ = metric->size;                                                        \
        if (metric->groups == 1 && size_[0] == 2)                                                  \
            function(__VA_ARGS__, 1, (const size_t[]){2});                                         \
        else if (metric->groups == 2 && size_[0] == 2 && size_[1] == 3)                            \
            function(__VA_ARGS__, 2, (const size_t[]){2, 3});                                      \
        else                                                                                       \
            function(__VA_ARGS__, metric->groups, size_);                                          \
    } while (0)

INLINE void NAME(values_of)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                            const REAL *scale_a, const REAL *scale_b, REAL *kernel, size_t groups,
                            const size_t *size) {
    for (size_t v = 0; v < DCRF_TILE; v += VALUE_VECTORS * PAIR_LANES)
#pragma GCC unroll 2
        for (size_t j = 0; j < DCRF_TILE; j++) {
            VECTOR value[VALUE_VECTORS];
            NAME(values_at)(metric, a, b, v, j, groups, size, value);
#pragma GCC unroll 2
            for (size_t q = 0; q < VALUE_VECTORS; q++) {
                if (scale_a)
                    value[q] *= NAME(load)(scale_a + v + q * PAIR_LANES) * scale_b[j];
                NAME(store)(kernel + j * DCRF_TILE + v + q * PAIR_LANES, value[q]);
            }
        }
}

static void NAME(values)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                         const REAL *scale_a, const REAL *scale_b, REAL *kernel) {
    BY_GROUPS(NAME(values_of), metric, a, b, scale_a, scale_b, kernel);
}

/* ---- products ------------------------------------------------------------------------------- */

/* Sums that stay in registers: 2 vectors of variables by PRODUCT_CHANNELS channels, so that each
 * broadcast number is used twice. */
#if PAIR_LANES * 4 >= 16 && !defined(__AVX512F__) && !defined(__aarch64__)
#define PRODUCT_CHANNELS 5
#else
#define PRODUCT_CHANNELS 12
#endif

INLINE void NAME(product_block)(const REAL *kernel, const REAL *in, REAL *out, size_t channels) {
    for (size_t v = 0; v < DCRF_TILE; v += 2 * PAIR_LANES) {
        VECTOR sum[PRODUCT_CHANNELS][2];
#pragma GCC unroll 12
        for (size_t c = 0; c < channels; c++)
            sum[c][0] = sum[c][1] = (VECTOR){0};
        for (size_t b = 0; b < DCRF_TILE; b++) {
            const VECTOR low = NAME(load)(kernel + b * DCRF_TILE + v);
            const VECTOR high = NAME(load)(kernel + b * DCRF_TILE + v + PAIR_LANES);
#pragma GCC unroll 12
            for (size_t c = 0; c < channels; c++) {
                const REAL weight = in[c * DCRF_TILE + b];
                sum[c][0] = FMA(weight, low, sum[c][0]);
                sum[c][1] = FMA(weight, high, sum[c][1]);
            }
        }
#pragma GCC unroll 12
        for (size_t c = 0; c < channels; c++) {
            REAL *at = out + c * DCRF_TILE + v;
            NAME(store)(at, NAME(load)(at) + sum[c][0]);
            NAME(store)(at + PAIR_LANES, NAME(load)(at + PAIR_LANES) + sum[c][1]);
        }
    }
}

#define PRODUCT_CASE(count)                                                                        \
    case count:                                                                                    \
        NAME(product_block)(kernel, from, to, count);                                              \
        break;
static void NAME(product)(const REAL *kernel, const REAL *in, REAL *out, size_t channels) {
    const size_t blocks = (channels + PRODUCT_CHANNELS - 1) / PRODUCT_CHANNELS;
    for (size_t block = 0; block < blocks; block++) {
        const size_t first = channels * block / blocks;
        const size_t count = channels * (block + 1) / blocks - first;
        const REAL *from = in + first * DCRF_TILE;
        REAL *to = out + first * DCRF_TILE;
        switch (count) {
            PRODUCT_CASE(1)
            PRODUCT_CASE(2)
            PRODUCT_CASE(3)
            PRODUCT_CASE(4)
            PRODUCT_CASE(5)
#if PRODUCT_CHANNELS == 12
            PRODUCT_CASE(6)
            PRODUCT_CASE(7)
            PRODUCT_CASE(8)
            PRODUCT_CASE(9)
            PRODUCT_CASE(10)
            PRODUCT_CASE(11)
            PRODUCT_CASE(12)
#endif
        }
    }
}
#undef PRODUCT_CHANNELS
#undef PRODUCT_CASE

/* ---- transposing and adding up -------------------------------------------------------------- */

/* Interleave the lower or the upper halves of two vectors. */
#if PAIR_LANES == 2
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 2)
#define UPPER(a, b) __builtin_shufflevector(a, b, 1, 3)
#elif PAIR_LANES == 4
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UPPER(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#elif PAIR_LANES == 8
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define LOWER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* Interleaving vectors i and i + PAIR_LANES / 2 into 2 i and 2 i + 1, log2(PAIR_LANES) times,
 * transposes. */
static void NAME(transpose)(const REAL *kernel, REAL *transposed) {
    for (size_t i = 0; i < DCRF_TILE; i += PAIR_LANES)
        for (size_t j = 0; j < DCRF_TILE; j += PAIR_LANES) {
            VECTOR row[PAIR_LANES], next[PAIR_LANES];
#pragma GCC unroll 16
            for (size_t k = 0; k < PAIR_LANES; k++)
                row[k] = NAME(load)(kernel + (i + k) * DCRF_TILE + j);
#pragma GCC unroll 4
            for (size_t step = 1; step < PAIR_LANES; step *= 2) {
#pragma GCC unroll 8
                for (size_t k = 0; k < PAIR_LANES / 2; k++) {
                    next[2 * k] = LOWER(row[k], row[k + PAIR_LANES / 2]);
                    next[2 * k + 1] = UPPER(row[k], row[k + PAIR_LANES / 2]);
                }
#pragma GCC unroll 16
                for (size_t k = 0; k < PAIR_LANES; k++)
                    row[k] = next[k];
            }
#pragma GCC unroll 16
            for (size_t k = 0; k < PAIR_LANES; k++)
                NAME(store)(transposed + (j + k) * DCRF_TILE + i, row[k]);
        }
}

/* The sums over PAIR_LANES vectors, as one vector: the same steps, adding the two results. */
INLINE VECTOR NAME(totals)(const VECTOR *of) {
    VECTOR row[PAIR_LANES];
#pragma GCC unroll 16
    for (size_t k = 0; k < PAIR_LANES; k++)
        row[k] = of[k];
#pragma GCC unroll 4
    for (size_t half = PAIR_LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (size_t k = 0; k < half; k++)
            row[k] = LOWER(row[k], row[k + half]) + UPPER(row[k], row[k + half]);
    return row[0];
}
#undef LOWER
#undef UPPER

/* ---- sums of kernel values ------------------------------------------------------------------ */

INLINE void NAME(sums_of)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                          const REAL *weight_a, const REAL *weight_b, REAL *out_a, REAL *out_b,
                          size_t groups, const size_t *size) {
    VECTOR sum_b[DCRF_TILE] = {{0}};
    for (size_t v = 0; v < DCRF_TILE; v += VALUE_VECTORS * PAIR_LANES) {
        VECTOR sum_a[VALUE_VECTORS] = {{0}};
#pragma GCC unroll 2
        for (size_t j = 0; j < DCRF_TILE; j++) {
            VECTOR value[VALUE_VECTORS];
            NAME(values_at)(metric, a, b, v, j, groups, size, value);
#pragma GCC unroll 2
            for (size_t q = 0; q < VALUE_VECTORS; q++) {
                sum_a[q] = FMA(weight_b[j], value[q], sum_a[q]);
                sum_b[j] = FMA(NAME(load)(weight_a + v + q * PAIR_LANES), value[q], sum_b[j]);
            }
        }
#pragma GCC unroll 2
        for (size_t q = 0; q < VALUE_VECTORS; q++)
            NAME(store)(out_a + v + q * PAIR_LANES, sum_a[q]);
    }
    for (size_t j = 0; j < DCRF_TILE; j += PAIR_LANES)
        NAME(store)(out_b + j, NAME(totals)(sum_b + j));
}

static void NAME(sums)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                       const REAL *weight_a, const REAL *weight_b, REAL *out_a, REAL *out_b) {
    BY_GROUPS(NAME(sums_of), metric, a, b, weight_a, weight_b, out_a, out_b);
}

INLINE void NAME(disagreement_of)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                                  const REAL *scale_a, const REAL *scale_b, const REAL *labels_a,
                                  const REAL *labels_b, double *sum, size_t groups,
                                  const size_t *size) {
    VECTOR sum_a[PAIR_LANES] = {{0}}; /* only the first is used, and its total */
    for (size_t v = 0; v < DCRF_TILE; v += VALUE_VECTORS * PAIR_LANES) {
        VECTOR part[VALUE_VECTORS] = {{0}};
#pragma GCC unroll 2
        for (size_t j = 0; j < DCRF_TILE; j++) {
            VECTOR value[VALUE_VECTORS];
            NAME(values_at)(metric, a, b, v, j, groups, size, value);
#pragma GCC unroll 2
            for (size_t q = 0; q < VALUE_VECTORS; q++) {
                const INTEGERS differs = NAME(load)(labels_a + v + q * PAIR_LANES) != labels_b[j];
                part[q] = FMA(scale_b[j], (VECTOR)((INTEGERS)value[q] & differs), part[q]);
            }
        }
#pragma GCC unroll 2
        for (size_t q = 0; q < VALUE_VECTORS; q++)
            sum_a[0] = FMA(NAME(load)(scale_a + v + q * PAIR_LANES), part[q], sum_a[0]);
    }
    *sum += (double)NAME(totals)(sum_a)[0];
}

static void NAME(disagreement)(const struct dcrf_metric *metric, const REAL *a, const REAL *b,
                               const REAL *scale_a, const REAL *scale_b, const REAL *labels_a,
                               const REAL *labels_b, double *sum) {
    BY_GROUPS(NAME(disagreement_of), metric, a, b, scale_a, scale_b, labels_a, labels_b, sum);
}
#undef BY_GROUPS

/* ---- the clipped line ----------------------------------------------------------------------- */

/* As many tiles a at once as fit in registers: y and a sum for each of their vectors. */
#if defined(__AVX512F__)
#define LINE_VECTORS 8
#elif defined(__aarch64__)
#define LINE_VECTORS 8
#else
#define LINE_VECTORS 4
#endif
#define LINE_STEP ((LINE_VECTORS + ROW_VECTORS - 1) / ROW_VECTORS)

/* Channel c, the vectors v .. v + vectors - 1 of `tiles` tiles from `first` on. */
INLINE void NAME(line_block)(const struct LINE *line, size_t c, size_t first, size_t tiles,
                             size_t v, size_t vectors, VECTOR *sum_b, bool both) {
    VECTOR y[LINE_VECTORS], sum[LINE_VECTORS];
    const VECTOR one = (VECTOR){0} + 1;
#pragma GCC unroll 4
    for (size_t t = 0; t < tiles; t++)
#pragma GCC unroll 8
        for (size_t q = 0; q < vectors; q++) {
            y[t * vectors + q] =
                NAME(load)(line->y[first + t] + c * DCRF_TILE + (v + q) * PAIR_LANES);
            sum[t * vectors + q] = (VECTOR){0};
        }
    for (size_t b = 0; b < DCRF_TILE; b++) {
        const VECTOR y_b = (VECTOR){0} + line->y_b[c * DCRF_TILE + b];
        VECTOR total = both ? sum_b[b] : (VECTOR){0};
#pragma GCC unroll 4
        for (size_t t = 0; t < tiles; t++)
#pragma GCC unroll 8
            for (size_t q = 0; q < vectors; q++) {
                const VECTOR clipped = SMALLER(LARGER(y_b - y[t * vectors + q], -one), one);
                const VECTOR kernel =
                    NAME(load)(line->kernel[first + t] + b * DCRF_TILE + (v + q) * PAIR_LANES);
                sum[t * vectors + q] = FMA(kernel, clipped, sum[t * vectors + q]);
                if (both)
                    total = FMA(kernel, clipped, total);
            }
        if (both)
            sum_b[b] = total;
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < tiles; t++)
#pragma GCC unroll 8
        for (size_t q = 0; q < vectors; q++) {
            REAL *out = line->out[first + t] + c * DCRF_TILE + (v + q) * PAIR_LANES;
            NAME(store)(out, NAME(load)(out) + sum[t * vectors + q]);
        }
}

INLINE void NAME(line_channel)(const struct LINE *line, size_t c, VECTOR *sum_b, bool both) {
#if LINE_VECTORS >= DCRF_TILE / PAIR_LANES
    for (size_t first = 0; first < line->tiles; first += LINE_STEP) {
        const size_t left = line->tiles - first;
        switch (left < LINE_STEP ? left : LINE_STEP) {
        case 1:
            NAME(line_block)(line, c, first, 1, 0, ROW_VECTORS, sum_b, both);
            break;
#if LINE_VECTORS >= 2 * (DCRF_TILE / PAIR_LANES)
        case 2:
            NAME(line_block)(line, c, first, 2, 0, ROW_VECTORS, sum_b, both);
            break;
#endif
#if LINE_VECTORS >= 4 * (DCRF_TILE / PAIR_LANES)
        case 3:
            NAME(line_block)(line, c, first, 3, 0, ROW_VECTORS, sum_b, both);
            break;
        case 4:
            NAME(line_block)(line, c, first, 4, 0, ROW_VECTORS, sum_b, both);
            break;
#endif
        }
    }
#else
    for (size_t first = 0; first < line->tiles; first++)
        for (size_t v = 0; v < ROW_VECTORS; v += LINE_VECTORS)
            NAME(line_block)(line, c, first, 1, v, LINE_VECTORS, sum_b, both);
#endif
}

static void NAME(line)(const struct LINE *line) {
    VECTOR sum_b[DCRF_TILE];
    for (size_t c = 0; c < line->channels; c++) {
        if (!line->out_b) {
            NAME(line_channel)(line, c, sum_b, false);
            continue;
        }
        memset(sum_b, 0, sizeof sum_b);
        NAME(line_channel)(line, c, sum_b, true);
        for (size_t b = 0; b < DCRF_TILE; b += PAIR_LANES) {
            REAL *out = line->out_b + c * DCRF_TILE + b;
            NAME(store)(out, NAME(load)(out) - NAME(totals)(sum_b + b));
        }
    }
}
#undef LINE_VECTORS
#undef LINE_STEP
#undef VALUE_VECTORS
#undef ROW_VECTORS
#undef VECTOR
#undef INTEGERS
