/* Logarithms of sums of exponentials for one instruction set: a part of dsp_vector.h, after the
 * loops over pairs in double, whose powers of two it uses. */

typedef float log_floats __attribute__((vector_size(PAIR_LANES * sizeof(float))));

/* A vector of the numbers of a row from index i on; spare lanes contribute nothing. */
INLINE pair_double_vector log_terms(const float *row, size_t i, size_t labels, double sign) {
    const double nothing = -(double)FLT_MAX;
    log_floats value;
    if (labels < PAIR_LANES) {
        pair_double_vector few = (pair_double_vector){0} + nothing;
        for (size_t k = 0; k < labels; k++)
            few[k] = sign * (double)row[k];
        return few;
    }
    const size_t missing = i + PAIR_LANES > labels ? i + PAIR_LANES - labels : 0;
    memcpy(&value, row + i - missing, sizeof value);
    pair_double_vector wide = sign * __builtin_convertvector(value, pair_double_vector);
    if (missing > 0)
        UNROLL for (size_t k = 0; k < PAIR_LANES; k++) wide[k] = k < missing ? nothing : wide[k];
    return wide;
}

/* Several rows together: a single one would stall on the latency of its polynomials. */
INLINE void log_sums_of_rows(const float *rows, size_t labels, size_t count, double sign,
                             double *out) {
    const double log2_e = 0x1.71547652b82fep0;
    pair_double_vector tops[4], sums[4];
    double top[4];
    UNROLL for (size_t r = 0; r < count; r++) {
        tops[r] = (pair_double_vector){0} - (double)FLT_MAX;
        sums[r] = (pair_double_vector){0};
    }
    for (size_t i = 0; i < labels; i += PAIR_LANES)
        UNROLL for (size_t r = 0; r < count; r++) {
            const pair_double_vector value = log_terms(rows + r * labels, i, labels, sign);
            tops[r] = LARGER_DOUBLE(tops[r], value);
        }
    UNROLL for (size_t r = 0; r < count; r++) {
        top[r] = tops[r][0];
        UNROLL for (size_t k = 1; k < PAIR_LANES; k++) top[r] =
            tops[r][k] > top[r] ? tops[r][k] : top[r];
    }
    for (size_t i = 0; i < labels; i += PAIR_LANES)
        UNROLL for (size_t r = 0; r < count; r++) {
            const pair_double_vector value = log_terms(rows + r * labels, i, labels, sign);
            sums[r] += pair_double_power((value - top[r]) * log2_e);
        }
    UNROLL for (size_t r = 0; r < count; r++) {
        double sum = 0;
        UNROLL for (size_t k = 0; k < PAIR_LANES; k++) sum += sums[r][k];
        out[r] = log(sum) + top[r];
    }
}

static void log_sums(const float *rows, size_t labels, size_t count, double sign, double *out) {
    size_t r = 0;
    for (; r + 4 <= count; r += 4)
        log_sums_of_rows(rows + r * labels, labels, 4, sign, out + r);
    for (; r < count; r++)
        log_sums_of_rows(rows + r * labels, labels, 1, sign, out + r);
}
