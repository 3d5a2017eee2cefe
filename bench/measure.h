/* Shared by the benchmarks: clocks, medians, and exiting on failure. */
#ifndef DCRF_BENCH_MEASURE_H
#define DCRF_BENCH_MEASURE_H

#include <dcrf/dcrf.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* CLOCK_MONOTONIC for wall time, CLOCK_PROCESS_CPUTIME_ID for CPU time. */
static inline double clock_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Exits with 77 if there is no device. */
static inline void must(dcrf_status status, const dcrf_error *error) {
    if (status < 0) {
        fprintf(stderr, "benchmark: %s\n", error->message);
        exit(status == DCRF_ERROR_DEVICE ? 77 : 1);
    }
}

static inline void *require(void *memory) {
    if (!memory) {
        fprintf(stderr, "benchmark: out of memory\n");
        exit(1);
    }
    return memory;
}

static inline int compare_numbers(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Sorts the times. */
static inline double median(double *times, size_t count) {
    qsort(times, count, sizeof *times, compare_numbers);
    return times[count / 2];
}

#endif
