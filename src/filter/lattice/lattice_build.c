/* Building the plan of a lattice.
 *
 * 1. Embed the variables and number their simplices and the vertices of those
 * (lattice_simplices.c).
 * 2. Put the vertices in order (lattice_code.c).
 * 3. Invert: for each vertex the variables that touch it. Splatting then gathers, and needs neither
 * atomics nor a fixed number of threads to give one result. Or make runs, which serve the same end
 * (lattice_runs.c).
 * 4. Connect: the neighbours of each vertex along each axis.
 *
 * What a step no longer needs is given back before the next one takes more: building takes little
 * more memory than the plan. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Variables that are embedded together, unless there are bands of them. */
#define CHUNK_VARIABLES 8192
/* Variables of a band, unless the caller says so. */
#define BAND_VARIABLES 1024
/* Rows of vertices that take more do not fit in a third-level cache next to what else is there. */
#define LARGE_BYTES ((size_t)12 << 20)
#define USUAL_ROW 24
/* Tasks that invert, at most. */
#define MOST_TASKS 64

struct build {
    struct dcrf_lattice *lattice;
    const struct dcrf_features *features;
    dcrf_workspace *workspace;
    struct dcrf_refinement refinement;
    struct dcrf_code code;
    struct dcrf_simplices simplices;
    struct dcrf_vertices vertices;
    struct dcrf_lattice_order order;
};

/* ---- numbering ------------------------------------------------------------------------------ */

/* Bands of runs are chunks. */
static size_t chunk_of(const struct dcrf_refinement *refinement) {
    if (!refinement->runs)
        return CHUNK_VARIABLES;
    return refinement->band_variables ? refinement->band_variables : BAND_VARIABLES;
}

static dcrf_status number_vertices(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t d = lattice->dimension;
    struct dcrf_embedding embedding;
    float least[DCRF_MAX_FEATURES], largest[DCRF_MAX_FEATURES];
    struct dcrf_limits limits;
    dcrf_embedding_init(&embedding, d, lattice->rounds, build->refinement.is_single);
    dcrf_features_range(build->features, least, largest);
    for (size_t i = 0; build->refinement.has_origin && i < d; i++) {
        least[i] = least[i] < 0 ? least[i] : 0;
        largest[i] = largest[i] > 0 ? largest[i] : 0;
    }
    dcrf_embedding_range(&embedding, least, largest, &limits);
    dcrf_code_init(&build->code, d, &limits, build->refinement.rings);
    const struct dcrf_simplices_source source = {.features = build->features,
                                                 .embedding = &embedding,
                                                 .code = &build->code,
                                                 .chunk = chunk_of(&build->refinement),
                                                 .rings = build->refinement.rings,
                                                 .has_origin = build->refinement.has_origin};
    return dcrf_simplices_new(&build->simplices, &build->vertices, &source, build->workspace,
                              error);
}

/* Is each variable a run of its own? */
static bool has_short_runs(const struct build *build) {
    const struct dcrf_refinement *refinement = &build->refinement;
    return !build->lattice->is_large && refinement->row_floats > 0 &&
           refinement->row_floats <= DCRF_NARROW_LANES;
}

/* Put the vertices in order, and forget how they were found. */
static dcrf_status order_vertices(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t row = build->refinement.row_floats ? build->refinement.row_floats : USUAL_ROW;
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

/* ---- inversion ------------------------------------------------------------------------------ */

static void copy_corners(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct build *build = context;
    const size_t corners = build->lattice->corners;
    const struct dcrf_simplices *simplices = &build->simplices;
    const uint32_t *corner =
        simplices->corner + simplices->first[begin / simplices->chunk] * corners;
    for (size_t a = begin; a < end; a++)
        dcrf_copy_corners(build->lattice->corner_vertex + a * corners,
                          corner + simplices->of[a] * corners, corners);
}

/* Each task goes through all corners, and has vertices of its own: what it takes to look at a
 * corner is little next to handing out its entry, and nobody waits.
 *
 * Counts are two places on, then summed up: first[v + 1] is where vertex v begins; handing out the
 * entries makes it where v ends. */
struct inversion {
    struct dcrf_lattice *lattice;
    size_t tasks;
    size_t begin[MOST_TASKS + 1]; /* the vertices of each, when they are filled */
};

static void count_entries(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct inversion *inversion = context;
    const struct dcrf_lattice *lattice = inversion->lattice;
    const size_t low = lattice->vertices * begin / inversion->tasks;
    const size_t count = lattice->vertices * end / inversion->tasks - low;
    size_t *own = lattice->first + 2 + low;
    for (size_t e = 0; e < lattice->base.variables * lattice->corners; e++)
        if (lattice->corner_vertex[e] - low < count)
            own[lattice->corner_vertex[e] - low]++;
}

/* The first vertex whose entries begin at a share of all, or behind it. */
static size_t share_begin(const struct inversion *inversion, size_t task) {
    const struct dcrf_lattice *lattice = inversion->lattice;
    const size_t entries = lattice->base.variables * lattice->corners;
    size_t low = 0, high = lattice->vertices;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (lattice->first[middle + 1] < entries / inversion->tasks * task)
            low = middle + 1;
        else
            high = middle;
    }
    return task == inversion->tasks ? lattice->vertices : low;
}

static void fill_entries(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct inversion *inversion = context;
    const struct dcrf_lattice *lattice = inversion->lattice;
    const size_t corners = lattice->corners, low = inversion->begin[begin];
    const size_t count = inversion->begin[end] - low;
    const uint32_t *vertex = lattice->corner_vertex;
    const float *weight = lattice->corner_weight;
    size_t *next = lattice->first + 1;
    for (size_t a = 0; a < lattice->base.variables; a++)
        for (size_t k = 0; k < corners; k++, vertex++, weight++) {
            if (*vertex - low >= count)
                continue;
            const size_t e = next[*vertex]++;
            lattice->entry_variable[e] = (uint32_t)a;
            lattice->entry_weight[e] = *weight;
        }
}

/* The corners by variable, and the entries by vertex. */
static dcrf_status invert(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    lattice->corner_vertex = dcrf_allocate(n, corners * sizeof *lattice->corner_vertex);
    if (!lattice->corner_vertex)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_parallel_for(dcrf_workspace_pool(build->workspace), n, build->simplices.chunk,
                      copy_corners, build);
    lattice->corner_weight = build->simplices.weight;
    build->simplices.weight = NULL;
    dcrf_simplices_clear(&build->simplices);
    lattice->first = dcrf_allocate_zero(lattice->vertices + 2, sizeof *lattice->first);
    lattice->entry_variable = dcrf_allocate(n, corners * sizeof *lattice->entry_variable);
    lattice->entry_weight = dcrf_allocate(n, corners * sizeof *lattice->entry_weight);
    if (!lattice->first || !lattice->entry_variable || !lattice->entry_weight)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_pool *pool = dcrf_workspace_pool(build->workspace);
    const size_t threads = dcrf_pool_threads(pool);
    struct inversion inversion = {lattice, threads < MOST_TASKS ? threads : MOST_TASKS, {0}};
    dcrf_parallel_for(pool, inversion.tasks, 1, count_entries, &inversion);
    for (size_t v = 1; v <= lattice->vertices; v++)
        lattice->first[v + 1] += lattice->first[v];
    for (size_t task = 1; task <= inversion.tasks; task++)
        inversion.begin[task] = share_begin(&inversion, task);
    return dcrf_parallel_while(build->workspace, inversion.tasks, 1, fill_entries, &inversion)
               ? DCRF_OK
               : dcrf_fail_interrupted(build->workspace, DCRF_BUILDING, error);
}

static dcrf_status make_runs(struct build *build, dcrf_error *error) {
    const dcrf_status status =
        build->refinement.runs->make(build->lattice, &build->simplices, has_short_runs(build),
                                     dcrf_workspace_pool(build->workspace), error);
    dcrf_simplices_clear(&build->simplices);
    return status;
}

static dcrf_status make_ring(struct build *build, dcrf_error *error) {
    dcrf_lattice_order_clear(&build->order);
    return build->refinement.runs->make_ring(build->lattice, chunk_of(&build->refinement),
                                             dcrf_workspace_pool(build->workspace), error);
}

/* ---- connection ----------------------------------------------------------------------------- */

static void connect_axis(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct build *build = context;
    const struct dcrf_lattice *lattice = build->lattice;
    for (size_t axis = begin; axis < end; axis++)
        dcrf_lattice_order_connect(&build->order, lattice->vertices, axis,
                                   lattice->neighbours + axis * lattice->vertices * 2);
}

static dcrf_status connect(struct build *build, dcrf_error *error) {
    struct dcrf_lattice *lattice = build->lattice;
    lattice->neighbours = dcrf_allocate(lattice->vertices, lattice->corners * 2 * sizeof(uint32_t));
    if (!lattice->neighbours)
        return dcrf_fail_memory(error, "the plan of a lattice");
    return dcrf_parallel_while(build->workspace, lattice->corners, 1, connect_axis, build)
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
    struct build build = {
        .lattice = lattice, .features = features, .workspace = workspace, .refinement = refinement};
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    dcrf_status status = number_vertices(&build, error);
    if (status == DCRF_OK)
        status = dcrf_go_on(workspace, DCRF_BUILDING, error);
    if (status == DCRF_OK)
        status = order_vertices(&build, error);
    if (status == DCRF_OK)
        status = dcrf_go_on(workspace, DCRF_BUILDING, error);
    if (status == DCRF_OK)
        status = refinement.runs ? make_runs(&build, error) : invert(&build, error);
    if (status == DCRF_OK)
        status = connect(&build, error);
    if (status == DCRF_OK)
        status = dcrf_lattice_layers_new(lattice, &build.order, pool, error);
    if (status == DCRF_OK && refinement.runs && lattice->is_large)
        status = make_ring(&build, error);
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
    lattice->base.bytes += refinement.runs ? refinement.runs->bytes(lattice)
                                           : n * corners * entry_bytes +
                                                 (lattice->vertices + 2) * sizeof *lattice->first;
    *out = &lattice->base;
    return DCRF_OK;
}
