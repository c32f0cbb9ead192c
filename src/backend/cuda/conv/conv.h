/* conv.h: the shape of a convolution, as all its kernels know it.
 *
 * All ops are about one relation of an image x, weights w and a smaller image y: the pixel (row,
 * column) of x meets the weight (ky, kx) at the place (p, q) of y when
 *     row = p·stride + ky·dilation - pad,
 * and likewise for columns. Conv goes from x to y, conv_t from y to x, conv_dw to w. The matrices
 * of the products are not written anywhere: a kernel works out where an element lies. */
#ifndef PRONY_BACKEND_CUDA_CONV_H
#define PRONY_BACKEND_CUDA_CONV_H

#include "backend/cuda/device/launch.h"

/* Along one axis of the images. */
struct conv_axis {
    int32_t x, y, kernel, stride, pad, dilation;
};

struct conv {
    int32_t samples;
    int32_t in, out;      /* channels of x and of y */
    int32_t inner, outer; /* … of those, in a group */
    int32_t groups;
    struct conv_axis down, across;
    int32_t taps; /* weights between two channels */
};

/* What becomes of a sum of a convolution: f((sum + bias - mean)·gamma/√(variance + epsilon) + beta
 * + add), between low and high where low is below high. NULL: nothing of that kind. */
struct conv_ending {
    const float *bias, *gamma, *beta, *mean, *variance; /* [channels] */
    const float *add;                                   /* as the result */
    float epsilon;
    enum activation activation;
    float low, high;
};

/* What the sums of one channel become, but for what is added and the function. */
struct conv_channel_end {
    float offset, scale, beta;
    __device__ void take(const struct conv_ending &ending, int32_t channel)
    {
        offset = ending.bias ? ending.bias[channel] : 0.0f;
        scale = 1.0f;
        beta = 0.0f;
        if (!ending.gamma)
            return;
        offset -= ending.mean[channel];
        scale = ending.gamma[channel] / sqrtf(ending.variance[channel] + ending.epsilon);
        beta = ending.beta[channel];
    }
    __device__ float of(float sum) const
    {
        return (sum + offset) * scale + beta;
    }
};

static inline struct conv_axis conv_axis_of(int64_t x, int64_t y, int64_t kernel, int32_t stride,
                                            int32_t pad, int32_t dilation)
{
    const struct conv_axis axis = {(int32_t)x, (int32_t)y, (int32_t)kernel, stride, pad, dilation};
    return axis;
}

/* The attributes of all these ops begin alike. */
static inline struct conv conv_between(const struct op *op, const struct shape *x,
                                       const struct shape *w, const struct shape *y)
{
    const auto &attr = op->attr.conv;
    struct conv conv = {};
    conv.samples = (int32_t)x->dim[0];
    conv.in = (int32_t)x->dim[1];
    conv.out = (int32_t)y->dim[1];
    conv.inner = (int32_t)w->dim[1];
    conv.groups = conv.in / conv.inner;
    conv.outer = conv.out / conv.groups;
    conv.down =
        conv_axis_of(x->dim[2], y->dim[2], w->dim[2], attr.stride_h, attr.pad_h, attr.dilation_h);
    conv.across =
        conv_axis_of(x->dim[3], y->dim[3], w->dim[3], attr.stride_w, attr.pad_w, attr.dilation_w);
    conv.taps = conv.down.kernel * conv.across.kernel;
    return conv;
}

static inline struct conv conv_of(const struct program *program, const struct op *op)
{
    const auto shape = [&](int32_t operand) {
        return &program->tensors[program->operands[op->first + operand]].shape;
    };
    switch (op->kind) {
    case OP_conv_dw: return conv_between(op, shape(0), shape(2), shape(1));
    case OP_conv_t: return conv_between(op, shape(3), shape(1), shape(0));
    case OP_conv_fused: return conv_between(op, shape(0), shape(1), shape(8));
    default: return conv_between(op, shape(0), shape(1), shape(3));
    }
}

static inline struct conv_ending conv_ending_of(const struct call *call)
{
    const auto &attr = call->op->attr.conv_fused;
    const struct conv_ending ending = {call_reals(call, AT_conv_fused_b),
                                       call_reals(call, AT_conv_fused_gamma),
                                       call_reals(call, AT_conv_fused_beta),
                                       call_reals(call, AT_conv_fused_mean),
                                       call_reals(call, AT_conv_fused_variance),
                                       call_reals(call, AT_conv_fused_add),
                                       attr.epsilon,
                                       (enum activation)attr.activation,
                                       attr.low,
                                       attr.high};
    return ending;
}

/* Does every pixel meet itself alone, and do planes consist of whole vectors of four? */
static inline bool conv_is_pointwise(const struct conv &conv)
{
    const auto is_plain = [](const struct conv_axis &axis) {
        return axis.kernel == 1 && axis.stride == 1 && axis.pad == 0 && axis.x == axis.y;
    };
    return is_plain(conv.down) && is_plain(conv.across) && conv.down.x * conv.across.x % 4 == 0;
}

/* conv_implicit_gemm.cu: y from x, or with `back` x from y. `workspace` is for the weights as the
 * kernel reads them. */
void conv_implicit_gemm(struct queue *queue, const struct conv &conv, bool back, bool tf32,
                        const float *from, const float *w, float *to,
                        const struct conv_ending &ending, void *workspace);
uint64_t conv_implicit_gemm_bytes(const struct conv &conv, bool back);

/* conv_direct.cu: the same in fp32, for few channels of the result and few weights. */
bool conv_direct_fits(const struct conv &conv, bool back);
void conv_direct(struct queue *queue, const struct conv &conv, bool back, const float *from,
                 const float *w, float *to, const struct conv_ending &ending);

/* conv_wgrad.cu: w from x and y; CONV_SMALL: in fp32, by conv_wgrad_small.cu. */
enum conv_way { CONV_IN_FP32, CONV_IN_TF32, CONV_SMALL };
void conv_wgrad(struct queue *queue, const struct conv &conv, enum conv_way way, const float *x,
                const float *dy, float *dw, bool accumulate, void *workspace);
uint64_t conv_wgrad_bytes(const struct conv &conv, bool small);

/* conv_wgrad_small.cu: the same for few weights of small images: it leaves small_pieces sums
 * [piece][out][inner][taps], which are to be added. */
bool small_fits(const struct conv &conv);
int32_t small_pieces(const struct conv &conv);
void small_launch(struct queue *queue, const struct conv &conv, const float *x, const float *dy,
                  float *pieces);

#endif
