/* One process: rank 0 of 1, which agrees with itself. */
#include "dataset/ranks.h"

#include <stdlib.h>

struct ranks_counter {
    uint64_t next;
};

bool ranks_begin(int *count, char ***arguments, cli_problem *problem) {
    (void)count, (void)arguments, (void)problem;
    return true;
}

void ranks_end(void) {
}

noreturn void ranks_abort(int exit_status) {
    exit(exit_status);
}

size_t ranks_count(void) {
    return 1;
}

size_t ranks_mine(void) {
    return 0;
}

ranks_counter *ranks_counter_new(cli_problem *problem) {
    ranks_counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        out_of_memory(problem, "the shared counter");
    return counter;
}

void ranks_counter_free(ranks_counter *counter) {
    free(counter);
}

uint64_t ranks_counter_next(ranks_counter *counter) {
    return counter->next++;
}

void ranks_progress(void) {
}

bool ranks_any(bool mine) {
    return mine;
}

bool ranks_agree(bool done, cli_problem *problem) {
    (void)problem;
    return done;
}

void ranks_sum(uint64_t *numbers, size_t count) {
    (void)numbers, (void)count;
}

void ranks_broadcast(void *bytes, size_t count) {
    (void)bytes, (void)count;
}
