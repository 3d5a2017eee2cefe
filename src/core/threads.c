/* The thread pool: workers wait for a generation counter to change, enter while the door of the
 * loop is open, take chunks, and leave. The caller works too, shuts the door when no chunk is left,
 * and waits only for the workers inside: one that the system has not scheduled yet causes no delay.
 *
 * The chunks of a loop are divided into shares, one after the other, as many as there are threads.
 * A thread begins with its own share, so that it finds in its own cache what it wrote in the loop
 * before, and threads do not wait for each other's counters; then it takes chunks of others. Shares
 * with chunks left are the bits of one word.
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

/* The bits of a word. */
#define MOST_SHARES 64

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

/* Some consecutive chunks of the current loop. */
struct share {
    _Alignas(DCRF_ALIGNMENT) atomic_size_t next;
    size_t end;
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
    size_t shares;
    struct share share[MOST_SHARES];
    _Alignas(DCRF_ALIGNMENT) atomic_uint_least64_t open; /* shares with chunks left */
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

static struct dcrf_chunk describe(const struct loop *loop, size_t begin, size_t end) {
    return (struct dcrf_chunk){
        .loop = loop->number, .work = loop->work, .begin = begin, .end = end};
}

static void run_chunk(const dcrf_pool *pool, const struct loop *loop, size_t begin, size_t worker) {
    const size_t left = loop->count - begin;
    const size_t end = begin + (left < loop->grain ? left : loop->grain);
    struct dcrf_chunk chunk = describe(loop, begin, end);
    chunk.worker = worker;
    tell(pool, chunk);
    loop->task(loop->context, begin, end, worker);
    chunk.is_done = true;
    tell(pool, chunk);
}

/* ---- shares --------------------------------------------------------------------------------- */

static void divide_loop(dcrf_pool *pool) {
    const size_t chunks = (pool->loop.count - 1) / pool->loop.grain + 1;
    size_t shares = pool->threads < MOST_SHARES ? pool->threads : MOST_SHARES;
    shares = chunks < shares ? chunks : shares;
    pool->shares = shares;
    for (size_t i = 0; i < shares; i++) {
        /* chunks * i / shares could overflow */
        const size_t whole = chunks / shares, rest = chunks % shares;
        atomic_store_explicit(&pool->share[i].next, whole * i + rest * i / shares,
                              memory_order_relaxed);
        pool->share[i].end = whole * (i + 1) + rest * (i + 1) / shares;
    }
    atomic_store_explicit(&pool->open, UINT64_MAX >> (MOST_SHARES - shares), memory_order_relaxed);
}

/* The chunks that no thread has taken. */
static size_t chunks_left(dcrf_pool *pool) {
    size_t left = 0;
    for (size_t i = 0; i < pool->shares; i++) {
        const size_t next = atomic_load_explicit(&pool->share[i].next, memory_order_relaxed);
        left += next < pool->share[i].end ? pool->share[i].end - next : 0;
    }
    return left;
}

/* Run the chunks left in a share. Returns whether there were any. */
static bool run_share(dcrf_pool *pool, size_t i, size_t worker) {
    struct share *share = &pool->share[i];
    for (bool any = false;; any = true) {
        const size_t chunk = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
        if (chunk >= share->end)
            return any;
        if (chunk + 1 == share->end)
            atomic_fetch_and_explicit(&pool->open, ~((uint64_t)1 << i), memory_order_relaxed);
        run_chunk(pool, &pool->loop, chunk * pool->loop.grain, worker);
    }
}

/* Run chunks until none are left. Returns whether there were any. */
static bool run_chunks(dcrf_pool *pool, size_t worker) {
    const size_t own = worker % pool->shares;
    bool any = run_share(pool, own, worker);
    uint64_t open;
    while ((open = atomic_load_explicit(&pool->open, memory_order_relaxed)) != 0) {
        const uint64_t after = open >> own << own; /* the next ones, around the circle */
        any |= run_share(pool, (size_t)__builtin_ctzll(after ? after : open), worker);
    }
    return any;
}

/* ---- waking and waiting --------------------------------------------------------------------- */

/* Wake a few sleepers, for the chunks left over when each of `awake` threads has one. */
static void wake_some(dcrf_pool *pool, size_t awake) {
    const size_t sleepers = atomic_load(&pool->sleepers);
    const size_t left = sleepers > 0 ? chunks_left(pool) : 0;
    if (left <= awake)
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
    divide_loop(pool);
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
    struct dcrf_chunk whole = describe(&loop, 0, count);
    whole.is_loop = true;
    tell(pool, whole);
    if (!pool || pool->started == 0 || count <= grain || pool->owner != dcrf_process_id())
        for (size_t begin = 0; begin < count; begin += grain)
            run_chunk(pool, &loop, begin, 0);
    else
        run_together(pool, &loop);
    whole.is_done = true;
    tell(pool, whole);
    dcrf_restore_denormals(saved_mode);
}
