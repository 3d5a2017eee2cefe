/* Messages from large lattices, which filter all variables in one sweep (lattice_ring.c).
 *
 * Terms whose compatibility is not a scalar come first, since they still need q: the lattice's
 * output is multiplied by the compatibility and added to the message. The others write to the
 * message directly. Labels are divided into shares and layers into sections (lattice_ring.c), and
 * each thread takes a share through a section. Shares repeat the reading of indices and weights,
 * sections repeat the work on layers near their borders: the fastest combination is chosen. */
#include "densecrf/densecrf.h"

#include <string.h>

static const struct dcrf_slot filtered_slot = {"what large lattices filtered"};
static const struct dcrf_slot sections_slot = {"sections of large lattices"};
static const struct dcrf_slot ring_slot = {"rings of the compatible mean field"};

/* Approximate cost of the indices and weights of a row, in floats of the row: rows of 12 floats
 * take two thirds of the time of rows of 24. */
#define ROW_FLOATS 12

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

/* Floats to filter at a time: a small remainder, which would take nearly as long, is avoided. */
static size_t block_of(size_t floats) {
    const size_t most = DCRF_DSP_WIDTH, least = most / 2;
    return floats <= most ? floats : floats < most + least ? floats - least : most;
}

/* Where the i-th of `count` even parts of a row begins: at a multiple of four. */
static size_t even_part(size_t floats, size_t i, size_t count) {
    return floats / 4 * i / count * 4;
}

/* The work for the largest of `shares` shares of a row, where a float takes 1. */
static size_t share_work(size_t floats, size_t shares) {
    size_t work = 0;
    for (size_t left = (floats / 4 + shares - 1) / shares * 4; left > 0; left -= block_of(left))
        work += ROW_FLOATS + block_of(left);
    return work;
}

/* Divide the lattices among the threads of a share. Returns the work for the largest sections. */
static double divide_lattices(struct dcrf_rings *rings, size_t threads) {
    const dcrf_densecrf *crf = rings->beliefs->crf;
    double work = 0;
    for (size_t m = 0; m < crf->term_count; m++) {
        dcrf_lattice_divide(dcrf_densecrf_lattice(&crf->terms[m]), threads, &rings->sections[m]);
        work += (double)rings->sections[m].work;
    }
    return work;
}

/* Choose the number of shares that takes the least time. */
static void divide_work(struct dcrf_rings *rings, size_t floats, size_t threads) {
    double least = INFINITY;
    rings->shares = 1;
    for (size_t shares = 1; dcrf_rings_any(rings->beliefs->crf) && shares <= threads &&
                            shares <= floats / 4 && threads > 1;
         shares++) {
        const double work =
            divide_lattices(rings, threads / shares) * (double)share_work(floats, shares);
        if (work < least) {
            least = work;
            rings->shares = shares;
        }
    }
    divide_lattices(rings, threads / rings->shares);
}

bool dcrf_rings_init(struct dcrf_rings *rings, const struct dcrf_beliefs *beliefs,
                     dcrf_workspace *workspace) {
    const dcrf_densecrf *crf = beliefs->crf;
    const size_t stride = dcrf_padded(crf->labels), threads = dcrf_workspace_threads(workspace);
    const size_t width = stride < DCRF_DSP_WIDTH ? stride : DCRF_DSP_WIDTH;
    size_t tasks = 1, most = 0;
    *rings = (struct dcrf_rings){.beliefs = beliefs};
    rings->sections = dcrf_workspace_slot(workspace, &sections_slot, crf->term_count + 1,
                                          sizeof *rings->sections);
    if (!rings->sections)
        return false;
    divide_work(rings, (crf->labels + 3) / 4 * 4, threads);
    for (size_t m = 0; m < crf->term_count; m++) {
        const struct dcrf_densecrf_term *term = &crf->terms[m];
        if (!dcrf_densecrf_has_ring(term))
            continue;
        const struct dcrf_lattice *lattice = dcrf_densecrf_lattice(term);
        const size_t own = rings->shares * rings->sections[m].count;
        const size_t floats = dcrf_lattice_filter_floats(lattice, width, 1);
        const size_t all = dcrf_lattice_filter_floats(lattice, width, threads);
        tasks = own > tasks ? own : tasks;
        most = floats > most ? floats : most;
        if (!dcrf_densecrf_is_scalar(term) && all > rings->ring_floats)
            rings->ring_floats = all; /* see add_rings */
    }
    rings->task_floats = dcrf_lines_of(most);
    if (rings->ring_floats < tasks * rings->task_floats)
        rings->ring_floats = tasks * rings->task_floats;
    rings->ring = dcrf_workspace_slot(workspace, &ring_slot, rings->ring_floats, sizeof(float));
    rings->filtered = dcrf_workspace_slot(
        workspace, &filtered_slot, dcrf_rings_count(crf, true, false) ? crf->variables * width : 0,
        sizeof(float));
    return rings->ring && rings->filtered;
}

void dcrf_densecrf_add_message(const struct dcrf_beliefs *beliefs,
                               const struct dcrf_densecrf_term *term, const float *filtered,
                               size_t step, size_t at, size_t width, float *message, size_t rows) {
    const size_t end = at + width < beliefs->active ? at + width : beliefs->active;
    for (size_t r = 0; r < rows; r++) {
        const float *in = filtered + r * step;
        float *out = message + r * beliefs->stride;
        for (size_t k = at; k < end; k++) {
            const float value = in[k - at];
            if (term->compatibility == DCRF_COMPATIBILITY_VECTOR) {
                out[k] += term->mu[beliefs->label[k]] * value;
            } else {
                /* All labels are active, each in its own place. */
                const float *mu = term->mu + k * beliefs->active;
                for (size_t i = 0; i < beliefs->active; i++)
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
    dcrf_densecrf_add_message(rings->beliefs, addition->term,
                              rings->filtered + begin * addition->width, addition->width,
                              addition->at, addition->width,
                              rings->message + begin * rings->beliefs->stride, end - begin);
}

/* The filter of a lattice with a ring for the labels at .. at + width - 1. */
static struct dcrf_lattice_filter ring_filter(const struct dcrf_rings *rings, size_t term,
                                              size_t at, size_t width, float *ring) {
    const struct dcrf_beliefs *beliefs = rings->beliefs;
    return (struct dcrf_lattice_filter){
        .lattice = dcrf_densecrf_lattice(&beliefs->crf->terms[term]),
        .width = width,
        .in = beliefs->q + at,
        .in_stride = beliefs->stride,
        .out = rings->message + at,
        .out_stride = beliefs->stride,
        .factor = beliefs->crf->terms[term].gain * beliefs->crf->terms[term].mu[0],
        .scratch = ring};
}

/* Add to the message the terms with a ring whose compatibility is not a scalar, for some labels. */
static void add_rings(const struct dcrf_rings *rings, size_t at, size_t width) {
    const struct dcrf_beliefs *beliefs = rings->beliefs;
    const dcrf_densecrf *crf = beliefs->crf;
    for (size_t m = 0; m < crf->term_count; m++) {
        const struct dcrf_densecrf_term *term = &crf->terms[m];
        if (!dcrf_densecrf_has_ring(term) || dcrf_densecrf_is_scalar(term))
            continue;
        struct dcrf_lattice_filter filter = ring_filter(rings, m, at, width, rings->ring);
        filter.pool = beliefs->pool;
        filter.out = rings->filtered;
        filter.out_stride = width;
        filter.factor = term->gain;
        dcrf_lattice_filter(&filter);
        struct addition addition = {rings, term, at, width};
        dcrf_parallel_for(beliefs->pool, crf->variables, DCRF_DENSECRF_GRAIN, add_filtered,
                          &addition);
    }
}

/* The i-th term to filter. The lattice with the most features comes first: it accesses the rows of
 * variables in scattered order, where writing is faster than adding. */
static size_t in_turn(const dcrf_densecrf *crf, size_t i) {
    size_t first = 0;
    for (size_t m = 1; m < crf->term_count; m++)
        if (dcrf_densecrf_lattice(&crf->terms[m])->corners >
            dcrf_densecrf_lattice(&crf->terms[first])->corners)
            first = m;
    return i == 0 ? first : i <= first ? i - 1 : i;
}

/* One term, for one block of labels of each share. */
struct turn {
    const struct dcrf_rings *rings;
    size_t term, block;
    bool accumulates;
};

/* The block of a share: *at is where it begins in a row; returns its floats, 0 if there are no
 * more. */
static size_t find_block(const struct dcrf_rings *rings, size_t share, size_t block, size_t *at) {
    const size_t end = even_part(rings->floats, share + 1, rings->shares);
    *at = even_part(rings->floats, share, rings->shares);
    for (; block > 0; block--)
        *at += block_of(end - *at);
    return block_of(end - *at);
}

static void filter_shares(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct turn *turn = context;
    const struct dcrf_rings *rings = turn->rings;
    const struct dcrf_lattice_sections *sections = &rings->sections[turn->term];
    for (size_t i = begin; i < end; i++) {
        size_t at;
        const size_t width = find_block(rings, i / sections->count, turn->block, &at);
        if (width == 0)
            continue;
        struct dcrf_lattice_filter filter =
            ring_filter(rings, turn->term, at, width, rings->ring + i * rings->task_floats);
        filter.accumulate = turn->accumulates;
        dcrf_lattice_filter_section(&filter, sections, i % sections->count);
    }
}

/* Write the other terms with a ring to the message, or add them to it. */
static void put_rings(const struct dcrf_rings *rings) {
    const dcrf_densecrf *crf = rings->beliefs->crf;
    bool is_left = true;
    for (size_t block = 0; is_left; block++) {
        struct turn turn = {rings, 0, block, rings->has_message};
        is_left = false;
        for (size_t share = 0; share < rings->shares; share++) {
            size_t at;
            is_left = is_left || find_block(rings, share, block, &at) > 0;
        }
        for (size_t i = 0; is_left && i < crf->term_count; i++) {
            turn.term = in_turn(crf, i);
            if (!dcrf_densecrf_has_ring(&crf->terms[turn.term]) ||
                !dcrf_densecrf_is_scalar(&crf->terms[turn.term]))
                continue;
            dcrf_parallel_for(rings->beliefs->pool,
                              rings->shares * rings->sections[turn.term].count, 1, filter_shares,
                              &turn);
            turn.accumulates = true;
        }
    }
}

/* True if no thread reads what another one writes. */
bool dcrf_rings_in_place(const struct dcrf_rings *rings) {
    const dcrf_densecrf *crf = rings->beliefs->crf;
    for (size_t m = 0; m < crf->term_count; m++)
        if (dcrf_densecrf_has_ring(&crf->terms[m]) && rings->sections[m].count > 1)
            return false;
    return dcrf_rings_count(crf, true, false) == 0 && dcrf_rings_count(crf, true, true) == 1;
}

void dcrf_rings_filter(struct dcrf_rings *rings, size_t floats, float *message) {
    const struct dcrf_beliefs *beliefs = rings->beliefs;
    const dcrf_densecrf *crf = beliefs->crf;
    rings->floats = floats;
    rings->message = message;
    rings->has_message = dcrf_rings_count(crf, true, false) > 0;
    if (rings->has_message) {
        memset(message, 0, crf->variables * beliefs->stride * sizeof *message);
        for (size_t at = 0; at < beliefs->stride; at += DCRF_DSP_WIDTH)
            add_rings(rings, at, dcrf_spread_block_width(beliefs->stride, at));
    }
    put_rings(rings);
}
