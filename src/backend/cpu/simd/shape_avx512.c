/* shape_avx512.c: elements moved, picked and added up, for this ISA; the build compiles this file
 * with its flags. */
#define ISA(name) name##_avx512
#define ISA_NAME "avx512"
#include "backend/cpu/simd/shape_simd.h"
