/* kernels_bf16_isa.c: all that one ISA or extension has for bf16. */
#include "backend/cpu/simd/isa.h"

#define NARROW_LIST(name) extern const struct kernel_list ISA(name##_list);
#include "backend/cpu/simd/narrow/lists_bf16.def"
#undef NARROW_LIST

const struct kernel_list *const ISA(bf16_lists)[] = {
#define NARROW_LIST(name) &ISA(name##_list),
#include "backend/cpu/simd/narrow/lists_bf16.def"
#undef NARROW_LIST
    NULL,
};
