#define _DEFAULT_SOURCE
#include "trace.h"

#include "core/workspace.h"
#include "measure.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MOST_EVENTS ((size_t)1 << 20)
#define MOST_SPANS ((size_t)1 << 16)
/* The time to end a loop when all threads finish together. */
#define LOOP_S 2e-6

struct moment {
    double wall, cpu;
};

static struct trace {
    atomic_size_t count;
    struct trace_event *events;
    struct moment begun[TRACE_MOST_THREADS]; /* the start of each thread's current chunk */
    struct moment outside;                   /* when the caller last left a loop */
    struct moment inside;                    /* when it last began one */
    struct trace_span *spans;
    size_t span_count;
    size_t first_loop; /* the number of the first loop */
    double serial;
    bool has_cpu;   /* else CPU times are wall times */
    double clock_s; /* CPU time between two readings of the clocks */
} trace;

static struct moment now(void) {
    const double wall = clock_s(CLOCK_MONOTONIC);
    return (struct moment){wall, trace.has_cpu ? clock_s(CLOCK_THREAD_CPUTIME_ID) : wall};
}

/* The clock of CPU time is a system call that takes as long as a small chunk, and is read before
 * and after each: what is between two readings in a row belongs to no chunk. */
static void measure_clock(void) {
    trace.clock_s = 1;
    for (size_t i = 0; i < 1000; i++) {
        const struct moment one = now(), other = now();
        trace.clock_s = fmin(trace.clock_s, other.cpu - one.cpu);
    }
}

static double cpu_between(struct moment begin, struct moment end) {
    return fmax(0, end.cpu - begin.cpu - trace.clock_s);
}

/* Begin the span of a loop, or of the end. */
static void begin_span(struct moment moment, dcrf_work work, size_t number) {
    trace.serial += cpu_between(trace.outside, moment);
    trace.inside = moment;
    if (trace.span_count < MOST_SPANS)
        trace.spans[trace.span_count++] =
            (struct trace_span){.work = work,
                                .number = number,
                                .begin_s = moment.wall,
                                .outside_s = moment.wall - trace.outside.wall,
                                .outside_cpu_s = cpu_between(trace.outside, moment)};
}

static void observe_loop(const struct dcrf_chunk *chunk) {
    const struct moment moment = now();
    if (!chunk->is_done) {
        if (trace.span_count == 0)
            trace.first_loop = chunk->loop;
        begin_span(moment, chunk->work, chunk->loop);
    } else {
        trace.outside = moment;
        if (trace.span_count < MOST_SPANS)
            trace.spans[trace.span_count - 1].loop_s = moment.wall - trace.inside.wall;
    }
}

static void observe(void *user, const struct dcrf_chunk *chunk) {
    (void)user;
    if (chunk->is_loop) {
        observe_loop(chunk);
        return;
    }
    const struct moment moment = now();
    struct moment *begun = &trace.begun[chunk->worker];
    if (chunk->is_done) {
        const size_t i = atomic_fetch_add(&trace.count, 1);
        if (i < MOST_EVENTS)
            trace.events[i] = (struct trace_event){chunk->loop, chunk->worker, begun->wall,
                                                   moment.wall, cpu_between(*begun, moment)};
    } else {
        *begun = moment;
    }
}

void trace_begin(dcrf_workspace *workspace, bool has_cpu) {
    trace.has_cpu = has_cpu;
    if (!trace.events) {
        trace.events = require(malloc(MOST_EVENTS * sizeof *trace.events));
        trace.spans = require(malloc(MOST_SPANS * sizeof *trace.spans));
    }
    trace.span_count = 0;
    atomic_store(&trace.count, 0);
    trace.serial = 0;
    measure_clock();
    trace.outside = now();
    dcrf_pool_observe(dcrf_workspace_pool(workspace), observe, NULL);
}

void trace_end(dcrf_workspace *workspace) {
    begin_span(now(), NULL, SIZE_MAX);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), NULL, NULL);
}

static int compare_events(const void *one, const void *other) {
    const struct trace_event *a = one, *b = other;
    if (a->loop != b->loop)
        return a->loop < b->loop ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

double trace_counted_s(size_t threads) {
    size_t count;
    double sum = trace.serial;
    trace_events(&count);
    qsort(trace.events, count, sizeof *trace.events, compare_events);
    for (size_t i = 0; i < count;) {
        double busy[TRACE_MOST_THREADS] = {0}, last = 0, cpu = 0;
        const size_t loop = trace.events[i].loop, first = i;
        for (; i < count && trace.events[i].loop == loop; i++) {
            size_t free = 0;
            for (size_t t = 1; t < threads; t++)
                free = busy[t] < busy[free] ? t : free;
            busy[free] += trace.events[i].cpu;
            cpu += trace.events[i].cpu;
            last = fmax(last, busy[free]);
        }
        last += threads > 1 && i > first + 1 ? LOOP_S : 0;
        sum += last;
        if (loop - trace.first_loop < trace.span_count) {
            struct trace_span *span = &trace.spans[loop - trace.first_loop];
            span->chunks = i - first;
            span->loop_cpu_s = cpu;
            span->loop_counted_s = last;
        }
    }
    return sum;
}

const struct trace_event *trace_events(size_t *count) {
    const size_t recorded = atomic_load(&trace.count);
    *count = recorded < MOST_EVENTS ? recorded : MOST_EVENTS;
    return trace.events;
}

double trace_serial_s(void) {
    return trace.serial;
}

const struct trace_span *trace_spans(size_t *count) {
    *count = trace.span_count;
    return trace.spans;
}
