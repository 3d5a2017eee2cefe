/* Which vector instructions the library uses.
 *
 * Results are identical for one instruction set and agree between sets up to rounding. The
 * environment variable DCRF_CPU (c, avx2, avx512, neon, simd128) limits the choice when the library
 * is first used; dcrf_cpu_limit does so from a program.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DCRF_CPU_H
#define DCRF_CPU_H

#include <dcrf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dcrf_cpu {
    DCRF_CPU_C = 0, /* plain C */
    DCRF_CPU_NEON,
    DCRF_CPU_AVX2,   /* with FMA */
    DCRF_CPU_AVX512, /* F, VL */
    DCRF_CPU_SIMD128 /* WebAssembly */
} dcrf_cpu;
/* "c", "neon", "avx2", "avx512", "simd128". */
DCRF_API const char *dcrf_cpu_name(dcrf_cpu cpu);
DCRF_API int dcrf_cpu_from_name(const char *name, dcrf_cpu *cpu);

/* The instruction set in use, and the best one that this machine and this build support. */
DCRF_API dcrf_cpu dcrf_cpu_in_use(void);
DCRF_API dcrf_cpu dcrf_cpu_best(void);

/* Use `cpu` for all operators from now on. Returns DCRF_ERROR_UNSUPPORTED if it is not available.
 * Do not call this while another thread is inside the library. */
DCRF_API dcrf_status dcrf_cpu_limit(dcrf_cpu cpu, dcrf_error *error);

#ifdef __cplusplus
}
#endif
#endif
