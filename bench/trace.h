/* Which thread of a workspace works when, chunk by chunk. */
#ifndef DCRF_BENCH_TRACE_H
#define DCRF_BENCH_TRACE_H

#include <dcrf/dcrf.h>

#define TRACE_MOST_THREADS 64

/* Record what the threads of a workspace do between these calls. One trace at a time. */
void trace_begin(dcrf_workspace *workspace);
void trace_end(dcrf_workspace *workspace);

/* What would have passed if each of so many threads had a core: every chunk takes the processor
 * time that was counted for it, threads take chunks in turn, a loop ends with its last chunk. On a
 * machine with few cores that tells what serial stages and uneven chunks cost; it knows nothing of
 * caches, memory and waking. And how much of it is outside of loops. */
double trace_counted_s(size_t threads);
double trace_serial_s(void);

/* The trace as a picture: time across, threads down. */
void trace_draw(const char *path, const char *title, size_t threads);

#endif
