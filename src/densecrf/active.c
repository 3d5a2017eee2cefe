/* Which labels take part in the filters, and the rows that hold them.
 *
 * A label is dropped from the rows when its probability is at most half the threshold at every
 * variable. When an update raises it above the threshold somewhere, the update is repeated with
 * the label in the rows. So the probability of a label that is left out is below the threshold t
 * before and after the update, and its missing message (at most e) changes it by at most e t, and
 * the others by at most e t times the number of such labels. Rows are multiples of DCRF_LANES long,
 * so labels are dropped only when that makes rows shorter. */
#include "densecrf/densecrf.h"

#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define NO_PLACE SIZE_MAX

/* ---- memory --------------------------------------------------------------------------------- */

void dcrf_beliefs_free(struct dcrf_beliefs **beliefs_pointer) {
    struct dcrf_beliefs *beliefs = *beliefs_pointer;
    if (!beliefs)
        return;
    dcrf_release(beliefs->label);
    dcrf_release(beliefs->place);
    dcrf_release(beliefs->zeros);
    dcrf_release(beliefs->q);
    dcrf_release(beliefs->spare);
    dcrf_release(beliefs->rest);
    dcrf_release(beliefs->peak);
    dcrf_release(beliefs->peak_part);
    dcrf_release(beliefs);
    *beliefs_pointer = NULL;
}

/* Up to rounding, the largest row sum of a normalized kernel is at least this: the row sums of K,
 * or their square roots, are a positive vector that the kernel maps to itself, so its spectral
 * radius is 1, and a nonnegative matrix with all row sums below 1 has a smaller one (Perron,
 * Frobenius). */
#define LEAST_ROW_SUM 0.999

/* The largest message per unit of probability of its label, for one term with row sum 1; infinite
 * if labels cannot be left out. */
static double largest_compatibility(const dcrf_densecrf *crf,
                                    const struct dcrf_densecrf_term *term) {
    double largest = 0;
    if (term->compatibility == DCRF_COMPATIBILITY_MATRIX)
        return (double)INFINITY; /* messages mix labels */
    const size_t count = term->compatibility == DCRF_COMPATIBILITY_POTTS ? 1 : crf->labels;
    for (size_t i = 0; i < count; i++) {
        const double size = fabs((double)term->mu[i]);
        largest = size > largest ? size : largest;
    }
    return largest;
}

static float threshold_of(const dcrf_densecrf *crf, double message_per_probability) {
    return (float)fmin(1, crf->message_error / message_per_probability);
}

dcrf_status dcrf_beliefs_measure_threshold(struct dcrf_beliefs *beliefs, dcrf_error *error) {
    const dcrf_densecrf *crf = beliefs->crf;
    double sum = 0;
    for (size_t m = 0; m < crf->term_count && !beliefs->has_threshold; m++) {
        float row_sum;
        const dcrf_status status =
            dcrf_densecrf_row_sum(&crf->terms[m], beliefs->pool, &row_sum, error);
        if (status < 0)
            return status;
        sum += largest_compatibility(crf, &crf->terms[m]) * (double)row_sum;
    }
    if (!beliefs->has_threshold)
        beliefs->threshold = threshold_of(crf, sum);
    beliefs->has_threshold = true;
    return DCRF_OK;
}

/* An upper bound on the threshold, without measuring. */
static float guess_threshold(const dcrf_densecrf *crf) {
    double sum = 0;
    for (size_t m = 0; m < crf->term_count; m++) {
        const double row_sum = (double)crf->terms[m].row_sum;
        sum += largest_compatibility(crf, &crf->terms[m]) * (row_sum > 0 ? row_sum : LEAST_ROW_SUM);
    }
    return threshold_of(crf, sum);
}

dcrf_status dcrf_beliefs_new(struct dcrf_beliefs **out, const dcrf_densecrf *crf,
                             dcrf_workspace *workspace, dcrf_error *error) {
    const size_t n = crf->variables, row = dcrf_padded(crf->labels) * sizeof(float);
    struct dcrf_beliefs *beliefs = dcrf_allocate_zero(1, sizeof *beliefs);
    *out = NULL;
    if (!beliefs)
        return dcrf_fail_memory(error, "mean field");
    beliefs->crf = crf;
    beliefs->pool = dcrf_workspace_pool(workspace);
    beliefs->threshold = -1;
    if (crf->message_error > 0 && crf->labels > DCRF_LANES) /* otherwise rows cannot be shorter */
        beliefs->threshold = guess_threshold(crf);
    beliefs->peak_stride = dcrf_padded(crf->labels + 1);
    beliefs->label = dcrf_allocate(crf->labels, sizeof *beliefs->label);
    beliefs->place = dcrf_allocate(crf->labels, sizeof *beliefs->place);
    /* Rows for all labels; untouched memory costs nothing while few are active. */
    if (!crf->unary)
        beliefs->zeros = dcrf_allocate_zero(dcrf_densecrf_unary_floats(crf), sizeof(float));
    beliefs->energies = crf->unary ? crf->unary : beliefs->zeros;
    beliefs->q = dcrf_allocate(n, row);
    beliefs->spare = dcrf_allocate(n, row);
    beliefs->rest = dcrf_allocate(n, 6 * sizeof(float));
    beliefs->peak = dcrf_allocate(crf->labels, sizeof(float));
    beliefs->peak_part =
        dcrf_allocate(dcrf_pool_threads(beliefs->pool), beliefs->peak_stride * sizeof(float));
    if (!beliefs->label || !beliefs->place || !beliefs->energies || !beliefs->q ||
        !beliefs->spare || !beliefs->rest || !beliefs->peak || !beliefs->peak_part) {
        dcrf_beliefs_free(&beliefs);
        return dcrf_fail_memory(error, "mean field");
    }
    beliefs->rest_top = beliefs->rest + n;
    beliefs->shift = beliefs->rest + 2 * n;
    beliefs->scale = beliefs->rest + 3 * n;
    beliefs->old_shift = beliefs->rest + 4 * n;
    beliefs->old_scale = beliefs->rest + 5 * n;
    beliefs->total = beliefs->rest;
    *out = beliefs;
    return DCRF_OK;
}

/* ---- peaks: largest probabilities ----------------------------------------------------------- */

void dcrf_beliefs_clear_peaks(struct dcrf_beliefs *beliefs) {
    memset(beliefs->peak_part, 0,
           dcrf_pool_threads(beliefs->pool) * beliefs->peak_stride * sizeof *beliefs->peak_part);
}

float dcrf_beliefs_collect_peaks(struct dcrf_beliefs *beliefs, bool by_place) {
    float rest = 0;
    const size_t count = by_place ? beliefs->active : beliefs->crf->labels;
    for (size_t worker = 0; worker < dcrf_pool_threads(beliefs->pool); worker++) {
        const float *part = beliefs->peak_part + worker * beliefs->peak_stride;
        for (size_t i = 0; i < count; i++) {
            float *peak = &beliefs->peak[by_place ? beliefs->label[i] : i];
            if (worker == 0 || part[i] > *peak)
                *peak = part[i];
        }
        const float outside = part[beliefs->peak_stride - 1];
        rest = outside > rest ? outside : rest;
    }
    return rest;
}

/* ---- sums over labels that are not active --------------------------------------------------- */

/* The unary energies of a label at the places begin .. end - 1, where begin is a multiple of
 * DCRF_LANES. */
static void copy_energies(const struct dcrf_beliefs *beliefs, size_t label, size_t begin,
                          size_t end, float *out) {
    for (size_t a = begin; a < end; a += DCRF_LANES)
        memcpy(out + a - begin, beliefs->energies + dcrf_densecrf_unary_at(beliefs->crf, a, label),
               (end - a < DCRF_LANES ? end - a : DCRF_LANES) * sizeof *out);
}

/* Recompute the probabilities of a label that is not active, from shift and scale. */
static void give_back(const struct dcrf_beliefs *beliefs, size_t label, size_t begin, size_t end,
                      float *q) {
    float unary[DCRF_DENSECRF_GRAIN];
    copy_energies(beliefs, label, begin, end, unary);
    dcrf_dsp()->negative_exponential(unary, beliefs->shift + begin, beliefs->scale + begin, q,
                                     end - begin);
}

/* For the variables begin .. end - 1 and the labels without a place: top = max -unary and sum = sum
 * exp(-unary - top). */
static void sum_outside(const struct dcrf_beliefs *beliefs, size_t begin, size_t end, float *top,
                        float *sum) {
    const dcrf_densecrf *crf = beliefs->crf;
    const size_t count = end - begin;
    float unary[DCRF_DENSECRF_GRAIN], ones[DCRF_DENSECRF_GRAIN], part[DCRF_DENSECRF_GRAIN];
    bool is_first = true;
    for (size_t i = 0; i < crf->labels; i++) {
        if (beliefs->place[i] != NO_PLACE)
            continue;
        copy_energies(beliefs, i, begin, end, unary);
        for (size_t a = 0; a < count; a++)
            top[a] = is_first || -unary[a] > top[a] ? -unary[a] : top[a];
        is_first = false;
    }
    for (size_t a = 0; a < count; a++) {
        ones[a] = 1;
        sum[a] = 0;
    }
    for (size_t i = 0; i < crf->labels; i++) {
        if (beliefs->place[i] != NO_PLACE)
            continue;
        copy_energies(beliefs, i, begin, end, unary);
        dcrf_dsp()->negative_exponential(unary, top, ones, part, count);
        for (size_t a = 0; a < count; a++)
            sum[a] += part[a];
    }
}

/* Raise the peaks of labels without a place, from shift and scale. */
static void raise_outside(const struct dcrf_beliefs *beliefs, size_t begin, size_t end,
                          size_t worker) {
    const dcrf_densecrf *crf = beliefs->crf;
    float *peak = beliefs->peak_part + worker * beliefs->peak_stride;
    float part[DCRF_DENSECRF_GRAIN];
    for (size_t i = 0; i < crf->labels; i++) {
        if (beliefs->place[i] != NO_PLACE)
            continue;
        give_back(beliefs, i, begin, end, part);
        peak[i] = fmaxf(peak[i], dcrf_densecrf_largest(part, end - begin));
    }
}

static void raise_task(void *context, size_t begin, size_t end, size_t worker) {
    raise_outside(context, begin, end, worker);
}

static void start_task(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_beliefs *beliefs = context;
    float sum[DCRF_DENSECRF_GRAIN];
    sum_outside(beliefs, begin, end, beliefs->shift + begin, sum);
    for (size_t a = begin; a < end; a++)
        beliefs->scale[a] = 1 / sum[a - begin];
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct rebuild {
    struct dcrf_beliefs *beliefs;
    const float *planes;     /* source of q; NULL: the beliefs */
    const size_t *old_place; /* in rows of old_stride floats */
    size_t old_stride;
};

/* Rows that stay in the cache while their columns are filled. */
#define TILE 64

static void fill_tile(const struct rebuild *rebuild, size_t begin, size_t end) {
    const struct dcrf_beliefs *beliefs = rebuild->beliefs;
    const dcrf_densecrf *crf = beliefs->crf;
    const size_t stride = beliefs->stride, n = crf->variables;
    float part[TILE];
    for (size_t k = 0; k < beliefs->active; k++) {
        const size_t label = beliefs->label[k], old = rebuild->old_place[label];
        if (rebuild->planes) {
            for (size_t a = begin; a < end; a++)
                beliefs->spare[a * stride + k] = rebuild->planes[label * n + crf->order[a]];
        } else if (old != NO_PLACE) {
            for (size_t a = begin; a < end; a++)
                beliefs->spare[a * stride + k] = beliefs->q[a * rebuild->old_stride + old];
        } else {
            give_back(beliefs, label, begin, end, part);
            for (size_t a = begin; a < end; a++)
                beliefs->spare[a * stride + k] = part[a - begin];
        }
    }
    for (size_t a = begin; a < end; a++)
        for (size_t k = beliefs->active; k < stride; k++)
            beliefs->spare[a * stride + k] = 0;
    if (dcrf_beliefs_has_rest(beliefs)) {
        float sum[DCRF_DENSECRF_GRAIN];
        sum_outside(beliefs, begin, end, beliefs->rest_top + begin, sum);
        for (size_t a = begin; a < end; a++)
            beliefs->rest[a] = beliefs->rest_top[a] + logf(sum[a - begin]);
    }
}

static void fill_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t first = begin; first < end; first += TILE)
        fill_tile(context, first, first + TILE < end ? first + TILE : end);
}

static void swap(float **a, float **b) {
    float *kept = *a;
    *a = *b;
    *b = kept;
}

/* Activate the labels whose peak is above `limit`, or all if rows would not be shorter. */
static dcrf_status rebuild_rows(struct dcrf_beliefs *beliefs, const float *planes, float limit,
                                dcrf_error *error) {
    const size_t labels = beliefs->crf->labels;
    size_t *old_place = dcrf_allocate(labels, sizeof *old_place);
    if (!old_place)
        return dcrf_fail_memory(error, "mean field");
    memcpy(old_place, beliefs->place, labels * sizeof *old_place);
    struct rebuild rebuild = {beliefs, planes, old_place, beliefs->stride};
    size_t count = 0, highest = 0;
    for (size_t i = 0; i < labels; i++) {
        count += beliefs->peak[i] > limit;
        highest = beliefs->peak[i] > beliefs->peak[highest] ? i : highest;
    }
    const bool takes_all = dcrf_padded(count) >= dcrf_padded(labels);
    beliefs->active = 0;
    for (size_t i = 0; i < labels; i++) {
        const bool is_in = takes_all || beliefs->peak[i] > limit || (count == 0 && i == highest);
        beliefs->place[i] = is_in ? beliefs->active : NO_PLACE;
        if (is_in)
            beliefs->label[beliefs->active++] = i;
    }
    beliefs->stride = dcrf_padded(beliefs->active);
    dcrf_parallel_for(beliefs->pool, beliefs->crf->variables, DCRF_DENSECRF_GRAIN, fill_rows,
                      &rebuild);
    swap(&beliefs->q, &beliefs->spare);
    beliefs->rest_peak = 0;
    dcrf_release(old_place);
    return DCRF_OK;
}

static void leave_all_out(struct dcrf_beliefs *beliefs) {
    beliefs->active = 0;
    beliefs->stride = 0;
    for (size_t i = 0; i < beliefs->crf->labels; i++)
        beliefs->place[i] = NO_PLACE;
}

void dcrf_beliefs_take_all(struct dcrf_beliefs *beliefs) {
    beliefs->active = beliefs->crf->labels;
    beliefs->stride = dcrf_padded(beliefs->active);
    for (size_t i = 0; i < beliefs->active; i++)
        beliefs->label[i] = beliefs->place[i] = i;
}

dcrf_status dcrf_beliefs_start(struct dcrf_beliefs *beliefs, dcrf_error *error) {
    leave_all_out(beliefs);
    dcrf_parallel_for(beliefs->pool, beliefs->crf->variables, DCRF_DENSECRF_GRAIN, start_task,
                      beliefs);
    return rebuild_rows(beliefs, NULL, beliefs->threshold / 2, error);
}

struct load {
    struct dcrf_beliefs *beliefs;
    const float *planes;
};

static void check_planes(void *context, size_t begin, size_t end, size_t worker) {
    const struct load *load = context;
    const struct dcrf_beliefs *beliefs = load->beliefs;
    float *peak = beliefs->peak_part + worker * beliefs->peak_stride;
    for (size_t i = 0; i < beliefs->crf->labels; i++) {
        const float *q = load->planes + i * beliefs->crf->variables;
        uint32_t most = 0; /* magnitudes order like their bits */
        for (size_t a = begin; a < end; a++) {
            uint32_t bits;
            memcpy(&bits, &q[a], sizeof bits);
            bits &= 0x7fffffff;
            most = bits > most ? bits : most;
        }
        float size;
        memcpy(&size, &most, sizeof size);
        if (!isfinite(size))
            peak[beliefs->peak_stride - 1] = 1;
        else
            peak[i] = fmaxf(peak[i], size);
    }
}

dcrf_status dcrf_beliefs_load(struct dcrf_beliefs *beliefs, const float *q, bool *stores,
                              dcrf_error *error) {
    struct load load = {beliefs, q};
    leave_all_out(beliefs);
    dcrf_beliefs_clear_peaks(beliefs);
    dcrf_parallel_for(beliefs->pool, beliefs->crf->variables, DCRF_DENSECRF_GRAIN, check_planes,
                      &load);
    if (dcrf_beliefs_collect_peaks(beliefs, false) > 0)
        return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "Q holds a value that is not finite");
    dcrf_beliefs_take_all(beliefs);
    const bool adapts = dcrf_beliefs_must_adapt(beliefs);
    beliefs->rest_peak = 0;
    if (!adapts && !*stores)
        return DCRF_OK;
    *stores = true;
    if (adapts) {
        const dcrf_status status = dcrf_beliefs_measure_threshold(beliefs, error);
        if (status < 0)
            return status;
    }
    leave_all_out(beliefs);
    return rebuild_rows(beliefs, q, beliefs->threshold / 2, error);
}

/* Find the peaks of labels outside the rows; those inside are known. */
static void find_peaks(struct dcrf_beliefs *beliefs) {
    for (size_t worker = 0; worker < dcrf_pool_threads(beliefs->pool); worker++) {
        float *part = beliefs->peak_part + worker * beliefs->peak_stride;
        for (size_t i = 0; i < beliefs->crf->labels; i++)
            part[i] = beliefs->place[i] == NO_PLACE ? 0 : beliefs->peak[i];
    }
    dcrf_parallel_for(beliefs->pool, beliefs->crf->variables, DCRF_DENSECRF_GRAIN, raise_task,
                      beliefs);
    dcrf_beliefs_collect_peaks(beliefs, false);
}

bool dcrf_beliefs_must_adapt(const struct dcrf_beliefs *beliefs) {
    size_t kept = 0;
    for (size_t k = 0; k < beliefs->active; k++)
        kept += beliefs->peak[beliefs->label[k]] > beliefs->threshold / 2;
    return dcrf_padded(kept) < beliefs->stride;
}

bool dcrf_beliefs_is_alive(const struct dcrf_beliefs *beliefs, const float *peak_part) {
    size_t kept = 0;
    for (size_t k = 0; k < beliefs->active; k++)
        kept += peak_part[k] > beliefs->threshold / 2;
    return !dcrf_beliefs_has_rest(beliefs) && dcrf_padded(kept) >= beliefs->stride;
}

dcrf_status dcrf_beliefs_adapt(struct dcrf_beliefs *beliefs, dcrf_error *error) {
    if (dcrf_beliefs_has_rest(beliefs))
        find_peaks(beliefs);
    return rebuild_rows(beliefs, NULL, beliefs->threshold / 2, error);
}

void dcrf_beliefs_swap(struct dcrf_beliefs *beliefs) {
    swap(&beliefs->q, &beliefs->spare);
    swap(&beliefs->shift, &beliefs->old_shift);
    swap(&beliefs->scale, &beliefs->old_scale);
}

dcrf_status dcrf_beliefs_wake(struct dcrf_beliefs *beliefs, const float *planes,
                              dcrf_error *error) {
    find_peaks(beliefs);
    for (size_t k = 0; k < beliefs->active; k++)
        beliefs->peak[beliefs->label[k]] = 1; /* drop none */
    dcrf_beliefs_swap(beliefs);
    return rebuild_rows(beliefs, planes, beliefs->threshold / 2, error);
}

/* ---- planes --------------------------------------------------------------------------------- */

struct store {
    const struct dcrf_beliefs *beliefs;
    float *planes;
};

static void store_planes(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct store *store = context;
    const struct dcrf_beliefs *beliefs = store->beliefs;
    const size_t n = beliefs->crf->variables;
    const uint32_t *order = beliefs->crf->order;
    float part[DCRF_DENSECRF_GRAIN];
    for (size_t i = 0; i < beliefs->crf->labels; i++) {
        float *out = store->planes + i * n;
        const size_t place = beliefs->place[i];
        if (place == NO_PLACE)
            give_back(beliefs, i, begin, end, part);
        for (size_t a = begin; a < end; a++)
            out[order[a]] =
                place == NO_PLACE ? part[a - begin] : beliefs->q[a * beliefs->stride + place];
    }
}

void dcrf_beliefs_store(const struct dcrf_beliefs *beliefs, float *q) {
    struct store store = {beliefs, q};
    dcrf_parallel_for(beliefs->pool, beliefs->crf->variables, DCRF_DENSECRF_GRAIN, store_planes,
                      &store);
}
