/* The lattice one way, in parts: for a caller that slices several lattices at once. */
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

static void scale_chunk(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct scaling *scaling = context;
    struct dcrf_lattice *lattice = scaling->lattice;
    const size_t corners = lattice->corners;
    if (scaling->in)
        for (size_t place = begin; place < end; place++)
            for (size_t k = 0; k < corners; k++)
                lattice->runs.weight[place * corners + k] *=
                    scaling->in[lattice->runs.variable[place]];
    if (scaling->out)
        for (size_t a = begin; a < end; a++)
            for (size_t k = 0; k < corners; k++)
                lattice->corner_weight[a * corners + k] *= scaling->out[a];
}

void dcrf_lattice_scale(struct dcrf_lattice *lattice, dcrf_pool *pool, const float *in,
                        const float *out) {
    struct scaling scaling = {lattice, in, out};
    lattice->runs.is_symmetric = lattice->runs.is_symmetric && in == out;
    dcrf_parallel_for(pool, lattice->base.variables, VARIABLE_GRAIN, scale_chunk, &scaling);
}
