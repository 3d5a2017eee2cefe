/* Fused multiply-adds for one instruction set: a part of dsp_vector.h.
 *
 *   FMA(a, b, c)     a b + c    rounded once
 *   FNMA(a, b, c)    c - a b
 *
 * b is a vector; a and c are vectors of its type, or scalars for all lanes. Everything is compiled
 * without contraction: only what is fused in the source is fused, so that loops that promise the
 * same bytes give them with every compiler. WebAssembly has no such instruction and rounds
 * twice. */
typedef float floats_4 __attribute__((vector_size(16)));
typedef float floats_8 __attribute__((vector_size(32)));
typedef double doubles_2 __attribute__((vector_size(16)));

#define FMA_FUNCTIONS(type, plus, minus)                                                           \
    INLINE type fma_##type(type a, type b, type c) {                                               \
        return plus;                                                                               \
    }                                                                                              \
    INLINE type fnma_##type(type a, type b, type c) {                                              \
        return minus;                                                                              \
    }
#define X86_FUNCTIONS(type, bits, suffix)                                                          \
    FMA_FUNCTIONS(type, (type)_mm##bits##_fmadd_##suffix(a, b, c),                                 \
                  (type)_mm##bits##_fnmadd_##suffix(a, b, c))

#if defined(__x86_64__)
#include <immintrin.h>
typedef float floats_16 __attribute__((vector_size(64)));
typedef double doubles_4 __attribute__((vector_size(32)));
typedef double doubles_8 __attribute__((vector_size(64)));
X86_FUNCTIONS(floats_4, , ps)
X86_FUNCTIONS(floats_8, 256, ps)
X86_FUNCTIONS(doubles_4, 256, pd)
#if DSP_LANES == 16
X86_FUNCTIONS(floats_16, 512, ps)
X86_FUNCTIONS(doubles_8, 512, pd)
#define FMA_CASES(name)                                                                            \
    floats_4:                                                                                      \
    name##_floats_4, floats_8 : name##_floats_8,                                                   \
                                doubles_4 : name##_doubles_4,                                      \
                                            floats_16 : name##_floats_16,                          \
                                                        doubles_8 : name##_doubles_8
#else
#define FMA_CASES(name)                                                                            \
    floats_4:                                                                                      \
    name##_floats_4, floats_8 : name##_floats_8, doubles_4 : name##_doubles_4
#endif

#elif defined(__aarch64__)
#include <arm_neon.h>
FMA_FUNCTIONS(floats_4, (floats_4)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b),
              (floats_4)vfmsq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b))
FMA_FUNCTIONS(doubles_2, (doubles_2)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b),
              (doubles_2)vfmsq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b))
FMA_FUNCTIONS(floats_8,
              JOIN(fma_floats_4(LOW_HALF(a), LOW_HALF(b), LOW_HALF(c)),
                   fma_floats_4(HIGH_HALF(a), HIGH_HALF(b), HIGH_HALF(c))),
              JOIN(fnma_floats_4(LOW_HALF(a), LOW_HALF(b), LOW_HALF(c)),
                   fnma_floats_4(HIGH_HALF(a), HIGH_HALF(b), HIGH_HALF(c))))

#else
FMA_FUNCTIONS(floats_4, a *b + c, c - a * b)
FMA_FUNCTIONS(floats_8, a *b + c, c - a * b)
FMA_FUNCTIONS(doubles_2, a *b + c, c - a * b)
#endif
#ifndef FMA_CASES
#define FMA_CASES(name)                                                                            \
    floats_4:                                                                                      \
    name##_floats_4, floats_8 : name##_floats_8, doubles_2 : name##_doubles_2
#endif

/* A scalar minus a vector of zeros is the scalar in all lanes. */
#define IN_ALL(number, vector) ((number) - (__typeof__(vector)){0})
#define FMA(a, b, c) _Generic((b), FMA_CASES(fma))(IN_ALL(a, b), b, IN_ALL(c, b))
#define FNMA(a, b, c) _Generic((b), FMA_CASES(fnma))(IN_ALL(a, b), b, IN_ALL(c, b))
