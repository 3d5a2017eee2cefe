/* The simplices of the variables, and the vertices that they touch.
 *
 * A simplex is told by the vertex of remainder 0 and the ranks of its coordinates, the axes along
 * which its corners follow each other: a code and some bits more, by which equal ones are found.
 * Variables near each other often share a simplex, so looking up simplices first saves most of the
 * work of looking up their corners.
 *
 * Chunks of variables are embedded in parallel, and each numbers its simplices for itself; the
 * chunks are then joined in their order, so nothing depends on the number of threads. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice.h"

#include <string.h>

/* Variables of a chunk. */
#define GRAIN 8192
/* Ranks in a word. */
#define RANK_BITS 5
#define RANKS_PER_WORD 12
#define RANK_WORDS ((DCRF_MAX_FEATURES + RANKS_PER_WORD - 1) / RANKS_PER_WORD)
#define KEY_WORDS (DCRF_CODE_WORDS + RANK_WORDS)
/* Simplices whose corners are looked up together. */
#define BATCH 32

struct chunk {
    dcrf_status status;
    size_t misfit; /* on DCRF_ERROR_SIZE: the variable that does not fit */
    size_t count;  /* of its simplices */
};

struct build {
    const struct dcrf_simplices_source *source;
    struct dcrf_simplices *simplices;
    size_t dimension;
    size_t words;   /* of the key of a simplex */
    uint64_t *keys; /* those of chunk c from GRAIN c on */
    struct chunk *chunks;
    struct dcrf_table *tables; /* one per worker */
};

/* ---- keys ----------------------------------------------------------------------------------- */

/* The keys of some points, one after the other: the code of the origin, then the ranks but for the
 * last. */
static void fill_keys(const struct build *build, const struct dcrf_points *points, uint64_t *keys) {
    const struct dcrf_code *code = build->source->code;
    const size_t words = build->words, d = build->dimension;
    memset(keys, 0, DCRF_EMBED_POINTS * words * sizeof *keys);
    for (size_t i = 0; i < d; i++) {
        const int32_t *origin = points->origin[i == 0 ? d : i - 1], *rank = points->rank[i];
        const size_t origin_word = code->word[i], rank_word = code->words + i / RANKS_PER_WORD;
        const unsigned rank_shift = RANK_BITS * (unsigned)(i % RANKS_PER_WORD);
        for (size_t p = 0; p < DCRF_EMBED_POINTS; p++) {
            keys[p * words + origin_word] |= (uint64_t)(origin[p] - code->lowest[i])
                                             << code->shift[i];
            keys[p * words + rank_word] |= (uint64_t)(uint32_t)rank[p] << rank_shift;
        }
    }
}

/* The codes of the corners of a simplex. */
static void fill_corners(const struct dcrf_code *code, const uint64_t *key, uint64_t *codes) {
    const size_t d = code->dimension, words = code->words;
    size_t axis[DCRF_MAX_CORNERS], others = 0;
    for (size_t i = 0; i < d; i++) {
        const uint64_t ranks = key[words + i / RANKS_PER_WORD];
        const size_t rank = ranks >> (RANK_BITS * (i % RANKS_PER_WORD)) & ((1u << RANK_BITS) - 1);
        axis[d - rank] = i;
        others += d - rank;
    }
    axis[d * (d + 1) / 2 - others] = d; /* the place that is left */
    codes[0] = key[0];
    if (words == 1) {
        for (size_t k = 0; k < d; k++)
            codes[k + 1] = codes[k] + code->step[axis[k]][0];
        return;
    }
    memcpy(codes, key, words * sizeof *codes);
    for (size_t k = 0; k < d; k++, codes += words)
        for (size_t i = 0; i < words; i++)
            codes[words + i] = codes[i] + code->step[axis[k]][i];
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* Rows from planes. */
static void copy_weights(const struct dcrf_points *points, size_t corners, size_t count,
                         float *weight) {
    for (size_t p = 0; p < count; p++)
        for (size_t k = 0; k < corners; k++)
            *weight++ = points->weight[k][p];
}

static dcrf_status embed_variables(const struct build *build, struct chunk *chunk,
                                   struct dcrf_table *table, size_t begin, size_t end) {
    const struct dcrf_simplices_source *source = build->source;
    struct dcrf_simplices *simplices = build->simplices;
    const size_t corners = build->dimension + 1;
    float feature[DCRF_MAX_FEATURES][DCRF_EMBED_POINTS] = {{0}};
    struct dcrf_points points;
    uint64_t keys[DCRF_EMBED_POINTS * KEY_WORDS];
    for (size_t a = begin; a < end; a += DCRF_EMBED_POINTS) {
        const size_t count = end - a < DCRF_EMBED_POINTS ? end - a : DCRF_EMBED_POINTS;
        dcrf_features_planes(source->features, a, count, feature[0], DCRF_EMBED_POINTS);
        const size_t fit = dcrf_embed_points(source->embedding, feature[0], &points);
        if (fit < count) {
            chunk->misfit = a + fit;
            return DCRF_ERROR_SIZE;
        }
        fill_keys(build, &points, keys);
        copy_weights(&points, corners, count, simplices->weight + a * corners);
        dcrf_table_enter(table, keys, count, simplices->of + a, NULL); /* there is room */
    }
    return DCRF_OK;
}

static void embed_chunk(void *context, size_t begin, size_t end, size_t worker) {
    const struct build *build = context;
    struct chunk *chunk = &build->chunks[begin / GRAIN];
    struct dcrf_table *table = &build->tables[worker];
    dcrf_table_restart(table, build->keys + begin * build->words);
    chunk->status = embed_variables(build, chunk, table, begin, end);
    chunk->count = table->count;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* Give the simplices of all chunks their numbers: their keys move up to the beginning. */
static dcrf_status join_chunks(const struct build *build, dcrf_error *error) {
    struct dcrf_simplices *simplices = build->simplices;
    const size_t n = build->source->features->variables, chunk_count = (n + GRAIN - 1) / GRAIN;
    struct dcrf_table table;
    size_t sum = 0;
    for (size_t c = 0; c < chunk_count; c++) {
        if (build->chunks[c].status < 0)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "the features of a kernel span too many sigmas for the lattice (at "
                             "variable %zu): use a larger sigma",
                             build->source->features->order
                                 ? (size_t)build->source->features->order[build->chunks[c].misfit]
                                 : build->chunks[c].misfit);
        sum += build->chunks[c].count;
    }
    dcrf_status status = dcrf_table_new(&table, build->words, build->keys, sum, error);
    uint32_t *number = dcrf_allocate(n < GRAIN ? n : GRAIN, sizeof *number);
    if (status == DCRF_OK && !number)
        status = dcrf_fail_memory(error, "the plan of a lattice");
    for (size_t c = 0; c < chunk_count && status == DCRF_OK; c++) {
        const size_t begin = c * GRAIN, end = n - begin < GRAIN ? n : begin + GRAIN;
        status = dcrf_table_enter(&table, build->keys + begin * build->words,
                                  build->chunks[c].count, number, error);
        for (size_t a = begin; a < end; a++)
            simplices->of[a] = number[simplices->of[a]];
    }
    simplices->count = table.count;
    dcrf_release(number);
    dcrf_table_clear(&table);
    return status;
}

/* ---- vertices ------------------------------------------------------------------------------- */

/* Vertices are divided into parts by what their codes hash to; each part has a table of its own,
 * and a thread that looks all of them up and passes over those of others. How they are numbered
 * does not matter: they are put in order afterwards. */
#define MOST_PART_BITS 3

struct part {
    struct dcrf_table table;
    dcrf_status status;
    dcrf_error error;
    size_t first; /* what its vertices are counted from, when all are there */
};

struct division {
    const struct build *build;
    struct part *parts;
    unsigned bits; /* 2^bits parts */
};

/* Move the codes of a part up to the front; returns how many there are, and where they were. */
static inline __attribute__((always_inline)) size_t
pick(uint64_t *codes, size_t count, size_t words, size_t own, unsigned bits, uint32_t *place) {
    size_t picked = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = 0;
        for (size_t w = 0; w < words; w++) {
            const uint64_t word = codes[i * words + w];
            hash = (hash + word) * 0x9e3779b97f4a7c15u;
            codes[picked * words + w] = word;
        }
        place[picked] = (uint32_t)i;
        picked += hash >> (64 - bits) == own;
    }
    return picked;
}

/* Enter the corners of simplices that belong to a part; their numbers in it, and its own in the
 * lower bits, go where `corner` is. */
static dcrf_status enter_corners(const struct division *division, size_t own, const uint64_t *keys,
                                 size_t count, uint32_t *corner) {
    const struct build *build = division->build;
    const struct dcrf_code *code = build->source->code;
    struct part *part = &division->parts[own];
    const size_t corners = code->dimension + 1, words = code->words;
    const unsigned bits = division->bits;
    uint64_t codes[BATCH * DCRF_MAX_CORNERS * 2];
    uint32_t number[BATCH * DCRF_MAX_CORNERS * 2], place[BATCH * DCRF_MAX_CORNERS * 2];
    const size_t batch = BATCH * 2 / words; /* as many as fit */
    dcrf_status status = DCRF_OK;
    for (size_t s = 0; s < count && status == DCRF_OK; s += batch) {
        const size_t here = count - s < batch ? count - s : batch;
        for (size_t i = 0; i < here; i++)
            fill_corners(code, keys + (s + i) * build->words, codes + i * corners * words);
        if (bits == 0) {
            status = dcrf_table_enter(&part->table, codes, here * corners, corner + s * corners,
                                      &part->error);
            continue;
        }
        const size_t picked = words == 1 ? pick(codes, here * corners, 1, own, bits, place)
                                         : pick(codes, here * corners, words, own, bits, place);
        status = dcrf_table_enter(&part->table, codes, picked, number, &part->error);
        for (size_t i = 0; i < picked && status == DCRF_OK; i++)
            corner[s * corners + place[i]] = number[i] << bits | (uint32_t)own;
    }
    return status;
}

static dcrf_status enter_origin(const struct division *division, size_t own) {
    const struct build *build = division->build;
    const float feature[DCRF_MAX_FEATURES][DCRF_EMBED_POINTS] = {{0}};
    struct dcrf_points points;
    uint64_t keys[DCRF_EMBED_POINTS * KEY_WORDS];
    uint32_t corner[DCRF_MAX_CORNERS];
    dcrf_embed_points(build->source->embedding, feature[0], &points);
    fill_keys(build, &points, keys);
    return enter_corners(division, own, keys, 1, corner);
}

/* All vertices of a part, each part from another simplex on, so that no two write numbers near each
 * other at the same time. */
static void enter_parts(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct division *division = context;
    const struct build *build = division->build;
    const struct dcrf_simplices *simplices = build->simplices;
    const size_t corners = build->dimension + 1, words = build->source->code->words;
    for (size_t own = begin; own < end; own++) {
        struct part *part = &division->parts[own];
        const size_t room = (2 * simplices->count >> division->bits) + corners;
        const size_t half[3] = {0, simplices->count * own >> division->bits, simplices->count};
        part->status = dcrf_table_new(&part->table, words, NULL, room, &part->error);
        for (size_t i = 2; i-- > 0 && part->status == DCRF_OK;)
            part->status =
                enter_corners(division, own, build->keys + half[i] * build->words,
                              half[i + 1] - half[i], simplices->corner + half[i] * corners);
        if (part->status == DCRF_OK && build->source->has_origin)
            part->status = enter_origin(division, own);
    }
}

static void count_on(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct division *division = context;
    uint32_t *corner = division->build->simplices->corner;
    const uint32_t mask = ((uint32_t)1 << division->bits) - 1;
    for (size_t i = begin; i < end; i++)
        corner[i] =
            (uint32_t)division->parts[corner[i] & mask].first + (corner[i] >> division->bits);
}

/* The vertices of all parts one after the other. */
static dcrf_status join_parts(const struct division *division, struct dcrf_table *vertices,
                              dcrf_pool *pool, dcrf_error *error) {
    const struct build *build = division->build;
    const size_t parts = (size_t)1 << division->bits, words = build->source->code->words;
    size_t count = 0;
    for (size_t i = 0; i < parts; i++) {
        struct part *part = &division->parts[i];
        if (part->status < 0) {
            if (error)
                *error = part->error;
            return part->status;
        }
        if (part->table.count > UINT32_MAX >> division->bits)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "a lattice of more than %zu vertices is too large",
                             parts * (part->table.count - 1));
        part->first = count;
        count += part->table.count;
    }
    if (parts == 1) {
        *vertices = division->parts[0].table;
        division->parts[0].table = (struct dcrf_table){0};
        return DCRF_OK;
    }
    *vertices = (struct dcrf_table){.words = words, .count = count, .room = count};
    vertices->keys = dcrf_allocate(count, words * sizeof *vertices->keys);
    if (!vertices->keys)
        return dcrf_fail_memory(error, "the vertices of a lattice");
    for (size_t i = 0; i < parts; i++) {
        const struct part *part = &division->parts[i];
        memcpy(vertices->keys + part->first * words, part->table.keys,
               part->table.count * words * sizeof *vertices->keys);
    }
    dcrf_parallel_for(pool, build->simplices->count * (build->dimension + 1), GRAIN, count_on,
                      (void *)division);
    return DCRF_OK;
}

static dcrf_status number_vertices(const struct build *build, struct dcrf_table *vertices,
                                   dcrf_workspace *workspace, dcrf_error *error) {
    struct dcrf_simplices *simplices = build->simplices;
    struct division division = {.build = build};
    while (!build->source->is_growing && division.bits < MOST_PART_BITS &&
           dcrf_workspace_threads(workspace) >> (division.bits + 1) > 0)
        division.bits++;
    const size_t parts = (size_t)1 << division.bits;
    dcrf_pool *pool = dcrf_workspace_pool(workspace);
    division.parts = dcrf_allocate_zero(parts, sizeof *division.parts);
    simplices->corner =
        dcrf_allocate(simplices->count, (build->dimension + 1) * sizeof *simplices->corner);
    dcrf_status status = DCRF_OK;
    if (!simplices->corner || !division.parts)
        status = dcrf_fail_memory(error, "the plan of a lattice");
    if (status == DCRF_OK) {
        dcrf_parallel_for(pool, parts, 1, enter_parts, &division);
        status = join_parts(&division, vertices, pool, error);
    }
    for (size_t i = 0; division.parts && i < parts; i++)
        dcrf_table_clear(&division.parts[i].table);
    dcrf_release(division.parts);
    return status;
}

static dcrf_status number_simplices(struct build *build, dcrf_workspace *workspace,
                                    dcrf_error *error) {
    const size_t n = build->source->features->variables;
    const size_t threads = dcrf_workspace_threads(workspace);
    dcrf_status status = DCRF_OK;
    build->tables = dcrf_allocate_zero(threads, sizeof *build->tables);
    if (!build->tables)
        return dcrf_fail_memory(error, "the plan of a lattice");
    for (size_t i = 0; i < threads && status == DCRF_OK; i++)
        status = dcrf_table_new(&build->tables[i], build->words, build->keys, n < GRAIN ? n : GRAIN,
                                error);
    if (status == DCRF_OK) {
        dcrf_parallel_for(dcrf_workspace_pool(workspace), n, GRAIN, embed_chunk, build);
        status = join_chunks(build, error);
    }
    for (size_t i = 0; i < threads; i++)
        dcrf_table_clear(&build->tables[i]);
    dcrf_release(build->tables);
    return status;
}

dcrf_status dcrf_simplices_new(struct dcrf_simplices *simplices, struct dcrf_table *vertices,
                               const struct dcrf_simplices_source *source,
                               dcrf_workspace *workspace, dcrf_error *error) {
    const size_t n = source->features->variables, d = source->features->dimension;
    struct build build = {.source = source, .simplices = simplices, .dimension = d};
    *simplices = (struct dcrf_simplices){0};
    build.words = source->code->words + (d + RANKS_PER_WORD - 1) / RANKS_PER_WORD;
    build.keys = dcrf_allocate(n, build.words * sizeof *build.keys);
    build.chunks = dcrf_allocate((n + GRAIN - 1) / GRAIN, sizeof *build.chunks);
    simplices->of = dcrf_allocate(n, sizeof *simplices->of);
    simplices->weight = dcrf_allocate(n, (d + 1) * sizeof *simplices->weight);
    dcrf_status status = DCRF_OK;
    if (!build.keys || !build.chunks || !simplices->of || !simplices->weight)
        status = dcrf_fail_memory(error, "the plan of a lattice");
    if (status == DCRF_OK)
        status = number_simplices(&build, workspace, error);
    if (status == DCRF_OK)
        status = number_vertices(&build, vertices, workspace, error);
    dcrf_release(build.keys);
    dcrf_release(build.chunks);
    if (status < 0)
        dcrf_simplices_clear(simplices);
    return status;
}

void dcrf_simplices_clear(struct dcrf_simplices *simplices) {
    dcrf_release(simplices->of);
    dcrf_release(simplices->corner);
    dcrf_release(simplices->weight);
    *simplices = (struct dcrf_simplices){0};
}

/* ---- the order ------------------------------------------------------------------------------ */

struct ordering {
    struct dcrf_simplices *simplices;
    size_t corners;
    const uint32_t *number;
    uint32_t *place; /* the lowest vertex first */
    uint32_t *ordered;
};

static void find_lowest(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct ordering *ordering = context;
    for (size_t s = begin; s < end; s++) {
        uint32_t lowest = UINT32_MAX;
        uint32_t *corner = ordering->simplices->corner + s * ordering->corners;
        for (size_t k = 0; k < ordering->corners; k++) {
            corner[k] = ordering->number[corner[k]];
            lowest = corner[k] < lowest ? corner[k] : lowest;
        }
        ordering->place[s] = lowest;
    }
}

static void renumber(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct ordering *ordering = context;
    uint32_t *corner = ordering->simplices->corner;
    for (size_t i = begin * ordering->corners; i < end * ordering->corners; i++)
        corner[i] = ordering->number[corner[i]];
}

void dcrf_simplices_renumber(struct dcrf_simplices *simplices, size_t corners,
                             const uint32_t *number, dcrf_pool *pool) {
    struct ordering ordering = {.simplices = simplices, .corners = corners, .number = number};
    dcrf_parallel_for(pool, simplices->count, GRAIN, renumber, &ordering);
}

static void copy_ordered(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct ordering *ordering = context;
    const size_t corners = ordering->corners;
    for (size_t s = begin; s < end; s++)
        dcrf_copy_corners(ordering->ordered + ordering->place[s] * corners,
                          ordering->simplices->corner + s * corners, corners);
}

static void find_places(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct ordering *ordering = context;
    uint32_t *of = ordering->simplices->of;
    for (size_t a = begin; a < end; a++)
        of[a] = ordering->place[of[a]];
}

dcrf_status dcrf_simplices_order(struct dcrf_simplices *simplices, size_t variables, size_t corners,
                                 const uint32_t *number, size_t vertices, dcrf_pool *pool,
                                 dcrf_error *error) {
    const size_t count = simplices->count;
    uint32_t *next = dcrf_allocate_zero(vertices + 1, sizeof *next);
    struct ordering ordering = {.simplices = simplices, .corners = corners, .number = number};
    ordering.place = dcrf_allocate(count, sizeof *ordering.place);
    ordering.ordered = dcrf_allocate(count, corners * sizeof *ordering.ordered);
    if (!next || !ordering.place || !ordering.ordered) {
        dcrf_release(next);
        dcrf_release(ordering.place);
        dcrf_release(ordering.ordered);
        return dcrf_fail_memory(error, "the plan of a lattice");
    }
    dcrf_parallel_for(pool, count, GRAIN, find_lowest, &ordering);
    for (size_t s = 0; s < count; s++)
        next[ordering.place[s] + 1]++;
    for (size_t v = 0; v < vertices; v++)
        next[v + 1] += next[v];
    for (size_t s = 0; s < count; s++)
        ordering.place[s] = next[ordering.place[s]]++;
    dcrf_parallel_for(pool, count, GRAIN, copy_ordered, &ordering);
    dcrf_parallel_for(pool, variables, GRAIN, find_places, &ordering);
    dcrf_release(simplices->corner);
    dcrf_release(next);
    dcrf_release(ordering.place);
    simplices->corner = ordering.ordered;
    return DCRF_OK;
}
