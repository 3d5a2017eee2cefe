/* The blur of the lattice along one axis after the other.
 *
 * A pass along one axis reads and writes every vertex once, so six passes over a lattice that does
 * not fit in the cache move it through memory six times. But vertices are numbered by layers, and a
 * step along an axis reaches only a few layers far: as soon as one pass is so far ahead, the next
 * can follow it. All passes then sweep through the vertices together, one behind the other, and
 * what lies between the first and the last stays in the cache. Every value is the same sum as in
 * separate passes.
 *
 * In a step of the sweep each pass takes one layer, and what one pass takes neither reads what
 * another writes in that step nor overwrites what it still needs: pass j is behind pass j - 1 by
 * more layers than either of them reaches. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

/* Vertices a task takes. */
#define GRAIN 128
/* The fewest vertices of a layer: layers that follow each other are joined. */
#define FEWEST_IN_LAYER 512
/* Both buffers together: below that they fit in a second-level cache. */
#define LARGE_BYTES ((size_t)1 << 19)
/* Passes of a sweep; more begin another one. */
#define MOST_PASSES DCRF_MAX_CORNERS

/* ---- layers --------------------------------------------------------------------------------- */

/* The layer that holds a vertex. */
static size_t layer_of(const struct dcrf_lattice_layers *layers, size_t vertex) {
    size_t low = 0, high = layers->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (layers->first[middle] <= vertex)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How many layers a step along an axis leads away at most. Neighbours come in the order of the
 * vertices, so those of the first and the last vertex of a layer that have one tell. */
static void measure_reach(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_lattice *lattice = context;
    struct dcrf_lattice_layers *layers = &lattice->layers;
    for (size_t axis = begin; axis < end; axis++) {
        const uint32_t *ahead = dcrf_lattice_neighbours(lattice, axis) + 1;
        layers->reach[axis] = 0;
        for (size_t from = 0; from < layers->count; from++) {
            size_t v = layers->first[from], last = layers->first[from + 1];
            while (v < last && ahead[2 * v] == lattice->vertices)
                v++;
            while (last > v && ahead[2 * (last - 1)] == lattice->vertices)
                last--;
            for (size_t i = 0; v < last && i < 2; i++) {
                const size_t to = layer_of(layers, ahead[2 * (i == 0 ? v : last - 1)]);
                const size_t distance = from > to ? from - to : to - from;
                layers->reach[axis] =
                    distance > layers->reach[axis] ? distance : layers->reach[axis];
            }
        }
    }
}

dcrf_status dcrf_lattice_layers_new(struct dcrf_lattice *lattice,
                                    const struct dcrf_lattice_order *order, dcrf_pool *pool,
                                    dcrf_error *error) {
    struct dcrf_lattice_layers *layers = &lattice->layers;
    const size_t n = lattice->vertices;
    layers->first = dcrf_allocate(n / FEWEST_IN_LAYER + 2, sizeof *layers->first);
    if (!layers->first)
        return dcrf_fail_memory(error, "the plan of a lattice");
    layers->count = 1;
    layers->first[0] = 0;
    for (size_t v = FEWEST_IN_LAYER; v < n; v++)
        if (dcrf_lattice_order_layer(order, v) != dcrf_lattice_order_layer(order, v - 1)) {
            layers->first[layers->count++] = (uint32_t)v;
            v += FEWEST_IN_LAYER - 1;
        }
    layers->first[layers->count] = (uint32_t)n;
    dcrf_parallel_for(pool, lattice->corners, 1, measure_reach, lattice);
    return DCRF_OK;
}

/* ---- the sweep ------------------------------------------------------------------------------ */

struct step {
    const struct dcrf_sweep_part *parts;
};

static size_t task_count(const struct dcrf_sweep_part *part) {
    return (part->end - part->begin + part->grain - 1) / part->grain;
}

static void run_tasks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t task = begin; task < end; task++) {
        const struct dcrf_sweep_part *part = ((const struct step *)context)->parts;
        size_t at = task;
        for (; at >= task_count(part); part++)
            at -= task_count(part);
        const size_t from = part->begin + at * part->grain;
        const size_t left = part->end - from;
        part->work(part->context, from, from + (left < part->grain ? left : part->grain));
    }
}

void dcrf_sweep_step(dcrf_pool *pool, const struct dcrf_sweep_part *parts, size_t count) {
    struct step step = {parts};
    size_t tasks = 0;
    for (size_t i = 0; i < count; i++)
        tasks += task_count(&parts[i]);
    dcrf_parallel_for(pool, tasks, 1, run_tasks, &step);
}

static void blur_range(const void *context, size_t begin, size_t end) {
    dcrf_dsp()->blur(context, begin, end);
}

/* All passes, pass j in layer i of the step i + behind[j]. */
static void sweep(const struct dcrf_lattice *lattice, dcrf_pool *pool, const struct dcrf_blur *pass,
                  const size_t *behind, size_t count, bool is_large) {
    const struct dcrf_lattice_layers *layers = &lattice->layers;
    const size_t layer_count = is_large ? layers->count : 1;
    for (size_t i = 0; i < layer_count + behind[count - 1]; i++) {
        struct dcrf_sweep_part parts[MOST_PASSES];
        size_t part_count = 0;
        for (size_t j = 0; j < count; j++) {
            const size_t layer = i - behind[j]; /* wraps before its first */
            if (layer < layer_count)
                parts[part_count++] = (struct dcrf_sweep_part){
                    .work = blur_range,
                    .context = &pass[j],
                    .begin = is_large ? layers->first[layer] : 0,
                    .end = is_large ? layers->first[layer + 1] : lattice->vertices,
                    .grain = GRAIN};
        }
        dcrf_sweep_step(pool, parts, part_count);
    }
}

float *dcrf_lattice_blur(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                         const float *in, bool upwards, size_t count, float *one, float *other) {
    const size_t axes = lattice->corners, *reach = lattice->layers.reach;
    const bool is_large = 2 * lattice->vertices * width * sizeof *in > LARGE_BYTES;
    for (size_t done = 0; done < count;) {
        const size_t passes = count - done < MOST_PASSES ? count - done : MOST_PASSES;
        struct dcrf_blur pass[MOST_PASSES];
        size_t behind[MOST_PASSES] = {0}, last_reach = 0;
        for (size_t j = 0; j < passes; j++) {
            const size_t axis = upwards ? (done + j) % axes : axes - 1 - (done + j) % axes;
            const size_t own = is_large ? reach[axis] : 0;
            pass[j] =
                (struct dcrf_blur){.neighbour = {dcrf_lattice_neighbours(lattice, axis), NULL},
                                   .in = {in, NULL},
                                   .out = one,
                                   .width = width,
                                   .centre = DCRF_LATTICE_CENTRE,
                                   .side = DCRF_LATTICE_SIDE};
            if (j > 0)
                behind[j] = behind[j - 1] + 1 + (own > last_reach ? own : last_reach);
            last_reach = own;
            in = one;
            one = other;
            other = (float *)in;
        }
        sweep(lattice, pool, pass, behind, passes, is_large);
        done += passes;
    }
    return other;
}
