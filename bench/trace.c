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

struct event {
    size_t loop, worker;
    double begin, end; /* wall */
    double cpu;        /* seconds */
};

static struct trace {
    atomic_size_t count;
    struct event *events;
    struct moment begun[TRACE_MOST_THREADS]; /* the start of each thread's current chunk */
    struct moment outside;                   /* when the caller last left a loop */
    struct moment inside;                    /* when it last began one */
    struct trace_span *spans;
    size_t span_count;
    size_t first_loop; /* the number of the first loop */
    double serial, start;
} trace;

static struct moment now(void) {
    return (struct moment){clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_THREAD_CPUTIME_ID)};
}

/* Begin the span of a loop, or of the end. */
static void begin_span(struct moment moment, dcrf_work work) {
    trace.serial += moment.cpu - trace.outside.cpu;
    trace.inside = moment;
    if (trace.span_count < MOST_SPANS)
        trace.spans[trace.span_count++] =
            (struct trace_span){.work = work,
                                .outside_s = moment.wall - trace.outside.wall,
                                .outside_cpu_s = moment.cpu - trace.outside.cpu};
}

static void observe_loop(const struct dcrf_chunk *chunk) {
    const struct moment moment = now();
    if (!chunk->is_done) {
        if (trace.span_count == 0)
            trace.first_loop = chunk->loop;
        begin_span(moment, chunk->work);
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
            trace.events[i] = (struct event){chunk->loop, chunk->worker, begun->wall, moment.wall,
                                             moment.cpu - begun->cpu};
    } else {
        *begun = moment;
    }
}

void trace_begin(dcrf_workspace *workspace) {
    if (!trace.events) {
        trace.events = require(malloc(MOST_EVENTS * sizeof *trace.events));
        trace.spans = require(malloc(MOST_SPANS * sizeof *trace.spans));
    }
    trace.span_count = 0;
    atomic_store(&trace.count, 0);
    trace.serial = 0;
    trace.outside = now();
    trace.start = trace.outside.wall;
    dcrf_pool_observe(dcrf_workspace_pool(workspace), observe, NULL);
}

void trace_end(dcrf_workspace *workspace) {
    begin_span(now(), NULL);
    dcrf_pool_observe(dcrf_workspace_pool(workspace), NULL, NULL);
}

static int compare_events(const void *one, const void *other) {
    const struct event *a = one, *b = other;
    if (a->loop != b->loop)
        return a->loop < b->loop ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

double trace_counted_s(size_t threads) {
    const size_t recorded = atomic_load(&trace.count);
    const size_t count = recorded < MOST_EVENTS ? recorded : MOST_EVENTS;
    double sum = trace.serial;
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

void trace_draw(const char *path, const char *title, size_t threads) {
    FILE *file = require(fopen(path, "w"));
    double end = trace.start;
    const size_t count = atomic_load(&trace.count);
    for (size_t i = 0; i < count && i < MOST_EVENTS; i++)
        end = fmax(end, trace.events[i].end);
    const double width = 1200, left = 40, row = 16, scale = width / (end - trace.start);
    fprintf(
        file,
        "<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' font-family='sans-serif' "
        "font-size='11'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
        "<text x='%g' y='14'>%s: %.1f ms across, a row for each of %zu threads, a colour for "
        "each loop; white: waiting, or outside of loops</text>\n",
        width + left + 10, row * (double)threads + 50, left, title, 1e3 * (end - trace.start),
        threads);
    for (size_t t = 0; t < threads; t++)
        fprintf(file, "<text x='4' y='%g'>%zu</text>\n", 34 + row * (double)t, t + 1);
    for (size_t i = 0; i < count && i < MOST_EVENTS; i++) {
        const struct event *event = &trace.events[i];
        fprintf(file,
                "<rect x='%.2f' y='%g' width='%.2f' height='%g' fill='hsl(%zu,60%%,50%%)'/>\n",
                left + scale * (event->begin - trace.start), 23 + row * (double)event->worker,
                fmax(0.2, scale * (event->end - event->begin)), row - 2, event->loop * 137 % 360);
    }
    fprintf(file, "</svg>\n");
    fclose(file);
}

double trace_serial_s(void) {
    return trace.serial;
}

const struct trace_span *trace_spans(size_t *count) {
    *count = trace.span_count;
    return trace.spans;
}
