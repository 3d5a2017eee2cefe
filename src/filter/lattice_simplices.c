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

/* Enter the corners of simplices, given by their keys. */
static dcrf_status enter_corners(const struct dcrf_code *code, const uint64_t *keys, size_t words,
                                 size_t count, struct dcrf_table *vertices, uint32_t *corner,
                                 dcrf_error *error) {
    const size_t corners = code->dimension + 1;
    uint64_t codes[BATCH * DCRF_MAX_CORNERS * 2];
    const size_t batch = BATCH * 2 / code->words; /* as many as fit */
    dcrf_status status = DCRF_OK;
    for (size_t s = 0; s < count && status == DCRF_OK; s += batch) {
        const size_t here = count - s < batch ? count - s : batch;
        for (size_t i = 0; i < here; i++)
            fill_corners(code, keys + (s + i) * words, codes + i * corners * code->words);
        status = dcrf_table_enter(vertices, codes, here * corners, corner + s * corners, error);
    }
    return status;
}

static dcrf_status enter_origin(const struct build *build, struct dcrf_table *vertices,
                                dcrf_error *error) {
    const float feature[DCRF_MAX_FEATURES][DCRF_EMBED_POINTS] = {{0}};
    struct dcrf_points points;
    uint64_t keys[DCRF_EMBED_POINTS * KEY_WORDS];
    uint32_t corner[DCRF_MAX_CORNERS];
    dcrf_embed_points(build->source->embedding, feature[0], &points);
    fill_keys(build, &points, keys);
    return enter_corners(build->source->code, keys, build->words, 1, vertices, corner, error);
}

static dcrf_status number_vertices(const struct build *build, struct dcrf_table *vertices,
                                   dcrf_error *error) {
    struct dcrf_simplices *simplices = build->simplices;
    const size_t corners = build->dimension + 1;
    const struct dcrf_code *code = build->source->code;
    simplices->corner = dcrf_allocate(simplices->count, corners * sizeof *simplices->corner);
    if (!simplices->corner)
        return dcrf_fail_memory(error, "the plan of a lattice");
    dcrf_status status =
        dcrf_table_new(vertices, code->words, NULL, 2 * simplices->count + corners, error);
    if (status == DCRF_OK)
        status = enter_corners(code, build->keys, build->words, simplices->count, vertices,
                               simplices->corner, error);
    if (status == DCRF_OK && build->source->has_origin)
        status = enter_origin(build, vertices, error);
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
        status = number_vertices(&build, vertices, error);
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

dcrf_status dcrf_simplices_order(struct dcrf_simplices *simplices, size_t variables, size_t corners,
                                 const uint32_t *number, size_t vertices, dcrf_error *error) {
    const size_t count = simplices->count;
    uint32_t *next = dcrf_allocate_zero(vertices + 1, sizeof *next);
    uint32_t *place = dcrf_allocate(count, sizeof *place); /* the lowest vertex first */
    uint32_t *ordered = dcrf_allocate(count, corners * sizeof *ordered);
    if (!next || !place || !ordered) {
        dcrf_release(next);
        dcrf_release(place);
        dcrf_release(ordered);
        return dcrf_fail_memory(error, "the plan of a lattice");
    }
    for (size_t s = 0; s < count; s++) {
        uint32_t lowest = UINT32_MAX, *corner = simplices->corner + s * corners;
        for (size_t k = 0; k < corners; k++) {
            corner[k] = number[corner[k]];
            lowest = corner[k] < lowest ? corner[k] : lowest;
        }
        place[s] = lowest;
        next[lowest + 1]++;
    }
    for (size_t v = 0; v < vertices; v++)
        next[v + 1] += next[v];
    for (size_t s = 0; s < count; s++) {
        place[s] = next[place[s]]++;
        dcrf_copy_corners(ordered + place[s] * corners, simplices->corner + s * corners, corners);
    }
    for (size_t a = 0; a < variables; a++)
        simplices->of[a] = place[simplices->of[a]];
    dcrf_release(simplices->corner);
    dcrf_release(next);
    dcrf_release(place);
    simplices->corner = ordered;
    return DCRF_OK;
}
