/* Runs of several variables: the variables of a band, ordered by simplex.
 *
 * A splat then reads the row of a variable once, sums all corners in registers while the simplex
 * stays the same, and adds the sums to rows of vertices. A slice does the reverse.
 *
 * If the bands are squares of a picture, small squares already give most of the benefit: in a
 * grainy photograph at 80/13, squares of 32 x 32 pixels have 1.77 pixels per run, the whole picture
 * has 2.03, and 1024 pixels along its rows have 1.43. A lattice with a ring (lattice_ring.c) has
 * one band, splat layer by layer. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Simplices per task, without bands. */
#define SIMPLEX_GRAIN 4096
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
/* How far back in the sorted list to look for an equal simplex of another chunk. */
#define SEARCHED_BACK 32
/* Prefetch distance in simplices. */
#define SIMPLICES_AHEAD 16

/* ---- the order ------------------------------------------------------------------------------ */

/* Simplices are ordered by their lowest vertices; the variables of a simplex get consecutive
 * places. */
struct builder {
    const struct dcrf_lattice *lattice;
    struct dcrf_lattice_runs *runs;
    const struct dcrf_simplices *simplices;
    uint32_t *lowest; /* vertex of each simplex */
    uint32_t *next;   /* number of variables of each simplex, then the place of the next one */
    uint32_t *lists;  /* two per worker, each as long as a band */
    float *weight;    /* of a band, per worker */
    uint64_t *sorted; /* with a single band: sorted simplices, with their lowest vertices in the
                       * upper half */
    struct piece *pieces;
};

/* Do two simplices have the same corners? */
static bool is_same(const struct builder *builder, size_t one, size_t other) {
    const size_t corners = builder->lattice->corners;
    const uint32_t *corner = builder->simplices->corner;
    uint32_t differences = 0;
    for (size_t k = 0; k < corners; k++)
        differences |= corner[one * corners + k] ^ corner[other * corners + k];
    return differences == 0;
}

static size_t chunk_end(const struct builder *builder, size_t chunk) {
    const size_t n = builder->lattice->base.variables, begin = chunk * builder->simplices->chunk;
    return n - begin < builder->simplices->chunk ? n : begin + builder->simplices->chunk;
}

static void measure_chunks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    const struct dcrf_simplices *simplices = builder->simplices;
    const size_t corners = builder->lattice->corners;
    for (size_t c = begin; c < end; c++) {
        const size_t first = simplices->first[c], last = chunk_end(builder, c);
        for (size_t s = first; s < simplices->first[c + 1]; s++) {
            const uint32_t *corner = simplices->corner + s * corners;
            uint32_t lowest = corner[0];
            for (size_t k = 1; k < corners; k++)
                lowest = corner[k] < lowest ? corner[k] : lowest;
            builder->lowest[s] = lowest;
            builder->next[s] = 0;
        }
        for (size_t i = c * simplices->chunk; i < last; i++)
            builder->next[first + simplices->of[i]]++;
    }
}

/* Is a sorted simplex equal to the previous one? */
static bool is_joined(const struct builder *builder, const uint64_t *sorted) {
    return sorted[-1] >> 32 == sorted[0] >> 32 &&
           is_same(builder, (uint32_t)sorted[-1], (uint32_t)sorted[0]);
}

/* Prefetch the data of a sorted simplex. */
static void ask_for(const struct builder *builder, uint64_t sorted) {
    const size_t s = (uint32_t)sorted;
    __builtin_prefetch(builder->simplices->corner + s * builder->lattice->corners);
    __builtin_prefetch(builder->next + s);
}

/* Assign places to the simplices in a list, or to sorted ones, equal neighbours of which are
 * joined; runs start at `run` and variables at `place`. */
DCRF_FOR_CONSTANTS void lay_out(const struct builder *builder, const uint32_t *list,
                                const uint64_t *sorted, size_t count, size_t run, size_t place) {
    const struct dcrf_lattice_runs *runs = builder->runs;
    const size_t corners = builder->lattice->corners;
    for (size_t i = 0; i < count; i++) {
        const size_t s = list ? list[i] : (uint32_t)sorted[i], variables = builder->next[s];
        if (!list && i + SIMPLICES_AHEAD < count)
            ask_for(builder, sorted[i + SIMPLICES_AHEAD]);
        if (list || i == 0 || !is_joined(builder, sorted + i)) {
            runs->first[run] = (uint32_t)place;
            dcrf_copy_corners(runs->vertex + run * corners,
                              builder->simplices->corner + s * corners, corners);
            run++;
        }
        builder->next[s] = (uint32_t)place;
        place += variables;
    }
}

/* Put the variables of a chunk and their weights in their places, with variables counted from
 * `origin`. */
static void place_variables(const struct builder *builder, size_t chunk, const float *weight,
                            size_t origin) {
    const struct dcrf_simplices *simplices = builder->simplices;
    const struct dcrf_lattice_runs *runs = builder->runs;
    const size_t corners = builder->lattice->corners, end = chunk_end(builder, chunk);
    uint32_t *next = builder->next + simplices->first[chunk];
    for (size_t a = chunk * simplices->chunk; a < end; a++, weight += corners) {
        const size_t place = next[simplices->of[a]]++;
        runs->variable[place] = (uint32_t)(a - origin);
        dcrf_copy_corners(runs->weight + place * corners, weight, corners);
    }
}

/* ---- a band for each chunk ------------------------------------------------------------------ */

/* Radix sort of the simplices of a band by their lowest vertices, least significant digit first.
 * `list` has room for two lists; the first is the result. */
static void order_band(const struct builder *builder, size_t band, uint32_t *list) {
    const size_t first = builder->simplices->first[band];
    const size_t count = builder->simplices->first[band + 1] - first;
    const uint32_t *lowest = builder->lowest;
    const unsigned bits = dcrf_bits_of(builder->lattice->vertices);
    const unsigned digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    const unsigned digit_bits = (bits + digits - 1) / digits;
    const uint32_t mask = ((uint32_t)1 << digit_bits) - 1;
    uint32_t *from = digits % 2 == 0 ? list : list + count;
    uint32_t *to = digits % 2 == 0 ? list + count : list;
    for (size_t i = 0; i < count; i++)
        from[i] = (uint32_t)(first + i);
    for (unsigned digit = 0; digit < digits; digit++) {
        const unsigned shift = digit * digit_bits;
        uint32_t next[DIGITS + 1], *other = from;
        memset(next, 0, (mask + 2) * sizeof *next);
        for (size_t i = 0; i < count; i++)
            next[(lowest[first + i] >> shift & mask) + 1]++;
        for (size_t i = 0; i < mask; i++)
            next[i + 1] += next[i];
        for (size_t i = 0; i < count; i++)
            to[next[lowest[from[i]] >> shift & mask]++] = from[i];
        from = to;
        to = other;
    }
}

static void make_bands(void *context, size_t first_band, size_t last_band, size_t worker) {
    const struct builder *builder = context;
    const struct dcrf_simplices *simplices = builder->simplices;
    const size_t corners = builder->lattice->corners;
    uint32_t *list = builder->lists + worker * 2 * simplices->chunk;
    float *weight = builder->weight + worker * simplices->chunk * corners;
    measure_chunks(context, first_band, last_band, worker);
    for (size_t band = first_band; band < last_band; band++) {
        const size_t first = simplices->first[band], begin = band * simplices->chunk;
        memcpy(weight, builder->runs->weight + begin * corners,
               (chunk_end(builder, band) - begin) * corners * sizeof *weight);
        order_band(builder, band, list);
        lay_out(builder, list, NULL, simplices->first[band + 1] - first, first, begin);
        place_variables(builder, band, weight, begin);
        builder->runs->band[band] = (uint32_t)first;
    }
}

/* ---- one band ------------------------------------------------------------------------------- */

/* A range of the sorted list of simplices. */
struct piece {
    size_t begin, end;
    size_t run, place; /* numbers of runs and places, then the first ones */
};

/* Move equal simplices together, among those with the same lowest vertex. */
static void join_same(const struct builder *builder, uint64_t *sorted, size_t count) {
    for (size_t i = 2; i < count; i++) {
        const size_t stop = i > SEARCHED_BACK ? i - SEARCHED_BACK : 0;
        size_t j = i;
        while (j > stop && !is_same(builder, (uint32_t)sorted[j - 1], (uint32_t)sorted[i]))
            j--;
        if (j == stop)
            continue;
        const uint64_t own = sorted[i];
        memmove(sorted + j + 1, sorted + j, (i - j) * sizeof *sorted);
        sorted[j] = own;
    }
}

/* Pieces begin and end where the lowest vertex changes. */
static void measure_pieces(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    uint64_t *sorted = builder->sorted;
    struct piece *piece = &builder->pieces[begin / SIMPLEX_GRAIN];
    while (begin > 0 && begin < end && sorted[begin] >> 32 == sorted[begin - 1] >> 32)
        begin++;
    *piece = (struct piece){.begin = begin, .end = begin};
    while (piece->end < end) {
        size_t i = piece->end + 1;
        while (i < builder->simplices->count && sorted[i] >> 32 == sorted[i - 1] >> 32)
            i++;
        if (i - piece->end > 2)
            join_same(builder, sorted + piece->end, i - piece->end);
        for (size_t j = piece->end; j < i; j++) {
            if (j + SIMPLICES_AHEAD < builder->simplices->count)
                ask_for(builder, sorted[j + SIMPLICES_AHEAD]);
            piece->run += j == piece->end || !is_joined(builder, sorted + j);
            piece->place += builder->next[(uint32_t)sorted[j]];
        }
        piece->end = i;
    }
}

static void lay_out_piece(void *context, size_t begin, size_t end, size_t worker) {
    (void)end;
    (void)worker;
    const struct builder *builder = context;
    const struct piece *piece = &builder->pieces[begin / SIMPLEX_GRAIN];
    lay_out(builder, NULL, builder->sorted + piece->begin, piece->end - piece->begin, piece->run,
            piece->place);
}

static void place_chunks(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    const struct dcrf_simplices *simplices = builder->simplices;
    for (size_t c = begin; c < end; c++)
        place_variables(builder, c,
                        simplices->weight + c * simplices->chunk * builder->lattice->corners, 0);
}

static void list_some(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct builder *builder = context;
    for (size_t s = begin; s < end; s++)
        builder->sorted[s] = (uint64_t)builder->lowest[s] << 32 | s;
}

/* Returns the number of runs, or 0 if out of memory. */
static size_t order_all(struct builder *builder, dcrf_pool *pool) {
    const size_t count = builder->simplices->count;
    const size_t pieces = (count + SIMPLEX_GRAIN - 1) / SIMPLEX_GRAIN;
    const unsigned bits = dcrf_bits_of(builder->lattice->vertices);
    struct piece sum = {0};
    builder->pieces = dcrf_allocate(pieces, sizeof *builder->pieces);
    builder->sorted = dcrf_allocate(count, sizeof *builder->sorted);
    if (!builder->pieces || !builder->sorted)
        return 0;
    dcrf_parallel_for(pool, builder->simplices->chunks, 1, measure_chunks, builder);
    dcrf_parallel_for(pool, count, SIMPLEX_GRAIN, list_some, builder);
    if (!dcrf_sort(&builder->sorted, count, 32, 32 + bits, pool))
        return 0;
    dcrf_parallel_for(pool, count, SIMPLEX_GRAIN, measure_pieces, builder);
    for (struct piece *piece = builder->pieces; piece < builder->pieces + pieces; piece++) {
        const struct piece measured = *piece;
        piece->run = sum.run;
        piece->place = sum.place;
        sum.run += measured.run;
        sum.place += measured.place;
    }
    return sum.run;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static dcrf_status fill_runs(struct builder *builder, bool has_bands, dcrf_pool *pool,
                             dcrf_error *error) {
    const struct dcrf_lattice *lattice = builder->lattice;
    const struct dcrf_simplices *simplices = builder->simplices;
    struct dcrf_lattice_runs *runs = builder->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    runs->band = dcrf_allocate(runs->band_count + 1, sizeof *runs->band);
    if (!runs->band || !builder->lowest || !builder->next || !builder->lists || !builder->weight)
        return dcrf_fail_memory(error, "the plan of a lattice");
    runs->count = has_bands ? simplices->count : order_all(builder, pool);
    runs->variable = dcrf_allocate(n, sizeof *runs->variable);
    if (!has_bands)
        runs->weight = dcrf_allocate(n, corners * sizeof *runs->weight);
    runs->first = dcrf_allocate(runs->count + 1, sizeof *runs->first);
    runs->vertex = dcrf_allocate(runs->count, corners * sizeof *runs->vertex);
    if (runs->count == 0 || !runs->variable || !runs->weight || !runs->first || !runs->vertex)
        return dcrf_fail_memory(error, "the plan of a lattice");
    if (has_bands) {
        dcrf_parallel_for(pool, runs->band_count, 1, make_bands, builder);
    } else {
        dcrf_parallel_for(pool, simplices->count, SIMPLEX_GRAIN, lay_out_piece, builder);
        dcrf_parallel_for(pool, simplices->chunks, 1, place_chunks, builder);
        runs->band[0] = 0;
    }
    runs->first[runs->count] = (uint32_t)n;
    runs->band[runs->band_count] = (uint32_t)runs->count;
    return DCRF_OK;
}

static dcrf_status make_runs(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                             bool has_bands, dcrf_pool *pool, dcrf_error *error) {
    struct builder builder = {.lattice = lattice, .runs = &lattice->runs, .simplices = simplices};
    const size_t count = simplices->count, threads = dcrf_pool_threads(pool);
    dcrf_lattice_bands_init(lattice, has_bands ? simplices->chunk : lattice->base.variables);
    builder.lowest = dcrf_allocate(count, sizeof *builder.lowest);
    builder.next = dcrf_allocate(count, sizeof *builder.next);
    const size_t own = has_bands ? threads * simplices->chunk : 0;
    builder.lists = dcrf_allocate(own, 2 * sizeof *builder.lists);
    builder.weight = dcrf_allocate(own, lattice->corners * sizeof *builder.weight);
    if (has_bands) { /* they are permuted in place */
        lattice->runs.weight = simplices->weight;
        simplices->weight = NULL;
    }
    const dcrf_status status = fill_runs(&builder, has_bands, pool, error);
    dcrf_release(builder.lowest);
    dcrf_release(builder.next);
    dcrf_release(builder.lists);
    dcrf_release(builder.weight);
    dcrf_release(builder.sorted);
    dcrf_release(builder.pieces);
    return status == DCRF_OK && has_bands ? dcrf_lattice_sectors_new(lattice, pool, error) : status;
}

/* Recover the simplices of the chunks from runs of a single band; `of` holds runs at first. */
static void divide_into_chunks(const struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                               size_t *last_chunk, uint32_t *number) {
    const size_t n = lattice->base.variables, corners = lattice->corners;
    for (size_t a = 0; a < n; a++) {
        const size_t chunk = a / simplices->chunk, run = simplices->of[a];
        if (a % simplices->chunk == 0)
            simplices->first[chunk] = simplices->count;
        if (last_chunk[run] != chunk + 1) {
            last_chunk[run] = chunk + 1;
            number[run] = (uint32_t)(simplices->count - simplices->first[chunk]);
            dcrf_copy_corners(simplices->corner + simplices->count++ * corners,
                              lattice->runs.vertex + run * corners, corners);
        }
        simplices->of[a] = number[run];
    }
    simplices->first[simplices->chunks] = simplices->count;
}

static dcrf_status undo_runs(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                             size_t chunk, dcrf_error *error) {
    struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t n = lattice->base.variables, corners = lattice->corners;
    size_t *last_chunk = dcrf_allocate_zero(runs->count, sizeof *last_chunk);
    uint32_t *number = dcrf_allocate(runs->count, sizeof *number);
    *simplices = (struct dcrf_simplices){.chunk = chunk < n ? chunk : n};
    simplices->chunks = (n + simplices->chunk - 1) / simplices->chunk;
    simplices->first = dcrf_allocate(simplices->chunks + 1, sizeof *simplices->first);
    simplices->of = dcrf_allocate(n, sizeof *simplices->of);
    simplices->corner = dcrf_allocate(n, corners * sizeof *simplices->corner);
    simplices->weight = dcrf_allocate(n, corners * sizeof *simplices->weight);
    const bool is_done = last_chunk && number && simplices->first && simplices->of &&
                         simplices->corner && simplices->weight;
    for (size_t run = 0; is_done && run < runs->count; run++)
        for (size_t place = runs->first[run]; place < runs->first[run + 1]; place++) {
            const size_t a = runs->variable[place];
            simplices->of[a] = (uint32_t)run;
            dcrf_copy_corners(simplices->weight + a * corners, runs->weight + place * corners,
                              corners);
        }
    if (is_done)
        divide_into_chunks(lattice, simplices, last_chunk, number);
    else
        dcrf_simplices_clear(simplices);
    dcrf_release(last_chunk);
    dcrf_release(number);
    dcrf_lattice_runs_clear(runs);
    return is_done ? DCRF_OK : dcrf_fail_memory(error, "the plan of a lattice");
}

static dcrf_status make(struct dcrf_lattice *lattice, struct dcrf_simplices *simplices,
                        dcrf_pool *pool, dcrf_error *error) {
    return make_runs(lattice, simplices, !lattice->is_large, pool, error);
}

static dcrf_status make_ring(struct dcrf_lattice *lattice, size_t band_variables, dcrf_pool *pool,
                             dcrf_error *error) {
    struct dcrf_simplices simplices;
    dcrf_status status = dcrf_lattice_ring_new(lattice, pool, error);
    if (status < 0 || lattice->ring.rows > 0)
        return status;
    status = undo_runs(lattice, &simplices, band_variables, error);
    if (status < 0)
        return status;
    status = make_runs(lattice, &simplices, true, pool, error);
    dcrf_simplices_clear(&simplices);
    return status;
}

const struct dcrf_lattice_runs_methods dcrf_lattice_by_runs = {.make = make,
                                                               .make_ring = make_ring};
