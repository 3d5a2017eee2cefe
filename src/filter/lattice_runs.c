/* Splatting and slicing by runs: variables in the order of their simplices.
 *
 * By vertices, a splat reads the row of every variable once for each corner, from anywhere in the
 * picture. By runs it reads the row once, sums all corners in registers while the simplex stays the
 * same, and adds the sums to rows of vertices that lie near each other, since vertices are numbered
 * by layers and runs ordered by vertices. A slice is the same the other way round.
 *
 * The rows of variables are then read in the order of the simplices, from anywhere in the picture,
 * though only once. Where the vertices fit in the cache, which rows of the variables do not, that
 * order is kept to bands of the picture that fit in the cache: vertices are visited once for each
 * band, but rows are at hand. Where the vertices do not fit there is one band.
 *
 * Runs that add to one vertex must not do so at the same time, nor in an order that depends on the
 * threads. So they come in segments, each beyond the reach of the last but one: even segments
 * first, odd ones after them. A vertex gets its sums from at most one even and one odd segment, in
 * their order. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

/* The fewest runs of a segment. */
#define SEGMENT_RUNS 256
/* Rows a task clears or touches. */
#define CLEARED_ROWS 4096
#define TOUCHED_ROWS 1024
#define HASH_BITS 10
/* Variables whose rows of 96 bytes fit in a second-level cache. */
#define BAND_VARIABLES 8192

/* ---- the order ------------------------------------------------------------------------------ */

static uint32_t lowest_vertex(const uint32_t *vertex, size_t corners) {
    uint32_t lowest = vertex[0];
    for (size_t k = 1; k < corners; k++)
        lowest = vertex[k] < lowest ? vertex[k] : lowest;
    return lowest;
}

/* Simplices with the same lowest vertex are told apart by this, but for a few. */
static uint32_t hash_simplex(const uint32_t *vertex, size_t corners) {
    uint64_t hash = 0;
    for (size_t k = 0; k < corners; k++)
        hash = (hash + vertex[k]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> (64 - HASH_BITS));
}

/* Counts become the beginnings of their ranges. */
static void sum_up(uint32_t *counts, size_t length) {
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        const uint32_t here = counts[i];
        counts[i] = sum;
        sum += here;
    }
}

/* Sort the variables by band, by the lowest vertex of their simplex, by its hash, and by number:
 * counting, by the hash of all first. */
static dcrf_status order_variables(const struct dcrf_lattice *lattice, uint32_t *order,
                                   dcrf_error *error) {
    const size_t n = lattice->base.variables, corners = lattice->corners;
    const size_t band_count = lattice->runs.band_count, band = lattice->runs.band_variables;
    uint32_t *counts = dcrf_allocate(lattice->vertices + 1, sizeof *counts);
    uint32_t *by_hash = dcrf_allocate(n, sizeof *by_hash);
    uint32_t *lowest = dcrf_allocate(n, sizeof *lowest);
    if (!counts || !by_hash || !lowest) {
        dcrf_release(counts);
        dcrf_release(by_hash);
        dcrf_release(lowest);
        return dcrf_fail_memory(error, "the plan of a lattice");
    }
    for (size_t i = 0; i < band_count; i++) {
        const size_t begin = i * band, end = n - begin < band ? n : begin + band;
        uint32_t hashes[(size_t)1 << HASH_BITS] = {0};
        memset(counts, 0, lattice->vertices * sizeof *counts);
        for (size_t a = begin; a < end; a++) {
            const uint32_t *vertex = lattice->corner_vertex + a * corners;
            lowest[a] = lowest_vertex(vertex, corners);
            counts[lowest[a]]++;
            order[a] = hash_simplex(vertex, corners);
            hashes[order[a]]++;
        }
        sum_up(hashes, (size_t)1 << HASH_BITS);
        sum_up(counts, lattice->vertices);
        for (size_t a = begin; a < end; a++)
            by_hash[begin + hashes[order[a]]++] = (uint32_t)a;
        for (size_t place = begin; place < end; place++)
            order[begin + counts[lowest[by_hash[place]]]++] = by_hash[place];
    }
    dcrf_release(counts);
    dcrf_release(by_hash);
    dcrf_release(lowest);
    return DCRF_OK;
}

static bool begins_run(const struct dcrf_lattice *lattice, size_t place) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const uint32_t *vertex = lattice->corner_vertex;
    const size_t corners = lattice->corners;
    if (place % runs->band_variables == 0)
        return true;
    const size_t a = runs->variable[place], before = runs->variable[place - 1];
    return memcmp(vertex + a * corners, vertex + before * corners, corners * sizeof *vertex) != 0;
}

static void fill_runs(const struct dcrf_lattice *lattice, struct dcrf_lattice_runs *runs) {
    const size_t n = lattice->base.variables, corners = lattice->corners;
    size_t run = 0;
    for (size_t place = 0; place < n; place++) {
        const size_t a = runs->variable[place];
        if (begins_run(lattice, place)) {
            runs->first[run] = (uint32_t)place;
            memcpy(runs->vertex + run * corners, lattice->corner_vertex + a * corners,
                   corners * sizeof *runs->vertex);
            run++;
        }
        memcpy(runs->weight + place * corners, lattice->corner_weight + a * corners,
               corners * sizeof *runs->weight);
    }
    runs->first[run] = (uint32_t)n;
}

/* Close a segment as soon as it is long enough and the next begins beyond the one before it, or
 * with its band. */
static void fill_segments(const struct dcrf_lattice *lattice, struct dcrf_lattice_runs *runs) {
    const size_t corners = lattice->corners;
    uint32_t highest = 0, highest_before = 0;
    size_t bands = 0;
    for (size_t run = 0; run < runs->count; run++) {
        const uint32_t *vertex = runs->vertex + run * corners;
        if (runs->first[run] % runs->band_variables == 0) {
            runs->band[bands++] = (uint32_t)runs->segment_count;
            runs->segment[runs->segment_count++] = (uint32_t)run;
            highest = highest_before = 0;
        } else if (run - runs->segment[runs->segment_count - 1] >= SEGMENT_RUNS &&
                   (runs->segment_count - runs->band[bands - 1] == 1 ||
                    lowest_vertex(vertex, corners) > highest_before)) {
            runs->segment[runs->segment_count++] = (uint32_t)run;
            highest_before = highest;
            highest = 0;
        }
        for (size_t k = 0; k < corners; k++)
            highest = vertex[k] > highest ? vertex[k] : highest;
    }
    runs->band[bands] = (uint32_t)runs->segment_count;
    runs->segment[runs->segment_count] = (uint32_t)runs->count;
}

dcrf_status dcrf_lattice_runs_new(struct dcrf_lattice *lattice, dcrf_error *error) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    /* The runs of a spatial lattice are in the order of the picture as they are. */
    runs->band_variables = !lattice->is_large && lattice->dimension > 2 ? BAND_VARIABLES : n;
    runs->band_count = (n + runs->band_variables - 1) / runs->band_variables;
    runs->variable = dcrf_allocate(n, sizeof *runs->variable);
    runs->weight = dcrf_allocate(n, corners * sizeof *runs->weight);
    if (!runs->variable || !runs->weight)
        return dcrf_fail_memory(error, "the plan of a lattice");
    const dcrf_status status = order_variables(lattice, runs->variable, error);
    if (status < 0)
        return status;
    for (size_t place = 0; place < n; place++)
        runs->count += begins_run(lattice, place);
    runs->first = dcrf_allocate(runs->count + 1, sizeof *runs->first);
    runs->vertex = dcrf_allocate(runs->count, corners * sizeof *runs->vertex);
    runs->segment =
        dcrf_allocate(runs->count / SEGMENT_RUNS + runs->band_count + 1, sizeof *runs->segment);
    runs->band = dcrf_allocate(runs->band_count + 1, sizeof *runs->band);
    if (!runs->first || !runs->vertex || !runs->segment || !runs->band)
        return dcrf_fail_memory(error, "the plan of a lattice");
    fill_runs(lattice, runs);
    fill_segments(lattice, runs);
    return DCRF_OK;
}

void dcrf_lattice_runs_clear(struct dcrf_lattice_runs *runs) {
    dcrf_release(runs->first);
    dcrf_release(runs->vertex);
    dcrf_release(runs->variable);
    dcrf_release(runs->weight);
    dcrf_release(runs->weight_out);
    dcrf_release(runs->segment);
    dcrf_release(runs->band);
    *runs = (struct dcrf_lattice_runs){0};
}

size_t dcrf_lattice_runs_bytes(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    return n * (sizeof *runs->variable + corners * sizeof *runs->weight) +
           runs->count * (sizeof *runs->first + corners * sizeof *runs->vertex) +
           (runs->segment_count + runs->band_count) * sizeof *runs->segment;
}

/* ---- splat ---------------------------------------------------------------------------------- */

struct splat {
    const struct dcrf_lattice *lattice;
    struct dcrf_runs runs;
    size_t first_segment; /* every other one from here */
    size_t touched;       /* the first variable of the band */
};

/* Variables of a band. */
static size_t band_rows(const struct dcrf_lattice *lattice, size_t band) {
    const size_t size = lattice->runs.band_variables, left = lattice->base.variables - band * size;
    return left < size ? left : size;
}

static void clear_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_runs *runs = &((const struct splat *)context)->runs;
    memset(runs->vertices + begin * runs->width, 0,
           (end - begin) * runs->width * sizeof *runs->vertices);
}

/* Read the rows of a band in the order of memory, so that they are in the cache when they are
 * wanted in the order of the simplices: several times as fast as to fetch each when its turn comes.
 */
static void touch_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct splat *splat = context;
    const struct dcrf_runs *runs = &splat->runs;
    const size_t line = DCRF_ALIGNMENT / sizeof(float);
    float sum = 0;
    const float *row = runs->variables + (splat->touched + begin) * runs->stride;
    for (size_t a = begin; a < end; a++, row += runs->stride)
        for (size_t i = 0; i < runs->width; i += line)
            sum += row[i];
    volatile float used = sum;
    (void)used;
}

static void splat_segments(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct splat *splat = context;
    const uint32_t *first = splat->lattice->runs.segment;
    for (size_t i = begin; i < end; i++) {
        const size_t segment = splat->first_segment + 2 * i;
        dcrf_dsp()->splat_runs(&splat->runs, first[segment], first[segment + 1]);
    }
}

struct dcrf_runs dcrf_lattice_runs_of(const struct dcrf_lattice *lattice, size_t width) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    return (struct dcrf_runs){.corners = lattice->corners,
                              .first = runs->first,
                              .vertex = runs->vertex,
                              .variable = runs->variable,
                              .weight = runs->weight,
                              .width = width,
                              .factor = 1};
}

void dcrf_lattice_splat_runs(const struct dcrf_lattice *lattice, dcrf_pool *pool, const float *in,
                             size_t in_stride, size_t width, float *vertices) {
    const uint32_t *band = lattice->runs.band;
    struct splat splat = {.lattice = lattice, .runs = dcrf_lattice_runs_of(lattice, width)};
    splat.runs.vertices = vertices;
    splat.runs.variables = (float *)in; /* a splat only reads them */
    splat.runs.stride = in_stride;
    dcrf_parallel_for(pool, lattice->vertices, CLEARED_ROWS, clear_rows, &splat);
    for (size_t i = 0; i < lattice->runs.band_count; i++) {
        const size_t count = band[i + 1] - band[i];
        splat.first_segment = band[i];
        splat.touched = i * lattice->runs.band_variables;
        dcrf_parallel_for(pool, lattice->runs.band_count > 1 ? band_rows(lattice, i) : 0,
                          TOUCHED_ROWS, touch_rows, &splat);
        dcrf_parallel_for(pool, (count + 1) / 2, 1, splat_segments, &splat);
        splat.first_segment = band[i] + 1;
        dcrf_parallel_for(pool, count / 2, 1, splat_segments, &splat);
    }
}
