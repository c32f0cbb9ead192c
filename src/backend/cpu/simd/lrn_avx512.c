/* lrn_avx512.c: local response normalisation for this ISA; the build compiles this file with its
 * flags. */
#define ISA(name) name##_avx512
#define ISA_NAME "avx512"
#include "backend/cpu/simd/lrn_simd.h"
