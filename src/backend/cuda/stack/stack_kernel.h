/* stack_kernel.h: programs that one kernel runs whole: stacks of dense layers
 * (core/pass/stack_find.h), many steps in a launch, the data resident.
 *
 * There are kernels for what fits one multiprocessor (stack_warp.cu, stack_four_warps.cu,
 * stack_block.cu), for many samples of that (stack_replicas.cu) and for wide layers
 * (stack_grid.cu). stack_choice.cu says which takes what; this file is
 * what they share on the device. */
#ifndef PRONY_BACKEND_CUDA_STACK_KERNEL_H
#define PRONY_BACKEND_CUDA_STACK_KERNEL_H

#include "backend/cuda/device/activation.h"
#include "backend/cuda/device/host_device.h"
#include "backend/cuda/device/launch.h"
#include "backend/cuda/stack/stack_block_layout.h"
#include "backend/cuda/stack/stack_grid_layout.h"
#include "backend/cuda/stack/stack_replicas_layout.h"
#include "core/schedule.h"

/* What is not about layers: where a step's data come from and what becomes of its results. Views
 * are those of the plan; NULL where the program has no such op. */
struct stack_step {
    int32_t batch, layers;
    struct feed *feed;
    const struct feed_view *x, *target;
    struct feed_view *y, *loss, *right;
    struct control *control;
    int32_t *count;                     /* updates done; NULL: inference */
    enum op_kind loss_kind, right_kind; /* OP_COUNT: none; what is right of a binary loss is counted
                                           with it, on the probability */
    float gradient;                     /* factor of the loss's gradient */
    float share;                        /* of one element, or of one label, in the loss */
    float half;                         /* of the distance between two levels; 0: none is right */
    int32_t schedule_kind, warmup, period;
    float schedule_factor, schedule_scale;
};

/* The rate of update number `count`, as launch_schedule has it. */
static __device__ __noinline__ float stack_rate(const struct stack_step *step, int32_t count)
{
    double factor = schedule_factor(step->schedule_kind, step->warmup, step->period,
                                    (double)step->schedule_factor, count);
    return (float)(step->control->rate * (double)step->schedule_scale * factor);
}

static inline __device__ bool stack_rate_is_fixed(const struct stack_step *step)
{
    return step->schedule_kind == SCHEDULE_CONSTANT && step->warmup == 0;
}

/* The row of the data that is sample number `sample` (already within the samples). */
static inline __device__ uint32_t stack_row(const struct feed *feed, uint64_t sample)
{
    return feed->order ? __ldg(&feed->order[sample]) : (uint32_t)sample;
}

/* The place `ahead` samples behind `place`, wrapped; `ahead` is less than the samples. */
static inline __device__ uint64_t stack_move(uint64_t place, uint64_t ahead, uint64_t samples)
{
    place += ahead;
    return place >= samples ? place - samples : place;
}

/* The functions that are seldom asked for are called, not repeated: a step's code should fit the
 * caches for instructions. */
static __device__ __noinline__ float other_activation(enum activation function, float x)
{
    return activation_value(function, x);
}

static __device__ __noinline__ float other_slope(enum activation function, float y)
{
    return activation_derivative(function, 0.0f, y);
}

/* 1/(1 + e^-x) by the special-function unit, which is what a chain of dependent layers waits for:
 * about 4 units in the last place. Numbers too small to be normal are 0, which saves looking for
 * them on both ways into that unit: 1 + e^-x is none, and an output of 10⁻³⁸ is as good as 0. */
static inline __device__ float stack_sigmoid(float x)
{
    const float minus_log2_e = -1.44269504088896340736f;
    float power, y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(minus_log2_e * x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.0f + power));
    return y;
}

static inline __device__ float stack_activation(enum activation function, float x)
{
    if (function == ACTIVATION_SIGMOID)
        return stack_sigmoid(x);
    if (function == ACTIVATION_RELU)
        return relu(x);
    return function == ACTIVATION_NONE ? x : other_activation(function, x);
}

/* As activation_derivative, the likeliest functions first. */
static inline __device__ float stack_derivative(enum activation function, float y)
{
    if (function == ACTIVATION_SIGMOID)
        return y * (1.0f - y);
    if (function == ACTIVATION_RELU)
        return y > 0.0f ? 1.0f : 0.0f;
    return function == ACTIVATION_NONE ? 1.0f : other_slope(function, y);
}

/* One level of a sum over lanes: of two halves, each lane keeps one and adds its partner's, whose
 * lane number differs in `bit`. */
template <int H, int V> static __device__ void lanes_halve(float (&values)[V], int bit)
{
    const bool upper = threadIdx.x & (unsigned)bit;
#pragma unroll
    for (int k = 0; k < H; k++) {
        const float other = __shfl_xor_sync(~0u, upper ? values[k] : values[k + H], bit);
        values[k] = (upper ? values[k + H] : values[k]) + other;
    }
}

/* And one where all have the same numbers to add. */
template <int H, int V> static __device__ void lanes_add(float (&values)[V], int bit)
{
#pragma unroll
    for (int k = 0; k < H; k++)
        values[k] += __shfl_xor_sync(~0u, values[k], bit);
}

/* Where a number of each step goes; only the thread that writes has one. */
struct ring {
    uint32_t *data; /* NULL: nowhere */
    uint8_t *written;
    uint32_t rows, at;
};

static inline __device__ struct ring ring_of(const struct feed_view *view)
{
    struct ring ring = {};
    if (view && view->data)
        ring = {view->data, view->written, (uint32_t)view->rows,
                (uint32_t)(view->stored % view->rows)};
    return ring;
}

static inline __device__ void ring_put(struct ring *ring, float value)
{
    if (!ring->data)
        return;
    ring->data[ring->at] = __float_as_uint(value);
    ring->written[ring->at] = 1;
    ring->at = ring->at + 1 == ring->rows ? 0 : ring->at + 1;
}

/* After the last step of a launch, by one thread. */
static inline __device__ void stack_end(const struct stack_step *step, int64_t steps)
{
    step->feed->place += (uint64_t)(steps * step->batch);
    if (step->loss && step->loss->data)
        step->loss->stored += (uint64_t)steps;
    if (step->right && step->right->data)
        step->right->stored += (uint64_t)steps;
    if (step->count) {
        *step->count += (int32_t)steps;
        step->control->step += (uint64_t)steps;
    }
}

/* The kernel that is compiled for a network's kind: its layers, the activation of all but the last,
 * and the last one's. Of::kernel<LAYERS, HIDDEN, LAST>() is it. NULL: there is none. */
template <typename Of, int LAYERS>
static void *usual_kernel_of(enum activation hidden, enum activation last)
{
    enum { SIGMOID = ACTIVATION_SIGMOID, NONE = ACTIVATION_NONE };
    if (hidden == ACTIVATION_SIGMOID && last == ACTIVATION_SIGMOID)
        return Of::template kernel<LAYERS, SIGMOID, SIGMOID>();
    if (last != ACTIVATION_NONE)
        return NULL;
    switch (hidden) {
    case ACTIVATION_SIGMOID: return Of::template kernel<LAYERS, SIGMOID, NONE>();
    case ACTIVATION_RELU: return Of::template kernel<LAYERS, ACTIVATION_RELU, NONE>();
    case ACTIVATION_TANH: return Of::template kernel<LAYERS, ACTIVATION_TANH, NONE>();
    default: return NULL;
    }
}

template <typename Of, typename Layer> static void *usual_kernel(const Layer *layer, int32_t layers)
{
    const enum activation hidden = layer[0].function, last = layer[layers - 1].function;
    for (int32_t l = 0; l < layers - 1; l++)
        if (layer[l].function != hidden)
            return NULL;
    return layers == 2   ? usual_kernel_of<Of, 2>(hidden, last)
           : layers == 3 ? usual_kernel_of<Of, 3>(hidden, last)
           : layers == 4 ? usual_kernel_of<Of, 4>(hidden, last)
                         : NULL;
}

#endif
