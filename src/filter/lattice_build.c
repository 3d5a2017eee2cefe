/* Building the plan of a lattice.
 *
 * 1. Number the vertices. Chunks of variables are embedded in parallel, and each numbers the
 * corners it meets for itself; the chunks are then joined in their order, so that a vertex has the
 * number of its first appearance: vertices near each other in memory serve variables near each
 * other in the image, and nothing depends on the number of threads.
 * 2. Invert: for each vertex the variables that touch it. Splatting then gathers, and needs neither
 * atomics nor a fixed number of threads to give one result.
 * 3. Connect: the neighbours of each vertex along each axis.
 * 4. Calibrate, unless the kernel is normalized, which undoes any scale. The raw lattice sum is a
 * multiple of the Gaussian sum that depends on the dimension and on how full the lattice is. One
 * scale makes the sum of K~ 1 equal the sum of K 1 over a fixed sample of variables. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <math.h>
#include <string.h>

/* Variables of a chunk. */
#define GRAIN 4096
/* Rows of vertices that take more do not fit in a third-level cache next to what else is there. */
#define LARGE_BYTES ((size_t)12 << 20)
#define USUAL_ROW 24

struct chunk {
    dcrf_status status;
    size_t misfit;           /* on DCRF_ERROR_SIZE: the variable that does not fit */
    struct dcrf_table table; /* the corners of this chunk */
    uint32_t *global;        /* their numbers among all */
    size_t *cursor;          /* how many entries each has; later where its next entry goes */
};

struct build {
    struct dcrf_lattice *lattice;
    const struct dcrf_features *features;
    dcrf_workspace *workspace;
    struct dcrf_refinement refinement;
    struct dcrf_embedding embedding;
    size_t chunk_count;
    struct chunk *chunks;
    struct dcrf_table table;
    struct dcrf_lattice_order order;
};

/* ---- numbering ------------------------------------------------------------------------------ */

/* Neighbouring variables often share a simplex; comparing is cheaper than looking its corners up.
 */
static bool same_simplex(const struct dcrf_simplex *s, const struct dcrf_simplex *t,
                         size_t corners) {
    for (size_t i = 0; i < corners; i++)
        if (s->origin[i] != t->origin[i] || s->rank[i] != t->rank[i])
            return false;
    return true;
}

static dcrf_status embed_variables(struct build *build, struct chunk *chunk, size_t begin,
                                   size_t end) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t corners = lattice->corners;
    struct dcrf_simplex simplex[2]; /* of this variable and of the one before */
    dcrf_status status = dcrf_table_new(&chunk->table, lattice->dimension, GRAIN, NULL);
    for (size_t a = begin; a < end && status == DCRF_OK; a++) {
        uint32_t *vertex = lattice->corner_vertex + a * corners;
        struct dcrf_simplex *here = &simplex[a % 2];
        float feature[DCRF_MAX_FEATURES];
        dcrf_features_row(build->features, a, feature);
        if (!dcrf_embed(&build->embedding, feature, here, lattice->corner_weight + a * corners)) {
            chunk->misfit = a;
            return DCRF_ERROR_SIZE;
        }
        if (a > begin && same_simplex(here, &simplex[(a + 1) % 2], corners)) {
            memcpy(vertex, vertex - corners, corners * sizeof *vertex);
            continue;
        }
        for (size_t k = 0; k < corners && status == DCRF_OK; k++) {
            int32_t key[DCRF_MAX_FEATURES];
            dcrf_simplex_key(here, lattice->dimension, k, key);
            status = dcrf_table_enter(&chunk->table, key, &vertex[k], NULL);
        }
    }
    return status;
}

static void number_chunk(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct build *build = context;
    struct chunk *chunk = &build->chunks[begin / GRAIN];
    chunk->status = embed_variables(build, chunk, begin, end);
    /* The next chunk takes over what finding keys took. */
    dcrf_release(chunk->table.slot);
    chunk->table.slot = NULL;
    if (chunk->status < 0)
        return;
    chunk->global = dcrf_allocate(chunk->table.count, sizeof *chunk->global);
    chunk->cursor = dcrf_allocate_zero(chunk->table.count, sizeof *chunk->cursor);
    if (!chunk->global || !chunk->cursor) {
        chunk->status = DCRF_ERROR_MEMORY;
        return;
    }
    const size_t corners = build->lattice->corners;
    for (size_t e = begin * corners; e < end * corners; e++)
        chunk->cursor[build->lattice->corner_vertex[e]]++;
}

/* Give the corners of all chunks their numbers. */
static dcrf_status join_chunks(struct build *build, dcrf_error *error) {
    /* Chunks share vertices with their neighbours: most often half of the sum is enough. */
    size_t sum = 64;
    for (size_t c = 0; c < build->chunk_count; c++)
        sum += build->chunks[c].table.count;
    dcrf_status status = dcrf_table_new(&build->table, build->lattice->dimension, sum / 2, error);
    for (size_t c = 0; c < build->chunk_count && status == DCRF_OK; c++) {
        const struct chunk *chunk = &build->chunks[c];
        if (chunk->status == DCRF_ERROR_SIZE)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "the features of a kernel span too many sigmas for the lattice (at "
                             "variable %zu): use a larger sigma",
                             chunk->misfit);
        if (chunk->status < 0)
            return dcrf_fail_memory(error, "the plan of a lattice");
        status = dcrf_table_enter_all(&build->table, chunk->table.keys, chunk->table.count,
                                      chunk->global, error);
    }
    return status;
}

/* Enter the corners of the simplex that holds the origin. */
static dcrf_status add_origin(struct build *build, dcrf_error *error) {
    const size_t d = build->lattice->dimension;
    const float origin[DCRF_MAX_FEATURES] = {0};
    float weight[DCRF_MAX_CORNERS];
    struct dcrf_simplex simplex;
    dcrf_embed(&build->embedding, origin, &simplex, weight);
    for (size_t k = 0; k <= d; k++) {
        int32_t key[DCRF_MAX_FEATURES];
        uint32_t number;
        dcrf_simplex_key(&simplex, d, k, key);
        const dcrf_status status = dcrf_table_enter(&build->table, key, &number, error);
        if (status < 0)
            return status;
    }
    return DCRF_OK;
}

static dcrf_status number_vertices(struct build *build, dcrf_error *error) {
    const size_t n = build->lattice->base.variables;
    build->chunk_count = (n + GRAIN - 1) / GRAIN;
    build->chunks = dcrf_allocate_zero(build->chunk_count, sizeof *build->chunks);
    if (!build->chunks)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_embedding_init(&build->embedding, build->lattice->dimension, build->lattice->rounds,
                        build->refinement.is_single);
    dcrf_parallel_for(dcrf_workspace_pool(build->workspace), n, GRAIN, number_chunk, build);
    dcrf_status status = join_chunks(build, error);
    if (status == DCRF_OK && build->refinement.has_origin)
        status = add_origin(build, error);
    build->lattice->vertices = build->table.count;
    return status;
}

/* Take over the order of the keys, where there is one. */
static dcrf_status order_vertices(struct build *build, dcrf_error *error) {
    const size_t row = build->refinement.row_floats ? build->refinement.row_floats : USUAL_ROW;
    build->lattice->is_large = build->lattice->vertices * row * sizeof(float) > LARGE_BYTES;
    const dcrf_status status =
        dcrf_lattice_order_new(&build->order, &build->table, build->lattice->is_large, error);
    if (status < 0 || !build->order.number)
        return status;
    for (size_t c = 0; c < build->chunk_count; c++) {
        struct chunk *chunk = &build->chunks[c];
        for (size_t i = 0; i < chunk->table.count; i++)
            chunk->global[i] = build->order.number[chunk->global[i]];
    }
    return DCRF_OK;
}

/* ---- inversion ------------------------------------------------------------------------------ */

/* Take over the joint numbers. */
static void rename_corners(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct build *build = context;
    const struct chunk *chunk = &build->chunks[begin / GRAIN];
    uint32_t *vertex = build->lattice->corner_vertex;
    for (size_t e = begin * build->lattice->corners; e < end * build->lattice->corners; e++)
        vertex[e] = chunk->global[vertex[e]];
}

/* The same, and put the entries of a chunk where its cursors say. */
static void invert_chunk(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct build *build = context;
    struct dcrf_lattice *lattice = build->lattice;
    struct chunk *chunk = &build->chunks[begin / GRAIN];
    for (size_t a = begin; a < end; a++)
        for (size_t k = 0; k < lattice->corners; k++) {
            uint32_t *vertex = &lattice->corner_vertex[a * lattice->corners + k];
            const size_t e = chunk->cursor[*vertex]++;
            lattice->entry_variable[e] = (uint32_t)a;
            lattice->entry_weight[e] = lattice->corner_weight[a * lattice->corners + k];
            *vertex = chunk->global[*vertex];
        }
}

static dcrf_status invert(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    if (build->refinement.has_runs) {
        dcrf_parallel_for(dcrf_workspace_pool(build->workspace), n, GRAIN, rename_corners, build);
        return dcrf_lattice_runs_new(lattice, error);
    }
    lattice->first = dcrf_allocate_zero(lattice->vertices + 2, sizeof *lattice->first);
    lattice->entry_variable = dcrf_allocate(n, corners * sizeof *lattice->entry_variable);
    lattice->entry_weight = dcrf_allocate(n, corners * sizeof *lattice->entry_weight);
    if (!lattice->first || !lattice->entry_variable || !lattice->entry_weight)
        return dcrf_fail_memory(error, "the plan of a lattice");
    /* Counts two places on, then sums: first[v + 1] is where vertex v begins; handing out the
     * entries makes it where v ends. */
    size_t *next = lattice->first + 1;
    for (size_t c = 0; c < build->chunk_count; c++) {
        const struct chunk *chunk = &build->chunks[c];
        for (size_t i = 0; i < chunk->table.count; i++)
            next[chunk->global[i] + 1] += chunk->cursor[i];
    }
    for (size_t v = 1; v <= lattice->vertices; v++)
        next[v] += next[v - 1];
    for (size_t c = 0; c < build->chunk_count; c++) {
        const struct chunk *chunk = &build->chunks[c];
        for (size_t i = 0; i < chunk->table.count; i++) {
            const size_t count = chunk->cursor[i];
            chunk->cursor[i] = next[chunk->global[i]];
            next[chunk->global[i]] += count;
        }
    }
    dcrf_parallel_for(dcrf_workspace_pool(build->workspace), n, GRAIN, invert_chunk, build);
    return DCRF_OK;
}

/* ---- connection ----------------------------------------------------------------------------- */

/* The key one step ahead (sign 1) or back (-1) along an axis: 1 is added to every coordinate but
 * that of the axis, which loses d; the last coordinate is not stored, since all sum to zero. */
static void step_key(const int32_t *key, size_t dimension, size_t axis, int32_t sign,
                     int32_t *next) {
    for (size_t i = 0; i < dimension; i++)
        next[i] = key[i] + sign;
    if (axis < dimension)
        next[axis] -= sign * (int32_t)(dimension + 1);
}

/* Enter all that is one step away from what is there. */
static dcrf_status add_ring(struct build *build, dcrf_error *error) {
    const size_t d = build->lattice->dimension;
    const size_t count = build->table.count;
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < 2 * build->lattice->corners; i++) {
            int32_t key[DCRF_MAX_FEATURES];
            uint32_t number;
            step_key(build->table.keys + v * d, d, i / 2, i % 2 ? 1 : -1, key);
            const dcrf_status status = dcrf_table_enter(&build->table, key, &number, error);
            if (status < 0)
                return status;
        }
    build->lattice->vertices = build->table.count;
    return DCRF_OK;
}

static void connect_axis(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct build *build = context;
    const struct dcrf_lattice *lattice = build->lattice;
    const size_t d = lattice->dimension;
    for (size_t axis = begin; axis < end; axis++) {
        uint32_t *neighbours = lattice->neighbours + axis * lattice->vertices * 2;
        for (size_t i = 0; i < 2 * lattice->vertices; i++)
            neighbours[i] = (uint32_t)lattice->vertices;
        if (build->order.number) {
            dcrf_lattice_order_connect(&build->order, lattice->vertices, axis, neighbours);
            continue;
        }
        for (size_t v = 0; v < lattice->vertices; v++) {
            int32_t key[DCRF_MAX_FEATURES];
            step_key(build->table.keys + v * d, d, axis, 1, key);
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

static void build_clear(struct build *build) {
    for (size_t c = 0; build->chunks && c < build->chunk_count; c++) {
        dcrf_table_clear(&build->chunks[c].table);
        dcrf_release(build->chunks[c].global);
        dcrf_release(build->chunks[c].cursor);
    }
    dcrf_release(build->chunks);
    dcrf_table_clear(&build->table);
    dcrf_lattice_order_clear(&build->order);
}

dcrf_status dcrf_lattice_new(dcrf_operator **op, const struct dcrf_features *features,
                             dcrf_workspace *workspace, dcrf_error *error) {
    const struct dcrf_refinement none = {.rings = 0, .rounds = 1};
    return dcrf_lattice_new_refined(op, features, none, workspace, error);
}

dcrf_status dcrf_lattice_new_refined(dcrf_operator **out, const struct dcrf_features *features,
                                     struct dcrf_refinement refinement, dcrf_workspace *workspace,
                                     dcrf_error *error) {
    *out = NULL;
    struct dcrf_lattice *lattice = dcrf_allocate_zero(1, sizeof *lattice);
    if (!lattice)
        return dcrf_fail_memory(error, "the plan of a lattice");
    const size_t n = features->variables, corners = features->dimension + 1;
    lattice->base.methods = &dcrf_lattice_methods;
    lattice->base.variables = n;
    lattice->dimension = features->dimension;
    lattice->corners = corners;
    lattice->rounds = refinement.rounds;
    lattice->corner_vertex = dcrf_allocate(n, corners * sizeof *lattice->corner_vertex);
    lattice->corner_weight = dcrf_allocate(n, corners * sizeof *lattice->corner_weight);
    struct build build = {
        .lattice = lattice, .features = features, .workspace = workspace, .refinement = refinement};
    dcrf_status status = DCRF_OK;
    if (!lattice->corner_vertex || !lattice->corner_weight)
        status = dcrf_fail_memory(error, "the plan of a lattice");
    if (status == DCRF_OK)
        status = number_vertices(&build, error);
    for (size_t ring = 0; ring < refinement.rings && status == DCRF_OK; ring++)
        status = add_ring(&build, error);
    if (status == DCRF_OK)
        status = order_vertices(&build, error);
    if (status == DCRF_OK)
        status = invert(&build, error);
    if (status == DCRF_OK)
        status = connect(&build, error);
    if (status == DCRF_OK)
        status =
            dcrf_lattice_layers_new(lattice, &build.order, dcrf_workspace_pool(workspace), error);
    if (status == DCRF_OK && refinement.has_runs)
        status = dcrf_lattice_ring_new(lattice, dcrf_workspace_pool(workspace), error);
    build_clear(&build);
    if (status < 0) {
        dcrf_lattice_free(&lattice->base);
        return status;
    }
    const size_t entry_bytes = sizeof(uint32_t) + sizeof(float);
    lattice->base.vertices = lattice->vertices;
    lattice->base.bytes = sizeof *lattice + lattice->vertices * corners * 2 * sizeof(uint32_t) +
                          (lattice->layers.count + 1) * sizeof *lattice->layers.first;
    if (lattice->corner_vertex)
        lattice->base.bytes += n * corners * entry_bytes;
    lattice->base.bytes +=
        refinement.has_runs
            ? dcrf_lattice_runs_bytes(lattice)
            : n * corners * entry_bytes + (lattice->vertices + 2) * sizeof *lattice->first;
    *out = &lattice->base;
    return DCRF_OK;
}

/* ---- calibration ---------------------------------------------------------------------------- */

struct sample {
    const struct dcrf_dsp *dsp;
    const struct dcrf_features *features;
    float *planes; /* the features, one plane a dimension */
    size_t plane;
    size_t count;
    double *row_sum;
};

/* Multiples of the golden ratio spread evenly over the variables, in step with no image width. */
static size_t sampled_variable(const struct sample *sample, size_t i) {
    const size_t n = sample->features->variables;
    if (sample->count == n)
        return i;
    return (size_t)(fmod((double)i * 0.6180339887498949, 1.0) * (double)n);
}

static void fill_planes(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sample *sample = context;
    const size_t n = sample->features->variables;
    float row[DCRF_MAX_FEATURES];
    for (size_t a = begin; a < end; a++) {
        if (a < n)
            dcrf_features_row(sample->features, a, row);
        for (size_t i = 0; i < sample->features->dimension; i++)
            sample->planes[i * sample->plane + a] = a < n ? row[i] : INFINITY;
    }
}

static void sum_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct sample *sample = context;
    float query[DCRF_MAX_FEATURES];
    for (size_t i = begin; i < end; i++) {
        dcrf_features_row(sample->features, sampled_variable(sample, i), query);
        sample->row_sum[i] = sample->dsp->gaussian_sum(sample->planes, sample->plane, sample->plane,
                                                       sample->features->dimension, query);
    }
}

dcrf_status dcrf_lattice_calibrate(dcrf_operator *base, const struct dcrf_features *features,
                                   dcrf_workspace *workspace, dcrf_error *error) {
    struct dcrf_lattice *lattice = (struct dcrf_lattice *)base;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    const size_t n = base->variables;
    struct sample sample = {.dsp = dcrf_dsp(), .features = features, .plane = (n + 15) / 16 * 16};
    sample.count = DCRF_CALIBRATION_TERMS / n > DCRF_CALIBRATION_SAMPLES
                       ? DCRF_CALIBRATION_TERMS / n
                       : DCRF_CALIBRATION_SAMPLES;
    sample.count = sample.count < n ? sample.count : n;
    sample.row_sum = dcrf_allocate(sample.count, sizeof *sample.row_sum);
    sample.planes = dcrf_allocate(sample.plane, features->dimension * sizeof *sample.planes);
    float *lattice_sums = dcrf_allocate(n, sizeof *lattice_sums);
    dcrf_status status = DCRF_OK;
    if (!sample.row_sum || !sample.planes || !lattice_sums)
        status = dcrf_fail_memory(error, "the calibration of a lattice");
    else
        status = dcrf_operator_row_sums(base, workspace, lattice_sums, error);
    if (status == DCRF_OK) {
        dcrf_parallel_for(pool, sample.plane, GRAIN, fill_planes, &sample);
        dcrf_parallel_for(pool, sample.count, 1, sum_rows, &sample);
        double exact = 0, raw = 0;
        for (size_t i = 0; i < sample.count; i++) {
            exact += sample.row_sum[i];
            raw += (double)lattice_sums[sampled_variable(&sample, i)];
        }
        const float factor = (float)sqrt(exact / raw);
        for (size_t e = 0; e < n * lattice->corners; e++) {
            lattice->corner_weight[e] *= factor;
            lattice->entry_weight[e] *= factor;
        }
    }
    dcrf_release(sample.row_sum);
    dcrf_release(sample.planes);
    dcrf_release(lattice_sums);
    return status;
}
