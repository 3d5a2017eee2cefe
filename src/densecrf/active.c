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

void dcrf_field_free(struct dcrf_field **field_pointer) {
    struct dcrf_field *field = *field_pointer;
    if (!field)
        return;
    dcrf_release(field->label);
    dcrf_release(field->place);
    dcrf_release(field->zeros);
    dcrf_release(field->q);
    dcrf_release(field->spare);
    dcrf_release(field->rest);
    dcrf_release(field->peak);
    dcrf_release(field->peak_part);
    dcrf_release(field);
    *field_pointer = NULL;
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

dcrf_status dcrf_field_measure_threshold(struct dcrf_field *field, dcrf_error *error) {
    const dcrf_densecrf *crf = field->crf;
    double sum = 0;
    for (size_t m = 0; m < crf->term_count && !field->has_threshold; m++) {
        float row_sum;
        const dcrf_status status =
            dcrf_densecrf_row_sum(&crf->terms[m], field->pool, &row_sum, error);
        if (status < 0)
            return status;
        sum += largest_compatibility(crf, &crf->terms[m]) * (double)row_sum;
    }
    if (!field->has_threshold)
        field->threshold = threshold_of(crf, sum);
    field->has_threshold = true;
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

dcrf_status dcrf_field_new(struct dcrf_field **out, const dcrf_densecrf *crf,
                           dcrf_workspace *workspace, dcrf_error *error) {
    const size_t n = crf->variables, row = dcrf_padded(crf->labels) * sizeof(float);
    struct dcrf_field *field = dcrf_allocate_zero(1, sizeof *field);
    *out = NULL;
    if (!field)
        return dcrf_fail_memory(error, "mean field");
    field->crf = crf;
    field->pool = dcrf_workspace_pool(workspace);
    field->threshold = -1;
    if (crf->message_error > 0 && crf->labels > DCRF_LANES) /* otherwise rows cannot be shorter */
        field->threshold = guess_threshold(crf);
    field->peak_stride = dcrf_padded(crf->labels + 1);
    field->label = dcrf_allocate(crf->labels, sizeof *field->label);
    field->place = dcrf_allocate(crf->labels, sizeof *field->place);
    /* Rows for all labels; untouched memory costs nothing while few are active. */
    if (!crf->unary)
        field->zeros = dcrf_allocate_zero(dcrf_densecrf_unary_floats(crf), sizeof(float));
    field->energies = crf->unary ? crf->unary : field->zeros;
    field->q = dcrf_allocate(n, row);
    field->spare = dcrf_allocate(n, row);
    field->rest = dcrf_allocate(n, 6 * sizeof(float));
    field->peak = dcrf_allocate(crf->labels, sizeof(float));
    field->peak_part =
        dcrf_allocate(dcrf_pool_threads(field->pool), field->peak_stride * sizeof(float));
    if (!field->label || !field->place || !field->energies || !field->q || !field->spare ||
        !field->rest || !field->peak || !field->peak_part) {
        dcrf_field_free(&field);
        return dcrf_fail_memory(error, "mean field");
    }
    field->rest_top = field->rest + n;
    field->shift = field->rest + 2 * n;
    field->scale = field->rest + 3 * n;
    field->old_shift = field->rest + 4 * n;
    field->old_scale = field->rest + 5 * n;
    field->total = field->rest;
    *out = field;
    return DCRF_OK;
}

/* ---- peaks: largest probabilities ----------------------------------------------------------- */

void dcrf_field_clear_peaks(struct dcrf_field *field) {
    memset(field->peak_part, 0,
           dcrf_pool_threads(field->pool) * field->peak_stride * sizeof *field->peak_part);
}

float dcrf_field_collect_peaks(struct dcrf_field *field, bool by_place) {
    float rest = 0;
    const size_t count = by_place ? field->active : field->crf->labels;
    for (size_t worker = 0; worker < dcrf_pool_threads(field->pool); worker++) {
        const float *part = field->peak_part + worker * field->peak_stride;
        for (size_t i = 0; i < count; i++) {
            float *peak = &field->peak[by_place ? field->label[i] : i];
            if (worker == 0 || part[i] > *peak)
                *peak = part[i];
        }
        const float outside = part[field->peak_stride - 1];
        rest = outside > rest ? outside : rest;
    }
    return rest;
}

/* ---- sums over labels that are not active --------------------------------------------------- */

/* The unary energies of a label at the places begin .. end - 1, where begin is a multiple of
 * DCRF_LANES. */
static void copy_energies(const struct dcrf_field *field, size_t label, size_t begin, size_t end,
                          float *out) {
    for (size_t a = begin; a < end; a += DCRF_LANES)
        memcpy(out + a - begin, field->energies + dcrf_densecrf_unary_at(field->crf, a, label),
               (end - a < DCRF_LANES ? end - a : DCRF_LANES) * sizeof *out);
}

/* Recompute the probabilities of a label that is not active, from shift and scale. */
static void give_back(const struct dcrf_field *field, size_t label, size_t begin, size_t end,
                      float *q) {
    float unary[DCRF_DENSECRF_GRAIN];
    copy_energies(field, label, begin, end, unary);
    dcrf_dsp()->negative_exponential(unary, field->shift + begin, field->scale + begin, q,
                                     end - begin);
}

/* For the variables begin .. end - 1 and the labels without a place: top = max -unary and sum = sum
 * exp(-unary - top). */
static void sum_outside(const struct dcrf_field *field, size_t begin, size_t end, float *top,
                        float *sum) {
    const dcrf_densecrf *crf = field->crf;
    const size_t count = end - begin;
    float unary[DCRF_DENSECRF_GRAIN], ones[DCRF_DENSECRF_GRAIN], part[DCRF_DENSECRF_GRAIN];
    bool is_first = true;
    for (size_t i = 0; i < crf->labels; i++) {
        if (field->place[i] != NO_PLACE)
            continue;
        copy_energies(field, i, begin, end, unary);
        for (size_t a = 0; a < count; a++)
            top[a] = is_first || -unary[a] > top[a] ? -unary[a] : top[a];
        is_first = false;
    }
    for (size_t a = 0; a < count; a++) {
        ones[a] = 1;
        sum[a] = 0;
    }
    for (size_t i = 0; i < crf->labels; i++) {
        if (field->place[i] != NO_PLACE)
            continue;
        copy_energies(field, i, begin, end, unary);
        dcrf_dsp()->negative_exponential(unary, top, ones, part, count);
        for (size_t a = 0; a < count; a++)
            sum[a] += part[a];
    }
}

/* Raise the peaks of labels without a place, from shift and scale. */
static void raise_outside(const struct dcrf_field *field, size_t begin, size_t end, size_t worker) {
    const dcrf_densecrf *crf = field->crf;
    float *peak = field->peak_part + worker * field->peak_stride;
    float part[DCRF_DENSECRF_GRAIN];
    for (size_t i = 0; i < crf->labels; i++) {
        if (field->place[i] != NO_PLACE)
            continue;
        give_back(field, i, begin, end, part);
        peak[i] = fmaxf(peak[i], dcrf_densecrf_largest(part, end - begin));
    }
}

static void raise_task(void *context, size_t begin, size_t end, size_t worker) {
    raise_outside(context, begin, end, worker);
}

static void start_task(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_field *field = context;
    float sum[DCRF_DENSECRF_GRAIN];
    sum_outside(field, begin, end, field->shift + begin, sum);
    for (size_t a = begin; a < end; a++)
        field->scale[a] = 1 / sum[a - begin];
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct rebuild {
    struct dcrf_field *field;
    const float *planes;     /* source of q; NULL: the field */
    const size_t *old_place; /* in rows of old_stride floats */
    size_t old_stride;
};

/* Rows that stay in the cache while their columns are filled. */
#define TILE 64

static void fill_tile(const struct rebuild *rebuild, size_t begin, size_t end) {
    const struct dcrf_field *field = rebuild->field;
    const dcrf_densecrf *crf = field->crf;
    const size_t stride = field->stride, n = crf->variables;
    float part[TILE];
    for (size_t k = 0; k < field->active; k++) {
        const size_t label = field->label[k], old = rebuild->old_place[label];
        if (rebuild->planes) {
            for (size_t a = begin; a < end; a++)
                field->spare[a * stride + k] = rebuild->planes[label * n + crf->order[a]];
        } else if (old != NO_PLACE) {
            for (size_t a = begin; a < end; a++)
                field->spare[a * stride + k] = field->q[a * rebuild->old_stride + old];
        } else {
            give_back(field, label, begin, end, part);
            for (size_t a = begin; a < end; a++)
                field->spare[a * stride + k] = part[a - begin];
        }
    }
    for (size_t a = begin; a < end; a++)
        for (size_t k = field->active; k < stride; k++)
            field->spare[a * stride + k] = 0;
    if (dcrf_field_has_rest(field)) {
        float sum[DCRF_DENSECRF_GRAIN];
        sum_outside(field, begin, end, field->rest_top + begin, sum);
        for (size_t a = begin; a < end; a++)
            field->rest[a] = field->rest_top[a] + logf(sum[a - begin]);
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
static dcrf_status rebuild_rows(struct dcrf_field *field, const float *planes, float limit,
                                dcrf_error *error) {
    const size_t labels = field->crf->labels;
    size_t *old_place = dcrf_allocate(labels, sizeof *old_place);
    if (!old_place)
        return dcrf_fail_memory(error, "mean field");
    memcpy(old_place, field->place, labels * sizeof *old_place);
    struct rebuild rebuild = {field, planes, old_place, field->stride};
    size_t count = 0, highest = 0;
    for (size_t i = 0; i < labels; i++) {
        count += field->peak[i] > limit;
        highest = field->peak[i] > field->peak[highest] ? i : highest;
    }
    const bool takes_all = dcrf_padded(count) >= dcrf_padded(labels);
    field->active = 0;
    for (size_t i = 0; i < labels; i++) {
        const bool is_in = takes_all || field->peak[i] > limit || (count == 0 && i == highest);
        field->place[i] = is_in ? field->active : NO_PLACE;
        if (is_in)
            field->label[field->active++] = i;
    }
    field->stride = dcrf_padded(field->active);
    dcrf_parallel_for(field->pool, field->crf->variables, DCRF_DENSECRF_GRAIN, fill_rows, &rebuild);
    swap(&field->q, &field->spare);
    field->rest_peak = 0;
    dcrf_release(old_place);
    return DCRF_OK;
}

static void leave_all_out(struct dcrf_field *field) {
    field->active = 0;
    field->stride = 0;
    for (size_t i = 0; i < field->crf->labels; i++)
        field->place[i] = NO_PLACE;
}

void dcrf_field_take_all(struct dcrf_field *field) {
    field->active = field->crf->labels;
    field->stride = dcrf_padded(field->active);
    for (size_t i = 0; i < field->active; i++)
        field->label[i] = field->place[i] = i;
}

dcrf_status dcrf_field_start(struct dcrf_field *field, dcrf_error *error) {
    leave_all_out(field);
    dcrf_parallel_for(field->pool, field->crf->variables, DCRF_DENSECRF_GRAIN, start_task, field);
    return rebuild_rows(field, NULL, field->threshold / 2, error);
}

struct load {
    struct dcrf_field *field;
    const float *planes;
};

static void check_planes(void *context, size_t begin, size_t end, size_t worker) {
    const struct load *load = context;
    const struct dcrf_field *field = load->field;
    float *peak = field->peak_part + worker * field->peak_stride;
    for (size_t i = 0; i < field->crf->labels; i++) {
        const float *q = load->planes + i * field->crf->variables;
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
            peak[field->peak_stride - 1] = 1;
        else
            peak[i] = fmaxf(peak[i], size);
    }
}

dcrf_status dcrf_field_load(struct dcrf_field *field, const float *q, bool *stores,
                            dcrf_error *error) {
    struct load load = {field, q};
    leave_all_out(field);
    dcrf_field_clear_peaks(field);
    dcrf_parallel_for(field->pool, field->crf->variables, DCRF_DENSECRF_GRAIN, check_planes, &load);
    if (dcrf_field_collect_peaks(field, false) > 0)
        return dcrf_fail(error, DCRF_ERROR_NOT_FINITE, "Q holds a value that is not finite");
    dcrf_field_take_all(field);
    const bool adapts = dcrf_field_must_adapt(field);
    field->rest_peak = 0;
    if (!adapts && !*stores)
        return DCRF_OK;
    *stores = true;
    if (adapts) {
        const dcrf_status status = dcrf_field_measure_threshold(field, error);
        if (status < 0)
            return status;
    }
    leave_all_out(field);
    return rebuild_rows(field, q, field->threshold / 2, error);
}

/* Find the peaks of labels outside the rows; those inside are known. */
static void find_peaks(struct dcrf_field *field) {
    for (size_t worker = 0; worker < dcrf_pool_threads(field->pool); worker++) {
        float *part = field->peak_part + worker * field->peak_stride;
        for (size_t i = 0; i < field->crf->labels; i++)
            part[i] = field->place[i] == NO_PLACE ? 0 : field->peak[i];
    }
    dcrf_parallel_for(field->pool, field->crf->variables, DCRF_DENSECRF_GRAIN, raise_task, field);
    dcrf_field_collect_peaks(field, false);
}

bool dcrf_field_must_adapt(const struct dcrf_field *field) {
    size_t kept = 0;
    for (size_t k = 0; k < field->active; k++)
        kept += field->peak[field->label[k]] > field->threshold / 2;
    return dcrf_padded(kept) < field->stride;
}

bool dcrf_field_is_alive(const struct dcrf_field *field, const float *peak_part) {
    size_t kept = 0;
    for (size_t k = 0; k < field->active; k++)
        kept += peak_part[k] > field->threshold / 2;
    return !dcrf_field_has_rest(field) && dcrf_padded(kept) >= field->stride;
}

dcrf_status dcrf_field_adapt(struct dcrf_field *field, dcrf_error *error) {
    if (dcrf_field_has_rest(field))
        find_peaks(field);
    return rebuild_rows(field, NULL, field->threshold / 2, error);
}

void dcrf_field_swap(struct dcrf_field *field) {
    swap(&field->q, &field->spare);
    swap(&field->shift, &field->old_shift);
    swap(&field->scale, &field->old_scale);
}

dcrf_status dcrf_field_wake(struct dcrf_field *field, const float *planes, dcrf_error *error) {
    find_peaks(field);
    for (size_t k = 0; k < field->active; k++)
        field->peak[field->label[k]] = 1; /* drop none */
    dcrf_field_swap(field);
    return rebuild_rows(field, planes, field->threshold / 2, error);
}

/* ---- planes --------------------------------------------------------------------------------- */

struct store {
    const struct dcrf_field *field;
    float *planes;
};

static void store_planes(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct store *store = context;
    const struct dcrf_field *field = store->field;
    const size_t n = field->crf->variables;
    const uint32_t *order = field->crf->order;
    float part[DCRF_DENSECRF_GRAIN];
    for (size_t i = 0; i < field->crf->labels; i++) {
        float *out = store->planes + i * n;
        const size_t place = field->place[i];
        if (place == NO_PLACE)
            give_back(field, i, begin, end, part);
        for (size_t a = begin; a < end; a++)
            out[order[a]] =
                place == NO_PLACE ? part[a - begin] : field->q[a * field->stride + place];
    }
}

void dcrf_field_store(const struct dcrf_field *field, float *q) {
    struct store store = {field, q};
    dcrf_parallel_for(field->pool, field->crf->variables, DCRF_DENSECRF_GRAIN, store_planes,
                      &store);
}
