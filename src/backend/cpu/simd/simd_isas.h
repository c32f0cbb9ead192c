/* simd_isas.h: what the simd backend has for an ISA. */
#ifndef PRONY_BACKEND_CPU_SIMD_SIMD_ISAS_H
#define PRONY_BACKEND_CPU_SIMD_SIMD_ISAS_H

#include "backend/cpu/kernel.h"
#include "base/machine/cpu.h"

struct simd_isa {
    const struct kernel_list *const *lists; /* ends with NULL */
    const struct whole *whole;
    const struct dense_kernels *dense;
    const struct kernel_list *const *bf16; /* searched first by a device of this precision … */
    const struct kernel_list *const *int8; /* … and by every device, unless … */
};

/* … the CPU has an extension for it: bf16_lists_avx512bf16. */
#define EXTENSION_ROW(NAME, name, kind, level, machine, flags, words)                              \
    ISA_ON_##machine(extern const struct kernel_list *const kind##_lists_##name[];)
#include "base/machine/extension.def"
#undef EXTENSION_ROW

/* A constant for each row of isa.def that this machine has: simd_avx512 … */
#define ISA_ROW(NAME, isa, machine, flags)                                                         \
    ISA_ON_##machine(extern const struct simd_isa simd_##isa;)
#include "base/machine/isa.def"
#undef ISA_ROW

/* NULL: this machine has no such ISA, or it is plain C. */
const struct simd_isa *simd_isa_of(enum isa isa);

/* Adds the kernels of an ISA to a table, before them those of its precision with the CPU's best
 * instructions for it: nothing where there is none. */
void simd_add(struct kernel_table *table, enum isa isa, const struct cpu *cpu);

#endif
