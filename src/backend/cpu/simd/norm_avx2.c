/* norm_avx2.c: softmax and norms for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx2
#define ISA_NAME "avx2"
#include "backend/cpu/simd/norm_simd.h"
