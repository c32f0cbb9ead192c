/* stack_replicas_layers.h: what a thread of stack_replicas.cu does with a sample: up
 * through all layers, the loss, and down again. Weights lie in tiles of four inputs by four
 * outputs, which all threads of a warp read at once; what a layer finds goes to the sample's line,
 * four features at a time. */
#ifndef PRONY_BACKEND_CUDA_STACK_REPLICAS_LAYERS_H
#define PRONY_BACKEND_CUDA_STACK_REPLICAS_LAYERS_H

#include "backend/cuda/stack/stack_optimisers.h"

struct replicas_net {
    struct stack_step step;
    struct replicas_layout layout;
    struct any_rule rule; /* of kind OP_COUNT: plain sgd, or nothing is trained */
    uint32_t first;       /* the number of the launch's first step; never the same twice */
    uint32_t *came;       /* blocks of this launch that have read where the data go on */
    uint4 *packets;       /* [2][block][layout.packets]: sums of even and of odd steps */
    struct learnt_layer layer[DENSE_STACK_MOST];
};

static __device__ float4 *quad_at(float *floats)
{
    return (float4 *)floats;
}

static __device__ const float4 *quad_at(const float *floats)
{
    return (const float4 *)floats;
}

static __device__ void quad_add(float4 &sum, float factor, const float4 &of)
{
    sum.x = fmaf(factor, of.x, sum.x);
    sum.y = fmaf(factor, of.y, sum.y);
    sum.z = fmaf(factor, of.z, sum.z);
    sum.w = fmaf(factor, of.w, sum.w);
}

static __device__ float quad_dot(const float4 &a, const float4 &b, float start)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, start))));
}

/* The first `count` of four, and zeros. */
static __device__ float4 quad_first(const float4 &of, int count)
{
    return make_float4(of.x, count > 1 ? of.y : 0.0f, count > 2 ? of.z : 0.0f,
                       count > 3 ? of.w : 0.0f);
}

/* Layers at most 4 · QUADS wide. What is known when it is compiled saves branches. Of the narrowest
 * a sample is one thread, which keeps what it has found. */
template <int QUADS_, int LAYERS, int HIDDEN, int LAST>
struct replicas_kind { /* as in block_kind; LAYERS 0: AS_IT_COMES */
    static constexpr int QUADS = QUADS_;
    static constexpr bool ALONE = QUADS <= REPLICAS_QUADS;
    static __device__ int layers(const struct replicas_net *net)
    {
        return LAYERS ? LAYERS : net->step.layers;
    }
    /* Features below layer l, in `shape` four bits each: reading parameters takes longer. */
    static __device__ uint32_t shape(const struct replicas_net *net)
    {
        uint32_t shape = 0;
#pragma unroll
        for (int l = 0; l <= LAYERS; l++)
            shape |= (uint32_t)(l ? net->layer[l - 1].out : net->layer[0].in) << 4 * l;
        asm volatile("" : "+r"(shape)); /* it stays in a register */
        return shape;
    }
    static __device__ int in(const struct replicas_net *net, uint32_t shape, int l)
    {
        return LAYERS ? (int)(shape >> 4 * l & 15) : net->layer[l].in;
    }
    static __device__ int out(const struct replicas_net *net, uint32_t shape, int l)
    {
        return LAYERS ? (int)(shape >> 4 * (l + 1) & 15) : net->layer[l].out;
    }
    /* As the layout has them. */
    static __device__ int weights(const struct replicas_layout &at, int l)
    {
        return LAYERS ? REPLICAS_LAYER * l : at.layer[l].weights;
    }
    static __device__ int bias(const struct replicas_layout &at, int l)
    {
        return LAYERS ? REPLICAS_LAYER * l + REPLICAS_BIAS : at.layer[l].bias;
    }
    static __device__ int down(const struct replicas_layout &at, int l)
    {
        return LAYERS ? (int)REPLICAS_QUADS : at.layer[l].down;
    }
    static __device__ int y(const struct replicas_layout &at, int l)
    {
        return LAYERS ? REPLICAS_LINE * l : at.layer[l].y;
    }
    static __device__ int d(const struct replicas_layout &at, int l)
    {
        return LAYERS ? REPLICAS_LINE * l + 4 * REPLICAS_QUADS : at.layer[l].d;
    }
    static __device__ enum activation function(const struct replicas_net *net, int l)
    {
        if (LAYERS == 0)
            return net->layer[l].function;
        return (enum activation)(l == LAYERS - 1 ? LAST : HIDDEN);
    }
    static __device__ float4 activation(enum activation function, const float4 &x)
    {
        const auto one = [&](float of) {
            return LAYERS ? warp_activation(function, of) : stack_activation(function, of);
        };
        if (function == ACTIVATION_SIGMOID) /* asked for once */
            return make_float4(stack_sigmoid(x.x), stack_sigmoid(x.y), stack_sigmoid(x.z),
                               stack_sigmoid(x.w));
        return make_float4(one(x.x), one(x.y), one(x.z), one(x.w));
    }
    /* gradient · slope(y) */
    static __device__ float4 slope(enum activation function, const float4 &gradient,
                                   const float4 &y)
    {
        const auto one = [&](float of, float at) {
            return of * (LAYERS ? warp_derivative(function, at) : stack_derivative(function, at));
        };
        return make_float4(one(gradient.x, y.x), one(gradient.y, y.y), one(gradient.z, y.z),
                           one(gradient.w, y.w));
    }
    /* Where those who have parts of the same samples wait for each other, and all others with them.
     */
    static __device__ void meet(const struct replicas_layout &at)
    {
        if (!ALONE && at.parts > 1)
            __syncthreads();
    }
};

/* So many features of a line. */
template <int QUADS>
static __device__ void take_quads(const float *from, int features, float4 (&to)[QUADS])
{
#pragma unroll
    for (int k = 0; k < QUADS; k++)
        if (k == 0 || 4 * k < features)
            to[k] = quad_at(from)[k];
}

/* Four outputs from all inputs: w is their first tile. */
template <int QUADS>
static __device__ float4 quad_up(const float4 (&x)[QUADS], int in, const float4 *w, float4 sum)
{
#pragma unroll
    for (int i = 0; i < QUADS; i++)
        if (i == 0 || 4 * i < in) {
            quad_add(sum, x[i].x, w[4 * i]);
            quad_add(sum, x[i].y, w[4 * i + 1]);
            quad_add(sum, x[i].z, w[4 * i + 2]);
            quad_add(sum, x[i].w, w[4 * i + 3]);
        }
    return sum;
}

/* The gradients of four inputs from those of all outputs; tiles are `apart`. */
template <int QUADS>
static __device__ float4 quad_down(const float4 (&d)[QUADS], int out, const float4 *w, int apart)
{
    float4 sum = {};
#pragma unroll
    for (int o = 0; o < QUADS; o++, w += apart)
        if (o == 0 || 4 * o < out) {
            sum.x = quad_dot(w[0], d[o], sum.x);
            sum.y = quad_dot(w[1], d[o], sum.y);
            sum.z = quad_dot(w[2], d[o], sum.z);
            sum.w = quad_dot(w[3], d[o], sum.w);
        }
    return sum;
}

/* The outputs of all layers, of a sample that is there. Those that a layer does not have are 0. */
template <typename Kind>
static __device__ void replica_forward(const struct replicas_net *net, const float *shared,
                                       uint32_t shape, const float *intake, float *line, int part,
                                       bool there)
{
    constexpr int QUADS = Kind::QUADS;
    const struct replicas_layout &at = net->layout;
    float4 x[QUADS];
    take_quads<QUADS>(intake, Kind::in(net, shape, 0), x);
#pragma unroll
    for (int l = 0; l < Kind::layers(net); l++) {
        const int in = Kind::in(net, shape, l), out = Kind::out(net, shape, l);
        const enum activation function = Kind::function(net, l);
        const float4 *w = quad_at(&shared[Kind::weights(at, l)]);
        const float4 *bias = quad_at(&shared[Kind::bias(at, l)]);
        float *to = line + Kind::y(at, l);
        const auto four = [&](int o) {
            const float4 sum = quad_up<QUADS>(x, in, w + 4 * Kind::down(at, l) * o, bias[o]);
            return quad_at(to)[o] = quad_first(Kind::activation(function, sum), out - 4 * o);
        };
        if constexpr (Kind::ALONE) {
            float4 y[QUADS];
#pragma unroll
            for (int o = 0; o < QUADS; o++)
                if (o == 0 || 4 * o < out)
                    y[o] = four(o);
#pragma unroll
            for (int o = 0; o < QUADS; o++)
                x[o] = y[o];
        } else {
#pragma unroll 1
            for (int o = part; there && 4 * o < out; o += at.parts)
                four(o);
            Kind::meet(at);
            take_quads<QUADS>(to, out, x);
        }
    }
}

/* From the gradients of the last layer's sums to those of the first one's. */
template <typename Kind>
static __device__ void replica_backward(const struct replicas_net *net, const float *shared,
                                        uint32_t shape, float *line, int part, bool there)
{
    constexpr int QUADS = Kind::QUADS;
    const struct replicas_layout &at = net->layout;
    const int last = Kind::layers(net) - 1;
    float4 d[QUADS];
    take_quads<QUADS>(line + Kind::d(at, last), Kind::out(net, shape, last), d);
#pragma unroll
    for (int l = last; l > 0; l--) {
        const int in = Kind::in(net, shape, l), out = Kind::out(net, shape, l);
        const enum activation function = Kind::function(net, l - 1);
        const float4 *w = quad_at(&shared[Kind::weights(at, l)]);
        const float *y = line + Kind::y(at, l - 1);
        float *to = line + Kind::d(at, l - 1);
        const auto four = [&](int i) {
            const float4 sum = quad_down<QUADS>(d, out, w + 4 * i, 4 * Kind::down(at, l));
            return quad_at(to)[i] =
                       quad_first(Kind::slope(function, sum, quad_at(y)[i]), in - 4 * i);
        };
        if constexpr (Kind::ALONE) {
            float4 below[QUADS];
#pragma unroll
            for (int i = 0; i < QUADS; i++)
                if (i == 0 || 4 * i < in)
                    below[i] = four(i);
#pragma unroll
            for (int i = 0; i < QUADS; i++)
                d[i] = below[i];
        } else {
#pragma unroll 1
            for (int i = part; there && 4 * i < in; i += at.parts)
                four(i);
            Kind::meet(at);
            take_quads<QUADS>(to, in, d);
        }
    }
}

/* Losses that are seldom asked for, called: gradients of the outputs y go to d. Beside the loss,
 * what is right of a binary one. */
static __device__ __noinline__ float2 judge_seldom(const struct stack_step *step, int out,
                                                   const float *y, const float *target, float *d)
{
    float loss = 0.0f, right = 0.0f, most = -INFINITY, sum = 0.0f;
    if (step->loss_kind == OP_binary_cross_entropy) {
        for (int o = 0; o < out; o++) {
            const float error = sigmoid(y[o]) - target[o];
            d[o] = step->gradient * error;
            loss += fmaxf(y[o], 0.0f) - y[o] * target[o] + log1pf(expf(-fabsf(y[o])));
            right += fabsf(error) < step->half ? 1.0f : 0.0f;
        }
        return make_float2(loss * step->share, right);
    }
    const int label = __float_as_int(*target);
    for (int o = 0; o < out; o++)
        most = fmaxf(most, y[o]);
    for (int o = 0; o < out; o++)
        sum += d[o] = expf(y[o] - most);
    for (int o = 0; o < out; o++) {
        d[o] = step->gradient * (d[o] / sum - (o == label ? 1.0f : 0.0f));
        loss += o == label ? (logf(sum) - (y[o] - most)) * step->share : 0.0f;
    }
    return make_float2(loss, 0.0f);
}

static __device__ __noinline__ float count_right(const struct stack_step *step, int out,
                                                 const float *y, const float *target)
{
    float right = 0.0f, most = -INFINITY;
    int best = -1;
    for (int o = 0; o < out; o++) {
        if (step->right_kind == OP_right_level)
            right += fabsf(y[o] - target[o]) < step->half ? 1.0f : 0.0f;
        else if (y[o] > most || (best < 0 && y[o] == most))
            most = y[o], best = o;
    }
    if (step->right_kind == OP_right_class)
        right = best >= 0 && best == __float_as_int(*target) ? 1.0f : 0.0f;
    return right;
}

/* What a sample adds to the loss and to the right answers; the gradients of its last layer's sums
 * go to d. */
template <typename Kind>
static __device__ float2 replicas_judge(const struct replicas_net *net, uint32_t shape,
                                        const float *y, const float *target, float *d)
{
    const struct stack_step &step = net->step;
    const int out = Kind::out(net, shape, Kind::layers(net) - 1);
    const enum activation function = Kind::function(net, Kind::layers(net) - 1);
    float2 found = {};
    if (step.loss_kind != OP_mse)
        found = judge_seldom(&step, out, y, target, d);
    if (step.right_kind != OP_COUNT)
        found.y = count_right(&step, out, y, target);
    for (int o = 0; 4 * o < out; o++) {
        const float4 four = quad_at(y)[o];
        float4 gradient = quad_at(d)[o];
        if (step.loss_kind == OP_mse) {
            const float4 wanted = quad_at(target)[o]; /* 0 where there is no output, as y is */
            const float4 error = make_float4(four.x - wanted.x, four.y - wanted.y,
                                             four.z - wanted.z, four.w - wanted.w);
            found.x += quad_dot(error, error, 0.0f) * step.share;
            gradient = make_float4(step.gradient * error.x, step.gradient * error.y,
                                   step.gradient * error.z, step.gradient * error.w);
        }
        quad_at(d)[o] = quad_first(Kind::slope(function, gradient, four), out - 4 * o);
    }
    return found;
}

#endif
