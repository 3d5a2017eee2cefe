/* Splatting with more threads than groups (lattice_groups.c).
 *
 * Vertex rows are divided among tasks in contiguous ranges. A task goes through all runs that touch
 * one of its rows, in order, and splats only to those corners. Each row is therefore the same sum
 * in the same order as if one thread had splat the whole group, for any number of tasks.
 *
 * Corners of a simplex are near each other in the order of the vertices, so a task usually has
 * several corners of a run, and reads the rows of its variables once for these: in a photograph at
 * 80/13, sixteen tasks together read the row of a variable 2.3 times. A part is a maximal sequence
 * of consecutive corners of a run that belong to one task. Parts are ordered by task, then band,
 * then run. Ranges are chosen to balance the work of the tasks. */
#include "core/error.h"
#include "core/memory.h"
#include "filter/lattice/lattice.h"

#include <string.h>

/* Maximum number of tasks, which must fit in a byte. */
#define MOST_TASKS 128
/* Minimum work of a task, in places times corners; less is not worth a thread. */
#define LEAST_WORK 4096
/* The work per row is estimated from every SAMPLED-th run; PART_WORK is the overhead of a part, in
 * places. */
#define SAMPLED 4
#define PART_WORK 2

struct dividing {
    struct dcrf_lattice *lattice;
    uint8_t *task; /* of each row */
};

static size_t places_of(const struct dcrf_lattice_runs *runs, size_t run) {
    return runs->first ? runs->first[run + 1] - runs->first[run] : 1;
}

/* Assign rows to tasks by their work; `work` is zeroed scratch space, one entry per row. */
static void divide_rows(const struct dividing *dividing, uint32_t *work) {
    const struct dcrf_lattice *lattice = dividing->lattice;
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const size_t rows = dcrf_lattice_rows(lattice), corners = lattice->corners;
    uint64_t all = 0, before = 0;
    for (size_t run = 0; run < runs->count; run += SAMPLED)
        for (size_t k = 0; k < corners; k++) {
            const size_t own = places_of(runs, run) + PART_WORK;
            work[runs->vertex[run * corners + k]] += (uint32_t)own;
            all += own;
        }
    for (size_t row = 0; row < rows; row++) {
        dividing->task[row] = (uint8_t)(before * runs->parts.tasks / (all + 1));
        before += work[row];
    }
}

/* Count the parts of a band for each task (part = NULL), or write them. */
static void divide_band(const struct dividing *dividing, size_t band, struct dcrf_run_part *part) {
    const struct dcrf_lattice_runs *runs = &dividing->lattice->runs;
    const size_t corners = dividing->lattice->corners, tasks = runs->parts.tasks;
    size_t next[MOST_TASKS] = {0};
    for (size_t task = 0; part && task < tasks; task++)
        next[task] = runs->parts.first[task * runs->band_count + band];
    for (size_t run = runs->band[band]; run < runs->band[band + 1]; run++) {
        const uint32_t *vertex = runs->vertex + run * corners;
        for (size_t corner = 0, end; corner < corners; corner = end) {
            const size_t task = dividing->task[vertex[corner]];
            for (end = corner + 1; end < corners && dividing->task[vertex[end]] == task;)
                end++;
            if (part)
                part[next[task]] = (struct dcrf_run_part){
                    (uint32_t)(run - runs->band[band]), (uint16_t)corner, (uint16_t)(end - corner)};
            next[task]++;
        }
    }
    for (size_t task = 0; !part && task < tasks; task++)
        runs->parts.first[task * runs->band_count + band] = next[task];
}

static void count_parts(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    for (size_t band = begin; band < end; band++)
        divide_band(context, band, NULL);
}

static void fill_parts(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct dividing *dividing = context;
    for (size_t band = begin; band < end; band++)
        divide_band(dividing, band, dividing->lattice->runs.parts.part);
}

/* Turn counts into start positions. Returns the total. */
static size_t find_first(struct dcrf_lattice_parts *parts, size_t bands) {
    size_t sum = 0;
    for (size_t i = 0; i < parts->tasks * bands; i++) {
        const size_t here = parts->first[i];
        parts->first[i] = sum;
        sum += here;
    }
    parts->first[parts->tasks * bands] = sum;
    return sum;
}

dcrf_status dcrf_lattice_parts_new(struct dcrf_lattice *lattice, dcrf_pool *pool,
                                   dcrf_error *error) {
    struct dcrf_lattice_parts *parts = &lattice->runs.parts;
    const size_t rows = dcrf_lattice_rows(lattice), bands = lattice->runs.band_count;
    const size_t threads = dcrf_pool_threads(pool),
                 most = threads < MOST_TASKS ? threads : MOST_TASKS;
    const size_t enough = lattice->base.variables * lattice->corners / LEAST_WORK;
    const size_t tasks = enough < most ? enough : most;
    if (tasks <= DCRF_LATTICE_GROUPS)
        return DCRF_OK;
    struct dividing dividing = {lattice, dcrf_allocate(rows, sizeof *dividing.task)};
    uint32_t *work = dcrf_allocate_zero(rows, sizeof *work);
    parts->tasks = tasks;
    parts->first = dcrf_allocate(parts->tasks * bands + 1, sizeof *parts->first);
    if (dividing.task && work && parts->first) {
        divide_rows(&dividing, work);
        dcrf_parallel_for(pool, bands, 1, count_parts, &dividing);
        parts->part = dcrf_allocate(find_first(parts, bands), sizeof *parts->part);
    }
    if (parts->part)
        dcrf_parallel_for(pool, bands, 1, fill_parts, &dividing);
    dcrf_release(work);
    dcrf_release(dividing.task);
    return parts->part ? DCRF_OK : dcrf_fail_memory(error, "the plan of a lattice");
}

void dcrf_lattice_parts_clear(struct dcrf_lattice_parts *parts) {
    dcrf_release(parts->first);
    dcrf_release(parts->part);
    *parts = (struct dcrf_lattice_parts){0};
}

size_t dcrf_lattice_parts_bytes(const struct dcrf_lattice *lattice) {
    const struct dcrf_lattice_parts *parts = &lattice->runs.parts;
    const size_t lists = parts->tasks * lattice->runs.band_count;
    return parts->first
               ? (lists + 1) * sizeof *parts->first + parts->first[lists] * sizeof *parts->part
               : 0;
}

/* ---- the splat ------------------------------------------------------------------------------ */

size_t dcrf_lattice_splat_tasks(const struct dcrf_lattice *lattice) {
    return lattice->runs.parts.part ? lattice->runs.parts.tasks : DCRF_LATTICE_GROUPS;
}

/* Does a group contain a band? */
static bool has_band(size_t bands, size_t group, size_t band) {
    return band >= dcrf_lattice_group_first(bands, group) &&
           band < dcrf_lattice_group_first(bands, group + 1);
}

void dcrf_lattice_splat_task_band(const struct dcrf_lattice *lattice, size_t task, size_t band,
                                  const float *in, size_t in_stride, size_t width,
                                  float *vertices) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    const float *rows = in + band * runs->band_variables * in_stride;
    if (!runs->parts.part) {
        if (has_band(runs->band_count, task, band))
            dcrf_lattice_splat_band(lattice, band, rows, in_stride, width, vertices);
        return;
    }
    const size_t *first = runs->parts.first + task * runs->band_count + band;
    struct dcrf_runs of_band = dcrf_lattice_runs_of(lattice, width);
    of_band.vertices = vertices;
    of_band.variables = (float *)rows; /* a splat only reads them */
    of_band.stride = in_stride;
    of_band.vertex += runs->band[band] * lattice->corners;
    if (of_band.first)
        of_band.first += runs->band[band];
    else
        of_band.weight += runs->band[band] * lattice->corners;
    dcrf_dsp()->splat_parts(&of_band, runs->parts.part + first[0], first[1] - first[0]);
}

void dcrf_lattice_splat_task(const struct dcrf_lattice *lattice, size_t task, const float *in,
                             size_t in_stride, size_t width, float *vertices) {
    for (size_t band = 0; band < lattice->runs.band_count; band++)
        dcrf_lattice_splat_task_band(lattice, task, band, in, in_stride, width, vertices);
}

struct dcrf_lattice_pieces dcrf_lattice_pieces_of(const struct dcrf_lattice *lattice, size_t task,
                                                  size_t band) {
    const struct dcrf_lattice_runs *runs = &lattice->runs;
    struct dcrf_lattice_pieces pieces = {.first = runs->band[band], .corners = lattice->corners};
    assert(!runs->first);
    if (runs->parts.part) {
        const size_t *first = runs->parts.first + task * runs->band_count + band;
        pieces.part = runs->parts.part + first[0];
        pieces.count = first[1] - first[0];
    } else if (has_band(runs->band_count, task, band)) {
        pieces.count = runs->band[band + 1] - runs->band[band];
    }
    return pieces;
}
