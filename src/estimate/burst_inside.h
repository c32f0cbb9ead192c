/* burst_inside.h: the parts of which bursts.c makes its choice. */
#ifndef PRONY_ESTIMATE_BURST_INSIDE_H
#define PRONY_ESTIMATE_BURST_INSIDE_H

#include "estimate/bursts.h"

enum { REGISTER_BYTES = 64 }; /* a flop kernel does one vector operation for so many bytes */

/* The ways of each ceiling, NULL after the last. */
typedef burst_kernel *burst_ways_of[CEILING_COUNT][BURST_WAYS + 1];

/* burst_memory_isa.c, once per ISA */
extern const burst_ways_of burst_memory_scalar;
#define ISA_ROW(NAME, name, machine, flags)                                                        \
    ISA_ON_##machine(extern const burst_ways_of burst_memory_##name;)
#include "base/machine/isa.def"
#undef ISA_ROW

/* The ways of this architecture's own instructions, NULL where it has none: bursts_x86_64.c,
 * bursts_aarch64.c or, on any other, bursts_other.c. */
burst_kernel *const *burst_flops(enum ceiling ceiling, enum isa isa, const struct cpu *cpu);

#endif
