/* The softmax of rows of four floats, for one instruction set: a part of dsp_vector.h. Eight rows
 * are processed at once, with one vector of 8 per label, as in dsp_shared_softmax.h. */

/* Sums over rows, and the product of totals whose logarithm is still to be taken. */
struct eights_sums {
    tail_doubles energy, change, entropy, product;
    double logarithms;
};

INLINE struct eights_sums eights_nothing(void) {
    const tail_doubles zero = {0};
    return (struct eights_sums){zero, zero, zero, zero + 1, 0};
}

/* The logarithms of totals, each between 1 and HALF_LANES, of many rows at once. */
INLINE void eights_logarithms(struct eights_sums *sums) {
    for (size_t i = 0; i < TAIL_LANES; i++)
        sums->logarithms += log(sums->product[i]);
    sums->product = (tail_doubles){0} + 1;
}

/* The logits of four labels from `at` on, `count` of them in use, into value. Loads their q, and
 * adds to the energies of the rows, in floats at this point. */
INLINE void eights_logits(const struct dcrf_softmax *s, size_t r, size_t at, size_t count,
                          tail_vector *q, tail_vector *value, tail_vector *energy) {
    const size_t from = r * s->stride + at;
    const tail_vector diagonal = s->diagonal ? load_tail(s->diagonal + r) : (tail_vector){0};
    tail_vector unary[HALF_LANES], other[HALF_LANES];
    load_eight(s->q + from, s->stride, q);
    load_eight(s->unary + from, s->stride, unary);
    load_eight(s->message + from, s->stride, value);
    UNROLL
    for (size_t i = 0; i < HALF_LANES; i++)
        if (i < count) {
            const tail_vector m = FNMA(diagonal, q[i], value[i]);
            const tail_vector own = FMA(s->same_label_factor, q[i], s->all_factor);
            *energy += FMA(m, own, q[i] * unary[i]);
            value[i] = FNMA(s->factor, m, -unary[i]);
        }
    if (s->extra) {
        load_eight(s->extra + from, s->stride, other);
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++)
            value[i] += other[i];
    }
    if (s->logits) {
        load_eight(s->logits + from, s->stride, other);
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++)
            other[i] = value[i] = FMA(s->damping, other[i], (1 - s->damping) * value[i]);
        store_eight(other, s->logits + from, s->stride);
    }
}

/* Prefetch distance, in rows. */
#define EIGHTS_AHEAD 16

INLINE void eights_ask(const struct dcrf_softmax *s, size_t r) {
    const size_t from = (r + EIGHTS_AHEAD) * s->stride;
    for (size_t at = from; at < from + TAIL_LANES * s->stride; at += 16) {
        __builtin_prefetch(s->unary + at);
        __builtin_prefetch(s->message + at);
        __builtin_prefetch(s->q + at);
        if (s->next != s->q)
            __builtin_prefetch(s->next + at, 1);
    }
}

/* The rows r .. r + 7; q and value hold one vector per label, padded to a multiple of four. */
INLINE void eights_rows(const struct dcrf_softmax *s, size_t r, size_t labels, tail_vector *q,
                        tail_vector *value, struct eights_sums *sums) {
    tail_vector energy = {0}, change = {0};
    for (size_t at = 0; at < labels; at += HALF_LANES)
        eights_logits(s, r, at, labels - at < HALF_LANES ? labels - at : HALF_LANES, q + at,
                      value + at, &energy);
    tail_vector top = value[0], total = {0}, weighted = {0};
#pragma GCC unroll 4
    for (size_t i = 1; i < labels; i++)
        top = larger(value[i], top);
#pragma GCC unroll 4
    for (size_t i = 0; i < labels; i++) {
        const tail_vector exponent = larger(value[i] - top, (tail_vector){0} + LOWEST_EXPONENT);
        value[i] = clamped_exponential(exponent);
        total += value[i];
        weighted = FMA(value[i], exponent, weighted);
    }
    const tail_vector scale = 1 / total;
    for (size_t at = 0; at < labels; at += HALF_LANES) {
        tail_vector four[HALF_LANES];
        UNROLL
        for (size_t i = 0; i < HALF_LANES; i++) {
            four[i] = at + i < labels ? scale * value[at + i] : (tail_vector){0};
            if (at + i < labels) {
                const tail_vector difference = four[i] - q[at + i];
                change += size_of(difference);
            }
        }
        store_eight(four, s->next + r * s->stride + at, s->stride);
    }
    sums->energy += __builtin_convertvector(energy, tail_doubles);
    sums->change += __builtin_convertvector(change, tail_doubles);
    sums->entropy += __builtin_convertvector(scale * weighted, tail_doubles);
    sums->product *= __builtin_convertvector(total, tail_doubles);
}

/* Memory for the last rows, fewer than eight. */
struct eights_copy {
    float block[5][TAIL_LANES * HALF_LANES], diagonal[TAIL_LANES];
};

/* The last rows, fewer than eight: in a copy, padded with rows of zeros that are not counted. */
INLINE_UNLESS_SMALL void eights_left(const struct dcrf_softmax *s, size_t begin, size_t end,
                                     size_t labels, tail_vector *q, tail_vector *value,
                                     struct eights_sums *sums) {
    struct eights_copy copy;
    const size_t bytes = (end - begin) * s->stride * sizeof(float), from = begin * s->stride;
    struct dcrf_softmax left = *s;
    memset(&copy, 0, sizeof copy);
    left.unary = memcpy(copy.block[0], s->unary + from, bytes);
    left.message = memcpy(copy.block[1], s->message + from, bytes);
    left.q = left.next = memcpy(copy.block[2], s->q + from, bytes);
    if (s->extra)
        left.extra = memcpy(copy.block[3], s->extra + from, bytes);
    if (s->logits)
        left.logits = memcpy(copy.block[4], s->logits + from, bytes);
    if (s->diagonal)
        left.diagonal = memcpy(copy.diagonal, s->diagonal + begin, (end - begin) * sizeof(float));
    struct eights_sums own = eights_nothing();
    eights_rows(&left, 0, labels, q, value, &own);
    memcpy(s->next + from, copy.block[2], bytes);
    if (s->logits)
        memcpy(s->logits + from, copy.block[4], bytes);
    for (size_t i = 0; i < TAIL_LANES; i++)
        if (i < end - begin) {
            sums->energy[i] += own.energy[i];
            sums->change[i] += own.change[i];
            sums->entropy[i] += own.entropy[i];
            sums->product[i] *= own.product[i];
        }
}

INLINE void eights_all(const struct dcrf_softmax *given, size_t begin, size_t end, size_t labels,
                       double *sums) {
    const struct dcrf_softmax copy = *given, *s = &copy; /* no store can alias it */
    tail_vector q[HALF_LANES], value[HALF_LANES];
    struct eights_sums parts = eights_nothing();
    size_t r = begin;
    for (; r + TAIL_LANES <= end; r += TAIL_LANES) {
        eights_ask(s, r);
        eights_rows(s, r, labels, q, value, &parts);
        if ((r - begin) % 1024 == 0) /* 4^128 fits in a double */
            eights_logarithms(&parts);
    }
    if (r < end)
        eights_left(s, r, end, labels, q, value, &parts);
    eights_logarithms(&parts);
    sums[DCRF_SOFTMAX_ENERGY] += double_total_of(parts.energy);
    sums[DCRF_SOFTMAX_CHANGE] += double_total_of(parts.change);
    sums[DCRF_SOFTMAX_ENTROPY] += double_total_of(parts.entropy) - parts.logarithms;
}

static void eights(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    switch (s->labels) {
    case 2:
        eights_all(s, begin, end, 2, sums);
        break;
#ifndef __wasm__ /* module size matters */
    case 3:
        eights_all(s, begin, end, 3, sums);
        break;
    case 4:
        eights_all(s, begin, end, 4, sums);
        break;
#endif
    default:
        eights_all(s, begin, end, s->labels, sums);
        break;
    }
}
