/* small_dense_avx2.c: dense layers of few weights, for this ISA; the build compiles this file with
 * its flags. */
#define ISA(name) name##_avx2
#define ISA_NAME "avx2"
#include "backend/cpu/simd/small_dense_simd.h"
