/* bursts_aarch64.c: multiply-adds of NEON, in registers. */
#include "estimate/burst_inside.h"

#include <arm_neon.h>

/* 24 accumulators hide a latency of 4 cycles at four fused multiply-adds a cycle, with room. */
static float flop_neon(char *data, long bytes, long times)
{
    const float32x4_t factor = vdupq_n_f32(0.5f);
    float32x4_t sum[24];
    for (int j = 0; j < 24; j++)
        sum[j] = vld1q_f32((const float *)(const void *)data + 4 * j);
    for (long i = 0; i < bytes / REGISTER_BYTES * times; i += 6)
        for (int j = 0; j < 24; j++)
            sum[j] = vfmaq_f32(sum[j], factor, factor);
    for (int j = 1; j < 24; j++)
        sum[0] = vaddq_f32(sum[0], sum[j]);
    return vgetq_lane_f32(sum[0], 0);
}

burst_kernel *const *burst_flops(enum ceiling ceiling, enum isa isa, const struct cpu *cpu)
{
    static burst_kernel *const neon[] = {flop_neon, NULL};
    (void)cpu;
    return ceiling == CEILING_FP32 && isa == ISA_NEON ? neon : NULL;
}
