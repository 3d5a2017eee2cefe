/* The convolution of a grid, tile by tile.
 *
 * A tile is a range of columns and lines. It is swept from its first line to its last: lines are
 * convolved along x into a ring buffer that holds as many as one step along y needs, and each step
 * convolves the ring along y, DCRF_CONVOLVE_ROWS lines at once. The ring stays in the L2 cache, so
 * every value is read from memory once and written once. Lines within a radius of a tile are
 * convolved along x again, which costs little if tiles are tall. A third axis takes a separate
 * pass, through a buffer.
 *
 * Each output is the same sum in the same order for any tiling. Only the ordered filter omits bins
 * tile by tile, so its tiles do not depend on the number of threads. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/grid/grid.h"

#include <string.h>

/* Size limit of a tile's ring. */
#define RING_BYTES ((size_t)400 << 10)
/* Prefetch distance in lines, ahead of the line being convolved along x. */
#define LINES_AHEAD 2
/* Minimum number of lines in a tile, absolute and in multiples of the radius: lines near the edge
 * of a tile are convolved along x twice. */
#define FEWEST_LINES 64
#define FEWEST_RADII 4
/* If that gives too few tiles for the threads, tiles get narrower, down to this many columns and
 * bytes per line. */
#define FEWEST_COLUMNS 32
#define LEAST_LINE_BYTES ((size_t)1 << 9)
/* Tiles per thread, for load balancing. */
#define TILES_PER_THREAD 4
/* Tiles of the ordered filter, whatever the number of threads, and the most lines of one. Smaller
 * tiles take as long in all: more lines are convolved twice, but more bins are omitted. */
#define ORDERED_TILES 64
#define ORDERED_LINES 128
/* Columns whose outputs are scaled or read while they are in the L1 cache. */
#define CHUNK 16

struct sweep {
    struct dcrf_grid_filter filter;
    const struct dcrf_dsp *dsp;
    size_t columns, lines; /* per tile */
    size_t ring_lines, ring_pitch;
    float *between; /* input of the third-axis pass; NULL: no third axis */
    struct scratch *scratch;
};

/* Memory of a worker. */
struct scratch {
    const float **rows;
    float *ring;
    float *zeros;   /* a line of the ring, used for lines beyond the border; shared */
    float *made;    /* rows of a line that are computed rather than read from the input */
    float *outputs; /* DCRF_CONVOLVE_ROWS x CHUNK rows */
    float *table;
    struct dcrf_grid_bins bins;
    size_t first_bin, width;
};

struct tile {
    size_t x, columns, y, lines, z;
};

static size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* dsp->scale, but for any width. */
static void scale_rows(const struct dcrf_dsp *dsp, const struct dcrf_scaling *all, size_t rows) {
    struct dcrf_scaling block = *all;
    for (size_t at = 0; at < all->width; at += DCRF_DSP_WIDTH) {
        block.width = smaller(all->width - at, DCRF_DSP_WIDTH);
        dsp->scale(&block, rows);
        block.in += DCRF_DSP_WIDTH;
        block.out += DCRF_DSP_WIDTH;
    }
}

static size_t variable_at(const struct dcrf_grid_plan *op, size_t x, size_t y, size_t z) {
    return (z * op->shape.size[1] + y) * op->shape.size[0] + x;
}

/* ---- the normalization ---------------------------------------------------------------------- */

/* The columns, in a range of lines, where the scale is op->inner.scale: there it goes into the
 * factor of the convolution, and only the other columns are scaled variable by variable. */
struct flat {
    float scale;
    size_t begin, end; /* counted from x */
};

static size_t limit(size_t x, size_t least, size_t most) {
    return smaller(larger(x, least), most) - least;
}

static struct flat find_flat(const struct dcrf_grid_plan *op, size_t x, size_t columns, size_t y,
                             size_t lines, size_t z, size_t layers) {
    const struct dcrf_grid_inner *inner = &op->inner;
    if (!op->scale)
        return (struct flat){.scale = 1, .begin = 0, .end = columns};
    if (y < inner->begin[1] || y + lines > inner->end[1] || z < inner->begin[2] ||
        z + layers > inner->end[2])
        return (struct flat){.scale = 1, .begin = 0, .end = 0};
    return (struct flat){.scale = inner->scale,
                         .begin = limit(inner->begin[0], x, x + columns),
                         .end = limit(inner->end[0], x, x + columns)};
}

/* ---- along x -------------------------------------------------------------------------------- */

/* Compute the rows begin .. end - 1, counted from `variable`, scaled relative to the convolution's
 * factor. */
static void make_rows(const struct sweep *sweep, size_t variable, size_t begin, size_t end,
                      float factor, const struct scratch *scratch) {
    const struct dcrf_grid_filter *filter = &sweep->filter;
    if (begin >= end) /* always the case without normalization, when there are no scales */
        return;
    const struct dcrf_scaling scaling = {.in = filter->in + (variable + begin) * filter->stride,
                                         .in_stride = filter->stride,
                                         .scale = filter->op->scale + variable + begin,
                                         .factor = 1 / factor,
                                         .out = scratch->made + begin * scratch->width,
                                         .out_stride = scratch->width,
                                         .width = scratch->width};
    scale_rows(sweep->dsp, &scaling, end - begin);
}

/* Set scratch->rows to the rows within reach of a tile's columns on line y, computing them if
 * necessary. Returns the factor of their convolution. */
static float gather_rows(const struct sweep *sweep, const struct tile *tile, size_t y,
                         const struct scratch *scratch) {
    const struct dcrf_grid_filter *filter = &sweep->filter;
    const struct dcrf_grid_plan *op = filter->op;
    const size_t radius = op->radius[0];
    const size_t begin = tile->x < radius ? 0 : tile->x - radius;
    const size_t end = smaller(tile->x + tile->columns + radius, op->shape.size[0]);
    const size_t variable = variable_at(op, begin, y, tile->z);
    const size_t count = end - begin, width = scratch->width;
    struct flat flat = {.scale = 1, .begin = 0, .end = 0};
    if (filter->ordered) {
        dcrf_grid_bins_fill(&scratch->bins, filter->ordered, op->scale, variable, count,
                            scratch->first_bin, width, scratch->made);
    } else {
        flat = find_flat(op, begin, count, y, 1, tile->z, 1);
        make_rows(sweep, variable, 0, flat.begin, flat.scale, scratch);
        make_rows(sweep, variable, flat.end, count, flat.scale, scratch);
    }
    const size_t before = radius - (tile->x - begin);
    const float **rows = scratch->rows + before;
    for (size_t j = 0; j < before; j++)
        scratch->rows[j] = scratch->zeros;
    for (size_t j = 0; j < flat.begin; j++)
        rows[j] = scratch->made + j * width;
    for (size_t j = flat.begin; j < flat.end; j++)
        rows[j] = filter->in + (variable + j) * filter->stride;
    for (size_t j = flat.end; j < count; j++)
        rows[j] = scratch->made + j * width;
    for (size_t j = before + count; j < tile->columns + 2 * radius + DCRF_CONVOLVE_ROWS; j++)
        scratch->rows[j] = scratch->zeros;
    return flat.scale;
}

/* Convolve a line along x. Meanwhile, prefetch a later line of the input and the output line to be
 * written next, unless there is a third axis. */
static void convolve_line(const struct sweep *sweep, const struct tile *tile, size_t y,
                          const struct scratch *scratch, float *out) {
    const struct dcrf_grid_filter *filter = &sweep->filter;
    const struct dcrf_grid_plan *op = filter->op;
    const size_t later = smaller(y + LINES_AHEAD, op->shape.size[1] - 1);
    const size_t output = y < op->radius[1] ? 0 : y - op->radius[1];
    const bool asks = !filter->ordered && !sweep->between;
    const float factor = gather_rows(sweep, tile, y, scratch);
    struct dcrf_convolve convolve = {.in = scratch->rows,
                                     .tap = op->taps[0],
                                     .radius = op->radius[0],
                                     .out = out,
                                     .out_step = scratch->width,
                                     .rows = tile->columns,
                                     .floats = scratch->width,
                                     .factor = factor};
    if (asks) {
        convolve.read_soon = filter->in + variable_at(op, tile->x, later, tile->z) * filter->stride;
        convolve.written_soon =
            filter->out + variable_at(op, tile->x, output, tile->z) * filter->stride;
        convolve.floats_soon = tile->columns * filter->stride;
    }
    sweep->dsp->convolve(&convolve);
}

/* ---- along the other axes ------------------------------------------------------------------- */

/* Outputs of the last pass: lines `pitch` variables apart, starting at (x, y, z). */
struct outputs {
    size_t x, y, z;
    size_t variable, columns, lines, pitch;
};

/* Scale the convolved rows, or evaluate them into the ordered filter's output. */
static void finish(const struct sweep *sweep, const struct outputs *outputs,
                   const struct scratch *scratch) {
    const struct dcrf_grid_filter *filter = &sweep->filter;
    const float *scale = filter->op->scale;
    const size_t width = scratch->width;
    for (size_t q = 0; q < outputs->lines; q++) {
        const size_t variable = outputs->variable + q * outputs->pitch;
        const float *in = scratch->outputs + q * CHUNK * width;
        if (filter->ordered) {
            dcrf_grid_bins_read(&scratch->bins, filter->ordered, scale, variable, outputs->columns,
                                scratch->first_bin, width, in);
            continue;
        }
        const struct dcrf_scaling scaling = {.in = in,
                                             .in_stride = width,
                                             .scale = scale ? scale + variable : NULL,
                                             .factor = filter->factor,
                                             .out = filter->out + variable * filter->stride,
                                             .out_stride = filter->stride,
                                             .width = width,
                                             .accumulate = filter->accumulate};
        scale_rows(sweep->dsp, &scaling, outputs->columns);
    }
}

/* Convolve and then finish the columns begin .. end - 1 of the last pass, chunk by chunk. */
static void convolve_chunks(const struct sweep *sweep, const struct dcrf_convolve *given,
                            const struct outputs *outputs, size_t begin, size_t end,
                            const struct scratch *scratch) {
    const size_t width = scratch->width;
    struct dcrf_convolve convolve = *given;
    convolve.out = scratch->outputs;
    convolve.out_step = CHUNK * width;
    for (size_t x = begin; x < end; x += CHUNK) {
        struct outputs chunk = *outputs;
        chunk.variable += x;
        chunk.columns = smaller(end - x, CHUNK);
        convolve.in_offset = x * width;
        convolve.floats = chunk.columns * width;
        sweep->dsp->convolve(&convolve);
        finish(sweep, &chunk, scratch);
    }
}

/* The last pass for some lines: convolve scratch->rows from `first` on. */
static void convolve_last(const struct sweep *sweep, size_t axis, size_t first,
                          const struct outputs *outputs, const struct scratch *scratch) {
    const struct dcrf_grid_filter *filter = &sweep->filter;
    const size_t width = scratch->width;
    struct dcrf_convolve convolve = {.in = scratch->rows + first,
                                     .tap = filter->op->taps[axis],
                                     .radius = filter->op->radius[axis],
                                     .rows = outputs->lines,
                                     .factor = 1};
    struct flat flat = {.scale = 1, .begin = 0, .end = 0};
    if (!filter->ordered && filter->stride == width)
        flat =
            find_flat(filter->op, outputs->x, outputs->columns, outputs->y,
                      axis == 1 ? outputs->lines : 1, outputs->z, axis == 2 ? outputs->lines : 1);
    convolve_chunks(sweep, &convolve, outputs, 0, flat.begin, scratch);
    convolve_chunks(sweep, &convolve, outputs, flat.end, outputs->columns, scratch);
    if (flat.begin == flat.end)
        return;
    convolve.out = filter->out + (outputs->variable + flat.begin) * width;
    convolve.out_step = outputs->pitch * width;
    convolve.in_offset = flat.begin * width;
    convolve.floats = (flat.end - flat.begin) * width;
    convolve.factor = filter->factor * flat.scale;
    convolve.accumulate = filter->accumulate;
    sweep->dsp->convolve(&convolve);
}

static float *ring_line(const struct sweep *sweep, const struct scratch *scratch, size_t y) {
    return scratch->ring + y % sweep->ring_lines * sweep->ring_pitch;
}

/* Convolve a tile along x and y, for scratch->width bins or channels. */
static void sweep_tile(const struct sweep *sweep, const struct tile *tile,
                       const struct scratch *scratch) {
    const struct dcrf_grid_plan *op = sweep->filter.op;
    const size_t radius = op->radius[1], height = op->shape.size[1], width = scratch->width;
    size_t next = tile->y < radius ? 0 : tile->y - radius; /* line to convolve along x */
    for (size_t y = tile->y; y < tile->y + tile->lines; y += DCRF_CONVOLVE_ROWS) {
        const size_t needed = smaller(y + DCRF_CONVOLVE_ROWS + radius, height);
        for (; next < needed; next++)
            convolve_line(sweep, tile, next, scratch, ring_line(sweep, scratch, next));
        for (size_t j = 0; j < 2 * radius + DCRF_CONVOLVE_ROWS; j++) {
            const size_t line = y + j - radius; /* wraps around to a large value before the start */
            scratch->rows[j] = line < height ? ring_line(sweep, scratch, line) : scratch->zeros;
        }
        const struct outputs outputs = {.x = tile->x,
                                        .y = y,
                                        .z = tile->z,
                                        .variable = variable_at(op, tile->x, y, tile->z),
                                        .columns = tile->columns,
                                        .lines =
                                            smaller(tile->y + tile->lines - y, DCRF_CONVOLVE_ROWS),
                                        .pitch = op->shape.size[0]};
        if (!sweep->between) {
            convolve_last(sweep, 1, 0, &outputs, scratch);
            continue;
        }
        const struct dcrf_convolve convolve = {.in = scratch->rows,
                                               .tap = op->taps[1],
                                               .radius = radius,
                                               .out = sweep->between + outputs.variable * width,
                                               .out_step = outputs.pitch * width,
                                               .rows = outputs.lines,
                                               .floats = outputs.columns * width,
                                               .factor = 1};
        sweep->dsp->convolve(&convolve);
    }
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* Convolve the bins used by variables within reach of a tile, block by block. */
static void sweep_ordered(const struct sweep *sweep, const struct tile *tile,
                          struct scratch *scratch) {
    const struct dcrf_grid_plan *op = sweep->filter.op;
    const size_t *radius = op->radius, *size = op->shape.size;
    const size_t x = tile->x < radius[0] ? 0 : tile->x - radius[0];
    const size_t y = tile->y < radius[1] ? 0 : tile->y - radius[1];
    dcrf_grid_bins_find(&scratch->bins, sweep->filter.ordered, variable_at(op, x, y, tile->z),
                        smaller(tile->x + tile->columns + radius[0], size[0]) - x,
                        smaller(tile->y + tile->lines + radius[1], size[1]) - y, size[0],
                        scratch->table);
    if (scratch->bins.count == 1)
        return; /* F is zero between equal values */
    const size_t padded = dcrf_bin_row(scratch->bins.count);
    for (size_t first = 0; first < padded; first += scratch->width) {
        scratch->first_bin = first;
        scratch->width = smaller(padded - first, DCRF_DSP_WIDTH);
        sweep_tile(sweep, tile, scratch);
    }
}

static void sweep_tiles(void *context, size_t begin, size_t end, size_t worker) {
    const struct sweep *sweep = context;
    const size_t *size = sweep->filter.op->shape.size;
    const size_t across = divide_up(size[0], sweep->columns);
    const size_t down = divide_up(size[1], sweep->lines);
    for (size_t i = begin; i < end; i++) {
        struct tile tile = {.x = i % across * sweep->columns,
                            .y = i / across % down * sweep->lines,
                            .z = i / (across * down)};
        tile.columns = smaller(size[0] - tile.x, sweep->columns);
        tile.lines = smaller(size[1] - tile.y, sweep->lines);
        if (sweep->filter.ordered && !sweep->between)
            sweep_ordered(sweep, &tile, &sweep->scratch[worker]);
        else
            sweep_tile(sweep, &tile, &sweep->scratch[worker]);
    }
}

/* Convolve strips of lines along the third axis. */
static void convolve_depth(void *context, size_t begin, size_t end, size_t worker) {
    const struct sweep *sweep = context;
    const struct scratch *scratch = &sweep->scratch[worker];
    const struct dcrf_grid_plan *op = sweep->filter.op;
    const size_t *size = op->shape.size, radius = op->radius[2];
    const size_t across = divide_up(size[0], sweep->columns);
    for (size_t i = begin; i < end; i++) {
        const size_t x = i % across * sweep->columns, y = i / across;
        for (size_t j = 0; j < size[2] + 2 * radius + DCRF_CONVOLVE_ROWS; j++) {
            const size_t z = j - radius; /* wraps around to a large value before the start */
            scratch->rows[j] = z < size[2]
                                   ? sweep->between + variable_at(op, x, y, z) * scratch->width
                                   : scratch->zeros;
        }
        for (size_t z = 0; z < size[2]; z += DCRF_CONVOLVE_ROWS) {
            const struct outputs outputs = {.x = x,
                                            .y = y,
                                            .z = z,
                                            .variable = variable_at(op, x, y, z),
                                            .columns = smaller(size[0] - x, sweep->columns),
                                            .lines = smaller(size[2] - z, DCRF_CONVOLVE_ROWS),
                                            .pitch = size[0] * size[1]};
            convolve_last(sweep, 2, z, &outputs, scratch);
        }
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Choose the size of the tiles. */
static void choose_tiles(struct sweep *sweep, size_t width, size_t threads) {
    const struct dcrf_grid_plan *op = sweep->filter.op;
    const size_t *size = op->shape.size, unit = DCRF_CONVOLVE_ROWS;
    sweep->ring_lines = 2 * op->radius[1] + unit;
    const size_t fitting = RING_BYTES / (sweep->ring_lines * width * sizeof(float));
    const size_t narrowest = larger(FEWEST_COLUMNS, LEAST_LINE_BYTES / (width * sizeof(float)));
    const size_t fewest = larger(FEWEST_LINES, FEWEST_RADII * op->radius[1]);
    const size_t most_down = larger(size[1] / fewest, 1);
    const size_t all = sweep->filter.ordered ? ORDERED_TILES
                       : threads > 1         ? TILES_PER_THREAD * threads
                                             : 1;
    const size_t tiles = divide_up(all, size[2]);
    size_t across = divide_up(size[0], larger(fitting, 2 * unit));
    if (across * most_down < tiles)
        across = larger(across, smaller(divide_up(tiles, most_down), size[0] / narrowest));
    sweep->columns = divide_up(divide_up(size[0], across), unit) * unit;
    size_t down = smaller(divide_up(tiles, across), most_down);
    if (sweep->filter.ordered)
        down = larger(down, divide_up(size[1], larger(ORDERED_LINES, fewest)));
    sweep->lines = divide_up(divide_up(size[1], down), unit) * unit;
    /* Lines of the ring start an odd number of cache lines apart, so that they fall into different
     * sets of the L1 cache. */
    const size_t line_floats = DCRF_ALIGNMENT / sizeof(float);
    sweep->ring_pitch = (divide_up(sweep->columns * width, line_floats) | 1) * line_floats;
}

static dcrf_status take_memory(struct sweep *sweep, size_t width, dcrf_workspace *workspace,
                               dcrf_error *error) {
    const struct dcrf_grid_plan *op = sweep->filter.op;
    const size_t *size = op->shape.size, *radius = op->radius;
    const size_t workers = dcrf_workspace_threads(workspace);
    const size_t bins = sweep->filter.ordered ? sweep->filter.ordered->bins : 0;
    const size_t along_x = sweep->columns + 2 * radius[0], along_z = size[2] + 2 * radius[2];
    const size_t rows = larger(larger(along_x, along_z), 2 * radius[1]) + DCRF_CONVOLVE_ROWS;
    const size_t bytes[] = {dcrf_align(rows * sizeof(float *)),
                            dcrf_align(sweep->ring_lines * sweep->ring_pitch * sizeof(float)),
                            dcrf_align(along_x * width * sizeof(float)),
                            dcrf_align(DCRF_CONVOLVE_ROWS * CHUNK * width * sizeof(float)),
                            dcrf_align(bins * dcrf_bin_row(bins) * sizeof(float))};
    const size_t each =
        dcrf_align(sizeof(struct scratch)) + bytes[0] + bytes[1] + bytes[2] + bytes[3] + bytes[4];
    const size_t line = dcrf_align(sweep->ring_pitch * sizeof(float));
    char *memory = dcrf_workspace_slot(workspace, &dcrf_operator_slot2, workers, each + line);
    if (op->shape.axes > 2)
        sweep->between = dcrf_workspace_slot(workspace, &dcrf_operator_slot, op->base.variables,
                                             width * sizeof(float));
    if (!memory || (op->shape.axes > 2 && !sweep->between))
        return dcrf_fail_memory(error, "a grid convolution");
    sweep->scratch = (struct scratch *)(void *)memory;
    memory += workers * dcrf_align(sizeof(struct scratch));
    float *zeros = (float *)(void *)memory;
    memset(zeros, 0, line);
    memory += line;
    for (size_t i = 0; i < workers; i++) {
        struct scratch *scratch = &sweep->scratch[i];
        scratch->rows = (const float **)(void *)memory;
        scratch->zeros = zeros;
        scratch->ring = (float *)(void *)(memory += bytes[0]);
        scratch->made = (float *)(void *)(memory += bytes[1]);
        scratch->outputs = (float *)(void *)(memory += bytes[2]);
        scratch->table = (float *)(void *)(memory += bytes[3]);
        memory += bytes[4];
        scratch->width = width;
        scratch->first_bin = 0;
        if (sweep->filter.ordered)
            dcrf_grid_bins_all(&scratch->bins, sweep->filter.ordered);
    }
    return DCRF_OK;
}

static bool run(struct sweep *sweep, dcrf_workspace *workspace) {
    const size_t *size = sweep->filter.op->shape.size;
    const size_t across = divide_up(size[0], sweep->columns);
    return dcrf_parallel_while(workspace, across * divide_up(size[1], sweep->lines) * size[2], 1,
                               sweep_tiles, sweep) &&
           (!sweep->between ||
            dcrf_parallel_while(workspace, across * size[1], 1, convolve_depth, sweep));
}

dcrf_status dcrf_grid_convolve(const struct dcrf_grid_filter *filter, dcrf_workspace *workspace,
                               dcrf_error *error) {
    struct sweep sweep = {.filter = *filter, .dsp = dcrf_dsp()};
    const size_t threads = dcrf_workspace_threads(workspace);
    const size_t padded = filter->ordered ? dcrf_bin_row(filter->ordered->bins) : filter->width;
    const size_t width = filter->ordered ? smaller(padded, DCRF_DSP_WIDTH) : padded;
    choose_tiles(&sweep, width, threads);
    const dcrf_status status = take_memory(&sweep, width, workspace, error);
    if (status < 0)
        return status;
    bool goes_on = true;
    if (!sweep.between)
        goes_on = run(&sweep, workspace);
    /* All bins, block by block. */
    for (size_t first = 0; sweep.between && goes_on && first < padded; first += width) {
        for (size_t i = 0; i < threads; i++) {
            sweep.scratch[i].first_bin = first;
            sweep.scratch[i].width = smaller(padded - first, width);
        }
        goes_on = run(&sweep, workspace);
    }
    return goes_on ? DCRF_OK : dcrf_fail_interrupted(workspace, "filtering by a grid", error);
}
