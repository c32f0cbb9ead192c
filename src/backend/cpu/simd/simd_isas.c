/* simd_isas.c: see simd_isas.h. */
#include "backend/cpu/simd/simd_isas.h"

const struct simd_isa *simd_isa_of(enum isa isa)
{
    static const struct simd_isa *const rows[ISA_COUNT] = {
#define ISA_ROW(NAME, isa, machine, flags) ISA_ON_##machine([ISA_##NAME] = &simd_##isa, )
#include "base/machine/isa.def"
#undef ISA_ROW
    };
    return rows[isa];
}

void simd_add(struct kernel_table *table, enum isa isa)
{
    const struct simd_isa *row = simd_isa_of(isa);
    for (int i = 0; row && row->lists[i]; i++)
        kernels_add(table, row->lists[i]);
}
