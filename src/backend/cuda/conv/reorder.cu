/* reorder.cu: see reorder.h. */
#include "backend/cuda/conv/reorder.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/ops/channel_reduce.h"

struct carry_form carry_form_of(const struct program *program, const struct op *op, bool last)
{
    struct carry_form form = {};
    form.conv = conv_of(program, op);
    form.task = op->kind == OP_conv_t    ? CARRY_BACK
                : op->kind == OP_conv_dw ? CARRY_WEIGH
                                         : CARRY_AHEAD;
    form.last = last && form.conv.groups == 1 && form.conv.out % LAST_WIDE == 0;
    if (form.last)
        form.conv.in = form.conv.inner = (form.conv.in + LAST_WIDE - 1) / LAST_WIDE * LAST_WIDE;
    return form;
}

static uint64_t padded_bytes(int64_t count)
{
    return ((uint64_t)count * sizeof(float) + 255) / 256 * 256;
}

uint64_t carry_bytes(const struct program *program, const struct op *op)
{
    struct conv conv = conv_of(program, op);
    conv.in += LAST_WIDE - 1;
    conv.inner += LAST_WIDE - 1;
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

/* … both channels last */
static __global__ void __launch_bounds__(THREADS)
    finish_lines(struct channels channels, struct conv_ending ending, const float *sums, float *y)
{
    const struct channel_lines at(channels, true);
    struct conv_channel_end end[LAST_WIDE];
    if (at.channel >= channels.channels)
        return;
#pragma unroll
    for (int i = 0; i < LAST_WIDE; i++)
        end[i].take(ending, (int32_t)at.channel + i);
    at.each([&](int64_t index) {
        typedef vector<LAST_WIDE> four;
        four value = *(const four *)(sums + index);
        const four added = ending.add ? *(const four *)(ending.add + index) : four{};
#pragma unroll
        for (int i = 0; i < LAST_WIDE; i++) {
            const float sum = end[i].of(value.at[i]);
            value.at[i] = ending_value(ending, ending.add ? sum + added.at[i] : sum);
        }
        *(four *)(y + index) = value;
    });
}

/* Which operands of an op x, w and y are. */
struct carry_operands {
    int32_t x, w, y;
};

static struct carry_operands operands_of(enum op_kind kind)
{
    switch (kind) {
    case OP_conv_t: return {3, 1, 0};
    case OP_conv_dw: return {0, 2, 1};
    case OP_conv_fused: return {0, 1, 8};
    default: return {0, 1, 3};
    }
}

struct carried carry(const struct call *call, const struct carry_form &form, bool sums_apart,
                     bool turns)
{
    struct carried made = {};
    const struct carry_operands operand = operands_of(call->op->kind);
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
    made.x_apart = made.image_x.last != (made.form.last != 0);
    made.y_apart = sums_apart || made.image_y.last != (made.form.last != 0);
    made.w_apart = turns || (form.last && (conv.taps > 1 || conv.in != made.conv.in)) ||
                   (form.task == CARRY_WEIGH && call->op->attr.conv_dw.accumulate);
    made.at_x = place(made.x, made.x_apart, count_x(conv));
    made.at_w = place(made.w, made.w_apart, count_w(conv));
    made.at_y = place(made.y, made.y_apart, count_y(conv));
    made.room = room;
    return made;
}

void carry_images_in(const struct carried &made, struct queue *queue)
{
    const enum carry_task task = made.form.task;
    const struct conv &conv = made.conv;
    if (task != CARRY_BACK && made.x_apart)
        last_from_first(queue, conv.samples, made.image_x, made.form.conv.in, made.x, made.at_x);
    if (task != CARRY_AHEAD && made.y_apart)
        last_from_first(queue, conv.samples, made.image_y, conv.out, made.y, made.at_y);
}

void carry_in(const struct carried &made, struct queue *queue)
{
    const struct conv &conv = made.conv;
    carry_images_in(made, queue);
    if (made.form.task != CARRY_WEIGH && made.w_apart)
        last_turn(queue,
                  turning{conv.out, conv.in, conv.taps, conv.taps, made.form.conv.in, false,
                          PRECISION_FP32},
                  made.w, made.at_w);
}

void carry_out(const struct carried &made, struct queue *queue, const struct conv_ending &ending,
               bool ends)
{
    const enum carry_task task = made.form.task;
    const struct conv &conv = made.conv;
    const struct image &image = task == CARRY_BACK ? made.image_x : made.image_y;
    const float *sums = task == CARRY_BACK ? made.at_x : made.at_y;
    float *to = task == CARRY_BACK ? made.x : made.y;
    struct image from = image;
    from.last = made.form.last != 0;
    if (task == CARRY_WEIGH) {
        const bool accumulate = made.call->op->attr.conv_dw.accumulate != 0;
        const int32_t all = (int32_t)count_w(conv);
        const struct turning turned = {conv.out,  conv.taps,  conv.in,       made.form.conv.in,
                                       conv.taps, accumulate, PRECISION_FP32};
        if (made.w_apart)
            last_turn(queue,
                      made.form.last ? turned
                                     : turning{1, 1, all, all, 1, accumulate, PRECISION_FP32},
                      made.at_w, made.w);
        return;
    }
    const bool filled = task == CARRY_BACK && conv.in != made.form.conv.in;
    const bool apart = task == CARRY_BACK ? made.x_apart : made.y_apart;
    if (apart && (!ends || filled)) {
        last_to_first(queue, conv.samples, image, task == CARRY_BACK ? made.form.conv.in : conv.out,
                      sums, to);
        sums = to;
        from.last = false;
    }
    if (!ends)
        return;
    const int32_t result = made.call->op->inputs;
    const struct channels channels =
        channels_of_shape(&call_tensor(made.call, result)->shape, image.last);
    const int64_t count = call_count(made.call, result);
    if (from.last && image.last)
        enqueue(queue, finish_lines, lines_grid(channels), dim3(THREADS), channels, ending, sums,
                to);
    else
        enqueue(queue, finish_each, dim3(blocks_striding(count)), dim3(THREADS), count, from, image,
                ending, sums, to);
}
