/* dense_avx512.c: the dense kernels for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx512
#include "backend/cpu/simd/dense_simd.h"
