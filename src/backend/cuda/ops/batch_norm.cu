/* batch_norm.cu: batch-norm over all but the channel: sums of pieces of a channel, then a second
 * pass by the same pieces (channel_reduce.h). */
#include "backend/cuda/device/activation.h"
#include "backend/cuda/ops/channel_reduce.h"
#include "backend/cuda/plan/kernel_families.h"

struct norm_training {
    const float *x, *gamma, *beta;
    float *y, *saved_mean, *saved_scale, *mean, *variance;
    float epsilon, momentum;
    const float *add; /* to the result, or NULL … */
    bool rectified;   /* … of which what is below 0 is 0 */
    template <int WIDE> __device__ void put(int64_t index, vector<WIDE> value) const
    {
        const vector<WIDE> more = add ? *(const vector<WIDE> *)(add + index) : vector<WIDE>{};
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
            const float sum = add ? value.at[i] + more.at[i] : value.at[i];
            value.at[i] = rectified ? relu(sum) : sum;
        }
        *(vector<WIDE> *)(y + index) = value;
    }
};

/* x - pivot and its square: the pivot is a value of the channel, so that nothing cancels when the
 * mean is far from 0. */
struct norm_moments {
    const float *first, *second;
    struct fixed {
        float pivot;
    };
    __device__ struct fixed of_channel(int64_t, int64_t beginning) const
    {
        return {first[beginning]};
    }
    static __device__ struct two of(struct fixed fixed, float x, float)
    {
        const float difference = x - fixed.pivot;
        return {difference, difference * difference};
    }
};

/* What becomes of a channel of `count` values: (x - mean)·slope + beta. */
struct norm_channel {
    float mean, slope, beta, scale, variance;
    __device__ void take(const struct norm_training &norm, int64_t c, float pivot, float count,
                         const struct two &whole)
    {
        const float offset = whole.a / count;
        mean = pivot + offset;
        variance = relu(whole.b / count - offset * offset); /* rounded, it may be less than 0 */
        scale = 1.0f / sqrtf(variance + norm.epsilon);
        slope = norm.gamma[c] * scale;
        beta = norm.beta[c];
    }
    /* The running variance takes the unbiased one. */
    __device__ void keep(const struct norm_training &norm, int64_t c, float count) const
    {
        const float unbiased = count > 1.0f ? variance * (count / (count - 1.0f)) : variance;
        norm.saved_mean[c] = mean;
        norm.saved_scale[c] = scale;
        norm.mean[c] += norm.momentum * (mean - norm.mean[c]);
        norm.variance[c] += norm.momentum * (unbiased - norm.variance[c]);
    }
};

template <int WIDE>
static __global__ void __launch_bounds__(THREADS)
    batch_norm_piece(struct channels channels, struct norm_training norm, const struct two *sums)
{
    const struct channel_piece at(channels, true);
    const int64_t c = at.channel;
    const float count = (float)(channels.n * channels.inner);
    struct norm_channel own;
    own.take(norm, c, norm.x[c * channels.inner], count, channel_whole(at, sums));
    at.each<WIDE>([&](int64_t index) {
        vector<WIDE> value = read_only<WIDE>(norm.x + index);
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            value.at[i] = (value.at[i] - own.mean) * own.slope + own.beta;
        norm.put<WIDE>(index, value);
    });
    if (threadIdx.x == 0 && at.piece == 0)
        own.keep(norm, c, count);
}

static __global__ void __launch_bounds__(THREADS)
    batch_norm_lines(struct channels channels, struct norm_training norm, const struct two *wholes)
{
    const struct channel_lines at(channels, true);
    const float count = (float)(channels.n * channels.inner);
    struct norm_channel own[NHWC_VECTOR];
    if (at.channel >= channels.channels)
        return;
#pragma unroll
    for (int i = 0; i < NHWC_VECTOR; i++)
        own[i].take(norm, at.channel + i, norm.x[at.channel + i], count, wholes[at.channel + i]);
    at.each([&](int64_t index) {
        vector<NHWC_VECTOR> value = read_only<NHWC_VECTOR>(norm.x + index);
#pragma unroll
        for (int i = 0; i < NHWC_VECTOR; i++)
            value.at[i] = (value.at[i] - own[i].mean) * own[i].slope + own[i].beta;
        norm.put<NHWC_VECTOR>(index, value);
    });
#pragma unroll
    for (int i = 0; i < NHWC_VECTOR; i++)
        if (at.line == 0 && blockIdx.y == 0)
            own[i].keep(norm, at.channel + i, count);
}

static void run_batch_norm(const struct call *call, struct queue *queue, float *y, const float *add,
                           bool rectified)
{
    const struct channels channels = channels_of(call);
    struct two *sums = (struct two *)call->workspace;
    const struct norm_training norm = {call_reals(call, AT_batch_norm_x),
                                       call_reals(call, AT_batch_norm_gamma),
                                       call_reals(call, AT_batch_norm_beta),
                                       y,
                                       call_reals(call, AT_batch_norm_saved_mean),
                                       call_reals(call, AT_batch_norm_saved_scale),
                                       call_reals(call, AT_batch_norm_mean_out),
                                       call_reals(call, AT_batch_norm_variance_out),
                                       call->op->attr.batch_norm.epsilon,
                                       call->op->attr.batch_norm.momentum,
                                       add,
                                       rectified};
    const struct two *found = sum_channel_pieces(queue, channels, norm_moments{norm.x, NULL}, sums);
    if (channels.nhwc)
        enqueue(queue, batch_norm_lines, lines_grid(channels), dim3(THREADS), channels, norm,
                found);
    else
        enqueue(queue, channels.wide ? batch_norm_piece<4> : batch_norm_piece<1>,
                channels_grid(channels), dim3(THREADS), channels, norm, found);
}

void launch_batch_norm(const struct call *call, struct queue *queue)
{
    run_batch_norm(call, queue, call_reals(call, AT_batch_norm_y), NULL, false);
}

/* The op is a relu: the batch-norm before it does it. */
void launch_batch_norm_relu(const struct call *call, struct queue *queue)
{
    const struct call norm = fusion_call(call, call->op - 1);
    run_batch_norm(&norm, queue, call_reals(call, AT_batch_norm_gamma), NULL, true);
}

/* … also when something is added between. */
void launch_batch_norm_add_relu(const struct call *call, struct queue *queue)
{
    const struct call norm = fusion_call(call, call->op - 2), add = fusion_call(call, call->op - 1);
    const bool first = op_input(call->program, add.op, 0) == op_output(call->program, norm.op, 0);
    run_batch_norm(&norm, queue, call_reals(call, AT_batch_norm_gamma), call_reals(&add, first),
                   true);
}

/* Does this relu end what begins with the batch-norm, and leave its input alone? */
static bool ends_with_relu(const struct choice *choice, const struct op *relu)
{
    const struct program *program = choice->program;
    const struct op *before = relu - 1;
    return !choice_has_16bit(choice, relu) && relu->attr.activate.function == ACTIVATION_RELU &&
           op_input(program, relu, 0) == op_output(program, before, 0) &&
           fusion_passes(program, before) &&
           !fusion_meets(program, op_output(program, relu, 0), op_input(program, choice->op, 0));
}

bool takes_batch_norm_relu(const struct choice *choice)
{
    return ends_with_relu(choice, choice->op + 1);
}

bool takes_batch_norm_add_relu(const struct choice *choice)
{
    const struct program *program = choice->program;
    const struct op *add = choice->op + 1;
    const int32_t y = op_output(program, choice->op, 0);
    return ends_with_relu(choice, add + 1) && fusion_passes(program, choice->op) &&
           (op_input(program, add, 0) == y) != (op_input(program, add, 1) == y);
}

struct norm_fixed {
    const float *x, *gamma, *beta, *mean, *variance;
    float *y;
    float epsilon;
};

template <int WIDE>
static __global__ void __launch_bounds__(THREADS)
    batch_norm_fixed_piece(struct channels channels, struct norm_fixed norm)
{
    const struct channel_piece at(channels, true);
    const int64_t c = at.channel;
    const float scale = norm.gamma[c] / sqrtf(norm.variance[c] + norm.epsilon);
    at.each<WIDE>([&](int64_t index) {
        vector<WIDE> value = *(const vector<WIDE> *)(norm.x + index);
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            value.at[i] = (value.at[i] - norm.mean[c]) * scale + norm.beta[c];
        *(vector<WIDE> *)(norm.y + index) = value;
    });
}

static __global__ void __launch_bounds__(THREADS)
    batch_norm_fixed_lines(struct channels channels, struct norm_fixed norm)
{
    const struct channel_lines at(channels, false);
    float scale[NHWC_VECTOR] = {}, mean[NHWC_VECTOR] = {}, beta[NHWC_VECTOR] = {};
#pragma unroll
    for (int i = 0; i < NHWC_VECTOR && at.channel < channels.channels; i++) {
        const int64_t c = at.channel + i;
        scale[i] = norm.gamma[c] / sqrtf(norm.variance[c] + norm.epsilon);
        mean[i] = norm.mean[c];
        beta[i] = norm.beta[c];
    }
    at.each([&](int64_t index) {
        vector<NHWC_VECTOR> value = *(const vector<NHWC_VECTOR> *)(norm.x + index);
#pragma unroll
        for (int i = 0; i < NHWC_VECTOR; i++)
            value.at[i] = (value.at[i] - mean[i]) * scale[i] + beta[i];
        *(vector<NHWC_VECTOR> *)(norm.y + index) = value;
    });
}

void launch_batch_norm_fixed(const struct call *call, struct queue *queue)
{
    const struct channels channels = channels_of(call);
    const struct norm_fixed norm = {
        call_reals(call, AT_batch_norm_fixed_x),        call_reals(call, AT_batch_norm_fixed_gamma),
        call_reals(call, AT_batch_norm_fixed_beta),     call_reals(call, AT_batch_norm_fixed_mean),
        call_reals(call, AT_batch_norm_fixed_variance), call_reals(call, AT_batch_norm_fixed_y),
        call->op->attr.batch_norm_fixed.epsilon};
    if (channels.nhwc)
        enqueue(queue, batch_norm_fixed_lines, lines_grid(channels), dim3(THREADS), channels, norm);
    else
        enqueue(queue, channels.wide ? batch_norm_fixed_piece<4> : batch_norm_fixed_piece<1>,
                channels_grid(channels), dim3(THREADS), channels, norm);
}

/* dy and dy·x̂ */
struct norm_slopes {
    const float *first, *second; /* dy, x */
    const float *mean, *scale;
    struct fixed {
        float mean, scale;
    };
    __device__ struct fixed of_channel(int64_t channel, int64_t) const
    {
        return {mean[channel], scale[channel]};
    }
    static __device__ struct two of(struct fixed fixed, float dy, float x)
    {
        return {dy, dy * ((x - fixed.mean) * fixed.scale)};
    }
};

struct norm_gradient {
    const float *x, *gamma, *saved_mean, *saved_scale, *dy;
    float *dx, *dgamma, *dbeta; /* dx may be NULL */
    bool accumulate;
};

/* dbeta = Σdy, dgamma = Σdy·x̂, dx = gamma·scale·(dy - dbeta/count - x̂·dgamma/count). */
template <int WIDE>
static __global__ void __launch_bounds__(THREADS)
    batch_norm_grad_piece(struct channels channels, struct norm_gradient norm,
                          const struct two *sums)
{
    const struct channel_piece at(channels, true);
    const int64_t c = at.channel;
    const float count = (float)(channels.n * channels.inner);
    const float mean = norm.saved_mean[c], scale = norm.saved_scale[c];
    const struct two whole = channel_whole(at, sums);
    const float slope = norm.gamma[c] * scale;
    const float dbeta = whole.a / count, dgamma = whole.b / count;
    if (norm.dx)
        at.each<WIDE>([&](int64_t index) {
            const vector<WIDE> x = read_only<WIDE>(norm.x + index);
            vector<WIDE> value = read_only<WIDE>(norm.dy + index);
#pragma unroll
            for (int i = 0; i < WIDE; i++) {
                const float centred = (x.at[i] - mean) * scale;
                value.at[i] = slope * (value.at[i] - dbeta - centred * dgamma);
            }
            *(vector<WIDE> *)(norm.dx + index) = value;
        });
    if (threadIdx.x > 0 || at.piece > 0)
        return;
    norm.dgamma[c] = norm.accumulate ? norm.dgamma[c] + whole.b : whole.b;
    norm.dbeta[c] = norm.accumulate ? norm.dbeta[c] + whole.a : whole.a;
}

static __global__ void __launch_bounds__(THREADS)
    batch_norm_grad_lines(struct channels channels, struct norm_gradient norm,
                          const struct two *wholes)
{
    const struct channel_lines at(channels, true);
    const float count = (float)(channels.n * channels.inner);
    struct {
        float mean, scale, slope, dbeta, dgamma;
    } own[NHWC_VECTOR];
    if (at.channel >= channels.channels)
        return;
#pragma unroll
    for (int i = 0; i < NHWC_VECTOR; i++) {
        const int64_t c = at.channel + i;
        own[i] = {norm.saved_mean[c], norm.saved_scale[c], norm.gamma[c] * norm.saved_scale[c],
                  wholes[c].a / count, wholes[c].b / count};
    }
    if (norm.dx)
        at.each([&](int64_t index) {
            const vector<NHWC_VECTOR> x = read_only<NHWC_VECTOR>(norm.x + index);
            vector<NHWC_VECTOR> value = read_only<NHWC_VECTOR>(norm.dy + index);
#pragma unroll
            for (int i = 0; i < NHWC_VECTOR; i++) {
                const float centred = (x.at[i] - own[i].mean) * own[i].scale;
                value.at[i] = own[i].slope * (value.at[i] - own[i].dbeta - centred * own[i].dgamma);
            }
            *(vector<NHWC_VECTOR> *)(norm.dx + index) = value;
        });
    for (int i = 0; at.line == 0 && blockIdx.y == 0 && i < NHWC_VECTOR; i++) {
        const int64_t c = at.channel + i;
        norm.dgamma[c] = (norm.accumulate ? norm.dgamma[c] : 0.0f) + wholes[c].b;
        norm.dbeta[c] = (norm.accumulate ? norm.dbeta[c] : 0.0f) + wholes[c].a;
    }
}

void launch_batch_norm_grad(const struct call *call, struct queue *queue)
{
    const struct channels channels = channels_of(call);
    struct two *sums = (struct two *)call->workspace;
    const struct norm_gradient norm = {call_reals(call, AT_batch_norm_grad_x),
                                       call_reals(call, AT_batch_norm_grad_gamma),
                                       call_reals(call, AT_batch_norm_grad_saved_mean),
                                       call_reals(call, AT_batch_norm_grad_saved_scale),
                                       call_reals(call, AT_batch_norm_grad_dy),
                                       call_reals(call, AT_batch_norm_grad_dx),
                                       call_reals(call, AT_batch_norm_grad_dgamma),
                                       call_reals(call, AT_batch_norm_grad_dbeta),
                                       call->op->attr.batch_norm_grad.accumulate != 0};
    const struct two *found = sum_channel_pieces(
        queue, channels, norm_slopes{norm.dy, norm.x, norm.saved_mean, norm.saved_scale}, sums);
    if (channels.nhwc)
        enqueue(queue, batch_norm_grad_lines, lines_grid(channels), dim3(THREADS), channels, norm,
                found);
    else
        enqueue(queue, channels.wide ? batch_norm_grad_piece<4> : batch_norm_grad_piece<1>,
                channels_grid(channels), dim3(THREADS), channels, norm, found);
}
