/* The softmax of rows for one instruction set: a part of dsp_vector.h. It always uses vectors of 8,
 * even where the set has longer ones, because rows are multiples of eight. Rows of four are
 * processed eight at a time (dsp_softmax_eights.h).
 *
 * A row stays in registers from its logits to its q if its number of vectors is a constant: a
 * reduction across a vector (maximum or sum) takes six instructions, while transposing eight rows
 * into vectors of one label each, which avoids that, would take 16 per label. */
/* Vectors in registers, or in the caller's memory if rows are long. */
typedef float loose_vector __attribute__((vector_size(TAIL_LANES * 4), aligned(4), may_alias));

/* A reduction across a vector, with the result in all lanes. */
INLINE tail_vector largest_everywhere(tail_vector v) {
    v = larger(v, SHUFFLE(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
    v = larger(v, SHUFFLE(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
    return larger(v, SHUFFLE(v, v, 1, 0, 3, 2, 5, 4, 7, 6));
}

INLINE tail_vector total_everywhere(tail_vector v) {
    v += SHUFFLE(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += SHUFFLE(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return v + SHUFFLE(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
}

/* Rows processed together; rows whose sums are added up in floats; prefetch distance in rows. The
 * hardware prefetches streams by itself, but not across pages, which three streams soon fill. */
#ifdef __wasm__ /* module size matters */
#define SOFTMAX_ROWS 1
#else
#define SOFTMAX_ROWS 4
#endif
#define SUMMED_ROWS 8
#define SOFTMAX_AHEAD 16
/* The most vectors in a row with a constant number of them, and in one kept on the stack. */
#define CONSTANT_GROUPS 4
#define STACK_GROUPS 64

/* The energy of a row is
 *   sum_i q_i unary_i + m_i (all_factor + same_label_factor q_i)
 *     = -sum_i q_i s_i + (same_label_factor - factor) sum_i q_i m_i + all_factor sum_i m_i
 * with the logits s = -unary - factor m. */
struct softmax_sums {
    tail_vector logits, own, all; /* of q s, q m and m */
    tail_vector change, entropy;
    double product; /* of the rows' totals */
};

/* The logits of a row of `groups` vectors of 8; `last` masks the labels of the last one. Returns
 * the largest in each lane. */
INLINE tail_vector row_logits(const struct dcrf_softmax *s, size_t r, size_t groups, bool is_plain,
                              bool sums_up, tail_integers last, loose_vector *value,
                              struct softmax_sums *sums) {
    const tail_vector none = (tail_vector){0} - FLT_MAX;
    const float diagonal = s->diagonal ? s->diagonal[r] : 0;
    tail_vector top = none;
#pragma GCC unroll 4
    for (size_t g = 0; g < groups; g++) {
        const size_t at = r * s->stride + g * TAIL_LANES;
        const tail_vector q = load_tail(s->q + at), unary = load_tail(s->unary + at);
        tail_vector m = FNMA(diagonal, q, load_tail(s->message + at));
        if (g + 1 == groups)
            m = (tail_vector)((tail_integers)m & last);
        value[g] = FNMA(s->factor, m, -unary);
        if (sums_up) {
            sums->logits = FMA(value[g], q, sums->logits);
            sums->own = FMA(q, m, sums->own);
            sums->all += m;
        }
        if (!is_plain && s->extra)
            value[g] += load_tail(s->extra + at);
        if (!is_plain && s->logits) {
            value[g] = FMA(s->damping, load_tail(s->logits + at), (1 - s->damping) * value[g]);
            store_tail(s->logits + at, value[g]);
        }
        if (g + 1 == groups)
            value[g] = choose(last, value[g], none);
        top = larger(value[g], top);
    }
    return top;
}

/* Several rows from r on, interleaved step by step: a processor does not look far enough ahead to
 * overlap them by itself. */
INLINE void softmax_some(const struct dcrf_softmax *s, size_t r, size_t rows, size_t groups,
                         bool is_plain, bool sums_up, tail_integers last, loose_vector *value,
                         struct softmax_sums *sums) {
    const tail_vector lowest = (tail_vector){0} + LOWEST_EXPONENT;
    tail_vector top[SOFTMAX_ROWS], total[SOFTMAX_ROWS], weighted[SOFTMAX_ROWS];
    UNROLL
    for (size_t k = 0; k < rows; k++)
        top[k] = row_logits(s, r + k, groups, is_plain, sums_up, last, value + k * groups, sums);
    UNROLL
    for (size_t k = 0; k < rows; k++) {
        top[k] = largest_everywhere(top[k]);
        total[k] = weighted[k] = (tail_vector){0};
    }
#pragma GCC unroll 4
    for (size_t g = 0; g < groups; g++) {
        UNROLL
        for (size_t k = 0; k < rows; k++) {
            const tail_vector exponent = larger(value[k * groups + g] - top[k], lowest);
            value[k * groups + g] = clamped_exponential(exponent);
            total[k] += value[k * groups + g];
            if (sums_up)
                weighted[k] = FMA(value[k * groups + g], exponent, weighted[k]);
        }
    }
    UNROLL
    for (size_t k = 0; k < rows; k++)
        total[k] = total_everywhere(total[k]);
    UNROLL
    for (size_t k = 0; k < rows; k++) {
        const tail_vector scale = 1 / total[k];
        tail_vector change = {0};
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
            const size_t at = (r + k) * s->stride + g * TAIL_LANES;
            const tail_vector updated = scale * value[k * groups + g];
            if (sums_up) {
                const tail_vector difference = updated - load_tail(s->q + at);
                change += size_of(difference);
            }
            store_tail(s->next + at, updated);
        }
        if (!sums_up)
            continue;
        sums->change += change;
        sums->entropy = FMA(scale, weighted[k], sums->entropy);
        sums->product *= (double)total[k][0];
    }
}

/* `value` has room for SOFTMAX_ROWS rows, or for one. `is_plain`: there are neither extra terms nor
 * damping. `sums_up`: sums are wanted. */
INLINE_UNLESS_SMALL void softmax_rows(const struct dcrf_softmax *given, size_t begin, size_t end,
                                      size_t groups, bool is_plain, bool sums_up,
                                      loose_vector *value, size_t together, double *sums) {
    const struct dcrf_softmax copy = *given, *s = &copy; /* no store can alias it */
    tail_doubles energy = {0}, change = {0}, entropy = {0};
    double logarithms = 0, product = 1;
    tail_integers last;
    for (size_t i = 0; i < TAIL_LANES; i++)
        last[i] = (groups - 1) * TAIL_LANES + i < s->labels ? -1 : 0;
    for (size_t r = begin; r < end;) {
        const size_t stop = end - r < SUMMED_ROWS ? end : r + SUMMED_ROWS;
        const size_t from = (r + SOFTMAX_AHEAD) * s->stride;
        for (size_t at = from; at < from + SUMMED_ROWS * s->stride; at += 16) {
            __builtin_prefetch(s->unary + at);
            __builtin_prefetch(s->message + at);
            __builtin_prefetch(s->q + at);
            if (s->next != s->q)
                __builtin_prefetch(s->next + at, 1);
        }
        const tail_vector zero = {0};
        struct softmax_sums part = {zero, zero, zero, zero, zero, product};
        for (; together == SOFTMAX_ROWS && r + SOFTMAX_ROWS <= stop; r += SOFTMAX_ROWS)
            softmax_some(s, r, SOFTMAX_ROWS, groups, is_plain, sums_up, last, value, &part);
        for (; r < stop; r++)
            softmax_some(s, r, 1, groups, is_plain, sums_up, last, value, &part);
        if (!sums_up)
            continue;
        energy += __builtin_convertvector((s->same_label_factor - s->factor) * part.own +
                                              s->all_factor * part.all - part.logits,
                                          tail_doubles);
        change += __builtin_convertvector(part.change, tail_doubles);
        entropy += __builtin_convertvector(part.entropy, tail_doubles);
        product = part.product;
        if (product > 1e200) { /* a total lies between 1 and the number of labels */
            logarithms += log(product);
            product = 1;
        }
    }
    if (!sums_up)
        return;
    sums[DCRF_SOFTMAX_ENERGY] += double_total_of(energy);
    sums[DCRF_SOFTMAX_CHANGE] += double_total_of(change);
    sums[DCRF_SOFTMAX_ENTROPY] += double_total_of(entropy) - logarithms - log(product);
}

INLINE void softmax_short(const struct dcrf_softmax *s, size_t begin, size_t end, size_t groups,
                          double *sums) {
    loose_vector value[SOFTMAX_ROWS * CONSTANT_GROUPS];
    if (sums)
        softmax_rows(s, begin, end, groups, true, true, value, SOFTMAX_ROWS, sums);
    else
        softmax_rows(s, begin, end, groups, true, false, value, SOFTMAX_ROWS, NULL);
}

static void softmax_long(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    loose_vector value[SOFTMAX_ROWS * STACK_GROUPS];
    softmax_rows(s, begin, end, s->stride / TAIL_LANES, false, true, value, SOFTMAX_ROWS, sums);
}

/* Rows that are too long for the stack: each is computed in place of its message. */
static void softmax_longest(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    for (size_t r = begin; r < end; r++)
        softmax_rows(s, r, r + 1, s->stride / TAIL_LANES, false, true,
                     (loose_vector *)(void *)(s->message + r * s->stride), 1, sums);
}

static void softmax(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    const size_t groups = s->stride / TAIL_LANES;
    double unused[DCRF_SOFTMAX_SUMS] = {0};
#ifndef __wasm__ /* module size matters */
    switch (s->extra || s->logits ? 0 : groups) {
    case 1:
        softmax_short(s, begin, end, 1, sums);
        return;
    case 2:
        softmax_short(s, begin, end, 2, sums);
        return;
    case 3:
        softmax_short(s, begin, end, 3, sums);
        return;
    case CONSTANT_GROUPS:
        softmax_short(s, begin, end, CONSTANT_GROUPS, sums);
        return;
    }
#endif
    sums = sums ? sums : unused;
    if (groups == 0)
        eights(s, begin, end, sums);
    else if (groups <= STACK_GROUPS)
        softmax_long(s, begin, end, sums);
    else
        softmax_longest(s, begin, end, sums);
}
