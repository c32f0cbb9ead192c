/* bursts.c: see bursts.h. Loads, adds and stores are written once over 64-byte vectors, which the
 * compiler turns into whatever the function's target has. */
#include "estimate/bursts.h"

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LINE = 64, READ_AHEAD = 3072, WRITE_AHEAD = 1024, TURNS_AHEAD = 16 };
enum { STREAMS = 8, STREAMS_AHEAD = 512 };
enum { REGISTER_BYTES = 64 }; /* a flop kernel does one vector operation for so many bytes */

typedef int64_t words __attribute__((vector_size(LINE)));
typedef float reals __attribute__((vector_size(LINE)));

#define INLINE static inline __attribute__((always_inline))
#define PASS_ENDS __asm__ volatile("" ::: "memory") /* or the passes would be merged */

static const struct {
    const char *name;
    double per_byte; /* of a pass; 0: no CPU does it */
} kinds[CEILING_COUNT] = {
    [CEILING_FP32] = {"fp32", 2 * 16.0 / REGISTER_BYTES},
    [CEILING_TF32] = {"tf32", 0},
    [CEILING_BF16] = {"bf16", 2 * 32.0 / REGISTER_BYTES},
    [CEILING_FP16] = {"fp16", 0},
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

INLINE float fold(const words *all)
{
    int64_t folded = 0;
    for (int i = 0; i < LINE / 8; i++)
        folded ^= (*all)[i];
    return (float)folded;
}

#define READ_FOUR_LINES                                                                            \
    do {                                                                                           \
        a ^= *(const words *)(const void *)at;                                                     \
        b ^= *(const words *)(const void *)(at + LINE);                                            \
        c ^= *(const words *)(const void *)(at + 2 * LINE);                                        \
        d ^= *(const words *)(const void *)(at + 3 * LINE);                                        \
    } while (0)

INLINE float read_plain(const char *data, long bytes, long times)
{
    words a = {0}, b = {0}, c = {0}, d = {0};
    for (; times > 0; times--) {
        for (const char *at = data; at < data + bytes; at += 4 * LINE)
            READ_FOUR_LINES;
        PASS_ENDS;
    }
    a ^= b ^ c ^ d;
    return fold(&a);
}

INLINE float read_ahead(const char *data, long bytes, long times)
{
    words a = {0}, b = {0}, c = {0}, d = {0};
    for (; times > 0; times--) {
        for (const char *at = data; at < data + bytes; at += 4 * LINE) {
            for (int line = 0; line < 4; line++)
                __builtin_prefetch(at + READ_AHEAD + line * LINE, 0, 2);
            READ_FOUR_LINES;
        }
        PASS_ENDS;
    }
    a ^= b ^ c ^ d;
    return fold(&a);
}

/* From eight places at once, a little ahead in each: beyond the caches a quarter faster than from
 * one, where the CPU's own prefetching has one stream to follow. */
INLINE float read_streams(const char *data, long bytes, long times)
{
    words a = {0}, b = {0}, c = {0}, d = {0};
    const long stride = bytes / STREAMS;
    for (; times > 0; times--) {
        for (const char *first = data; first < data + stride; first += 4 * LINE)
            for (const char *at = first; at < data + bytes; at += stride) {
                for (int line = 0; line < 4; line++)
                    __builtin_prefetch(at + STREAMS_AHEAD + line * LINE, 0, 2);
                READ_FOUR_LINES;
            }
        PASS_ENDS;
    }
    a ^= b ^ c ^ d;
    return fold(&a);
}

/* Forth and back: of a set beyond the cache the end of one pass is still in it when the next
 * begins.
 */
INLINE float read_turning(const char *data, long bytes, long times)
{
    words a = {0}, b = {0}, c = {0}, d = {0};
    for (; times > 0; times--) {
        const long step = times % 2 ? 4 * LINE : -4 * LINE;
        const char *at = times % 2 ? data : data + bytes - 4 * LINE;
        for (long left = bytes; left > 0; left -= 4 * LINE, at += step) {
            for (int line = 0; line < 4; line++)
                __builtin_prefetch(at + TURNS_AHEAD * step + line * LINE, 0, 2);
            READ_FOUR_LINES;
        }
        PASS_ENDS;
    }
    a ^= b ^ c ^ d;
    return fold(&a);
}

INLINE void update_two(char *at)
{
    *(reals *)(void *)at += 1.0f;
    *(reals *)(void *)(at + LINE) += 1.0f;
}

INLINE float update_plain(char *data, long bytes, long times)
{
    for (; times > 0; times--) {
        for (char *at = data; at < data + bytes; at += 2 * LINE)
            update_two(at);
        PASS_ENDS;
    }
    return ((const float *)(const void *)data)[0];
}

INLINE float update_ahead(char *data, long bytes, long times)
{
    for (; times > 0; times--) {
        for (char *at = data; at < data + bytes; at += 2 * LINE) {
            __builtin_prefetch(at + WRITE_AHEAD, 1, 2);
            __builtin_prefetch(at + WRITE_AHEAD + LINE, 1, 2);
            update_two(at);
        }
        PASS_ENDS;
    }
    return ((const float *)(const void *)data)[0];
}

/* Forth and back, as a step does that goes through its layers forward, then backward: the end of
 * one pass is still in the cache when the next begins. */
INLINE float update_turning(char *data, long bytes, long times)
{
    for (; times > 0; times--) {
        if (times % 2)
            for (char *at = data; at < data + bytes; at += 2 * LINE)
                update_two(at);
        else
            for (char *at = data + bytes - 2 * LINE; at >= data; at -= 2 * LINE)
                update_two(at);
        PASS_ENDS;
    }
    return ((const float *)(const void *)data)[0];
}

INLINE float copy_plain(char *data, long bytes, long times)
{
    const long half = bytes / 2;
    for (; times > 0; times--) {
        for (char *at = data; at < data + half; at += LINE)
            *(words *)(void *)(at + half) = *(const words *)(const void *)at;
        PASS_ENDS;
    }
    return ((const float *)(const void *)data)[0];
}

static float copy_library(char *data, long bytes, long times)
{
    for (; times > 0; times--) {
        memcpy(data + bytes / 2, data, (size_t)bytes / 2);
        PASS_ENDS;
    }
    return ((const float *)(const void *)data)[0];
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

/* The kernels of one ISA: the bodies above, compiled for its target. */
#define MEMORY_KERNEL(name, isa, target)                                                           \
    target static float name##_##isa(char *data, long bytes, long times)                           \
    {                                                                                              \
        return name(data, bytes, times);                                                           \
    }
#define MEMORY_KERNELS(isa, target)                                                                \
    MEMORY_KERNEL(read_plain, isa, target)                                                         \
    MEMORY_KERNEL(read_ahead, isa, target)                                                         \
    MEMORY_KERNEL(read_streams, isa, target)                                                       \
    MEMORY_KERNEL(read_turning, isa, target)                                                       \
    MEMORY_KERNEL(copy_plain, isa, target)                                                         \
    MEMORY_KERNEL(update_plain, isa, target)                                                       \
    MEMORY_KERNEL(update_ahead, isa, target)                                                       \
    MEMORY_KERNEL(update_turning, isa, target)
#define NOTHING_SPECIAL
MEMORY_KERNELS(scalar, NOTHING_SPECIAL)

#if defined(__x86_64__)
#define TARGET(features) __attribute__((target(features)))
MEMORY_KERNELS(avx2, TARGET("avx2,fma"))
MEMORY_KERNELS(avx512, TARGET("avx512f"))

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
#endif

#define WAYS(isa, flop)                                                                            \
    {                                                                                              \
        [CEILING_FP32] = {flop},                                                                   \
        [CEILING_READ] = {read_plain_##isa, read_ahead_##isa, read_streams_##isa,                  \
                          read_turning_##isa},                                                     \
        [CEILING_COPY] = {copy_plain_##isa, copy_library},                                         \
        [CEILING_UPDATE] = {update_plain_##isa, update_ahead_##isa, update_turning_##isa},         \
    }
static burst_kernel *const ways[][CEILING_COUNT][BURST_WAYS + 1] = {
    [ISA_SCALAR] = WAYS(scalar, flop_scalar),
#if defined(__x86_64__)
    [ISA_AVX2] = WAYS(avx2, flop_avx2),
    [ISA_AVX512] = WAYS(avx512, flop_avx512),
#else
    [ISA_NEON] = WAYS(scalar, flop_scalar),
#endif
};

burst_kernel *const *burst_ways(enum ceiling ceiling, enum isa isa, const struct cpu *cpu)
{
#if defined(__x86_64__)
    static burst_kernel *const bf16[] = {flop_bf16, NULL}, *const int8[] = {flop_int8, NULL};
    if (ceiling == CEILING_BF16 && isa == ISA_AVX512 && cpu->avx512_bf16)
        return bf16;
    if (ceiling == CEILING_INT8 && isa == ISA_AVX512 && cpu->avx512_vnni)
        return int8;
#else
    (void)cpu;
#endif
    return ways[isa][ceiling];
}
