/* cpu_inside.h: what depends on the architecture. The build takes one of cpu_x86_64.c,
 * cpu_aarch64.c and, on any other, cpu_other.c. */
#ifndef PRONY_BASE_MACHINE_CPU_INSIDE_H
#define PRONY_BASE_MACHINE_CPU_INSIDE_H

#include "base/machine/cpu.h"

/* Fills in vendor, model and features, and adds the levels above scalar. */
void cpu_ask(struct cpu *out);

/* A thread that spins calls it between two looks: it leaves the core to its other thread. */
void cpu_relax(void);

#endif
