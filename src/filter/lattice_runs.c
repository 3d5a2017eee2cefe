/* Splatting and slicing by runs: variables in the order of their simplices.
 *
 * By vertices, a splat reads the row of every variable once for each corner, from anywhere in the
 * picture. By runs it reads the row once, sums all corners in registers while the simplex stays the
 * same, and adds the sums to rows of vertices. A slice is the same the other way round.
 *
 * That order is kept within bands, ranges of variables whose rows stay in the cache while a caller
 * does several things with them: slice them from lattices, change them, splat them. Where the
 * variables of a band are a square of a picture, a small one is enough for most of the runs that
 * there can be: in a grainy photograph at 80/13, squares of 32 x 32 pixels have 1.77 pixels to a
 * run, the whole picture has 2.03, and 1024 pixels along its rows have 1.43.
 *
 * With rows as short as four floats there is nothing to gain from runs: telling where one ends
 * takes longer than loading six rows. There each variable is a run of its own, in the order of the
 * variables.
 *
 * Runs that add to one vertex must not do so at the same time, nor in an order that depends on the
 * threads. So bands come in groups, each of which is splat by one thread into rows of its own, and
 * the rows of all groups are added up. A lattice that goes through a ring (lattice_ring.c) has one
 * band, splat layer by layer. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

/* Rows a task takes. */
#define JOIN_GRAIN 512
/* Runs a task fills. */
#define RUN_GRAIN 1024
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
/* Variables of a band, unless the caller says so. */
#define BAND_VARIABLES 1024

/* ---- the order ------------------------------------------------------------------------------ */

struct builder {
    const struct dcrf_lattice *lattice;
    struct dcrf_lattice_runs *runs;
    const struct dcrf_simplices *simplices;
    uint32_t *spare; /* as runs->variable */
};

static size_t band_begin(const struct builder *builder, size_t band) {
    const size_t begin = band * builder->runs->band_variables;
    return begin < builder->lattice->base.variables ? begin : builder->lattice->base.variables;
}

/* Sort the variables of a band by their simplices, which are in the order of their lowest vertices:
 * digit by digit, the lowest first. */
static void order_band(const struct builder *builder, size_t begin, size_t variables) {
    const uint32_t *of = builder->simplices->of + begin;
    uint32_t *from = builder->spare + begin, *to = builder->runs->variable + begin;
    unsigned bits = 1;
    while (bits < 32 && builder->simplices->count >> bits > 0)
        bits++;
    const unsigned digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    const unsigned digit_bits = (bits + digits - 1) / digits;
    const uint32_t mask = ((uint32_t)1 << digit_bits) - 1;
    if (digits % 2 == 0) { /* the last one ends in runs->variable */
        from = builder->runs->variable + begin;
        to = builder->spare + begin;
    }
    for (size_t a = 0; a < variables; a++)
        from[a] = (uint32_t)a;
    for (unsigned digit = 0; digit < digits; digit++) {
        const unsigned shift = digit * digit_bits;
        uint32_t next[DIGITS + 1], *other = from;
        memset(next, 0, (mask + 2) * sizeof *next);
        for (size_t a = 0; a < variables; a++)
            next[(of[a] >> shift & mask) + 1]++;
        for (size_t i = 0; i < mask; i++)
            next[i + 1] += next[i];
        for (size_t a = 0; a < variables; a++)
            to[next[of[from[a]] >> shift & mask]++] = from[a];
        from = to;
        to = other;
    }
}

/* Order bands, and leave in `spare` where their runs begin, and in runs->band how many there are.
 */
static void order_bands(void *context, size_t first_band, size_t last_band, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    for (size_t band = first_band; band < last_band; band++) {
        const size_t begin = band_begin(builder, band);
        const size_t variables = band_begin(builder, band + 1) - begin;
        order_band(builder, begin, variables);
        const uint32_t *of = builder->simplices->of + begin;
        const uint32_t *variable = builder->runs->variable + begin;
        uint32_t *first = builder->spare + begin, before = 0;
        size_t count = 0;
        for (size_t i = 0; i < variables; i++) {
            const uint32_t here = of[variable[i]];
            first[count] = (uint32_t)(begin + i);
            count += i == 0 || here != before; /* else the next one takes its place */
            before = here;
        }
        builder->runs->band[band] = (uint32_t)count;
    }
}

static void fill_bands(void *context, size_t first_band, size_t last_band, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    const struct dcrf_lattice_runs *runs = builder->runs;
    for (size_t band = first_band; band < last_band; band++)
        memcpy(runs->first + runs->band[band], builder->spare + band_begin(builder, band),
               (runs->band[band + 1] - runs->band[band]) * sizeof *runs->first);
}

/* Vertices by run, then weights by place: no loop over the few places of each run. */
static void fill_runs(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    const struct dcrf_simplices *simplices = builder->simplices;
    const struct dcrf_lattice_runs *runs = builder->runs;
    const size_t corners = builder->lattice->corners, last = runs->first[end];
    for (size_t place = runs->first[begin], run = begin; place < last;) {
        const size_t band = place - place % runs->band_variables;
        const size_t stop = band + runs->band_variables < last ? band + runs->band_variables : last;
        for (; run < end && runs->first[run] < stop; run++) {
            const size_t simplex = simplices->of[band + runs->variable[runs->first[run]]];
            dcrf_copy_corners(runs->vertex + run * corners, simplices->corner + simplex * corners,
                              corners);
        }
        for (; place < stop; place++)
            dcrf_copy_corners(runs->weight + place * corners,
                              simplices->weight + (band + runs->variable[place]) * corners,
                              corners);
    }
}

static dcrf_status make_runs(struct builder *builder, dcrf_pool *pool, dcrf_error *error) {
    const struct dcrf_lattice *lattice = builder->lattice;
    struct dcrf_lattice_runs *runs = builder->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    runs->variable = dcrf_allocate(n, sizeof *runs->variable);
    runs->weight = dcrf_allocate(n, corners * sizeof *runs->weight);
    runs->band = dcrf_allocate(runs->band_count + 1, sizeof *runs->band);
    if (!runs->variable || !runs->weight || !runs->band || !builder->spare)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_parallel_for(pool, runs->band_count, 1, order_bands, builder);
    for (size_t band = 0; band < runs->band_count; band++) {
        const size_t here = runs->band[band];
        runs->band[band] = (uint32_t)runs->count;
        runs->count += here;
    }
    runs->band[runs->band_count] = (uint32_t)runs->count;
    runs->first = dcrf_allocate(runs->count + 1, sizeof *runs->first);
    runs->vertex = dcrf_allocate(runs->count, corners * sizeof *runs->vertex);
    if (!runs->first || !runs->vertex)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_parallel_for(pool, runs->band_count, 1, fill_bands, builder);
    runs->first[runs->count] = (uint32_t)n;
    dcrf_parallel_for(pool, runs->count, RUN_GRAIN, fill_runs, builder);
    return DCRF_OK;
}

/* Begin with no runs, and bands of so many variables. */
static void divide_into_bands(struct dcrf_lattice *lattice, size_t band_variables) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables,
                 band = band_variables ? band_variables : BAND_VARIABLES;
    dcrf_lattice_runs_clear(runs);
    runs->band_variables = band < n ? band : n;
    runs->band_count = (n + runs->band_variables - 1) / runs->band_variables;
}

static void fill_short_runs(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    const struct dcrf_simplices *simplices = builder->simplices;
    const size_t corners = builder->lattice->corners;
    for (size_t a = begin; a < end; a++)
        dcrf_copy_corners(builder->runs->vertex + a * corners,
                          simplices->corner + simplices->of[a] * corners, corners);
}

dcrf_status dcrf_lattice_runs_new_short(struct dcrf_lattice *lattice,
                                        struct dcrf_simplices *simplices, size_t band_variables,
                                        dcrf_pool *pool, dcrf_error *error) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables;
    divide_into_bands(lattice, band_variables);
    runs->count = n;
    runs->band = dcrf_allocate(runs->band_count + 1, sizeof *runs->band);
    runs->vertex = dcrf_allocate(n, lattice->corners * sizeof *runs->vertex);
    if (!runs->band || !runs->vertex)
        return dcrf_fail_memory(error, "the plan of a lattice");
    struct builder builder = {.lattice = lattice, .runs = runs, .simplices = simplices};
    for (size_t band = 0; band <= runs->band_count; band++)
        runs->band[band] = (uint32_t)band_begin(&builder, band);
    dcrf_parallel_for(pool, n, RUN_GRAIN, fill_short_runs, &builder);
    runs->weight = simplices->weight;
    simplices->weight = NULL;
    return DCRF_OK;
}

dcrf_status dcrf_lattice_runs_new(struct dcrf_lattice *lattice,
                                  const struct dcrf_simplices *simplices, size_t band_variables,
                                  dcrf_pool *pool, dcrf_error *error) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables;
    divide_into_bands(lattice, band_variables);
    struct builder builder = {.lattice = lattice, .runs = runs, .simplices = simplices};
    builder.spare = dcrf_allocate(n, sizeof *builder.spare);
    const dcrf_status status = make_runs(&builder, pool, error);
    dcrf_release(builder.spare);
    return status;
}

void dcrf_lattice_runs_clear(struct dcrf_lattice_runs *runs) {
    dcrf_release(runs->first);
    dcrf_release(runs->vertex);
    dcrf_release(runs->variable);
    dcrf_release(runs->weight);
    dcrf_release(runs->weight_out);
    dcrf_release(runs->band);
    *runs = (struct dcrf_lattice_runs){0};
}

dcrf_status dcrf_lattice_runs_undo(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                                   dcrf_error *error) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    *simplices = (struct dcrf_simplices){.count = runs->count};
    simplices->of = dcrf_allocate(n, sizeof *simplices->of);
    simplices->weight = dcrf_allocate(n, corners * sizeof *simplices->weight);
    if (!simplices->of || !simplices->weight) {
        dcrf_simplices_clear(simplices);
        return dcrf_fail_memory(error, "the plan of a lattice");
    }
    for (size_t run = 0; run < runs->count; run++)
        for (size_t place = runs->first[run]; place < runs->first[run + 1]; place++) {
            const size_t a = runs->variable[place];
            simplices->of[a] = (uint32_t)run;
            dcrf_copy_corners(simplices->weight + a * corners, runs->weight + place * corners,
                              corners);
        }
    simplices->corner = runs->vertex;
    runs->vertex = NULL;
    dcrf_lattice_runs_clear(runs);
    return DCRF_OK;
}

size_t dcrf_lattice_runs_bytes(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    const size_t order =
        runs->first ? n * sizeof *runs->variable + runs->count * sizeof *runs->first : 0;
    return order + n * corners * sizeof *runs->weight +
           runs->count * corners * sizeof *runs->vertex + runs->band_count * sizeof *runs->band;
}

struct dcrf_runs dcrf_lattice_runs_of(const struct dcrf_lattice *lattice, size_t width) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    assert(runs->first || width <= DCRF_NARROW_LANES);
    return (struct dcrf_runs){.corners = lattice->corners,
                              .first = runs->first,
                              .vertex = runs->vertex,
                              .variable = runs->variable,
                              .weight = runs->weight,
                              .width = width,
                              .factor = 1};
}

/* ---- bands ---------------------------------------------------------------------------------- */

/* Runs that are variables are counted from the first of their band. */
static void for_band(const struct dcrf_lattice *lattice, size_t band, struct dcrf_runs *runs,
                     void (*work)(const struct dcrf_runs *, size_t, size_t)) {
    size_t begin = lattice->runs.band[band], end = lattice->runs.band[band + 1];
    if (!runs->first) {
        runs->vertex += begin * runs->corners;
        runs->weight += begin * runs->corners;
        end -= begin;
        begin = 0;
    }
    work(runs, begin, end);
}

void dcrf_lattice_splat_band(const struct dcrf_lattice *lattice, size_t band, const float *in,
                             size_t in_stride, size_t width, float *vertices) {
    struct dcrf_runs runs = dcrf_lattice_runs_of(lattice, width);
    runs.vertices = vertices;
    runs.variables = (float *)in; /* a splat only reads them */
    runs.stride = in_stride;
    runs.is_near = true;
    for_band(lattice, band, &runs, dcrf_dsp()->splat_runs);
}

void dcrf_lattice_slice_band(const struct dcrf_lattice *lattice, size_t band, const float *vertices,
                             size_t width, float factor, bool accumulate, float *out,
                             size_t out_stride) {
    struct dcrf_runs runs = dcrf_lattice_runs_of(lattice, width);
    if (lattice->runs.weight_out)
        runs.weight = lattice->runs.weight_out;
    runs.vertices = (float *)vertices; /* a slice only reads them */
    runs.variables = out;
    runs.stride = out_stride;
    runs.factor = factor;
    runs.accumulate = accumulate;
    runs.is_near = true;
    for_band(lattice, band, &runs, dcrf_dsp()->slice_runs);
}

/* ---- groups --------------------------------------------------------------------------------- */

size_t dcrf_lattice_group_first(const struct dcrf_lattice *lattice, size_t group) {
    return group * lattice->runs.band_count / DCRF_LATTICE_GROUPS;
}

struct join {
    float *const *group;
    size_t width;
};

static void join_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct join *join = context;
    float *restrict sum = join->group[0];
    for (size_t g = 1; g < DCRF_LATTICE_GROUPS; g++) {
        const float *restrict other = join->group[g];
        for (size_t i = begin * join->width; i < end * join->width; i++)
            sum[i] += other[i];
    }
}

void dcrf_lattice_join(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                       float *const *group) {
    struct join join = {group, width};
    dcrf_parallel_for(pool, lattice->vertices, JOIN_GRAIN, join_rows, &join);
}
