/* loss_avx512.c: losses over numbers for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx512
#define ISA_NAME "avx512"
#include "backend/cpu/simd/loss_simd.h"
