/* conv_int8.cu: convolutions of 8 bits (docs/quantisation.md). Those without groups are products of
 * pixels by weights on tensor cores (gemm_int8.h), which read the channels of a pixel side by side:
 * an image that lies otherwise, or whose channels are no whole words, is copied to the workspace,
 * and so are the weights, as [tap][channel][out]. Any other goes pixel by pixel. */
#include "backend/cuda/conv/conv.h"
#include "backend/cuda/narrow/gemm_int8.h"
#include "backend/cuda/ops/nhwc.h"
#include "backend/cuda/plan/kernel_families.h"

enum { OUTSIDE_BYTES = 16, WORKSPACE_ALIGN = 256 };

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
}

static struct conv conv_int8_of(const struct program *program, const struct op *op)
{
    const auto shape = [&](int32_t operand) {
        return &program->tensors[program->operands[op->first + operand]].shape;
    };
    return conv_between(op, shape(AT_conv_int8_x), shape(AT_conv_int8_w), shape(AT_conv_int8_y));
}

/* Channels as products want them: few are one word, more are whole pieces of 16 bytes. */
static int32_t filled(int32_t channels)
{
    return channels <= 4 ? 4 : (channels + 15) / 16 * 16;
}

static uint64_t image_bytes(const struct conv &conv)
{
    return aligned((uint64_t)conv.samples * (uint64_t)conv.down.x * (uint64_t)conv.across.x *
                   (uint64_t)filled(conv.in));
}

static uint64_t weight_bytes(const struct conv &conv)
{
    return aligned((uint64_t)conv.taps * (uint64_t)filled(conv.in) * (uint64_t)filled(conv.out));
}

uint64_t workspace_conv_int8(const struct program *program, const struct op *op)
{
    const struct conv conv = conv_int8_of(program, op);
    return WORKSPACE_ALIGN + image_bytes(conv) + weight_bytes(conv);
}

/* A thread has a pixel and four of its channels; those that there are not are 0. */
static __global__ void fill_image(int64_t count, struct image from, struct image to,
                                  const uint8_t *x, uint8_t *y)
{
    allow_next();
    await_last();
    FOR_EACH(index, count)
    {
        uint32_t quad, row, column;
        int64_t pixel = from.nhwc ? split_number(index, (uint32_t)to.channels / 4, &quad) : index;
        pixel = split_number(pixel, (uint32_t)to.columns, &column);
        pixel = split_number(pixel, (uint32_t)to.rows, &row);
        if (!from.nhwc) /* neighbouring threads read neighbouring columns */
            pixel = split_number(pixel, (uint32_t)to.channels / 4, &quad);
        uint32_t word = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int32_t channel = 4 * (int32_t)quad + i;
            if (channel < from.channels)
                word |= (uint32_t)x[from.at(pixel, channel, (int32_t)row, (int32_t)column)]
                        << 8 * i;
        }
        *(uint32_t *)(y + to.at(pixel, 4 * (int32_t)quad, (int32_t)row, (int32_t)column)) = word;
    }
}

/* [out][in][tap] becomes [tap][channel][pitch]; and `outside` is written. */
static __global__ void fill_weights(int64_t count, int32_t in, int32_t taps, int32_t out,
                                    int32_t channels, int32_t pitch, int32_t zero_x,
                                    const int8_t *w, int8_t *to, uint8_t *outside)
{
    allow_next();
    await_last();
    if (blockIdx.x == 0 && threadIdx.x < OUTSIDE_BYTES)
        outside[threadIdx.x] = (uint8_t)zero_x;
    FOR_EACH(index, count)
    {
        uint32_t column, channel;
        const int64_t row = split_number(index, (uint32_t)pitch, &column);
        const int64_t tap = split_number(row, (uint32_t)channels, &channel);
        const bool there = (int32_t)column < out && (int32_t)channel < in;
        to[index] = there ? w[((int64_t)column * in + channel) * taps + tap] : (int8_t)0;
    }
}

static struct int8_ending ending_of(const struct call *call)
{
    const auto &attr = call->op->attr.conv_int8;
    return {call_integers(call, AT_conv_int8_b),
            call_integers(call, AT_conv_int8_multiplier),
            call_integers(call, AT_conv_int8_shift),
            (const uint8_t *)call->operands[AT_conv_int8_table],
            attr.zero,
            attr.low,
            attr.high};
}

static struct gemm_int8_axis axis_of(const struct conv_axis &axis)
{
    return {axis.x, axis.y, axis.kernel, axis.stride, axis.pad, axis.dilation};
}

void launch_conv_int8_gemm(const struct call *call, struct queue *queue)
{
    const struct conv conv = conv_int8_of(call->program, call->op);
    const struct image from = image_of(call, AT_conv_int8_x);
    const struct image to = {filled(conv.in), from.rows, from.columns, true};
    const int32_t pitch = filled(conv.out);
    uint8_t *outside = (uint8_t *)call->workspace, *image = outside + WORKSPACE_ALIGN;
    int8_t *w = (int8_t *)image + image_bytes(conv);
    const uint8_t *x = (const uint8_t *)call->operands[AT_conv_int8_x];
    const int64_t weights = (int64_t)conv.taps * to.channels * pitch;
    enqueue_early(queue, fill_weights, dim3(blocks_striding(weights)), dim3(THREADS), 0, weights,
                  conv.in, conv.taps, conv.out, to.channels, pitch, call->op->attr.conv_int8.zero_x,
                  (const int8_t *)call->operands[AT_conv_int8_w], w, outside);
    if (!from.nhwc || from.channels != to.channels) {
        const int64_t words = (int64_t)conv.samples * to.rows * to.columns * to.channels / 4;
        enqueue_early(queue, fill_image, dim3(blocks_striding(words)), dim3(THREADS), 0, words,
                      from, to, x, image);
        x = image;
    }
    const struct gemm_int8 gemm = {conv.samples * conv.down.y * conv.across.y,
                                   conv.out,
                                   to.channels,
                                   conv.taps * to.channels,
                                   pitch,
                                   axis_of(conv.down),
                                   axis_of(conv.across),
                                   x,
                                   outside,
                                   w,
                                   call->operands[AT_conv_int8_y],
                                   !call_is_nhwc(call, AT_conv_int8_y),
                                   ending_of(call)};
    gemm_int8_multiply(queue, &gemm);
}

/* A thread a result. */
static __global__ void conv_int8_each(int64_t count, struct conv conv, int32_t zero_x,
                                      struct image from, struct image to, const uint8_t *x,
                                      const int8_t *w, void *y, struct int8_ending ending)
{
    allow_next();
    await_last();
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<1>(to, index);
        const int32_t first = (int32_t)at.channel / conv.outer * conv.inner;
        const int8_t *own = w + (int64_t)at.channel * conv.inner * conv.taps;
        int32_t sum = 0;
        for (int32_t i = 0; i < conv.inner; i++)
            for (int32_t ky = 0; ky < conv.down.kernel; ky++)
                for (int32_t kx = 0; kx < conv.across.kernel; kx++) {
                    const int32_t row = (int32_t)at.row * conv.down.stride +
                                        ky * conv.down.dilation - conv.down.pad;
                    const int32_t column = (int32_t)at.column * conv.across.stride +
                                           kx * conv.across.dilation - conv.across.pad;
                    const bool inside =
                        row >= 0 && row < from.rows && column >= 0 && column < from.columns;
                    sum +=
                        (inside ? (int32_t)x[from.at(at.sample, first + i, row, column)] : zero_x) *
                        *own++;
                }
        struct int8_channel channel;
        channel.take(ending, at.channel);
        sum += channel.bias;
        if (ending.multiplier)
            ((uint8_t *)y)[index] = int8_end(ending, channel, sum);
        else
            ((int32_t *)y)[index] = sum;
    }
}

void launch_conv_int8(const struct call *call, struct queue *queue)
{
    const int64_t count = shape_count(&call_tensor(call, AT_conv_int8_y)->shape);
    enqueue_early(queue, conv_int8_each, dim3(blocks_striding(count)), dim3(THREADS), 0, count,
                  conv_int8_of(call->program, call->op), call->op->attr.conv_int8.zero_x,
                  image_of(call, AT_conv_int8_x), image_of(call, AT_conv_int8_y),
                  (const uint8_t *)call->operands[AT_conv_int8_x],
                  (const int8_t *)call->operands[AT_conv_int8_w], call->operands[AT_conv_int8_y],
                  ending_of(call));
}

/* Offsets within an image are counted in 64 bits, rows in 32. */
bool takes_conv_int8_gemm(const struct choice *choice)
{
    const struct conv conv = conv_int8_of(choice->program, choice->op);
    const int64_t rows = (int64_t)conv.samples * conv.down.y * conv.across.y;
    return conv.groups == 1 && rows <= 64 * (int64_t)65535;
}
