/* rng.h: counter-based random numbers (Philox 4×32-10).
 *
 * * A random number is a pure function of (seed, stream, step, sample, element), without state. So
 * it has the same bits on every backend, with any number of threads or workers, with or without
 * fusion, and after a resume. `stream` is the op's id before any pass; `sample` its place in the
 * data set.
 *
 * Included by C and CUDA, and written without branches, so that a loop over it becomes vectors.
 * Only IEEE operations with one defined result are used (integer, +, ×, ÷,
 * sqrt, explicit fma; contraction is off everywhere), so the normal deviates match too.
 * Philox: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). */
#ifndef PRONY_BASE_RNG_H
#define PRONY_BASE_RNG_H

#include "base/everywhere.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct rng_block {
    uint32_t word[4];
};

/* All random numbers of a program are drawn from it. */
struct rng_key {
    uint64_t seed;
    uint32_t stream;
    uint64_t step;
};

/* The four words for counter c under key k. */
EVERYWHERE struct rng_block rng_philox(struct rng_block c, uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c.word[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c.word[2];
        struct rng_block next;
        next.word[0] = (uint32_t)(p1 >> 32) ^ c.word[1] ^ k0;
        next.word[1] = (uint32_t)p1;
        next.word[2] = (uint32_t)(p0 >> 32) ^ c.word[3] ^ k1;
        next.word[3] = (uint32_t)p0;
        c = next;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* Words 4·block … 4·block+3 of one sample. The counter holds (block, sample, step low, stream). The
 * key is the seed; the step's upper half is mixed in, so that long runs do not repeat. */
EVERYWHERE struct rng_block rng_words(struct rng_key key, uint32_t sample, uint32_t block)
{
    struct rng_block counter;
    counter.word[0] = block;
    counter.word[1] = sample;
    counter.word[2] = (uint32_t)key.step;
    counter.word[3] = key.stream;
    return rng_philox(counter, (uint32_t)key.seed,
                      (uint32_t)(key.seed >> 32) ^ (uint32_t)(key.step >> 32));
}

EVERYWHERE uint32_t rng_word(struct rng_key key, uint32_t sample, uint32_t element)
{
    return rng_words(key, sample, element / 4).word[element % 4];
}

/* In [0, 1), a multiple of 2^-24: exact in a float. */
EVERYWHERE float rng_unit(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}

EVERYWHERE float rng_uniform(struct rng_key key, uint32_t sample, uint32_t element)
{
    return rng_unit(rng_word(key, sample, element));
}

/* ln(u) for u = (n + 1) / 2^24 in (0, 1]: exponent split, then the atanh series. */
EVERYWHERE float rng_log(float u)
{
    uint32_t bits;
    memcpy(&bits, &u, sizeof bits);
    int exponent = (int)(bits >> 23) - 127;
    bits = (bits & 0x7FFFFFu) | 0x3F800000u;
    float m;
    memcpy(&m, &bits, sizeof m);
    int large = m > 1.41421354f;
    m = large ? m * 0.5f : m;
    exponent += large;
    float s = (m - 1.0f) / (m + 1.0f), z = s * s;
    float series =
        fmaf(z, fmaf(z, fmaf(z, fmaf(z, 0.22222222f, 0.28571429f), 0.4f), 0.66666667f), 2.0f);
    return fmaf((float)exponent, 0.69314718f, s * series);
}

/* cos and sin of 2πu for u in [0, 1): quarter turns, then Taylor on [-π/4, π/4]. */
EVERYWHERE void rng_turn(float u, float *cosine, float *sine)
{
    float quarter = u * 4.0f;
    int turns = (int)(quarter + 0.5f);
    float a = (quarter - (float)turns) * 1.57079633f, z = a * a;
    float s = a * fmaf(z, fmaf(z, fmaf(z, -1.9841270e-4f, 8.3333333e-3f), -0.16666667f), 1.0f);
    float c = fmaf(
        z, fmaf(z, fmaf(z, fmaf(z, 2.4801587e-5f, -1.3888889e-3f), 4.1666667e-2f), -0.5f), 1.0f);
    float x = turns & 1 ? s : c, y = turns & 1 ? c : s;
    *cosine = (turns + 1) & 2 ? -x : x;
    *sine = turns & 2 ? -y : y;
}

/* Two standard normal deviates from two words (Box–Muller). */
EVERYWHERE void rng_normal_pair(uint32_t first, uint32_t second, float *a, float *b)
{
    float u = ((float)(first >> 8) + 1.0f) * (1.0f / 16777216.0f);
    float radius = sqrtf(-2.0f * rng_log(u)), cosine, sine;
    rng_turn(rng_unit(second), &cosine, &sine);
    *a = radius * cosine;
    *b = radius * sine;
}

EVERYWHERE float rng_normal(struct rng_key key, uint32_t sample, uint32_t element)
{
    struct rng_block words = rng_words(key, sample, element / 4);
    uint32_t pair = element % 4 / 2 * 2;
    float a, b;
    rng_normal_pair(words.word[pair], words.word[pair + 1], &a, &b);
    return element % 2 ? b : a;
}

/* An integer in [0, n) without bias worth speaking of (n < 2^24): for shuffles. */
EVERYWHERE uint32_t rng_below(struct rng_key key, uint32_t sample, uint32_t element, uint32_t n)
{
    return (uint32_t)(((uint64_t)rng_word(key, sample, element) * n) >> 32);
}

#endif
