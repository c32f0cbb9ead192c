/* whole_block.cu: a network whose layers are at most 32 wide, trained or asked by one block.
 *
 * A sample is a group of 8, 16 or 32 lanes; a lane is a unit of the layer at hand. Weights lie in
 * shared memory twice, by output for the way up and by input for the way down, so that a lane reads
 * its row in quadruples. A sample needs no other sample until the update: there, after one barrier,
 * each weight is the work of one thread, which sums its gradient over the batch in order. A second
 * barrier ends the step.
 *
 * There is no bandwidth to speak of: a step is a chain of dependent operations, about 140 cycles a
 * layer on the way up and 90 on the way down. What does not depend on the chain (the next step's
 * samples, and the rows of those after) is fetched a step ahead. */
#include "backend/cuda/update.h"
#include "backend/cuda/whole_run.h"

struct block_net {
    struct whole_step step;
    struct block_layout layout;
    struct {
        int32_t in, out;
        enum activation function;
        float *w, *b; /* [in][out], [out] or NULL */
    } layer[CHAIN_MOST];
};

static __device__ void block_barrier(void)
{
    if (blockDim.x == 32)
        __syncwarp();
    else
        __syncthreads();
}

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

template <int WIDTH> static __device__ float group_max(float value)
{
#pragma unroll
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, apart, WIDTH));
    return value;
}

template <int WIDTH> static __device__ float group_sum(float value)
{
#pragma unroll
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        value += __shfl_xor_sync(~0u, value, apart, WIDTH);
    return value;
}

struct judged {
    float gradient;    /* of the loss with respect to this lane's output */
    float loss, right; /* this lane's share */
};

/* `target` is a number, or the bits of a label. Lanes from `out` on get zeros. */
template <int WIDTH>
static __device__ struct judged judge(const struct whole_step *step, int out, float y, float target)
{
    const int lane = (int)threadIdx.x % WIDTH, label = __float_as_int(target);
    const bool counts = lane < out;
    struct judged judged = {};
    if (step->loss_kind == OP_mse) {
        const float error = y - target;
        judged.gradient = step->gradient * error;
        judged.loss = error * error / (float)(out * step->batch);
    } else if (step->loss_kind == OP_binary_cross_entropy) {
        judged.gradient = step->gradient * (sigmoid(y) - target);
        judged.loss =
            (fmaxf(y, 0.0f) - y * target + log1pf(expf(-fabsf(y)))) / (float)(out * step->batch);
    } else {
        const float most = group_max<WIDTH>(counts ? y : -INFINITY);
        const float e = counts ? expf(y - most) : 0.0f, sum = group_sum<WIDTH>(e);
        judged.gradient = step->gradient * (e / sum - (lane == label ? 1.0f : 0.0f));
        judged.loss = lane == label ? (logf(sum) - (y - most)) / (float)step->batch : 0.0f;
    }
    if (step->right_kind == OP_right_level) {
        judged.right = fabsf(y - target) < step->half ? 1.0f : 0.0f;
    } else if (step->right_kind == OP_right_class) {
        const float most = group_max<WIDTH>(counts ? y : -INFINITY);
        const unsigned group = (unsigned)(threadIdx.x % 32) / WIDTH * WIDTH;
        const unsigned best = __ballot_sync(~0u, counts && y == most) >> group;
        judged.right = lane == label && __ffs((int)best) - 1 == label ? 1.0f : 0.0f;
    }
    const struct judged nothing = {};
    return counts ? judged : nothing;
}

/* Both copies of the weights, biases, the constant 1 of every line, and what each thread updates:
 * where in a line the two factors are, and where the weight is. */
static __device__ void block_begin(const struct block_net *net, float *shared)
{
    const struct block_layout *at = &net->layout;
    uint4 *update = (uint4 *)&shared[at->updates];
    for (int k = (int)threadIdx.x; k < at->updates; k += (int)blockDim.x)
        shared[k] = 0.0f;
    __syncthreads();
    for (int n = (int)threadIdx.x; n < (int)blockDim.x / at->width; n += (int)blockDim.x)
        shared[at->lines + n * at->line] = 1.0f;
    for (int l = 0; l < net->step.layers; l++) {
        const int in = net->layer[l].in, out = net->layer[l].out;
        for (int k = (int)threadIdx.x; k < in * out; k += (int)blockDim.x) {
            const int i = k / out, o = k % out;
            const int by_out = at->by_out[l] + o * at->stride + i;
            const int by_in = at->by_in[l] + i * at->stride + o;
            shared[by_out] = shared[by_in] = net->layer[l].w[k];
            update[k] = make_uint4((unsigned)(at->x[l] + i), (unsigned)(at->d[l] + o),
                                   (unsigned)by_out, (unsigned)by_in);
        }
        update += in * out;
        if (!net->layer[l].b)
            continue;
        for (int o = (int)threadIdx.x; o < out; o += (int)blockDim.x) {
            const unsigned bias = (unsigned)(at->bias[l] + o);
            shared[bias] = net->layer[l].b[o];
            update[o] = make_uint4(0, (unsigned)(at->d[l] + o), bias, bias);
        }
        update += out;
    }
    __syncthreads();
}

static __device__ void block_end(const struct block_net *net, const float *shared)
{
    const struct block_layout *at = &net->layout;
    for (int l = 0; l < net->step.layers; l++) {
        const int in = net->layer[l].in, out = net->layer[l].out;
        for (int k = (int)threadIdx.x; k < in * out; k += (int)blockDim.x)
            net->layer[l].w[k] = shared[at->by_in[l] + k / out * at->stride + k % out];
        for (int o = (int)threadIdx.x; net->layer[l].b && o < out; o += (int)blockDim.x)
            net->layer[l].b[o] = shared[at->bias[l] + o];
    }
}

static __device__ void block_update(const struct block_net *net, float *shared, float rate)
{
    const struct block_layout *at = &net->layout;
    const uint4 *update = (const uint4 *)&shared[at->updates];
    for (int k = (int)threadIdx.x; k < at->weights; k += (int)blockDim.x) {
        const uint4 of = update[k];
        const float *line = &shared[at->lines];
        float gradient = 0.0f;
#pragma unroll 4
        for (int n = 0; n < net->step.batch; n++, line += at->line)
            gradient = fmaf(line[of.x], line[of.y], gradient);
        shared[of.z] = shared[of.w] = update_sgd(shared[of.z], gradient, rate);
    }
}

/* The last warp adds up what all threads found. */
static __device__ void block_report(const float2 *losses, struct ring *loss, struct ring *right)
{
    float2 sum = {};
    if (threadIdx.x / 32 != blockDim.x / 32 - 1)
        return;
    for (unsigned k = threadIdx.x % 32; k < blockDim.x; k += 32) {
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

/* One thread's sample: its row, its input and its target. */
struct sample {
    uint32_t row;
    float x, target;
};

template <int WIDTH>
static __device__ struct sample fetch(const struct block_net *net, uint32_t row, bool there)
{
    const int lane = (int)threadIdx.x % WIDTH, last = net->step.layers - 1;
    const int in = net->layer[0].in, out = net->layer[last].out;
    struct sample sample = {row, 0.0f, 0.0f};
    if (there && lane < in)
        sample.x = __uint_as_float(__ldg(&net->step.x->data[(uint64_t)row * (unsigned)in + lane]));
    if (there && net->step.target) {
        const uint32_t *data = net->step.target->data;
        if (net->step.loss_kind == OP_cross_entropy)
            sample.target = __uint_as_float(__ldg(&data[row]));
        else if (lane < out)
            sample.target = __uint_as_float(__ldg(&data[(uint64_t)row * (unsigned)out + lane]));
    }
    return sample;
}

/* The gradient of the last outputs y down to the first layer's sums: all that the update needs. */
template <int WIDTH>
static __device__ void block_descend(const struct block_net *net, const float *shared, float *line,
                                     float gradient, float y)
{
    const struct block_layout *at = &net->layout;
    const int lane = (int)threadIdx.x % WIDTH;
    float all[WIDTH];
    for (int l = net->step.layers - 1;; l--) {
        gradient *= activation_slope(net->layer[l].function, 0.0f, y);
        gather<WIDTH>(gradient, line + at->d[l], all);
        if (l == 0)
            return;
        y = line[at->x[l] + lane];
        gradient = dot<WIDTH>(&shared[at->by_in[l] + lane * at->stride], all, 0.0f);
    }
}

template <int WIDTH>
static __global__ void __launch_bounds__(BLOCK_THREADS_MOST)
    whole_block(const __grid_constant__ struct block_net net, int64_t steps)
{
    extern __shared__ float4 shared_quads[];
    float *shared = (float *)shared_quads;
    const struct whole_step &step = net.step;
    const struct block_layout &at = net.layout;
    const int lane = (int)threadIdx.x % WIDTH, n = (int)threadIdx.x / WIDTH;
    const int layers = step.layers;
    const bool there = n < step.batch;
    float *line = &shared[at.lines + n * at.line];
    float2 *losses = (float2 *)&shared[at.losses];
    const uint64_t samples = step.feed->samples, jump = (uint64_t)step.batch % samples;
    uint64_t place = (step.feed->place + (uint64_t)n) % samples;
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    float rate = step.count ? whole_rate(&step, *step.count) : 0.0f;
    const bool rate_is_fixed = !step.count || whole_rate_is_fixed(&step);
    const bool one_loss = step.batch == 1 && net.layer[layers - 1].out == 1;

    block_begin(&net, shared);
    struct sample now = fetch<WIDTH>(&net, whole_row(step.feed, place), there);
    place = whole_move(place, jump, samples);
    uint32_t next_row = whole_row(step.feed, place);
    for (int64_t done = 0; done < steps; done++) {
        const struct sample next = fetch<WIDTH>(&net, next_row, there);
        place = whole_move(place, jump, samples);
        next_row = whole_row(step.feed, place);

        float all[WIDTH], y = now.x;
        for (int l = 0; l < layers; l++) {
            gather<WIDTH>(y, line + at.x[l], all);
            const float *weights = &shared[at.by_out[l] + lane * at.stride];
            const float sum = dot<WIDTH>(weights, all, shared[at.bias[l] + lane]);
            y = lane < net.layer[l].out ? whole_activation(net.layer[l].function, sum) : 0.0f;
        }
        if (step.y && step.y->data && there && lane < net.layer[layers - 1].out) {
            const uint64_t width = (uint64_t)net.layer[layers - 1].out;
            step.y->data[now.row * width + (uint64_t)lane] = __float_as_uint(y);
            step.y->written[now.row] = 1;
        }
        if (step.loss_kind != OP_COUNT) {
            const struct judged judged =
                judge<WIDTH>(&step, there ? net.layer[layers - 1].out : 0, y, now.target);
            losses[threadIdx.x] = make_float2(judged.loss, judged.right);
            if (step.count)
                block_descend<WIDTH>(&net, shared, line, judged.gradient, y);
            if (!rate_is_fixed && threadIdx.x == 0)
                shared[at.rate] = whole_rate(&step, *step.count + (int32_t)done);
            block_barrier();
            if (!rate_is_fixed)
                rate = shared[at.rate];
            if (step.count)
                block_update(&net, shared, rate);
            if (!one_loss) {
                block_report(losses, &loss, &right);
            } else if (threadIdx.x == 0) {
                ring_put(&loss, judged.loss);
                ring_put(&right, judged.right);
            }
            block_barrier();
        }
        now = next;
    }
    __syncthreads();
    if (step.count)
        block_end(&net, shared);
    if (threadIdx.x == 0)
        whole_end(&step, steps);
}

static void *block_kernel(int32_t width)
{
    return width == 8    ? (void *)whole_block<8>
           : width == 16 ? (void *)whole_block<16>
                         : (void *)whole_block<32>;
}

void block_prepare(struct whole *whole, const struct chain *chain, const struct whole_step *step)
{
    struct block_net *net = (struct block_net *)whole->net;
    net->step = *step;
    block_lay_out(chain, step->batch, &net->layout);
    for (int32_t l = 0; l < chain->layers; l++) {
        net->layer[l].in = chain->layer[l].in;
        net->layer[l].out = chain->layer[l].out;
        net->layer[l].function = chain->layer[l].activation;
        net->layer[l].w = whole->weights[l];
        net->layer[l].b = whole->biases[l];
    }
}

cudaError_t block_launch(struct whole *whole, int64_t steps, cudaStream_t stream)
{
    struct block_net *net = (struct block_net *)whole->net;
    void *arguments[] = {net, &steps};
    void *kernel = block_kernel(net->layout.width);
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)net->layout.shared_bytes);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(kernel, dim3(1), dim3((unsigned)net->layout.threads), arguments,
                                 (size_t)net->layout.shared_bytes, stream);
    return error;
}
