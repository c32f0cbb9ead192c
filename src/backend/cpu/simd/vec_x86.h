/* vec_x86.h: what AVX2 and AVX-512 have alike. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_X86_H
#define PRONY_BACKEND_CPU_SIMD_VEC_X86_H

#include <immintrin.h>
#include <stdint.h>

/* Four floats. */
typedef __m128 quad;
#define quad_load _mm_load_ps
#define quad_load_any _mm_loadu_ps
#define quad_store _mm_store_ps
#define quad_store_any _mm_storeu_ps
#define quad_set _mm_set1_ps
#define quad_sub _mm_sub_ps
#define quad_mul _mm_mul_ps

/* to[column][row] = from[row][column] */
static inline __attribute__((always_inline)) void
transpose_8x8(const float *from, int64_t from_stride, float *to, int64_t to_stride)
{
    __m256 row[8], pair[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
        row[r] = _mm256_loadu_ps(from + r * from_stride);
#pragma GCC unroll 4
    for (int r = 0; r < 8; r += 2) { /* rows r, r+1: columns 0 1 4 5 and 2 3 6 7 */
        pair[r] = _mm256_unpacklo_ps(row[r], row[r + 1]);
        pair[r + 1] = _mm256_unpackhi_ps(row[r], row[r + 1]);
    }
#pragma GCC unroll 2
    for (int r = 0; r < 8; r += 4)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) { /* four rows: columns 0 4, 1 5; then 2 6, 3 7 */
            row[r + 2 * half] = _mm256_shuffle_ps(pair[r + half], pair[r + 2 + half], 0x44);
            row[r + 2 * half + 1] = _mm256_shuffle_ps(pair[r + half], pair[r + 2 + half], 0xEE);
        }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        _mm256_storeu_ps(to + c * to_stride, _mm256_permute2f128_ps(row[c], row[c + 4], 0x20));
        _mm256_storeu_ps(to + (c + 4) * to_stride,
                         _mm256_permute2f128_ps(row[c], row[c + 4], 0x31));
    }
}

/* Into L2: what streams once must not push the activations out of L1. A macro: gcc 12 takes a
 * function that only prefetches for one without effect and drops its calls. */
#define vec_prefetch(address) _mm_prefetch((const char *)(address), _MM_HINT_T1)

/* sum += value · the vector at an address, which the instruction itself reads: gcc would load it
 * into a register once for all that use it. Where the next line is on its way from memory, reading
 * the nearest lines at once and then again from L1 is faster than loads that wait one by one. */
#define vec_fma_at(sum, value, address)                                                            \
    __asm__("vfmadd231ps %2, %1, %0"                                                               \
            : "+v"(sum)                                                                            \
            : "v"(value), "m"(*(const vec *)(const void *)(address)))

/* Keeps a loaded value in its register: gcc would rather load it again in every instruction that
 * uses it, and loads are what these loops are short of. */
#define vec_pin(value) __asm__("" : "+v"(value))

#endif
