/* The pool: workers wait for a generation counter to change, go in while the door of the loop is
 * open, take chunks from a shared counter, and leave. The caller works too, shuts the door when no
 * chunk is left, and waits for those inside only: a worker that the system had not yet let run
 * delays nobody. Loops follow each other within microseconds (a filter is a dozen of them), so a
 * worker spins for a short while before it sleeps; not when there are more threads than cores. */
#include "core/threads.h"

#include "core/error.h"
#include "core/fpmode.h"
#include "core/memory.h"
#include "core/platform.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define MOST_THREADS 1024
#define SPINS_BEFORE_SLEEP 20000

/* The door: whether it is open, and how many workers are inside. */
#define DOOR_OPEN ((size_t)1 << 31)

struct worker {
    struct dcrf_thread thread;
    dcrf_pool *pool;
    size_t index;
};

struct dcrf_pool {
    size_t threads; /* with the caller's */
    size_t started; /* workers that run */
    struct worker *workers;
    long owner; /* the process */
    int spins;

    /* The current loop: written by the caller before it opens the door. */
    dcrf_task task;
    void *context;
    size_t count, grain;
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

static void run_chunks(dcrf_pool *pool, size_t worker) {
    for (;;) {
        const size_t begin =
            atomic_fetch_add_explicit(&pool->next, pool->grain, memory_order_relaxed);
        if (begin >= pool->count)
            return;
        const size_t left = pool->count - begin;
        pool->task(pool->context, begin, begin + (left < pool->grain ? left : pool->grain), worker);
    }
}

/* Wait until the generation differs from `seen`, and return it. */
static unsigned wait_for_work(dcrf_pool *pool, unsigned seen) {
    for (int i = 0; i < pool->spins; i++) {
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
    return now;
}

/* Go in unless the door is shut. */
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
    dcrf_flush_denormals(); /* our own thread: no mode to restore */
    for (;;) {
        seen = wait_for_work(pool, seen);
        if (atomic_load(&pool->quit))
            return;
        if (enter(pool)) {
            run_chunks(pool, self->index);
            atomic_fetch_sub_explicit(&pool->door, 1, memory_order_release);
        }
    }
}

/* Let the workers see a new generation, the sleeping ones too. */
static void announce(dcrf_pool *pool) {
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers) > 0) {
        dcrf_mutex_lock(&pool->mutex);
        dcrf_condition_broadcast(&pool->wake);
        dcrf_mutex_unlock(&pool->mutex);
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
    pool->spins = threads <= cores ? SPINS_BEFORE_SLEEP : 0;
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
    /* After fork() the workers do not exist on this side; there is nothing to join. */
    if (pool->owner == dcrf_process_id()) {
        atomic_store(&pool->quit, true);
        announce(pool);
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

void dcrf_parallel_for(dcrf_pool *pool, size_t count, size_t grain, dcrf_task task, void *context) {
    assert(grain > 0);
    if (count == 0)
        return;
    const uint64_t saved_mode = dcrf_flush_denormals();
    if (!pool || pool->started == 0 || count <= grain || pool->owner != dcrf_process_id()) {
        for (size_t begin = 0; begin < count; begin += grain)
            task(context, begin, count - begin < grain ? count : begin + grain, 0);
    } else {
        pool->task = task;
        pool->context = context;
        pool->count = count;
        pool->grain = grain;
        atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
        atomic_store_explicit(&pool->door, DOOR_OPEN, memory_order_release);
        announce(pool);
        run_chunks(pool, 0);
        atomic_fetch_and_explicit(&pool->door, ~DOOR_OPEN, memory_order_relaxed);
        int spins_left = pool->spins;
        while (atomic_load_explicit(&pool->door, memory_order_acquire) > 0) {
            if (spins_left > 0) {
                spins_left--;
                relax();
            } else {
                dcrf_thread_yield();
            }
        }
    }
    dcrf_restore_denormals(saved_mode);
}
