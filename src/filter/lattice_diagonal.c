/* The diagonal of the lattice operator.
 *
 *   (K~)_aa = sum_jk w_j w_k B_jk    over the corners j, k of the variable's own simplex,
 *
 * where B_jk is what a unit at corner j leaves at corner k. Corner k + 1 lies one step ahead of
 * corner k along an axis of its own, so the way from one corner to another is a set of axes, one
 * step along each; and since the steps along all axes sum to zero, there are two ways (three from a
 * corner to itself): the axes of the set ahead, or the others back. The blurs take the steps in the
 * order of the axes, and a way ends where it meets a vertex that the lattice does not hold. B and
 * its transpose have one diagonal, and so has their mean. */
#include "core/error.h"
#include "filter/lattice.h"

#include <string.h>

/* Variables a task takes. */
#define GRAIN 1024
/* Simplices a worker remembers the responses of. */
#define REMEMBERED 512

/* What is left of a unit after one step along each axis of a set (bit i: axis i), ahead (1) or back
 * (0). */
static float walk(const struct dcrf_lattice *lattice, uint32_t from, uint32_t axes,
                  size_t direction) {
    float left = 1;
    for (size_t axis = 0; axis < lattice->corners; axis++) {
        if (axes >> axis & 1) {
            from = dcrf_lattice_neighbours(lattice, axis)[2 * from + direction];
            if (from == lattice->vertices)
                return 0;
            left *= DCRF_LATTICE_SIDE;
        } else {
            left *= DCRF_LATTICE_CENTRE;
        }
    }
    return left;
}

static float response(const struct dcrf_lattice *lattice, uint32_t from, uint32_t axes) {
    const uint32_t all = (uint32_t)((1ull << lattice->corners) - 1);
    const float there = walk(lattice, from, axes, 1) + walk(lattice, from, all & ~axes, 0);
    return axes == 0 ? there + walk(lattice, from, all, 1) : there;
}

/* The axis along which the vertex `to` is one step ahead of `from`. */
static uint32_t axis_between(const struct dcrf_lattice *lattice, uint32_t from, uint32_t to) {
    uint32_t axis = 0;
    while (axis + 1 < lattice->corners &&
           dcrf_lattice_neighbours(lattice, axis)[2 * from + 1] != to)
        axis++;
    return axis;
}

static void fill_responses(const struct dcrf_lattice *lattice, const uint32_t *vertex,
                           float *responses) {
    const size_t corners = lattice->corners;
    uint32_t step[DCRF_MAX_CORNERS];
    for (size_t k = 0; k < corners; k++)
        step[k] = 1u << axis_between(lattice, vertex[k], vertex[(k + 1) % corners]);
    for (size_t j = 0; j < corners; j++) {
        uint32_t axes = 0;
        for (size_t i = 0; i < corners; i++) {
            const size_t k = (j + i) % corners;
            responses[j * corners + k] = response(lattice, vertex[j], axes);
            axes |= step[k];
        }
    }
}

/* A simplex and its responses; one that was never used has no vertex of this number. */
struct memory {
    uint32_t vertex[DCRF_MAX_CORNERS];
    float responses[DCRF_MAX_CORNERS * DCRF_MAX_CORNERS];
};

struct context {
    const struct dcrf_lattice *lattice;
    struct memory *memories; /* REMEMBERED for each worker */
    float *out;
};

static void diagonal_chunk(void *argument, size_t begin, size_t end, size_t worker) {
    const struct context *context = argument;
    const struct dcrf_lattice *lattice = context->lattice;
    const size_t corners = lattice->corners, bytes = corners * sizeof(uint32_t);
    struct memory *memories = context->memories + worker * REMEMBERED;
    for (size_t a = begin; a < end; a++) {
        const uint32_t *vertex = lattice->corner_vertex + a * corners;
        const float *weight = lattice->corner_weight + a * corners;
        /* Variables near each other often share a simplex, and with it the responses. */
        uint32_t hash = 0;
        for (size_t k = 0; k < corners; k++)
            hash = (hash ^ vertex[k]) * 0x9e3779b1u;
        struct memory *memory = &memories[(hash >> 16) % REMEMBERED];
        if (memcmp(memory->vertex, vertex, bytes) != 0) {
            memcpy(memory->vertex, vertex, bytes);
            fill_responses(lattice, vertex, memory->responses);
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
    context.memories =
        dcrf_workspace_slot(workspace, &dcrf_operator_slot, count, sizeof *context.memories);
    if (!context.memories)
        return dcrf_fail_memory(error, "the diagonal of a lattice");
    for (size_t i = 0; i < count; i++)
        context.memories[i].vertex[0] = UINT32_MAX;
    dcrf_parallel_for(dcrf_workspace_pool(workspace), base->variables, GRAIN, diagonal_chunk,
                      &context);
    return DCRF_OK;
}
