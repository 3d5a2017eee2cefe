/* Sectors of bands (lattice_bands.c), each splat by one thread and sliced by one.
 *
 * Two sectors must not add to the same row. A sector is a part of the picture, and positions are
 * features, so it shares only some of its vertices with others, and adds to copies of their rows.
 * Copies are added to the rows of the vertices in the order of the sectors, and filled from them
 * before the sector is sliced; runs refer to them. So every sum is taken in the same order,
 * whatever the number of threads, and the row of a variable is read once.
 *
 * There are two ways to lay them out, which give the same sums:
 *
 *   joint     the first sector that touches a vertex adds to the vertex's own row, the others have
 *             copies, after the rows of all vertices: little work for one thread or two
 *   separate  each sector has copies of all rows that it touches, in memory of its own. That is a
 *             little more work, but no two threads write to the same cache line, and what a
 *             thread gathers from and scatters to stays in its own cache */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

/* The number of sectors is a power of two, so that the usual numbers of threads have equal shares.
 * There are more than the fewest if each has SECTOR_VARIABLES variables. More sectors have more
 * copies: of the 37,000 vertices of a photograph at 80/13 they are 0.1 (2 sectors), 0.3 (4), 0.5
 * (8), 0.7 (16) and 1.2 (32) per vertex if joint. */
#define FEWEST_SECTORS 16
#define MOST_SECTORS 64
#define SECTOR_VARIABLES 16384
/* With more threads, copies are separate. */
#define JOINT_THREADS 2
/* Rows per task: at least so many, and tasks per thread. Each has to find its copies. */
#define LEAST_ROWS 512
#define ROW_TASKS 4
/* Prefetch distance in rows. */
#define ROWS_AHEAD 24

size_t dcrf_lattice_sector_count(size_t variables, size_t bands) {
    size_t count = FEWEST_SECTORS;
    while (count < MOST_SECTORS && variables / SECTOR_VARIABLES >= 2 * count)
        count *= 2;
    return count < bands ? count : bands;
}

/* ---- making --------------------------------------------------------------------------------- */

struct division {
    struct dcrf_lattice *lattice;
    size_t words;      /* with a bit for each vertex */
    uint64_t *touched; /* by sector: the vertices that its runs refer to; then those with a copy */
    uint32_t *row;     /* per worker: the row of each vertex in the sector */
};

/* The vertices of a sector's runs. */
static uint32_t *vertices_of(const struct dcrf_lattice *lattice, size_t sector, size_t *count) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t first = runs->band[dcrf_lattice_sector_first(lattice, sector)],
                 last = runs->band[dcrf_lattice_sector_first(lattice, sector + 1)];
    *count = (last - first) * lattice->corners;
    return runs->vertex + first * lattice->corners;
}

/* Eight marks, each 0 or 1, as eight bits, the first one lowest. The factor adds them up, shifted
 * by different distances; nothing is carried. */
static uint64_t pack_marks(const bool *mark) {
    uint64_t marks;
    static_assert(sizeof *mark == 1, "eight marks are a word");
    memcpy(&marks, mark, sizeof marks);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    marks = __builtin_bswap64(marks);
#endif
    return marks * 0x0102040810204080 >> 56;
}

/* Runs refer to the same vertices again and again, so marks are bytes at first: a bit would wait
 * for the one before it. */
static void touch_sectors(void *context, size_t begin, size_t end, size_t worker) {
    const struct division *division = context;
    bool *mark = (bool *)(division->row + worker * division->words * 64);
    for (size_t g = begin; g < end; g++) {
        uint64_t *touched = division->touched + g * division->words;
        size_t count;
        const uint32_t *vertex = vertices_of(division->lattice, g, &count);
        memset(mark, 0, division->words * 64);
        for (size_t i = 0; i < count; i++)
            mark[vertex[i]] = true;
        for (size_t v = 0; v < division->words * 64; v += 8)
            touched[v / 64] |= pack_marks(mark + v) << v % 64;
    }
}

/* Keep only the vertices of which sectors have copies, and number the copies of all sectors. */
static void count_copies(const struct division *division) {
    struct dcrf_lattice_sectors *sectors = &division->lattice->runs.sectors;
    for (size_t w = 0; w < division->words; w++) {
        uint64_t before = sectors->is_joint ? 0 : UINT64_MAX;
        for (size_t g = 0; g < sectors->count; g++) {
            uint64_t *touched = &division->touched[g * division->words + w];
            const uint64_t copied = *touched & before;
            before |= *touched;
            *touched = copied;
            sectors->sector[g].rows += (size_t)__builtin_popcountll(copied);
        }
    }
    for (size_t g = 0; g < sectors->count; g++) {
        sectors->sector[g].first_row = sectors->all_rows;
        sectors->all_rows += sectors->sector[g].rows;
        if (sectors->sector[g].rows > sectors->most_rows)
            sectors->most_rows = sectors->sector[g].rows;
    }
}

/* A vertex without a copy has a row of its own. */
static void fill_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct division *division = context;
    for (size_t i = begin; i < end; i++)
        for (size_t v = 0; v < division->lattice->vertices; v++)
            division->row[i * division->words * 64 + v] = (uint32_t)v;
}

static void number_copies(void *context, size_t begin, size_t end, size_t worker) {
    const struct division *division = context;
    const struct dcrf_lattice *lattice = division->lattice;
    uint32_t *row = division->row + worker * division->words * 64;
    for (size_t g = begin; g < end; g++) {
        const struct dcrf_lattice_sector *sector = &lattice->runs.sectors.sector[g];
        const uint64_t *copied = division->touched + g * division->words;
        const size_t first = dcrf_lattice_first_copy(lattice, g);
        size_t count, copies = 0;
        uint32_t *vertex = vertices_of(lattice, g, &count);
        if (sector->rows == 0)
            continue;
        for (size_t w = 0; w < division->words; w++)
            for (uint64_t left = copied[w]; left != 0; left &= left - 1) {
                const uint32_t v = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(left);
                row[v] = (uint32_t)(first + copies);
                sector->vertex[copies++] = v;
            }
        for (size_t i = 0; i < count; i++)
            vertex[i] = row[vertex[i]];
        for (size_t i = 0; i < copies; i++)
            row[sector->vertex[i]] = sector->vertex[i];
    }
}

dcrf_status dcrf_lattice_sectors_new(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                     dcrf_error *error) {
    struct dcrf_lattice_sectors *sectors = &lattice->runs.sectors;
    const size_t threads = dcrf_pool_threads(pool);
    struct division division = {.lattice = lattice, .words = lattice->vertices / 64 + 1};
    sectors->is_joint = threads <= JOINT_THREADS;
    sectors->count = dcrf_lattice_sector_count(lattice->base.variables, lattice->runs.band_count);
    sectors->sector = dcrf_allocate_zero(sectors->count, sizeof *sectors->sector);
    division.touched = dcrf_allocate_zero(sectors->count * division.words, sizeof(uint64_t));
    division.row = dcrf_allocate(threads * division.words, 64 * sizeof *division.row);
    if (sectors->sector && division.touched && division.row) {
        dcrf_parallel_for(pool, sectors->count, 1, touch_sectors, &division);
        count_copies(&division);
        sectors->vertex = dcrf_allocate(sectors->all_rows, sizeof *sectors->vertex);
    }
    for (size_t g = 0; sectors->vertex && g < sectors->count; g++)
        sectors->sector[g].vertex = sectors->vertex + sectors->sector[g].first_row;
    if (sectors->vertex && sectors->is_joint)
        dcrf_parallel_for(pool, threads, 1, fill_rows, &division);
    if (sectors->vertex)
        dcrf_parallel_for(pool, sectors->count, 1, number_copies, &division);
    dcrf_release(division.touched);
    dcrf_release(division.row);
    return sectors->vertex ? DCRF_OK : dcrf_fail_memory(error, "the plan of a lattice");
}

void dcrf_lattice_sectors_clear(struct dcrf_lattice_sectors *sectors) {
    dcrf_release(sectors->sector);
    dcrf_release(sectors->vertex);
    *sectors = (struct dcrf_lattice_sectors){0};
}

size_t dcrf_lattice_sectors_bytes(const struct dcrf_lattice_sectors *sectors) {
    return sectors->count * sizeof *sectors->sector + sectors->all_rows * sizeof *sectors->vertex;
}

/* ---- splatting ------------------------------------------------------------------------------ */

static size_t row_bytes(const struct dcrf_lattice_sums *sums) {
    return sums->width * (sums->is_double ? sizeof(double) : sizeof(float));
}

/* The i-th copy of a sector. */
static void *copy_of(const struct dcrf_lattice_sums *sums, size_t sector, size_t i) {
    char *rows = dcrf_lattice_sums_rows(sums, sector);
    return rows + (dcrf_lattice_first_copy(sums->lattice, sector) + i) * row_bytes(sums);
}

void *dcrf_lattice_sums_rows(const struct dcrf_lattice_sums *sums, size_t sector) {
    const struct dcrf_lattice_sectors *sectors = &sums->lattice->runs.sectors;
    return sectors->is_joint
               ? sums->vertices
               : (char *)sums->copies + sectors->sector[sector].first_row * row_bytes(sums);
}

void *dcrf_lattice_sums_begin(const struct dcrf_lattice_sums *sums, size_t sector) {
    memset(copy_of(sums, sector, 0), 0,
           sums->lattice->runs.sectors.sector[sector].rows * row_bytes(sums));
    return dcrf_lattice_sums_rows(sums, sector);
}

DCRF_FOR_CONSTANTS void add_floats(float *vertices, const uint32_t *vertex, size_t count,
                                   const float *copies, size_t width) {
    for (size_t i = 0; i < count; i++) {
        float *restrict to = vertices + vertex[i] * width;
        const float *restrict from = copies + i * width;
        if (i + ROWS_AHEAD < count) {
            __builtin_prefetch(vertices + vertex[i + ROWS_AHEAD] * width, 1);
            __builtin_prefetch(vertices + (vertex[i + ROWS_AHEAD] + 1) * width - 1, 1);
        }
        for (size_t k = 0; k < width; k++)
            to[k] += from[k];
    }
}

static void add_doubles(double *vertices, const uint32_t *vertex, size_t count,
                        const double *copies, size_t width) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < width; k++)
            vertices[vertex[i] * width + k] += copies[i * width + k];
}

/* Add the copies begin .. end - 1 of a sector to the rows of their vertices. */
static void add_copies(const struct dcrf_lattice_sums *sums, size_t sector, size_t begin,
                       size_t end) {
    const uint32_t *vertex = sums->lattice->runs.sectors.sector[sector].vertex + begin;
    const void *copies = copy_of(sums, sector, begin);
    if (sums->is_double)
        add_doubles(sums->vertices, vertex, end - begin, copies, sums->width);
    else if (sums->width == 4)
        add_floats(sums->vertices, vertex, end - begin, copies, 4);
    else if (sums->width == 24)
        add_floats(sums->vertices, vertex, end - begin, copies, 24);
    else
        add_floats(sums->vertices, vertex, end - begin, copies, sums->width);
}

/* A single thread has splat all sectors before this one, and has its copies in the cache. */
static bool is_in_order(const struct dcrf_lattice_sums *sums) {
    return sums->lattice->runs.sectors.is_joint && sums->is_alone;
}

void dcrf_lattice_sums_end(const struct dcrf_lattice_sums *sums, size_t sector) {
    if (is_in_order(sums))
        add_copies(sums, sector, 0, sums->lattice->runs.sectors.sector[sector].rows);
}

/* The first copy of a sector whose vertex is not below `vertex`. */
static size_t copy_from(const struct dcrf_lattice_sector *sector, size_t vertex) {
    size_t low = 0, high = sector->rows;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sector->vertex[middle] < vertex)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void clear_range(const struct dcrf_lattice_sums *sums, size_t begin, size_t end) {
    memset((char *)sums->vertices + begin * row_bytes(sums), 0, (end - begin) * row_bytes(sums));
}

static void join_range(const struct dcrf_lattice_sums *sums, size_t begin, size_t end) {
    const struct dcrf_lattice_sectors *sectors = &sums->lattice->runs.sectors;
    if (!sectors->is_joint)
        clear_range(sums, begin, end);
    for (size_t g = 0; g < sectors->count; g++)
        add_copies(sums, g, copy_from(&sectors->sector[g], begin),
                   copy_from(&sectors->sector[g], end));
}

/* A pass over the rows of the vertices, for those of several sums that need it. */
struct pass {
    const struct dcrf_lattice_sums *sums;
    size_t count;
    bool (*is_needed)(const struct dcrf_lattice_sums *sums);
    void (*work)(const struct dcrf_lattice_sums *sums, size_t begin, size_t end);
};

static bool is_cleared_first(const struct dcrf_lattice_sums *sums) {
    return sums->lattice->runs.sectors.is_joint;
}

static bool is_joined_last(const struct dcrf_lattice_sums *sums) {
    return !is_in_order(sums);
}

static size_t rows_passed(const struct pass *pass, size_t i) {
    return pass->is_needed(&pass->sums[i]) ? pass->sums[i].lattice->vertices + 1 : 0;
}

/* Indices count the rows of all sums, one after the other. */
static void pass_rows(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct pass *pass = context;
    for (size_t i = 0, first = 0, last; i < pass->count; i++, first = last) {
        last = first + rows_passed(pass, i);
        if (begin < last && end > first)
            pass->work(&pass->sums[i], begin > first ? begin - first : 0,
                       (end < last ? end : last) - first);
    }
}

static void run_pass(struct pass pass, dcrf_pool *pool) {
    const size_t tasks = ROW_TASKS * dcrf_pool_threads(pool);
    size_t rows = 0, bytes = 0;
    for (size_t i = 0; i < pass.count; i++) {
        rows += rows_passed(&pass, i);
        bytes += rows_passed(&pass, i) * row_bytes(&pass.sums[i]);
    }
    const size_t even = (rows + tasks - 1) / tasks;
    dcrf_parallel_loop(pool, &(struct dcrf_loop){.task = pass_rows,
                                                 .context = &pass,
                                                 .count = rows,
                                                 .grain = even > LEAST_ROWS ? even : LEAST_ROWS,
                                                 .work = (dcrf_work)pass.work,
                                                 .is_brief = bytes <= DCRF_LATTICE_BRIEF_BYTES});
}

void dcrf_lattice_sums_start(const struct dcrf_lattice_sums *sums, size_t count, dcrf_pool *pool) {
    run_pass((struct pass){sums, count, is_cleared_first, clear_range}, pool);
}

void dcrf_lattice_sums_join(const struct dcrf_lattice_sums *sums, size_t count, dcrf_pool *pool) {
    run_pass((struct pass){sums, count, is_joined_last, join_range}, pool);
}

/* ---- slicing -------------------------------------------------------------------------------- */

DCRF_FOR_CONSTANTS void copy_floats(const struct dcrf_lattice_sector *sector, const float *vertices,
                                    float *copies, size_t width) {
    for (size_t i = 0; i < sector->rows; i++) {
        if (i + ROWS_AHEAD < sector->rows) {
            __builtin_prefetch(vertices + sector->vertex[i + ROWS_AHEAD] * width);
            __builtin_prefetch(vertices + (sector->vertex[i + ROWS_AHEAD] + 1) * width - 1);
        }
        memcpy(copies + i * width, vertices + sector->vertex[i] * width, width * sizeof *copies);
    }
}

float *dcrf_lattice_take(const struct dcrf_lattice *lattice, size_t sector, size_t width,
                         float *vertices, float *taken) {
    const struct dcrf_lattice_sector *own = &lattice->runs.sectors.sector[sector];
    float *rows = lattice->runs.sectors.is_joint ? vertices : taken;
    float *copies = rows + dcrf_lattice_first_copy(lattice, sector) * width;
    if (width == 4)
        copy_floats(own, vertices, copies, 4);
    else if (width == 24)
        copy_floats(own, vertices, copies, 24);
    else
        copy_floats(own, vertices, copies, width);
    return rows;
}
