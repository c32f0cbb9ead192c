/* loss_avx2.c: losses over numbers for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx2
#define ISA_NAME "avx2"
#include "backend/cpu/simd/loss_simd.h"
