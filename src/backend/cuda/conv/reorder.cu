/* reorder.cu: see reorder.h. */
#include "backend/cuda/conv/reorder.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/ops/channel_reduce.h"

struct conv_form conv_form_of(const struct program *program, const struct op *op, bool nhwc)
{
    struct conv_form form = {};
    form.conv = conv_of(program, op);
    form.task = op->kind == OP_conv_t    ? CONV_DGRAD
                : op->kind == OP_conv_dw ? CONV_WGRAD
                                         : CONV_FORWARD;
    form.nhwc = nhwc && form.conv.groups == 1 && form.conv.out % NHWC_VECTOR == 0;
    if (form.nhwc)
        form.conv.in = form.conv.inner =
            (form.conv.in + NHWC_VECTOR - 1) / NHWC_VECTOR * NHWC_VECTOR;
    return form;
}

static uint64_t padded_bytes(int64_t count)
{
    return ((uint64_t)count * sizeof(float) + 255) / 256 * 256;
}

uint64_t reorder_bytes(const struct program *program, const struct op *op)
{
    struct conv conv = conv_of(program, op);
    conv.in += NHWC_VECTOR - 1;
    conv.inner += NHWC_VECTOR - 1;
    return padded_bytes(count_x(conv)) + padded_bytes(count_w(conv)) + padded_bytes(count_y(conv));
}

static __device__ float ending_value(const struct conv_ending &ending, float x)
{
    const float y = activation_value(ending.activation, x);
    return ending.low < ending.high ? bounded(y, ending.low, ending.high) : y;
}

/* The ending of a fused convolution: from its sums, which may lie where the result does, or the
 * other way. What is added may lie where the result does. */
static __global__ void finish_each(int64_t count, struct image from, struct image to,
                                   struct conv_ending ending, const float *sums, float *y)
{
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<1>(to, index);
        const int32_t channel = (int32_t)at.channel;
        struct conv_channel_end end;
        end.take(ending, channel);
        const float value =
            end.of(sums[from.at(at.sample, channel, (int32_t)at.row, (int32_t)at.column)]);
        y[index] = ending_value(ending, ending.add ? value + ending.add[index] : value);
    }
}

/* … both NHWC */
static __global__ void __launch_bounds__(THREADS)
    finish_lines(struct channels channels, struct conv_ending ending, const float *sums, float *y)
{
    const struct channel_lines at(channels, true);
    struct conv_channel_end end[NHWC_VECTOR];
    if (at.channel >= channels.channels)
        return;
#pragma unroll
    for (int i = 0; i < NHWC_VECTOR; i++)
        end[i].take(ending, (int32_t)at.channel + i);
    at.each([&](int64_t index) {
        typedef vector<NHWC_VECTOR> four;
        four value = *(const four *)(sums + index);
        const four added = ending.add ? *(const four *)(ending.add + index) : four{};
#pragma unroll
        for (int i = 0; i < NHWC_VECTOR; i++) {
            const float sum = end[i].of(value.at[i]);
            value.at[i] = ending_value(ending, ending.add ? sum + added.at[i] : sum);
        }
        *(four *)(y + index) = value;
    });
}

/* Which operands of an op x, w and y are. */
struct reorder_operands {
    int32_t x, w, y;
};

static struct reorder_operands operands_of(enum op_kind kind)
{
    switch (kind) {
    case OP_conv_t: return {3, 1, 0};
    case OP_conv_dw: return {0, 2, 1};
    case OP_conv_fused: return {0, 1, 8};
    default: return {0, 1, 3};
    }
}

struct reordered reorder_begin(const struct call *call, const struct conv_form &form,
                               bool sums_apart, bool transposes)
{
    struct reordered made = {};
    const struct reorder_operands operand = operands_of(call->op->kind);
    const struct conv &conv = form.conv;
    char *room = (char *)call->workspace;
    const auto place = [&](float *own, bool apart, int64_t count) {
        float *at = apart ? (float *)room : own;
        room += apart ? padded_bytes(count) : 0;
        return at;
    };
    made.call = call;
    made.form = form;
    made.conv = conv_of(call->program, call->op);
    made.x = call_reals(call, operand.x);
    made.w = call_reals(call, operand.w);
    made.y = call_reals(call, operand.y);
    made.image_x = image_of(call, operand.x);
    made.image_y = image_of(call, operand.y);
    made.x_apart = made.image_x.nhwc != (made.form.nhwc != 0);
    made.y_apart = sums_apart || made.image_y.nhwc != (made.form.nhwc != 0);
    made.w_apart = transposes || (form.nhwc && (conv.taps > 1 || conv.in != made.conv.in)) ||
                   (form.task == CONV_WGRAD && call->op->attr.conv_dw.accumulate);
    made.at_x = place(made.x, made.x_apart, count_x(conv));
    made.at_w = place(made.w, made.w_apart, count_w(conv));
    made.at_y = place(made.y, made.y_apart, count_y(conv));
    made.room = room;
    return made;
}

void reorder_images_in(const struct reordered &made, struct queue *queue)
{
    const enum conv_task task = made.form.task;
    const struct conv &conv = made.conv;
    if (task != CONV_DGRAD && made.x_apart)
        nhwc_from_nchw(queue, conv.samples, made.image_x, made.form.conv.in, made.x, made.at_x);
    if (task != CONV_FORWARD && made.y_apart)
        nhwc_from_nchw(queue, conv.samples, made.image_y, conv.out, made.y, made.at_y);
}

void reorder_in(const struct reordered &made, struct queue *queue)
{
    const struct conv &conv = made.conv;
    reorder_images_in(made, queue);
    if (made.form.task != CONV_WGRAD && made.w_apart)
        nhwc_transpose(queue,
                       transposition{conv.out, conv.in, conv.taps, conv.taps, made.form.conv.in,
                                     false, PRECISION_FP32},
                       made.w, made.at_w);
}

void reorder_out(const struct reordered &made, struct queue *queue,
                 const struct conv_ending &ending, bool ends)
{
    const enum conv_task task = made.form.task;
    const struct conv &conv = made.conv;
    const struct image &image = task == CONV_DGRAD ? made.image_x : made.image_y;
    const float *sums = task == CONV_DGRAD ? made.at_x : made.at_y;
    float *to = task == CONV_DGRAD ? made.x : made.y;
    struct image from = image;
    from.nhwc = made.form.nhwc != 0;
    if (task == CONV_WGRAD) {
        const bool accumulate = made.call->op->attr.conv_dw.accumulate != 0;
        const int32_t all = (int32_t)count_w(conv);
        const struct transposition transposed = {
            conv.out, conv.taps, conv.in, made.form.conv.in, conv.taps, accumulate, PRECISION_FP32};
        if (made.w_apart)
            nhwc_transpose(queue,
                           made.form.nhwc
                               ? transposed
                               : transposition{1, 1, all, all, 1, accumulate, PRECISION_FP32},
                           made.at_w, made.w);
        return;
    }
    const bool filled = task == CONV_DGRAD && conv.in != made.form.conv.in;
    const bool apart = task == CONV_DGRAD ? made.x_apart : made.y_apart;
    if (apart && (!ends || filled)) {
        nhwc_to_nchw(queue, conv.samples, image, task == CONV_DGRAD ? made.form.conv.in : conv.out,
                     sums, to);
        sums = to;
        from.nhwc = false;
    }
    if (!ends)
        return;
    const int32_t result = made.call->op->inputs;
    const struct channels channels =
        channels_of_shape(&call_tensor(made.call, result)->shape, image.nhwc);
    const int64_t count = call_count(made.call, result);
    if (from.nhwc && image.nhwc)
        enqueue(queue, finish_lines, lines_grid(channels), dim3(THREADS), channels, ending, sums,
                to);
    else
        enqueue(queue, finish_each, dim3(blocks_striding(count)), dim3(THREADS), count, from, image,
                ending, sums, to);
}
