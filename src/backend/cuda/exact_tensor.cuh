/* Shared by the sums over pairs in float: the device's exp2, copies to shared memory, and
 * tensor-core products with their layouts.
 *
 * A warp multiplies an A of 16 rows by a B of 8 columns. With g = lane / 4 and t = lane % 4, a lane
 * holds, as 16-bit numbers packed two to a word (PTX ISA, "Matrix Fragments for mma"),
 *
 *   of A   the columns 2 t, 2 t + 1 of the rows g and g + 8; then, of 16 columns, those 8 further
 *   of B   the rows 2 t, 2 t + 1 of column g; then, of 16 rows, those 8 further
 *   of C   the columns 2 t, 2 t + 1 of row g, then of row g + 8, as floats.
 *
 * So the results of two products with 8 columns, rounded to 16 bits, form an A of 16 columns. */
#ifndef DCRF_BACKEND_CUDA_EXACT_TENSOR_CUH
#define DCRF_BACKEND_CUDA_EXACT_TENSOR_CUH

#include <cuda_fp16.h>
#include <stdint.h>

/* 2^exponent: relative error at most 2^-22; zero below 2^-126 (PTX ISA, ex2). */
static __device__ inline float power(float exponent) {
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(exponent));
    return value;
}

/* Copy sixteen bytes from global to shared memory, asynchronously. */
static __device__ inline void copy_later(void *to, const void *from) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

static __device__ inline void end_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Wait until at most LATER groups of copies are still in flight. */
template <int LATER> static __device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

/* c = A B, A with 8 columns. */
static __device__ inline void multiply_8(float (&c)[4], uint2 a, uint32_t b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%7, %7, %7, %7};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a.x), "r"(a.y), "r"(b), "f"(0.0f));
}

/* c += A B, A with 16 columns. */
static __device__ inline void multiply_16(float (&c)[4], const uint32_t (&a)[4], uint32_t b_first,
                                          uint32_t b_second) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_first), "r"(b_second));
}

static __device__ inline uint32_t word_of(__half2 pair) {
    return *reinterpret_cast<const uint32_t *>(&pair);
}

#endif
