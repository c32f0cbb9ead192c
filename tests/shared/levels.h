/* levels.h: the simd backend with each level of instructions that this CPU has, without what some
 * CPUs have beyond the level (extension.def) and with all that this one has. */
#ifndef PRONY_TESTS_LEVELS_H
#define PRONY_TESTS_LEVELS_H

#include "base/machine/cpu.h"
#include "rig.h"

enum { LEVELS_MOST = 2 * ISA_COUNT };

/* Rigs of simd, opened; returns how many. */
static inline int levels_open(struct rig rigs[LEVELS_MOST], struct device_options options)
{
    struct cpu cpu;
    int count = 0;
    cpu_detect(&cpu);
    for (int isa = ISA_SCALAR + 1; isa < ISA_COUNT; isa++)
        for (int only = 1; only >= 0; only--) {
            struct rig rig = {.backend = &backend_simd};
            options.isa = (enum isa)isa;
            options.isa_only = only;
            if (!cpu_has(&cpu, (enum isa)isa) || (only && !cpu.extensions))
                continue;
            if (CHECK_OK(rig.backend->open(&options, &rig.device)))
                rigs[count++] = rig;
        }
    return count;
}

static inline void levels_close(struct rig *rigs, int count)
{
    for (int i = 0; i < count; i++)
        rig_close(&rigs[i]);
}

#endif
