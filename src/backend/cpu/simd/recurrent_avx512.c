/* recurrent_avx512.c: layers over time for this ISA; the build compiles this file with its flags.
 */
#define ISA(name) name##_avx512
#include "backend/cpu/simd/recurrent_simd.h"
