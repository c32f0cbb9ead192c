/* whole_warp.cu: a network whose layers are at most 8 wide, trained or asked by a warp, which has
 * all weights in registers; of a larger batch by a warp for every four samples.
 *
 * A sample is a group of 8 lanes, a lane is a unit of the layer at hand. Each lane has the weights
 * to its unit, for the way up, and those from it, for the way down; what the other lanes of the
 * group found it gets by shuffles. Every group has the same weights. A single sample is computed by
 * all four groups alike, and then each lane updates its own copies: nothing is exchanged. Of a
 * batch each group has a sample; the gradients are added up over the groups of a warp by halving,
 * which leaves a lane with those of two weights, and over warps in shared memory, in order. Every
 * warp does the latter for itself: there is one barrier in a step.
 *
 * The gradient that comes down is already multiplied by the rate, so that an update is one
 * instruction. There is no bandwidth to speak of: a step is a chain of dependent operations, about
 * 100 cycles a layer on the way up and 70 on the way down. */
#include "backend/cuda/whole_lanes.h"

enum { UNITS = 8, GROUPS = 32 / UNITS, WARPS_MOST = WARP_BATCH_MOST / GROUPS };

static __device__ float warp_activation(enum activation function, float x)
{
    return function == ACTIVATION_TANH ? tanhf(x) : whole_activation(function, x);
}

static __device__ float warp_slope(enum activation function, float y)
{
    return function == ACTIVATION_TANH ? 1.0f - y * y : whole_slope(function, y);
}

/* What lanes and warps tell each other, of batches only. */
template <int LAYERS> struct alignas(16) warp_shared {
    struct {
        float by_out[LAYERS][UNITS][UNITS], by_in[LAYERS][UNITS][UNITS];
    } weights[WARPS_MOST]; /* new ones, on their way from who updates them to who uses them */
    struct {
        float2 weights[LAYERS][32];
        float biases[LAYERS][UNITS];
        float lost, hits;
    } found[2][WARPS_MOST]; /* by each warp, in even and in odd steps */
};

/* One lane at work. ALONE: all groups have the same sample. */
template <typename Kind, bool ALONE> struct warp_lane {
    static constexpr int LAYERS = Kind::LAYERS;
    const struct block_net *net;
    struct warp_shared<LAYERS> *shared;
    int unit, first;             /* the first of the two outputs whose weights it updates */
    float by_out[LAYERS][UNITS]; /* weights to the unit, by input */
    float by_in[LAYERS][UNITS];  /* and from it, by output */
    float own[LAYERS][2];        /* of these, those that it updates */
    float bias[LAYERS];
    float x[LAYERS + 1];                  /* the unit's input of every layer; its last output */
    float all[ALONE ? LAYERS : 1][UNITS]; /* of a single sample, the inputs of all units */

    __device__ void begin();
    __device__ void ascend();
    __device__ void descend(float gradient, int64_t step);
    __device__ void update_together(int64_t step);
    __device__ void end() const;
};

/* Units that a layer does not have must be 0 as inputs of the next: then the weights from them stay
 * 0. Of a sigmoid that is what a very negative bias makes. */
template <typename Kind, bool ALONE> __device__ void warp_lane<Kind, ALONE>::begin()
{
    const float nothing = -200.0f;
    first = (int)threadIdx.x % 32 / UNITS * 2;
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        const int in = net->layer[l].in, out = net->layer[l].out;
        const float *w = net->layer[l].w, *b = net->layer[l].b;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            by_out[l][k] = k < in && unit < out ? w[k * out + unit] : 0.0f;
            by_in[l][k] = unit < in && k < out ? w[unit * out + k] : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < 2; k++)
            own[l][k] = unit < in && first + k < out ? w[unit * out + first + k] : 0.0f;
        bias[l] = unit < out                                     ? (b ? b[unit] : 0.0f)
                  : Kind::function(net, l) == ACTIVATION_SIGMOID ? nothing
                                                                 : 0.0f;
    }
}

/* From x[0] to the outputs of all layers. */
template <typename Kind, bool ALONE> __device__ void warp_lane<Kind, ALONE>::ascend()
{
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        float even = bias[l], odd = 0.0f;
#pragma unroll
        for (int k = 0; k < UNITS; k += 2) {
            const float a = __shfl_sync(~0u, x[l], k, UNITS);
            const float b = __shfl_sync(~0u, x[l], k + 1, UNITS);
            even = fmaf(by_out[l][k], a, even);
            odd = fmaf(by_out[l][k + 1], b, odd);
            if constexpr (ALONE) {
                all[l][k] = a;
                all[l][k + 1] = b;
            }
        }
        x[l + 1] = warp_activation(Kind::function(net, l), even + odd);
    }
}

/* The gradient of the last outputs, times the rate, down to the first layer's sums. A single
 * sample's weights are updated on the way. */
template <typename Kind, bool ALONE>
__device__ void warp_lane<Kind, ALONE>::descend(float gradient, int64_t step)
{
#pragma unroll
    for (int l = LAYERS - 1; l >= 0; l--) {
        const float d = gradient * warp_slope(Kind::function(net, l), x[l + 1]);
        float even = 0.0f, odd = 0.0f, change[UNITS];
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            const float dy = __shfl_sync(~0u, d, k, UNITS);
            float &sum = k % 2 ? odd : even;
            sum = fmaf(by_in[l][k], dy, sum);
            if constexpr (ALONE) {
                by_in[l][k] = fmaf(-x[l], dy, by_in[l][k]);
                by_out[l][k] = fmaf(-all[l][k], d, by_out[l][k]);
            } else {
                change[k] = x[l] * dy;
            }
        }
        gradient = even + odd;
        if constexpr (ALONE) {
            bias[l] = net->layer[l].b ? bias[l] - d : bias[l];
        } else {
            auto &found = shared->found[step % 2][threadIdx.x / 32];
            float sum = d + __shfl_xor_sync(~0u, d, 16);
            sum += __shfl_xor_sync(~0u, sum, 8);
            lanes_halve<4>(change, 16);
            lanes_halve<2>(change, 8);
            found.weights[l][threadIdx.x % 32] = make_float2(change[0], change[1]);
            if (threadIdx.x % 32 < UNITS)
                found.biases[l][unit] = sum;
        }
    }
}

/* After the barrier, each warp for itself. */
template <typename Kind, bool ALONE>
__device__ void warp_lane<Kind, ALONE>::update_together(int64_t step)
{
    const int warps = (int)blockDim.x / 32, lane = (int)threadIdx.x % 32;
    const auto *found = shared->found[step % 2];
    auto &weights = shared->weights[threadIdx.x / 32];
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        float2 change = found[0].weights[l][lane];
        float sum = found[0].biases[l][unit];
#pragma unroll
        for (int w = 1; w < WARPS_MOST; w++)
            if (w < warps) {
                change.x += found[w].weights[l][lane].x;
                change.y += found[w].weights[l][lane].y;
                sum += found[w].biases[l][unit];
            }
        own[l][0] -= change.x;
        own[l][1] -= change.y;
        bias[l] = net->layer[l].b ? bias[l] - sum : bias[l];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            weights.by_in[l][unit][first + k] = own[l][k];
            weights.by_out[l][first + k][unit] = own[l][k];
        }
    }
    __syncwarp();
#pragma unroll
    for (int l = 0; l < LAYERS; l++)
#pragma unroll
        for (int k = 0; k < UNITS; k += 4) {
            *(float4 *)&by_out[l][k] = *(const float4 *)&weights.by_out[l][unit][k];
            *(float4 *)&by_in[l][k] = *(const float4 *)&weights.by_in[l][unit][k];
        }
}

/* Back to where they lie; all groups have the same. */
template <typename Kind, bool ALONE> __device__ void warp_lane<Kind, ALONE>::end() const
{
    if (threadIdx.x >= UNITS)
        return;
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        const int in = net->layer[l].in, out = net->layer[l].out;
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            if (unit < in && k < out)
                net->layer[l].w[unit * out + k] = by_in[l][k];
        if (net->layer[l].b && unit < out)
            net->layer[l].b[unit] = bias[l];
    }
}

/* Adds up what the step lost and hit; to thread 0. Of a batch a barrier is in it. */
template <typename Kind, bool ALONE>
static __device__ void warp_report(struct warp_shared<Kind::LAYERS> *shared, int64_t step,
                                   float *lost, float *hits)
{
    if constexpr (!ALONE) {
        auto *found = shared->found[step % 2];
        if (threadIdx.x % 32 == 0) {
            found[threadIdx.x / 32].lost = *lost;
            found[threadIdx.x / 32].hits = *hits;
        }
        __syncthreads();
        for (unsigned w = 1; threadIdx.x == 0 && w < blockDim.x / 32; w++) {
            *lost += found[w].lost;
            *hits += found[w].hits;
        }
    }
}

template <typename Kind, bool ALONE>
static __global__ void __launch_bounds__(ALONE ? 32 : 32 * WARPS_MOST)
    whole_warp(const __grid_constant__ struct block_net net, int64_t steps)
{
    __shared__ struct warp_shared<Kind::LAYERS> shared;
    const struct whole_step &step = net.step;
    const int out = net.layer[Kind::LAYERS - 1].out;
    const int n = ALONE ? 0 : (int)threadIdx.x / UNITS;
    const bool there = n < step.batch;
    const struct source source(&step);
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    uint32_t *answers = step.y ? step.y->data : NULL;
    const int32_t updates = step.count ? *step.count : 0;
    const bool rate_is_fixed = !step.count || whole_rate_is_fixed(&step);
    float rate = step.count ? whole_rate(&step, updates) : 0.0f;
    uint32_t place = (uint32_t)((step.feed->place + (uint64_t)n) % source.samples);
    struct warp_lane<Kind, ALONE> lane;

    lane.net = &net;
    lane.shared = &shared;
    lane.unit = (int)threadIdx.x % UNITS;
    lane.begin();
    struct sample now = fetch<UNITS>(&net, &source, source.row(place), there);
    place = source.after(place);
    uint32_t next_row = source.row(place);
    for (int64_t done = 0; done < steps; done++) {
        const struct sample next = fetch<UNITS>(&net, &source, next_row, there);
        place = source.after(place);
        next_row = source.row(place);

        lane.x[0] = now.x;
        lane.ascend();
        const float y = lane.x[Kind::LAYERS];
        if (answers && there && lane.unit < out && (!ALONE || threadIdx.x < UNITS)) {
            answers[(uint64_t)now.row * (unsigned)out + (unsigned)lane.unit] = __float_as_uint(y);
            step.y->written[now.row] = 1;
        }
        if (step.loss_kind != OP_COUNT) {
            const struct judged judged = judge<UNITS>(&step, there ? out : 0, y, now.target);
            float lost, hits;
            if (!rate_is_fixed)
                rate = whole_rate(&step, updates + (int32_t)done);
            if (step.count) { /* sums and the way down side by side */
                lost = group_sum < ALONE ? UNITS : 32 > (judged.loss);
                hits = group_sum < ALONE ? UNITS : 32 > (judged.right);
                lane.descend(rate * judged.gradient, done);
            } else {
                lost = group_sum < ALONE ? UNITS : 32 > (judged.loss);
                hits = group_sum < ALONE ? UNITS : 32 > (judged.right);
            }
            warp_report<Kind, ALONE>(&shared, done, &lost, &hits);
            if (!ALONE && step.count)
                lane.update_together(done);
            if (threadIdx.x == 0) {
                ring_put(&loss, lost);
                ring_put(&right, hits);
            }
        }
        now = next;
    }
    if (step.count)
        lane.end();
    if (threadIdx.x == 0)
        whole_end(&step, steps);
}

template <int LAYERS, int HIDDEN, int LAST> static void *warp_kernel_at(int32_t batch)
{
    using Kind = block_kind<UNITS, LAYERS, HIDDEN, LAST>;
    return batch == 1 ? (void *)whole_warp<Kind, true> : (void *)whole_warp<Kind, false>;
}

/* As warp_takes has them. */
template <int LAYERS>
static void *warp_kernel_of(enum activation hidden, enum activation last, int32_t batch)
{
    enum { SIGMOID = ACTIVATION_SIGMOID, NONE = ACTIVATION_NONE };
    if (last == ACTIVATION_SIGMOID)
        return warp_kernel_at<LAYERS, SIGMOID, SIGMOID>(batch);
    switch (hidden) {
    case ACTIVATION_SIGMOID: return warp_kernel_at<LAYERS, SIGMOID, NONE>(batch);
    case ACTIVATION_TANH: return warp_kernel_at<LAYERS, ACTIVATION_TANH, NONE>(batch);
    default: return warp_kernel_at<LAYERS, ACTIVATION_RELU, NONE>(batch);
    }
}

cudaError_t warp_launch(struct whole *whole, int64_t steps, cudaStream_t stream)
{
    struct block_net *net = (struct block_net *)whole->net;
    const int32_t layers = net->step.layers, batch = net->step.batch;
    const enum activation hidden = net->layer[0].function, last = net->layer[layers - 1].function;
    void *arguments[] = {net, &steps};
    void *kernel = layers == 2   ? warp_kernel_of<2>(hidden, last, batch)
                   : layers == 3 ? warp_kernel_of<3>(hidden, last, batch)
                                 : warp_kernel_of<4>(hidden, last, batch);
    const unsigned warps = (unsigned)(batch + GROUPS - 1) / GROUPS;
    return cudaLaunchKernel(kernel, dim3(1), dim3(32 * warps), arguments, 0, stream);
}
