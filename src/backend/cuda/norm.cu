/* norm.cu: batch-norm over all but the channel: sums of pieces of a channel, then a second pass by
 * the same pieces (channel.h); layer-norm, one block a row; local response normalisation, one
 * thread an element. */
#include "backend/cuda/channel.h"
#include "backend/cuda/families.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/merge.h"

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
    struct norm_channel own[LAST_WIDE];
    if (at.channel >= channels.channels)
        return;
#pragma unroll
    for (int i = 0; i < LAST_WIDE; i++)
        own[i].take(norm, at.channel + i, norm.x[at.channel + i], count, wholes[at.channel + i]);
    at.each([&](int64_t index) {
        vector<LAST_WIDE> value = read_only<LAST_WIDE>(norm.x + index);
#pragma unroll
        for (int i = 0; i < LAST_WIDE; i++)
            value.at[i] = (value.at[i] - own[i].mean) * own[i].slope + own[i].beta;
        norm.put<LAST_WIDE>(index, value);
    });
#pragma unroll
    for (int i = 0; i < LAST_WIDE; i++)
        if (at.line == 0 && blockIdx.y == 0)
            own[i].keep(norm, at.channel + i, count);
}

static void run_batch_norm(const struct call *call, struct queue *queue, float *y, const float *add,
                           bool rectified)
{
    const struct channels channels = channels_of(call);
    struct two *sums = (struct two *)call->workspace;
    const struct norm_training norm = {call_reals(call, 0),
                                       call_reals(call, 1),
                                       call_reals(call, 2),
                                       y,
                                       call_reals(call, 6),
                                       call_reals(call, 7),
                                       call_reals(call, 8),
                                       call_reals(call, 9),
                                       call->op->attr.batch_norm.epsilon,
                                       call->op->attr.batch_norm.momentum,
                                       add,
                                       rectified};
    const struct two *found = sum_channel_pieces(queue, channels, norm_moments{norm.x, NULL}, sums);
    if (channels.last)
        enqueue(queue, batch_norm_lines, lines_grid(channels), dim3(THREADS), channels, norm,
                found);
    else
        enqueue(queue, channels.wide ? batch_norm_piece<4> : batch_norm_piece<1>,
                channels_grid(channels), dim3(THREADS), channels, norm, found);
}

void launch_batch_norm(const struct call *call, struct queue *queue)
{
    run_batch_norm(call, queue, call_reals(call, 5), NULL, false);
}

/* The op is a relu, or before that an add: the batch-norm before it does it. */
static void launch_norm_relu(const struct call *call, struct queue *queue)
{
    const struct call norm = merge_call(call, call->op - 1);
    run_batch_norm(&norm, queue, call_reals(call, 1), NULL, true);
}

static void launch_norm_add_relu(const struct call *call, struct queue *queue)
{
    const struct call norm = merge_call(call, call->op - 2), add = merge_call(call, call->op - 1);
    const bool first = op_input(call->program, add.op, 0) == op_output(call->program, norm.op, 0);
    run_batch_norm(&norm, queue, call_reals(call, 1), call_reals(&add, first), true);
}

/* A batch-norm and the relu after it, also when something is added between. */
void norm_merge(struct plan *plan, int32_t o)
{
    static const struct kernel both = {
        OP_activate, "batch_norm_relu_f32_cuda", launch_norm_relu, workspace_channels, NULL, 0,
        false};
    static const struct kernel all = {OP_activate,
                                      "batch_norm_add_relu_f32_cuda",
                                      launch_norm_add_relu,
                                      workspace_channels,
                                      NULL,
                                      0,
                                      false};
    const struct program *program = plan->program;
    const struct op *relu = &program->ops[o], *before = relu - 1;
    if (relu->kind != OP_activate || relu->attr.activate.function != ACTIVATION_RELU ||
        op_input(program, relu, 0) != op_output(program, before, 0) ||
        !merge_passes(program, before))
        return;
    const bool adds = before->kind == OP_add && o > 1;
    const struct op *norm = adds ? before - 1 : before;
    if (norm->kind != OP_batch_norm || (adds && !merge_passes(program, norm)) ||
        merge_meets(program, op_output(program, relu, 0), op_input(program, norm, 0)))
        return;
    const int32_t y = op_output(program, norm, 0);
    if (adds && (op_input(program, before, 0) == y) == (op_input(program, before, 1) == y))
        return;
    for (int32_t left = (int32_t)(norm - program->ops); left < o; left++)
        merge_leave(plan, left);
    plan->kernels[o] = adds ? &all : &both;
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
    float scale[LAST_WIDE] = {}, mean[LAST_WIDE] = {}, beta[LAST_WIDE] = {};
#pragma unroll
    for (int i = 0; i < LAST_WIDE && at.channel < channels.channels; i++) {
        const int64_t c = at.channel + i;
        scale[i] = norm.gamma[c] / sqrtf(norm.variance[c] + norm.epsilon);
        mean[i] = norm.mean[c];
        beta[i] = norm.beta[c];
    }
    at.each([&](int64_t index) {
        vector<LAST_WIDE> value = *(const vector<LAST_WIDE> *)(norm.x + index);
#pragma unroll
        for (int i = 0; i < LAST_WIDE; i++)
            value.at[i] = (value.at[i] - mean[i]) * scale[i] + beta[i];
        *(vector<LAST_WIDE> *)(norm.y + index) = value;
    });
}

void launch_batch_norm_fixed(const struct call *call, struct queue *queue)
{
    const struct channels channels = channels_of(call);
    const struct norm_fixed norm = {call_reals(call, 0),
                                    call_reals(call, 1),
                                    call_reals(call, 2),
                                    call_reals(call, 3),
                                    call_reals(call, 4),
                                    call_reals(call, 5),
                                    call->op->attr.batch_norm_fixed.epsilon};
    if (channels.last)
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
    } own[LAST_WIDE];
    if (at.channel >= channels.channels)
        return;
#pragma unroll
    for (int i = 0; i < LAST_WIDE; i++) {
        const int64_t c = at.channel + i;
        own[i] = {norm.saved_mean[c], norm.saved_scale[c], norm.gamma[c] * norm.saved_scale[c],
                  wholes[c].a / count, wholes[c].b / count};
    }
    if (norm.dx)
        at.each([&](int64_t index) {
            const vector<LAST_WIDE> x = read_only<LAST_WIDE>(norm.x + index);
            vector<LAST_WIDE> value = read_only<LAST_WIDE>(norm.dy + index);
#pragma unroll
            for (int i = 0; i < LAST_WIDE; i++) {
                const float centred = (x.at[i] - own[i].mean) * own[i].scale;
                value.at[i] = own[i].slope * (value.at[i] - own[i].dbeta - centred * own[i].dgamma);
            }
            *(vector<LAST_WIDE> *)(norm.dx + index) = value;
        });
    for (int i = 0; at.line == 0 && blockIdx.y == 0 && i < LAST_WIDE; i++) {
        const int64_t c = at.channel + i;
        norm.dgamma[c] = (norm.accumulate ? norm.dgamma[c] : 0.0f) + wholes[c].b;
        norm.dbeta[c] = (norm.accumulate ? norm.dbeta[c] : 0.0f) + wholes[c].a;
    }
}

void launch_batch_norm_grad(const struct call *call, struct queue *queue)
{
    const struct channels channels = channels_of(call);
    struct two *sums = (struct two *)call->workspace;
    const struct norm_gradient norm = {
        call_reals(call, 0), call_reals(call, 1), call_reals(call, 2),
        call_reals(call, 3), call_reals(call, 4), call_reals(call, 5),
        call_reals(call, 6), call_reals(call, 7), call->op->attr.batch_norm_grad.accumulate != 0};
    const struct two *found = sum_channel_pieces(
        queue, channels, norm_slopes{norm.dy, norm.x, norm.saved_mean, norm.saved_scale}, sums);
    if (channels.last)
        enqueue(queue, batch_norm_grad_lines, lines_grid(channels), dim3(THREADS), channels, norm,
                found);
    else
        enqueue(queue, channels.wide ? batch_norm_grad_piece<4> : batch_norm_grad_piece<1>,
                channels_grid(channels), dim3(THREADS), channels, norm, found);
}

/* The rows of a layer-norm are WIDE threads' work each, a warp's or a block's. */
enum { ROW_WARP = 32, ROW_LONG = 1024 }; /* from here on elements are worth a block */

template <int WIDE> static __device__ float row_sum(float value)
{
    if constexpr (WIDE == THREADS) {
        return block_sum(value);
    } else {
        for (int half = WIDE / 2; half > 0; half /= 2)
            value += __shfl_xor_sync(UINT32_MAX, value, half);
        return value;
    }
}

static unsigned row_blocks(int64_t n, int64_t k)
{
    return k < ROW_LONG ? blocks_for(n, THREADS / ROW_WARP) : (unsigned)n;
}

template <int WIDE>
static __global__ void __launch_bounds__(THREADS)
    layer_norm_row(int64_t n, int64_t k, const float *x, const float *gamma, const float *beta,
                   float epsilon, float *y, float *saved_mean, float *saved_scale)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WIDE;
    const int64_t from = threadIdx.x % WIDE;
    if (row >= n)
        return;
    x += row * k;
    y += row * k;
    float sum = 0.0f, squares = 0.0f;
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE)
        sum += x[j];
    const float mean = row_sum<WIDE>(sum) / (float)k;
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE) {
        float difference = x[j] - mean;
        squares += difference * difference;
    }
    const float scale = 1.0f / sqrtf(row_sum<WIDE>(squares) / (float)k + epsilon);
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE)
        y[j] = (x[j] - mean) * scale * gamma[j] + beta[j];
    if (from > 0)
        return;
    saved_mean[row] = mean;
    saved_scale[row] = scale;
}

void launch_layer_norm(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), k = call_dim(call, 0, 1);
    enqueue(queue, k < ROW_LONG ? layer_norm_row<ROW_WARP> : layer_norm_row<THREADS>,
            dim3(row_blocks(n, k)), dim3(THREADS), n, k, (const float *)call_reals(call, 0),
            (const float *)call_reals(call, 1), (const float *)call_reals(call, 2),
            call->op->attr.layer_norm.epsilon, call_reals(call, 3), call_reals(call, 4),
            call_reals(call, 5));
}

/* What a layer-norm was given and kept; its rows have k elements. */
struct layer_saved {
    const float *x, *gamma, *mean, *scale, *dy;
    int64_t n, k;
    __device__ float centred(int64_t row, int64_t j) const
    {
        return (x[row * k + j] - mean[row]) * scale[row];
    }
};

/* With g = dy·gamma: dx = scale·(g - Σg/k - x̂·Σ(g·x̂)/k). */
template <int WIDE>
static __global__ void __launch_bounds__(THREADS)
    layer_norm_grad_row(struct layer_saved saved, float *dx)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WIDE;
    const int64_t from = threadIdx.x % WIDE, k = saved.k;
    if (row >= saved.n)
        return;
    const float *dy = saved.dy + row * k;
    float sum = 0.0f, sum_centred = 0.0f;
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE) {
        float g = dy[j] * saved.gamma[j];
        sum += g;
        sum_centred += g * saved.centred(row, j);
    }
    sum = row_sum<WIDE>(sum);
    sum_centred = row_sum<WIDE>(sum_centred);
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE) {
        float g = dy[j] * saved.gamma[j];
        float common = (sum + saved.centred(row, j) * sum_centred) / (float)k;
        dx[row * k + j] = saved.scale[row] * (g - common);
    }
}

/* Sums over a chunk of rows for dgamma, dy·x̂, and for dbeta, dy: [chunk][2][k]. Threads have
 * columns and lines as in sum_rows. */
static __global__ void __launch_bounds__(SUM_COLS *SUM_LINES)
    layer_norm_chunk(struct layer_saved saved, int64_t chunk_rows, float *sums)
{
    __shared__ float partial[2][SUM_LINES][SUM_COLS];
    const int line = (int)threadIdx.y, lane = (int)threadIdx.x;
    const int64_t col = (int64_t)blockIdx.x * SUM_COLS + lane, k = saved.k;
    const int64_t from = blockIdx.y * chunk_rows, to = min(from + chunk_rows, saved.n);
    float gamma = 0.0f, beta = 0.0f;
    if (col < k)
#pragma unroll 4
        for (int64_t row = from + line; row < to; row += SUM_LINES) {
            const float dy = saved.dy[row * k + col];
            gamma += dy * saved.centred(row, col);
            beta += dy;
        }
    partial[0][line][lane] = gamma;
    partial[1][line][lane] = beta;
    __syncthreads();
    if (line > 1 || col >= k)
        return;
    float sum = 0.0f; /* now a line is one of both */
    for (int other = 0; other < SUM_LINES; other++)
        sum += partial[line][other][lane];
    sums[(blockIdx.y * 2 + line) * k + col] = sum;
}

struct to_gamma_and_beta {
    struct to_gradient dgamma, dbeta;
    int64_t k;
    __device__ void put(int64_t, int64_t col, float sum) const
    {
        if (col < k)
            dgamma.put(0, col, sum);
        else
            dbeta.put(0, col - k, sum);
    }
};

uint64_t workspace_layer_norm_grad(const struct program *program, const struct op *op)
{
    return sum_rows_bytes(2 * program->tensors[op_input(program, op, 0)].shape.dim[1]);
}

void launch_layer_norm_grad(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), k = call_dim(call, 0, 1);
    const bool accumulate = call->op->attr.layer_norm_grad.accumulate != 0;
    const struct layer_saved saved = {call_reals(call, 0),
                                      call_reals(call, 1),
                                      call_reals(call, 2),
                                      call_reals(call, 3),
                                      call_reals(call, 4),
                                      n,
                                      k};
    const int64_t chunk_rows = max((n + SUM_CHUNKS - 1) / SUM_CHUNKS, (int64_t)SUM_CHUNK_ROWS);
    const unsigned chunks = blocks_for(n, chunk_rows);
    float *sums = (float *)call->workspace;
    if (call_has(call, 5))
        enqueue(queue, k < ROW_LONG ? layer_norm_grad_row<ROW_WARP> : layer_norm_grad_row<THREADS>,
                dim3(row_blocks(n, k)), dim3(THREADS), saved, call_reals(call, 5));
    enqueue(queue, layer_norm_chunk, dim3(blocks_for(k, SUM_COLS), chunks),
            dim3(SUM_COLS, SUM_LINES), saved, chunk_rows, sums);
    sum_rows(queue, (int64_t)chunks, 2 * k, reduce_value{sums},
             to_gamma_and_beta{{call_reals(call, 6), 0, 1.0f, accumulate},
                               {call_reals(call, 7), 0, 1.0f, accumulate},
                               k});
}

/* An lrn over x[n, channels, inner]: channel c takes `before` channels before it and `after` behind
 * it into account; in the gradient it is the other way round. */
struct response {
    int64_t channels, inner, before, after;
    float alpha_share, beta, k; /* alpha_share: alpha / size */
    __device__ int64_t channel(int64_t index) const
    {
        return index / inner % channels;
    }
    /* Elements from first to last, both included, `inner` apart. */
    __device__ int64_t first(int64_t index) const
    {
        const int64_t c = channel(index);
        return index - (c < before ? c : before) * inner;
    }
    __device__ int64_t last(int64_t index) const
    {
        const int64_t behind = channels - 1 - channel(index);
        return index + (behind < after ? behind : after) * inner;
    }
};

/* base = k + alpha/size · Σx², y = x · base^-beta */
static __global__ void lrn_each(int64_t count, struct response response, const float *x, float *y,
                                float *base)
{
    FOR_EACH(index, count)
    {
        const int64_t last = response.last(index);
        float sum = 0.0f;
        for (int64_t m = response.first(index); m <= last; m += response.inner)
            sum += x[m] * x[m];
        const float b = response.k + response.alpha_share * sum;
        y[index] = x[index] * powf(b, -response.beta);
        if (base)
            base[index] = b;
    }
}

void launch_lrn(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.lrn;
    const struct channels channels = channels_of(call);
    const struct response response = {channels.channels,
                                      channels.inner,
                                      attr.size / 2,
                                      (attr.size - 1) / 2,
                                      attr.alpha / (float)attr.size,
                                      attr.beta,
                                      attr.k};
    const int64_t count = call_count(call, 0);
    enqueue(queue, lrn_each, dim3(blocks_striding(count)), dim3(THREADS), count, response,
            (const float *)call_reals(call, 0), call_reals(call, 1), call_reals(call, 2));
}

/* dx = dy·base^-beta - 2·alpha·beta/size · x · Σ dy·x·base^(-beta-1), over the channels that took
 * this one into account */
static __global__ void lrn_grad_each(int64_t count, struct response response, const float *x,
                                     const float *base, const float *dy, float *dx)
{
    FOR_EACH(index, count)
    {
        const int64_t last = response.last(index);
        float sum = 0.0f;
        for (int64_t m = response.first(index); m <= last; m += response.inner)
            sum += dy[m] * x[m] * powf(base[m], -response.beta - 1.0f);
        dx[index] = dy[index] * powf(base[index], -response.beta) -
                    2.0f * response.alpha_share * response.beta * x[index] * sum;
    }
}

void launch_lrn_grad(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.lrn_grad;
    const struct channels channels = channels_of(call);
    const struct response response = {channels.channels,
                                      channels.inner,
                                      (attr.size - 1) / 2,
                                      attr.size / 2,
                                      attr.alpha / (float)attr.size,
                                      attr.beta,
                                      attr.k};
    const int64_t count = call_count(call, 0);
    enqueue(queue, lrn_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count, response,
            (const float *)call_reals(call, 0), (const float *)call_reals(call, 1),
            (const float *)call_reals(call, 2), call_reals(call, 3));
}
