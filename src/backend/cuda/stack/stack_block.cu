/* stack_block.cu: a network whose layers are at most 32 wide, trained or asked by one block.
 *
 * A sample is a group of 8, 16 or 32 lanes; a lane is a unit of the layer at hand. Weights lie in
 * shared memory twice, by output for the forward pass and by input for the backward pass, so that a
 * lane reads its row in quadruples. A sample needs no other sample until the update: there, after
 * one barrier, each four weights to a unit are the work of one thread, which sums their gradients
 * over the batch in order. A second barrier ends the step. There may be more threads than samples
 * have lanes, which only update. What an optimiser keeps of weights lies in shared memory, too.
 *
 * There is no bandwidth to speak of: a step is a chain of dependent operations, about 140 cycles a
 * layer on the forward pass and 90 on the backward pass. What does not depend on the chain (the
 * next step's samples, and the rows of those after) is fetched a step ahead. */
#include "backend/cuda/stack/stack_optimisers.h"

/* The value of every lane of the group, which also goes to the sample's line. */
template <int WIDTH> static __device__ void gather(float own, float *line, float (&all)[WIDTH])
{
    const int lane = (int)threadIdx.x % WIDTH;
    line[lane] = own;
    if constexpr (WIDTH == 8) {
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            all[k] = __shfl_sync(~0u, own, k, WIDTH);
    } else {
        __syncwarp();
#pragma unroll
        for (int k = 0; k < WIDTH; k += 4)
            *(float4 *)&all[k] = *(const float4 *)&line[k];
    }
}

template <int WIDTH>
static __device__ float dot(const float *weights, const float (&x)[WIDTH], float start)
{
    float even = start, odd = 0.0f;
#pragma unroll
    for (int k = 0; k < WIDTH; k += 4) {
        const float4 w = *(const float4 *)&weights[k];
        even = fmaf(w.x, x[k], even);
        odd = fmaf(w.y, x[k + 1], odd);
        even = fmaf(w.z, x[k + 2], even);
        odd = fmaf(w.w, x[k + 3], odd);
    }
    return even + odd;
}

/* What becomes of up to four weights to one unit, or of its bias: where in a line their factors
 * are, and where they lie themselves, beside each other and one below the other. */
struct weight_update {
    uint16_t x, d, by_out, by_in;
    uint32_t inputs; /* 0: a bias */
};
static_assert(sizeof(struct weight_update) == BLOCK_UPDATE_FLOATS * sizeof(float), "");
enum { UPDATES_KEPT = 2 }; /* a thread's first ones, in registers */

/* Calls visit(in the instance, in shared memory) for each number that the optimiser keeps. */
template <typename Visit>
static __device__ void each_state(const struct block_net *net, float *shared, Visit visit)
{
    const struct block_layout *at = &net->layout;
    for (int s = 0; s < at->states; s++) {
        float *kept = &shared[at->kept + 4 * s * at->update_count];
        for (int l = 0; l < net->step.layers; l++) {
            const auto &layer = net->layer[l];
            const int in = layer.in, out = layer.out;
            for (int k = (int)threadIdx.x; k < in * out; k += (int)blockDim.x)
                visit(&layer.states_w[s][k],
                      &kept[4 * (k / out / 4 * out + k % out) + k / out % 4]);
            kept += 4 * ((in + 3) / 4 * out);
            for (int o = (int)threadIdx.x; layer.b && o < out; o += (int)blockDim.x)
                visit(&layer.states_b[s][o], &kept[4 * o]);
            kept += layer.b ? 4 * out : 0;
        }
    }
}

/* Both copies of the weights, biases, the constant 1 of every line, all updates, and states. */
template <int WIDTH, bool PLAIN>
static __device__ void block_begin(const struct block_net *net, float *shared)
{
    constexpr int STRIDE = BLOCK_STRIDE(WIDTH);
    const struct block_layout *at = &net->layout;
    const int layers = net->step.layers, threads = (int)blockDim.x;
    struct weight_update *update = (struct weight_update *)&shared[at->updates];
    for (int k = (int)threadIdx.x; k < at->updates; k += threads)
        shared[k] = 0.0f;
    __syncthreads();
    if ((int)threadIdx.x < at->lanes / WIDTH)
        shared[at->lines + (int)threadIdx.x * at->line] = 1.0f;
    for (int l = 0; l < layers; l++) {
        const int in = net->layer[l].in, out = net->layer[l].out, here = l * BLOCK_LAYER(WIDTH);
        const int x = BLOCK_X(WIDTH, l), d = BLOCK_D(WIDTH, layers, l);
        for (int k = (int)threadIdx.x; k < in * out; k += threads) {
            const int i = k / out, o = k % out;
            const int by_out = here + o * STRIDE + i;
            const int by_in = here + BLOCK_BY_IN(WIDTH) + i * STRIDE + o;
            shared[by_out] = shared[by_in] = net->layer[l].w[k];
            if (i % 4 == 0)
                update[i / 4 * out + o] = {(uint16_t)(x + i), (uint16_t)(d + o), (uint16_t)by_out,
                                           (uint16_t)by_in, (uint32_t)(in - i < 4 ? in - i : 4)};
        }
        update += (in + 3) / 4 * out;
        if (!net->layer[l].b)
            continue;
        for (int o = (int)threadIdx.x; o < out; o += threads) {
            const int bias = here + BLOCK_BIAS(WIDTH) + o;
            shared[bias] = net->layer[l].b[o];
            update[o] = {0, (uint16_t)(d + o), (uint16_t)bias, (uint16_t)bias, 0};
        }
        update += out;
    }
    if (!PLAIN)
        each_state(net, shared, [](const float *state, float *kept) { *kept = *state; });
    __syncthreads();
}

template <int WIDTH, bool PLAIN>
static __device__ void block_end(const struct block_net *net, float *shared)
{
    for (int l = 0; l < net->step.layers; l++) {
        const int in = net->layer[l].in, out = net->layer[l].out;
        const float *here = &shared[l * BLOCK_LAYER(WIDTH)];
        for (int k = (int)threadIdx.x; k < in * out; k += (int)blockDim.x)
            net->layer[l].w[k] = here[BLOCK_BY_IN(WIDTH) + k / out * BLOCK_STRIDE(WIDTH) + k % out];
        for (int o = (int)threadIdx.x; net->layer[l].b && o < out; o += (int)blockDim.x)
            net->layer[l].b[o] = here[BLOCK_BIAS(WIDTH) + o];
    }
    if (!PLAIN)
        each_state(net, shared, [](float *state, const float *kept) { *state = *kept; });
}

/* The sums over the batch. */
static __device__ void add_gradients(const struct block_net *net, const float *shared,
                                     const struct weight_update &of, float (&gradient)[4])
{
    const float *line = &shared[net->layout.lines];
#pragma unroll 5
    for (int n = 0; n < net->step.batch; n++, line += net->layout.line) {
        const float4 x = *(const float4 *)&line[of.x];
        const float d = line[of.d];
        gradient[0] = fmaf(x.x, d, gradient[0]);
        gradient[1] = fmaf(x.y, d, gradient[1]);
        gradient[2] = fmaf(x.z, d, gradient[2]);
        gradient[3] = fmaf(x.w, d, gradient[3]);
    }
}

/* The update number `k`, `of` these weights. What a unit that is not there would add to a weight
 * from it is left out: that weight stays 0. */
template <int WIDTH, typename Rule>
static __device__ void update_some(const struct block_net *net, float *shared, int k,
                                   const struct weight_update &of, const float (&gradient)[4],
                                   const struct pace &pace, const Rule &rule)
{
    float4 *states = (float4 *)&shared[net->layout.kept] + k;
    float kept[4][2] = {};
#pragma unroll
    for (int s = 0; s < Rule::KEPT; s++) {
        const float4 all = states[s * net->layout.update_count];
        kept[0][s] = all.x, kept[1][s] = all.y, kept[2][s] = all.z, kept[3][s] = all.w;
    }
    if (of.inputs == 0) {
        shared[of.by_out] = rule.step(shared[of.by_out], gradient[0], pace, kept[0]);
    } else {
        float4 w = *(const float4 *)&shared[of.by_out];
        w.x = rule.step(w.x, gradient[0], pace, kept[0]);
        w.y = of.inputs > 1 ? rule.step(w.y, gradient[1], pace, kept[1]) : 0.0f;
        w.z = of.inputs > 2 ? rule.step(w.z, gradient[2], pace, kept[2]) : 0.0f;
        w.w = of.inputs > 3 ? rule.step(w.w, gradient[3], pace, kept[3]) : 0.0f;
        *(float4 *)&shared[of.by_out] = w;
        float *column = &shared[of.by_in];
        column[0] = w.x;
        column[BLOCK_STRIDE(WIDTH)] = w.y;
        column[2 * BLOCK_STRIDE(WIDTH)] = w.z;
        column[3 * BLOCK_STRIDE(WIDTH)] = w.w;
    }
#pragma unroll
    for (int s = 0; s < Rule::KEPT; s++)
        states[s * net->layout.update_count] =
            make_float4(kept[0][s], kept[1][s], kept[2][s], kept[3][s]);
}

template <int WIDTH, bool PLAIN>
static __device__ void block_update(const struct block_net *net, float *shared,
                                    const struct weight_update (&kept)[UPDATES_KEPT],
                                    const struct pace &pace)
{
    const int count = net->layout.update_count, threads = (int)blockDim.x;
    const struct weight_update *update = (const struct weight_update *)&shared[net->layout.updates];
    const auto one = [&](int k, const struct weight_update &of) {
        float gradient[4] = {};
        add_gradients(net, shared, of, gradient);
        if constexpr (PLAIN)
            update_some<WIDTH>(net, shared, k, of, gradient, pace, plain_rule{});
        else
            rule_visit(net->rule, [&](const auto &rule) {
                update_some<WIDTH>(net, shared, k, of, gradient, pace, rule);
            });
    };
    int k = (int)threadIdx.x;
#pragma unroll
    for (int u = 0; PLAIN && u < UPDATES_KEPT; u++, k += threads)
        if (k < count)
            one(k, kept[u]);
    for (; k < count; k += threads)
        one(k, update[k]);
}

/* One warp adds up what all lanes found. */
static __device__ void block_report(const float2 *losses, int lanes, struct ring *loss,
                                    struct ring *right)
{
    float2 sum = {};
    for (int k = (int)threadIdx.x % 32; k < lanes; k += 32) {
        sum.x += losses[k].x;
        sum.y += losses[k].y;
    }
    sum.x = group_sum<32>(sum.x);
    if (right->data)
        sum.y = group_sum<32>(sum.y);
    if (threadIdx.x % 32 == 0) {
        ring_put(loss, sum.x);
        ring_put(right, sum.y);
    }
}

/* The outputs of all layers. Lanes beyond a layer's outputs hold anything finite: the weights that
 * would use it are 0. */
template <typename Kind>
static __device__ float block_ascend(const struct block_net *net, const float *shared, float *line,
                                     float y)
{
    constexpr int WIDTH = Kind::WIDTH;
    const int lane = (int)threadIdx.x % WIDTH, layers = Kind::layers(net);
    float all[WIDTH];
#pragma unroll
    for (int l = 0; l < layers; l++) {
        const float *here = &shared[l * BLOCK_LAYER(WIDTH)];
        gather<WIDTH>(y, line + BLOCK_X(WIDTH, l), all);
        const float sum =
            dot<WIDTH>(here + lane * BLOCK_STRIDE(WIDTH), all, here[BLOCK_BIAS(WIDTH) + lane]);
        y = stack_activation(Kind::function(net, l), sum);
    }
    return y;
}

/* The gradient of the last outputs y down to the first layer's sums: all that the update needs. */
template <typename Kind>
static __device__ void block_backward(const struct block_net *net, const float *shared, float *line,
                                      float gradient, float y)
{
    constexpr int WIDTH = Kind::WIDTH;
    const int lane = (int)threadIdx.x % WIDTH, layers = Kind::layers(net);
    float all[WIDTH];
#pragma unroll
    for (int l = layers - 1; l >= 0; l--) {
        gradient *= stack_derivative(Kind::function(net, l), y);
        gather<WIDTH>(gradient, line + BLOCK_D(WIDTH, layers, l), all);
        if (l == 0)
            return;
        const float *here = &shared[l * BLOCK_LAYER(WIDTH) + BLOCK_BY_IN(WIDTH)];
        y = line[BLOCK_X(WIDTH, l) + lane];
        gradient = dot<WIDTH>(here + lane * BLOCK_STRIDE(WIDTH), all, 0.0f);
    }
}

template <typename Kind, bool PLAIN>
static __global__ void __launch_bounds__(BLOCK_THREADS_MOST)
    stack_block(const __grid_constant__ struct block_net net, int64_t steps)
{
    constexpr int WIDTH = Kind::WIDTH;
    extern __shared__ float4 shared_quads[];
    float *shared = (float *)shared_quads;
    const struct stack_step &step = net.step;
    const struct block_layout &at = net.layout;
    const int lane = (int)threadIdx.x % WIDTH, n = (int)threadIdx.x / WIDTH;
    const int out = net.layer[step.layers - 1].out;
    const bool there = n < step.batch;
    float *line = &shared[at.lines + n * at.line];
    float2 *losses = (float2 *)&shared[at.losses];
    const struct source source(&net, (int)threadIdx.x % WIDTH, there);
    const bool plainly = judges_plainly(&step);
    uint32_t place = (uint32_t)((step.feed->place + (uint64_t)n) % source.samples);
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    uint32_t *answers = step.y ? step.y->data : NULL;
    const int32_t updates = step.count ? *step.count : 0;
    const bool pace_is_fixed = !step.count || (PLAIN && stack_rate_is_fixed(&step));
    const struct pace first = {PLAIN && step.count ? stack_rate(&step, updates) : 0.0f};
    struct pace *paces = (struct pace *)&shared[at.paces];
    const bool works = (int)threadIdx.x < at.lanes;
    const bool reports = threadIdx.x / 32 == blockDim.x / 32 - 1;
    const bool makes_paces = reports && !pace_is_fixed;
    struct weight_update kept[UPDATES_KEPT];

    block_begin<WIDTH, PLAIN>(&net, shared);
#pragma unroll
    for (int u = 0; u < UPDATES_KEPT; u++) {
        const int k = (int)(threadIdx.x + u * blockDim.x);
        if (k < at.update_count)
            kept[u] = ((const struct weight_update *)&shared[at.updates])[k];
    }
    struct sample now = source.fetch(source.row(place));
    place = source.after(place);
    uint32_t next_row = source.row(place);
    for (int32_t done = 0; done < (int32_t)steps; done++) {
        float2 *found = losses + done % 2 * at.lanes;
        if (works) {
            const struct sample next = source.fetch(next_row);
            place = source.after(place);
            next_row = source.row(place);
            const float y = block_ascend<Kind>(&net, shared, line, now.x);
            const float answer = Kind::PROBABILITIES ? group_softmax<WIDTH>(out, y) : y;
            if (answers && there && lane < out) {
                answers[(uint64_t)now.row * (unsigned)out + (unsigned)lane] =
                    __float_as_uint(answer);
                step.y->written[now.row] = 1;
            }
            if (step.loss_kind != OP_COUNT) {
                const struct judged judged =
                    judge<WIDTH>(&step, plainly, there ? out : 0, y, now.target);
                found[threadIdx.x] = make_float2(judged.loss, judged.right);
                if (step.count)
                    block_backward<Kind>(&net, shared, line, judged.gradient, y);
            }
            now = next;
        }
        if (step.loss_kind == OP_COUNT)
            continue;
        if (makes_paces && done % PACES == 0)
            paces_make<PLAIN>(&step, &net.rule, updates + done, paces);
        __syncthreads();
        if (step.count) {
            block_update<WIDTH, PLAIN>(&net, shared, kept,
                                       pace_is_fixed ? first : paces[done % PACES]);
            __syncthreads();
        }
        if (reports)
            block_report(found, at.lanes, &loss, &right);
    }
    __syncthreads();
    if (step.count)
        block_end<WIDTH, PLAIN>(&net, shared);
    if (threadIdx.x == 0)
        stack_end(&step, steps);
}

struct block_kernels {
    template <int LAYERS, int HIDDEN, int LAST> static void *kernel()
    {
        return (void *)stack_block<block_kind<8, LAYERS, HIDDEN, LAST>, true>;
    }
};

template <int WIDTH, bool SOFTMAX>
using any_kind = block_kind<WIDTH, 0, AS_IT_COMES, AS_IT_COMES, SOFTMAX>;

template <bool PLAIN, bool SOFTMAX> static void *block_kernel_of(int32_t width)
{
    switch (width) {
    case 8: return (void *)stack_block<any_kind<8, SOFTMAX>, PLAIN>;
    case 16: return (void *)stack_block<any_kind<16, SOFTMAX>, PLAIN>;
    default: return (void *)stack_block<any_kind<32, SOFTMAX>, PLAIN>;
    }
}

/* The usual shapes of narrow networks, trained by sgd or asked, have kernels of their own. */
static void *block_kernel(const struct block_net *net)
{
    if (net->rule.kind != OP_COUNT)
        return block_kernel_of<false, false>(net->layout.width);
    if (net->probabilities)
        return block_kernel_of<true, true>(net->layout.width);
    void *usual =
        net->layout.width == 8 ? usual_kernel<block_kernels>(net->layer, net->step.layers) : NULL;
    return usual ? usual : block_kernel_of<true, false>(net->layout.width);
}

void block_prepare(struct stack *stack, const struct dense_stack *dense,
                   const struct stack_step *step, const struct stack_limits *limits)
{
    (void)limits;
    struct block_net *net = (struct block_net *)stack->net;
    net->step = *step;
    net->rule = stack->rule;
    net->probabilities = dense->probabilities;
    block_lay_out(dense, step->batch, &net->layout);
    memcpy(net->layer, stack->layer, sizeof net->layer);
}

static cudaError_t launch(struct stack *stack, int64_t steps, cudaStream_t stream)
{
    struct block_net *net = (struct block_net *)stack->net;
    void *arguments[] = {net, &steps};
    void *kernel = block_kernel(net);
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)net->layout.shared_bytes);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(kernel, dim3(1), dim3((unsigned)net->layout.threads), arguments,
                                 (size_t)net->layout.shared_bytes, stream);
    return error;
}

const struct stack_kernel steps_by_block = {NULL, block_prepare, launch};
