/* Building the plan of a lattice.
 *
 * 1. Embed the variables, and number their simplices and vertices (lattice_simplices.c).
 * 2. Order the vertices (lattice_code.c).
 * 3. Make runs of the variables (lattice_bands.c).
 * 4. Find the neighbours of each vertex along each axis.
 *
 * Each step releases what is no longer needed before the next one allocates, so building takes
 * little more memory than the plan itself. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Variables embedded together, if each variable is a run: the more, the fewer simplices are found
 * twice, but every one of 16 threads should have some. */
#define LEAST_CHUNK 2048
#define MOST_CHUNK 8192
#define CHUNKS 16
/* About so many variables in a band, by default. */
#define BAND_VARIABLES 1024
/* Vertex rows larger than this are assumed not to fit in the L3 cache along with other data. */
#define LARGE_BYTES ((size_t)12 << 20)
#define USUAL_ROW 24
/* The neighbours of fewer vertices are found along several axes at a time. */
#define FEW_VERTICES 4096

struct build {
    struct dcrf_lattice *lattice;
    const struct dcrf_features *features;
    dcrf_workspace *workspace;
    struct dcrf_lattice_options options;
    struct dcrf_code code;
    struct dcrf_simplices simplices;
    struct dcrf_vertices vertices;
    struct dcrf_lattice_order order;
};

/* ---- numbering ------------------------------------------------------------------------------ */

static size_t band_of(const struct build *build) {
    return build->options.band_variables
               ? build->options.band_variables
               : dcrf_even_grain(build->features->variables, BAND_VARIABLES);
}

/* For longer runs, chunks become bands. */
static size_t chunk_of(const struct build *build) {
    const size_t n = build->features->variables, share = n / CHUNKS;
    return build->options.runs   ? band_of(build)
           : share < LEAST_CHUNK ? dcrf_even_grain(n, LEAST_CHUNK)
                                 : dcrf_even_grain(n, share < MOST_CHUNK ? share : MOST_CHUNK);
}

static dcrf_status number_vertices(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t d = lattice->dimension;
    struct dcrf_embedding embedding;
    float least[DCRF_MAX_FEATURES], largest[DCRF_MAX_FEATURES];
    struct dcrf_limits limits;
    dcrf_embedding_init(&embedding, d, build->options.is_single);
    dcrf_features_range(build->features, least, largest);
    for (size_t i = 0; build->options.has_origin && i < d; i++) {
        least[i] = least[i] < 0 ? least[i] : 0;
        largest[i] = largest[i] > 0 ? largest[i] : 0;
    }
    dcrf_embedding_range(&embedding, least, largest, &limits);
    dcrf_code_init(&build->code, d, &limits);
    const struct dcrf_simplices_source source = {.features = build->features,
                                                 .embedding = &embedding,
                                                 .code = &build->code,
                                                 .chunk = chunk_of(build),
                                                 .has_origin = build->options.has_origin};
    return dcrf_simplices_new(&build->simplices, &build->vertices, &source, build->workspace,
                              error);
}

/* Is each variable a run? */
static bool has_singles(const struct build *build) {
    const struct dcrf_lattice_options *options = &build->options;
    return !options->runs || (!build->lattice->is_large && options->row_floats > 0 &&
                              options->row_floats <= DCRF_NARROW_LANES);
}

/* Order the vertices and renumber the simplices' corners accordingly. */
static dcrf_status order_vertices(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t row = build->options.row_floats ? build->options.row_floats : USUAL_ROW;
    lattice->vertices = build->vertices.count;
    lattice->is_large = lattice->vertices * row * sizeof(float) > LARGE_BYTES;
    dcrf_pool *pool = dcrf_workspace_pool(build->workspace);
    const dcrf_status status = dcrf_lattice_order_new(&build->order, &build->code, &build->vertices,
                                                      lattice->is_large, pool, error);
    if (status == DCRF_OK)
        dcrf_simplices_renumber(&build->simplices, lattice->corners, build->order.number, pool);
    dcrf_release(build->order.number);
    build->order.number = NULL;
    return status;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static dcrf_status make_runs(struct build *build, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(build->workspace);
    const dcrf_status status =
        has_singles(build)
            ? dcrf_lattice_singles_new(build->lattice, &build->simplices, band_of(build), pool,
                                       error)
            : build->options.runs->make(build->lattice, &build->simplices, pool, error);
    dcrf_simplices_clear(&build->simplices);
    return status;
}

static dcrf_status make_ring(struct build *build, dcrf_error *error) {
    dcrf_lattice_order_clear(&build->order);
    return build->options.runs->make_ring(build->lattice, band_of(build),
                                          dcrf_workspace_pool(build->workspace), error);
}

/* ---- connection ----------------------------------------------------------------------------- */

/* Indices count the parts of all axes. */
static void connect_parts(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct build *build = context;
    const struct dcrf_lattice *lattice = build->lattice;
    const size_t parts = dcrf_lattice_order_parts(&build->order, lattice->vertices);
    for (size_t i = begin; i < end; i++)
        dcrf_lattice_order_connect(&build->order, lattice->vertices, i / parts, i % parts,
                                   lattice->neighbours + i / parts * lattice->vertices * 2);
}

static dcrf_status connect(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    lattice->neighbours = dcrf_allocate(lattice->vertices, lattice->corners * 2 * sizeof(uint32_t));
    if (!lattice->neighbours)
        return dcrf_fail_memory(error, "the plan of a lattice");
    const size_t parts = dcrf_lattice_order_parts(&build->order, lattice->vertices);
    const size_t grain = FEW_VERTICES / lattice->vertices + 1;
    return dcrf_parallel_while(build->workspace, lattice->corners * parts, grain, connect_parts,
                               build)
               ? DCRF_OK
               : dcrf_fail_interrupted(build->workspace, DCRF_BUILDING, error);
}

static void build_clear(struct build *build) {
    dcrf_simplices_clear(&build->simplices);
    dcrf_vertices_clear(&build->vertices);
    dcrf_lattice_order_clear(&build->order);
}

dcrf_status dcrf_lattice_new(dcrf_operator **op, const struct dcrf_features *features,
                             dcrf_workspace *workspace, dcrf_error *error) {
    const struct dcrf_lattice_options none = {0};
    return dcrf_lattice_new_with(op, features, none, workspace, error);
}

dcrf_status dcrf_lattice_new_with(dcrf_operator **out, const struct dcrf_features *features,
                                  struct dcrf_lattice_options options, dcrf_workspace *workspace,
                                  dcrf_error *error) {
    *out = NULL;
    struct dcrf_lattice *lattice = dcrf_allocate_zero(1, sizeof *lattice);
    if (!lattice)
        return dcrf_fail_memory(error, "the plan of a lattice");
    const size_t corners = features->dimension + 1;
    lattice->base.methods = &dcrf_lattice_methods;
    lattice->base.variables = features->variables;
    lattice->dimension = features->dimension;
    lattice->corners = corners;
    struct build build = {
        .lattice = lattice, .features = features, .workspace = workspace, .options = options};
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    dcrf_status status = number_vertices(&build, error);
    if (status == DCRF_OK)
        status = dcrf_go_on(workspace, DCRF_BUILDING, error);
    if (status == DCRF_OK)
        status = order_vertices(&build, error);
    if (status == DCRF_OK)
        status = dcrf_go_on(workspace, DCRF_BUILDING, error);
    if (status == DCRF_OK)
        status = make_runs(&build, error);
    if (status == DCRF_OK)
        status = connect(&build, error);
    if (status == DCRF_OK)
        status = dcrf_lattice_layers_new(lattice, &build.order, pool, error);
    if (status == DCRF_OK && options.runs && lattice->is_large)
        status = make_ring(&build, error);
    build_clear(&build);
    if (status < 0) {
        dcrf_lattice_free(&lattice->base);
        return status;
    }
    lattice->base.vertices = lattice->vertices;
    lattice->base.bytes = sizeof *lattice + lattice->vertices * corners * 2 * sizeof(uint32_t) +
                          (lattice->layers.count + 1) * sizeof *lattice->layers.first +
                          dcrf_lattice_runs_bytes(lattice);
    *out = &lattice->base;
    return DCRF_OK;
}
