/* The one-way lattice filter: splat, blur upwards, slice; and factors for its input and output. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* ---- the filter ----------------------------------------------------------------------------- */

/* Size of one of the two buffers of the blur. */
static size_t buffer_floats(const struct dcrf_lattice *lattice, size_t width) {
    const size_t rows = lattice->ring.rows ? lattice->ring.rows + 1 : dcrf_lattice_rows(lattice);
    return dcrf_lines_of(rows * width);
}

size_t dcrf_lattice_filter_floats(const struct dcrf_lattice *lattice, size_t width,
                                  size_t threads) {
    struct dcrf_lattice_sections sections = {.count = 1};
    if (threads > 1)
        dcrf_lattice_divide(lattice, threads, &sections);
    return sections.count * 2 * buffer_floats(lattice, width) +
           dcrf_lattice_copies(lattice) * width;
}

void dcrf_lattice_filter(const struct dcrf_lattice_filter *filter) {
    if (filter->lattice->ring.rows)
        dcrf_lattice_filter_ring(filter);
    else
        dcrf_lattice_filter_sectors(filter);
}

/* ---- factors -------------------------------------------------------------------------------- */

struct scaling {
    struct dcrf_lattice *lattice;
    const float *in, *out;
};

static void scale_runs(const struct dcrf_lattice *lattice, float *weight, const float *scale,
                       size_t begin, size_t end) {
    const size_t corners = lattice->corners, band = lattice->runs.band_variables;
    const uint32_t *variable = lattice->runs.variable;
    for (size_t place = begin; place < end; place++) {
        const float factor = scale[variable ? place - place % band + variable[place] : place];
        for (size_t k = 0; k < corners; k++)
            weight[place * corners + k] *= factor;
    }
}

static void scale_chunk(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct scaling *scaling = context;
    const struct dcrf_lattice_runs *runs = &scaling->lattice->runs;
    if (scaling->in)
        scale_runs(scaling->lattice, runs->weight, scaling->in, begin, end);
    if (scaling->out && runs->weight_out)
        scale_runs(scaling->lattice, runs->weight_out, scaling->out, begin, end);
}

dcrf_status dcrf_lattice_scale(struct dcrf_lattice *lattice, dcrf_pool *pool, const float *in,
                               const float *out, dcrf_error *error) {
    struct scaling scaling = {lattice, in, out};
    const size_t n = lattice->base.variables, row = lattice->corners * sizeof(float);
    if (in != out && !lattice->runs.weight_out) {
        lattice->runs.weight_out = dcrf_allocate(n, row);
        if (!lattice->runs.weight_out)
            return dcrf_fail_memory(error, "the normalization of a kernel");
        memcpy(lattice->runs.weight_out, lattice->runs.weight, n * row);
        lattice->base.bytes += n * row;
    }
    dcrf_parallel_rows(pool, n, scale_chunk, &scaling);
    return DCRF_OK;
}
