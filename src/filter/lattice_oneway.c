/* The lattice one way, in parts: for a caller that slices several lattices at once. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

#define VARIABLE_GRAIN 4096

void dcrf_lattice_spread(const struct dcrf_lattice *lattice, dcrf_pool *pool, const float *in,
                         size_t in_stride, size_t width, float *result, float *scratch) {
    /* The blurs go to and fro; the last one must end in `result`. */
    float *from = lattice->corners % 2 == 0 ? result : scratch;
    float *to = lattice->corners % 2 == 0 ? scratch : result;
    memset(result + lattice->vertices * width, 0, width * sizeof *result);
    memset(scratch + lattice->vertices * width, 0, width * sizeof *scratch);
    dcrf_lattice_splat_runs(lattice, pool, in, in_stride, width, from);
    dcrf_lattice_blur(lattice, pool, width, from, true, lattice->corners, to, from);
}

void dcrf_lattice_slice(const struct dcrf_lattice *lattice, const float *spread, size_t width,
                        size_t begin, size_t end, float factor, bool accumulate, float *out,
                        size_t out_stride) {
    const struct dcrf_gather slice = {.entries = lattice->corners,
                                      .index = lattice->corner_vertex + begin * lattice->corners,
                                      .weight = lattice->corner_weight + begin * lattice->corners,
                                      .in = spread,
                                      .in_stride = width,
                                      .out = out,
                                      .out_stride = out_stride,
                                      .width = width,
                                      .factor = factor,
                                      .accumulate = accumulate};
    dcrf_dsp()->gather(&slice, 0, end - begin);
}

struct scaling {
    struct dcrf_lattice *lattice;
    const float *in, *out;
};

static void scale_runs(const struct dcrf_lattice *lattice, float *weight, const float *scale,
                       size_t begin, size_t end) {
    const size_t corners = lattice->corners;
    for (size_t place = begin; place < end; place++)
        for (size_t k = 0; k < corners; k++)
            weight[place * corners + k] *= scale[lattice->runs.variable[place]];
}

static void scale_chunk(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct scaling *scaling = context;
    struct dcrf_lattice *lattice = scaling->lattice;
    const size_t corners = lattice->corners;
    if (scaling->in)
        scale_runs(lattice, lattice->runs.weight, scaling->in, begin, end);
    if (scaling->out && lattice->runs.weight_out)
        scale_runs(lattice, lattice->runs.weight_out, scaling->out, begin, end);
    if (scaling->out && lattice->corner_weight)
        for (size_t a = begin; a < end; a++)
            for (size_t k = 0; k < corners; k++)
                lattice->corner_weight[a * corners + k] *= scaling->out[a];
}

dcrf_status dcrf_lattice_scale(struct dcrf_lattice *lattice, dcrf_pool *pool, const float *in,
                               const float *out, dcrf_error *error) {
    struct scaling scaling = {lattice, in, out};
    const size_t n = lattice->base.variables, row = lattice->corners * sizeof(float);
    if (lattice->ring.rows && in != out && !lattice->runs.weight_out) {
        lattice->runs.weight_out = dcrf_allocate(n, row);
        if (!lattice->runs.weight_out)
            return dcrf_fail_memory(error, "the normalization of a kernel");
        memcpy(lattice->runs.weight_out, lattice->runs.weight, n * row);
        lattice->base.bytes += n * row;
    }
    dcrf_parallel_for(pool, n, VARIABLE_GRAIN, scale_chunk, &scaling);
    return DCRF_OK;
}
