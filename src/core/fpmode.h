/* The floating-point mode of our loops. Denormal floats are slow on many CPUs and contribute
 * nothing here (values below 1e-38), so they are flushed while our code runs. Otherwise the mode is
 * the default (round to nearest, no traps), whatever the caller's is: chunks of one loop run in the
 * caller's thread and in ours and must round alike. The caller's mode is restored afterwards. */
#ifndef DCRF_CORE_FPMODE_H
#define DCRF_CORE_FPMODE_H

#include <float.h>
#include <stdint.h>

/* Scalar and vector loops must give the same results. */
#if FLT_EVAL_METHOD != 0
#error                                                                                             \
    "floats are computed in another type: compile with -fexcess-precision=fast (and, for 32-bit x86, -msse2 -mfpmath=sse)"
#endif

#if defined(__SSE2__)
#include <xmmintrin.h>

static inline uint64_t dcrf_flush_denormals(void) {
    const unsigned default_mode = 0x1f80, flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(default_mode | flush_to_zero | denormals_are_zero);
    return saved;
}

static inline void dcrf_restore_denormals(uint64_t saved) {
    _mm_setcsr((unsigned)saved);
}

#elif defined(__aarch64__)

static inline uint64_t dcrf_flush_denormals(void) {
    const uint64_t flush_to_zero = (uint64_t)1 << 24;
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(flush_to_zero));
    return saved;
}

static inline void dcrf_restore_denormals(uint64_t saved) {
    __asm__ volatile("msr fpcr, %0" : : "r"(saved));
}

#else

static inline uint64_t dcrf_flush_denormals(void) {
    return 0;
}

static inline void dcrf_restore_denormals(uint64_t saved) {
    (void)saved;
}

#endif
#endif
