/* Messages from large lattices, which filter all variables in one sweep (lattice_ring.c).
 *
 * Terms whose compatibility is not a scalar come first, since they still need q: what the lattice
 * makes of it is multiplied by the compatibility and added to the message. The others put theirs
 * into the message themselves. Where rows are long each thread takes labels of its own through the
 * whole lattice, else all labels through layers of its own. */
#include "densecrf/densecrf.h"

#include <string.h>

static const struct dcrf_slot filtered_slot = {"what large lattices filtered"};
static const struct dcrf_slot ring_slot = {"rings of the compatible mean field"};

/* Floats of a row that a thread takes for itself, at least. */
#define LEAST_SHARE 32

size_t dcrf_rings_count(const dcrf_densecrf *crf, bool ring, bool scalar) {
    size_t count = 0;
    for (size_t m = 0; m < crf->term_count; m++)
        count += dcrf_densecrf_has_ring(&crf->terms[m]) == ring &&
                 dcrf_densecrf_is_scalar(&crf->terms[m]) == scalar;
    return count;
}

bool dcrf_rings_any(const dcrf_densecrf *crf) {
    return dcrf_rings_count(crf, true, true) + dcrf_rings_count(crf, true, false) > 0;
}

bool dcrf_rings_init(struct dcrf_rings *rings, const struct dcrf_field *field,
                     dcrf_workspace *workspace) {
    const dcrf_densecrf *crf = field->crf;
    const size_t stride = dcrf_padded(crf->labels), threads = dcrf_workspace_threads(workspace);
    const size_t width = stride < DCRF_DSP_WIDTH ? stride : DCRF_DSP_WIDTH;
    const size_t shares = stride / LEAST_SHARE >= threads ? threads : 1;
    const size_t share = (stride / 4 + shares - 1) / shares * 4;
    size_t most = 0;
    for (size_t m = 0; m < crf->term_count; m++) {
        const struct dcrf_densecrf_term *term = &crf->terms[m];
        const size_t floats =
            dcrf_densecrf_has_ring(term)
                ? dcrf_lattice_filter_floats(dcrf_densecrf_lattice(term),
                                             share < width ? share : width, threads / shares)
                : 0;
        most = floats > most ? floats : most;
    }
    *rings =
        (struct dcrf_rings){.field = field, .shares = shares, .ring_floats = dcrf_lines_of(most)};
    rings->ring =
        dcrf_workspace_slot(workspace, &ring_slot, shares * rings->ring_floats, sizeof(float));
    rings->filtered = dcrf_workspace_slot(
        workspace, &filtered_slot, dcrf_rings_count(crf, true, false) ? crf->variables * width : 0,
        sizeof(float));
    return rings->ring && rings->filtered;
}

void dcrf_densecrf_add_message(const struct dcrf_field *field,
                               const struct dcrf_densecrf_term *term, const float *filtered,
                               size_t step, size_t at, size_t width, float *message, size_t rows) {
    const size_t end = at + width < field->active ? at + width : field->active;
    for (size_t r = 0; r < rows; r++) {
        const float *in = filtered + r * step;
        float *out = message + r * field->stride;
        for (size_t k = at; k < end; k++) {
            const float value = in[k - at];
            if (term->compatibility == DCRF_COMPATIBILITY_VECTOR) {
                out[k] += term->mu[field->label[k]] * value;
            } else {
                /* All labels are active, each in its own place. */
                const float *mu = term->mu + k * field->active;
                for (size_t i = 0; i < field->active; i++)
                    out[i] += mu[i] * value;
            }
        }
    }
}

struct addition {
    const struct dcrf_rings *rings;
    const struct dcrf_densecrf_term *term;
    size_t at, width;
};

static void add_filtered(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct addition *addition = context;
    const struct dcrf_rings *rings = addition->rings;
    dcrf_densecrf_add_message(
        rings->field, addition->term, rings->filtered + begin * addition->width, addition->width,
        addition->at, addition->width, rings->message + begin * rings->field->stride, end - begin);
}

/* What a lattice with a ring does to labels at .. at + width - 1. */
static struct dcrf_lattice_filter ring_filter(const struct dcrf_rings *rings, size_t term,
                                              size_t at, size_t width, float *ring) {
    const struct dcrf_field *field = rings->field;
    return (struct dcrf_lattice_filter){.lattice = dcrf_densecrf_lattice(&field->crf->terms[term]),
                                        .width = width,
                                        .in = field->q + at,
                                        .in_stride = field->stride,
                                        .out = rings->message + at,
                                        .out_stride = field->stride,
                                        .factor = field->crf->terms[term].gain *
                                                  field->crf->terms[term].mu[0],
                                        .scratch = ring};
}

/* The terms with a ring whose compatibility is not a scalar, for some labels: message += their
 * part. */
static void add_rings(const struct dcrf_rings *rings, size_t at, size_t width) {
    const struct dcrf_field *field = rings->field;
    const dcrf_densecrf *crf = field->crf;
    for (size_t m = 0; m < crf->term_count; m++) {
        const struct dcrf_densecrf_term *term = &crf->terms[m];
        if (!dcrf_densecrf_has_ring(term) || dcrf_densecrf_is_scalar(term))
            continue;
        struct dcrf_lattice_filter filter = ring_filter(rings, m, at, width, rings->ring);
        filter.pool = field->pool;
        filter.out = rings->filtered;
        filter.out_stride = width;
        filter.factor = term->gain;
        dcrf_lattice_filter(&filter);
        struct addition addition = {rings, term, at, width};
        dcrf_parallel_for(field->pool, crf->variables, DCRF_DENSECRF_GRAIN, add_filtered,
                          &addition);
    }
}

/* Where the i-th of so many even parts of a row begins: after whole fours. */
static size_t even_part(size_t floats, size_t i, size_t count) {
    return floats / 4 * i / count * 4;
}

/* The i-th term to be filtered. The lattice with the most features is first: its rows of variables
 * come from anywhere, and are faster written than added to. */
static size_t in_turn(const dcrf_densecrf *crf, size_t i) {
    size_t first = 0;
    for (size_t m = 1; m < crf->term_count; m++)
        if (dcrf_densecrf_lattice(&crf->terms[m])->corners >
            dcrf_densecrf_lattice(&crf->terms[first])->corners)
            first = m;
    return i == 0 ? first : i <= first ? i - 1 : i;
}

/* Floats to be filtered at a time, of so many: no few are left, which take nearly as long. */
static size_t block_of(size_t floats) {
    const size_t most = DCRF_DSP_WIDTH, least = most / 2;
    return floats <= most ? floats : floats < most + least ? floats - least : most;
}

/* The others, for the labels of a range and with the threads of a pool: message = their part, or +=
 * that. */
static void put_rings(const struct dcrf_rings *rings, size_t begin, size_t end, float *ring,
                      dcrf_pool *pool) {
    const dcrf_densecrf *crf = rings->field->crf;
    for (size_t at = begin, width; at < end; at += width) {
        bool has_message = rings->has_message;
        width = block_of(end - at);
        for (size_t i = 0; i < crf->term_count; i++) {
            const size_t m = in_turn(crf, i);
            if (!dcrf_densecrf_has_ring(&crf->terms[m]) || !dcrf_densecrf_is_scalar(&crf->terms[m]))
                continue;
            struct dcrf_lattice_filter filter = ring_filter(rings, m, at, width, ring);
            filter.pool = pool;
            filter.accumulate = has_message;
            has_message = true;
            dcrf_lattice_filter(&filter);
        }
    }
}

static void put_shares(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_rings *rings = context;
    for (size_t i = begin; i < end; i++)
        put_rings(rings, even_part(rings->floats, i, rings->shares),
                  even_part(rings->floats, i + 1, rings->shares),
                  rings->ring + i * rings->ring_floats, NULL);
}

/* Does each thread take labels of its own? */
static bool shares_labels(const struct dcrf_rings *rings) {
    const size_t shares = rings->shares;
    return shares == dcrf_pool_threads(rings->field->pool) &&
           (shares == 1 || rings->field->stride / LEAST_SHARE >= shares);
}

bool dcrf_rings_in_place(const struct dcrf_rings *rings) {
    const dcrf_densecrf *crf = rings->field->crf;
    return dcrf_rings_count(crf, true, false) == 0 && dcrf_rings_count(crf, true, true) == 1 &&
           shares_labels(rings);
}

void dcrf_rings_filter(struct dcrf_rings *rings, size_t floats, float *message) {
    const struct dcrf_field *field = rings->field;
    const dcrf_densecrf *crf = field->crf;
    rings->floats = floats;
    rings->message = message;
    rings->has_message = dcrf_rings_count(crf, true, false) > 0;
    if (rings->has_message) {
        memset(message, 0, crf->variables * field->stride * sizeof *message);
        for (size_t at = 0; at < field->stride; at += DCRF_DSP_WIDTH)
            add_rings(rings, at, dcrf_spread_block_width(field->stride, at));
    }
    if (shares_labels(rings))
        dcrf_parallel_for(field->pool, rings->shares, 1, put_shares, rings);
    else
        put_rings(rings, 0, floats, rings->ring, field->pool);
}
