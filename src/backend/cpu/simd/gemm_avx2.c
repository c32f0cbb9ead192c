/* gemm_avx2.c: products for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx2
#include "backend/cpu/simd/gemm_simd.h"
