/* bursts_other.c: an architecture of which no instruction is known beyond C. */
#include "estimate/burst_inside.h"

burst_kernel *const *burst_flops(enum ceiling ceiling, enum isa isa, const struct cpu *cpu)
{
    (void)ceiling, (void)isa, (void)cpu;
    return NULL;
}
