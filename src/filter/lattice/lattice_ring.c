/* The whole one-way filter of a large lattice in one sweep: splat, blur along all axes, slice.
 *
 * As in lattice_blur.c, all passes go through the layers together, one behind the other; here the
 * splat goes ahead of the blur and the slice follows it. A row is then needed only from when the
 * splat reaches its layer until the slice has left it, so two ring buffers are enough: vertex v
 * uses row v modulo the number of rows. A lattice of tens of megabytes is thus processed within the
 * cache, and only the rows of the variables pass through memory. Each stage processes a few layers
 * at a time, whose rows are still in the L2 cache when the next stage needs them.
 *
 * Runs are splat and sliced with the layer of their lowest vertex. The layers are divided into
 * sections, at most one per thread, each with its own ring; the earlier stages of a section extend
 * beyond it by all layers that its slices depend on. So layers near a border are computed twice,
 * but no thread waits, and every value is the same sum in the same order for any number of
 * sections. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Indices per task. */
#define INDEX_GRAIN 16384
/* Layers per task. */
#define LAYER_GRAIN 16
/* The splat, the passes of the blur, the slice. */
#define MOST_STAGES (DCRF_MAX_CORNERS + 2)
/* Layers that a stage processes at a time. */
#define BATCH 4
/* More sections must reduce the work of the largest one to at most this fraction. */
#define SECTION_GAIN 0.9

/* ---- the plan ------------------------------------------------------------------------------- */

/* The number of layers that each stage is behind the splat. */
static void find_lags(const struct dcrf_lattice *lattice, size_t *behind) {
    const size_t *reach = lattice->layers.reach, corners = lattice->corners;
    behind[0] = 0;
    for (size_t j = 1; j <= corners; j++) {
        const size_t own = reach[j - 1], last = j > 1 ? reach[j - 2] : 0;
        behind[j] = behind[j - 1] + (own > last ? own : last);
    }
    behind[corners + 1] = behind[corners] + lattice->ring.span;
}

/* The lowest vertex of a run. */
static uint32_t lowest_of(const struct dcrf_lattice *lattice, size_t run) {
    const uint32_t *vertex = lattice->runs.vertex + run * lattice->corners;
    uint32_t lowest = vertex[0];
    for (size_t k = 1; k < lattice->corners; k++)
        lowest = vertex[k] < lowest ? vertex[k] : lowest;
    return lowest;
}

/* The first run of each layer; runs are ordered by lowest vertex. */
static void find_runs(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_layers *layers = &lattice->layers;
    size_t begin = 0;
    for (size_t layer = 0; layer <= layers->count; layer++) {
        size_t end = lattice->runs.count;
        while (begin < end) {
            const size_t middle = begin + (end - begin) / 2;
            if (lowest_of(lattice, middle) < layers->first[layer])
                begin = middle + 1;
            else
                end = middle;
        }
        lattice->ring.run[layer] = (uint32_t)begin;
    }
}

/* The number of further layers that the runs of a layer touch. */
struct reach {
    const struct dcrf_lattice *lattice;
    size_t *span; /* of each layer */
};

static void measure_spans(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct reach *reach = context;
    const struct dcrf_lattice *lattice = reach->lattice;
    const uint32_t *run = lattice->ring.run, *vertex = lattice->runs.vertex;
    for (size_t layer = begin; layer < end; layer++) {
        uint32_t highest = 0;
        for (size_t i = run[layer] * lattice->corners; i < run[layer + 1] * lattice->corners; i++)
            highest = vertex[i] > highest ? vertex[i] : highest;
        reach->span[layer] = 0;
        while (lattice->layers.first[layer + reach->span[layer] + 1] <= highest)
            reach->span[layer]++;
    }
}

/* Maximum number of rows in use at the same time. */
static size_t rows_in_use(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_layers *layers = &lattice->layers;
    size_t behind[MOST_STAGES], most = 0;
    find_lags(lattice, behind);
    const size_t back = behind[lattice->corners + 1];
    for (size_t i = 0; i < layers->count + back; i++) {
        const size_t end = i + lattice->ring.span + BATCH, begin = i < back ? 0 : i - back;
        const size_t rows =
            layers->first[end < layers->count ? end : layers->count] - layers->first[begin];
        most = rows > most ? rows : most;
    }
    return most;
}

/* Replace neighbours by rows of the ring. They are less than `rows` away from their vertex, so they
 * are in the same turn of the ring, the previous one or the next. */
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

/* Replace the vertices of runs by rows of the ring, in the same way. */
static void turn_runs(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_lattice *lattice = context;
    const uint32_t *run = lattice->ring.run, rows = (uint32_t)lattice->ring.rows;
    for (size_t layer = begin; layer < end; layer++) {
        const uint32_t turn = lattice->layers.first[layer] / rows * rows;
        uint32_t *vertex = lattice->runs.vertex;
        for (size_t i = run[layer] * lattice->corners; i < run[layer + 1] * lattice->corners; i++) {
            const uint32_t row = vertex[i] - turn;
            vertex[i] = row >= rows ? row - rows : row;
        }
    }
}

/* ---- sections ------------------------------------------------------------------------------- */

/* The layers that a stage of a section processes; for the splat, layers of runs. */
struct range {
    size_t begin, end;
};

static size_t below(size_t layer, size_t distance) {
    return layer > distance ? layer - distance : 0;
}

static size_t above(const struct dcrf_lattice *lattice, size_t layer, size_t distance) {
    return lattice->layers.count - layer > distance ? layer + distance : lattice->layers.count;
}

/* The layers that the slice of some layers depends on, stage by stage. */
static void find_ranges(const struct dcrf_lattice *lattice, struct range sliced,
                        struct range *range) {
    const size_t corners = lattice->corners, span = lattice->ring.span;
    range[corners + 1] = sliced;
    range[corners] = (struct range){sliced.begin, above(lattice, sliced.end, span)};
    for (size_t stage = corners; stage-- > 0;) {
        const size_t reach = lattice->layers.reach[stage];
        range[stage] = (struct range){below(range[stage + 1].begin, reach),
                                      above(lattice, range[stage + 1].end, reach)};
    }
    range[0].begin = below(range[0].begin, span);
}

/* Cost of splatting and slicing a place, relative to a row of the blur. Measured with six corners,
 * two threads and rows of 20 floats: 6 to 10 ns and 4 to 7 ns, compared with 5 ns for a row. */
#define SPLAT_WORK 2
#define SLICE_WORK 1

static size_t places_of(const struct dcrf_lattice *lattice, struct range layers) {
    const uint32_t *run = lattice->ring.run;
    return lattice->runs.first[run[layers.end]] - lattice->runs.first[run[layers.begin]];
}

/* The work of slicing some layers, including everything that they depend on. */
static size_t work_on(const struct dcrf_lattice *lattice, struct range sliced) {
    struct range range[MOST_STAGES];
    find_ranges(lattice, sliced, range);
    size_t work =
        SPLAT_WORK * places_of(lattice, range[0]) + SLICE_WORK * places_of(lattice, sliced);
    for (size_t stage = 1; stage <= lattice->corners; stage++)
        work += lattice->layers.first[range[stage].end] - lattice->layers.first[range[stage].begin];
    return work;
}

/* The longest section that starts at layer `begin` and takes at most `most` work. */
static struct range longest_section(const struct dcrf_lattice *lattice, size_t begin, size_t most) {
    size_t end = begin, beyond = lattice->layers.count + 1;
    while (beyond - end > 1) {
        const size_t middle = end + (beyond - end) / 2;
        if (work_on(lattice, (struct range){begin, middle}) <= most)
            end = middle;
        else
            beyond = middle;
    }
    return (struct range){begin, end};
}

/* The number of sections needed so that none takes more than `most` work, or some number above
 * `most_sections`. `first`: where they begin, or NULL. */
static size_t divide(const struct dcrf_lattice *lattice, size_t most, size_t most_sections,
                     size_t *first) {
    size_t count = 0;
    for (size_t begin = 0; begin < lattice->layers.count && count <= most_sections; count++) {
        const struct range section = longest_section(lattice, begin, most);
        if (section.end == begin)
            return most_sections + 1;
        if (first && count < most_sections)
            first[count] = begin;
        begin = section.end;
    }
    return count;
}

/* The smallest possible work of the largest of `count` sections, to within 1/300. */
static size_t largest_work(const struct dcrf_lattice *lattice, size_t count) {
    const size_t all = work_on(lattice, (struct range){0, lattice->layers.count});
    size_t few = all / count, enough = all;
    while (count > 1 && enough - few > all / count / 300 + 1) {
        const size_t middle = few + (enough - few) / 2;
        if (divide(lattice, middle, count, NULL) <= count)
            enough = middle;
        else
            few = middle;
    }
    return enough;
}

static size_t most_sections(size_t threads) {
    return threads < DCRF_MOST_SECTIONS ? threads : DCRF_MOST_SECTIONS;
}

static void measure_divisions(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct dcrf_lattice *lattice = context;
    for (size_t count = begin; count < end; count++)
        lattice->ring.work[count] = count > 0 ? largest_work(lattice, count) : 0;
}

void dcrf_lattice_divide(const struct dcrf_lattice *lattice, size_t threads,
                         struct dcrf_lattice_sections *sections) {
    const struct dcrf_lattice_ring *ring = &lattice->ring;
    *sections = (struct dcrf_lattice_sections){.count = 1};
    if (ring->rows == 0)
        return;
    sections->work = ring->work[1];
    for (size_t count = 2; count <= most_sections(threads); count++) {
        const size_t work =
            count <= ring->divisions ? ring->work[count] : largest_work(lattice, count);
        if ((double)work <= SECTION_GAIN * (double)sections->work) {
            sections->work = work;
            sections->count = count;
        }
    }
    sections->count = divide(lattice, sections->work, sections->count, sections->first);
    sections->first[sections->count] = lattice->layers.count;
}

dcrf_status dcrf_lattice_ring_new(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                  dcrf_error *error) {
    struct dcrf_lattice_ring *ring = &lattice->ring;
    const size_t layers = lattice->layers.count;
    struct reach reach = {lattice, dcrf_allocate(layers, sizeof *reach.span)};
    ring->run = dcrf_allocate(layers + 1, sizeof *ring->run);
    if (!reach.span || !ring->run) {
        dcrf_release(reach.span);
        return dcrf_fail_memory(error, "the plan of a lattice");
    }
    find_runs(lattice);
    dcrf_parallel_for(pool, layers, LAYER_GRAIN, measure_spans, &reach);
    for (size_t i = 0; i < layers; i++)
        ring->span = reach.span[i] > ring->span ? reach.span[i] : ring->span;
    dcrf_release(reach.span);
    const size_t rows = rows_in_use(lattice);
    if (rows > lattice->vertices / 2)
        return DCRF_OK;
    ring->rows = rows;
    dcrf_parallel_for(pool, lattice->vertices, INDEX_GRAIN, turn_neighbours, lattice);
    dcrf_parallel_for(pool, layers, LAYER_GRAIN, turn_runs, lattice);
    ring->divisions = most_sections(dcrf_pool_threads(pool));
    dcrf_parallel_for(pool, ring->divisions + 1, 1, measure_divisions, lattice);
    return DCRF_OK;
}

/* ---- the sweep ------------------------------------------------------------------------------ */

struct sweep {
    const struct dcrf_lattice *lattice;
    struct dcrf_runs splat, slice;
    float *ring[2];
    /* Rows are stored in two pieces: first those of the first `first` floats, then the rest (if
     * any) from `last_pieces` on. */
    size_t first, last_pieces;
    struct range range[MOST_STAGES];
};

/* Clear `count` rows of a buffer. */
static void clear_rows(const struct sweep *sweep, float *ring, size_t row, size_t count) {
    const size_t first = sweep->first, rest = sweep->splat.width - first;
    memset(ring + row * first, 0, count * first * sizeof *ring);
    memset(ring + sweep->last_pieces + row * rest, 0, count * rest * sizeof *ring);
}

/* Clear the rows of the layers first .. last - 1, in two pieces if the ring wraps around. */
static void clear_layers(const struct sweep *sweep, size_t first, size_t last) {
    const uint32_t *begin_of = sweep->lattice->layers.first;
    const size_t rows = sweep->lattice->ring.rows;
    for (size_t begin = begin_of[first], end = begin_of[last]; begin < end;) {
        const size_t row = begin % rows;
        const size_t count = rows - row < end - begin ? rows - row : end - begin;
        clear_rows(sweep, sweep->ring[0], row, count);
        begin += count;
    }
}

/* A layer is cleared when the splat first comes within reach of it. */
static void splat_layer(const struct sweep *sweep, size_t layer) {
    const struct dcrf_lattice *lattice = sweep->lattice;
    const size_t layers = lattice->layers.count, far = layer + lattice->ring.span;
    const size_t first = layer == sweep->range[0].begin ? layer : far;
    const size_t last = far < layers ? far + 1 : layers;
    if (first < last)
        clear_layers(sweep, first, last);
    dcrf_dsp()->splat_ring(&sweep->splat, lattice->ring.run[layer], lattice->ring.run[layer + 1]);
}

/* One pass of the blur through one layer: in two pieces if the ring wraps around. */
static void blur_layer(const struct sweep *sweep, size_t axis, size_t layer) {
    const struct dcrf_lattice *lattice = sweep->lattice;
    const size_t rows = lattice->ring.rows, end = lattice->layers.first[layer + 1];
    for (size_t begin = lattice->layers.first[layer]; begin < end;) {
        const size_t row = begin % rows;
        const size_t count = rows - row < end - begin ? rows - row : end - begin;
        const struct dcrf_blur blur = {
            .neighbour = {dcrf_lattice_neighbours(lattice, axis) + 2 * (begin - row), NULL},
            .in = {sweep->ring[axis % 2], NULL},
            .out = sweep->ring[(axis + 1) % 2],
            .width = sweep->splat.width,
            .last_pieces = sweep->last_pieces,
            .centre = DCRF_LATTICE_CENTRE,
            .side = DCRF_LATTICE_SIDE};
        dcrf_dsp()->blur_ring(&blur, row, row + count);
        begin += count;
    }
}

static void work_on_layer(const struct sweep *sweep, size_t stage, size_t layer) {
    const struct dcrf_lattice *lattice = sweep->lattice;
    if (stage == 0)
        splat_layer(sweep, layer);
    else if (stage <= lattice->corners)
        blur_layer(sweep, stage - 1, layer);
    else
        dcrf_dsp()->slice_ring(&sweep->slice, lattice->ring.run[layer],
                               lattice->ring.run[layer + 1]);
}

static void sweep_section(const struct sweep *sweep) {
    const size_t last_stage = sweep->lattice->corners + 1;
    const struct range *range = sweep->range;
    size_t behind[MOST_STAGES];
    find_lags(sweep->lattice, behind);
    for (size_t i = range[0].begin; i < range[last_stage].end + behind[last_stage]; i += BATCH)
        for (size_t stage = 0; stage <= last_stage; stage++)
            for (size_t k = i; k < i + BATCH; k++)
                if (k >= range[stage].begin + behind[stage] && k < range[stage].end + behind[stage])
                    work_on_layer(sweep, stage, k - behind[stage]);
}

void dcrf_lattice_filter_section(const struct dcrf_lattice_filter *filter,
                                 const struct dcrf_lattice_sections *sections, size_t section) {
    const struct dcrf_lattice *lattice = filter->lattice;
    const size_t rows = lattice->ring.rows, width = filter->width, piece = dcrf_dsp()->ring_piece;
    float *scratch = filter->scratch;
    struct sweep sweep = {.lattice = lattice,
                          .ring = {scratch, scratch + dcrf_lines_of((rows + 1) * width)}};
    sweep.splat = dcrf_lattice_runs_of(lattice, width);
    sweep.first = piece ? width / piece * piece : width;
    sweep.splat.is_single = lattice->runs.count == lattice->base.variables;
    sweep.splat.last_pieces = sweep.last_pieces = (rows + 1) * sweep.first;
    for (size_t i = 0; i < 2; i++)
        clear_rows(&sweep, sweep.ring[i], rows, 1);
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
    find_ranges(lattice, (struct range){sections->first[section], sections->first[section + 1]},
                sweep.range);
    sweep_section(&sweep);
}

struct filtering {
    const struct dcrf_lattice_filter *filter;
    struct dcrf_lattice_sections sections;
};

static void filter_sections(void *context, size_t first, size_t last, size_t worker) {
    (void)worker;
    const struct filtering *filtering = context;
    for (size_t s = first; s < last; s++) {
        struct dcrf_lattice_filter own = *filtering->filter;
        own.scratch += s * dcrf_lattice_filter_floats(own.lattice, own.width, 1);
        dcrf_lattice_filter_section(&own, &filtering->sections, s);
    }
}

void dcrf_lattice_filter_ring(const struct dcrf_lattice_filter *filter) {
    struct filtering filtering = {.filter = filter};
    dcrf_lattice_divide(filter->lattice, dcrf_pool_threads(filter->pool), &filtering.sections);
    dcrf_parallel_for(filter->pool, filtering.sections.count, 1, filter_sections, &filtering);
}
