/* kernels_isa.c: all that the simd backend has for one ISA. */
#include "backend/cpu/simd/isa.h"

static const struct kernel_list *const lists[] = {
#define SIMD_LIST(name) &ISA(name##_list),
#include "backend/cpu/simd/lists.def"
#undef SIMD_LIST
    NULL,
};

const struct simd_isa ISA(simd) = {
    .lists = lists,
    .whole = &ISA(stack),
    .dense = &ISA(dense_kernels),
    .bf16 = ISA(bf16_lists),
    .int8 = ISA(int8_lists),
};
