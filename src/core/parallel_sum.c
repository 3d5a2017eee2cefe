/* Sums over a parallel loop: every chunk has its own partial sums, which are added up in chunk
 * order, regardless of which thread computed them. */
#include "core/threads.h"

#include <string.h>

#define MOST_CHUNKS 512

struct sums {
    dcrf_sums_task task;
    void *context;
    size_t grain;
    size_t width;
    double *parts;
};

static void sum_chunk(void *context, size_t begin, size_t end, size_t worker) {
    (void)worker;
    const struct sums *sums = context;
    double *part = sums->parts + begin / sums->grain * sums->width;
    memset(part, 0, sums->width * sizeof *part);
    sums->task(sums->context, begin, end, part);
}

static void sum_work(dcrf_pool *pool, size_t count, dcrf_sums_task task, void *context,
                     double *totals, size_t width, dcrf_work work) {
    const size_t least_grain = 1024, even = (count + MOST_CHUNKS - 1) / MOST_CHUNKS;
    double parts[MOST_CHUNKS * DCRF_MOST_SUMS];
    const size_t grain = dcrf_even_grain(count, even > least_grain ? even : least_grain);
    struct sums sums = {task, context, grain, width, parts};
    const struct dcrf_loop loop = {
        .task = sum_chunk, .context = &sums, .count = count, .grain = grain, .work = work};
    dcrf_parallel_loop(pool, &loop);
    memset(totals, 0, width * sizeof *totals);
    for (size_t chunk = 0; chunk * grain < count; chunk++)
        for (size_t i = 0; i < width; i++)
            totals[i] += parts[chunk * width + i];
}

void dcrf_parallel_sums(dcrf_pool *pool, size_t count, dcrf_sums_task task, void *context,
                        double *totals, size_t width) {
    sum_work(pool, count, task, context, totals, width, (dcrf_work)task);
}

struct single {
    dcrf_sum_task task;
    void *context;
};

static void sum_single(void *context, size_t begin, size_t end, double *sums) {
    const struct single *single = context;
    sums[0] = single->task(single->context, begin, end);
}

double dcrf_parallel_sum(dcrf_pool *pool, size_t count, dcrf_sum_task task, void *context) {
    struct single single = {task, context};
    double total;
    sum_work(pool, count, sum_single, &single, &total, 1, (dcrf_work)task);
    return total;
}
