/* ref_fake_quantise.c: numbers rounded as core/pass/quantise rounds them, for a training that is to
 * get used to it. Ranges and levels are found in double, whatever the type. */
#include "backend/cpu/real.h"
#include "core/pass/quantise_numbers.h"

/* All of them, as activations: from the least to the largest, with a level for 0. */
static void round_activations(const real *x, real *y, int64_t n)
{
    struct range range = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        range.low = fminf(range.low, (float)x[i]);
        range.high = fmaxf(range.high, (float)x[i]);
    }
    if (!range_is_known(&range)) /* one is infinite: the loss will say so */
        range = (struct range){0, 0};
    const struct scale scale = scale_of(&range, false);
    for (int64_t i = 0; i < n; i++)
        y[i] = isfinite(x[i])
                   ? (real)((double)scale.scale * (scale_level(&scale, (double)x[i]) - scale.zero))
                   : x[i];
}

/* One channel of weights: elements `inner` of every `inner * channels`. */
static void round_channel(const struct call *call, int64_t c, int64_t n)
{
    const real *x = reals(call, AT_fake_quantise_x);
    real *y = reals(call, AT_fake_quantise_y);
    const int64_t inner = call->op->attr.fake_quantise.inner;
    const int64_t stride = inner * call->op->attr.fake_quantise.channels;
    const int32_t bits = call->op->attr.fake_quantise.bits;
    double most = 0;
    for (int64_t at = c * inner; at < n; at += stride)
        for (int64_t i = at; i < at + inner; i++)
            most = fmax(most, fabs((double)x[i]));
    const double step = weight_step(most, 0, 1, bits, false);
    for (int64_t at = c * inner; at < n; at += stride)
        for (int64_t i = at; i < at + inner; i++)
            y[i] = isfinite(x[i]) && isfinite(most)
                       ? (real)(step * weight_level((double)x[i], step, bits))
                       : x[i];
}

KERNEL(fake_quantise)
{
    const int64_t n = count(call, AT_fake_quantise_y);
    const int64_t channels = call->op->attr.fake_quantise.channels;
    if (!channels)
        round_activations(reals(call, AT_fake_quantise_x), reals(call, AT_fake_quantise_y), n);
    for (int64_t c = 0; c < channels; c++)
        round_channel(call, c, n);
}
