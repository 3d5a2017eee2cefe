/* The inner loops in plain C: the reference for every other instruction set. */
#include "dsp/dsp.h"
#include "dsp/plain.h"

#include <dcrf/experimental.h>
#include <math.h>
#include <string.h>

static void store_row(float *out, const float *sum, size_t width, float factor, bool accumulate) {
    if (accumulate)
        for (size_t i = 0; i < width; i++)
            out[i] += factor * sum[i];
    else
        for (size_t i = 0; i < width; i++)
            out[i] = factor * sum[i];
}

/* The first place of a run, and the variable of a place. */
static size_t first_of(const struct dcrf_runs *runs, size_t run) {
    return runs->first ? runs->first[run] : run;
}

static size_t variable_of(const struct dcrf_runs *runs, size_t place) {
    return runs->first ? runs->variable[place] : place;
}

static void splat_run(const struct dcrf_runs *runs, size_t r) {
    for (size_t k = 0; k < runs->corners; k++) {
        float sum[DCRF_DSP_WIDTH] = {0};
        for (size_t place = first_of(runs, r); place < first_of(runs, r + 1); place++) {
            const float *row = runs->variables + variable_of(runs, place) * runs->stride;
            for (size_t i = 0; i < runs->width; i++)
                sum[i] += runs->weight[place * runs->corners + k] * row[i];
        }
        store_row(runs->vertices + runs->vertex[r * runs->corners + k] * runs->width, sum,
                  runs->width, 1, true);
    }
}

void dcrf_plain_splat_runs(const struct dcrf_runs *runs, size_t begin, size_t end) {
    for (size_t r = begin; r < end; r++)
        splat_run(runs, r);
}

void dcrf_plain_slice_runs(const struct dcrf_runs *runs, size_t begin, size_t end) {
    for (size_t r = begin; r < end; r++)
        for (size_t place = first_of(runs, r); place < first_of(runs, r + 1); place++) {
            float sum[DCRF_DSP_WIDTH] = {0};
            for (size_t k = 0; k < runs->corners; k++) {
                const float *row =
                    runs->vertices + runs->vertex[r * runs->corners + k] * runs->width;
                for (size_t i = 0; i < runs->width; i++)
                    sum[i] += runs->weight[place * runs->corners + k] * row[i];
            }
            store_row(runs->variables + variable_of(runs, place) * runs->stride, sum, runs->width,
                      runs->factor, runs->accumulate);
        }
}

static void blur(const struct dcrf_blur *b, size_t begin, size_t end) {
    const size_t inputs = b->in[1] ? 2 : 1;
    for (size_t v = begin; v < end; v++) {
        float sum[DCRF_DSP_WIDTH] = {0};
        for (size_t k = 0; k < inputs; k++) {
            const float *centre = b->in[k] + v * b->width;
            const float *before = b->in[k] + b->neighbour[k][2 * v] * b->width;
            const float *after = b->in[k] + b->neighbour[k][2 * v + 1] * b->width;
            for (size_t i = 0; i < b->width; i++)
                sum[i] += b->centre * centre[i] + b->side * (before[i] + after[i]);
        }
        for (size_t i = 0; i < b->width; i++)
            b->out[v * b->width + i] = sum[i];
    }
}

static void convolve(const struct dcrf_convolve *c) {
    for (size_t q = 0; q < c->rows; q++)
        for (size_t at = 0; at < c->floats; at += DCRF_NARROW_LANES) {
            const float *const *centre = c->in + c->radius + q;
            const size_t from = c->in_offset + at;
            float sum[DCRF_NARROW_LANES];
            for (size_t i = 0; i < DCRF_NARROW_LANES; i++)
                sum[i] = c->tap[0] * centre[0][from + i];
            for (size_t k = 1; k <= c->radius; k++) {
                const float *before = *(centre - k) + from, *after = *(centre + k) + from;
                for (size_t i = 0; i < DCRF_NARROW_LANES; i++)
                    sum[i] += c->tap[k] * (before[i] + after[i]);
            }
            store_row(c->out + q * c->out_step + at, sum, DCRF_NARROW_LANES, c->factor,
                      c->accumulate);
        }
}

static void scale_rows(const struct dcrf_scaling *s, size_t rows) {
    for (size_t r = 0; r < rows; r++)
        store_row(s->out + r * s->out_stride, s->in + r * s->in_stride, s->width,
                  s->scale ? s->factor * s->scale[r] : s->factor, s->accumulate);
}

static void weigh(const struct dcrf_histograms *h, size_t begin, size_t end) {
    float seen[DCRF_MAX_BINS];
    for (size_t r = begin; r < end; r++) {
        float *row = h->values + r * h->row;
        for (size_t i = 0; i < h->bins; i++) {
            seen[i] = 0;
            for (size_t k = 0; k < h->bins; k++)
                seen[i] += h->table[i * h->row + k] * row[k];
        }
        memcpy(row, seen, h->bins * sizeof *row);
    }
}

static void read(const struct dcrf_view_of_bins *view, const uint8_t *bin, const float *fraction,
                 float *out, size_t count) {
    for (size_t a = 0; a < count; a++) {
        const float *row = view->values + a * view->width;
        double sum = 0; /* the others sum in lanes */
        if (view->table) {
            /* If the fraction is zero, the next node may not exist. */
            const float *low = view->table + bin[a] * view->table_row + view->first;
            const float *high = fraction[a] > 0 ? low + view->table_row : low;
            for (size_t i = 0; i < view->width; i++)
                sum += (double)((low[i] + fraction[a] * (high[i] - low[i])) * row[i]);
        } else {
            for (size_t i = 0; i < view->width; i++) {
                const size_t h = view->first + i;
                sum += h > bin[a] ? (double)row[i] : h < bin[a] ? -(double)row[i] : 0;
            }
        }
        out[a] += (float)sum;
    }
}

static double gaussian_sum(const float *points, size_t plane, size_t count, size_t dimension,
                           const float *query) {
    double sum = 0;
    for (size_t b = 0; b < count; b++) {
        float squared = 0;
        for (size_t i = 0; i < dimension; i++) {
            const float difference = points[i * plane + b] - query[i];
            squared += difference * difference;
        }
        sum += (double)expf(-0.5f * squared);
    }
    return sum;
}

/* The logits s of one row, into its message; returns the largest. */
static float softmax_logits(const struct dcrf_softmax *s, size_t r, double *energy) {
    const float *unary = s->unary + r * s->stride, *q = s->q + r * s->stride;
    float *message = s->message + r * s->stride;
    float largest = -INFINITY;
    for (size_t i = 0; i < s->labels; i++) {
        const float m = message[i] - (s->diagonal ? s->diagonal[r] * q[i] : 0);
        *energy +=
            (double)(q[i] * unary[i]) + (double)(m * (s->all_factor + s->same_label_factor * q[i]));
        float value = -unary[i] - s->factor * m;
        if (s->extra)
            value += s->extra[r * s->stride + i];
        if (s->logits) {
            float *logit = s->logits + r * s->stride + i;
            value = *logit = s->damping * *logit + (1 - s->damping) * value;
        }
        message[i] = value;
        largest = value > largest ? value : largest;
    }
    return largest;
}

static void softmax(const struct dcrf_softmax *s, size_t begin, size_t end, double *sums) {
    double unused[DCRF_SOFTMAX_SUMS] = {0};
    sums = sums ? sums : unused;
    for (size_t r = begin; r < end; r++) {
        const float largest = softmax_logits(s, r, &sums[DCRF_SOFTMAX_ENERGY]);
        float *value = s->message + r * s->stride, *next = s->next + r * s->stride;
        const float *q = s->q + r * s->stride;
        double sum = 0, weighted = 0;
        for (size_t i = 0; i < s->labels; i++) {
            const float exponent = value[i] - largest;
            value[i] = expf(exponent);
            sum += (double)value[i];
            if (value[i] > 0) /* zero times minus infinity is not zero */
                weighted += (double)value[i] * (double)exponent;
        }
        for (size_t i = 0; i < s->labels; i++) {
            const float updated = (float)((double)value[i] / sum);
            sums[DCRF_SOFTMAX_CHANGE] += fabs((double)updated - (double)q[i]);
            next[i] = updated;
        }
        for (size_t i = s->labels; i < s->stride; i++)
            next[i] = 0;
        sums[DCRF_SOFTMAX_ENTROPY] += weighted / sum - log(sum);
    }
}

void dcrf_plain_shared_softmax(const struct dcrf_shared_softmax *s, size_t rows) {
    for (size_t r = 0; r < rows; r++) {
        const float *unary = s->unary + r / 8 * s->eight_step + r % 8;
        const float *message = s->message ? s->message + r * s->message_stride : NULL;
        float *value = s->work;
        float top = s->rest ? s->rest[r] : -INFINITY, messages = 0;
        for (size_t i = 0; i < s->labels; i++) {
            const bool is_left = s->has_total && i + 1 == s->labels;
            const float own = is_left ? s->total[r] - messages : message ? message[i] : 0;
            value[i] = -unary[s->plane[i] * s->plane_step] - own;
            top = value[i] > top ? value[i] : top;
            messages += own;
        }
        if (s->total && !s->has_total)
            s->total[r] = messages;
        double sum = s->rest ? (double)expf(s->rest[r] - top) : 0;
        for (size_t i = 0; i < s->labels; i++) {
            value[i] = expf(value[i] - top);
            sum += (double)value[i];
        }
        const float scale = (float)(1 / sum);
        for (size_t i = 0; i < s->labels; i++) {
            value[i] *= scale;
            if (s->peak)
                s->peak[i] = value[i] > s->peak[i] ? value[i] : s->peak[i];
            if (s->q_planes)
                s->q_planes[i * s->q_plane_step + r] = value[i];
        }
        for (size_t i = 0; s->q && i < s->stride; i++)
            s->q[r * s->stride + i] = i < s->labels ? value[i] : 0;
        if (s->rest) {
            const float outside = scale * expf(s->rest_top[r] - top);
            *s->rest_peak = outside > *s->rest_peak ? outside : *s->rest_peak;
            s->shift[r] = top;
            s->scale[r] = scale;
        }
    }
}

static void negative_exponential(const float *in, const float *shift, const float *scale,
                                 float *out, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = scale[i] * expf(-in[i] - shift[i]);
}

static void log_sums(const float *rows, size_t labels, size_t count, double sign, double *out) {
    for (size_t r = 0; r < count; r++) {
        const float *row = rows + r * labels;
        double top = -INFINITY, sum = 0;
        for (size_t i = 0; i < labels; i++)
            top = fmax(top, sign * (double)row[i]);
        for (size_t i = 0; i < labels; i++)
            sum += exp(sign * (double)row[i] - top);
        out[r] = log(sum) + top;
    }
}

/* Vectors here, and for embedding below: every compiler that this builds with maps them to what the
 * machine has. */
#define WINDOW_LANES 4
#include "dsp/dsp_window.h"

#define REAL float
#define LINE dcrf_pair_line
#define POWER exp2f
#define NAME(function) pair_##function
#include "dsp/dsp_pairs_c.h"
#undef REAL
#undef LINE
#undef POWER
#undef NAME

#define REAL double
#define LINE dcrf_pair_line_double
#define POWER exp2
#define NAME(function) pair_double_##function
#include "dsp/dsp_pairs_c.h"

#define INLINE static inline __attribute__((always_inline))
#define EMBED_LANES 4
#include "dsp/dsp_embed.h"

void dcrf_plain_embed_single(const struct dcrf_embed *embed) {
    embed_single(embed);
}

void dcrf_plain_embed_double(const struct dcrf_embed *embed) {
    embed_double(embed);
}

const struct dcrf_dsp dcrf_dsp_c = {
    .cpu = DCRF_CPU_C,
    .embed_single = dcrf_plain_embed_single,
    .embed_double = dcrf_plain_embed_double,
    .splat_runs = dcrf_plain_splat_runs,
    .slice_runs = dcrf_plain_slice_runs,
    .blur = blur,
    .splat_ring = dcrf_plain_splat_runs,
    .slice_ring = dcrf_plain_slice_runs,
    .blur_ring = blur,
    .convolve = convolve,
    .scale = scale_rows,
    .weigh = weigh,
    .read = read,
    .gaussian_sum = gaussian_sum,
    .softmax = softmax,
    .shared_softmax = dcrf_plain_shared_softmax,
    .negative_exponential = negative_exponential,
    .log_sums = log_sums,
    .sum_window = sum_window,
    .pairs = {pair_values, pair_product, pair_transpose, pair_line, pair_sums, pair_disagreement},
    .pairs_double = {pair_double_values, pair_double_product, pair_double_transpose,
                     pair_double_line, pair_double_sums, pair_double_disagreement},
};
