/* Choosing the table: what this build and this machine support, and what DCRF_CPU and
 * dcrf_cpu_limit allow. */
#include "dsp/dsp.h"

#include "core/error.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CPU_COUNT 5

/* What this build supports. */
static const struct dcrf_dsp *const tables[CPU_COUNT] = {
    [DCRF_CPU_C] = &dcrf_dsp_c,
#ifdef DCRF_HAVE_NEON
    [DCRF_CPU_NEON] = &dcrf_dsp_neon,
#endif
#ifdef DCRF_HAVE_AVX2
    [DCRF_CPU_AVX2] = &dcrf_dsp_avx2,
#endif
#ifdef DCRF_HAVE_AVX512
    [DCRF_CPU_AVX512] = &dcrf_dsp_avx512,
#endif
#ifdef DCRF_HAVE_SIMD128
    [DCRF_CPU_SIMD128] = &dcrf_dsp_simd128,
#endif
};

static _Atomic(const struct dcrf_dsp *) in_use;

/* Does this machine support what the files for `cpu` are compiled for (src/meson.build)? Every
 * aarch64 has NEON, and a WebAssembly module with vectors loads only where they are supported. */
static bool machine_has(dcrf_cpu cpu) {
#ifdef __x86_64__
    if (cpu == DCRF_CPU_AVX2 || cpu == DCRF_CPU_AVX512)
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
            return false;
    if (cpu == DCRF_CPU_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
#endif
    (void)cpu;
    return true;
}

const struct dcrf_dsp *dcrf_dsp_for(dcrf_cpu cpu) {
    return cpu >= 0 && cpu < CPU_COUNT && machine_has(cpu) ? tables[cpu] : NULL;
}

dcrf_cpu dcrf_cpu_best(void) {
    for (dcrf_cpu cpu = CPU_COUNT - 1; cpu > DCRF_CPU_C; cpu--)
        if (dcrf_dsp_for(cpu))
            return cpu;
    return DCRF_CPU_C;
}

const struct dcrf_dsp *dcrf_dsp(void) {
    const struct dcrf_dsp *table = atomic_load_explicit(&in_use, memory_order_acquire);
    if (table)
        return table;
    /* If the name is unknown, or not available here, use the best. */
    dcrf_cpu cpu;
    const bool is_named = dcrf_cpu_from_name(getenv("DCRF_CPU"), &cpu);
    table = dcrf_dsp_for(is_named && dcrf_dsp_for(cpu) ? cpu : dcrf_cpu_best());
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
