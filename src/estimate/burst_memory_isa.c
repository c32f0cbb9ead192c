/* burst_memory_isa.c: reads, copies and updates of memory, written over 64-byte vectors, which the
 * compiler turns into those of the ISA. The build compiles this file for each (cmake/isa.cmake). */
#include "estimate/burst_inside.h"

#include <stdint.h>
#include <string.h>

enum { LINE = 64, READ_AHEAD = 3072, WRITE_AHEAD = 1024, TURNS_AHEAD = 16 };
enum { STREAMS = 8, STREAMS_AHEAD = 512 };

typedef int64_t words __attribute__((vector_size(LINE)));
typedef float reals __attribute__((vector_size(LINE)));

#define INLINE static inline __attribute__((always_inline))
#define PASS_ENDS __asm__ volatile("" ::: "memory") /* or the passes would be merged */

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

static float read_plain(char *data, long bytes, long times)
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

static float read_ahead(char *data, long bytes, long times)
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
static float read_streams(char *data, long bytes, long times)
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
static float read_turning(char *data, long bytes, long times)
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

static float update_plain(char *data, long bytes, long times)
{
    for (; times > 0; times--) {
        for (char *at = data; at < data + bytes; at += 2 * LINE)
            update_two(at);
        PASS_ENDS;
    }
    return ((const float *)(const void *)data)[0];
}

static float update_ahead(char *data, long bytes, long times)
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
static float update_turning(char *data, long bytes, long times)
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

static float copy_plain(char *data, long bytes, long times)
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

#define JOIN(name, isa) name##_##isa
#define NAME(name, isa) JOIN(name, isa)

const burst_ways_of NAME(burst_memory, PRONY_ISA) = {
    [CEILING_READ] = {read_plain, read_ahead, read_streams, read_turning},
    [CEILING_COPY] = {copy_plain, copy_library},
    [CEILING_UPDATE] = {update_plain, update_ahead, update_turning},
};
