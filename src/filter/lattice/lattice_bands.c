/* Splatting and slicing runs, band by band.
 *
 * A run is one variable, or several that share a simplex and thus its vertices. Bands are ranges of
 * variables whose rows stay in the cache while a caller slices, modifies and splats them.
 *
 * Each variable is a run, in the order of the variables, unless the caller orders variables by
 * squares of the picture and has rows that are long enough (lattice_runs.c): for rows of four
 * floats, finding the end of a run costs more than loading the rows, and along the lines of a
 * picture runs are short.
 *
 * Runs must not add to the same vertex concurrently, nor in an order that depends on the threads:
 * those of a sector of bands add to rows of their own (lattice_sectors.c). */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

/* Vertex rows up to this size need no prefetching. */
#define NEAR_BYTES ((size_t)4 << 20)

/* ---- making --------------------------------------------------------------------------------- */

void dcrf_lattice_bands_init(struct dcrf_lattice *lattice, size_t band_variables) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables;
    dcrf_lattice_runs_clear(runs);
    runs->band_variables = band_variables < n ? band_variables : n;
    runs->band_count = (n + runs->band_variables - 1) / runs->band_variables;
}

struct filling {
    struct dcrf_lattice *lattice;
    const struct dcrf_simplices *simplices;
};

static void fill_singles(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct filling *filling = context;
    const struct dcrf_simplices *simplices = filling->simplices;
    const size_t corners = filling->lattice->corners;
    const uint32_t *corner =
        simplices->corner + simplices->first[begin / simplices->chunk] * corners;
    for (size_t a = begin; a < end; a++)
        dcrf_copy_corners(filling->lattice->runs.vertex + a * corners,
                          corner + simplices->of[a] * corners, corners);
}

dcrf_status dcrf_lattice_singles_new(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                                     size_t band_variables, dcrf_pool *pool, dcrf_error *error) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables;
    dcrf_lattice_bands_init(lattice, band_variables);
    runs->count = n;
    runs->band = dcrf_allocate(runs->band_count + 1, sizeof *runs->band);
    runs->vertex = dcrf_allocate(n, lattice->corners * sizeof *runs->vertex);
    if (!runs->band || !runs->vertex)
        return dcrf_fail_memory(error, "the plan of a lattice");
    for (size_t band = 0; band < runs->band_count; band++)
        runs->band[band] = (uint32_t)(band * runs->band_variables);
    runs->band[runs->band_count] = (uint32_t)n;
    struct filling filling = {lattice, simplices};
    dcrf_parallel_for(pool, n, simplices->chunk, fill_singles, &filling);
    runs->weight = simplices->weight;
    simplices->weight = NULL;
    dcrf_simplices_clear(simplices);
    return dcrf_lattice_sectors_new(lattice, pool, error);
}

void dcrf_lattice_runs_clear(struct dcrf_lattice_runs *runs) {
    dcrf_release(runs->first);
    dcrf_release(runs->vertex);
    dcrf_release(runs->variable);
    dcrf_release(runs->weight);
    dcrf_release(runs->weight_out);
    dcrf_release(runs->band);
    dcrf_lattice_sectors_clear(&runs->sectors);
    *runs = (struct dcrf_lattice_runs){0};
}

size_t dcrf_lattice_runs_bytes(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    const size_t order =
        runs->first ? n * sizeof *runs->variable + runs->count * sizeof *runs->first : 0;
    return order + n * corners * sizeof *runs->weight +
           runs->count * corners * sizeof *runs->vertex + runs->band_count * sizeof *runs->band +
           dcrf_lattice_sectors_bytes(&runs->sectors);
}

/* ---- working -------------------------------------------------------------------------------- */

struct dcrf_runs dcrf_lattice_runs_of(const struct dcrf_lattice *lattice, size_t width) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    return (struct dcrf_runs){.corners = lattice->corners,
                              .first = runs->first,
                              .vertex = runs->vertex,
                              .variable = runs->variable,
                              .weight = runs->weight,
                              .places = lattice->base.variables,
                              .width = width,
                              .factor = 1};
}

/* Runs of a single variable are counted from the first of their band. */
static void for_band(const struct dcrf_lattice *lattice, size_t band, struct dcrf_runs *runs,
                     void (*work)(const struct dcrf_runs *, size_t, size_t)) {
    size_t begin = lattice->runs.band[band], end = lattice->runs.band[band + 1];
    const size_t rows =
        lattice->runs.sectors.is_joint ? lattice->vertices : dcrf_lattice_most_copies(lattice);
    const size_t bytes = rows * runs->width * sizeof(float);
    runs->is_near = runs->first || bytes > NEAR_BYTES;
    if (!runs->first) {
        runs->vertex += begin * runs->corners;
        runs->weight += begin * runs->corners;
        end -= begin;
        begin = 0;
    }
    work(runs, begin, end);
}

void dcrf_lattice_splat_band(const struct dcrf_lattice *lattice, size_t band, const float *in,
                             size_t in_stride, size_t width, float *rows) {
    struct dcrf_runs runs = dcrf_lattice_runs_of(lattice, width);
    runs.vertices = rows;
    runs.variables = (float *)in; /* a splat only reads them */
    runs.stride = in_stride;
    for_band(lattice, band, &runs, dcrf_dsp()->splat_runs);
}

void dcrf_lattice_slice_band(const struct dcrf_lattice *lattice, size_t band, const float *rows,
                             size_t width, float factor, bool accumulate, float *out,
                             size_t out_stride) {
    struct dcrf_runs runs = dcrf_lattice_runs_of(lattice, width);
    if (lattice->runs.weight_out)
        runs.weight = lattice->runs.weight_out;
    runs.vertices = (float *)rows; /* a slice only reads them */
    runs.variables = out;
    runs.stride = out_stride;
    runs.factor = factor;
    runs.accumulate = accumulate;
    for_band(lattice, band, &runs, dcrf_dsp()->slice_runs);
}
