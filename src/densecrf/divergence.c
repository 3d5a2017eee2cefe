/* The objective, as the original computes it: without the factor 1/2 that the pairwise part of a
 * Kullback-Leibler divergence would have, and up to a constant.
 *
 *   sum_ai Q_ai ln max(Q_ai, 1e-20) + sum_ai unary_ai Q_ai + sum_aij Q_ai mu(i, j) (K Q_j)_a
 *
 * Labels j pass through the lattices in blocks; all sums are in double. */
#include "core/error.h"
#include "core/memory.h"
#include "densecrf/densecrf.h"

#include <math.h>

#define SMALLEST_Q 1e-20f
/* The most labels that pass through the lattices together. */
#define MOST_WIDTH DCRF_DSP_WIDTH
/* Rows that stay in the cache while their columns are filled. */
#define TILE 64

struct divergence {
    const dcrf_densecrf *crf;
    const float *q; /* planes, in the order of the image */
    const struct dcrf_densecrf_term *term;
    float *rows;     /* a block of q */
    float *filtered; /* gain K times them */
    size_t first, count, width;
};

/* One label at places within one block of eight, whose unary energies are adjacent. */
static double own_terms(const struct divergence *d, size_t label, size_t begin, size_t end) {
    const float *q = d->q + label * d->crf->variables, *unary = d->crf->unary;
    double sum = 0;
    for (size_t a = begin; a < end; a++) {
        const float value = q[d->crf->order[a]];
        const float logarithm = logf(value > SMALLEST_Q ? value : SMALLEST_Q);
        const double energy = unary ? (double)unary[dcrf_densecrf_unary_at(d->crf, a, label)] : 0;
        sum += (double)value * ((double)logarithm + energy);
    }
    return sum;
}

static double own_part(void *context, size_t begin, size_t end) {
    const struct divergence *d = context;
    double sum = 0;
    for (size_t first = begin, next; first < end; first = next) {
        next = (first / DCRF_LANES + 1) * DCRF_LANES;
        next = next < end ? next : end;
        for (size_t i = 0; i < d->crf->labels; i++)
            sum += own_terms(d, i, first, next);
    }
    return sum;
}

static void fill_tile(const struct divergence *d, size_t begin, size_t end) {
    for (size_t k = 0; k < d->width; k++) {
        const float *q = d->q + (d->first + k) * d->crf->variables;
        for (size_t a = begin; a < end; a++)
            d->rows[a * d->width + k] = k < d->count ? q[d->crf->order[a]] : 0;
    }
}

static void fill_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t first = begin; first < end; first += TILE)
        fill_tile(context, first, first + TILE < end ? first + TILE : end);
}

/* sum_i Q_ai mu(i, j), where j is label k of the block. */
static double mixed(const struct divergence *d, size_t place, size_t k) {
    const size_t n = d->crf->variables, a = d->crf->order[place], labels = d->crf->labels;
    const float *mu = d->term->mu + (d->first + k) * labels;
    double sum = 0;
    for (size_t i = 0; i < labels; i++)
        sum += (double)mu[i] * (double)d->q[i * n + a];
    return sum;
}

static double matrix_part(void *context, size_t begin, size_t end) {
    const struct divergence *d = context;
    double sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < d->count; k++)
            sum += (double)d->filtered[a * d->width + k] * mixed(d, a, k);
    return sum;
}

/* One sum per label of a block, which do not wait for each other. */
static double message_part(void *context, size_t begin, size_t end) {
    const struct divergence *d = context;
    const bool is_scalar = d->term->compatibility != DCRF_COMPATIBILITY_VECTOR;
    double sums[MOST_WIDTH] = {0}, sum = 0;
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < d->count; k++)
            sums[k] += (double)d->filtered[a * d->width + k] * (double)d->rows[a * d->width + k];
    for (size_t k = 0; k < d->count; k++)
        sum += (double)d->term->mu[is_scalar ? 0 : d->first + k] * sums[k];
    return sum;
}

dcrf_status dcrf_densecrf_find_divergence(const dcrf_densecrf *crf, dcrf_workspace *workspace,
                                          const float *q, double *divergence, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const size_t n = crf->variables;
    const size_t most = crf->labels < MOST_WIDTH ? crf->labels : MOST_WIDTH;
    struct divergence d = {.crf = crf, .q = q, .width = dcrf_padded(most)};
    d.rows = dcrf_allocate(n, d.width * sizeof *d.rows);
    d.filtered = dcrf_allocate(n, d.width * sizeof *d.filtered);
    if (!d.rows || !d.filtered) {
        dcrf_release(d.rows);
        dcrf_release(d.filtered);
        return dcrf_fail_memory(error, "the divergence");
    }
    double sum = dcrf_parallel_sum(pool, n, own_part, &d);
    dcrf_status status = DCRF_OK;
    for (d.first = 0; d.first < crf->labels && status == DCRF_OK; d.first += d.width) {
        const size_t left = crf->labels - d.first;
        d.count = left < d.width ? left : d.width;
        dcrf_parallel_for(pool, n, DCRF_DENSECRF_GRAIN, fill_rows, &d);
        for (size_t m = 0; m < crf->term_count; m++) {
            d.term = &crf->terms[m];
            const struct dcrf_lattice *lattice = dcrf_densecrf_lattice(d.term);
            float *scratch = dcrf_workspace_slot(
                workspace, &dcrf_spread_slot,
                dcrf_lattice_filter_floats(lattice, d.width, dcrf_pool_threads(pool)),
                sizeof *scratch);
            if (!scratch) {
                status = dcrf_fail_memory(error, "the divergence");
                break;
            }
            dcrf_lattice_filter(&(struct dcrf_lattice_filter){.lattice = lattice,
                                                              .pool = pool,
                                                              .width = d.width,
                                                              .in = d.rows,
                                                              .in_stride = d.width,
                                                              .out = d.filtered,
                                                              .out_stride = d.width,
                                                              .factor = d.term->gain,
                                                              .scratch = scratch});
            const bool is_matrix = d.term->compatibility == DCRF_COMPATIBILITY_MATRIX;
            sum += dcrf_parallel_sum(pool, n, is_matrix ? matrix_part : message_part, &d);
        }
    }
    dcrf_release(d.rows);
    dcrf_release(d.filtered);
    if (status == DCRF_OK)
        *divergence = sum;
    return status;
}
