/* random_simd.h: dropout, units that are on by chance, random numbers and drawn codes; compiled
 * once per ISA by random_avx2.c and random_avx512.c, which define ISA(name) and ISA_NAME.
 *
 * A strip is the numbers of STRIP_BLOCKS blocks of Philox (base/rng.h) that follow each other in
 * one sample. Its ten rounds are loops over the blocks, which the compiler makes vectors of: the
 * reference works a block out for each number, and one at a time. Every number is a function of its
 * own place, so the bits are the reference's, with any number of threads. The bound is
 * multiplications: 20 a block, or 5 a number. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/activate_simd.h"
#include "backend/cpu/simd/fills.h"
#include "backend/cpu/simd/span_simd.h"
#include "backend/cpu/simd/team.h"
#include "backend/cpu/simd/vec.h"
#include "base/rng.h"

enum { STRIP_BLOCKS = 16, STRIP = 4 * STRIP_BLOCKS, STRIP_WORTH = 256 };

/* word[w][b] is word w of block first + b. */
static void strip_words(struct rng_key key, uint32_t sample, uint32_t first,
                        uint32_t word[4][STRIP_BLOCKS])
{
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32) ^ (uint32_t)(key.step >> 32);
    for (uint32_t b = 0; b < STRIP_BLOCKS; b++) {
        word[0][b] = first + b;
        word[1][b] = sample;
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

static void strip_uniform(struct rng_key key, uint32_t sample, uint32_t first, float *out)
{
    uint32_t word[4][STRIP_BLOCKS];
    strip_words(key, sample, first, word);
    for (int b = 0; b < STRIP_BLOCKS; b++)
        for (int w = 0; w < 4; w++)
            out[4 * b + w] = rng_unit(word[w][b]);
}

static void strip_normal(struct rng_key key, uint32_t sample, uint32_t first, float *out)
{
    uint32_t word[4][STRIP_BLOCKS];
    strip_words(key, sample, first, word);
    for (int b = 0; b < STRIP_BLOCKS; b++)
        for (int w = 0; w < 4; w += 2)
            rng_normal_pair(word[w][b], word[w + 1][b], &out[4 * b + w], &out[4 * b + w + 1]);
}

/* What becomes of `count` random numbers, at most a strip, that belong to element `at` of the
 * output and those behind it. */
typedef void strip_use(const struct call *call, const float *random, int64_t at, int64_t count);

struct strips {
    const struct call *call;
    struct rng_key key;
    const int32_t *rows;
    int64_t batch, width; /* of the output */
    bool normal;
    strip_use *use;
};

static void strip_member(void *context, int member, int members)
{
    const struct strips *strips = context;
    int64_t each = (strips->width + STRIP - 1) / STRIP; /* strips of a sample */
    long from, to;
    pool_share(strips->batch * each, 1, member, members, &from, &to);
    for (int64_t i = from; i < to; i++) {
        float random[STRIP];
        int64_t n = i / each, first = i % each * STRIP, left = strips->width - first;
        (strips->normal ? strip_normal : strip_uniform)(strips->key, (uint32_t)strips->rows[n],
                                                        (uint32_t)(first / 4), random);
        strips->use(strips->call, random, n * strips->width + first, left < STRIP ? left : STRIP);
    }
}

/* `rows` and `out` are operands. */
static void run_strips(const struct call *call, int rows, int out, int32_t stream, bool normal,
                       strip_use *use)
{
    int64_t batch = call->tensors[out]->shape.dim[0], count = call->counts[out];
    struct strips strips = {call,
                            {call->control->seed, (uint32_t)stream, call->control->step},
                            call->data[rows],
                            batch,
                            count / batch,
                            normal,
                            use};
    pool_run(call->pool, team_of(call->pool, count / STRIP / STRIP_WORTH, count / STRIP),
             strip_member, &strips);
}

static void use_dropout(const struct call *call, const float *random, int64_t at, int64_t count)
{
    const float *x = floats(call, 0) + at;
    float *y = floats(call, 2) + at, rate = call->op->attr.dropout.rate, keep = 1 / (1 - rate);
    for (int64_t i = 0; i < count; i++)
        y[i] = random[i] >= rate ? x[i] * keep : 0;
}

static void run_dropout(const struct call *call)
{
    run_strips(call, 1, 2, call->op->attr.dropout.stream, false, use_dropout);
}

static void use_bernoulli(const struct call *call, const float *random, int64_t at, int64_t count)
{
    const float *p = floats(call, 0) + at;
    float *y = floats(call, 2) + at;
    for (int64_t i = 0; i < count; i++)
        y[i] = random[i] < p[i] ? 1.0f : 0.0f;
}

static void run_bernoulli(const struct call *call)
{
    run_strips(call, 1, 2, call->op->attr.bernoulli.stream, false, use_bernoulli);
}

static void use_random(const struct call *call, const float *random, int64_t at, int64_t count)
{
    memcpy(floats(call, 1) + at, random, (size_t)count * sizeof *random);
}

static void run_random(const struct call *call)
{
    bool normal = call->op->attr.random.distribution == DISTRIBUTION_NORMAL;
    run_strips(call, 0, 1, call->op->attr.random.stream, normal, use_random);
}

/* z = mean + σ·ε; a sample's means and logarithms of variances lie behind each other. */
static void use_draw_normal(const struct call *call, const float *random, int64_t at, int64_t count)
{
    int64_t width = call->tensors[2]->shape.dim[1];
    const float *mean = floats(call, 0) + at + at / width * width, *log = mean + width;
    float *z = floats(call, 2) + at;
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

void ISA(random_fill)(struct kernel_table *table)
{
#define FILL(op)                                                                                   \
    table->rows[DTYPE_F32][OP_##op] = (struct kernel){#op "_f32_" ISA_NAME, run_##op, NULL};
    FILL(dropout)
    FILL(bernoulli)
    FILL(random)
    FILL(draw_normal)
}
