/* One process: rank 0 of 1, which always agrees with itself. */
#include "ranks/ranks.h"

#include <stdlib.h>

struct ranks_counters { /* one of them */
    uint64_t number;
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

ranks_counters *ranks_counters_new(size_t count, cli_problem *problem) {
    ranks_counters *counters = calloc(count, sizeof *counters);
    if (!counters)
        out_of_memory(problem, "the shared counters");
    return counters;
}

void ranks_counters_free(ranks_counters *counters) {
    free(counters);
}

uint64_t ranks_counters_add(ranks_counters *counters, size_t index, uint64_t more) {
    const uint64_t before = counters[index].number;
    counters[index].number += more;
    return before;
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
