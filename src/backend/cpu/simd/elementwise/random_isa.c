/* random_isa.c: dropout, units that are on by chance, random numbers and drawn codes; compiled
 * once per ISA.
 *
 * A strip is the numbers of STRIP_BLOCKS blocks of Philox (base/rng.h) that follow each other, in
 * one sample or in several. Its ten rounds, and what makes normal deviates of the words, are loops
 * over the blocks, which the compiler makes vectors of: the reference works a block out for each
 * number, and one at a time. Every number is a function of its
 * own place, so the bits are the reference's, with any number of threads. The bound is
 * multiplications: 20 a block, or 5 a number. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_span.h"
#include "backend/cpu/team.h"
#include "base/rng.h"

enum { STRIP_BLOCKS = 16, STRIP = 4 * STRIP_BLOCKS, STRIP_WORTH = 256 };

/* What becomes of `count` random numbers that belong to element `at` of the output and those behind
 * it, all of one sample. */
typedef void strip_use(const struct call *call, const float *random, int64_t at, int64_t count);

struct strips {
    const struct call *call;
    struct rng_key key;
    const int32_t *rows;
    int64_t width;           /* of a sample of the output … */
    int64_t blocks, samples; /* … in blocks, the last of which may be cut; and how many there are */
    bool normal;
    strip_use *use;
};

/* word[w][b] is word w of block b of the strip: which block of which sample says `word` as it comes
 * in, word[0] and word[1]. */
static void strip_words(struct rng_key key, uint32_t word[4][STRIP_BLOCKS])
{
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32) ^ (uint32_t)(key.step >> 32);
    for (uint32_t b = 0; b < STRIP_BLOCKS; b++) {
        word[2][b] = (uint32_t)key.step;
        word[3][b] = key.stream;
    }
    for (int round = 0; round < 10; round++) {
        for (int b = 0; b < STRIP_BLOCKS; b++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * word[0][b];
            uint64_t p1 = (uint64_t)0xCD9E8D57u * word[2][b];
            word[0][b] = (uint32_t)(p1 >> 32) ^ word[1][b] ^ k0;
            word[1][b] = (uint32_t)p1;
            word[2][b] = (uint32_t)(p0 >> 32) ^ word[3][b] ^ k1;
            word[3][b] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* The numbers of a strip, each block's four together. */
static void strip_numbers(const struct strips *strips, uint32_t word[4][STRIP_BLOCKS],
                          float random[STRIP])
{
    float number[4][STRIP_BLOCKS];
    strip_words(strips->key, word);
    for (int w = 0; w < 4; w += 2)
        if (strips->normal)
            for (int b = 0; b < STRIP_BLOCKS; b++)
                rng_normal_pair(word[w][b], word[w + 1][b], &number[w][b], &number[w + 1][b]);
        else
            for (int b = 0; b < STRIP_BLOCKS; b++) {
                number[w][b] = rng_unit(word[w][b]);
                number[w + 1][b] = rng_unit(word[w + 1][b]);
            }
    for (int b = 0; b < STRIP_BLOCKS; b++)
        for (int w = 0; w < 4; w++)
            random[4 * b + w] = number[w][b];
}

/* Which block of which sample each block of the strip is; behind the last sample anything will do.
 */
static void strip_places(const struct strips *strips, int64_t sample, int64_t block,
                         uint32_t word[4][STRIP_BLOCKS])
{
    for (uint32_t b = 0; b < STRIP_BLOCKS; b++) {
        word[0][b] = (uint32_t)block + b;
        word[1][b] = (uint32_t)strips->rows[sample];
    }
    for (int64_t b = strips->blocks - block; b < STRIP_BLOCKS; b++) {
        if (word[0][b - 1] + 1 == strips->blocks && sample + 1 < strips->samples) {
            word[0][b] = 0;
            sample++;
        } else {
            word[0][b] = word[0][b - 1] + 1;
        }
        word[1][b] = (uint32_t)strips->rows[sample];
    }
}

/* Blocks `first` and those behind it, as many as a strip has, of all samples' blocks. */
static void strip_run(const struct strips *strips, int64_t first)
{
    uint32_t word[4][STRIP_BLOCKS];
    float random[STRIP];
    int64_t all = strips->samples * strips->blocks;
    int64_t sample = first / strips->blocks, block = first % strips->blocks;
    int64_t count = all - first < STRIP_BLOCKS ? all - first : STRIP_BLOCKS;
    int64_t at = sample * strips->width + 4 * block;
    strip_places(strips, sample, block, word);
    strip_numbers(strips, word, random);
    for (int64_t b = 0; b < count; block = 0) { /* what is left of each sample */
        int64_t here = strips->blocks - block < count - b ? strips->blocks - block : count - b;
        int64_t left = strips->width - 4 * block, numbers = 4 * here < left ? 4 * here : left;
        strips->use(strips->call, random + 4 * b, at, numbers);
        at += numbers;
        b += here;
    }
}

static void strip_member(void *context, int member, int members)
{
    const struct strips *strips = context;
    int64_t all = strips->samples * strips->blocks;
    long from, to;
    pool_share((all + STRIP_BLOCKS - 1) / STRIP_BLOCKS, 1, member, members, &from, &to);
    for (int64_t i = from; i < to; i++)
        strip_run(strips, i * STRIP_BLOCKS);
}

/* `rows` and `out` are operands. */
static void run_strips(const struct call *call, int rows, int out, int32_t stream, bool normal,
                       strip_use *use)
{
    int64_t samples = call->tensors[out]->shape.dim[0], count = call->counts[out];
    struct strips strips = {
        .call = call,
        .key = {call->control->seed, (uint32_t)stream, call->control->step},
        .rows = call->data[rows],
        .width = count / samples,
        .blocks = (count / samples + 3) / 4,
        .samples = samples,
        .normal = normal,
        .use = use,
    };
    pool_run(call->pool, team_of(call->pool, count / STRIP / STRIP_WORTH, count / STRIP),
             strip_member, &strips);
}

static void use_dropout(const struct call *call, const float *random, int64_t at, int64_t count)
{
    const float *x = floats(call, AT_dropout_x) + at;
    float *y = floats(call, AT_dropout_y) + at, rate = call->op->attr.dropout.rate,
          keep = 1 / (1 - rate);
    for (int64_t i = 0; i < count; i++)
        y[i] = random[i] >= rate ? x[i] * keep : 0;
}

static void run_dropout(const struct call *call)
{
    run_strips(call, 1, 2, call->op->attr.dropout.stream, false, use_dropout);
}

static void use_bernoulli(const struct call *call, const float *random, int64_t at, int64_t count)
{
    const float *p = floats(call, AT_bernoulli_p) + at;
    float *y = floats(call, AT_bernoulli_y) + at;
    for (int64_t i = 0; i < count; i++)
        y[i] = random[i] < p[i] ? 1.0f : 0.0f;
}

static void run_bernoulli(const struct call *call)
{
    run_strips(call, 1, 2, call->op->attr.bernoulli.stream, false, use_bernoulli);
}

static void use_random(const struct call *call, const float *random, int64_t at, int64_t count)
{
    memcpy(floats(call, AT_random_y) + at, random, (size_t)count * sizeof *random);
}

static void run_random(const struct call *call)
{
    bool normal = call->op->attr.random.distribution == DISTRIBUTION_NORMAL;
    run_strips(call, 0, 1, call->op->attr.random.stream, normal, use_random);
}

/* z = mean + σ·ε; a sample's means and logarithms of variances lie behind each other. */
static void use_draw_normal(const struct call *call, const float *random, int64_t at, int64_t count)
{
    int64_t width = call->tensors[AT_draw_normal_z]->shape.dim[1];
    const float *mean = floats(call, AT_draw_normal_moments) + at + at / width * width,
                *log = mean + width;
    float *z = floats(call, AT_draw_normal_z) + at;
    for (int64_t i = 0; i < count; i += VEC_LANES) {
        vec half = vec_mul(vec_load_part(log + i, count - i), vec_set(0.5f));
        vec off = vec_mul(vec_exp(half), vec_load_part(random + i, count - i));
        vec_store_part(z + i, vec_add(vec_load_part(mean + i, count - i), off), count - i);
    }
}

static void run_draw_normal(const struct call *call)
{
    run_strips(call, 1, 2, call->op->attr.draw_normal.stream, true, use_draw_normal);
}

static const struct kernel rows[] = {
    {ROW(dropout)},
    {ROW(bernoulli)},
    {ROW(random)},
    {ROW(draw_normal)},
};

const struct kernel_list ISA(random_list) = KERNEL_LIST(rows);
