/* Processes that work on one task together.
 *
 * dcrf is one process, its rank 0 of 1 (ranks_alone.c). dcrf-mpi is as many as mpirun starts
 * (ranks_mpi.c). Whoever uses this header does not see the difference.
 *
 * Only the main thread of a process may call these, and calls marked "together" must be made by
 * all ranks in the same order. */
#ifndef DCRF_CLI_DATASET_RANKS_H
#define DCRF_CLI_DATASET_RANKS_H

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

/* A number that all ranks count up. */
typedef struct ranks_counter ranks_counter;

/* From zero; together. NULL and a problem where it cannot be made. */
ranks_counter *ranks_counter_new(cli_problem *problem);
void ranks_counter_free(ranks_counter *counter); /* together */

/* The number before it is counted up by one: 0 for the first who asks. Waits for nobody. */
uint64_t ranks_counter_next(ranks_counter *counter);

/* Let the counter work for others while this rank has nothing to ask. */
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
