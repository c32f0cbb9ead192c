/* cpu_other.c: a CPU of which we know no more than what the C compiler does. */
#include "base/machine/cpu_inside.h"

void cpu_relax(void)
{
}

void cpu_ask(struct cpu *out)
{
    (void)out;
}
