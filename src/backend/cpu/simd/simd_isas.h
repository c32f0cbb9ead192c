/* simd_isas.h: what the simd backend has for an ISA. */
#ifndef PRONY_BACKEND_CPU_SIMD_SIMD_ISAS_H
#define PRONY_BACKEND_CPU_SIMD_SIMD_ISAS_H

#include "backend/cpu/kernel.h"
#include "base/machine/cpu.h"

struct simd_isa {
    const struct kernel_list *const *lists; /* ends with NULL */
    const struct whole *whole;
    const struct dense_kernels *dense;
};

/* A constant for each row of isa.def that this machine has: simd_avx512 … */
#define ISA_ROW(NAME, isa, machine, flags)                                                         \
    ISA_ON_##machine(extern const struct simd_isa simd_##isa;)
#include "base/machine/isa.def"
#undef ISA_ROW

/* NULL: this machine has no such ISA, or it is plain C. */
const struct simd_isa *simd_isa_of(enum isa isa);

/* Adds the kernels of an ISA to a table: nothing where there is none. */
void simd_add(struct kernel_table *table, enum isa isa);

#endif
