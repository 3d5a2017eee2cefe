/* Processes that work on one task together.
 *
 * dcrf is one process, its rank 0 of 1 (ranks_alone.c). dcrf-mpi is as many as mpirun starts
 * (ranks_mpi.c). Callers need not know which.
 *
 * Only the main thread of a process may call these, and calls marked "together" must be made by
 * all ranks in the same order. */
#ifndef DCRF_CLI_RANKS_RANKS_H
#define DCRF_CLI_RANKS_RANKS_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

/* At the start and end of the program. */
bool ranks_begin(int *count, char ***arguments, cli_problem *problem);
void ranks_end(void);

/* End this program and all other ranks, without waiting for them. */
noreturn void ranks_abort(int exit_status);

size_t ranks_count(void);
size_t ranks_mine(void);

/* Counters shared by all ranks, in the memory of rank 0. */
typedef struct ranks_counters ranks_counters;

/* All start at zero. Together. NULL and a problem if they cannot be created. */
ranks_counters *ranks_counters_new(size_t count, cli_problem *problem);
void ranks_counters_free(ranks_counters *counters); /* together */

/* Fetch and add: returns the value before `more` is added; 0 only reads. Does not wait for other
 * ranks. */
uint64_t ranks_counters_add(ranks_counters *counters, size_t index, uint64_t more);

/* Let MPI serve the counters to others while this rank makes no calls of its own. */
void ranks_progress(void);

/* Wait for all ranks; true if `mine` is true on any of them. Together. */
bool ranks_any(bool mine);

/* Wait for all ranks; true if all of them are `done`. Otherwise false, and all get the problem
 * of the first rank that has one, so that rank 0 can print it and all exit alike. A rank with a
 * problem must pass it through this before it leaves work that is done together: otherwise the
 * others would wait for it. Together. */
bool ranks_agree(bool done, cli_problem *problem);

/* The sum over all ranks, on all ranks. Together. */
void ranks_sum(uint64_t *numbers, size_t count);

/* Copy rank 0's bytes to all ranks. Together. */
void ranks_broadcast(void *bytes, size_t count);

#endif
