/* stack_four_warps.cu: a batch of a network whose layers are at most 8 wide, trained or asked by a
 * team of four warps, one for each scheduler of a multiprocessor.
 *
 * A sample is a group of 8 lanes, so up to three warps have samples; a lane is a unit of the layer
 * at hand. It has the weights to its unit, for the forward pass, and those from it, for the
 * backward pass, in registers during a step, and gets what the other lanes of its group found by
 * shuffles. What a weight's gradient is made of, inputs and gradients of sums, goes to shared
 * memory, samples beside each other. After a barrier each weight is the work of one thread of the
 * team, which has kept it from the beginning: it adds up over the batch, in order, and writes the
 * weight to where lanes read it, once by output and once by input. A second barrier ends the step.
 * The last warp has no samples and adds up losses while the others are already in the next step.
 *
 * Of plain sgd the gradient that comes down is already multiplied by the rate. What any other
 * optimiser keeps of a weight its thread has in registers, too, and the last warp works out the
 * rates of steps to come. There is no bandwidth to speak of: a step is a chain of dependent
 * operations. */
#include "backend/cuda/stack/stack_optimisers.h"

enum {
    UNITS = 8,
    TEAM = 128,
    ROW = 12, /* floats: 8 weights and a bias, or a number of each sample. No two of 8 rows meet in
                 a bank when they are read in quadruples. */
    BIAS = UNITS,
    WEIGHTS_MOST = WARP_LAYERS_MOST * UNITS * (UNITS + 1),
    KEPT = (WEIGHTS_MOST + TEAM - 1) / TEAM, /* weights that a thread updates */
};

/* Rows of ROW floats. */
template <int LAYERS> struct alignas(16) team_shared {
    float by_out[LAYERS][UNITS][ROW], by_in[LAYERS][UNITS][ROW];
    float x[LAYERS][UNITS][ROW], d[LAYERS][UNITS][ROW]; /* by sample */
    float ones[ROW];                                    /* what a bias is multiplied with */
    float2 losses[2][FOUR_WARPS_BATCH_MOST * UNITS];    /* of even and of odd steps */
};

/* One weight, or one bias (its input is the layer's number of inputs). */
struct weight_place {
    int layer, in, out;
};

template <int LAYERS>
static __device__ bool place_of(const struct block_net *net, int k, struct weight_place *place)
{
#pragma unroll 1
    for (int l = 0; l < LAYERS; l++) {
        const int out = net->layer[l].out;
        const int count = (net->layer[l].in + (net->layer[l].b ? 1 : 0)) * out;
        if (k < count) {
            *place = {l, k / out, k % out};
            return true;
        }
        k -= count;
    }
    return false;
}

/* Where it lies in the instance, and its state number `s`. */
static __device__ float *weight_of(const struct block_net *net, const struct weight_place &of)
{
    const auto &layer = net->layer[of.layer];
    return of.in == layer.in ? &layer.b[of.out] : &layer.w[of.in * layer.out + of.out];
}

static __device__ float *state_of(const struct block_net *net, const struct weight_place &of, int s)
{
    const auto &layer = net->layer[of.layer];
    return of.in == layer.in ? &layer.states_b[s][of.out]
                             : &layer.states_w[s][of.in * layer.out + of.out];
}

/* The weights that a thread keeps and updates; PLAIN: by sgd. */
template <int LAYERS, bool PLAIN> struct team_member {
    const struct block_net *net;
    struct team_shared<LAYERS> *shared;
    float weight[KEPT], state[KEPT][2];
    int by_out[KEPT], by_in[KEPT]; /* places in shared memory, in floats; -1: it has no more */
    int x[KEPT], d[KEPT];

    __device__ float *at(int place) const
    {
        return (float *)shared + place;
    }
    __device__ int place(const float *of) const
    {
        return (int)(of - (float *)shared);
    }

    __device__ void begin();
    __device__ void update(const struct pace *pace);
    __device__ void end() const;
};

/* The number of its weight `k`. Warps without samples come first. */
static __device__ int weight_number(int k)
{
    return TEAM * k + TEAM - 1 - (int)threadIdx.x;
}

template <int LAYERS, bool PLAIN> __device__ void team_member<LAYERS, PLAIN>::begin()
{
    const float nothing = -200.0f; /* units that a layer does not have are then 0 */
    for (int k = (int)threadIdx.x; k < (int)(sizeof *shared / sizeof(float)); k += TEAM)
        ((float *)shared)[k] = 0.0f;
    __syncthreads();
    if (threadIdx.x < ROW)
        shared->ones[threadIdx.x] = 1.0f;
    if (threadIdx.x < LAYERS * UNITS) {
        const int l = (int)threadIdx.x / UNITS, unit = (int)threadIdx.x % UNITS;
        if (unit >= net->layer[l].out && net->layer[l].function == ACTIVATION_SIGMOID)
            shared->by_out[l][unit][BIAS] = nothing;
    }
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        struct weight_place of;
        by_out[k] = -1;
        if (!place_of<LAYERS>(net, weight_number(k), &of))
            continue;
        const auto &layer = net->layer[of.layer];
        const bool bias = of.in == layer.in;
        weight[k] = *weight_of(net, of);
#pragma unroll
        for (int s = 0; !PLAIN && s < 2; s++)
            state[k][s] = s < net->layout.states ? *state_of(net, of, s) : 0.0f;
        x[k] = place(bias ? shared->ones : shared->x[of.layer][of.in]);
        d[k] = place(shared->d[of.layer][of.out]);
        by_out[k] = place(&shared->by_out[of.layer][of.out][bias ? (int)BIAS : of.in]);
        by_in[k] = bias ? by_out[k] : place(&shared->by_in[of.layer][of.in][of.out]);
        *at(by_out[k]) = *at(by_in[k]) = weight[k];
    }
    __syncthreads();
}

/* Between two barriers. Four samples are a sum of their own: that many can be added at once. */
template <int LAYERS, bool PLAIN>
__device__ void team_member<LAYERS, PLAIN>::update(const struct pace *pace)
{
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        if (by_out[k] < 0)
            break;
        float sum[ROW / 4];
#pragma unroll
        for (int q = 0; q < ROW / 4; q++) {
            const float4 a = ((const float4 *)at(x[k]))[q], b = ((const float4 *)at(d[k]))[q];
            sum[q] = fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, a.x * b.x)));
        }
        const float all = sum[0] + sum[1] + sum[2];
        if (PLAIN)
            weight[k] -= all;
        else
            rule_visit(net->rule, [&](const auto &rule) {
                weight[k] = rule.step(weight[k], all, *pace, state[k]);
            });
        *at(by_out[k]) = *at(by_in[k]) = weight[k];
    }
}

template <int LAYERS, bool PLAIN> __device__ void team_member<LAYERS, PLAIN>::end() const
{
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        struct weight_place of;
        if (!place_of<LAYERS>(net, weight_number(k), &of))
            break;
        *weight_of(net, of) = weight[k];
#pragma unroll
        for (int s = 0; !PLAIN && s < 2; s++)
            if (s < net->layout.states)
                *state_of(net, of, s) = state[k][s];
    }
}

/* One lane of a sample. */
template <typename Kind> struct team_lane {
    static constexpr int LAYERS = Kind::LAYERS;
    const struct block_net *net;
    struct team_shared<LAYERS> *shared;
    int unit, n;
    float by_out[LAYERS][UNITS]; /* weights to the unit, by input; … */
    float by_in[LAYERS][UNITS];  /* … and from it, by output */
    float y[LAYERS];             /* the unit's outputs */

    __device__ void begin();
    __device__ float forward(float x);
    __device__ void backward(float gradient);
};

/* A row, of which so many are used. */
static __device__ void take_row(const float *row, int used, float (&out)[UNITS])
{
    *(float4 *)&out[0] = *(const float4 *)&row[0];
    if (used > 4)
        *(float4 *)&out[4] = *(const float4 *)&row[4];
}

template <typename Kind> __device__ void team_lane<Kind>::begin()
{
#pragma unroll
    for (int l = 0; l < LAYERS; l++)
#pragma unroll
        for (int k = 4; k < UNITS; k++)
            by_out[l][k] = by_in[l][k] = 0.0f;
}

/* What the backward pass needs is asked for when the first layer has what it needs. */
template <typename Kind> __device__ float team_lane<Kind>::forward(float x)
{
    float bias[LAYERS];
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        take_row(shared->by_out[l][unit], net->layer[l].in, by_out[l]);
        bias[l] = shared->by_out[l][unit][BIAS];
    }
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        float even = bias[l], odd = 0.0f;
        shared->x[l][unit][n] = x;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            float &sum = k % 2 ? odd : even;
            sum = fmaf(by_out[l][k], __shfl_sync(~0u, x, k, UNITS), sum);
        }
        if (l == 0)
#pragma unroll
            for (int above = LAYERS - 1; above > 0; above--)
                take_row(shared->by_in[above][unit], net->layer[above].out, by_in[above]);
        x = y[l] = warp_activation(Kind::function(net, l), even + odd);
    }
    return x;
}

/* The gradient of the last outputs, of PLAIN times the rate, down to the first layer's sums. */
template <typename Kind> __device__ void team_lane<Kind>::backward(float gradient)
{
#pragma unroll
    for (int l = LAYERS - 1; l >= 0; l--) {
        const float d = gradient * warp_derivative(Kind::function(net, l), y[l]);
        shared->d[l][unit][n] = d;
        if (l == 0)
            break;
        float even = 0.0f, odd = 0.0f;
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            float &sum = k % 2 ? odd : even;
            sum = fmaf(by_in[l][k], __shfl_sync(~0u, d, k, UNITS), sum);
        }
        gradient = even + odd;
    }
}

/* By the last warp: what the step lost and hit. */
static __device__ void team_report(const float2 *losses, struct ring *loss, struct ring *right)
{
    float2 sum = {};
    for (unsigned k = threadIdx.x % 32; k < FOUR_WARPS_BATCH_MOST * UNITS; k += 32) {
        sum.x += losses[k].x;
        sum.y += losses[k].y;
    }
    sum.x = group_sum<32>(sum.x);
    sum.y = group_sum<32>(sum.y);
    if (threadIdx.x % 32 == 0) {
        ring_put(loss, sum.x);
        ring_put(right, sum.y);
    }
}

template <typename Kind, bool PLAIN>
static __global__ void __launch_bounds__(TEAM)
    stack_four_warps(const __grid_constant__ struct block_net net, int64_t steps)
{
    __shared__ struct team_shared<Kind::LAYERS> shared;
    __shared__ struct pace paces[PLAIN ? 1 : PACES];
    const struct stack_step &step = net.step;
    const int out = net.layer[Kind::LAYERS - 1].out;
    const int n = (int)threadIdx.x / UNITS;
    const bool there = n < step.batch, works = (int)threadIdx.x / 32 * 4 < step.batch;
    const bool reports = threadIdx.x / 32 == TEAM / 32 - 1;
    const struct source source(&net, (int)threadIdx.x % UNITS, there);
    const bool plainly = judges_plainly(&step);
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    uint32_t *answers = step.y ? step.y->data : NULL;
    const int32_t updates = step.count ? *step.count : 0;
    const bool rate_is_fixed = !PLAIN || !step.count || stack_rate_is_fixed(&step);
    float rate = PLAIN && step.count ? stack_rate(&step, updates) : 1.0f;
    uint32_t place = (uint32_t)((step.feed->place + (uint64_t)n) % source.samples);
    struct team_member<Kind::LAYERS, PLAIN> member;
    struct team_lane<Kind> lane;

    member.net = lane.net = &net;
    member.shared = lane.shared = &shared;
    member.begin();
    lane.unit = (int)threadIdx.x % UNITS;
    lane.n = n;
    lane.begin();
    struct sample now = source.fetch(source.row(place));
    place = source.after(place);
    uint32_t next_row = source.row(place);
    for (int32_t done = 0; done < (int32_t)steps; done++) {
        if (works) {
            const struct sample next = source.fetch(next_row);
            place = source.after(place);
            next_row = source.row(place);
            const float y = lane.forward(now.x);
            if (answers && there && lane.unit < out) {
                answers[(uint64_t)now.row * (unsigned)out + (unsigned)lane.unit] =
                    __float_as_uint(y);
                step.y->written[now.row] = 1;
            }
            if (step.loss_kind != OP_COUNT) {
                const struct judged judged =
                    judge<UNITS>(&step, plainly, there ? out : 0, y, now.target);
                if (!rate_is_fixed)
                    rate = stack_rate(&step, updates + done);
                if (step.count)
                    lane.backward(PLAIN ? rate * judged.gradient : judged.gradient);
                shared.losses[done % 2][threadIdx.x] = make_float2(judged.loss, judged.right);
            }
            now = next;
        }
        if (step.loss_kind == OP_COUNT)
            continue;
        if (!PLAIN && reports && done % PACES == 0)
            paces_make<PLAIN>(&step, &net.rule, updates + done, paces);
        __syncthreads();
        if (step.count) {
            member.update(&paces[PLAIN ? 0 : done % PACES]);
            __syncthreads();
        }
        if (reports)
            team_report(shared.losses[done % 2], &loss, &right);
    }
    if (step.count)
        member.end();
    if (threadIdx.x == 0)
        stack_end(&step, steps);
}

template <bool PLAIN> struct team_kernels {
    template <int LAYERS, int HIDDEN, int LAST> static void *kernel()
    {
        return (void *)stack_four_warps<block_kind<UNITS, LAYERS, HIDDEN, LAST>, PLAIN>;
    }
};

static cudaError_t launch(struct stack *stack, int64_t steps, cudaStream_t stream)
{
    struct block_net *net = (struct block_net *)stack->net;
    void *arguments[] = {net, &steps};
    const auto usual = net->rule.kind == OP_COUNT
                           ? usual_kernel<team_kernels<true>, struct learnt_layer>
                           : usual_kernel<team_kernels<false>, struct learnt_layer>;
    void *kernel = usual(net->layer, net->step.layers);
    return cudaLaunchKernel(kernel, dim3(1), dim3(TEAM), arguments, 0, stream);
}

const struct stack_kernel steps_by_four_warps = {NULL, block_prepare, launch};
