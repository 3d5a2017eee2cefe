/* Choosing the table: what this build has, what this machine has, what DCRF_CPU and dcrf_cpu_limit
 * allow. */
#include "dsp/dsp.h"

#include "core/error.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CPU_COUNT 5

static const char *const names[CPU_COUNT] = {"c", "neon", "avx2", "avx512", "simd128"};

const char *dcrf_cpu_name(dcrf_cpu cpu) {
    return cpu >= 0 && cpu < CPU_COUNT ? names[cpu] : NULL;
}

static bool available(dcrf_cpu cpu) {
    switch (cpu) {
    case DCRF_CPU_C:
        return true;
    case DCRF_CPU_NEON:
#ifdef DCRF_HAVE_NEON
        return true; /* part of every aarch64 */
#else
        return false;
#endif
    case DCRF_CPU_AVX2:
#ifdef DCRF_HAVE_AVX2
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
        return false;
#endif
    case DCRF_CPU_AVX512:
#ifdef DCRF_HAVE_AVX512
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma");
#else
        return false;
#endif
    case DCRF_CPU_SIMD128:
#ifdef DCRF_HAVE_SIMD128
        return true; /* a module with such instructions loads only where there are any */
#else
        return false;
#endif
    }
    return false;
}

/* One table for each set, all filled the first time that one is asked for. */
static struct dcrf_dsp tables[CPU_COUNT];
static atomic_int tables_state; /* EMPTY, FILLING, FILLED */
enum { EMPTY, FILLING, FILLED };
static _Atomic(const struct dcrf_dsp *) in_use;

static void fill_tables(void) {
    for (dcrf_cpu cpu = 0; cpu < CPU_COUNT; cpu++) {
        dcrf_dsp_fill_c(&tables[cpu]);
        dcrf_dsp_fill_embed_c(&tables[cpu]);
    }
#ifdef DCRF_HAVE_NEON
    dcrf_dsp_fill_neon(&tables[DCRF_CPU_NEON]);
#endif
#ifdef DCRF_HAVE_AVX2
    dcrf_dsp_fill_avx2(&tables[DCRF_CPU_AVX2]);
    dcrf_dsp_fill_embed_avx2(&tables[DCRF_CPU_AVX2]);
#endif
#ifdef DCRF_HAVE_AVX512
    dcrf_dsp_fill_avx512(&tables[DCRF_CPU_AVX512]);
    dcrf_dsp_fill_embed_avx512(&tables[DCRF_CPU_AVX512]);
#endif
#ifdef DCRF_HAVE_SIMD128
    dcrf_dsp_fill_simd128(&tables[DCRF_CPU_SIMD128]);
#endif
    for (dcrf_cpu cpu = 0; cpu < CPU_COUNT; cpu++)
        tables[cpu].cpu = cpu;
}

/* One thread fills, for some microseconds; one that comes meanwhile waits. */
static void fill_tables_once(void) {
    int state = EMPTY;
    if (atomic_compare_exchange_strong(&tables_state, &state, FILLING)) {
        fill_tables();
        atomic_store(&tables_state, FILLED);
    }
    while (atomic_load(&tables_state) != FILLED) {
    }
}

const struct dcrf_dsp *dcrf_dsp_for(dcrf_cpu cpu) {
    if (!available(cpu))
        return NULL;
    fill_tables_once();
    return &tables[cpu];
}

dcrf_cpu dcrf_cpu_best(void) {
    for (dcrf_cpu cpu = CPU_COUNT - 1; cpu > DCRF_CPU_C; cpu--)
        if (available(cpu))
            return cpu;
    return DCRF_CPU_C;
}

const struct dcrf_dsp *dcrf_dsp(void) {
    const struct dcrf_dsp *table = atomic_load_explicit(&in_use, memory_order_acquire);
    if (table)
        return table;
    /* A name that is unknown, or not available here, leaves the best. */
    dcrf_cpu cpu = dcrf_cpu_best();
    const char *wanted = getenv("DCRF_CPU");
    for (dcrf_cpu i = 0; wanted && i < CPU_COUNT; i++)
        if (strcmp(wanted, names[i]) == 0 && available(i))
            cpu = i;
    table = dcrf_dsp_for(cpu);
    atomic_store_explicit(&in_use, table, memory_order_release);
    return table;
}

dcrf_cpu dcrf_cpu_in_use(void) {
    return dcrf_dsp()->cpu;
}

dcrf_status dcrf_cpu_limit(dcrf_cpu cpu, dcrf_error *error) {
    const struct dcrf_dsp *table = dcrf_dsp_for(cpu);
    if (!table)
        return dcrf_fail(error, DCRF_ERROR_UNSUPPORTED, "%s is not available on this machine",
                         dcrf_cpu_name(cpu) ? dcrf_cpu_name(cpu) : "that instruction set");
    atomic_store_explicit(&in_use, table, memory_order_release);
    return DCRF_OK;
}
