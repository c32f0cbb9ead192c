/* vec.h: one vector of floats for the kernels that are compiled once per ISA. Its implementations:
 * vec_avx512.h, which says what each operation does, vec_avx2.h and vec_neon.h. An ISA has all of
 * them; loops use nothing else.
 *
 *   vec        VEC_LANES floats; a kernel may keep VEC_MOST of them in registers as accumulators
 *   quad       four floats: a quarter of AVX-512's vector, a half of the others
 *   pick_…     elements a stride apart, and the larger of two with its index (pick_index)
 *
 * Of two numbers of which one is NaN vec_max and vec_min give the second. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_H
#define PRONY_BACKEND_CPU_SIMD_VEC_H

#include <stdint.h>

/* The floats 2^(j/8), j from 0 to 7, each less j << 20: shifting k by 20 puts its whole eights into
 * the exponent, and its rest j there too. */
static const _Alignas(32) int32_t vec_eighths[8] = {0x3F800000, 0x3F7B95C2, 0x3F7837F0, 0x3F75FED7,
                                                    0x3F7504F3, 0x3F75672A, 0x3F7744FD, 0x3F7AC0C7};

#if defined(__AVX512F__)
#include "backend/cpu/simd/vec_avx512.h"
#elif defined(__AVX2__)
#include "backend/cpu/simd/vec_avx2.h"
#elif defined(__ARM_NEON)
#include "backend/cpu/simd/vec_neon.h"
#endif

#endif
