/* The thread pool in WebAssembly, where a module cannot start threads by itself.
 *
 * The host may lend some: a helper is another instance of the module over the same, shared memory,
 * with its own stack, that calls dcrf_wasm_help and stays there until the host ends it. One thread
 * at a time calls the library, so there is one loop at a time, and one place that describes it. The
 * door works as in core/threads.c: helpers enter while it is open, and the caller waits only for
 * those inside. In a module without shared memory all loops run in the caller. */
#include "core/threads.h"

#include "core/error.h"
#include "core/memory.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MOST_THREADS 1024

struct dcrf_pool {
    size_t threads; /* including the caller's; fewer run if the host lends fewer */
};

#ifdef __wasm_atomics__

#define SPINS_BEFORE_SLEEP 2000
/* How long the caller sleeps between checks on a helper that has not been scheduled. */
#define NAP_NS 50000
#define DOOR_OPEN ((size_t)1 << 31)

static struct {
    dcrf_task task;
    void *context;
    size_t count, grain, threads;
    _Alignas(DCRF_ALIGNMENT) atomic_size_t next;
    _Alignas(DCRF_ALIGNMENT) atomic_size_t door;
    _Alignas(DCRF_ALIGNMENT) atomic_int generation;
    atomic_size_t helpers;
} loop;

static void run_chunks(size_t worker) {
    for (;;) {
        const size_t begin = atomic_fetch_add(&loop.next, loop.grain);
        if (begin >= loop.count)
            return;
        const size_t left = loop.count - begin;
        loop.task(loop.context, begin, begin + (left < loop.grain ? left : loop.grain), worker);
    }
}

static int wait_for_work(int seen) {
    int now;
    for (int i = 0; i < SPINS_BEFORE_SLEEP; i++)
        if ((now = atomic_load(&loop.generation)) != seen)
            return now;
    while ((now = atomic_load(&loop.generation)) == seen)
        __builtin_wasm_memory_atomic_wait32((int *)&loop.generation, seen, -1);
    return now;
}

static bool enter(void) {
    size_t door = atomic_load(&loop.door);
    while (door & DOOR_OPEN)
        if (atomic_compare_exchange_weak(&loop.door, &door, door + 1))
            return true;
    return false;
}

/* Called by the host in a thread that it lends; never returns. */
__attribute__((export_name("dcrf_wasm_help"))) void dcrf_wasm_help(void) {
    int seen = atomic_load(&loop.generation);
    const size_t worker = atomic_fetch_add(&loop.helpers, 1) + 1;
    for (;;) {
        seen = wait_for_work(seen);
        if (enter()) {
            if (worker < loop.threads)
                run_chunks(worker);
            atomic_fetch_sub(&loop.door, 1);
        }
    }
}

static size_t threads_lent(void) {
    return 1 + atomic_load(&loop.helpers);
}

static void run_with_helpers(const dcrf_pool *pool, size_t count, size_t grain, dcrf_task task,
                             void *context) {
    loop.task = task;
    loop.context = context;
    loop.count = count;
    loop.grain = grain;
    loop.threads = pool->threads;
    atomic_store(&loop.next, 0);
    atomic_store(&loop.door, DOOR_OPEN);
    atomic_fetch_add(&loop.generation, 1);
    __builtin_wasm_memory_atomic_notify((int *)&loop.generation, MOST_THREADS);
    run_chunks(0);
    atomic_fetch_and(&loop.door, ~DOOR_OPEN);
    size_t inside;
    for (int spins = 0; (inside = atomic_load(&loop.door)) > 0; spins++)
        if (spins > SPINS_BEFORE_SLEEP)
            __builtin_wasm_memory_atomic_wait32((int *)&loop.door, (int)inside, NAP_NS);
}

#else

static size_t threads_lent(void) {
    return 1;
}

#endif

dcrf_status dcrf_pool_new(dcrf_pool **out, size_t threads, dcrf_error *error) {
    *out = NULL;
    if (threads == 0)
        threads = threads_lent();
    if (threads > MOST_THREADS)
        return dcrf_fail(error, DCRF_ERROR_ARGUMENT,
                         "%zu threads asked for; at most %d are possible", threads, MOST_THREADS);
    dcrf_pool *pool = dcrf_allocate_zero(1, sizeof *pool);
    if (!pool)
        return dcrf_fail_memory(error, "the thread pool");
    pool->threads = threads;
    *out = pool;
    return DCRF_OK;
}

void dcrf_pool_free(dcrf_pool **pool) {
    dcrf_release(*pool);
    *pool = NULL;
}

/* Helpers are the host's. */
void dcrf_pool_end_parked(void) {
}

size_t dcrf_pool_threads(const dcrf_pool *pool) {
    return pool ? pool->threads : 1;
}

void dcrf_parallel_for(dcrf_pool *pool, size_t count, size_t grain, dcrf_task task, void *context) {
    assert(grain > 0);
#ifdef __wasm_atomics__
    if (pool && pool->threads > 1 && threads_lent() > 1 && count > grain) {
        run_with_helpers(pool, count, grain, task, context);
        return;
    }
#else
    (void)pool;
#endif
    for (size_t begin = 0; begin < count; begin += grain)
        task(context, begin, count - begin < grain ? count : begin + grain, 0);
}

/* There are no observers, and helpers are always woken. */
void dcrf_parallel_loop(dcrf_pool *pool, const struct dcrf_loop *one) {
    dcrf_parallel_for(pool, one->count, one->grain, one->task, one->context);
}
