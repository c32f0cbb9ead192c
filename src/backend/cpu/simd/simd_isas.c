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

/* The lists for a kind of small numbers: of the last extension that the CPU has and the level
 * allows, else the level's own. */
#define EXTENSION_ROW(NAME, name, kind, level, machine, flags, words)                              \
    ISA_ON_##machine(if (kind##_WANTED && ISA_##level <= isa &&                                    \
                         cpu_extends(cpu, EXTENSION_##NAME)) best = kind##_lists_##name;)
static const struct kernel_list *const *bf16_lists(enum isa isa, const struct cpu *cpu)
{
    enum { bf16_WANTED = true, int8_WANTED = false };
    const struct kernel_list *const *best = simd_isa_of(isa)->bf16;
#include "base/machine/extension.def"
    (void)cpu;
    return best;
}

static const struct kernel_list *const *int8_lists(enum isa isa, const struct cpu *cpu)
{
    enum { bf16_WANTED = false, int8_WANTED = true };
    const struct kernel_list *const *best = simd_isa_of(isa)->int8;
#include "base/machine/extension.def"
    (void)cpu;
    return best;
}
#undef EXTENSION_ROW

static void add_lists(struct kernel_table *table, const struct kernel_list *const *lists)
{
    for (int i = 0; lists[i]; i++)
        kernels_add(table, lists[i]);
}

void simd_add(struct kernel_table *table, enum isa isa, const struct cpu *cpu)
{
    const struct simd_isa *row = simd_isa_of(isa);
    if (!row)
        return;
    if (table->precision == PRECISION_BF16)
        add_lists(table, bf16_lists(isa, cpu));
    add_lists(table, row->lists);
    add_lists(table, int8_lists(isa, cpu));
}
