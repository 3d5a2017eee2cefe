/* The diagonal of the lattice operator.
 *
 *   (K~)_aa = sum_jk w_j w_k B_jk    over the corners j, k of the variable's own simplex,
 *
 * where B_jk is the response at corner k to a unit at corner j. Corner k + 1 is one step ahead of
 * corner k along a different axis for each k, so a path from one corner to another is a set of
 * axes, with one step along each. Since the steps along all axes sum to zero, there are two paths
 * (three from a corner to itself): ahead along the axes of the set, or back along all others. The
 * blurs take the steps in the order of the axes, and a path contributes only if all vertices on it
 * are in the lattice. B, its transpose, and their mean all give the same diagonal.
 *
 * The paths from a vertex are stored as one bit per set of axes. The sets whose first axis is i
 * come from the neighbour along i: its sets with only axes above i, with i added. So one pass over
 * the vertices per axis finds them all, whereas walking along every path would take hundreds of
 * dependent memory accesses per simplex. Half of the variables of a photograph have a simplex of
 * their own, so its responses are computed for each variable whose neighbour has another. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <stdatomic.h>
#include <string.h>

/* About so many variables or vertices per task. */
#define GRAIN 1024
/* Prefetch distance in variables. */
#define FORESIGHT 6
/* The subsets of this many axes fit in the bits of one word. */
#define MOST_AXES 6

#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

/* ---- ways ----------------------------------------------------------------------------------- */

/* Bit S: one step along each axis of the set S (bit i: axis i) leads to an existing vertex, through
 * existing ones. */
struct ways {
    _Atomic uint64_t along[2]; /* back, ahead */
};

struct context {
    const struct dcrf_lattice *lattice;
    struct ways *ways;                   /* one per vertex; NULL: too many axes */
    size_t axis;                         /* of a pass over the vertices */
    float left[DCRF_MAX_CORNERS + 1];    /* weight of a path, by its number of steps */
    float response[DCRF_MAX_CORNERS][4]; /* by number of steps ahead, and by which of the paths
                                          * ahead (1) and back (2) exist */
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

/* Add the sets whose first axis is this one. A neighbour that was already processed in this pass
 * has additional sets; they contain this axis and are masked out. */
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
    dcrf_parallel_rows(pool, vertices, begin_ways, context);
    for (context->axis = context->lattice->corners; context->axis-- > 0;)
        dcrf_parallel_rows(pool, vertices, extend_ways, context);
}

/* Is there a path along this set? Found by walking, for when there are too many axes for `ways`. */
static bool leads(const struct dcrf_lattice *lattice, uint32_t from, uint32_t axes,
                  size_t direction) {
    for (size_t axis = 0; axis < lattice->corners; axis++)
        if (axes >> axis & 1) {
            from = dcrf_lattice_neighbours(lattice, axis)[2 * from + direction];
            if (from == lattice->vertices)
                return false;
        }
    return true;
}

/* ---- simplices ------------------------------------------------------------------------------ */

/* The axis along which the vertex `to` is one step ahead of `from`, as a set of one. */
INLINE uint32_t axis_between(const struct dcrf_lattice *lattice, size_t corners, uint32_t from,
                             uint32_t to) {
    uint32_t axes = 0;
    for (size_t axis = 0; axis < corners; axis++)
        axes |= (uint32_t)(dcrf_lattice_neighbours(lattice, axis)[2 * from + 1] == to) << axis;
    return axes;
}

/* responses[j, i]: the response to a unit at corner j, i corners further on. */
INLINE void fill_responses(const struct context *context, size_t corners, const uint32_t *vertex,
                           float *responses) {
    const struct dcrf_lattice *lattice = context->lattice;
    const uint32_t all = (uint32_t)((1ull << corners) - 1);
    uint32_t step[2 * DCRF_MAX_CORNERS]; /* cyclic */
    for (size_t k = 0; k < corners; k++)
        step[k] = step[k + corners] =
            axis_between(lattice, corners, vertex[k], vertex[k + 1 < corners ? k + 1 : 0]);
    for (size_t j = 0; j < corners; j++) {
        float *row = responses + j * corners;
        uint64_t back = 0, ahead = 0;
        if (corners <= MOST_AXES) {
            struct ways *ways = &context->ways[vertex[j]];
            back = atomic_load_explicit(&ways->along[0], memory_order_relaxed);
            ahead = atomic_load_explicit(&ways->along[1], memory_order_relaxed);
        }
        uint32_t axes = 0;
        UNROLL
        for (size_t i = 0; i <= corners; i++) {
            const bool leads_ahead =
                corners <= MOST_AXES ? ahead >> axes & 1 : leads(lattice, vertex[j], axes, 1);
            const bool leads_back = corners <= MOST_AXES ? back >> (all ^ axes) & 1
                                                         : leads(lattice, vertex[j], all ^ axes, 0);
            if (i < corners)
                row[i] = context->response[i][leads_ahead + 2 * leads_back];
            else if (leads_ahead) /* once around the simplex */
                row[0] += context->left[corners];
            axes |= step[j + i];
        }
    }
}

/* w' R w, row by row; columns of R are relative to the row. */
INLINE float weigh(const float *weight, const float *responses, size_t corners) {
    float sum = 0, round[2 * DCRF_MAX_CORNERS];
    memcpy(round, weight, corners * sizeof *round);
    memcpy(round + corners, weight, corners * sizeof *round);
    for (size_t j = 0; j < corners; j++, responses += corners) {
        float row = 0;
        for (size_t i = 0; i < corners; i++)
            row += round[j + i] * responses[i];
        sum += weight[j] * row;
    }
    return sum;
}

INLINE void fill_diagonal(const struct context *context, size_t corners, size_t begin, size_t end) {
    const struct dcrf_lattice *lattice = context->lattice;
    uint32_t last[DCRF_MAX_CORNERS] = {UINT32_MAX};
    float responses[DCRF_MAX_CORNERS * DCRF_MAX_CORNERS];
    for (size_t a = begin; a < end; a++) {
        const struct dcrf_lattice_names names = dcrf_lattice_names_at(lattice, a);
        uint32_t vertex[DCRF_MAX_CORNERS];
        for (size_t k = 0; k < corners; k++)
            vertex[k] = dcrf_lattice_vertex(names, lattice->runs.vertex[a * corners + k]);
        const size_t soon = (a + FORESIGHT < end ? a + FORESIGHT : a) * corners;
        for (size_t k = 0; k < corners && corners <= MOST_AXES; k++)
            __builtin_prefetch(
                &context->ways[dcrf_lattice_vertex(names, lattice->runs.vertex[soon + k])]);
        /* Neighbours often share a simplex, and with it the responses. */
        if (memcmp(last, vertex, corners * sizeof *vertex) != 0) {
            memcpy(last, vertex, corners * sizeof *vertex);
            fill_responses(context, corners, vertex, responses);
        }
        context->out[a] = weigh(lattice->runs.weight + a * corners, responses, corners);
    }
}

/* Specialized for the common numbers of corners. */
static void diagonal_chunk(void *argument, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct context *context = argument;
    switch (context->lattice->corners) {
    case 3:
        fill_diagonal(context, 3, begin, end);
        break;
    case 6:
        fill_diagonal(context, 6, begin, end);
        break;
    default:
        fill_diagonal(context, context->lattice->corners, begin, end);
        break;
    }
}

dcrf_status dcrf_lattice_diagonal(const dcrf_operator *base, dcrf_workspace *workspace, float *out,
                                  dcrf_error *error) {
    struct context context = {.lattice = (const struct dcrf_lattice *)base, .out = out};
    const size_t corners = context.lattice->corners;
    for (size_t steps = 0; steps <= corners; steps++) {
        context.left[steps] = 1;
        for (size_t axis = 0; axis < corners; axis++)
            context.left[steps] *= axis < steps ? DCRF_LATTICE_SIDE : DCRF_LATTICE_CENTRE;
    }
    for (size_t i = 0; i < 4 * corners; i++)
        context.response[i / 4][i % 4] =
            (i & 1 ? context.left[i / 4] : 0) + (i & 2 ? context.left[corners - i / 4] : 0);
    if (corners <= MOST_AXES)
        context.ways = dcrf_workspace_slot(workspace, &dcrf_operator_slot2,
                                           context.lattice->vertices, sizeof *context.ways);
    if (corners <= MOST_AXES && !context.ways)
        return dcrf_fail_memory(error, "the diagonal of a lattice");
    if (context.ways)
        find_ways(&context, dcrf_workspace_pool(workspace));
    const bool is_done =
        dcrf_parallel_while(workspace, base->variables, dcrf_even_grain(base->variables, GRAIN),
                            diagonal_chunk, &context);
    return is_done ? DCRF_OK : dcrf_fail_interrupted(workspace, DCRF_BUILDING, error);
}
