/* conv_after.c: what follows a convolution, as one factor and summand per output. */
#include "backend/cpu/simd/conv/conv_loops.h"

#include <math.h>

void conv_after_of(const struct call *call, int64_t outputs, struct conv_after *after)
{
    bool fused = call->op->kind == OP_conv_fused;
    const float *bias = call->data[CONV_BIAS], *gamma = fused ? call->data[CONV_GAMMA] : NULL;
    after->add = fused ? call->data[CONV_ADD] : NULL;
    after->function = fused ? call->op->attr.conv_fused.activation : ACTIVATION_NONE;
    bool bounded = fused && call->op->attr.conv_fused.low < call->op->attr.conv_fused.high;
    after->low = bounded ? call->op->attr.conv_fused.low : -HUGE_VALF;
    after->high = bounded ? call->op->attr.conv_fused.high : HUGE_VALF;
    for (int64_t o = 0; o < outputs; o++) {
        after->scale[o] = 1;
        after->shift[o] = bias ? bias[o] : 0;
        if (!gamma)
            continue;
        const float *beta = call->data[CONV_BETA], *mean = call->data[CONV_MEAN];
        const float *variance = call->data[CONV_VARIANCE];
        after->scale[o] = gamma[o] / sqrtf(variance[o] + call->op->attr.conv_fused.epsilon);
        after->shift[o] = fmaf(after->shift[o] - mean[o], after->scale[o], beta[o]);
    }
}
