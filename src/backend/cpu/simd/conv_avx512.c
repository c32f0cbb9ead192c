/* conv_avx512.c: convolution for this ISA; the build compiles this file with its flags. */
#define ISA(name) name##_avx512
#include "backend/cpu/simd/conv_simd.h"
