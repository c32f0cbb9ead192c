/* integer.h: numbers of 8 bits inside kernels: products on tensor cores, and the way from a sum to
 * 8 bits (core/requantise.h, docs/quantisation.md). Sums are integers: any order gives the same. */
#ifndef PRONY_BACKEND_CUDA_INTEGER_H
#define PRONY_BACKEND_CUDA_INTEGER_H

#include "backend/cuda/device/launch.h"
extern "C" {
#include "core/requantise.h"
}

/* What becomes of the sums of a product: the operands and attributes of dense_int8 and conv_int8.
 */
struct int8_ending {
    const int32_t *bias, *multiplier, *shift; /* [channels]; multiplier NULL: y is the sums */
    const uint8_t *table;                     /* [256] or NULL */
    int32_t zero, low, high;
};

/* What the ending has of one channel. */
struct int8_channel {
    int32_t bias, multiplier, shift;
    __device__ void take(const struct int8_ending &ending, int64_t channel)
    {
        bias = __ldg(&ending.bias[channel]);
        multiplier = ending.multiplier ? __ldg(&ending.multiplier[channel]) : 0;
        shift = ending.multiplier ? __ldg(&ending.shift[channel]) : 31;
    }
};

static inline __device__ int32_t clamp_int(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The shifted product fits 32 bits, `zero` is one of 256: their sum may not, so it is made in 64.
 */
static inline __device__ uint8_t int8_end(const struct int8_ending &ending,
                                          const struct int8_channel &channel, int32_t sum)
{
    const int64_t product = (int64_t)sum * channel.multiplier + ((int64_t)1 << (channel.shift - 1));
    const int64_t level = (product >> channel.shift) + ending.zero;
    const uint8_t y = (uint8_t)(level < ending.low    ? ending.low
                                : level > ending.high ? ending.high
                                                      : (int32_t)level);
    return ending.table ? __ldg(&ending.table[y]) : y;
}

/* zero + the nearest integer to x / scale, halves to even; low and high are counted from zero. */
static inline __device__ uint8_t quantised(float x, float scale, int32_t zero, float low,
                                           float high)
{
    const float steps = __fdiv_rn(x, scale);
    float level = steps < low ? low : steps;
    level = level > high ? high : level;
    return (uint8_t)(isnan(steps) ? zero : zero + __float2int_rn(level));
}

#if __CUDA_ARCH__ >= 800

/* sums[16, 8] += a[16, 32] (u8) · b[32, 8] (i8). A lane is one of eight groups and has one of four
 * places in the depth: a is rows `group` and `group + 8` at the lower half of its depths, then both
 * at the upper; b the column `group` at both halves; the sums are two neighbouring columns of row
 * `group`, then of `group + 8`. */
static inline __device__ void int8_multiply_add(int32_t (&sums)[4], const uint32_t (&a)[4],
                                                uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four words, each four columns of a row, become four columns, each of four rows. */
static inline __device__ void int8_transpose(uint32_t (&words)[4])
{
    const uint32_t low0 = __byte_perm(words[0], words[1], 0x5140),
                   low1 = __byte_perm(words[2], words[3], 0x5140),
                   high0 = __byte_perm(words[0], words[1], 0x7362),
                   high1 = __byte_perm(words[2], words[3], 0x7362);
    words[0] = __byte_perm(low0, low1, 0x5410);
    words[1] = __byte_perm(low0, low1, 0x7632);
    words[2] = __byte_perm(high0, high1, 0x5410);
    words[3] = __byte_perm(high0, high1, 0x7632);
}

#endif

#endif
