/* The moments of a run, in memory that is allocated once. */
#ifndef DCRF_SOLVER_TRACE_H
#define DCRF_SOLVER_TRACE_H

#include <dcrf/solver.h>
#include <stdbool.h>

struct dcrf_trace {
    dcrf_moment *moments; /* NULL: none are kept */
    size_t count;
    size_t room;
    size_t every; /* keep one in this many */
    size_t seen;
};

/* Allocate room for a run of that many iterations; false if out of memory. */
bool dcrf_trace_init(struct dcrf_trace *trace, size_t iterations);
void dcrf_trace_clear(struct dcrf_trace *trace);

/* When the room is used up, drop every second moment, and keep half as many from then on. */
void dcrf_trace_add(struct dcrf_trace *trace, const dcrf_moment *moment);

#endif
