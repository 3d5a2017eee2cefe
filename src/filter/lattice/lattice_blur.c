/* The blur of the lattice, axis by axis.
 *
 * A pass along one axis reads and writes every vertex once, so six passes over a lattice that does
 * not fit in the cache move it through memory six times. But vertices are numbered by layers, and a
 * step along an axis leads only a few layers away: once a pass is that far ahead, the next can
 * follow it. All passes then sweep through the vertices together, one behind the other, and the
 * rows between the first and the last pass stay in the cache. Every value is the same sum as in
 * separate passes.
 *
 * In each step of the sweep, every pass processes one layer. Within a step, no pass reads what
 * another one writes or overwrites what another one still needs, because pass j is behind pass j -
 * 1 by more layers than either of them reaches. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Vertices per task. */
#define GRAIN 128
/* Minimum number of vertices per layer; smaller layers are merged. */
#define FEWEST_IN_LAYER 256
/* Size of both buffers per thread up to which they fit in its L2 cache. */
#define LARGE_BYTES ((size_t)1 << 19)
/* Bytes of rows of one pass: per thread and step of the sweep (approximate), and per chunk
 * (minimum). */
#define LAYER_BYTES ((size_t)1 << 16)
#define LEAST_BYTES ((size_t)1 << 14)
/* Maximum number of lanes per step. */
#define MOST_LANES 64
/* Threads from which loops are shared: two hardly wait, and one more buffer is memory. */
#define FEWEST_TOGETHER 3
/* Maximum number of passes per sweep; any further ones take another sweep. */
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

/* The maximum number of layers that a step along an axis crosses. Neighbours ascend with the
 * vertices, so it is enough to check the first and the last vertex of a layer that have one. */
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
    dcrf_parallel_loop(pool, &(struct dcrf_loop){.task = measure_reach,
                                                 .context = lattice,
                                                 .count = lattice->corners,
                                                 .grain = 1,
                                                 .is_brief = true});
    return DCRF_OK;
}

/* ---- the sweep ------------------------------------------------------------------------------ */

/* An independent part of a step: work(context, begin, end), in chunks of `grain`. */
struct sweep_part {
    void (*work)(const void *context, size_t begin, size_t end);
    const void *context;
    size_t begin, end, grain, chunks;
};

/* Chunks are numbered lane by lane: a lane has an equal share of every part, and a thread begins
 * with the chunks of its own lane (core/threads.c), so that it finds in its own cache what it wrote
 * in the previous step. */
struct step {
    const struct sweep_part *parts;
    size_t count;
    size_t lanes;
    size_t start[MOST_LANES + 1]; /* the number of the first chunk of each lane, and their sum */
};

/* The first chunk of a lane in a part. */
static size_t first_chunk(const struct sweep_part *part, size_t lane, size_t lanes) {
    return part->chunks * lane / lanes;
}

static void number_chunks(struct step *step) {
    for (size_t lane = 0; lane <= step->lanes; lane++) {
        step->start[lane] = 0;
        for (size_t i = 0; i < step->count; i++)
            step->start[lane] += first_chunk(&step->parts[i], lane, step->lanes);
    }
}

static size_t lane_of(const struct step *step, size_t number) {
    size_t lane = number * step->lanes / step->start[step->lanes]; /* roughly */
    while (step->start[lane] > number)
        lane--;
    while (step->start[lane + 1] <= number)
        lane++;
    return lane;
}

static void run_chunk(const struct step *step, size_t number) {
    const size_t lane = lane_of(step, number);
    const struct sweep_part *part = step->parts;
    size_t left = number - step->start[lane], first;
    for (;; part++) {
        first = first_chunk(part, lane, step->lanes);
        const size_t count = first_chunk(part, lane + 1, step->lanes) - first;
        if (left < count)
            break;
        left -= count;
    }
    const size_t begin = part->begin + (first + left) * part->grain;
    const size_t most = part->end - begin;
    part->work(part->context, begin, begin + (most < part->grain ? most : part->grain));
}

static void run_step(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t i = begin; i < end; i++)
        run_chunk(context, i);
}

static void run_parts(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sweep_part *parts = context;
    for (size_t i = begin; i < end; i++)
        if (parts[i].begin < parts[i].end)
            parts[i].work(parts[i].context, parts[i].begin, parts[i].end);
}

static void sweep_step(dcrf_pool *pool, const struct sweep_part *parts, size_t count) {
    const size_t threads = dcrf_pool_threads(pool);
    size_t chunks = 0;
    for (size_t i = 0; i < count; i++)
        chunks += parts[i].chunks;
    if (threads == 1 || chunks <= 1) {
        dcrf_parallel_for(pool, count, count + 1, run_parts, (void *)parts);
        return;
    }
    struct step step = {.parts = parts, .count = count};
    step.lanes = threads < MOST_LANES ? threads : MOST_LANES;
    number_chunks(&step);
    dcrf_parallel_loop(
        pool, &(struct dcrf_loop){.task = run_step,
                                  .context = &step,
                                  .count = chunks,
                                  .grain = 1,
                                  .is_brief = chunks <= DCRF_LATTICE_BRIEF_BYTES / LEAST_BYTES});
}

static void blur_range(const void *context, size_t begin, size_t end) {
    dcrf_dsp()->blur(context, begin, end);
}

/* A range of vertices as a part of a step. */
static struct sweep_part part_of(const struct dcrf_blur *pass, size_t begin, size_t end) {
    const size_t least = LEAST_BYTES / (pass->width * sizeof(float));
    const size_t grain = least > GRAIN ? least : GRAIN;
    return (struct sweep_part){.work = blur_range,
                               .context = pass,
                               .begin = begin,
                               .end = end,
                               .grain = grain,
                               .chunks = (end - begin + grain - 1) / grain};
}

/* All passes: pass j processes layer i in step i + behind[j]. A layer here is `joined` layers of
 * the plan. */
static void sweep(const struct dcrf_lattice *lattice, dcrf_pool *pool, const struct dcrf_blur *pass,
                  const size_t *behind, size_t count, size_t joined) {
    const struct dcrf_lattice_layers *layers = &lattice->layers;
    const size_t layer_count = (layers->count + joined - 1) / joined;
    for (size_t i = 0; i < layer_count + behind[count - 1]; i++) {
        struct sweep_part parts[MOST_PASSES];
        size_t part_count = 0;
        for (size_t j = 0; j < count; j++) {
            const size_t layer = i - behind[j]; /* wraps around to a large value before the first */
            if (layer >= layer_count)
                continue;
            const size_t first = layer * joined, last = first + joined;
            parts[part_count++] =
                part_of(&pass[j], layers->first[first],
                        layers->first[last < layers->count ? last : layers->count]);
        }
        sweep_step(pool, parts, part_count);
    }
}

/* The number of the plan's layers that form one layer of the sweep: all if the rows fit in the
 * cache, else enough to keep a thread busy in a step. Passes are at least two layers apart, so with
 * few layers the first would finish before the last begins. */
static size_t joined_layers(const struct dcrf_lattice *lattice, size_t width, size_t threads) {
    const size_t bytes = lattice->vertices * width * sizeof(float);
    const size_t layers = lattice->layers.count, wanted = bytes / (threads * LAYER_BYTES);
    if (2 * bytes / threads <= LARGE_BYTES || wanted <= 2 * lattice->corners)
        return layers;
    return wanted < layers ? layers / wanted : 1;
}

bool dcrf_lattice_is_whole(const struct dcrf_lattice *lattice, size_t width, size_t threads) {
    return threads >= FEWEST_TOGETHER &&
           joined_layers(lattice, width, threads) == lattice->layers.count;
}

static struct dcrf_blur pass_of(const struct dcrf_lattice_passes *passes, size_t k) {
    const size_t axes = passes->lattice->corners;
    const size_t axis = passes->upwards ? k % axes : axes - 1 - k % axes;
    const float *in = k % 2 ? passes->one : passes->other;
    return (struct dcrf_blur){.neighbour = {dcrf_lattice_neighbours(passes->lattice, axis), NULL},
                              .in = {k == 0 ? passes->in : in, NULL},
                              .out = k % 2 ? passes->other : passes->one,
                              .width = passes->width,
                              .centre = DCRF_LATTICE_CENTRE,
                              .side = DCRF_LATTICE_SIDE};
}

static void sweep_alone(const struct dcrf_lattice_passes *passes, dcrf_pool *pool) {
    const struct dcrf_lattice *lattice = passes->lattice;
    const size_t axes = lattice->corners, *reach = lattice->layers.reach;
    const size_t joined = joined_layers(lattice, passes->width, dcrf_pool_threads(pool));
    for (size_t done = 0; done < passes->count;) {
        const size_t left = passes->count - done, count = left < MOST_PASSES ? left : MOST_PASSES;
        struct dcrf_blur pass[MOST_PASSES];
        size_t behind[MOST_PASSES] = {0}, last_reach = 0;
        for (size_t j = 0; j < count; j++) {
            const size_t axis = passes->upwards ? (done + j) % axes : axes - 1 - (done + j) % axes;
            const size_t own =
                joined < lattice->layers.count ? (reach[axis] + joined - 1) / joined : 0;
            pass[j] = pass_of(passes, done + j);
            if (j > 0)
                behind[j] = behind[j - 1] + 1 + (own > last_reach ? own : last_reach);
            last_reach = own;
        }
        sweep(lattice, pool, pass, behind, count, joined);
        done += count;
    }
}

void dcrf_lattice_blur_together(const struct dcrf_lattice_passes *blurs, size_t count,
                                dcrf_pool *pool) {
    const struct dcrf_lattice_passes *whole[DCRF_LATTICE_TOGETHER];
    size_t whole_count = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (!dcrf_lattice_is_whole(blurs[i].lattice, blurs[i].width, dcrf_pool_threads(pool))) {
            sweep_alone(&blurs[i], pool);
            continue;
        }
        whole[whole_count++] = &blurs[i];
        most = blurs[i].count > most ? blurs[i].count : most;
    }
    for (size_t k = 0; k < most; k++) {
        struct dcrf_blur pass[DCRF_LATTICE_TOGETHER];
        struct sweep_part parts[DCRF_LATTICE_TOGETHER];
        size_t parts_count = 0;
        for (size_t i = 0; i < whole_count; i++)
            if (k < whole[i]->count) {
                pass[i] = pass_of(whole[i], k);
                parts[parts_count++] = part_of(&pass[i], 0, whole[i]->lattice->vertices);
            }
        sweep_step(pool, parts, parts_count);
    }
}

float *dcrf_lattice_blur(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                         const float *in, bool upwards, size_t count, float *one, float *other) {
    const struct dcrf_lattice_passes passes = {lattice, width, upwards, count, in, one, other};
    dcrf_lattice_blur_together(&passes, 1, pool);
    return dcrf_lattice_blurred(&passes);
}

/* ---- both orders ---------------------------------------------------------------------------- */

/* The last passes of both orders, fused into one. */
static float *blur_last(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                        const float *up, const float *down, float *out) {
    struct dcrf_blur blur = {.neighbour = {dcrf_lattice_neighbours(lattice, lattice->corners - 1),
                                           dcrf_lattice_neighbours(lattice, 0)},
                             .in = {up, down},
                             .out = out,
                             .width = width,
                             .centre = DCRF_LATTICE_CENTRE,
                             .side = DCRF_LATTICE_SIDE};
    const struct sweep_part all = part_of(&blur, 0, lattice->vertices);
    sweep_step(pool, &all, 1);
    return out;
}

float *dcrf_lattice_blur_all(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                             dcrf_direction direction, float *const *buffer) {
    const size_t count = lattice->corners;
    for (size_t i = 0; i < DCRF_LATTICE_BUFFERS; i++)
        memset(buffer[i] + lattice->vertices * width, 0, width * sizeof *buffer[i]);
    if (direction != DCRF_SYMMETRIC)
        return dcrf_lattice_blur(lattice, pool, width, buffer[0], direction == DCRF_FORWARD, count,
                                 buffer[1], buffer[0]);
    float *up =
        dcrf_lattice_blur(lattice, pool, width, buffer[0], true, count - 1, buffer[1], buffer[2]);
    float *spare = up == buffer[1] ? buffer[2] : buffer[1];
    float *down =
        dcrf_lattice_blur(lattice, pool, width, buffer[0], false, count - 1, spare, buffer[0]);
    return blur_last(lattice, pool, width, up, down, down == spare ? buffer[0] : spare);
}

float *dcrf_lattice_blur_both(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                              float *const *buffer, float *fourth) {
    const size_t count = lattice->corners;
    const struct dcrf_lattice_passes orders[2] = {
        {lattice, width, true, count - 1, buffer[0], buffer[1], buffer[2]},
        {lattice, width, false, count - 1, buffer[0], fourth, buffer[0]}};
    for (size_t i = 0; i < DCRF_LATTICE_BUFFERS; i++)
        memset(buffer[i] + lattice->vertices * width, 0, width * sizeof *buffer[i]);
    memset(fourth + lattice->vertices * width, 0, width * sizeof *fourth);
    dcrf_lattice_blur_together(orders, 2, pool);
    const float *up = dcrf_lattice_blurred(&orders[0]), *down = dcrf_lattice_blurred(&orders[1]);
    return blur_last(lattice, pool, width, up, down, up == buffer[1] ? buffer[2] : buffer[1]);
}
