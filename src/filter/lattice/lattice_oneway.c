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
    struct dcrf_lattice_segments segments = {.count = 1};
    if (threads > 1)
        dcrf_lattice_divide(lattice, threads, &segments);
    return segments.count * 2 * buffer_floats(lattice, width) +
           dcrf_lattice_copies(lattice) * width;
}

struct sectors {
    const struct dcrf_lattice_filter *filter;
    struct dcrf_lattice_sums sums;
    float *blurred;
};

static void splat_sectors(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sectors *sectors = context;
    const struct dcrf_lattice_filter *filter = sectors->filter;
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t step = lattice->runs.band_variables * filter->in_stride;
    for (size_t sector = begin; sector < end; sector++) {
        float *rows = dcrf_lattice_sums_begin(&sectors->sums, sector);
        for (size_t band = dcrf_lattice_sector_first(lattice, sector);
             band < dcrf_lattice_sector_first(lattice, sector + 1); band++)
            dcrf_lattice_splat_band(lattice, band, filter->in + band * step, filter->in_stride,
                                    filter->width, rows);
        dcrf_lattice_sums_end(&sectors->sums, sector);
    }
}

static void slice_sectors(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sectors *sectors = context;
    const struct dcrf_lattice_filter *filter = sectors->filter;
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t step = lattice->runs.band_variables * filter->out_stride;
    for (size_t sector = begin; sector < end; sector++) {
        const float *rows = dcrf_lattice_take(lattice, sector, filter->width, sectors->blurred,
                                              dcrf_lattice_sums_rows(&sectors->sums, sector));
        for (size_t band = dcrf_lattice_sector_first(lattice, sector);
             band < dcrf_lattice_sector_first(lattice, sector + 1); band++)
            dcrf_lattice_slice_band(lattice, band, rows, filter->width, filter->factor,
                                    filter->accumulate, filter->out + band * step,
                                    filter->out_stride);
    }
}

void dcrf_lattice_filter(const struct dcrf_lattice_filter *filter) {
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t width = filter->width, floats = buffer_floats(lattice, width);
    if (lattice->ring.rows) {
        dcrf_lattice_filter_ring(filter);
        return;
    }
    const size_t count = lattice->runs.sectors.count;
    float *other = filter->scratch, *splat = other + floats;
    struct sectors sectors = {.filter = filter};
    sectors.sums = (struct dcrf_lattice_sums){.lattice = lattice,
                                              .width = width,
                                              .is_alone = dcrf_pool_threads(filter->pool) == 1,
                                              .vertices = splat,
                                              .copies = splat + floats};
    memset(other + lattice->vertices * width, 0, width * sizeof *other);
    dcrf_lattice_sums_start(&sectors.sums, 1, filter->pool);
    dcrf_parallel_for(filter->pool, count, 1, splat_sectors, &sectors);
    dcrf_lattice_sums_join(&sectors.sums, 1, filter->pool);
    sectors.blurred = dcrf_lattice_blur(lattice, filter->pool, width, splat, true, lattice->corners,
                                        other, splat);
    dcrf_parallel_for(filter->pool, count, 1, slice_sectors, &sectors);
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
