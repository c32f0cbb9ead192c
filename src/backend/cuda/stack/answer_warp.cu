/* answer_warp.cu: calls of a network of which one warp has a whole batch, a lane for each unit of
 * each sample: the call in one slot of the mailbox, or, by a kernel that stays, all that come.
 *
 * A lane looks for its own input and gets what the others found by shuffles. Weights lie in shared
 * memory, every layer as wide as a sample has lanes, with zeros where there are none: nothing
 * about layers is looked up on the way but the function.
 *
 * A kernel that stays has a few such warps, which all look for the next question, each in its own
 * time, since a look takes a microsecond to the host and back: alone, one would leave half of that,
 * on average, after the question came. Who sees it first has it; the others find that it is taken.
 * More than three hold each other up on the bus. Bound: half a look, and the answer's way, about as
 * long. */
#include "backend/cuda/stack/answer_calls.h"

enum { WATCHERS = 3, FETCHERS_MOST = 512 }; /* warps; threads that fetch weights of a call */

/* A layer's weights and, as one more row, its biases. */
#define ANSWER_LAYER(width) (((width) + 1) * (width))

static size_t shared_bytes(const struct answer_net *net)
{
    return (size_t)net->layers * (size_t)ANSWER_LAYER(net->width) * sizeof(float);
}

bool answer_warp_takes(const struct answer_net *net)
{
    return net->batch * net->width <= 32 && shared_bytes(net) <= 40 << 10;
}

template <int WIDTH> static __device__ void take_weights(const struct answer_net *net, float *to)
{
    const int count = net->layers * ANSWER_LAYER(WIDTH);
#pragma unroll 4
    for (int k = (int)threadIdx.x; k < count; k += (int)blockDim.x) {
        const struct answer_layer &layer = net->layer[k / ANSWER_LAYER(WIDTH)];
        const int i = k % ANSWER_LAYER(WIDTH) / WIDTH, o = k % WIDTH;
        const float *from = i < layer.in            ? layer.w + i * layer.out
                            : i == WIDTH && layer.b ? layer.b
                                                    : NULL;
        to[k] = from && o < layer.out ? __ldg(from + o) : 0.0f;
    }
}

/* What a lane must know of each layer: whether its unit is there, and the function. */
struct layer_bits {
    uint32_t there;
    uint64_t functions; /* four bits each */
};
static_assert(DENSE_STACK_MOST <= 16, "");

static __device__ struct layer_bits bits_of(const struct answer_net *net, int unit)
{
    struct layer_bits bits = {};
    for (int l = 0; l < net->layers; l++) {
        bits.there |= (unit < net->layer[l].out ? 1u : 0u) << l;
        bits.functions |= (uint64_t)net->layer[l].function << 4 * l;
    }
    return bits;
}

/* From the unit's input to its last output. Units that are not there are 0. */
template <int WIDTH>
static __device__ float forward(int layers, const float *weights, struct layer_bits bits, float x)
{
    weights += threadIdx.x % WIDTH;
    for (int l = 0; l < layers; l++, weights += ANSWER_LAYER(WIDTH)) {
        float even = weights[WIDTH * WIDTH], odd = 0.0f;
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            float &sum = k % 2 ? odd : even;
            sum = fmaf(__shfl_sync(~0u, x, k, WIDTH), weights[k * WIDTH], sum);
        }
        x = stack_activation((enum activation)(bits.functions >> 4 * l & 15), even + odd);
        x = bits.there >> l & 1 ? x : 0.0f;
    }
    return x;
}

template <int WIDTH, bool STAYS>
static __global__ void __launch_bounds__(STAYS ? 32 * WATCHERS : (int)FETCHERS_MOST)
    answer_warp(const __grid_constant__ struct answer_net net, uint32_t first)
{
    extern __shared__ float weights[];
    __shared__ uint32_t next; /* the question that nobody has taken yet */
    const int lane = (int)threadIdx.x % 32, n = lane / WIDTH, unit = lane % WIDTH;
    const int in = net.layer[0].in, out = net.layer[net.layers - 1].out;
    const bool asks = n < net.batch && unit < in, answers = n < net.batch && unit < out;
    const int input = n * in + unit, output = n * out + unit;
    const struct layer_bits bits = bits_of(&net, unit);
    uint64_t note = 0;
    if (!STAYS && asks && threadIdx.x < 32)
        note = note_look(net.mail.question(first) + input);
    take_weights<WIDTH>(&net, weights);
    if (threadIdx.x == 0)
        next = first;
    __syncthreads();
    if (!STAYS) { /* its number is in the question */
        if (threadIdx.x >= 32)
            return;
        const uint32_t number = __shfl_sync(~0u, note_number(note), 0);
        const float y = forward<WIDTH>(net.layers, weights, bits, __uint_as_float((uint32_t)note));
        if (answers)
            note_put(net.mail.answer(first) + output, y, number);
        return;
    }
    uint32_t last = first;
    for (int look = 1; look <= MAIL_LOOKS; look++) {
        const uint32_t number = __shfl_sync(~0u, lane == 0 ? atomicAdd(&next, 0) : 0, 0);
        note = asks ? note_look(net.mail.question(number) + input) : 0;
        if (__all_sync(~0u, !asks || note_number(note) == number)) {
            uint32_t found = 0; /* asked for while the answer is computed */
            if (lane == 0)
                found = atomicCAS(&next, number, number + 1);
            const float y =
                forward<WIDTH>(net.layers, weights, bits, __uint_as_float((uint32_t)note));
            if (__shfl_sync(~0u, found, 0) == number && answers)
                note_put(net.mail.answer(number) + output, y, number);
        }
        if (number != last) {
            last = number;
            look = 1;
        }
        if (look % MAIL_STOPS == 0 && __any_sync(~0u, lane == 0 && note_look(net.mail.stop) != 0))
            return;
    }
}

template <bool STAYS> static void *kernel_for(int32_t width)
{
    return width == 8    ? (void *)answer_warp<8, STAYS>
           : width == 16 ? (void *)answer_warp<16, STAYS>
                         : (void *)answer_warp<32, STAYS>;
}

static cudaError_t launch(struct answer *answer, uint32_t first, bool stays, cudaStream_t stream)
{
    struct answer_net *net = &answer->net;
    void *arguments[] = {net, &first};
    const int32_t quarter = round_up(net->layers * ANSWER_LAYER(net->width) / 4, 32);
    const int32_t threads = stays                     ? 32 * WATCHERS
                            : quarter < FETCHERS_MOST ? quarter
                                                      : (int32_t)FETCHERS_MOST;
    return cudaLaunchKernel(stays ? kernel_for<true>(net->width) : kernel_for<false>(net->width),
                            dim3(1), dim3((unsigned)threads), arguments, shared_bytes(net), stream);
}

const struct answer_kernel calls_by_warp = {true, NULL, launch, NULL};
