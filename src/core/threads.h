/* A thread pool, and loops over it whose results do not depend on the number of threads.
 *
 * A loop is cut into chunks of `grain` indices, regardless of the number of threads; each chunk is
 * processed by one thread. A task that writes only what belongs to its chunk therefore always gives
 * the same bytes. */
#ifndef DCRF_CORE_THREADS_H
#define DCRF_CORE_THREADS_H

#include <dcrf/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct dcrf_pool dcrf_pool;

/* Work on the indices begin <= i < end; `worker` is below the pool's thread count and differs
 * between concurrent chunks. Denormals are flushed while a task runs. */
typedef void (*dcrf_task)(void *context, size_t begin, size_t end, size_t worker);

/* The same for a loop that computes a sum. */
typedef double (*dcrf_sum_task)(void *context, size_t begin, size_t end);

/* The same for several sums at once; adds to sums[0], sums[1], ... */
typedef void (*dcrf_sums_task)(void *context, size_t begin, size_t end, double *sums);

/* threads = 0: one per core. Threads of a pool that has been freed are kept for another one, until
 * dcrf_pool_end_parked. */
dcrf_status dcrf_pool_new(dcrf_pool **pool, size_t threads, dcrf_error *error);
void dcrf_pool_free(dcrf_pool **pool);
void dcrf_pool_end_parked(void);
size_t dcrf_pool_threads(const dcrf_pool *pool);

/* A function by which observers tell loops apart. */
typedef void (*dcrf_work)(void);

/* A chunk of loop number `loop`, or the whole loop (is_loop), before it runs or after (is_done). */
struct dcrf_chunk {
    size_t loop;
    dcrf_work work; /* the loop's task, or what the task was given to call */
    size_t begin, end;
    size_t worker;
    bool is_loop;
    bool is_brief; /* the loop is */
    bool is_done;
};

/* For traces, and tests of how work is divided: called for every loop by the caller and for every
 * chunk by the thread that runs it. NULL: none. Not in WebAssembly. */
typedef void (*dcrf_pool_observer)(void *user, const struct dcrf_chunk *chunk);
void dcrf_pool_observe(dcrf_pool *pool, dcrf_pool_observer observer, void *user);

/* Run task over 0 .. count - 1 in chunks of `grain` > 0. If the pool is NULL or was inherited
 * through fork(), the loop runs in the calling thread. One loop at a time, from one caller. */
void dcrf_parallel_for(dcrf_pool *pool, size_t count, size_t grain, dcrf_task task, void *context);

/* The same, with all that can be said about a loop. */
struct dcrf_loop {
    dcrf_task task;
    void *context;
    size_t count, grain;
    dcrf_work work; /* for observers, if the task calls others; NULL: the task */
    bool is_brief;  /* over before a thread would be awake: none is woken for it */
};
void dcrf_parallel_loop(dcrf_pool *pool, const struct dcrf_loop *loop);

/* A grain of about `usual` indices, a multiple of 16, such that 2, 4, 8 or 16 threads have equal
 * shares. It depends on count alone. */
size_t dcrf_even_grain(size_t count, size_t usual);

/* dcrf_parallel_for over rows of variables, with such a grain. */
void dcrf_parallel_rows(dcrf_pool *pool, size_t count, dcrf_task task, void *context);

/* memcpy, and memset to zero, by all threads. */
void dcrf_parallel_copy(dcrf_pool *pool, void *to, const void *from, size_t bytes);
void dcrf_parallel_clear(dcrf_pool *pool, void *to, size_t bytes);

/* to[a] = rows[a * stride], by all threads. */
void dcrf_parallel_column(dcrf_pool *pool, float *to, const float *rows, size_t stride,
                          size_t count);

/* The sum of task over all chunks, in index order. The chunk size depends on count alone. */
double dcrf_parallel_sum(dcrf_pool *pool, size_t count, dcrf_sum_task task, void *context);

/* The same for `width` sums, at most DCRF_MOST_SUMS; totals is overwritten. */
#define DCRF_MOST_SUMS 4
void dcrf_parallel_sums(dcrf_pool *pool, size_t count, dcrf_sums_task task, void *context,
                        double *totals, size_t width);

#endif
