/* The simplices of the variables, and the vertices that they touch.
 *
 * A simplex is identified by the vertex of remainder 0 and the ranks of its coordinates, i.e. the
 * order of the axes along which its corners follow each other. Its key is therefore a vertex code
 * and some extra bits. Variables near each other often share a simplex, so looking up simplices
 * first saves most of the work of looking up their corners.
 *
 * Chunks of variables are embedded in parallel, and each numbers its own simplices, in a table that
 * fits in the L1 or L2 cache. Different chunks may have equal simplices; finding them would take
 * another lookup of every simplex in a large table, only to save the corners of a few. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice_set.h"

#include <string.h>

#define WORD_BITS 64
/* Maximum number of bits per rank, and the number of words for all ranks. */
#define MOST_RANK_BITS 5
#define RANK_WORDS (DCRF_MAX_FEATURES / (WORD_BITS / MOST_RANK_BITS) + 1)
#define KEY_WORDS (DCRF_CODE_WORDS + RANK_WORDS)
/* Simplices per batch of corner lookups. */
#define BATCH 128
/* Initial room for vertices per simplex; in practice there are 0.4 to 3. */
#define SET_ROOM 2

struct chunk {
    dcrf_status status;
    size_t misfit;  /* on DCRF_ERROR_SIZE: the first variable that does not fit */
    size_t entered; /* simplices whose corners are in the set */
};

struct build {
    const struct dcrf_simplices_source *source;
    struct dcrf_simplices *simplices;
    size_t dimension;
    size_t words;         /* of a simplex key, which holds */
    unsigned code_shift;  /* the code, shifted up by this, */
    unsigned rank_bits;   /* and ranks of this many bits, */
    size_t rank_word;     /* starting at this word, */
    size_t ranks_in_word; /* this many in each word */
    /* Constants to compute the code of an origin, for keys of one word: */
    uint64_t at_zero, factor[DCRF_MAX_CORNERS], inverse;
    unsigned inverse_shift;
    uint64_t *keys; /* the keys of a chunk start at the index of its first variable */
    struct chunk *chunks;
    struct dcrf_table *tables; /* one per worker */
    struct dcrf_code_set set;
};

/* ---- keys ----------------------------------------------------------------------------------- */

/* Exact division by d + 1: multiply by the inverse of its odd part modulo 2^64, and shift for the
 * power of two. */
static void prepare_division(struct build *build) {
    uint64_t divisor = build->dimension + 1;
    build->inverse = 1;
    for (; divisor % 2 == 0; divisor /= 2)
        build->inverse_shift++;
    for (int i = 0; i < 6; i++) /* each Newton iteration doubles the number of correct bits */
        build->inverse *= 2 - divisor * build->inverse;
}

/* d + 1 times a one-word code as a linear function of the coordinates: a constant and a factor per
 * coordinate. It does not overflow, since there is room for the ranks. */
static void prepare_sums(struct build *build) {
    const struct dcrf_code *code = build->source->code;
    const size_t d = build->dimension;
    for (size_t i = 0; i < d; i++) {
        const uint64_t unit = (uint64_t)1 << code->shift[i];
        build->at_zero -= (d + 1) * (uint64_t)code->lowest[i] * unit;
        if (i == 0 && !code->by_differences) {
            build->factor[d] += (d + 1) * unit;
        } else {
            build->factor[code->plus[i]] += unit;
            build->factor[code->minus[i]] -= unit;
        }
    }
}

/* Pack code and ranks into one word if they fit, as they usually do. */
static void lay_out_keys(struct build *build) {
    const struct dcrf_code *code = build->source->code;
    const size_t d = build->dimension;
    build->rank_bits = 1;
    while ((size_t)1 << build->rank_bits <= d)
        build->rank_bits++;
    const unsigned bits = build->rank_bits * (unsigned)d;
    if (code->words == 1 && bits < WORD_BITS &&
        code->mask[0] << code->shift[0] >> (WORD_BITS - bits) == 0) {
        build->words = 1;
        build->code_shift = bits;
        build->rank_word = 0;
        build->ranks_in_word = d;
        prepare_division(build);
        prepare_sums(build);
        return;
    }
    build->ranks_in_word = WORD_BITS / build->rank_bits;
    build->rank_word = code->words;
    build->words = code->words + (d + build->ranks_in_word - 1) / build->ranks_in_word;
}

/* The keys of points: the code of the origin, and all ranks except the last. Keys of one word;
 * specialized for the common dimensions. */
DCRF_FOR_CONSTANTS void fill_short_keys(const struct build *build, const struct dcrf_points *points,
                                        uint64_t *keys, size_t d) {
    const unsigned rank_bits = build->rank_bits, shift = build->inverse_shift;
    const unsigned code_shift = build->code_shift;
    const uint64_t inverse = build->inverse, at_zero = build->at_zero;
    uint64_t factor[DCRF_MAX_CORNERS]; /* local copy, which cannot alias the output */
    memcpy(factor, build->factor, (d + 1) * sizeof *factor);
    for (size_t p = 0; p < DCRF_EMBED_POINTS; p++) {
        uint64_t sum = at_zero, ranks = 0;
        for (size_t i = 0; i <= d; i++)
            sum += (uint64_t)(int64_t)points->origin[i][p] * factor[i];
        for (size_t i = 0; i < d; i++)
            ranks |= (uint64_t)(uint32_t)points->rank[i][p] << rank_bits * (unsigned)i;
        __asm__("" : "+r"(sum)); /* keep this scalar: few vector units can multiply 64 bits */
        keys[p] = (sum >> shift) * inverse << code_shift | ranks;
    }
}

static void fill_long_keys(const struct build *build, const struct dcrf_points *points,
                           uint64_t *keys) {
    const struct dcrf_code *code = build->source->code;
    const size_t d = build->dimension, words = build->words;
    memset(keys, 0, DCRF_EMBED_POINTS * words * sizeof *keys);
    for (size_t i = 0; i < d; i++) {
        const bool is_first = i == 0 && !code->by_differences;
        const int32_t *plus = points->origin[is_first ? d : code->plus[i]];
        const int32_t *minus = points->origin[code->minus[i]], *rank = points->rank[i];
        const size_t rank_word = build->rank_word + i / build->ranks_in_word;
        const unsigned rank_shift = build->rank_bits * (unsigned)(i % build->ranks_in_word);
        for (size_t p = 0; p < DCRF_EMBED_POINTS; p++) {
            const int64_t value =
                is_first ? plus[p] : (plus[p] - (int64_t)minus[p]) / (int64_t)(d + 1);
            keys[p * words + code->word[i]] |= (uint64_t)(value - code->lowest[i])
                                               << code->shift[i];
            keys[p * words + rank_word] |= (uint64_t)(uint32_t)rank[p] << rank_shift;
        }
    }
}

static void fill_keys(const struct build *build, const struct dcrf_points *points, uint64_t *keys) {
    if (build->words > 1)
        fill_long_keys(build, points, keys);
    else if (build->dimension == 5)
        fill_short_keys(build, points, keys, 5);
    else if (build->dimension == 2)
        fill_short_keys(build, points, keys, 2);
    else
        fill_short_keys(build, points, keys, build->dimension);
}

/* The codes of the corners of a simplex. */
DCRF_FOR_CONSTANTS void fill_corners_of(const struct build *build, const uint64_t *key,
                                        uint64_t *codes, size_t d, size_t words, size_t key_words) {
    const struct dcrf_code *code = build->source->code;
    const uint32_t mask = ((uint32_t)1 << build->rank_bits) - 1;
    uint64_t step[DCRF_MAX_CORNERS][DCRF_CODE_WORDS]; /* to the next corner */
    size_t others = 0;
    for (size_t i = 0; i <= d; i++) {
        const size_t w = key_words == 1 ? 0 : build->rank_word + i / build->ranks_in_word;
        const unsigned shift = build->rank_bits * (unsigned)(i % build->ranks_in_word);
        const size_t rank = i < d ? (size_t)(key[w] >> shift & mask) : d * (d + 1) / 2 - others;
        others += rank;
        for (size_t k = 0; k < words; k++)
            step[d - rank][k] = code->step[i][k];
    }
    for (size_t k = 0; k < words; k++) {
        uint64_t sum = key[k] >> build->code_shift;
        for (size_t i = 0; i <= d; i++) {
            codes[i * words + k] = sum;
            sum += step[i][k];
        }
    }
}

static void fill_corners(const struct build *build, const uint64_t *keys, size_t count,
                         uint64_t *codes) {
    const size_t d = build->dimension, words = build->source->code->words;
    for (size_t s = 0; s < count; s++, codes += (d + 1) * words)
        if (build->words == 1 && d == 5)
            fill_corners_of(build, keys + s, codes, 5, 1, 1);
        else if (build->words == 1 && d == 2)
            fill_corners_of(build, keys + s, codes, 2, 1, 1);
        else
            fill_corners_of(build, keys + s * build->words, codes, d, words, build->words);
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* Transpose planes to rows. */
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
        dcrf_table_enter(table, keys, count, simplices->of + a, NULL); /* cannot fail */
    }
    return DCRF_OK;
}

static void embed_chunk(void *context, size_t begin, size_t end, size_t worker) {
    const struct build *build = context;
    const size_t c = begin / build->simplices->chunk;
    struct dcrf_table *table = &build->tables[worker];
    dcrf_table_restart(table, build->keys + begin * build->words);
    build->chunks[c].status = embed_variables(build, &build->chunks[c], table, begin, end);
    build->simplices->first[c + 1] = table->count;
}

static dcrf_status find_simplices(struct build *build, dcrf_workspace *workspace,
                                  dcrf_error *error) {
    const struct dcrf_features *features = build->source->features;
    struct dcrf_simplices *simplices = build->simplices;
    const size_t threads = dcrf_workspace_threads(workspace);
    dcrf_status status = DCRF_OK;
    build->tables = dcrf_allocate_zero(threads, sizeof *build->tables);
    if (!build->tables)
        return dcrf_fail_memory(error, "the plan of a lattice");
    for (size_t i = 0; i < threads && status == DCRF_OK; i++)
        status =
            dcrf_table_new(&build->tables[i], build->words, build->keys, simplices->chunk, error);
    if (status == DCRF_OK &&
        !dcrf_parallel_while(workspace, features->variables, simplices->chunk, embed_chunk, build))
        status = dcrf_fail_interrupted(workspace, DCRF_BUILDING, error);
    for (size_t i = 0; i < threads; i++)
        dcrf_table_clear(&build->tables[i]);
    dcrf_release(build->tables);
    if (status < 0)
        return status;
    simplices->first[0] = 0;
    for (size_t c = 0; c < simplices->chunks; c++) {
        const struct chunk *chunk = &build->chunks[c];
        if (chunk->status < 0)
            return dcrf_fail(error, DCRF_ERROR_SIZE,
                             "the features of a kernel span too many sigmas for the lattice (at "
                             "variable %zu): use a larger sigma",
                             features->order ? (size_t)features->order[chunk->misfit]
                                             : chunk->misfit);
        simplices->first[c + 1] += simplices->first[c];
    }
    simplices->count = simplices->first[simplices->chunks];
    return DCRF_OK;
}

/* ---- vertices ------------------------------------------------------------------------------- */

static const uint64_t *keys_of(const struct build *build, size_t chunk) {
    return build->keys + chunk * build->simplices->chunk * build->words;
}

static uint32_t *corners_of(const struct build *build, size_t chunk) {
    return build->simplices->corner + build->simplices->first[chunk] * (build->dimension + 1);
}

static size_t count_of(const struct build *build, size_t chunk) {
    return build->simplices->first[chunk + 1] - build->simplices->first[chunk];
}

static void fill_origin(const struct build *build, uint64_t *keys) {
    const float feature[DCRF_MAX_FEATURES][DCRF_EMBED_POINTS] = {{0}};
    struct dcrf_points points;
    dcrf_embed_points(build->source->embedding, feature[0], &points);
    fill_keys(build, &points, keys);
}

/* The usual case, one-word codes: all threads insert into a shared set. Each chunk continues until
 * the set is full. */
static void enter_chunks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct build *build = context;
    const size_t corners = build->dimension + 1;
    uint64_t codes[BATCH * DCRF_MAX_CORNERS];
    for (size_t c = begin; c < end; c++) {
        const uint64_t *keys = keys_of(build, c);
        const size_t count = count_of(build, c);
        size_t *entered = &build->chunks[c].entered;
        for (; *entered < count; *entered += count - *entered < BATCH ? count - *entered : BATCH) {
            const size_t together = count - *entered < BATCH ? count - *entered : BATCH;
            fill_corners(build, keys + *entered * build->words, together, codes);
            if (!dcrf_code_set_enter(&build->set, codes, together * corners,
                                     corners_of(build, c) + *entered * corners))
                break;
        }
    }
}

struct move {
    const struct build *build;
    const uint32_t *moved;
};

static void move_chunks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct move *move = context;
    for (size_t c = begin; c < end; c++) {
        uint32_t *corner = corners_of(move->build, c);
        for (size_t i = 0; i < move->build->chunks[c].entered * (move->build->dimension + 1); i++)
            corner[i] = move->moved[corner[i]];
    }
}

static dcrf_status grow_set(struct build *build, dcrf_pool *pool, dcrf_error *error) {
    uint32_t *moved;
    const dcrf_status status = dcrf_code_set_grow(&build->set, &moved, error);
    struct move move = {build, moved};
    if (status == DCRF_OK)
        dcrf_parallel_for(pool, build->simplices->chunks, 1, move_chunks, &move);
    dcrf_release(moved);
    return status;
}

static bool is_entered(const struct build *build) {
    for (size_t c = 0; c < build->simplices->chunks; c++)
        if (build->chunks[c].entered < count_of(build, c))
            return false;
    return true;
}

static dcrf_status enter_set(struct build *build, struct dcrf_vertices *vertices, dcrf_pool *pool,
                             dcrf_error *error) {
    struct dcrf_simplices *simplices = build->simplices;
    const size_t corners = build->dimension + 1;
    uint64_t origin[DCRF_EMBED_POINTS * KEY_WORDS], codes[DCRF_MAX_CORNERS];
    uint32_t slots[DCRF_MAX_CORNERS];
    dcrf_status status =
        dcrf_code_set_new(&build->set, SET_ROOM * simplices->count + corners,
                          build->source->code->most, dcrf_pool_threads(pool) > 1, error);
    fill_origin(build, origin);
    fill_corners(build, origin, 1, codes);
    while (status == DCRF_OK && build->source->has_origin &&
           !dcrf_code_set_enter(&build->set, codes, corners, slots))
        status = grow_set(build, pool, error);
    while (status == DCRF_OK) {
        dcrf_parallel_for(pool, simplices->chunks, 1, enter_chunks, build);
        if (is_entered(build))
            break;
        status = grow_set(build, pool, error);
    }
    if (status == DCRF_OK)
        status = dcrf_code_set_list(&build->set, vertices, pool, error);
    dcrf_code_set_clear(&build->set);
    return status;
}

/* Codes of several words: insert into a table, sequentially. */
static dcrf_status enter_corners(const struct build *build, struct dcrf_table *table,
                                 const uint64_t *keys, size_t count, uint32_t *corner,
                                 dcrf_error *error) {
    const size_t corners = build->dimension + 1;
    uint64_t codes[DCRF_MAX_CORNERS * DCRF_CODE_WORDS];
    dcrf_status status = DCRF_OK;
    for (size_t s = 0; s < count && status == DCRF_OK; s++) {
        fill_corners(build, keys + s * build->words, 1, codes);
        status = dcrf_table_enter(table, codes, corners, corner + s * corners, error);
    }
    return status;
}

static dcrf_status enter_table(const struct build *build, struct dcrf_vertices *vertices,
                               dcrf_error *error) {
    const struct dcrf_simplices *simplices = build->simplices;
    const size_t corners = build->dimension + 1;
    struct dcrf_table table;
    uint64_t origin[DCRF_EMBED_POINTS * KEY_WORDS];
    uint32_t number[DCRF_MAX_CORNERS];
    dcrf_status status = dcrf_table_new(&table, build->source->code->words, NULL,
                                        SET_ROOM * simplices->count + corners, error);
    for (size_t c = 0; c < simplices->chunks && status == DCRF_OK; c++)
        status = enter_corners(build, &table, keys_of(build, c), count_of(build, c),
                               corners_of(build, c), error);
    fill_origin(build, origin);
    if (status == DCRF_OK && build->source->has_origin)
        status = enter_corners(build, &table, origin, 1, number, error);
    if (status == DCRF_OK) {
        *vertices =
            (struct dcrf_vertices){.count = table.count, .codes = table.keys, .names = table.count};
        table.keys = NULL;
    }
    dcrf_table_clear(&table);
    return status;
}

/* A set needs a value that is not a code, so codes must not use all bits of a word. */
static bool has_set(const struct dcrf_simplices_source *source) {
    const struct dcrf_code *code = source->code;
    return code->words == 1 && code->mask[0] << code->shift[0] >> 63 == 0;
}

static dcrf_status number_vertices(struct build *build, struct dcrf_vertices *vertices,
                                   dcrf_pool *pool, dcrf_error *error) {
    struct dcrf_simplices *simplices = build->simplices;
    simplices->corner =
        dcrf_allocate(simplices->count, (build->dimension + 1) * sizeof *simplices->corner);
    if (!simplices->corner)
        return dcrf_fail_memory(error, "the plan of a lattice");
    return has_set(build->source) ? enter_set(build, vertices, pool, error)
                                  : enter_table(build, vertices, error);
}

dcrf_status dcrf_simplices_new(struct dcrf_simplices *simplices, struct dcrf_vertices *vertices,
                               const struct dcrf_simplices_source *source,
                               dcrf_workspace *workspace, dcrf_error *error) {
    const size_t n = source->features->variables, d = source->features->dimension;
    struct build build = {.source = source, .simplices = simplices, .dimension = d};
    const size_t chunk = source->chunk < n ? source->chunk : n;
    *simplices = (struct dcrf_simplices){.chunk = chunk, .chunks = (n + chunk - 1) / chunk};
    *vertices = (struct dcrf_vertices){0};
    lay_out_keys(&build);
    build.keys = dcrf_allocate(n, build.words * sizeof *build.keys);
    build.chunks = dcrf_allocate_zero(simplices->chunks, sizeof *build.chunks);
    simplices->first = dcrf_allocate(simplices->chunks + 1, sizeof *simplices->first);
    simplices->of = dcrf_allocate(n, sizeof *simplices->of);
    simplices->weight = dcrf_allocate(n, (d + 1) * sizeof *simplices->weight);
    dcrf_status status = DCRF_OK;
    if (!build.keys || !build.chunks || !simplices->first || !simplices->of || !simplices->weight)
        status = dcrf_fail_memory(error, "the plan of a lattice");
    if (status == DCRF_OK)
        status = find_simplices(&build, workspace, error);
    if (status == DCRF_OK)
        status = number_vertices(&build, vertices, dcrf_workspace_pool(workspace), error);
    dcrf_release(build.keys);
    dcrf_release(build.chunks);
    if (status < 0)
        dcrf_simplices_clear(simplices);
    return status;
}

void dcrf_simplices_clear(struct dcrf_simplices *simplices) {
    dcrf_release(simplices->first);
    dcrf_release(simplices->of);
    dcrf_release(simplices->corner);
    dcrf_release(simplices->weight);
    *simplices = (struct dcrf_simplices){0};
}

struct renumbering {
    uint32_t *corner;
    size_t corners;
    const uint32_t *number;
};

static void renumber(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct renumbering *renumbering = context;
    uint32_t *corner = renumbering->corner;
    for (size_t i = begin * renumbering->corners; i < end * renumbering->corners; i++)
        corner[i] = renumbering->number[corner[i]];
}

void dcrf_simplices_renumber(struct dcrf_simplices *simplices, size_t corners,
                             const uint32_t *number, dcrf_pool *pool) {
    struct renumbering renumbering = {simplices->corner, corners, number};
    dcrf_parallel_rows(pool, simplices->count, renumber, &renumbering);
}
