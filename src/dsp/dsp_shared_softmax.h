/* The shared softmax and the exponential of arrays for one instruction set: a part of dsp_vector.h.
 * Rows are whole eights, so vectors of 8 are used whatever the longest of the set is. */

/* The most groups of 8 whose values stay in registers; wider rows pass through q. */
#define MOST_GROUPS 4

INLINE tail_vector larger(tail_vector a, tail_vector b) {
    return choose(a > b, a, b);
}

/* exp(rest - top) and exp(rest_top - top) in the first two lanes. */
INLINE tail_vector rest_exponentials(const struct dcrf_shared_softmax *s, size_t r, float top) {
    tail_vector rest = {0};
    rest[0] = s->rest[r] - top;
    rest[1] = s->rest_top[r] - top;
    return tail_exponential(rest);
}

INLINE void shared_rows(const struct dcrf_shared_softmax *s, size_t rows, tail_integers last,
                        bool has_rest, size_t groups) {
    const tail_integers all = (tail_integers){0} - 1;
    const tail_vector none = (tail_vector){0} - 1e30f;
    float rest_peak = has_rest ? *s->rest_peak : 0;
    tail_vector peak[MOST_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < groups; g++)
        peak[g] = load_tail(s->peak + g * TAIL_LANES);
    for (size_t r = 0; r < rows; r++) {
        tail_vector value[MOST_GROUPS], largest = none;
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
            const tail_vector unary = load_tail(s->unary + r * s->stride + g * TAIL_LANES);
            const tail_vector message =
                load_tail(s->message + r * s->message_stride + g * TAIL_LANES);
            value[g] = choose(g + 1 == groups ? last : all, -unary - message, none);
            largest = larger(value[g], largest);
        }
        float top = largest_of(largest);
        if (has_rest && s->rest[r] > top)
            top = s->rest[r];
        tail_vector sum = {0};
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
            value[g] = tail_exponential(value[g] - top);
            sum += value[g];
        }
        float total = total_of(sum);
        tail_vector outside = {0};
        if (has_rest) {
            outside = rest_exponentials(s, r, top);
            total += outside[0];
        }
        const float scale = 1 / total;
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
            const tail_vector q = scale * value[g];
            store_tail(s->q + r * s->stride + g * TAIL_LANES, q);
            peak[g] = larger(q, peak[g]);
        }
        if (has_rest) {
            const float part = scale * outside[1];
            rest_peak = part > rest_peak ? part : rest_peak;
            s->shift[r] = top;
            s->scale[r] = scale;
        }
    }
#pragma GCC unroll 4
    for (size_t g = 0; g < groups; g++)
        store_tail(s->peak + g * TAIL_LANES, peak[g]);
    if (has_rest)
        *s->rest_peak = rest_peak;
}

/* The same for rows of any length. */
INLINE void shared_long_rows(const struct dcrf_shared_softmax *s, size_t rows, tail_integers last,
                             size_t groups) {
    const tail_integers all = (tail_integers){0} - 1;
    const tail_vector none = (tail_vector){0} - 1e30f;
    for (size_t r = 0; r < rows; r++) {
        float *q = s->q + r * s->stride;
        tail_vector largest = none;
        for (size_t g = 0; g < groups; g++) {
            const tail_vector unary = load_tail(s->unary + r * s->stride + g * TAIL_LANES);
            const tail_vector message =
                load_tail(s->message + r * s->message_stride + g * TAIL_LANES);
            const tail_vector value = choose(g + 1 == groups ? last : all, -unary - message, none);
            store_tail(q + g * TAIL_LANES, value);
            largest = larger(value, largest);
        }
        float top = largest_of(largest);
        if (s->rest && s->rest[r] > top)
            top = s->rest[r];
        tail_vector sum = {0};
        for (size_t g = 0; g < groups; g++) {
            const tail_vector value = tail_exponential(load_tail(q + g * TAIL_LANES) - top);
            store_tail(q + g * TAIL_LANES, value);
            sum += value;
        }
        float total = total_of(sum);
        tail_vector outside = {0};
        if (s->rest) {
            outside = rest_exponentials(s, r, top);
            total += outside[0];
        }
        const float scale = 1 / total;
        for (size_t g = 0; g < groups; g++) {
            const tail_vector value = scale * load_tail(q + g * TAIL_LANES);
            float *peak = s->peak + g * TAIL_LANES;
            store_tail(q + g * TAIL_LANES, value);
            store_tail(peak, larger(value, load_tail(peak)));
        }
        if (s->rest) {
            const float part = scale * outside[1];
            *s->rest_peak = part > *s->rest_peak ? part : *s->rest_peak;
            s->shift[r] = top;
            s->scale[r] = scale;
        }
    }
}

static void shared_softmax(const struct dcrf_shared_softmax *s, size_t rows) {
    const size_t groups = s->stride / TAIL_LANES;
    tail_integers last;
    for (size_t i = 0; i < TAIL_LANES; i++)
        last[i] = (groups - 1) * TAIL_LANES + i < s->labels ? -1 : 0;
    switch (groups * 2 + (s->rest ? 1 : 0)) {
    case 2:
        shared_rows(s, rows, last, false, 1);
        break;
    case 3:
        shared_rows(s, rows, last, true, 1);
        break;
    case 4:
        shared_rows(s, rows, last, false, 2);
        break;
    case 5:
        shared_rows(s, rows, last, true, 2);
        break;
    case 6:
        shared_rows(s, rows, last, false, 3);
        break;
    case 7:
        shared_rows(s, rows, last, true, 3);
        break;
    default:
        shared_long_rows(s, rows, last, groups);
        break;
    }
}

static void negative_exponential(const float *in, const float *shift, const float *scale,
                                 float *out, size_t count) {
    size_t i = 0;
    for (; i + TAIL_LANES <= count; i += TAIL_LANES)
        store_tail(out + i, load_tail(scale + i) *
                                tail_exponential(-load_tail(in + i) - load_tail(shift + i)));
    for (; i < count; i++) {
        const tail_vector x = (tail_vector){0} + (-in[i] - shift[i]);
        out[i] = scale[i] * tail_exponential(x)[0];
    }
}
