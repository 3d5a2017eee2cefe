/* The thread pool: every index once, the same sums for every thread count, forks, floating-point
 * modes. */
#define _GNU_SOURCE
#include "unit.h"

#include "core/fpmode.h"
#include "core/memory.h"
#include "core/rng.h"
#include "core/threads.h"

#include <dcrf/workspace.h>
#include <dirent.h>
#include <fenv.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t thread_counts[] = {1, 2, 3, 8};
#define THREAD_COUNTS (sizeof thread_counts / sizeof thread_counts[0])

static dcrf_pool *new_pool(size_t threads) {
    dcrf_pool *pool = NULL;
    assert_int_equal(dcrf_pool_new(&pool, threads, NULL), DCRF_OK);
    assert_int_equal(dcrf_pool_threads(pool), threads);
    return pool;
}

/* ---- every index once ----------------------------------------------------------------------- */

struct visits {
    atomic_uchar *times;
    size_t count, grain, threads;
    atomic_size_t mistakes;
    atomic_uchar working[8]; /* is this worker inside a chunk? */
};

/* Tasks run in other threads, where cmocka's asserts must not jump, so errors are counted. */
static void visit(void *context, size_t begin, size_t end, size_t worker) {
    struct visits *visits = context;
    const size_t left = visits->count - begin;
    if (begin % visits->grain != 0 || worker >= visits->threads ||
        end - begin != (left < visits->grain ? left : visits->grain)) {
        atomic_fetch_add(&visits->mistakes, 1);
        return;
    }
    if (atomic_exchange(&visits->working[worker], 1) != 0)
        atomic_fetch_add(&visits->mistakes, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&visits->times[i], 1);
    atomic_store(&visits->working[worker], 0);
}

static void check_visits(dcrf_pool *pool, size_t threads, size_t count, size_t grain) {
    struct visits visits = {.count = count, .grain = grain, .threads = threads};
    visits.times = dcrf_allocate_zero(count, sizeof *visits.times);
    assert_non_null(visits.times);
    dcrf_parallel_for(pool, count, grain, visit, &visits);
    assert_int_equal(atomic_load(&visits.mistakes), 0);
    for (size_t i = 0; i < count; i++)
        if (atomic_load(&visits.times[i]) != 1)
            fail_msg("%zu threads, grain %zu: index %zu of %zu visited %d times", threads, grain, i,
                     count, atomic_load(&visits.times[i]));
    dcrf_release(visits.times);
}

static void every_index_once(void **state) {
    (void)state;
    const size_t counts[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 4099};
    const size_t grains[] = {1, 2, 3, 8, 64, 1000, 5000};
    for (size_t t = 0; t < THREAD_COUNTS; t++) {
        dcrf_pool *pool = new_pool(thread_counts[t]);
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
            for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++)
                check_visits(pool, thread_counts[t], counts[c], grains[g]);
        dcrf_pool_free(&pool);
        assert_null(pool);
    }
    check_visits(NULL, 1, 1000, 7);
}

/* Short loops in succession, with pauses long enough for workers to fall asleep. */
static void loops_follow_each_other(void **state) {
    (void)state;
    dcrf_pool *pool = new_pool(3);
    for (int i = 0; i < 2000; i++) {
        check_visits(pool, 3, 10, 1);
        if (i % 400 == 0)
            usleep(20000);
    }
    dcrf_pool_free(&pool);
}

static void pools_come_and_go(void **state) {
    (void)state;
    for (size_t i = 0; i < 50; i++) {
        dcrf_pool *pool = new_pool(1 + i % 5);
        if (i % 2)
            check_visits(pool, 1 + i % 5, 100, 3);
        dcrf_pool_free(&pool);
    }
    dcrf_pool *none = NULL;
    dcrf_pool_free(&none);
    assert_int_equal(dcrf_pool_threads(NULL), 1);
}

static void default_is_the_usable_cores(void **state) {
    (void)state;
    dcrf_pool *pool = NULL;
    assert_int_equal(dcrf_pool_new(&pool, 0, NULL), DCRF_OK);
    const size_t threads = dcrf_pool_threads(pool);
    assert_true(threads >= 1 && threads <= (size_t)sysconf(_SC_NPROCESSORS_ONLN));
    dcrf_pool_free(&pool);
#if defined(__linux__)
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const dcrf_status status = dcrf_pool_new(&pool, 0, NULL);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(status, DCRF_OK);
    assert_int_equal(dcrf_pool_threads(pool), 1);
    dcrf_pool_free(&pool);
#endif
}

/* ---- sums ----------------------------------------------------------------------------------- */

static double sum_values(void *context, size_t begin, size_t end) {
    const double *values = context;
    double sum = 0;
    for (size_t i = begin; i < end; i++)
        sum += values[i];
    return sum;
}

static void sums_do_not_depend_on_threads(void **state) {
    (void)state;
    const size_t counts[] = {0, 1, 1023, 1024, 1025, 100000, 1000003};
    const size_t most = 1000003;
    double *values = dcrf_allocate(most, sizeof *values);
    assert_non_null(values);
    dcrf_rng rng;
    dcrf_rng_seed(&rng, 3);
    for (size_t i = 0; i < most; i++)
        values[i] = dcrf_rng_uniform(&rng) * (i % 3 ? 1e-9 : 1e9);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const double alone = dcrf_parallel_sum(NULL, counts[c], sum_values, values);
        double plain = 0;
        for (size_t i = 0; i < counts[c]; i++)
            plain += values[i];
        /* All terms are positive: each order is within count * epsilon of the true sum. */
        assert_true(alone - plain <= 2 * (double)counts[c] * DBL_EPSILON * plain);
        assert_true(plain - alone <= 2 * (double)counts[c] * DBL_EPSILON * plain);
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            dcrf_pool *pool = new_pool(thread_counts[t]);
            for (int repeat = 0; repeat < 5; repeat++)
                assert_true(dcrf_parallel_sum(pool, counts[c], sum_values, values) == alone);
            dcrf_pool_free(&pool);
        }
    }
    dcrf_release(values);
}

/* ---- meetings ------------------------------------------------------------------------------- */

struct meeting {
    atomic_size_t inside;
    size_t count;
};

/* A chunk that ends when all have started: only possible with as many threads as chunks. */
static void meet(void *context, size_t begin, size_t end, size_t worker) {
    (void)begin;
    (void)end;
    (void)worker;
    struct meeting *meeting = context;
    atomic_fetch_add(&meeting->inside, 1);
    while (atomic_load(&meeting->inside) < meeting->count)
        sched_yield();
}

/* ---- fork ----------------------------------------------------------------------------------- */

static int sum_in_child(dcrf_pool *pool) {
    double values[5000];
    for (size_t i = 0; i < 5000; i++)
        values[i] = (double)i;
    return dcrf_parallel_sum(pool, 5000, sum_values, values) != 5000.0 * 4999 / 2;
}

static int use_and_free(dcrf_pool *pool) {
    if (sum_in_child(pool))
        return 1;
    dcrf_pool_free(&pool);
    return pool ? 2 : 0;
}

static int use_a_new_one(dcrf_pool *inherited) {
    dcrf_pool *pool = NULL;
    if (dcrf_pool_new(&pool, 2, NULL) != DCRF_OK)
        return 1;
    if (sum_in_child(pool))
        return 2;
    struct meeting meeting = {.count = 2}; /* it has two threads */
    dcrf_parallel_for(pool, 2, 1, meet, &meeting);
    dcrf_pool_free(&pool);
    return use_and_free(inherited);
}

static void check_child(int (*work)(dcrf_pool *pool)) {
    dcrf_pool *pool = new_pool(4);
    check_visits(pool, 4, 100, 1);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* a child that waits for missing threads must not hang the test */
        _exit(work(pool));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    check_visits(pool, 4, 100, 1);
    dcrf_pool_free(&pool);
}

static void child_of_a_fork_can_use_and_free_the_pool(void **state) {
    (void)state;
    check_child(use_and_free);
}

/* What cannot start threads after such a fork: the thread sanitizer, and qemu-user, which fails an
 * assertion of its own. */
static const char *without_such_threads(void) {
#if defined(__SANITIZE_THREAD__)
    return "the thread sanitizer";
#else
    char name[16] = "";
    FILE *stream = fopen("/proc/self/comm", "r"); /* the program the kernel runs */
    if (stream) {
        if (!fgets(name, sizeof name, stream))
            name[0] = 0;
        fclose(stream);
    }
    return strncmp(name, "qemu-", 5) == 0 ? "qemu-user" : NULL;
#endif
}

static void child_of_a_fork_can_start_a_pool(void **state) {
    (void)state;
    const char *runner = without_such_threads();
    if (runner) {
        print_message("%s cannot start threads in the child of a process with threads\n", runner);
        skip();
    }
    check_child(use_a_new_one);
}

/* ---- threads that are kept ------------------------------------------------------------------ */

#define KEPT 4

static void count_strangers(void *user, const struct dcrf_chunk *chunk) {
    if (!chunk->is_loop && chunk->begin / 3 != chunk->worker)
        atomic_fetch_add((atomic_size_t *)user, 1);
}

struct crowd {
    atomic_size_t inside;
    pthread_t thread[KEPT];
    size_t cores[KEPT]; /* on which each may run */
};

/* A chunk for each thread. */
static void gather(void *context, size_t begin, size_t end, size_t worker) {
    (void)begin;
    (void)end;
    struct crowd *crowd = context;
    crowd->thread[worker] = pthread_self();
#if defined(__linux__)
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    crowd->cores[worker] = (size_t)CPU_COUNT(&allowed);
#endif
    atomic_fetch_add(&crowd->inside, 1);
    while (atomic_load(&crowd->inside) < KEPT)
        sched_yield();
}

static struct crowd crowd_of(dcrf_pool *pool) {
    struct crowd crowd = {0};
    dcrf_parallel_for(pool, KEPT, 1, gather, &crowd);
    return crowd;
}

static struct crowd crowd_of_new_pool(void) {
    dcrf_pool *pool = new_pool(KEPT);
    const struct crowd crowd = crowd_of(pool);
    dcrf_pool_free(&pool);
    return crowd;
}

static bool is_same_crowd(struct crowd one, struct crowd other) {
    bool is_same = true;
    for (size_t i = 1; i < KEPT; i++)
        is_same = is_same && pthread_equal(one.thread[i], other.thread[i]);
    return is_same;
}

/* The threads of this process; 0: unknown. */
static size_t count_threads(void) {
    size_t count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

static void threads_are_kept_for_the_next_pool(void **state) {
    (void)state;
    if (SANITIZED)
        skip(); /* sanitizers see every thread end */
    dcrf_trim_memory();
    const size_t before = count_threads();
    atomic_size_t strangers = 0;
    dcrf_pool *pool = new_pool(KEPT);
    dcrf_pool_observe(pool, count_strangers, &strangers);
    const struct crowd first = crowd_of(pool);
    dcrf_pool_free(&pool);
    const size_t told = atomic_load(&strangers);
    for (size_t i = 0; i < 3; i++)
        assert_true(is_same_crowd(first, crowd_of_new_pool()));
    assert_int_equal(atomic_load(&strangers), told); /* nobody observes any more */
    /* Two at once: the second has threads of its own. */
    pool = new_pool(KEPT);
    assert_false(is_same_crowd(first, crowd_of_new_pool()));
    assert_true(is_same_crowd(first, crowd_of(pool)));
    dcrf_pool_free(&pool);
    /* No more than some are kept, and none after this: */
    for (size_t threads = 2; threads < 12; threads++) {
        dcrf_pool *other = new_pool(threads);
        dcrf_pool_free(&other);
    }
    assert_true(count_threads() <= before + 3 + 3 + 2 + 1 + 3);
    dcrf_trim_memory();
    assert_int_equal(count_threads(), before);
    /* Those of the parent do not exist in a child. */
    pool = new_pool(2);
    dcrf_pool_free(&pool);
    if (!without_such_threads())
        check_child(use_a_new_one);
}

#if defined(__linux__)
/* A program that restricts itself to some cores means the threads that it makes afterwards. */
static void threads_of_other_cores_are_not_used(void **state) {
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    for (size_t turn = 0; turn < 4; turn++) {
        const cpu_set_t *wanted = turn % 2 ? &one : &before;
        assert_int_equal(sched_setaffinity(0, sizeof *wanted, wanted), 0);
        const struct crowd crowd = crowd_of_new_pool();
        for (size_t i = 0; i < KEPT; i++)
            assert_int_equal(crowd.cores[i], CPU_COUNT(wanted));
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}
#endif

/* ---- signals and the floating-point mode ----------------------------------------------------- */

struct masks {
    atomic_size_t chunks;
    atomic_size_t blocked[4], faults_blocked[4];
};

static void look_at_mask(void *context, size_t begin, size_t end, size_t worker) {
    (void)begin;
    (void)end;
    struct masks *masks = context;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    atomic_store(&masks->blocked[worker], (size_t)sigismember(&set, SIGINT));
    atomic_store(&masks->faults_blocked[worker], (size_t)sigismember(&set, SIGSEGV));
    /* Wait until every thread is here, so that each is checked. */
    atomic_fetch_add(&masks->chunks, 1);
    while (atomic_load(&masks->chunks) < 4)
        sched_yield();
}

static void signals_stay_with_the_program(void **state) {
    (void)state;
    dcrf_pool *pool = new_pool(4);
    struct masks masks = {0};
    dcrf_parallel_for(pool, 4, 1, look_at_mask, &masks);
    dcrf_pool_free(&pool);
    assert_int_equal(atomic_load(&masks.blocked[0]), 0);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(atomic_load(&masks.blocked[i]), 1);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&masks.faults_blocked[i]), 0);
}

#if defined(__SSE2__) || defined(__aarch64__)

struct arithmetic {
    volatile float tiny;
    volatile float one, third;
    float halves[64], quotients[64];
};

static void compute(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    struct arithmetic *numbers = context;
    for (size_t i = begin; i < end; i++) {
        numbers->halves[i] = numbers->tiny * 0.5f;
        numbers->quotients[i] = numbers->one / numbers->third;
    }
}

static void modes_are_set_inside_and_restored_outside(void **state) {
    (void)state;
    const int caller_modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t threads = 1; threads <= 3; threads += 2) {
        dcrf_pool *pool = new_pool(threads);
        for (size_t m = 0; m < 4; m++) {
            struct arithmetic numbers = {.tiny = FLT_MIN, .one = 1, .third = 3};
            fesetround(caller_modes[m]);
            dcrf_parallel_for(pool, 64, 1, compute, &numbers);
            const int mode_after = fegetround();
            const float half_after = numbers.tiny * 0.5f;
            fesetround(FE_TONEAREST);
            assert_int_equal(mode_after, caller_modes[m]);
            assert_true(half_after > 0); /* denormals are enabled again */
            for (size_t i = 0; i < 64; i++) {
                assert_true(numbers.halves[i] == 0);
                assert_true(numbers.quotients[i] == 0x1.555556p-2f); /* 1/3 to nearest */
            }
        }
        dcrf_pool_free(&pool);
    }
}

static void callers_flags_are_left_alone(void **state) {
    (void)state;
    struct arithmetic numbers = {.tiny = FLT_MIN, .one = 1, .third = 3};
    feclearexcept(FE_ALL_EXCEPT);
    dcrf_parallel_for(NULL, 64, 1, compute, &numbers);
    assert_int_equal(fetestexcept(FE_INEXACT | FE_UNDERFLOW), 0);
}

#endif

/* ---- who works ------------------------------------------------------------------------------ */

static void all_threads_are_woken_when_there_is_work_for_them(void **state) {
    (void)state;
    dcrf_pool *pool = new_pool(8);
    for (size_t chunks = 1; chunks <= 8; chunks++) {
        usleep(20000); /* all or some are asleep */
        for (int i = 0; i < 3; i++) {
            struct meeting meeting = {.count = chunks};
            dcrf_parallel_for(pool, chunks, 1, meet, &meeting);
            assert_int_equal(atomic_load(&meeting.inside), chunks);
        }
    }
    dcrf_pool_free(&pool);
}

/* In every loop a thread begins with the same share of the chunks: what it wrote in the loop before
 * is in its own cache. In a meeting no thread has time for another share. */
static void threads_begin_with_their_own_share(void **state) {
    (void)state;
    dcrf_pool *pool = new_pool(8);
    atomic_size_t strangers = 0;
    dcrf_pool_observe(pool, count_strangers, &strangers);
    for (int i = 0; i < 20; i++) {
        struct meeting meeting = {.count = 8};
        dcrf_parallel_for(pool, 24, 3, meet, &meeting);
    }
    assert_int_equal(atomic_load(&strangers), 0);
    dcrf_pool_free(&pool);
}

#if defined(__linux__)
/* Do all threads but this one sleep? */
static bool are_others_asleep(void) {
    bool asleep = true;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[300], state = 'S';
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE *stream = entry->d_name[0] == '.' || atol(entry->d_name) == syscall(SYS_gettid)
                           ? NULL
                           : fopen(path, "r");
        if (stream && fscanf(stream, "%*d (%*[^)]) %c", &state) != 1)
            state = 'S'; /* it has ended */
        if (stream)
            fclose(stream);
        asleep = asleep && state == 'S';
    }
    if (folder)
        closedir(folder);
    return asleep;
}

static void count_helpers(void *context, size_t begin, size_t end, size_t worker) {
    (void)begin;
    (void)end;
    atomic_fetch_add((atomic_size_t *)context, worker > 0);
}

static void nobody_is_woken_for_a_brief_loop(void **state) {
    (void)state;
    dcrf_pool *pool = new_pool(8);
    for (int i = 0; i < 20; i++) {
        struct meeting meeting = {.count = 8}; /* all are awake */
        dcrf_parallel_for(pool, 8, 1, meet, &meeting);
        while (!are_others_asleep())
            sched_yield();
        atomic_size_t helpers = 0;
        const struct dcrf_loop brief = {.task = count_helpers,
                                        .context = &helpers,
                                        .count = 1000,
                                        .grain = 1,
                                        .is_brief = true};
        dcrf_parallel_loop(pool, &brief);
        assert_int_equal(atomic_load(&helpers), 0);
    }
    dcrf_pool_free(&pool);
}
#endif

struct told {
    atomic_size_t begun, ended, loops, mistakes;
};

static void tell(void *user, const struct dcrf_chunk *chunk) {
    struct told *told = user;
    if (chunk->is_loop)
        atomic_fetch_add(&told->loops, 1);
    else
        atomic_fetch_add(chunk->is_done ? &told->ended : &told->begun, chunk->end - chunk->begin);
    if (chunk->loop != atomic_load(&told->loops) / 2 - (chunk->is_loop && chunk->is_done) ||
        chunk->worker >= 3 || chunk->work != (dcrf_work)meet)
        atomic_fetch_add(&told->mistakes, 1);
}

static void observers_are_told_of_every_chunk(void **state) {
    (void)state;
    dcrf_pool *pool = new_pool(3);
    struct told told = {0};
    dcrf_pool_observe(pool, tell, &told);
    const size_t counts[] = {10, 1, 7, 0, 100};
    for (size_t i = 0; i < 5; i++)
        dcrf_parallel_for(pool, counts[i], 3, meet, &(struct meeting){0});
    assert_int_equal(atomic_load(&told.loops), 2 * 4);
    assert_int_equal(atomic_load(&told.begun), 118);
    assert_int_equal(atomic_load(&told.ended), 118);
    assert_int_equal(atomic_load(&told.mistakes), 0);
    dcrf_pool_observe(pool, NULL, NULL);
    dcrf_parallel_for(pool, 10, 3, meet, &(struct meeting){0});
    assert_int_equal(atomic_load(&told.begun), 118);
    dcrf_pool_free(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_once),
        cmocka_unit_test(loops_follow_each_other),
        cmocka_unit_test(all_threads_are_woken_when_there_is_work_for_them),
        cmocka_unit_test(threads_begin_with_their_own_share),
#if defined(__linux__)
        cmocka_unit_test(nobody_is_woken_for_a_brief_loop),
#endif
        cmocka_unit_test(observers_are_told_of_every_chunk),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(default_is_the_usable_cores),
        cmocka_unit_test(sums_do_not_depend_on_threads),
        cmocka_unit_test(child_of_a_fork_can_use_and_free_the_pool),
        cmocka_unit_test(child_of_a_fork_can_start_a_pool),
        cmocka_unit_test(threads_are_kept_for_the_next_pool),
#if defined(__linux__)
        cmocka_unit_test(threads_of_other_cores_are_not_used),
#endif
        cmocka_unit_test(signals_stay_with_the_program),
#if defined(__SSE2__) || defined(__aarch64__)
        cmocka_unit_test(modes_are_set_inside_and_restored_outside),
        cmocka_unit_test(callers_flags_are_left_alone),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
