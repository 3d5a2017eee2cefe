/* Processes that work on one task together.
 *
 * dcrf is one process, its rank 0 of 1 (ranks_alone.c). dcrf-mpi is as many as mpirun starts
 * (ranks_mpi.c). Users of this header do not see the difference.
 *
 * Only the main thread of a process may call these, and calls marked "together" must be made by
 * all ranks in the same order. */
#ifndef DCRF_CLI_RANKS_RANKS_H
#define DCRF_CLI_RANKS_RANKS_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

/* At the begin and the end of the program. */
bool ranks_begin(int *count, char ***arguments, cli_problem *problem);
void ranks_end(void);

/* End this program without waiting for the others, and them too. */
noreturn void ranks_abort(int exit_status);

size_t ranks_count(void);
size_t ranks_mine(void);

/* Numbers that all ranks count up, in the memory of rank 0. */
typedef struct ranks_counters ranks_counters;

/* All from zero; together. NULL and a problem where they cannot be made. */
ranks_counters *ranks_counters_new(size_t count, cli_problem *problem);
void ranks_counters_free(ranks_counters *counters); /* together */

/* Fetch and add: the number before `more` is added. With 0 it is only read. Does not wait for other
 * ranks. */
uint64_t ranks_counters_add(ranks_counters *counters, size_t index, uint64_t more);

/* Let the counters work for others while this rank has nothing to ask. */
void ranks_progress(void);

/* Wait for all ranks; true where `mine` was true at any of them. Together. */
bool ranks_any(bool mine);

/* Wait for all ranks; true where all of them are `done`. Otherwise false, and all have the problem
 * of the first rank that has one, so that rank 0 can print it and all end alike. A rank must not
 * return from what is done together with a problem of its own that has not gone through this: the
 * others would wait for it. Together. */
bool ranks_agree(bool done, cli_problem *problem);

/* The sum over all ranks, at all ranks. Together. */
void ranks_sum(uint64_t *numbers, size_t count);

/* What rank 0 has, to all ranks. Together. */
void ranks_broadcast(void *bytes, size_t count);

#endif
