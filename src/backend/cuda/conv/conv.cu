/* conv.cu: the ops of the convolution family, in fp32 and in tf32, and the gradient of a bias. */
#include "backend/cuda/conv/conv.h"
#include "backend/cuda/ops/channel_reduce.h"
#include "backend/cuda/plan/kernel_families.h"

/* y[n,o,p,q] = Σ_{i,ky,kx} x[n,i,row,column]·w[o,i,ky,kx] + b[o] */
static void run_conv(const struct call *call, struct queue *queue, bool tf32)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, 2);
    conv_implicit_gemm(queue, conv_of(call->program, call->op), false, tf32, call_reals(call, 0),
                       call_reals(call, 1), call_reals(call, 3), ending, call->workspace);
}

/* x[n,i,row,column] = Σ_{o,ky,kx} y[n,o,p,q]·w[o,i,ky,kx] + b[i]: here y is read, x written. */
static void run_conv_t(const struct call *call, struct queue *queue, bool tf32)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, 2);
    conv_implicit_gemm(queue, conv_of(call->program, call->op), true, tf32, call_reals(call, 0),
                       call_reals(call, 1), call_reals(call, 3), ending, call->workspace);
}

static void run_conv_fused(const struct call *call, struct queue *queue, bool tf32)
{
    conv_implicit_gemm(queue, conv_of(call->program, call->op), false, tf32, call_reals(call, 0),
                       call_reals(call, 1), call_reals(call, 8), conv_ending_of(call),
                       call->workspace);
}

/* dw[o,i,ky,kx] = Σ_{n,p,q} x[n,i,row,column]·dy[n,o,p,q] */
static void run_conv_dw(const struct call *call, struct queue *queue, bool tf32)
{
    conv_wgrad(queue, conv_of(call->program, call->op), tf32, call_reals(call, 0),
               call_reals(call, 1), call_reals(call, 2), call->op->attr.conv_dw.accumulate != 0,
               call->workspace);
}

uint64_t workspace_conv(const struct program *program, const struct op *op)
{
    const struct conv conv = conv_of(program, op);
    return op->kind == OP_conv_dw ? conv_wgrad_bytes(conv)
                                  : conv_implicit_gemm_bytes(conv, op->kind == OP_conv_t);
}

#define BOTH(kind)                                                                                 \
    void launch_##kind(const struct call *call, struct queue *queue)                               \
    {                                                                                              \
        run_##kind(call, queue, false);                                                            \
    }                                                                                              \
    static void launch_##kind##_tf32(const struct call *call, struct queue *queue)                 \
    {                                                                                              \
        run_##kind(call, queue, true);                                                             \
    }
BOTH(conv)
BOTH(conv_t)
BOTH(conv_fused)
BOTH(conv_dw)

#define ROW(kind)                                                                                  \
    {                                                                                              \
        OP_##kind, #kind "_tf32_cuda", launch_##kind##_tf32, workspace_conv, NULL, 0, false        \
    }

const struct kernel *conv_kernel_tf32(const struct op *op)
{
    static const struct kernel kernels[] = {ROW(conv), ROW(conv_t), ROW(conv_fused), ROW(conv_dw)};
    return kernel_in(kernels, op->kind);
}

/* The values themselves. */
struct channel_values {
    const float *first, *second;
    struct fixed {
    };
    __device__ struct fixed of_channel(int64_t, int64_t) const
    {
        return {};
    }
    static __device__ struct two of(struct fixed, float x, float)
    {
        return {x, 0.0f};
    }
};

static __global__ void add_channel_pieces(struct channels channels, const struct two *sums,
                                          bool accumulate, float *y)
{
    FOR_EACH(channel, channels.channels)
    {
        float sum = accumulate ? y[channel] : 0.0f;
        for (int32_t piece = 0; piece < channels.pieces; piece++)
            sum += sums[channel * channels.pieces + piece].a;
        y[channel] = sum;
    }
}

/* y[c] = Σ_{n,*} x[n,c,*], or added to what is there */
void launch_sum_channels(const struct call *call, struct queue *queue)
{
    struct channels channels = channels_of(call);
    const struct two *sums = sum_channel_pieces(
        queue, channels, channel_values{call_reals(call, 0), NULL}, (struct two *)call->workspace);
    if (channels.nhwc) /* they are whole */
        channels.pieces = 1;
    enqueue(queue, add_channel_pieces, dim3(blocks_striding(channels.channels)), dim3(THREADS),
            channels, sums, call->op->attr.sum_channels.accumulate != 0, call_reals(call, 1));
}

uint64_t workspace_channels(const struct program *program, const struct op *op)
{
    return channels_bytes(program, op);
}
