/* Traces when each thread of a workspace works, chunk by chunk. */
#ifndef DCRF_BENCH_TRACE_H
#define DCRF_BENCH_TRACE_H

#include "core/threads.h"

#include <dcrf/dcrf.h>
#include <stdbool.h>

#define TRACE_MOST_THREADS 64

/* Record what the threads of a workspace do between these calls. One trace at a time. To be drawn,
 * it needs no CPU times, whose clock would stretch small chunks. */
void trace_begin(dcrf_workspace *workspace, bool has_cpu);
void trace_end(dcrf_workspace *workspace);

/* The simulated wall time if each of `threads` threads had its own core: every chunk takes its
 * measured CPU time, the first free thread takes the next chunk, and a loop ends with its last
 * chunk. On a machine with few cores this shows the cost of serial stages and uneven chunks; it
 * ignores caches, memory bandwidth and wake-up times. trace_serial_s is the part outside loops. */
double trace_counted_s(size_t threads);
double trace_serial_s(void);

/* A chunk. */
struct trace_event {
    size_t loop, worker;
    double begin, end; /* wall */
    double cpu;        /* seconds */
};
const struct trace_event *trace_events(size_t *count);

/* One loop, and what the caller did since the loop before it. */
struct trace_span {
    dcrf_work work; /* NULL: the end */
    size_t number;  /* of the loop */
    size_t chunks;
    double begin_s;                   /* wall */
    double outside_s, loop_s;         /* wall */
    double outside_cpu_s, loop_cpu_s; /* CPU time of the caller, of all chunks */
    double loop_counted_s;            /* as trace_counted_s */
};

/* The loops of a trace in their order, after trace_counted_s. */
const struct trace_span *trace_spans(size_t *count);

/* Draw one iteration of the trace as SVG: time across, threads down. After trace_counted_s; false
 * if there is none. */
bool trace_draw(const char *path, const char *title, size_t threads);

#endif
