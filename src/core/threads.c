/* The thread pool: workers wait for the state of the pool to change, enter while a loop is open,
 * take chunks, and leave. The caller works too, shuts the loop when no chunk is left, and waits
 * only for the workers inside: one that the system has not scheduled yet causes no delay.
 *
 * Entering and leaving. The state counts: it is odd while a loop is open and even between loops,
 * and only the caller changes it. Each worker has a flag of its own, which says that it is inside,
 * or about to look whether it may be. A worker raises its flag and then reads the state; the caller
 * makes the state even and then reads the flags. These four accesses are sequentially consistent,
 * so all threads see them in one order, and in that order either the worker's read comes after the
 * caller's change, so that it finds the loop shut and leaves without touching it; or the caller's
 * read comes after the worker's flag, so that the caller waits. (If the worker finds a later loop
 * open instead, the same holds for that one.) Hence no worker is inside when the caller returns or
 * writes the next loop. What a worker wrote is visible to the caller, who has read the flag that it
 * lowered afterwards, and through the state of the next loop to all who enter that. So a loop costs
 * two writes of a line that all read, and two of a line that one other thread reads.
 *
 * The chunks of a loop are divided into shares, one after the other, as many as there are threads.
 * A thread begins with its own share, so that it finds in its own cache what it wrote in the loop
 * before, and threads do not wait for each other's counters; then it takes chunks of others, share
 * by share. A share that is used up stays so, and to look whether it is does not take its line away
 * from its owner.
 *
 * Loops follow each other within microseconds (a filter is a dozen of them), so a worker spins
 * briefly before it sleeps, unless there are more threads than cores, or the system has put it on
 * the core of the caller. A loop that passes without a chunk for the worker does not extend its
 * spinning: threads that small loops do not need soon sleep, and stay asleep. Sleepers are woken
 * for chunks that have no running thread: a few by the caller, and more by each woken worker while
 * chunks are left. A worker counts itself as a sleeper before it reads the state for the last time,
 * and the caller changes the state before it reads that number: either the caller sees the sleeper,
 * or the worker does not fall asleep. Loops that are over before a thread would be awake say so,
 * and wake none.
 *
 * Starting and ending threads takes as long as filtering a small picture. The pool of a workspace
 * that has ended is therefore parked, asleep, for the next workspace of as many threads. */
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
 * spins there are between readings of the clock. */
#define SPIN_S 50e-6
#define SPINS_PER_CLOCK_READING 32
/* Spins of a caller that waits for its workers before it yields the processor. */
#define SPINS_BEFORE_YIELD 20000
/* Sleepers that one thread wakes. */
#define WAKES 3

#define MOST_SHARES 64

/* Pools that wait for another workspace. Sanitizers must see every thread end, and on Windows a
 * library that is unloaded cannot end its threads. */
#define MOST_PARKED 4
#if defined(_WIN32) || defined(DCRF_IS_SANITIZED)
#define PARKS false
#else
#define PARKS true
#endif

struct worker {
    _Alignas(DCRF_ALIGNMENT) atomic_bool is_inside; /* or looks whether it may be */
    atomic_int core;                                /* where it entered */
    struct dcrf_thread thread;
    dcrf_pool *pool;
    size_t index;
};

struct loop {
    struct dcrf_loop is;
    size_t number; /* among the loops reported to an observer */
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
    long owner;        /* process id */
    uint64_t core_set; /* on which the workers may run */
    atomic_bool spins; /* do those who wait? */
    dcrf_pool_observer observer;
    void *observer_user;
    size_t observed; /* loops reported */

    /* The current loop: written by the caller before it opens it. */
    struct loop loop;
    size_t shares;
    struct share share[MOST_SHARES];
    _Alignas(DCRF_ALIGNMENT) atomic_uint state; /* odd while a loop is open */
    atomic_bool quit;
    atomic_int core; /* on which the caller was when it opened the loop */
    _Alignas(DCRF_ALIGNMENT) atomic_size_t sleepers;
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
    return (struct dcrf_chunk){.loop = loop->number,
                               .work = loop->is.work ? loop->is.work : (dcrf_work)loop->is.task,
                               .begin = begin,
                               .end = end,
                               .is_brief = loop->is.is_brief};
}

static void run_chunk(const dcrf_pool *pool, const struct loop *loop, size_t begin, size_t worker) {
    const size_t left = loop->is.count - begin, grain = loop->is.grain;
    const size_t end = begin + (left < grain ? left : grain);
    struct dcrf_chunk chunk = describe(loop, begin, end);
    chunk.worker = worker;
    tell(pool, chunk);
    loop->is.task(loop->is.context, begin, end, worker);
    chunk.is_done = true;
    tell(pool, chunk);
}

/* ---- shares --------------------------------------------------------------------------------- */

static void divide_loop(dcrf_pool *pool) {
    const size_t chunks = (pool->loop.is.count - 1) / pool->loop.is.grain + 1;
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
        if (atomic_load_explicit(&share->next, memory_order_relaxed) >= share->end)
            return any;
        const size_t chunk = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
        if (chunk >= share->end)
            return any;
        run_chunk(pool, &pool->loop, chunk * pool->loop.is.grain, worker);
    }
}

/* Run chunks until none are left, the own share first. Returns whether there were any. */
static bool run_chunks(dcrf_pool *pool, size_t worker) {
    const size_t shares = pool->shares;
    bool any = false;
    for (size_t i = 0; i < shares; i++)
        any |= run_share(pool, (worker + i) % shares, worker);
    return any;
}

/* ---- waking and waiting --------------------------------------------------------------------- */

static bool is_open(unsigned state) {
    return state % 2 != 0;
}

/* Wake a few sleepers, for the chunks left over when each of `awake` threads has one. */
static void wake_some(dcrf_pool *pool, size_t awake) {
    const size_t sleepers = atomic_load(&pool->sleepers);
    const size_t left = sleepers > 0 && !pool->loop.is.is_brief ? chunks_left(pool) : 0;
    if (left > awake)
        dcrf_wake(&pool->state, left - awake < WAKES ? left - awake : WAKES);
}

/* May a worker spin? Not on the core of the caller, who could not open a loop meanwhile. */
static bool may_spin(dcrf_pool *pool, double sleep_at_s) {
    const int core = atomic_load_explicit(&pool->core, memory_order_relaxed);
    return atomic_load_explicit(&pool->spins, memory_order_relaxed) && dcrf_time_s() < sleep_at_s &&
           (core < 0 || core != dcrf_current_core());
}

/* Wait until a loop is open other than that of the state `seen`. Returns whether it slept. */
static bool wait_for_work(dcrf_pool *pool, unsigned seen, double sleep_at_s) {
    unsigned now;
    while (may_spin(pool, sleep_at_s))
        for (int i = 0; i < SPINS_PER_CLOCK_READING; i++) {
            now = atomic_load_explicit(&pool->state, memory_order_relaxed);
            if (now != seen && is_open(now))
                return false;
            relax();
        }
    atomic_fetch_add(&pool->sleepers, 1);
    while ((now = atomic_load(&pool->state)) == seen || !is_open(now))
        dcrf_sleep_while(&pool->state, now);
    atomic_fetch_sub(&pool->sleepers, 1);
    return true;
}

/* Enter unless the loop has been shut. Returns the state that was found. */
static unsigned enter(struct worker *self) {
    atomic_store(&self->is_inside, true);
    const unsigned state = atomic_load(&self->pool->state);
    if (!is_open(state))
        atomic_store_explicit(&self->is_inside, false, memory_order_release);
    return state;
}

static void worker_main(void *argument) {
    struct worker *self = argument;
    dcrf_pool *pool = self->pool;
    unsigned seen = 0;
    double sleep_at_s = 0;
    dcrf_flush_denormals(); /* our own thread: no mode to restore */
    for (;;) {
        const bool has_slept = wait_for_work(pool, seen, sleep_at_s);
        bool is_wanted = has_slept;
        seen = enter(self);
        if (atomic_load(&pool->quit))
            return;
        if (is_open(seen)) {
            atomic_store_explicit(&self->core, dcrf_current_core(), memory_order_relaxed);
            if (has_slept)
                wake_some(pool, 1);
            is_wanted |= run_chunks(pool, self->index);
            atomic_store_explicit(&self->is_inside, false, memory_order_release);
        }
        if (is_wanted)
            sleep_at_s = dcrf_time_s() + SPIN_S;
    }
}

/* ---- pools ---------------------------------------------------------------------------------- */

/* End the workers, if they are in this process: after fork() the child has none. */
static void end_pool(dcrf_pool *pool) {
    if (pool->owner == dcrf_process_id()) {
        atomic_store(&pool->quit, true);
        atomic_fetch_add(&pool->state, 1);
        dcrf_wake(&pool->state, pool->started);
        for (size_t i = 1; i <= pool->started; i++)
            dcrf_thread_join(&pool->workers[i].thread);
    }
    dcrf_release(pool->workers);
    dcrf_release(pool);
}

/* Each place is taken and filled by one atomic operation, so a fork() at any time finds them in
 * order. */
static _Atomic(dcrf_pool *) parked[MOST_PARKED];

static bool park(dcrf_pool *pool) {
    pool->observer = NULL;
    pool->observed = 0;
    atomic_store_explicit(&pool->spins, false, memory_order_relaxed);
    for (size_t i = 0; PARKS && i < MOST_PARKED; i++) {
        dcrf_pool *none = NULL;
        if (atomic_compare_exchange_strong(&parked[i], &none, pool))
            return true;
    }
    return false;
}

/* A parked pool of so many threads, on the cores that a new one would use; or NULL. */
static dcrf_pool *unpark(size_t threads, uint64_t core_set) {
    for (size_t i = 0; i < MOST_PARKED; i++) {
        dcrf_pool *pool = atomic_exchange(&parked[i], NULL);
        if (pool && pool->threads == threads && pool->core_set == core_set &&
            pool->owner == dcrf_process_id())
            return pool;
        if (pool && (pool->owner != dcrf_process_id() || !park(pool)))
            end_pool(pool);
    }
    return NULL;
}

void dcrf_pool_end_parked(void) {
    for (size_t i = 0; i < MOST_PARKED; i++) {
        dcrf_pool *pool = atomic_exchange(&parked[i], NULL);
        if (pool)
            end_pool(pool);
    }
}

/* No thread may sleep in a library that is unloaded. */
__attribute__((destructor)) static void end_parked_at_exit(void) {
    dcrf_pool_end_parked();
}

static dcrf_status start_workers(dcrf_pool *pool, dcrf_error *error) {
    pool->workers = dcrf_allocate_zero(pool->threads, sizeof *pool->workers);
    if (!pool->workers)
        return dcrf_fail_memory(error, "the thread pool");
    for (size_t i = 1; i < pool->threads; i++) {
        struct worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->index = i;
        const int code = dcrf_thread_start(&worker->thread, worker_main, worker);
        if (code != 0)
            return dcrf_fail(error, DCRF_ERROR_THREAD, "cannot start thread %zu of %zu: %s", i + 1,
                             pool->threads, strerror(code));
        pool->started++;
    }
    return DCRF_OK;
}

dcrf_status dcrf_pool_new(dcrf_pool **out, size_t threads, dcrf_error *error) {
    const size_t cores = dcrf_core_count();
    *out = NULL;
    if (threads == 0)
        threads = cores < MOST_THREADS ? cores : MOST_THREADS;
    if (threads > MOST_THREADS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%zu threads asked for; at most %d are possible", threads, MOST_THREADS);
    const uint64_t core_set = threads > 1 ? dcrf_core_set() : 0;
    dcrf_pool *pool = unpark(threads, core_set);
    if (!pool) {
        pool = dcrf_allocate_zero(1, sizeof *pool);
        if (!pool)
            return dcrf_fail_memory(error, "the thread pool");
        pool->threads = threads;
        pool->owner = dcrf_process_id();
        pool->core_set = core_set;
        const dcrf_status status = start_workers(pool, error);
        if (status < 0) {
            end_pool(pool);
            return status;
        }
    }
    atomic_store_explicit(&pool->spins, threads <= cores, memory_order_relaxed);
    *out = pool;
    return DCRF_OK;
}

void dcrf_pool_free(dcrf_pool **pool_pointer) {
    dcrf_pool *pool = *pool_pointer;
    *pool_pointer = NULL;
    if (pool && (pool->started == 0 || pool->owner != dcrf_process_id() || !park(pool)))
        end_pool(pool);
}

size_t dcrf_pool_threads(const dcrf_pool *pool) {
    return pool ? pool->threads : 1;
}

void dcrf_pool_observe(dcrf_pool *pool, dcrf_pool_observer observer, void *user) {
    pool->observer = observer;
    pool->observer_user = user;
}

/* Wait until a worker is outside. */
static void wait_for(const struct worker *worker, int *spins_left) {
    while (atomic_load(&worker->is_inside)) {
        const int core = atomic_load_explicit(&worker->core, memory_order_relaxed);
        if (*spins_left > 0 && (core < 0 || core != dcrf_current_core())) {
            --*spins_left;
            relax();
        } else {
            dcrf_thread_yield();
        }
    }
}

/* Run the chunks of a loop on all threads. */
static void run_together(dcrf_pool *pool, const struct loop *loop) {
    const unsigned state = atomic_load_explicit(&pool->state, memory_order_relaxed);
    pool->loop = *loop;
    divide_loop(pool);
    atomic_store_explicit(&pool->core, dcrf_current_core(), memory_order_relaxed);
    atomic_store(&pool->state, state + 1);
    wake_some(pool, 1 + pool->started - atomic_load(&pool->sleepers));
    run_chunks(pool, 0);
    atomic_store(&pool->state, state + 2);
    int spins_left =
        atomic_load_explicit(&pool->spins, memory_order_relaxed) ? SPINS_BEFORE_YIELD : 0;
    for (size_t i = 1; i <= pool->started; i++)
        wait_for(&pool->workers[i], &spins_left);
}

void dcrf_parallel_for(dcrf_pool *pool, size_t count, size_t grain, dcrf_task task, void *context) {
    dcrf_parallel_loop(pool, &(struct dcrf_loop){
                                 .task = task, .context = context, .count = count, .grain = grain});
}

void dcrf_parallel_loop(dcrf_pool *pool, const struct dcrf_loop *given) {
    const size_t count = given->count, grain = given->grain;
    assert(grain > 0);
    if (count == 0)
        return;
    const uint64_t saved_mode = dcrf_flush_denormals();
    struct loop loop = {.is = *given};
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
