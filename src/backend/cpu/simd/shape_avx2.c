/* shape_avx2.c: elements moved, picked and added up, for this ISA; the build compiles this file
 * with its flags. */
#define ISA(name) name##_avx2
#define ISA_NAME "avx2"
#include "backend/cpu/simd/shape_simd.h"
