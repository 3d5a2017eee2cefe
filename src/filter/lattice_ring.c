/* The whole one-way filter of a large lattice in one sweep: splat, blur along all axes, slice.
 *
 * As in lattice_blur.c all passes go through the layers together, one behind the other; here the
 * splat goes ahead of the blur and the slice follows it. A row is then needed only between the
 * moment when the splat gets to its layer and the moment when the slice has left it, and two
 * buffers of so many rows are enough, in which rows take turns: vertex v has row v modulo the
 * number of rows. What was a lattice of tens of megabytes stays in the cache, and only the rows of
 * the variables pass through memory.
 *
 * Runs are splat and sliced with the layer of their lowest vertex. One layer is splat by one task,
 * so that sums have one order. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

/* What a task takes. */
#define VERTEX_GRAIN 256
#define RUN_GRAIN 128
#define INDEX_GRAIN 16384
/* The splat, the passes of the blur, the slice. */
#define MOST_STAGES (DCRF_MAX_CORNERS + 2)

/* ---- the plan ------------------------------------------------------------------------------- */

/* How many layers each stage is behind the splat. Where threads work on all stages of a step at
 * once, each is one layer further behind than it must be to find what it needs. */
static void find_lags(const struct dcrf_lattice *lattice, bool has_threads, size_t *behind) {
    const size_t *reach = lattice->layers.reach, spare = has_threads ? 1 : 0;
    const size_t corners = lattice->corners;
    behind[0] = 0;
    for (size_t j = 1; j <= corners; j++) {
        const size_t own = reach[j - 1], last = j > 1 ? reach[j - 2] : 0;
        behind[j] = behind[j - 1] + (own > last ? own : last) + spare;
    }
    behind[corners + 1] = behind[corners] + lattice->ring.span + spare;
}

static uint32_t *layers_of_vertices(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_layers *layers = &lattice->layers;
    uint32_t *layer = dcrf_allocate(lattice->vertices, sizeof *layer);
    for (size_t i = 0; layer && i < layers->count; i++)
        for (size_t v = layers->first[i]; v < layers->first[i + 1]; v++)
            layer[v] = (uint32_t)i;
    return layer;
}

/* The span of the runs, and the first run of each layer. */
static void measure_runs(struct dcrf_lattice *lattice, const uint32_t *layer) {
    struct dcrf_lattice_ring *ring = &lattice->ring;
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    size_t next = 0;
    for (size_t run = 0; run < runs->count; run++) {
        const uint32_t *vertex = runs->vertex + run * lattice->corners;
        size_t lowest = layer[vertex[0]], highest = lowest;
        for (size_t k = 1; k < lattice->corners; k++) {
            const size_t here = layer[vertex[k]];
            lowest = here < lowest ? here : lowest;
            highest = here > highest ? here : highest;
        }
        ring->span = highest - lowest > ring->span ? highest - lowest : ring->span;
        while (next <= lowest)
            ring->run[next++] = (uint32_t)run;
    }
    while (next <= lattice->layers.count)
        ring->run[next++] = (uint32_t)runs->count;
}

/* Rows that are in use at the same time, at most. */
static size_t rows_in_use(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_layers *layers = &lattice->layers;
    size_t behind[MOST_STAGES], most = 0;
    find_lags(lattice, true, behind);
    const size_t back = behind[lattice->corners + 1];
    for (size_t i = 0; i < layers->count + back; i++) {
        const size_t end = i + lattice->ring.span + 1, begin = i < back ? 0 : i - back;
        const size_t rows =
            layers->first[end < layers->count ? end : layers->count] - layers->first[begin];
        most = rows > most ? rows : most;
    }
    return most;
}

/* Make vertices rows of the ring. The neighbours of a vertex are less than `rows` away from it, so
 * they are in the same turn of the ring, the one before or the next. */
static void turn_neighbours(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_lattice *lattice = context;
    const int64_t rows = (int64_t)lattice->ring.rows, none = (int64_t)lattice->vertices;
    for (size_t v = begin; v < end;) {
        const size_t turn = v / lattice->ring.rows * lattice->ring.rows;
        const size_t last = turn + lattice->ring.rows < end ? turn + lattice->ring.rows : end;
        for (size_t axis = 0; axis < lattice->corners; axis++) {
            uint32_t *neighbours = lattice->neighbours + axis * lattice->vertices * 2;
            for (size_t i = 2 * v; i < 2 * last; i++) {
                const int32_t row = (int32_t)(neighbours[i] - (uint32_t)turn);
                const int32_t turned = row < 0 ? row + (int32_t)rows : row;
                const int32_t inside = turned >= (int32_t)rows ? turned - (int32_t)rows : turned;
                neighbours[i] = neighbours[i] == (uint32_t)none ? (uint32_t)rows : (uint32_t)inside;
            }
        }
        v = last;
    }
}

static void turn_runs(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_lattice *lattice = context;
    for (size_t i = begin; i < end; i++)
        lattice->runs.vertex[i] %= (uint32_t)lattice->ring.rows;
}

dcrf_status dcrf_lattice_ring_new(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                  dcrf_error *error) {
    struct dcrf_lattice_ring *ring = &lattice->ring;
    uint32_t *layer = layers_of_vertices(lattice);
    ring->run = dcrf_allocate(lattice->layers.count + 1, sizeof *ring->run);
    if (!layer || !ring->run) {
        dcrf_release(layer);
        return dcrf_fail_memory(error, "the plan of a lattice");
    }
    measure_runs(lattice, layer);
    dcrf_release(layer);
    const size_t rows = rows_in_use(lattice);
    if (rows > lattice->vertices / 2)
        return DCRF_OK;
    ring->rows = rows;
    dcrf_parallel_for(pool, lattice->vertices, INDEX_GRAIN, turn_neighbours, lattice);
    dcrf_parallel_for(pool, lattice->runs.count * lattice->corners, INDEX_GRAIN, turn_runs,
                      lattice);
    return DCRF_OK;
}

/* ---- the sweep ------------------------------------------------------------------------------ */

struct sweep {
    const struct dcrf_lattice *lattice;
    struct dcrf_runs splat, slice;
    float *ring[2];
};

struct clearing {
    const struct sweep *sweep;
    size_t layer;
};

/* Clear the rows of the layers first .. last - 1, in two pieces where rows begin anew. */
static void clear_layers(const struct sweep *sweep, size_t first, size_t last) {
    const uint32_t *begin_of = sweep->lattice->layers.first;
    const size_t rows = sweep->lattice->ring.rows, width = sweep->splat.width;
    for (size_t begin = begin_of[first], end = begin_of[last]; begin < end;) {
        const size_t row = begin % rows;
        const size_t count = rows - row < end - begin ? rows - row : end - begin;
        memset(sweep->ring[0] + row * width, 0, count * width * sizeof *sweep->ring[0]);
        begin += count;
    }
}

/* A layer is cleared when the splat first gets near it. */
static void splat_layer(const void *context, size_t begin, size_t end) {
    (void)begin;
    (void)end;
    const struct sweep *sweep = ((const struct clearing *)context)->sweep;
    const size_t layer = ((const struct clearing *)context)->layer;
    const struct dcrf_lattice *lattice = sweep->lattice;
    const size_t layers = lattice->layers.count, far = layer + lattice->ring.span;
    const size_t first = layer == 0 ? 0 : far, last = far < layers ? far + 1 : layers;
    if (first < last)
        clear_layers(sweep, first, last);
    dcrf_dsp()->splat_runs(&sweep->splat, lattice->ring.run[layer], lattice->ring.run[layer + 1]);
}

static void blur_range(const void *context, size_t begin, size_t end) {
    dcrf_dsp()->blur(context, begin, end);
}

static void slice_layer(const void *context, size_t begin, size_t end) {
    dcrf_dsp()->slice_runs(context, begin, end);
}

/* What is done in one step. */
struct step {
    struct clearing clearing;
    struct dcrf_blur blur[2 * DCRF_MAX_CORNERS];
    struct dcrf_sweep_part parts[2 * MOST_STAGES];
    size_t count, blurs;
};

static void add_part(struct step *step, void (*work)(const void *, size_t, size_t),
                     const void *context, size_t begin, size_t end, size_t grain) {
    step->parts[step->count++] = (struct dcrf_sweep_part){work, context, begin, end, grain};
}

/* One pass of the blur through one layer: in two pieces where its rows begin anew. */
static void add_blur(struct step *step, const struct sweep *sweep, size_t axis, size_t layer) {
    const struct dcrf_lattice *lattice = sweep->lattice;
    const size_t rows = lattice->ring.rows, end = lattice->layers.first[layer + 1];
    for (size_t begin = lattice->layers.first[layer]; begin < end;) {
        const size_t row = begin % rows;
        const size_t count = rows - row < end - begin ? rows - row : end - begin;
        struct dcrf_blur *blur = &step->blur[step->blurs++];
        *blur = (struct dcrf_blur){
            .neighbour = {dcrf_lattice_neighbours(lattice, axis) + 2 * (begin - row), NULL},
            .in = {sweep->ring[axis % 2], NULL},
            .out = sweep->ring[(axis + 1) % 2],
            .width = sweep->splat.width,
            .centre = DCRF_LATTICE_CENTRE,
            .side = DCRF_LATTICE_SIDE};
        add_part(step, blur_range, blur, row, row + count, VERTEX_GRAIN);
        begin += count;
    }
}

static void sweep_all(const struct sweep *sweep, dcrf_pool *pool) {
    const struct dcrf_lattice *lattice = sweep->lattice;
    const size_t layers = lattice->layers.count, corners = lattice->corners;
    const uint32_t *run = lattice->ring.run;
    size_t behind[MOST_STAGES];
    find_lags(lattice, dcrf_pool_threads(pool) > 1, behind);
    for (size_t i = 0; i < layers + behind[corners + 1]; i++) {
        struct step step;
        step.count = step.blurs = 0;
        for (size_t stage = 0; stage <= corners + 1; stage++) {
            const size_t layer = i - behind[stage]; /* wraps before its first */
            if (layer >= layers)
                continue;
            if (stage == 0) {
                step.clearing = (struct clearing){sweep, layer};
                add_part(&step, splat_layer, &step.clearing, 0, 1, 1);
            } else if (stage <= corners) {
                add_blur(&step, sweep, stage - 1, layer);
            } else {
                add_part(&step, slice_layer, &sweep->slice, run[layer], run[layer + 1], RUN_GRAIN);
            }
        }
        dcrf_sweep_step(pool, step.parts, step.count);
    }
}

void dcrf_lattice_filter_ring(const struct dcrf_lattice_filter *filter) {
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t rows = lattice->ring.rows, width = filter->width;
    struct sweep sweep = {.lattice = lattice,
                          .ring = {filter->scratch, filter->scratch + (rows + 1) * width}};
    for (size_t i = 0; i < 2; i++)
        memset(sweep.ring[i] + rows * width, 0, width * sizeof *filter->scratch);
    sweep.splat = dcrf_lattice_runs_of(lattice, width);
    sweep.splat.vertices = sweep.ring[0];
    sweep.splat.variables = (float *)filter->in; /* a splat only reads them */
    sweep.splat.stride = filter->in_stride;
    sweep.slice = sweep.splat;
    if (lattice->runs.weight_out)
        sweep.slice.weight = lattice->runs.weight_out;
    sweep.slice.vertices = sweep.ring[lattice->corners % 2];
    sweep.slice.variables = filter->out;
    sweep.slice.stride = filter->out_stride;
    sweep.slice.factor = filter->factor;
    sweep.slice.accumulate = filter->accumulate;
    sweep_all(&sweep, filter->pool);
}
