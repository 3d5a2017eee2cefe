/* Processes started by MPI.
 *
 * Counters are numbers in a window of rank 0, which the others increment by one-sided operations:
 * rank 0 only has to call MPI now and then, and with shared memory or RDMA not even that.
 *
 * Waiting for other ranks takes as long as their images do, and MPI's own waiting is a busy loop.
 * Therefore all waiting here polls, and sleeps in between.
 *
 * MPI errors end all ranks (its default), except while counters are created. */
#include "ranks/ranks.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Polls before the first sleep: an immediate answer must not wait for it. */
#define ASKED_WITHOUT_SLEEP 200
#define SHORTEST_SLEEP_NS 20000L
#define LONGEST_SLEEP_NS 2000000L

/* MPI counts with an int; larger transfers are split into parts of this size. */
#define PART_MAX ((size_t)1 << 20)

struct ranks_counters {
    MPI_Win window;
    size_t count;
    uint64_t *numbers; /* on rank 0 only */
};

static size_t rank_count = 1;
static size_t rank_mine = 0;

/* ---- start and end -------------------------------------------------------------------------- */

bool ranks_begin(int *count, char ***arguments, cli_problem *problem) {
    int provided = MPI_THREAD_SINGLE, size = 1, rank = 0;
    if (MPI_Init_thread(count, arguments, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return failure(problem, "MPI", "cannot be started");
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rank_count = (size_t)size;
    rank_mine = (size_t)rank;
    if (provided < MPI_THREAD_FUNNELED)
        return failure(problem, "MPI",
                       "this library does not allow threads; use one that provides "
                       "MPI_THREAD_FUNNELED");
    return true;
}

void ranks_end(void) {
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun)
        MPI_Finalize();
}

noreturn void ranks_abort(int exit_status) {
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, exit_status);
    exit(exit_status);
}

size_t ranks_count(void) {
    return rank_count;
}

size_t ranks_mine(void) {
    return rank_mine;
}

/* ---- collective calls ----------------------------------------------------------------------- */

static void wait_for(MPI_Request *request) {
    struct timespec pause = {0, SHORTEST_SLEEP_NS};
    int done = 0;
    for (size_t asked = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE), !done; asked++) {
        if (asked < ASKED_WITHOUT_SLEEP)
            continue;
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < LONGEST_SLEEP_NS / 2 ? 2 * pause.tv_nsec : LONGEST_SLEEP_NS;
    }
}

/* In place. */
static void reduce(void *numbers, size_t count, size_t size, MPI_Datatype type, MPI_Op operation) {
    char *part = numbers;
    for (size_t left = count; left > 0;) {
        const size_t taken = left < PART_MAX ? left : PART_MAX;
        MPI_Request request;
        MPI_Iallreduce(MPI_IN_PLACE, part, (int)taken, type, operation, MPI_COMM_WORLD, &request);
        wait_for(&request);
        part += taken * size;
        left -= taken;
    }
}

static void broadcast(void *bytes, size_t count, int root) {
    char *part = bytes;
    for (size_t left = count; left > 0;) {
        const size_t taken = left < PART_MAX ? left : PART_MAX;
        MPI_Request request;
        MPI_Ibcast(part, (int)taken, MPI_BYTE, root, MPI_COMM_WORLD, &request);
        wait_for(&request);
        part += taken;
        left -= taken;
    }
}

bool ranks_any(bool mine) {
    int any = mine;
    reduce(&any, 1, sizeof any, MPI_INT, MPI_LOR);
    return any != 0;
}

void ranks_sum(uint64_t *numbers, size_t count) {
    reduce(numbers, count, sizeof *numbers, MPI_UINT64_T, MPI_SUM);
}

void ranks_broadcast(void *bytes, size_t count) {
    broadcast(bytes, count, 0);
}

/* Name the machine: a file may be missing on one machine only. */
static void add_place(cli_problem *problem) {
    char machine[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(machine, &length);
    const size_t used = strlen(problem->text);
    snprintf(problem->text + used, sizeof problem->text - used, " (at rank %zu, on %s)", rank_mine,
             machine);
}

bool ranks_agree(bool done, cli_problem *problem) {
    int first = done ? INT_MAX : (int)rank_mine;
    reduce(&first, 1, sizeof first, MPI_INT, MPI_MIN);
    if (first == INT_MAX)
        return true;
    if (first > 0 && (int)rank_mine == first)
        add_place(problem);
    broadcast(problem, sizeof *problem, first);
    return false;
}

/* ---- the counters --------------------------------------------------------------------------- */

/* Passive access to the whole window, for its lifetime. */
static bool open_window(ranks_counters *counters, cli_problem *problem) {
    const MPI_Aint bytes =
        rank_mine == 0 ? (MPI_Aint)(counters->count * sizeof *counters->numbers) : 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int result = MPI_Win_allocate(bytes, (int)sizeof *counters->numbers, MPI_INFO_NULL,
                                        MPI_COMM_WORLD, &counters->numbers, &counters->window);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (result == MPI_SUCCESS)
        return true;
    char message[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(result, message, &length);
    return failure(problem, "MPI", "the shared counters cannot be made: %s", message);
}

static void set_to_zero(ranks_counters *counters) {
    const uint64_t zero = 0;
    MPI_Win_lock_all(0, counters->window);
    for (size_t i = 0; rank_mine == 0 && i < counters->count; i++) {
        MPI_Accumulate(&zero, 1, MPI_UINT64_T, 0, (MPI_Aint)i, 1, MPI_UINT64_T, MPI_REPLACE,
                       counters->window);
        MPI_Win_flush(0, counters->window);
    }
    ranks_any(false); /* no rank counts before they are zero */
}

ranks_counters *ranks_counters_new(size_t count, cli_problem *problem) {
    ranks_counters *counters = calloc(1, sizeof *counters);
    if (!ranks_agree(counters || out_of_memory(problem, "the shared counters"), problem)) {
        free(counters);
        return NULL;
    }
    counters->count = count;
    if (!ranks_agree(open_window(counters, problem), problem)) {
        free(counters);
        return NULL;
    }
    set_to_zero(counters);
    return counters;
}

void ranks_counters_free(ranks_counters *counters) {
    if (!counters)
        return;
    /* MPI's own freeing waits for all ranks in a busy loop. */
    ranks_any(false);
    MPI_Win_unlock_all(counters->window);
    MPI_Win_free(&counters->window);
    free(counters);
}

uint64_t ranks_counters_add(ranks_counters *counters, size_t index, uint64_t more) {
    uint64_t number = 0;
    MPI_Fetch_and_op(&more, &number, MPI_UINT64_T, 0, (MPI_Aint)index, MPI_SUM, counters->window);
    MPI_Win_flush(0, counters->window);
    return number;
}

void ranks_progress(void) {
    int waiting = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &waiting, MPI_STATUS_IGNORE);
}
