/* small_dense_avx512.c: dense layers of few weights, for this ISA; the build compiles this file
 * with its flags. */
#define ISA(name) name##_avx512
#define ISA_NAME "avx512"
#include "backend/cpu/simd/small_dense_simd.h"
