/* The diagonal of the lattice operator.
 *
 *   (K~)_aa = sum_jk w_j w_k B_jk    over the corners j, k of the variable's own simplex,
 *
 * where B_jk is what a unit at corner j leaves at corner k. Corner k + 1 lies one step ahead of
 * corner k along an axis of its own, so the way from one corner to another is a set of axes, one
 * step along each; and since the steps along all axes sum to zero, there are two ways (three from a
 * corner to itself): the axes of the set ahead, or the others back. The blurs take the steps in the
 * order of the axes, and a way ends where it meets a vertex that the lattice does not hold. B and
 * its transpose have one diagonal, and so has their mean.
 *
 * Which ways there are from a vertex is one bit for each set of axes. The sets whose first axis is
 * i are those of the neighbour along i, with axis i added to what has axes above i alone, so six
 * passes over the vertices find them all, where walking along every way would take hundreds of
 * steps from memory to memory for each simplex. */
#include "core/error.h"
#include "filter/lattice.h"

#include <stdatomic.h>
#include <string.h>

/* Variables a task takes. */
#define GRAIN 1024
/* Simplices a worker remembers the responses of. */
#define REMEMBERED 512
/* What a variable will need of a lattice that is no longer in the caches is asked for so many
 * variables before. */
#define FORESIGHT 4
#define LARGE_VERTICES 32768
/* Sets of this many axes have a bit each in a word. */
#define MOST_AXES 6

/* ---- ways ----------------------------------------------------------------------------------- */

/* Bit S: one step along each axis of the set S (bit i: axis i) leads to a vertex that there is. */
struct ways {
    _Atomic uint64_t along[2]; /* back, ahead */
};

struct context {
    const struct dcrf_lattice *lattice;
    struct ways *ways;                /* one per vertex; NULL: too many axes */
    size_t axis;                      /* of a pass over the vertices */
    float left[DCRF_MAX_CORNERS + 1]; /* of a unit after steps along so many of the axes */
    struct memory *memories;          /* REMEMBERED for each worker */
    float *out;
};

/* The sets without axis i. */
static uint64_t sets_without(size_t axis) {
    uint64_t sets = 0;
    for (unsigned set = 0; set < 64; set++)
        if (!(set >> axis & 1))
            sets |= (uint64_t)1 << set;
    return sets;
}

static void begin_ways(void *argument, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct context *context = argument;
    for (size_t v = begin; v < end; v++)
        for (size_t direction = 0; direction < 2; direction++)
            atomic_init(&context->ways[v].along[direction], 1); /* the empty set */
}

/* Add the sets whose first axis is this one. A neighbour that had its turn already has more sets,
 * which are told by the axis that they have. */
static void extend_ways(void *argument, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct context *context = argument;
    const struct dcrf_lattice *lattice = context->lattice;
    const uint32_t *neighbours = dcrf_lattice_neighbours(lattice, context->axis);
    const uint64_t others = sets_without(context->axis);
    for (size_t v = begin; v < end; v++)
        for (size_t direction = 0; direction < 2; direction++) {
            const uint32_t next = neighbours[2 * v + direction];
            if (next == lattice->vertices)
                continue;
            _Atomic uint64_t *own = &context->ways[v].along[direction];
            const uint64_t further =
                atomic_load_explicit(&context->ways[next].along[direction], memory_order_relaxed);
            const uint64_t known = atomic_load_explicit(own, memory_order_relaxed);
            atomic_store_explicit(own, known | (further & others) << (1u << context->axis),
                                  memory_order_relaxed);
        }
}

static void find_ways(struct context *context, dcrf_pool *pool) {
    const size_t vertices = context->lattice->vertices;
    dcrf_parallel_for(pool, vertices, GRAIN, begin_ways, context);
    for (context->axis = context->lattice->corners; context->axis-- > 0;)
        dcrf_parallel_for(pool, vertices, GRAIN, extend_ways, context);
}

/* Is there a way along this set? Where there are no words, by walking. */
static bool leads(const struct context *context, uint32_t from, uint32_t axes, size_t direction) {
    const struct dcrf_lattice *lattice = context->lattice;
    if (context->ways)
        return atomic_load_explicit(&context->ways[from].along[direction], memory_order_relaxed) >>
                   axes &
               1;
    for (size_t axis = 0; axis < lattice->corners; axis++)
        if (axes >> axis & 1) {
            from = dcrf_lattice_neighbours(lattice, axis)[2 * from + direction];
            if (from == lattice->vertices)
                return false;
        }
    return true;
}

/* What a unit leaves where a set of `steps` axes leads. */
static float response(const struct context *context, uint32_t from, uint32_t axes, size_t steps) {
    const size_t corners = context->lattice->corners;
    const uint32_t all = (uint32_t)((1ull << corners) - 1);
    float there = leads(context, from, axes, 1) ? context->left[steps] : 0;
    if (leads(context, from, all & ~axes, 0))
        there += context->left[corners - steps];
    return axes == 0 && leads(context, from, all, 1) ? there + context->left[corners] : there;
}

/* ---- simplices ------------------------------------------------------------------------------ */

/* The axis along which the vertex `to` is one step ahead of `from`. */
static uint32_t axis_between(const struct dcrf_lattice *lattice, uint32_t from, uint32_t to) {
    uint32_t axis = 0;
    while (axis + 1 < lattice->corners &&
           dcrf_lattice_neighbours(lattice, axis)[2 * from + 1] != to)
        axis++;
    return axis;
}

static void fill_responses(const struct context *context, const uint32_t *vertex,
                           float *responses) {
    const struct dcrf_lattice *lattice = context->lattice;
    const size_t corners = lattice->corners;
    uint32_t step[DCRF_MAX_CORNERS];
    for (size_t k = 0; k < corners; k++)
        step[k] = 1u << axis_between(lattice, vertex[k], vertex[(k + 1) % corners]);
    for (size_t j = 0; j < corners; j++) {
        uint32_t axes = 0;
        for (size_t i = 0; i < corners; i++) {
            const size_t k = (j + i) % corners;
            responses[j * corners + k] = response(context, vertex[j], axes, i);
            axes |= step[k];
        }
    }
}

/* A simplex and its responses; one that was never used has no vertex of this number. */
struct memory {
    uint32_t vertex[DCRF_MAX_CORNERS];
    float responses[DCRF_MAX_CORNERS * DCRF_MAX_CORNERS];
};

static void look_ahead(const struct context *context, size_t variable) {
    const struct dcrf_lattice *lattice = context->lattice;
    const uint32_t *vertex = lattice->corner_vertex + variable * lattice->corners;
    for (size_t k = 0; k < lattice->corners; k++) {
        for (size_t axis = 0; axis < lattice->corners; axis++)
            __builtin_prefetch(dcrf_lattice_neighbours(lattice, axis) + 2 * vertex[k]);
        if (context->ways)
            __builtin_prefetch((const void *)&context->ways[vertex[k]]);
    }
}

static void diagonal_chunk(void *argument, size_t begin, size_t end, size_t worker) {
    const struct context *context = argument;
    const struct dcrf_lattice *lattice = context->lattice;
    const size_t corners = lattice->corners, bytes = corners * sizeof(uint32_t);
    struct memory *memories = context->memories + worker * REMEMBERED;
    for (size_t a = begin; a < end; a++) {
        if (lattice->vertices > LARGE_VERTICES && a + FORESIGHT < end)
            look_ahead(context, a + FORESIGHT);
        const uint32_t *vertex = lattice->corner_vertex + a * corners;
        const float *weight = lattice->corner_weight + a * corners;
        /* Variables near each other often share a simplex, and with it the responses. */
        uint32_t hash = 0;
        for (size_t k = 0; k < corners; k++)
            hash = (hash ^ vertex[k]) * 0x9e3779b1u;
        struct memory *memory = &memories[(hash >> 16) % REMEMBERED];
        if (memcmp(memory->vertex, vertex, bytes) != 0) {
            memcpy(memory->vertex, vertex, bytes);
            fill_responses(context, vertex, memory->responses);
        }
        float sum = 0;
        for (size_t j = 0; j < corners; j++)
            for (size_t k = 0; k < corners; k++)
                sum += weight[j] * weight[k] * memory->responses[j * corners + k];
        context->out[a] = sum;
    }
}

dcrf_status dcrf_lattice_diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                                  dcrf_error *error) {
    struct context context = {.lattice = (const struct dcrf_lattice *)base, .out = out};
    const size_t count = REMEMBERED * dcrf_workspace_threads(workspace);
    if (context.lattice->rounds != 1)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED,
                         "the diagonal of a lattice that is blurred more than once is not known");
    const size_t corners = context.lattice->corners;
    for (size_t steps = 0; steps <= corners; steps++) {
        context.left[steps] = 1;
        for (size_t axis = 0; axis < corners; axis++)
            context.left[steps] *= axis < steps ? DCRF_LATTICE_SIDE : DCRF_LATTICE_CENTRE;
    }
    context.memories =
        dcrf_workspace_slot(workspace, &dcrf_operator_slot, count, sizeof *context.memories);
    if (corners <= MOST_AXES)
        context.ways = dcrf_workspace_slot(workspace, &dcrf_operator_slot2,
                                           context.lattice->vertices, sizeof *context.ways);
    if (!context.memories || (corners <= MOST_AXES && !context.ways))
        return dcrf_fail_memory(error, "the diagonal of a lattice");
    if (context.ways)
        find_ways(&context, dcrf_workspace_pool(workspace));
    for (size_t i = 0; i < count; i++)
        context.memories[i].vertex[0] = UINT32_MAX;
    dcrf_parallel_for(dcrf_workspace_pool(workspace), base->variables, GRAIN, diagonal_chunk,
                      &context);
    return DCRF_OK;
}
