/* Building the plan of a lattice.
 *
 * 1. Embed every variable (in parallel) and number the corners of its simplex in the order of the
 * variables, so that vertices near each other in memory serve variables near each other in the
 * image.
 * 2. Invert: for each vertex the variables that touch it. Splatting then gathers, and needs neither
 * atomics nor a fixed number of threads to give one result.
 * 3. Connect: the neighbours of each vertex along each axis.
 * 4. Calibrate. The raw lattice sum is a multiple of the Gaussian sum that depends on the dimension
 * and on how full the lattice is. One scale makes the sum of K~ 1 equal the sum of K 1 over a fixed
 * sample of variables. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <math.h>
#include <string.h>

/* Variables a task takes. */
#define GRAIN 1024
/* Row sums computed exactly for the calibration. */
#define SAMPLES 64

struct build {
    struct dcrf_lattice *lattice;
    const struct dcrf_features *features;
    dcrf_workspace *workspace;
    struct dcrf_embedding embedding;
    struct dcrf_simplex *simplices; /* one a variable */
    unsigned char *misfit;          /* one a chunk of GRAIN variables: a coordinate overflowed */
    struct dcrf_table table;
};

static void embed_chunk(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct build *build = context;
    const size_t corners = build->lattice->corners;
    float feature[DCRF_MAX_FEATURES];
    for (size_t a = begin; a < end; a++) {
        dcrf_features_row(build->features, a, feature);
        if (!dcrf_embed(&build->embedding, feature, &build->simplices[a],
                        build->lattice->corner_weight + a * corners))
            build->misfit[begin / GRAIN] = 1;
    }
}

static dcrf_status embed(struct build *build, dcrf_error *error) {
    const size_t n = build->lattice->base.variables;
    const size_t chunks = (n + GRAIN - 1) / GRAIN;
    build->simplices = dcrf_allocate_zero(n, sizeof *build->simplices);
    build->misfit = dcrf_allocate_zero(chunks, 1);
    if (!build->simplices || !build->misfit)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_embedding_init(&build->embedding, build->lattice->dimension);
    dcrf_parallel_for(dcrf_workspace_pool(build->workspace), n, GRAIN, embed_chunk, build);
    for (size_t i = 0; i < chunks; i++)
        if (build->misfit[i])
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "the features of a kernel span too many sigmas for the lattice (near "
                             "variable %zu): use a larger sigma",
                             i * GRAIN);
    return DCRF_OK;
}

/* Neighbouring variables often share a simplex; comparing is cheaper than looking six keys up. */
static bool same_simplex(const struct dcrf_simplex *s, const struct dcrf_simplex *t,
                         size_t corners) {
    return memcmp(s->origin, t->origin, corners * sizeof *s->origin) == 0 &&
           memcmp(s->rank, t->rank, corners * sizeof *s->rank) == 0;
}

static dcrf_status number_vertices(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    dcrf_status status = dcrf_table_new(&build->table, lattice->dimension, n / 4 + 64, error);
    if (status < 0)
        return status;
    for (size_t a = 0; a < n; a++) {
        uint32_t *vertex = lattice->corner_vertex + a * corners;
        if (a > 0 && same_simplex(&build->simplices[a], &build->simplices[a - 1], corners)) {
            memcpy(vertex, vertex - corners, corners * sizeof *vertex);
            continue;
        }
        for (size_t k = 0; k < corners; k++) {
            int32_t key[DCRF_MAX_FEATURES];
            dcrf_simplex_key(&build->simplices[a], lattice->dimension, k, key);
            if ((status = dcrf_table_enter(&build->table, key, &vertex[k], error)) < 0)
                return status;
        }
    }
    lattice->vertices = build->table.count;
    return DCRF_OK;
}

static dcrf_status invert(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    lattice->first = dcrf_allocate_zero(lattice->vertices + 2, sizeof *lattice->first);
    lattice->entry_variable = dcrf_allocate(n, corners * sizeof *lattice->entry_variable);
    lattice->entry_weight = dcrf_allocate(n, corners * sizeof *lattice->entry_weight);
    if (!lattice->first || !lattice->entry_variable || !lattice->entry_weight)
        return dcrf_fail_memory(error, "the plan of a lattice");
    /* Counts two places on, then sums: first[v + 1] is where vertex v begins, and becomes where it
     * ends. */
    for (size_t e = 0; e < n * corners; e++)
        lattice->first[lattice->corner_vertex[e] + 2]++;
    for (size_t v = 2; v < lattice->vertices + 2; v++)
        lattice->first[v] += lattice->first[v - 1];
    for (size_t a = 0; a < n; a++)
        for (size_t k = 0; k < corners; k++) {
            const size_t e = lattice->first[lattice->corner_vertex[a * corners + k] + 1]++;
            lattice->entry_variable[e] = (uint32_t)a;
            lattice->entry_weight[e] = lattice->corner_weight[a * corners + k];
        }
    return DCRF_OK;
}

/* One step ahead along axis i adds 1 to every coordinate but the i-th, which loses d; the last
 * coordinate is not stored, since all sum to zero. */
static void connect_axis(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct build *build = context;
    const struct dcrf_lattice *lattice = build->lattice;
    const size_t d = lattice->dimension;
    for (size_t axis = begin; axis < end; axis++) {
        uint32_t *neighbours = lattice->neighbours + axis * lattice->vertices * 2;
        for (size_t i = 0; i < 2 * lattice->vertices; i++)
            neighbours[i] = (uint32_t)lattice->vertices;
        for (size_t v = 0; v < lattice->vertices; v++) {
            int32_t key[DCRF_MAX_FEATURES];
            for (size_t i = 0; i < d; i++)
                key[i] = build->table.keys[v * d + i] + 1;
            if (axis < d)
                key[axis] -= (int32_t)(d + 1);
            const uint32_t ahead = dcrf_table_find(&build->table, key);
            neighbours[2 * v + 1] = ahead;
            if (ahead < lattice->vertices)
                neighbours[2 * ahead] = (uint32_t)v;
        }
    }
}

static dcrf_status connect(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    lattice->neighbours = dcrf_allocate(lattice->vertices, lattice->corners * 2 * sizeof(uint32_t));
    if (!lattice->neighbours)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_parallel_for(dcrf_workspace_pool(build->workspace), lattice->corners, 1, connect_axis,
                      build);
    return DCRF_OK;
}

/* ---- calibration
 * ---------------------------------------------------------------------------------- */

struct sample {
    const struct dcrf_dsp *dsp;
    const struct dcrf_features *features;
    const float *planes;
    size_t plane;
    size_t variable[SAMPLES];
    double row_sum[SAMPLES];
};

static void sum_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct sample *sample = context;
    float query[DCRF_MAX_FEATURES];
    for (size_t i = begin; i < end; i++) {
        dcrf_features_row(sample->features, sample->variable[i], query);
        sample->row_sum[i] = sample->dsp->gaussian_sum(sample->planes, sample->plane, sample->plane,
                                                       sample->features->dimension, query);
    }
}

/* Multiply all weights, so that the operator is multiplied by factor^2. */
static void scale_weights(struct dcrf_lattice *lattice, float factor) {
    for (size_t e = 0; e < lattice->base.variables * lattice->corners; e++) {
        lattice->corner_weight[e] *= factor;
        lattice->entry_weight[e] *= factor;
    }
}

static dcrf_status calibrate(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const struct dcrf_features *features = build->features;
    const size_t n = lattice->base.variables, d = lattice->dimension;
    const size_t samples = n < SAMPLES ? n : SAMPLES;
    struct sample sample = {.dsp = dcrf_dsp(), .features = features, .plane = (n + 15) / 16 * 16};
    float *planes = dcrf_allocate(sample.plane, d * sizeof *planes);
    float *lattice_sums = dcrf_allocate(n, sizeof *lattice_sums);
    dcrf_status status = DCRF_OK;
    if (!planes || !lattice_sums)
        status = dcrf_fail_memory(error, "the calibration of a lattice");
    else
        status = dcrf_operator_row_sums(&lattice->base, build->workspace, lattice_sums, error);
    if (status == DCRF_OK) {
        float row[DCRF_MAX_FEATURES];
        for (size_t a = 0; a < sample.plane; a++) {
            if (a < n)
                dcrf_features_row(features, a, row);
            for (size_t i = 0; i < d; i++)
                planes[i * sample.plane + a] = a < n ? row[i] : INFINITY;
        }
        sample.planes = planes;
        /* Multiples of the golden ratio spread evenly over the variables, in step with no image
         * width. */
        for (size_t i = 0; i < samples; i++)
            sample.variable[i] = (size_t)(fmod((double)i * 0.6180339887498949, 1.0) * (double)n);
        dcrf_parallel_for(dcrf_workspace_pool(build->workspace), samples, 1, sum_rows, &sample);
        double exact = 0, raw = 0;
        for (size_t i = 0; i < samples; i++) {
            exact += sample.row_sum[i];
            raw += (double)lattice_sums[sample.variable[i]];
        }
        scale_weights(lattice, (float)sqrt(exact / raw));
    }
    dcrf_release(planes);
    dcrf_release(lattice_sums);
    return status;
}

dcrf_status dcrf_lattice_new(dcrf_operator **out, const struct dcrf_features *features,
                             dcrf_workspace *workspace, dcrf_error *error) {
    *out = NULL;
    struct dcrf_lattice *lattice = dcrf_allocate_zero(1, sizeof *lattice);
    if (!lattice)
        return dcrf_fail_memory(error, "the plan of a lattice");
    const size_t n = features->variables, corners = features->dimension + 1;
    lattice->base.methods = &dcrf_lattice_methods;
    lattice->base.variables = n;
    lattice->dimension = features->dimension;
    lattice->corners = corners;
    lattice->corner_vertex = dcrf_allocate(n, corners * sizeof *lattice->corner_vertex);
    lattice->corner_weight = dcrf_allocate(n, corners * sizeof *lattice->corner_weight);
    struct build build = {.lattice = lattice, .features = features, .workspace = workspace};
    dcrf_status status = DCRF_OK;
    if (!lattice->corner_vertex || !lattice->corner_weight)
        status = dcrf_fail_memory(error, "the plan of a lattice");
    if (status == DCRF_OK)
        status = embed(&build, error);
    if (status == DCRF_OK)
        status = number_vertices(&build, error);
    dcrf_release(build.simplices);
    dcrf_release(build.misfit);
    if (status == DCRF_OK)
        status = invert(&build, error);
    if (status == DCRF_OK)
        status = connect(&build, error);
    dcrf_table_clear(&build.table);
    if (status == DCRF_OK)
        status = calibrate(&build, error);
    if (status < 0) {
        dcrf_lattice_free(&lattice->base);
        return status;
    }
    lattice->base.vertices = lattice->vertices;
    lattice->base.bytes = sizeof *lattice + n * corners * 16 +
                          (lattice->vertices + 2) * sizeof *lattice->first +
                          lattice->vertices * corners * 2 * sizeof(uint32_t);
    *out = &lattice->base;
    return DCRF_OK;
}
