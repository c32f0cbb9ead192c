/* stack_warp.cu: a network whose layers are at most 8 wide, trained or asked by one warp, a sample
 * at a time, all weights in registers.
 *
 * A lane is a unit of the layer at hand. It has the weights to its unit, for the forward pass, and
 * those from it, for the backward pass; what the other lanes found it gets by shuffles. The four
 * groups of 8 lanes all compute the same. Each lane updates its own copies, so nothing else is
 * exchanged.
 *
 * The gradient that comes down is already multiplied by the rate, so that an update is one
 * instruction. There is no bandwidth to speak of: a step is a chain of dependent operations. What a
 * step lost is kept by one lane, and written when each lane has something to write. */
#include "backend/cuda/stack/stack_lanes.h"

enum { UNITS = 8 };

template <typename Kind> struct warp_lane {
    static constexpr int LAYERS = Kind::LAYERS;
    const struct block_net *net;
    int unit;
    float by_out[LAYERS][UNITS]; /* weights to the unit, by input */
    float by_in[LAYERS][UNITS];  /* and from it, by output */
    float bias[LAYERS];
    float x[LAYERS][UNITS]; /* inputs of every layer */
    float y[LAYERS];        /* the unit's outputs */

    __device__ void begin();
    __device__ float forward(float own);
    __device__ void backward(float own, float gradient);
    __device__ void end() const;
};

/* Units that a layer does not have must be 0 as inputs of the next: then the weights from them stay
 * 0. Of a sigmoid that is what a very negative bias makes. */
template <typename Kind> __device__ void warp_lane<Kind>::begin()
{
    const float nothing = -200.0f;
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        const int in = net->layer[l].in, out = net->layer[l].out;
        const float *w = net->layer[l].w, *b = net->layer[l].b;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            by_out[l][k] = k < in && unit < out ? w[k * out + unit] : 0.0f;
            by_in[l][k] = unit < in && k < out ? w[unit * out + k] : 0.0f;
        }
        bias[l] = unit < out                                     ? (b ? b[unit] : 0.0f)
                  : Kind::function(net, l) == ACTIVATION_SIGMOID ? nothing
                                                                 : 0.0f;
    }
}

/* From the unit's own input to its last output. */
template <typename Kind> __device__ float warp_lane<Kind>::forward(float own)
{
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        float even = bias[l], odd = 0.0f;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            x[l][k] = __shfl_sync(~0u, own, k, UNITS);
            float &sum = k % 2 ? odd : even;
            sum = fmaf(by_out[l][k], x[l][k], sum);
        }
        own = y[l] = warp_activation(Kind::function(net, l), even + odd);
    }
    return own;
}

/* The gradient of the last outputs, times the rate, down to the first layer; weights are updated on
 * the way. */
template <typename Kind> __device__ void warp_lane<Kind>::backward(float own, float gradient)
{
#pragma unroll
    for (int l = LAYERS - 1; l >= 0; l--) {
        const float d = gradient * warp_derivative(Kind::function(net, l), y[l]);
        const float input = l ? y[l - 1] : own;
        float even = 0.0f, odd = 0.0f;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            const float dy = __shfl_sync(~0u, d, k, UNITS);
            float &sum = k % 2 ? odd : even;
            sum = fmaf(by_in[l][k], dy, sum);
            by_in[l][k] = fmaf(-input, dy, by_in[l][k]);
            by_out[l][k] = fmaf(-x[l][k], d, by_out[l][k]);
        }
        gradient = even + odd;
        bias[l] = net->layer[l].b ? bias[l] - d : bias[l];
    }
}

/* Back to where they lie. */
template <typename Kind> __device__ void warp_lane<Kind>::end() const
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

/* The values of so many steps, each with the lane of its number. Of a ring that is shorter the last
 * ones stay. */
static __device__ void ring_put_lanes(struct ring *ring, float value, uint32_t count)
{
    const uint32_t lane = threadIdx.x;
    if (!ring->data)
        return;
    if (lane < count && count - lane <= ring->rows) {
        const uint32_t at = (ring->at + lane) % ring->rows;
        ring->data[at] = __float_as_uint(value);
        ring->written[at] = 1;
    }
    ring->at = (ring->at + count) % ring->rows;
}

template <typename Kind>
static __global__ void __launch_bounds__(32)
    stack_warp(const __grid_constant__ struct block_net net, int64_t steps)
{
    const struct stack_step &step = net.step;
    const int out = net.layer[Kind::LAYERS - 1].out;
    const struct source source(&net, (int)threadIdx.x % UNITS, true);
    const bool plainly = judges_plainly(&step);
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    uint32_t *answers = step.y ? step.y->data : NULL;
    const int32_t updates = step.count ? *step.count : 0;
    const bool rate_is_fixed = !step.count || stack_rate_is_fixed(&step);
    float rate = step.count ? stack_rate(&step, updates) : 0.0f, lost = 0.0f, hits = 0.0f;
    uint32_t place = (uint32_t)(step.feed->place % source.samples);
    struct warp_lane<Kind> lane;

    lane.net = &net;
    lane.unit = (int)threadIdx.x % UNITS;
    lane.begin();
    struct sample now = source.fetch(source.row(place));
    place = source.after(place);
    uint32_t next_row = source.row(place);
    for (int32_t done = 0; done < (int32_t)steps; done++) {
        const struct sample next = source.fetch(next_row);
        place = source.after(place);
        next_row = source.row(place);

        const float y = lane.forward(now.x);
        if (answers && (int)threadIdx.x < out) {
            answers[(uint64_t)now.row * (unsigned)out + threadIdx.x] = __float_as_uint(y);
            step.y->written[now.row] = 1;
        }
        if (step.loss_kind != OP_COUNT) {
            const struct judged judged = judge<UNITS>(&step, plainly, out, y, now.target);
            const float sum = group_sum<UNITS>(judged.loss), hit = group_sum<UNITS>(judged.right);
            const uint32_t kept = (uint32_t)done % 32;
            if (!rate_is_fixed)
                rate = stack_rate(&step, updates + done);
            if (step.count)
                lane.backward(now.x, rate * judged.gradient);
            lost = threadIdx.x == kept ? sum : lost;
            hits = threadIdx.x == kept ? hit : hits;
            if (kept == 31 || done == (int32_t)steps - 1) {
                ring_put_lanes(&loss, lost, kept + 1);
                ring_put_lanes(&right, hits, kept + 1);
            }
        }
        now = next;
    }
    if (step.count)
        lane.end();
    if (threadIdx.x == 0)
        stack_end(&step, steps);
}

struct warp_kernels {
    template <int LAYERS, int HIDDEN, int LAST> static void *kernel()
    {
        return (void *)stack_warp<block_kind<UNITS, LAYERS, HIDDEN, LAST>>;
    }
};

static cudaError_t launch(struct stack *stack, int64_t steps, cudaStream_t stream)
{
    struct block_net *net = (struct block_net *)stack->net;
    void *arguments[] = {net, &steps};
    void *kernel = usual_kernel<warp_kernels>(net->layer, net->step.layers);
    return cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 0, stream);
}

const struct stack_kernel steps_by_warp = {NULL, block_prepare, launch};
