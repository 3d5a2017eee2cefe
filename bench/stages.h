/* A table of the stages of a run, by thread count: what remains serial can be read off it. */
#ifndef DCRF_BENCH_STAGES_H
#define DCRF_BENCH_STAGES_H

#include <stddef.h>

#define STAGES_COLUMNS 2

/* Add the spans of the last trace to a column of the table. */
void stages_add(size_t column);

/* Print the stages that take longest in the last column, and forget them all. */
void stages_print(const size_t threads[STAGES_COLUMNS]);

#endif
