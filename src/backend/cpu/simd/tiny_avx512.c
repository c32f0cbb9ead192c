/* tiny_avx512.c: see tiny_simd.h. */
#include "backend/cpu/simd/tiny_simd.h"

const struct tiny_kernels tiny_avx512 = {VEC_LANES, steps_narrow, steps_wide, steps_batch};
