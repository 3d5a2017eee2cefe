/* A stage is all loops that do the same work, or all that the caller does between two kinds of
 * loops: that is serial. */
#include "stages.h"

#include "measure.h"
#include "symbol.h"
#include "trace.h"

#include <math.h>
#include <stdbool.h>

#define MOST_STAGES 4096
/* Shorter ones are printed as one row. */
#define LEAST_S 50e-6

struct stage {
    dcrf_work before, work;
    bool is_serial;
    size_t times, chunks; /* in the last column */
    double wall_s[STAGES_COLUMNS], cpu_s[STAGES_COLUMNS], counted_s;
};

static struct stage stages[MOST_STAGES];
static size_t stage_count;

static struct stage *find_stage(dcrf_work before, dcrf_work work, bool is_serial) {
    for (size_t i = 0; i < stage_count; i++)
        if (stages[i].work == work && stages[i].is_serial == is_serial &&
            (!is_serial || stages[i].before == before))
            return &stages[i];
    if (stage_count == MOST_STAGES)
        return &stages[MOST_STAGES - 1];
    stages[stage_count] = (struct stage){.before = before, .work = work, .is_serial = is_serial};
    return &stages[stage_count++];
}

/* Add a stage that ran in the given column, or several of them. */
static void add(struct stage *stage, size_t column, const struct stage *ran) {
    stage->wall_s[column] += ran->wall_s[column];
    stage->cpu_s[column] += ran->cpu_s[column];
    if (column == STAGES_COLUMNS - 1) {
        stage->times += ran->times;
        stage->chunks += ran->chunks;
        stage->counted_s += ran->counted_s;
    }
}

static void add_span(const struct trace_span *span, dcrf_work before, size_t column) {
    struct stage outside = {.times = 1, .chunks = 1, .counted_s = span->outside_cpu_s};
    outside.wall_s[column] = span->outside_s;
    outside.cpu_s[column] = span->outside_cpu_s;
    add(find_stage(before, span->work, true), column, &outside);
    struct stage loop = {.times = 1, .chunks = span->chunks, .counted_s = span->loop_counted_s};
    loop.wall_s[column] = span->loop_s;
    loop.cpu_s[column] = span->loop_cpu_s;
    if (span->work)
        add(find_stage(NULL, span->work, false), column, &loop);
}

void stages_add(size_t column) {
    size_t count;
    const struct trace_span *spans = trace_spans(&count);
    dcrf_work before = NULL;
    for (size_t i = 0; i < count; i++) {
        add_span(&spans[i], before, column);
        before = spans[i].work;
    }
}

static int compare_stages(const void *one, const void *other) {
    const struct stage *a = one, *b = other;
    return (a->counted_s < b->counted_s) - (a->counted_s > b->counted_s);
}

static const char *name_of(dcrf_work work, const char *otherwise) {
    return work ? symbol_name(work) : otherwise;
}

static void print_stage(const struct stage *stage) {
    const size_t last = STAGES_COLUMNS - 1;
    if (stage->is_serial)
        printf("| serial: %s to %s | %zu | |", name_of(stage->before, "begin"),
               name_of(stage->work, "end"), stage->times);
    else
        printf("| %s | %zu | %.1f |", name_of(stage->work, "others"), stage->times,
               (double)stage->chunks / fmax(1, (double)stage->times));
    printf(" %.2f | %.2f | %.1f | %.2f | %.2f |\n", 1e3 * stage->wall_s[0],
           1e3 * stage->wall_s[last], stage->wall_s[0] / fmax(1e-9, stage->wall_s[last]),
           stage->cpu_s[last] / fmax(1e-9, stage->cpu_s[0]), 1e3 * stage->counted_s);
}

void stages_print(const size_t threads[STAGES_COLUMNS]) {
    struct stage others[2] = {{.is_serial = false}, {.is_serial = true}};
    printf("\n| stage | times | chunks | %zu thread, ms | %zu threads, ms | gain | CPU time | "
           "counted, ms |\n|---|---|---|---|---|---|---|---|\n",
           threads[0], threads[STAGES_COLUMNS - 1]);
    qsort(stages, stage_count, sizeof stages[0], compare_stages);
    for (size_t i = 0; i < stage_count; i++) {
        const struct stage *stage = &stages[i];
        if (stage->counted_s >= LEAST_S)
            print_stage(stage);
        for (size_t k = 0; stage->counted_s < LEAST_S && k < STAGES_COLUMNS; k++)
            add(&others[stage->is_serial], k, stage);
    }
    for (size_t i = 0; i < 2; i++)
        print_stage(&others[i]);
    stage_count = 0;
}
