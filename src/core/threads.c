/* The thread pool: workers wait for a generation counter to change, enter while the door of the
 * loop is open, take chunks from a shared counter, and leave. The caller works too, shuts the door
 * when no chunk is left, and waits only for the workers inside: one that the system has not
 * scheduled yet causes no delay.
 *
 * Loops follow each other within microseconds (a filter is a dozen of them), so a worker spins
 * briefly before it sleeps, unless there are more threads than cores. A loop that passes without a
 * chunk for the worker does not extend its spinning: threads that small loops do not need soon
 * sleep, and stay asleep. Sleepers are woken for chunks that have no running thread: a few by the
 * caller, and more by each woken worker while chunks are left. */
#include "core/threads.h"

#include "core/error.h"
#include "core/fpmode.h"
#include "core/memory.h"
#include "core/platform.h"
#include "core/timer.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define MOST_THREADS 1024
/* How long a worker spins before it sleeps (waking takes the system about as long), and how many
 * spins there are between looks at the clock. */
#define SPIN_S 50e-6
#define SPINS_PER_LOOK 32
/* Spins of a caller that waits for its workers before it yields the processor. */
#define SPINS_BEFORE_YIELD 20000
/* Sleepers that one thread wakes. */
#define WAKES 3

/* The door: whether it is open, and how many workers are inside. */
#define DOOR_OPEN ((size_t)1 << 31)

struct worker {
    struct dcrf_thread thread;
    dcrf_pool *pool;
    size_t index;
};

struct loop {
    dcrf_task task;
    void *context;
    size_t count, grain;
    size_t number; /* among the loops reported to an observer */
    dcrf_work work;
};

struct dcrf_pool {
    size_t threads; /* including the caller's */
    size_t started; /* running workers */
    struct worker *workers;
    long owner; /* process id */
    bool spins;
    dcrf_pool_observer observer;
    void *observer_user;
    size_t observed; /* loops reported */

    /* The current loop: written by the caller before it opens the door. */
    struct loop loop;
    _Alignas(DCRF_ALIGNMENT) atomic_size_t next;
    _Alignas(DCRF_ALIGNMENT) atomic_size_t door;
    _Alignas(DCRF_ALIGNMENT) atomic_uint generation;
    atomic_bool quit;
    atomic_size_t sleepers;
    dcrf_mutex mutex;
    dcrf_condition wake;
};

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void tell(const dcrf_pool *pool, struct dcrf_chunk chunk) {
    if (pool && pool->observer)
        pool->observer(pool->observer_user, &chunk);
}

static void run_chunk(const dcrf_pool *pool, const struct loop *loop, size_t begin, size_t worker) {
    const size_t left = loop->count - begin;
    const size_t end = begin + (left < loop->grain ? left : loop->grain);
    tell(pool, (struct dcrf_chunk){loop->number, loop->work, begin, end, worker, false, false});
    loop->task(loop->context, begin, end, worker);
    tell(pool, (struct dcrf_chunk){loop->number, loop->work, begin, end, worker, false, true});
}

/* Run chunks until none are left. Returns whether there were any. */
static bool run_chunks(dcrf_pool *pool, size_t worker) {
    for (bool any = false;; any = true) {
        const size_t begin =
            atomic_fetch_add_explicit(&pool->next, pool->loop.grain, memory_order_relaxed);
        if (begin >= pool->loop.count)
            return any;
        run_chunk(pool, &pool->loop, begin, worker);
    }
}

/* Wake a few sleepers, for the chunks left over when each of `awake` threads has one. */
static void wake_some(dcrf_pool *pool, size_t awake) {
    const size_t next = atomic_load_explicit(&pool->next, memory_order_relaxed);
    const size_t left =
        next < pool->loop.count ? (pool->loop.count - next - 1) / pool->loop.grain + 1 : 0;
    const size_t sleepers = atomic_load(&pool->sleepers);
    if (left <= awake || sleepers == 0)
        return;
    const size_t most = sleepers < WAKES ? sleepers : WAKES;
    dcrf_mutex_lock(&pool->mutex);
    for (size_t i = 0; i < most && i < left - awake; i++)
        dcrf_condition_signal(&pool->wake);
    dcrf_mutex_unlock(&pool->mutex);
}

/* Wait until the generation differs from `seen`, and return it. */
static unsigned wait_for_work(dcrf_pool *pool, unsigned seen, double *sleep_at_s, bool *has_slept) {
    *has_slept = false;
    while (pool->spins && dcrf_time_s() < *sleep_at_s)
        for (int i = 0; i < SPINS_PER_LOOK; i++) {
            const unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
            if (now != seen)
                return now;
            relax();
        }
    dcrf_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    unsigned now;
    while ((now = atomic_load(&pool->generation)) == seen)
        dcrf_condition_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    dcrf_mutex_unlock(&pool->mutex);
    *has_slept = true;
    return now;
}

/* Enter unless the door is shut. */
static bool enter(dcrf_pool *pool) {
    size_t door = atomic_load_explicit(&pool->door, memory_order_relaxed);
    while (door & DOOR_OPEN)
        if (atomic_compare_exchange_weak_explicit(&pool->door, &door, door + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static void worker_main(void *argument) {
    struct worker *self = argument;
    dcrf_pool *pool = self->pool;
    unsigned seen = 0;
    double sleep_at_s = 0;
    dcrf_flush_denormals(); /* our own thread: no mode to restore */
    for (;;) {
        bool is_wanted, has_slept;
        seen = wait_for_work(pool, seen, &sleep_at_s, &has_slept);
        is_wanted = has_slept;
        if (atomic_load(&pool->quit))
            return;
        if (enter(pool)) {
            if (has_slept)
                wake_some(pool, 1);
            is_wanted |= run_chunks(pool, self->index);
            atomic_fetch_sub_explicit(&pool->door, 1, memory_order_release);
        }
        if (is_wanted)
            sleep_at_s = dcrf_time_s() + SPIN_S;
    }
}

dcrf_status dcrf_pool_new(dcrf_pool **out, size_t threads, dcrf_error *error) {
    const size_t cores = dcrf_core_count();
    *out = NULL;
    if (threads == 0)
        threads = cores < MOST_THREADS ? cores : MOST_THREADS;
    if (threads > MOST_THREADS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%zu threads asked for; at most %d are possible", threads, MOST_THREADS);
    dcrf_pool *pool = dcrf_allocate_zero(1, sizeof *pool);
    if (!pool)
        return dcrf_fail_memory(error, "the thread pool");
    pool->threads = threads;
    pool->owner = dcrf_process_id();
    pool->spins = threads <= cores;
    pool->workers = dcrf_allocate_zero(threads, sizeof *pool->workers);
    if (!pool->workers) {
        dcrf_release(pool);
        return dcrf_fail_memory(error, "the thread pool");
    }
    dcrf_mutex_init(&pool->mutex);
    dcrf_condition_init(&pool->wake);
    for (size_t i = 1; i < threads; i++) {
        struct worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->index = i;
        const int code = dcrf_thread_start(&worker->thread, worker_main, worker);
        if (code != 0) {
            dcrf_pool_free(&pool);
            return dcrf_fail(error, DCRF_ERROR_THREAD, "cannot start thread %zu of %zu: %s", i + 1,
                             threads, strerror(code));
        }
        pool->started++;
    }
    *out = pool;
    return DCRF_OK;
}

void dcrf_pool_free(dcrf_pool **pool_pointer) {
    dcrf_pool *pool = *pool_pointer;
    if (!pool)
        return;
    /* After fork() the workers do not exist in the child; there is nothing to join. */
    if (pool->owner == dcrf_process_id()) {
        atomic_store(&pool->quit, true);
        atomic_fetch_add(&pool->generation, 1);
        dcrf_mutex_lock(&pool->mutex);
        dcrf_condition_broadcast(&pool->wake);
        dcrf_mutex_unlock(&pool->mutex);
        for (size_t i = 1; i <= pool->started; i++)
            dcrf_thread_join(&pool->workers[i].thread);
        dcrf_condition_destroy(&pool->wake);
        dcrf_mutex_destroy(&pool->mutex);
    }
    dcrf_release(pool->workers);
    dcrf_release(pool);
    *pool_pointer = NULL;
}

size_t dcrf_pool_threads(const dcrf_pool *pool) {
    return pool ? pool->threads : 1;
}

void dcrf_pool_observe(dcrf_pool *pool, dcrf_pool_observer observer, void *user) {
    pool->observer = observer;
    pool->observer_user = user;
}

/* Run the chunks of a loop on all threads. */
static void run_together(dcrf_pool *pool, const struct loop *loop) {
    pool->loop = *loop;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->door, DOOR_OPEN, memory_order_release);
    atomic_fetch_add(&pool->generation, 1);
    wake_some(pool, 1 + pool->started - atomic_load(&pool->sleepers));
    run_chunks(pool, 0);
    atomic_fetch_and_explicit(&pool->door, ~DOOR_OPEN, memory_order_relaxed);
    int spins_left = pool->spins ? SPINS_BEFORE_YIELD : 0;
    while (atomic_load_explicit(&pool->door, memory_order_acquire) > 0) {
        if (spins_left > 0) {
            spins_left--;
            relax();
        } else {
            dcrf_thread_yield();
        }
    }
}

void dcrf_parallel_for(dcrf_pool *pool, size_t count, size_t grain, dcrf_task task, void *context) {
    dcrf_parallel_for_work(pool, count, grain, task, context, (dcrf_work)task);
}

void dcrf_parallel_for_work(dcrf_pool *pool, size_t count, size_t grain, dcrf_task task,
                            void *context, dcrf_work work) {
    assert(grain > 0);
    if (count == 0)
        return;
    const uint64_t saved_mode = dcrf_flush_denormals();
    struct loop loop = {task, context, count, grain, 0, work};
    if (pool && pool->observer)
        loop.number = pool->observed++;
    tell(pool, (struct dcrf_chunk){loop.number, work, 0, count, 0, true, false});
    if (!pool || pool->started == 0 || count <= grain || pool->owner != dcrf_process_id())
        for (size_t begin = 0; begin < count; begin += grain)
            run_chunk(pool, &loop, begin, 0);
    else
        run_together(pool, &loop);
    tell(pool, (struct dcrf_chunk){loop.number, work, 0, count, 0, true, true});
    dcrf_restore_denormals(saved_mode);
}
