/* gemm_avx512.c: products for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx512
#include "backend/cpu/simd/gemm_simd.h"
