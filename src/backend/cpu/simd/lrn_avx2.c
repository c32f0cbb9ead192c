/* lrn_avx2.c: local response normalisation for this ISA; the build compiles this file with its
 * flags. */
#define ISA(name) name##_avx2
#define ISA_NAME "avx2"
#include "backend/cpu/simd/lrn_simd.h"
