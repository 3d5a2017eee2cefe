/* What ranks.h promises, for any number of ranks: built with ranks_alone.c and with ranks_mpi.c.
 *
 * A check that fails at one rank ends all of them, which would otherwise wait for it. With the
 * argument "abort" the last rank ends all with status 3 while the others wait. */
#include "ranks/ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NUMBERS 500
#define WORKERS 2
/* More than the parts in which sums and bytes are sent. */
#define MANY ((size_t)5 << 19)

#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %zu: line %d: not %s\n", ranks_mine(), __LINE__, #condition);    \
            ranks_abort(1);                                                                        \
        }                                                                                          \
    } while (0)

static cli_problem problem;

/* ---- the counter ---------------------------------------------------------------------------- */

/* A worker is given a number by the main thread, is busy for a while, and is then free again. */
typedef struct worker {
    pthread_t thread;
    atomic_int task; /* IDLE, LEAVE or a number */
    uint64_t given[NUMBERS];
} worker;

enum { IDLE = -1, LEAVE = -2 };

static void *work(void *user) {
    worker *w = user;
    for (;;) {
        const int task = atomic_load(&w->task);
        if (task == LEAVE)
            return NULL;
        if (task == IDLE)
            continue;
        volatile unsigned busy = 0;
        for (int i = 0; i < 2000 * (1 + task % 7); i++)
            busy = busy + 1;
        w->given[task]++;
        atomic_store(&w->task, IDLE);
    }
}

static void pause_shortly(void) {
    const struct timespec pause = {0, 50000};
    nanosleep(&pause, NULL);
}

static void wait_until_idle(worker *w) {
    while (atomic_load(&w->task) != IDLE) {
        ranks_progress();
        pause_shortly();
    }
}

/* The main thread hands numbers to idle workers until none are left. */
static void deal(ranks_counters *counter, worker *workers) {
    for (;;) {
        for (size_t i = 0; i < WORKERS; i++) {
            if (atomic_load(&workers[i].task) != IDLE)
                continue;
            const uint64_t number = ranks_counters_add(counter, 0, 1);
            if (number >= NUMBERS)
                return;
            atomic_store(&workers[i].task, (int)number);
        }
        ranks_progress();
        pause_shortly();
    }
}

static void test_every_number_once(void) {
    static worker workers[WORKERS];
    ranks_counters *counter = ranks_counters_new(1, &problem);
    check(counter);
    memset(workers, 0, sizeof workers);
    for (size_t i = 0; i < WORKERS; i++) {
        atomic_init(&workers[i].task, IDLE);
        check(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    deal(counter, workers);
    uint64_t given[NUMBERS] = {0};
    for (size_t i = 0; i < WORKERS; i++) {
        wait_until_idle(&workers[i]);
        atomic_store(&workers[i].task, LEAVE);
        pthread_join(workers[i].thread, NULL);
        for (size_t k = 0; k < NUMBERS; k++)
            given[k] += workers[i].given[k];
    }
    ranks_sum(given, NUMBERS);
    for (size_t k = 0; k < NUMBERS; k++)
        check(given[k] == 1);
    /* Each rank has asked once too often. */
    ranks_any(false);
    check(ranks_counters_add(counter, 0, 1) >= NUMBERS + ranks_count());
    ranks_counters_free(counter);
}

static bool exists(const char *path) {
    FILE *file = fopen(path, "r");
    return file && fclose(file) == 0;
}

static void make(const char *path) {
    FILE *file = fopen(path, "w");
    check(file && fclose(file) == 0);
}

/* Rank 0, which has the number, takes no part in counting but by ranks_progress; a file tells it,
 * outside of MPI, that the others have come to the end. */
static void test_counting_without_rank_0(void) {
    const char *end = getenv("RANKS_END_FILE");
    ranks_counters *counter = ranks_counters_new(1, &problem);
    check(counter && end);
    uint64_t given[NUMBERS] = {0}, number = 0;
    if (ranks_mine() > 0)
        while ((number = ranks_counters_add(counter, 0, 1)) < NUMBERS)
            given[number]++;
    if (number == NUMBERS)
        make(end);
    while (ranks_mine() == 0 && !exists(end))
        ranks_progress();
    ranks_sum(given, NUMBERS);
    for (size_t k = 0; k < NUMBERS; k++)
        check(given[k] == 1);
    ranks_counters_free(counter);
}

static void test_two_counters(void) {
    ranks_counters *a = ranks_counters_new(1, &problem), *b = ranks_counters_new(1, &problem);
    check(a && b);
    uint64_t of_a = ranks_counters_add(a, 0, 1);
    uint64_t of_b = ranks_counters_add(b, 0, 1) + ranks_counters_add(b, 0, 1);
    ranks_sum(&of_a, 1);
    ranks_sum(&of_b, 1);
    const uint64_t n = ranks_count();
    check(of_a == n * (n - 1) / 2);
    check(of_b == 2 * n * (2 * n - 1) / 2);
    ranks_counters_free(a);
    ranks_counters_free(b);
}

/* Each rank adds its part to every one of many, and reads what is there. */
static void test_many_counters(void) {
    const uint64_t n = ranks_count();
    ranks_counters *counters = ranks_counters_new(NUMBERS, &problem);
    check(counters);
    for (size_t i = 0; i < NUMBERS; i++)
        check(ranks_counters_add(counters, i, i * (ranks_mine() + 1)) <= i * n * (n + 1) / 2);
    ranks_any(false);
    for (size_t i = 0; i < NUMBERS; i++)
        check(ranks_counters_add(counters, i, 0) == i * n * (n + 1) / 2);
    ranks_counters_free(counters);
}

/* ---- together ------------------------------------------------------------------------------- */

static void test_sum(void) {
    uint64_t *numbers = malloc(MANY * sizeof *numbers);
    check(numbers);
    const uint64_t n = ranks_count();
    for (size_t i = 0; i < MANY; i++)
        numbers[i] = ((uint64_t)i << 32) + ranks_mine() * i + 1;
    ranks_sum(numbers, MANY);
    for (size_t i = 0; i < MANY; i++)
        check(numbers[i] == n * ((uint64_t)i << 32) + n * (n - 1) / 2 * i + n);
    ranks_sum(NULL, 0);
    free(numbers);
}

static void test_any(void) {
    check(!ranks_any(false));
    check(ranks_any(true));
    for (size_t rank = 0; rank < ranks_count(); rank++)
        check(ranks_any(rank == ranks_mine()));
}

static void test_broadcast(void) {
    unsigned char *bytes = malloc(MANY);
    check(bytes);
    for (size_t i = 0; i < MANY; i++)
        bytes[i] = ranks_mine() == 0 ? (unsigned char)(i * 7 + i / 1000) : 0;
    ranks_broadcast(bytes, MANY);
    for (size_t i = 0; i < MANY; i++)
        check(bytes[i] == (unsigned char)(i * 7 + i / 1000));
    free(bytes);
}

static void test_agree(void) {
    const size_t last = ranks_count() - 1;
    check(ranks_agree(true, &problem));
    /* All fail: they say what rank 0 says. */
    char subject[32];
    snprintf(subject, sizeof subject, "subject %zu", ranks_mine());
    check(!ranks_agree(bad_input(&problem, subject, "bad"), &problem));
    check(strcmp(problem.text, "subject 0: bad") == 0);
    check(problem.exit_status == EXIT_STATUS_BAD_INPUT);
    /* One fails: all say what it says, and where. */
    problem = (cli_problem){0, ""};
    const bool done = ranks_mine() != last || failure(&problem, "disk", "full");
    check(!ranks_agree(done, &problem));
    check(strncmp(problem.text, "disk: full", 10) == 0);
    check(problem.exit_status == EXIT_STATUS_FAILURE);
    char place[32];
    snprintf(place, sizeof place, "(at rank %zu, on ", last);
    check((last > 0) == (strstr(problem.text, place) != NULL));
}

int main(int count, char **arguments) {
    if (!ranks_begin(&count, &arguments, &problem)) {
        fprintf(stderr, "%s\n", problem.text);
        return 1;
    }
    check(ranks_mine() < ranks_count());
    /* The test says how many ranks it has started. */
    const char *wanted = getenv("RANKS_WANTED");
    check(ranks_count() == (wanted ? strtoul(wanted, NULL, 10) : 1));
    if (count > 1 && strcmp(arguments[1], "abort") == 0) {
        if (ranks_mine() == ranks_count() - 1)
            ranks_abort(3);
        ranks_any(false);
    }
    test_every_number_once();
    if (ranks_count() > 1)
        test_counting_without_rank_0();
    test_two_counters();
    test_many_counters();
    test_sum();
    test_any();
    test_broadcast();
    test_agree();
    ranks_end();
    return 0;
}
