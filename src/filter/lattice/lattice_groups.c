/* Groups of bands (lattice_bands.c), each of which is splat by one thread.
 *
 * Bands are divided into two groups, independently of the number of threads, and a group is splat
 * in the order of its bands. Most vertices are touched by only one group, since positions are
 * features and groups are parts of a picture. Vertices touched by both have two rows: the first
 * group adds to the vertex's own row, the second to an extra row after those of all vertices, which
 * its runs refer to. dcrf_lattice_join adds the second rows to the first before the blur, and
 * dcrf_lattice_repeat copies the blurred rows back, so that the same runs can slice. Sums are
 * always taken in the same order. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

_Static_assert(DCRF_LATTICE_GROUPS == 2, "a vertex has a row of its own and one more");

/* Rows per task. */
#define ROW_GRAIN 512

size_t dcrf_lattice_group_first(size_t bands, size_t group) {
    return group * bands / DCRF_LATTICE_GROUPS;
}

/* ---- sharing -------------------------------------------------------------------------------- */

struct sharing {
    struct dcrf_lattice *lattice;
    uint32_t *row;    /* of each vertex in the second group */
    bool *is_touched; /* one per vertex, for each group; in the same allocation */
};

/* The vertices that the runs of some bands refer to. */
static uint32_t *vertices_of(const struct dcrf_lattice *lattice, size_t first_band,
                             size_t last_band, size_t *count) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t first = runs->band[first_band], last = runs->band[last_band];
    *count = (last - first) * lattice->corners;
    return runs->vertex + first * lattice->corners;
}

static void touch_groups(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sharing *sharing = context;
    const struct dcrf_lattice *lattice = sharing->lattice;
    for (size_t g = begin; g < end; g++) {
        bool *is_touched = sharing->is_touched + g * lattice->vertices;
        size_t count;
        const uint32_t *vertex =
            vertices_of(lattice, dcrf_lattice_group_first(lattice->runs.band_count, g),
                        dcrf_lattice_group_first(lattice->runs.band_count, g + 1), &count);
        for (size_t i = 0; i < count; i++)
            is_touched[vertex[i]] = true;
    }
}

static void rename_bands(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sharing *sharing = context;
    const size_t first = dcrf_lattice_group_first(sharing->lattice->runs.band_count, 1);
    size_t count;
    uint32_t *vertex = vertices_of(sharing->lattice, first + begin, first + end, &count);
    for (size_t i = 0; i < count; i++)
        vertex[i] = sharing->row[vertex[i]];
}

/* List the vertices that both groups touch, and find the rows for the second group. Branch-free:
 * the branch would be unpredictable. */
static bool list_shared(const struct sharing *sharing) {
    struct dcrf_lattice_runs *runs = &sharing->lattice->runs;
    const size_t n = sharing->lattice->vertices;
    const bool *is_first = sharing->is_touched, *is_second = is_first + n;
    size_t count = 0, most = 1;
    for (size_t v = 0; v < n; v++)
        most += is_first[v] & is_second[v];
    uint32_t *shared = dcrf_allocate(most, sizeof *shared), *row = sharing->row;
    if (!shared)
        return false;
    for (size_t v = 0; v < n; v++) {
        const size_t is_shared = is_first[v] & is_second[v];
        shared[count] = (uint32_t)v;
        row[v] = (uint32_t)(v + is_shared * (n + 1 + count - v));
        count += is_shared;
    }
    runs->shared = shared;
    runs->shared_count = count;
    return true;
}

dcrf_status dcrf_lattice_share(struct dcrf_lattice *lattice, dcrf_pool *pool, dcrf_error *error) {
    const size_t first = dcrf_lattice_group_first(lattice->runs.band_count, 1),
                 n = lattice->vertices;
    const size_t touched = DCRF_LATTICE_GROUPS * sizeof(bool);
    struct sharing sharing = {.lattice = lattice,
                              .row = dcrf_allocate(n, sizeof *sharing.row + touched)};
    bool is_done = sharing.row;
    if (is_done) {
        sharing.is_touched = (bool *)(sharing.row + n);
        memset(sharing.is_touched, 0, n * touched);
        dcrf_parallel_for(pool, DCRF_LATTICE_GROUPS, 1, touch_groups, &sharing);
        is_done = list_shared(&sharing);
    }
    if (is_done)
        dcrf_parallel_for(pool, lattice->runs.band_count - first, 1, rename_bands, &sharing);
    dcrf_release(sharing.row);
    return is_done ? DCRF_OK : dcrf_fail_memory(error, "the plan of a lattice");
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct rows {
    const struct dcrf_lattice *lattice;
    size_t width;
    float *rows;
};

static void clear_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rows *rows = context;
    memset(rows->rows + begin * rows->width, 0, (end - begin) * rows->width * sizeof *rows->rows);
}

void dcrf_lattice_clear(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                        float *rows) {
    struct rows all = {lattice, width, rows};
    dcrf_parallel_for(pool, dcrf_lattice_rows(lattice), ROW_GRAIN, clear_rows, &all);
}

static void join_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rows *rows = context;
    const struct dcrf_lattice *lattice = rows->lattice;
    const size_t width = rows->width;
    for (size_t i = begin; i < end; i++) {
        float *restrict row = rows->rows + lattice->runs.shared[i] * width;
        const float *restrict second = rows->rows + (lattice->vertices + 1 + i) * width;
        for (size_t k = 0; k < width; k++)
            row[k] += second[k];
    }
}

void dcrf_lattice_join(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                       float *rows) {
    struct rows all = {lattice, width, rows};
    dcrf_parallel_for(pool, lattice->runs.shared_count, ROW_GRAIN, join_rows, &all);
}

static void repeat_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct rows *rows = context;
    const struct dcrf_lattice *lattice = rows->lattice;
    const size_t width = rows->width;
    for (size_t i = begin; i < end; i++)
        memcpy(rows->rows + (lattice->vertices + 1 + i) * width,
               rows->rows + lattice->runs.shared[i] * width, width * sizeof *rows->rows);
}

void dcrf_lattice_repeat(const struct dcrf_lattice *lattice, dcrf_pool *pool, size_t width,
                         float *rows) {
    struct rows all = {lattice, width, rows};
    dcrf_parallel_for(pool, lattice->runs.shared_count, ROW_GRAIN, repeat_rows, &all);
}
