/* The softmax of up to four labels for one instruction set: a part of dsp_vector.h. Eight rows of
 * four floats are worked on at once, one vector of 8 per label, as in dsp_shared_softmax.h. */

/* What is summed up over rows, and the product of totals whose logarithm is still to be taken. */
struct few_sums {
    tail_doubles energy, change, entropy, product;
    double logarithms;
};

INLINE struct few_sums few_nothing(void) {
    const tail_doubles zero = {0};
    return (struct few_sums){zero, zero, zero, zero + 1, 0};
}

/* The logarithms of totals, each between 1 and 4, of many rows at once. */
INLINE void few_logarithms(struct few_sums *sums) {
    for (size_t i = 0; i < TAIL_LANES; i++)
        sums->logarithms += log(sums->product[i]);
    sums->product = (tail_doubles){0} + 1;
}

INLINE void few_eight(const struct dcrf_softmax *s, size_t r, size_t labels,
                      struct few_sums *sums) {
    const size_t row = r * DCRF_NARROW_LANES;
    tail_vector q[HALF_LANES], unary[HALF_LANES], value[HALF_LANES], other[HALF_LANES];
    const tail_vector diagonal = s->diagonal ? load_tail(s->diagonal + r) : (tail_vector){0};
    load_eight(s->q + row, DCRF_NARROW_LANES, q);
    load_eight(s->unary + row, DCRF_NARROW_LANES, unary);
    load_eight(s->message + row, DCRF_NARROW_LANES, value);
    UNROLL
    for (size_t i = 0; i < labels; i++) {
        const tail_vector m = value[i] - diagonal * q[i];
        const tail_vector term = q[i] * unary[i] + m * (s->all_factor + s->own_factor * q[i]);
        sums->energy += __builtin_convertvector(term, tail_doubles);
        value[i] = -unary[i] - s->factor * m;
    }
    if (s->extra) {
        load_eight(s->extra + row, DCRF_NARROW_LANES, other);
        UNROLL
        for (size_t i = 0; i < labels; i++)
            value[i] += other[i];
    }
    if (s->logits) {
        load_eight(s->logits + row, DCRF_NARROW_LANES, other);
        UNROLL
        for (size_t i = 0; i < labels; i++)
            other[i] = value[i] = s->damping * other[i] + (1 - s->damping) * value[i];
        store_eight(other, s->logits + row, DCRF_NARROW_LANES);
    }
    tail_vector top = value[0], total = {0}, weighted = {0};
    UNROLL
    for (size_t i = 1; i < labels; i++)
        top = larger(value[i], top);
    UNROLL
    for (size_t i = 0; i < labels; i++) {
        const tail_vector exponent = larger(value[i] - top, (tail_vector){0} - 87.0f);
        value[i] = fast_exponential(exponent);
        total += value[i];
        weighted += value[i] * exponent;
    }
    const tail_vector scale = 1 / total;
    UNROLL
    for (size_t i = 0; i < HALF_LANES; i++) {
        value[i] = i < labels ? scale * value[i] : (tail_vector){0};
        if (i < labels) {
            const tail_vector difference = value[i] - q[i];
            sums->change += __builtin_convertvector(larger(difference, -difference), tail_doubles);
        }
    }
    store_eight(value, s->q + row, DCRF_NARROW_LANES);
    sums->entropy += __builtin_convertvector(scale * weighted, tail_doubles);
    sums->product *= __builtin_convertvector(total, tail_doubles);
}

/* What is left of eight rows: in a copy, filled up with rows that sum up to nothing. */
INLINE void few_left(const struct dcrf_softmax *s, size_t begin, size_t end, size_t labels,
                     struct few_sums *sums) {
    float block[5][TAIL_LANES * DCRF_NARROW_LANES] = {{0}}, diagonal[TAIL_LANES] = {0};
    const size_t bytes = (end - begin) * DCRF_NARROW_LANES * sizeof(float);
    const size_t from = begin * DCRF_NARROW_LANES;
    struct dcrf_softmax few = *s;
    few.unary = memcpy(block[0], s->unary + from, bytes);
    few.message = memcpy(block[1], s->message + from, bytes);
    few.q = memcpy(block[2], s->q + from, bytes);
    if (s->extra)
        few.extra = memcpy(block[3], s->extra + from, bytes);
    if (s->logits)
        few.logits = memcpy(block[4], s->logits + from, bytes);
    if (s->diagonal)
        few.diagonal = memcpy(diagonal, s->diagonal + begin, (end - begin) * sizeof(float));
    struct few_sums own = few_nothing();
    few_eight(&few, 0, labels, &own);
    memcpy(s->q + from, block[2], bytes);
    if (s->logits)
        memcpy(s->logits + from, block[4], bytes);
    for (size_t i = 0; i < TAIL_LANES; i++)
        if (i < end - begin) {
            sums->energy[i] += own.energy[i];
            sums->change[i] += own.change[i];
            sums->entropy[i] += own.entropy[i];
            sums->product[i] *= own.product[i];
        }
}

INLINE void few_rows(const struct dcrf_softmax *given, size_t begin, size_t end, size_t labels,
                     double *sums) {
    const struct dcrf_softmax copy = *given, *s = &copy; /* which no store can change */
    struct few_sums parts = few_nothing();
    size_t r = begin;
    for (; r + TAIL_LANES <= end; r += TAIL_LANES) {
        few_eight(s, r, labels, &parts);
        if ((r - begin) % 2048 == 0) /* 4^256 fits in a double */
            few_logarithms(&parts);
    }
    if (r < end)
        few_left(s, r, end, labels, &parts);
    few_logarithms(&parts);
    sums[DCRF_SOFTMAX_ENERGY] += double_total_of(parts.energy);
    sums[DCRF_SOFTMAX_CHANGE] += double_total_of(parts.change);
    sums[DCRF_SOFTMAX_ENTROPY] += double_total_of(parts.entropy) - parts.logarithms;
}

static void softmax(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    switch (s->stride == DCRF_NARROW_LANES ? s->labels : 0) {
    case 1:
        few_rows(s, begin, end, 1, sums);
        break;
    case 2:
        few_rows(s, begin, end, 2, sums);
        break;
    case 3:
        few_rows(s, begin, end, 3, sums);
        break;
    case 4:
        few_rows(s, begin, end, 4, sums);
        break;
    default:
        softmax_many(s, begin, end, sums);
        break;
    }
}
