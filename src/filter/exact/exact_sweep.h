/* The sums over all kept pairs, for one floating-point type: included by exact_sums.c with REAL,
 * LINE (the struct), NAME (of a function or type), LOOPS, FEATURES and SCALE (of an operator)
 * defined.
 *
 * Channels are stored as planes, tile by tile. Products skip the channels that are zero throughout
 * a tile, which for a labelling are most. The contributions of two tiles to each other are summed
 * as REAL over DCRF_TILE variables, then over the tiles of a block, then as double. */

struct NAME(sweep) {
    const struct dcrf_exact *op;
    const struct pass *pass;
    size_t channels;
    REAL *planes;          /* for products, of the active channels only */
    struct active *active; /* one per tile */
    uint32_t *varying;     /* for lines: per tile, mask of the channels that are not constant */
    double *sums;
    REAL *scratch;         /* for all workers */
    const uint8_t *wanted; /* one per tile; NULL: all are wanted */
};

/* A worker's memory: kernel values of some pairs of tiles, and sums for the tiles of two blocks. */
struct NAME(worker) {
    REAL *kernel[DCRF_LINE_TILES];
    REAL *sums[2];
    unsigned touched[2]; /* tiles with sums */
    /* Planes of y and of results for the varying channels of a line, and a transposed kernel. */
    REAL *part, *part_out, *transposed;
};

static size_t NAME(worker_size)(size_t channels) {
    return DCRF_LINE_TILES * SQUARE + 2 * BLOCK_TILES * channels * DCRF_TILE +
           2 * (DCRF_LINE_TILES + 1) * channels * DCRF_TILE + SQUARE;
}

static struct NAME(worker) NAME(worker_of)(const struct NAME(sweep) * sweep, size_t number) {
    REAL *memory = sweep->scratch + number * NAME(worker_size)(sweep->channels);
    struct NAME(worker) worker = {.touched = {0, 0}};
    for (size_t k = 0; k < DCRF_LINE_TILES; k++, memory += SQUARE)
        worker.kernel[k] = memory;
    worker.sums[0] = memory;
    worker.sums[1] = memory + BLOCK_TILES * sweep->channels * DCRF_TILE;
    worker.part = worker.sums[1] + BLOCK_TILES * sweep->channels * DCRF_TILE;
    worker.part_out = worker.part + (DCRF_LINE_TILES + 1) * sweep->channels * DCRF_TILE;
    worker.transposed = worker.part_out + (DCRF_LINE_TILES + 1) * sweep->channels * DCRF_TILE;
    return worker;
}

/* The sums of tile k on a side, zeroed on first use. */
static REAL *NAME(sums_of)(const struct NAME(sweep) * sweep, struct NAME(worker) * worker,
                           size_t side, size_t k) {
    const size_t size = sweep->channels * DCRF_TILE;
    REAL *sums = worker->sums[side] + k * size;
    if (!(worker->touched[side] >> k & 1)) {
        memset(sums, 0, size * sizeof *sums);
        worker->touched[side] |= 1u << k;
    }
    return sums;
}

static void NAME(add_sums)(const struct NAME(sweep) * sweep, const struct NAME(worker) * worker,
                           size_t side, size_t block) {
    const size_t size = sweep->channels * DCRF_TILE;
    for (size_t k = 0; k < BLOCK_TILES; k++) {
        if (!(worker->touched[side] >> k & 1))
            continue;
        const REAL *from = worker->sums[side] + k * size;
        double *to = sweep->sums + (block * BLOCK_TILES + k) * size;
        for (size_t i = 0; i < size; i++)
            to[i] += (double)from[i];
    }
}

static const REAL *NAME(planes_of)(const struct NAME(sweep) * sweep, size_t tile) {
    return sweep->planes + tile * sweep->channels * DCRF_TILE;
}

static void NAME(find_values)(const struct dcrf_exact *op, size_t a, size_t b, bool is_scaled,
                              REAL *kernel) {
    const size_t size = op->metric.features * DCRF_TILE;
    LOOPS->values(&op->metric, FEATURES(op) + a * size, FEATURES(op) + b * size,
                  is_scaled ? SCALE(op) + a * DCRF_TILE : NULL,
                  is_scaled ? SCALE(op) + b * DCRF_TILE : NULL, kernel);
}

/* ---- products ------------------------------------------------------------------------------- */

/* Add kernel values times the channels of tile b to the sums of tile k on a side. */
static void NAME(multiply)(const struct NAME(sweep) * sweep, struct NAME(worker) * worker,
                           const REAL *kernel, size_t b, size_t side, size_t k) {
    const struct active *active = &sweep->active[b];
    if (active->count == 0)
        return;
    REAL *sums = NAME(sums_of)(sweep, worker, side, k);
    if (active->count == sweep->channels) {
        LOOPS->product(kernel, NAME(planes_of)(sweep, b), sums, sweep->channels);
        return;
    }
    REAL *part = worker->kernel[2];
    memset(part, 0, active->count * DCRF_TILE * sizeof *part);
    LOOPS->product(kernel, NAME(planes_of)(sweep, b), part, active->count);
    for (size_t i = 0; i < active->count; i++)
        for (size_t x = 0; x < DCRF_TILE; x++)
            sums[active->channel[i] * DCRF_TILE + x] += part[i * DCRF_TILE + x];
}

static void NAME(multiply_blocks)(void *context, size_t i, size_t j, size_t number) {
    const struct NAME(sweep) *sweep = context;
    const struct dcrf_exact *op = sweep->op;
    const uint64_t word = word_of(sweep->pass, dcrf_exact_word(op, i, j));
    if (word == 0)
        return;
    struct NAME(worker) worker = NAME(worker_of)(sweep, number);
    REAL *kernel = worker.kernel[0], *transposed = worker.kernel[1];
    const size_t other = i == j ? 0 : 1;
    for (size_t k = 0; k < BLOCK_TILES; k++)
        for (size_t l = i == j ? k : 0; l < BLOCK_TILES; l++) {
            if (!(word >> (k * BLOCK_TILES + l) & 1))
                continue;
            const size_t a = i * BLOCK_TILES + k, b = j * BLOCK_TILES + l;
            if (sweep->active[a].count == 0 && sweep->active[b].count == 0)
                continue;
            NAME(find_values)(op, a, b, false, kernel);
            NAME(multiply)(sweep, &worker, kernel, b, 0, k);
            if (a == b || sweep->active[a].count == 0)
                continue;
            LOOPS->transpose(kernel, transposed);
            NAME(multiply)(sweep, &worker, transposed, a, other, l);
        }
    NAME(add_sums)(sweep, &worker, 0, i);
    if (i != j)
        NAME(add_sums)(sweep, &worker, 1, j);
}

/* ---- the clipped line ----------------------------------------------------------------------- */

static bool NAME(is_wanted)(const struct NAME(sweep) * sweep, size_t tile) {
    return !sweep->wanted || sweep->wanted[tile];
}

/* The contribution of tile b to tile a only. */
static void NAME(line_one_way)(const struct NAME(sweep) * sweep, struct NAME(worker) * worker,
                               size_t a, REAL *out, size_t b) {
    NAME(find_values)(sweep->op, a, b, true, worker->kernel[0]);
    const struct LINE line = {.tiles = 1,
                              .channels = sweep->channels,
                              .kernel = {worker->kernel[0]},
                              .y = {NAME(planes_of)(sweep, a)},
                              .out = {out},
                              .y_b = NAME(planes_of)(sweep, b)};
    LOOPS->line(&line);
}

/* The channels that are constant in each of the tiles: F is a single number, so two tiles
 * contribute to each other F times the row and column sums of the kernel values. */
static void NAME(line_of_constants)(const struct NAME(sweep) * sweep, struct NAME(worker) * worker,
                                    const struct LINE *line, uint32_t varying) {
    REAL ones[DCRF_TILE];
    for (size_t x = 0; x < DCRF_TILE; x++)
        ones[x] = 1;
    for (size_t t = 0; t < line->tiles; t++) {
        REAL sums[2][DCRF_TILE] = {{0}};
        bool has_sums = false;
        for (size_t c = 0; c < sweep->channels; c++) {
            const REAL difference = line->y_b[c * DCRF_TILE] - line->y[t][c * DCRF_TILE];
            if (varying >> c & 1 || difference == 0)
                continue;
            if (!has_sums) {
                LOOPS->product(line->kernel[t], ones, sums[0], 1);
                LOOPS->transpose(line->kernel[t], worker->transposed);
                LOOPS->product(worker->transposed, ones, sums[1], 1);
                has_sums = true;
            }
            const REAL f = difference < -1 ? -1 : difference > 1 ? 1 : difference;
            for (size_t x = 0; x < DCRF_TILE; x++) {
                line->out[t][c * DCRF_TILE + x] += f * sums[0][x];
                line->out_b[c * DCRF_TILE + x] -= f * sums[1][x];
            }
        }
    }
}

/* Copy the planes of the channels in a mask to contiguous memory, or add them back. */
static void NAME(gather)(const REAL *from, uint32_t mask, REAL *to) {
    for (; mask != 0; mask &= mask - 1, to += DCRF_TILE)
        memcpy(to, from + (size_t)__builtin_ctz(mask) * DCRF_TILE, DCRF_TILE * sizeof *to);
}

static void NAME(scatter)(const REAL *from, uint32_t mask, REAL *to) {
    for (; mask != 0; mask &= mask - 1, from += DCRF_TILE)
        for (size_t x = 0; x < DCRF_TILE; x++)
            to[(size_t)__builtin_ctz(mask) * DCRF_TILE + x] += from[x];
}

/* Both directions between some tiles and tile b; `varying`: the channels that are not constant in
 * at least one of them. */
static void NAME(line_both_ways)(const struct NAME(sweep) * sweep, struct NAME(worker) * worker,
                                 const struct LINE *line, uint32_t varying) {
    const size_t count = (size_t)__builtin_popcount(varying), size = count * DCRF_TILE;
    if (count == sweep->channels) {
        LOOPS->line(line);
        return;
    }
    NAME(line_of_constants)(sweep, worker, line, varying);
    if (count == 0)
        return;
    struct LINE part = *line;
    part.channels = count;
    memset(worker->part_out, 0, (line->tiles + 1) * size * sizeof *worker->part_out);
    for (size_t t = 0; t < line->tiles; t++) {
        NAME(gather)(line->y[t], varying, worker->part + t * size);
        part.y[t] = worker->part + t * size;
        part.out[t] = worker->part_out + t * size;
    }
    NAME(gather)(line->y_b, varying, worker->part + line->tiles * size);
    part.y_b = worker->part + line->tiles * size;
    part.out_b = worker->part_out + line->tiles * size;
    LOOPS->line(&part);
    for (size_t t = 0; t < line->tiles; t++)
        NAME(scatter)(part.out[t], varying, line->out[t]);
    NAME(scatter)(part.out_b, varying, line->out_b);
}

/* All tiles of block i with tile l of block j, some at a time. */
static void NAME(line_tiles)(const struct NAME(sweep) * sweep, struct NAME(worker) * worker,
                             size_t i, size_t j, size_t l, uint64_t word) {
    const size_t b = j * BLOCK_TILES + l, other = i == j ? 0 : 1;
    const bool b_wanted = NAME(is_wanted)(sweep, b);
    uint32_t varying = sweep->varying[b];
    struct LINE line = {.channels = sweep->channels, .y_b = NAME(planes_of)(sweep, b)};
    for (size_t k = 0; k < (i == j ? l + 1 : BLOCK_TILES); k++) {
        const size_t a = i * BLOCK_TILES + k;
        const bool a_wanted = NAME(is_wanted)(sweep, a);
        if (!(word >> (k * BLOCK_TILES + l) & 1) || !(a_wanted || b_wanted))
            continue;
        if (a == b) { /* covers both directions */
            NAME(line_one_way)(sweep, worker, a, NAME(sums_of)(sweep, worker, 0, k), b);
        } else if (!a_wanted) {
            NAME(line_one_way)(sweep, worker, b, NAME(sums_of)(sweep, worker, other, l), a);
        } else if (!b_wanted) {
            NAME(line_one_way)(sweep, worker, a, NAME(sums_of)(sweep, worker, 0, k), b);
        }
    }
    for (size_t k = 0; k < (i == j ? l : BLOCK_TILES) && b_wanted; k++) {
        const size_t a = i * BLOCK_TILES + k;
        if (word >> (k * BLOCK_TILES + l) & 1 && NAME(is_wanted)(sweep, a)) {
            NAME(find_values)(sweep->op, a, b, true, worker->kernel[line.tiles]);
            line.kernel[line.tiles] = worker->kernel[line.tiles];
            varying |= sweep->varying[a];
            line.y[line.tiles] = NAME(planes_of)(sweep, a);
            line.out[line.tiles++] = NAME(sums_of)(sweep, worker, 0, k);
        }
        if (line.tiles == DCRF_LINE_TILES) {
            line.out_b = NAME(sums_of)(sweep, worker, other, l);
            NAME(line_both_ways)(sweep, worker, &line, varying);
            line.tiles = 0;
            varying = sweep->varying[b];
        }
    }
    if (line.tiles > 0) {
        line.out_b = NAME(sums_of)(sweep, worker, other, l);
        NAME(line_both_ways)(sweep, worker, &line, varying);
    }
}

static void NAME(line_blocks)(void *context, size_t i, size_t j, size_t number) {
    const struct NAME(sweep) *sweep = context;
    const struct dcrf_exact *op = sweep->op;
    const uint64_t word = word_of(sweep->pass, dcrf_exact_word(op, i, j));
    if (word == 0)
        return;
    struct NAME(worker) worker = NAME(worker_of)(sweep, number);
    for (size_t l = 0; l < BLOCK_TILES; l++)
        NAME(line_tiles)(sweep, &worker, i, j, l, word);
    NAME(add_sums)(sweep, &worker, 0, i);
    if (i != j)
        NAME(add_sums)(sweep, &worker, 1, j);
}

/* ---- a pass over all pairs ------------------------------------------------------------------ */

struct NAME(batch) {
    struct NAME(sweep) sweep;
    size_t first;    /* channel of the pass */
    uint8_t *wanted; /* sweep.wanted, writable */
};

static void NAME(pack)(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct NAME(batch) *batch = context;
    const struct NAME(sweep) *sweep = &batch->sweep;
    const struct pass *pass = sweep->pass;
    const size_t size = sweep->channels * DCRF_TILE;
    memset(sweep->sums + begin * size, 0, (end - begin) * size * sizeof(double));
    for (size_t t = begin; t < end; t++) {
        uint8_t wanted = 0;
        bool is_active[MOST_CHANNELS] = {false};
        for (size_t k = 0; k < DCRF_TILE; k++) {
            const size_t place = t * DCRF_TILE + k, a = sweep->op->order[place];
            const double factor = pass->is_line ? pass->factor : sweep->op->scale[place];
            const size_t row = a * pass->in_stride + batch->first;
            REAL *plane = sweep->planes + t * size + k;
            for (size_t c = 0; c < sweep->channels; c++) {
                const double value =
                    factor * (pass->in ? (double)pass->in[row + c] : pass->in_double[row + c]);
                plane[c * DCRF_TILE] = pass->is_line ? (REAL)(float)value : (REAL)value;
                is_active[c] |= pass->is_line || value != 0;
            }
            wanted |= pass->wanted ? pass->wanted[a] : 1;
        }
        if (batch->wanted)
            batch->wanted[t] = wanted;
        uint32_t varying = 0;
        for (size_t x = 0; x < size; x++)
            if (sweep->planes[t * size + x] != sweep->planes[t * size + x / DCRF_TILE * DCRF_TILE])
                varying |= (uint32_t)1 << x / DCRF_TILE;
        sweep->varying[t] = varying;
        struct active *active = &sweep->active[t];
        active->count = 0;
        for (size_t c = 0; c < sweep->channels; c++) {
            if (!is_active[c])
                continue;
            if (active->count < c)
                memcpy(sweep->planes + t * size + active->count * DCRF_TILE,
                       sweep->planes + t * size + c * DCRF_TILE, DCRF_TILE * sizeof(REAL));
            active->channel[active->count++] = (uint8_t)c;
        }
    }
}

static void NAME(unpack)(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct NAME(batch) *batch = context;
    const struct NAME(sweep) *sweep = &batch->sweep;
    const struct pass *pass = sweep->pass;
    for (size_t place = begin * DCRF_TILE;
         place < end * DCRF_TILE && place < sweep->op->base.variables; place++) {
        const size_t a = sweep->op->order[place], row = a * pass->out_stride + batch->first;
        const double factor = pass->is_line ? 1 : pass->factor * sweep->op->scale[place];
        const double *sums =
            sweep->sums + place / DCRF_TILE * sweep->channels * DCRF_TILE + place % DCRF_TILE;
        if (pass->wanted && !pass->wanted[a])
            continue;
        for (size_t c = 0; c < sweep->channels; c++) {
            const double value = factor * sums[c * DCRF_TILE];
            if (pass->out)
                pass->out[row + c] =
                    (float)(pass->accumulate ? (double)pass->out[row + c] + value : value);
            else
                pass->out_double[row + c] = value;
        }
    }
}

/* Planes, sums and the workers' memory. */
static bool NAME(take_memory)(struct NAME(batch) * batch, dcrf_workspace *workspace) {
    struct NAME(sweep) *sweep = &batch->sweep;
    const size_t numbers = sweep->channels * DCRF_TILE, workers = dcrf_workspace_threads(workspace);
    sweep->sums = dcrf_workspace_slot(workspace, &dcrf_operator_slot, sweep->op->tiles,
                                      numbers * (sizeof(double) + sizeof(REAL)) +
                                          sizeof(struct active) + sizeof(uint32_t) + 1);
    sweep->scratch = dcrf_workspace_slot(workspace, &dcrf_operator_slot2, workers,
                                         NAME(worker_size)(sweep->channels) * sizeof(REAL));
    if (!sweep->sums || !sweep->scratch)
        return false;
    sweep->planes = (REAL *)(sweep->sums + sweep->op->tiles * numbers);
    sweep->varying = (uint32_t *)(sweep->planes + sweep->op->tiles * numbers);
    sweep->active = (struct active *)(sweep->varying + sweep->op->tiles);
    batch->wanted = sweep->pass->wanted ? (uint8_t *)(sweep->active + sweep->op->tiles) : NULL;
    sweep->wanted = batch->wanted;
    return true;
}

static dcrf_status NAME(run)(const struct dcrf_exact *op, dcrf_workspace *workspace,
                             const struct pass *pass, dcrf_error *error) {
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    struct NAME(batch) batch = {.sweep = {.op = op, .pass = pass}};
    for (; batch.first < pass->channels; batch.first += batch.sweep.channels) {
        const size_t left = pass->channels - batch.first;
        batch.sweep.channels = left < MOST_CHANNELS ? left : MOST_CHANNELS;
        if (!NAME(take_memory)(&batch, workspace))
            return dcrf_fail_memory(error, "the exact operator");
        dcrf_parallel_for(pool, op->tiles, PACK_GRAIN, NAME(pack), &batch);
        const dcrf_status status = dcrf_exact_rounds(
            op, workspace, pass->is_line ? NAME(line_blocks) : NAME(multiply_blocks), &batch.sweep,
            error);
        if (status < 0)
            return status;
        dcrf_parallel_for(pool, op->tiles, PACK_GRAIN, NAME(unpack), &batch);
    }
    return DCRF_OK;
}
