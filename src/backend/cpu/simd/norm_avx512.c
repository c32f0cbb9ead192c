/* norm_avx512.c: softmax and norms for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx512
#define ISA_NAME "avx512"
#include "backend/cpu/simd/norm_simd.h"
