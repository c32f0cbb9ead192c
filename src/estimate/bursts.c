/* bursts.c: see bursts.h. Memory's bursts are in burst_memory_isa.c, those of an architecture's own
 * instructions in bursts_x86_64.c and so on. */
#include "estimate/burst_inside.h"

#include <string.h>

static const struct {
    const char *name;
    double per_byte; /* of a pass; 0: no CPU does it */
} kinds[CEILING_COUNT] = {
    [CEILING_FP32] = {"fp32", 2 * 16.0 / REGISTER_BYTES},
    [CEILING_TF32] = {"tf32", 0},
    [CEILING_BF16] = {"bf16", 2 * 32.0 / REGISTER_BYTES},
    [CEILING_FP16] = {"fp16", 0},
    [CEILING_FP8] = {"fp8", 0},
    [CEILING_INT8] = {"int8", 2 * 64.0 / REGISTER_BYTES},
    [CEILING_READ] = {"read", 1},
    [CEILING_COPY] = {"copy", 1}, /* half of them read, half written */
    [CEILING_UPDATE] = {"update", 2},
    [CEILING_LAUNCH] = {"launch", 0},
};

const char *ceiling_name(enum ceiling ceiling)
{
    return kinds[ceiling].name;
}

bool ceiling_parse(const char *name, enum ceiling *out)
{
    for (int i = 0; i < CEILING_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            *out = (enum ceiling)i;
            return true;
        }
    return false;
}

bool ceiling_is_flop(enum ceiling ceiling)
{
    return ceiling < CEILING_READ;
}

bool ceiling_is_memory(enum ceiling ceiling)
{
    return ceiling >= CEILING_READ && ceiling <= CEILING_UPDATE;
}

double burst_work(enum ceiling ceiling, double bytes)
{
    return bytes * kinds[ceiling].per_byte;
}

/* What a CPU does without fused instructions: x86-64's baseline, or another. 8 accumulators of 16
 * bytes: half a register of the others in every round. */
static float flop_scalar(char *data, long bytes, long times)
{
    typedef float reals4 __attribute__((vector_size(16)));
    const reals4 factor = {1.0f, 1.0f, 1.0f, 1.0f};
    reals4 sum[8], *seed = (void *)data;
    for (int j = 0; j < 8; j++)
        sum[j] = seed[j];
    for (long i = 0; i < bytes / REGISTER_BYTES * times; i += 2)
        for (int j = 0; j < 8; j++) {
            sum[j] = sum[j] * factor + factor;
            __asm__ volatile("" : "+x"(sum[j]));
        }
    for (int j = 1; j < 8; j++)
        sum[0] += sum[j];
    return sum[0][0];
}

/* The levels that this architecture has; of the others there is none. */
static const burst_ways_of *const memory[ISA_COUNT] = {
    [ISA_SCALAR] = &burst_memory_scalar,
#define ISA_ROW(NAME, name, machine, flags) ISA_ON_##machine([ISA_##NAME] = &burst_memory_##name, )
#include "base/machine/isa.def"
#undef ISA_ROW
};

burst_kernel *const *burst_ways(enum ceiling ceiling, enum isa isa, const struct cpu *cpu)
{
    static burst_kernel *const none[] = {NULL}, *const scalar[] = {flop_scalar, NULL};
    if (ceiling_is_memory(ceiling) && memory[isa])
        return (*memory[isa])[ceiling];
    if (ceiling == CEILING_FP32 && isa == ISA_SCALAR)
        return scalar;
    burst_kernel *const *ways = ceiling_is_flop(ceiling) ? burst_flops(ceiling, isa, cpu) : NULL;
    return ways ? ways : none;
}
