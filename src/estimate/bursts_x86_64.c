/* bursts_x86_64.c: multiply-adds of AVX2 and AVX-512, in registers. */
#include "estimate/burst_inside.h"

#include <immintrin.h>

#define TARGET(features) __attribute__((target(features)))

/* 12 accumulators hide a latency of 4 cycles at two fused multiply-adds a cycle, with room. */
TARGET("avx2,fma") static float flop_avx2(char *data, long bytes, long times)
{
    const __m256 factor = _mm256_set1_ps(0.5f);
    __m256 sum[12];
    for (int j = 0; j < 12; j++)
        sum[j] = _mm256_loadu_ps((const float *)(const void *)data + 8 * j);
    for (long i = 0; i < bytes / REGISTER_BYTES * times; i += 6)
        for (int j = 0; j < 12; j++)
            sum[j] = _mm256_fmadd_ps(sum[j], factor, factor);
    for (int j = 1; j < 12; j++)
        sum[0] = _mm256_add_ps(sum[0], sum[j]);
    return _mm256_cvtss_f32(sum[0]);
}

TARGET("avx512f") static float flop_avx512(char *data, long bytes, long times)
{
    const __m512 factor = _mm512_set1_ps(0.5f);
    __m512 sum[12];
    for (int j = 0; j < 12; j++)
        sum[j] = _mm512_loadu_ps((const float *)(const void *)data + 16 * j);
    for (long i = 0; i < bytes / REGISTER_BYTES * times; i += 12)
        for (int j = 0; j < 12; j++)
            sum[j] = _mm512_fmadd_ps(sum[j], factor, factor);
    for (int j = 1; j < 12; j++)
        sum[0] = _mm512_add_ps(sum[0], sum[j]);
    return _mm512_cvtss_f32(sum[0]);
}

TARGET("avx512f,avx512bf16") static float flop_bf16(char *data, long bytes, long times)
{
    const __m512bh factor = (__m512bh)_mm512_loadu_si512(data);
    __m512 sum[12];
    for (int j = 0; j < 12; j++)
        sum[j] = _mm512_loadu_ps((const float *)(const void *)data + 16 * j);
    for (long i = 0; i < bytes / REGISTER_BYTES * times; i += 12)
        for (int j = 0; j < 12; j++)
            sum[j] = _mm512_dpbf16_ps(sum[j], factor, factor);
    for (int j = 1; j < 12; j++)
        sum[0] = _mm512_add_ps(sum[0], sum[j]);
    return _mm512_cvtss_f32(sum[0]);
}

TARGET("avx512f,avx512vnni") static float flop_int8(char *data, long bytes, long times)
{
    const __m512i factor = _mm512_loadu_si512(data);
    __m512i sum[12];
    for (int j = 0; j < 12; j++)
        sum[j] = _mm512_loadu_si512(data + 64 * j);
    for (long i = 0; i < bytes / REGISTER_BYTES * times; i += 12)
        for (int j = 0; j < 12; j++)
            sum[j] = _mm512_dpbusd_epi32(sum[j], factor, factor);
    for (int j = 1; j < 12; j++)
        sum[0] = _mm512_add_epi32(sum[0], sum[j]);
    return (float)_mm512_reduce_add_epi32(sum[0]);
}

burst_kernel *const *burst_flops(enum ceiling ceiling, enum isa isa, const struct cpu *cpu)
{
    static burst_kernel *const avx2[] = {flop_avx2, NULL}, *const avx512[] = {flop_avx512, NULL},
                               *const bf16[] = {flop_bf16, NULL}, *const int8[] = {flop_int8, NULL};
    if (ceiling == CEILING_FP32 && isa == ISA_AVX2)
        return avx2;
    if (ceiling == CEILING_FP32 && isa == ISA_AVX512)
        return avx512;
    if (ceiling == CEILING_BF16 && isa == ISA_AVX512 && cpu_extends(cpu, EXTENSION_AVX512_BF16))
        return bf16;
    if (ceiling == CEILING_INT8 && isa == ISA_AVX512 && cpu_extends(cpu, EXTENSION_AVX512_VNNI))
        return int8;
    return NULL;
}
