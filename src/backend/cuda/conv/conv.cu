/* conv.cu: the ops of the convolution family, in fp32 and in tf32, and the gradient of a bias. */
#include "backend/cuda/conv/conv.h"
#include "backend/cuda/ops/channel_reduce.h"
#include "backend/cuda/plan/kernel_families.h"

/* conv: y[n,o,p,q] = Σ_{i,ky,kx} x[n,i,row,column]·w[o,i,ky,kx] + b[o]
 * conv_t: x[n,i,row,column] = Σ_{o,ky,kx} y[n,o,p,q]·w[o,i,ky,kx] + b[i]: y is read, x written
 * conv_fused: conv, with batch-norm, a summand and an activation in the epilogue */
static void run_conv(const struct call *call, struct queue *queue, enum conv_way way)
{
    const bool back = call->op->kind == OP_conv_t, fused = call->op->kind == OP_conv_fused;
    const struct conv conv = conv_of(call->program, call->op);
    struct conv_ending ending = {};
    ending.bias = call_reals(call, AT_conv_b);
    if (fused)
        ending = conv_ending_of(call);
    float *to = call_reals(call, fused ? 8 : 3);
    if (way == CONV_SMALL)
        conv_direct(queue, conv, back, call_reals(call, AT_conv_x), call_reals(call, AT_conv_w), to,
                    ending);
    else
        conv_implicit_gemm(queue, conv, back, way == CONV_IN_TF32, call_reals(call, AT_conv_x),
                           call_reals(call, AT_conv_w), to, ending, call->workspace);
}

void launch_conv(const struct call *call, struct queue *queue)
{
    run_conv(call, queue, CONV_IN_FP32);
}

void launch_conv_tf32(const struct call *call, struct queue *queue)
{
    run_conv(call, queue, CONV_IN_TF32);
}

void launch_conv_direct(const struct call *call, struct queue *queue)
{
    run_conv(call, queue, CONV_SMALL);
}

uint64_t workspace_conv(const struct program *program, const struct op *op)
{
    return conv_implicit_gemm_bytes(conv_of(program, op), op->kind == OP_conv_t);
}

/* dw[o,i,ky,kx] = Σ_{n,p,q} x[n,i,row,column]·dy[n,o,p,q] */
static void run_conv_dw(const struct call *call, struct queue *queue, enum conv_way way)
{
    conv_wgrad(queue, conv_of(call->program, call->op), way, call_reals(call, AT_conv_dw_x),
               call_reals(call, AT_conv_dw_dy), call_reals(call, AT_conv_dw_dw),
               call->op->attr.conv_dw.accumulate != 0, call->workspace);
}

void launch_conv_dw(const struct call *call, struct queue *queue)
{
    run_conv_dw(call, queue, CONV_IN_FP32);
}

void launch_conv_dw_tf32(const struct call *call, struct queue *queue)
{
    run_conv_dw(call, queue, CONV_IN_TF32);
}

void launch_conv_dw_small(const struct call *call, struct queue *queue)
{
    run_conv_dw(call, queue, CONV_SMALL);
}

uint64_t workspace_conv_dw(const struct program *program, const struct op *op)
{
    return conv_wgrad_bytes(conv_of(program, op), false);
}

uint64_t workspace_conv_dw_small(const struct program *program, const struct op *op)
{
    return conv_wgrad_bytes(conv_of(program, op), true);
}

/* Has the result few channels (conv_direct.cu)? */
bool takes_conv_direct(const struct choice *choice)
{
    return conv_direct_fits(conv_of(choice->program, choice->op), choice->op->kind == OP_conv_t);
}

/* Are there few weights, of small images (conv_wgrad_small.cu)? */
bool takes_conv_wgrad_small(const struct choice *choice)
{
    return small_fits(conv_of(choice->program, choice->op));
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
        queue, channels, channel_values{call_reals(call, AT_sum_channels_x), NULL},
        (struct two *)call->workspace);
    if (channels.nhwc) /* they are whole */
        channels.pieces = 1;
    enqueue(queue, add_channel_pieces, dim3(blocks_striding(channels.channels)), dim3(THREADS),
            channels, sums, call->op->attr.sum_channels.accumulate != 0,
            call_reals(call, AT_sum_channels_y));
}

uint64_t workspace_channels(const struct program *program, const struct op *op)
{
    return channels_bytes(program, op);
}
