/* kernels_int8_isa.c: all that one ISA or extension has for numbers of 8 bits. */
#include "backend/cpu/simd/isa.h"

#define NARROW_LIST(name) extern const struct kernel_list ISA(name##_list);
#include "backend/cpu/simd/narrow/lists_int8.def"
#undef NARROW_LIST

const struct kernel_list *const ISA(int8_lists)[] = {
#define NARROW_LIST(name) &ISA(name##_list),
#include "backend/cpu/simd/narrow/lists_int8.def"
#undef NARROW_LIST
    NULL,
};
