/* ref_random.c: what is random. Every number is a function of (seed, stream, step, row of the data,
 * element): see base/rng.h. */
#include "backend/cpu/real.h"
#include "base/rng.h"

static struct rng_key key_of(const struct call *call, int32_t stream)
{
    return (struct rng_key){
        .seed = call->control->seed,
        .stream = (uint32_t)stream,
        .step = call->control->step,
    };
}

/* y = x / (1 - rate) where the number is at least `rate`, else 0. Applied to dy it is the gradient.
 */
KERNEL(dropout)
{
    const real *x = reals(call, AT_dropout_x);
    const int32_t *rows = integers(call, AT_dropout_rows);
    real *y = reals(call, AT_dropout_y);
    float rate = call->op->attr.dropout.rate;
    real keep = (real)(1 / (1 - rate));
    struct rng_key key = key_of(call, call->op->attr.dropout.stream);
    int64_t batch = dim(call, AT_dropout_x, 0), width = count(call, AT_dropout_x) / batch;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i++) {
            float u = rng_uniform(key, (uint32_t)rows[n], (uint32_t)i);
            y[n * width + i] = u >= rate ? x[n * width + i] * keep : 0;
        }
}

/* y = 1 with probability p, else 0. */
KERNEL(bernoulli)
{
    const real *p = reals(call, AT_bernoulli_p);
    const int32_t *rows = integers(call, AT_bernoulli_rows);
    real *y = reals(call, AT_bernoulli_y);
    struct rng_key key = key_of(call, call->op->attr.bernoulli.stream);
    int64_t batch = dim(call, AT_bernoulli_p, 0), width = count(call, AT_bernoulli_p) / batch;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i++)
            y[n * width + i] =
                (real)rng_uniform(key, (uint32_t)rows[n], (uint32_t)i) < p[n * width + i] ? 1 : 0;
}

/* Uniform in [0, 1), or standard normal. */
KERNEL(random)
{
    const int32_t *rows = integers(call, AT_random_rows);
    real *y = reals(call, AT_random_y);
    struct rng_key key = key_of(call, call->op->attr.random.stream);
    bool normal = call->op->attr.random.distribution == DISTRIBUTION_NORMAL;
    int64_t batch = dim(call, AT_random_y, 0), width = count(call, AT_random_y) / batch;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i++)
            y[n * width + i] = (real)(normal ? rng_normal(key, (uint32_t)rows[n], (uint32_t)i)
                                             : rng_uniform(key, (uint32_t)rows[n], (uint32_t)i));
}
