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
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
/* Runs whose corners a task copies. */
#define COPIED_RUNS 1024
/* Variables whose rows of 96 bytes fit in a second-level cache. */
#define BAND_VARIABLES 8192

/* ---- the order ------------------------------------------------------------------------------ */

struct builder {
    const struct dcrf_lattice *lattice;
    struct dcrf_lattice_runs *runs;
    const struct dcrf_simplices *simplices;
    uint32_t *spare;   /* as runs->variable */
    size_t *first_run; /* of each band */
};

static uint32_t lowest_vertex(const uint32_t *vertex, size_t corners) {
    uint32_t lowest = vertex[0];
    for (size_t k = 1; k < corners; k++)
        lowest = vertex[k] < lowest ? vertex[k] : lowest;
    return lowest;
}

static size_t band_begin(const struct builder *builder, size_t band) {
    const size_t begin = band * builder->runs->band_variables;
    return begin < builder->lattice->base.variables ? begin : builder->lattice->base.variables;
}

static bool begins_run(const struct builder *builder, size_t place) {
    const uint32_t *variable = builder->runs->variable, *of = builder->simplices->of;
    return place % builder->runs->band_variables == 0 ||
           of[variable[place]] != of[variable[place - 1]];
}

/* Sort the variables of bands by their simplices, which are in the order of their lowest vertices:
 * digit by digit, the lowest first. Counts the runs. */
static void order_bands(void *context, size_t first_band, size_t last_band, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    const uint32_t *of = builder->simplices->of;
    for (size_t band = first_band; band < last_band; band++) {
        const size_t begin = band_begin(builder, band), end = band_begin(builder, band + 1);
        uint32_t *from = builder->spare, *to = builder->runs->variable;
        unsigned digits = 1;
        while (digits * DIGIT_BITS < 32 && builder->simplices->count >> (digits * DIGIT_BITS) > 0)
            digits++;
        if (digits % 2 == 0) { /* the last one ends in runs->variable */
            from = builder->runs->variable;
            to = builder->spare;
        }
        for (size_t a = begin; a < end; a++)
            from[a] = (uint32_t)a;
        for (unsigned digit = 0; digit < digits; digit++) {
            const unsigned shift = digit * DIGIT_BITS;
            uint32_t next[DIGITS + 1] = {0}, *other = from;
            for (size_t a = begin; a < end; a++)
                next[(of[a] >> shift & (DIGITS - 1)) + 1]++;
            next[0] = (uint32_t)begin;
            for (size_t i = 0; i < DIGITS; i++)
                next[i + 1] += next[i];
            for (size_t a = begin; a < end; a++)
                to[next[of[from[a]] >> shift & (DIGITS - 1)]++] = from[a];
            from = to;
            to = other;
        }
        size_t count = 0;
        for (size_t place = begin; place < end; place++)
            count += begins_run(builder, place);
        builder->first_run[band] = count;
    }
}

static void fill_bands(void *context, size_t first_band, size_t last_band, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    const struct dcrf_simplices *simplices = builder->simplices;
    struct dcrf_lattice_runs *runs = builder->runs;
    const size_t corners = builder->lattice->corners;
    for (size_t band = first_band; band < last_band; band++) {
        size_t run = builder->first_run[band];
        for (size_t place = band_begin(builder, band); place < band_begin(builder, band + 1);
             place++) {
            const size_t a = runs->variable[place];
            if (begins_run(builder, place)) {
                runs->first[run] = (uint32_t)place;
                dcrf_copy_corners(runs->vertex + run * corners,
                                  simplices->corner + simplices->of[a] * corners, corners);
                run++;
            }
            dcrf_copy_corners(runs->weight + place * corners, simplices->weight + a * corners,
                              corners);
        }
    }
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

static dcrf_status make_runs(struct builder *builder, dcrf_pool *pool, dcrf_error *error) {
    const struct dcrf_lattice *lattice = builder->lattice;
    struct dcrf_lattice_runs *runs = builder->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    runs->variable = dcrf_allocate(n, sizeof *runs->variable);
    runs->weight = dcrf_allocate(n, corners * sizeof *runs->weight);
    if (!runs->variable || !runs->weight || !builder->spare || !builder->first_run)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_parallel_for(pool, runs->band_count, 1, order_bands, builder);
    for (size_t band = 0; band < runs->band_count; band++) {
        const size_t here = builder->first_run[band];
        builder->first_run[band] = runs->count;
        runs->count += here;
    }
    runs->first = dcrf_allocate(runs->count + 1, sizeof *runs->first);
    runs->vertex = dcrf_allocate(runs->count, corners * sizeof *runs->vertex);
    runs->segment =
        dcrf_allocate(runs->count / SEGMENT_RUNS + runs->band_count + 1, sizeof *runs->segment);
    runs->band = dcrf_allocate(runs->band_count + 1, sizeof *runs->band);
    if (!runs->first || !runs->vertex || !runs->segment || !runs->band)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_parallel_for(pool, runs->band_count, 1, fill_bands, builder);
    runs->first[runs->count] = (uint32_t)n;
    fill_segments(lattice, runs);
    return DCRF_OK;
}

dcrf_status dcrf_lattice_runs_new(struct dcrf_lattice *lattice,
                                  const struct dcrf_simplices *simplices, dcrf_pool *pool,
                                  dcrf_error *error) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables;
    /* The runs of a spatial lattice are in the order of the picture as they are. */
    runs->band_variables = !lattice->is_large && lattice->dimension > 2 ? BAND_VARIABLES : n;
    runs->band_count = (n + runs->band_variables - 1) / runs->band_variables;
    struct builder builder = {.lattice = lattice, .runs = runs, .simplices = simplices};
    builder.spare = dcrf_allocate(n, sizeof *builder.spare);
    builder.first_run = dcrf_allocate(runs->band_count, sizeof *builder.first_run);
    const dcrf_status status = make_runs(&builder, pool, error);
    dcrf_release(builder.spare);
    dcrf_release(builder.first_run);
    return status;
}

/* ---- the way back --------------------------------------------------------------------------- */

static void copy_corners(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dcrf_lattice *lattice = context;
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t corners = lattice->corners;
    for (size_t run = begin; run < end; run++)
        for (size_t place = runs->first[run]; place < runs->first[run + 1]; place++) {
            const size_t at = runs->variable[place] * corners;
            dcrf_copy_corners(lattice->corner_vertex + at, runs->vertex + run * corners, corners);
            dcrf_copy_corners(lattice->corner_weight + at, runs->weight + place * corners, corners);
        }
}

dcrf_status dcrf_lattice_runs_corners(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                      dcrf_error *error) {
    const size_t n = lattice->base.variables, corners = lattice->corners;
    lattice->corner_vertex = dcrf_allocate(n, corners * sizeof *lattice->corner_vertex);
    lattice->corner_weight = dcrf_allocate(n, corners * sizeof *lattice->corner_weight);
    if (!lattice->corner_vertex || !lattice->corner_weight)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_parallel_for(pool, lattice->runs.count, COPIED_RUNS, copy_corners, lattice);
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
