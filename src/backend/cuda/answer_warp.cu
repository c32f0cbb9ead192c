/* answer_warp.cu: calls of a network of which one warp has a whole batch, a lane for each unit of
 * each sample: the call in one slot of the mailbox by one warp, or, by a kernel that stays, all
 * that come.
 *
 * A lane looks for its own input and gets what the others found by shuffles; parameters lie in
 * shared memory. There is no barrier. A kernel that stays has several such warps, which all look
 * for the next question, each in its own time, since a look takes more than a microsecond on its
 * way to the host and back: of one warp alone it would leave, on average, half of that after the
 * question came. Who sees it first has it; the others find that it is taken. Bound: half a look,
 * the way back, and writing the answer, about half of that again. */
#include "backend/cuda/answer_calls.h"

enum { WATCHERS = 4 };

bool answer_warp_takes(const struct answer_net *net)
{
    return net->batch * net->width <= 32;
}

/* From the lane's input to its unit's last output. */
static __device__ float ascend(const struct answer_net *net, const float *parameters, float x)
{
    enum { AT_ONCE = 4 };
    const int lane = (int)threadIdx.x % 32, unit = lane % net->width, sample = lane - unit;
    for (int l = 0; l < net->layers; l++) {
        const struct answer_layer &layer = net->layer[l];
        const int mine = unit < layer.out ? unit : 0;
        const float *w = parameters + (layer.w - net->parameters) + mine;
        float sum = layer.b ? parameters[layer.b - net->parameters + mine] : 0.0f;
        for (int first = 0; first < layer.in; first += AT_ONCE) {
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const int i = first + k < layer.in ? first + k : first;
                const float input = __shfl_sync(~0u, x, sample + i), weight = w[i * layer.out];
                sum = first + k < layer.in ? fmaf(input, weight, sum) : sum;
            }
        }
        x = whole_activation(layer.function, sum);
    }
    return x;
}

template <bool STAYS>
static __global__ void __launch_bounds__(32 * WATCHERS)
    answer_warp(const __grid_constant__ struct answer_net net, uint32_t first)
{
    extern __shared__ float parameters[];
    __shared__ uint32_t next; /* the question that nobody has taken yet */
    const int lane = (int)threadIdx.x % 32, n = lane / net.width, unit = lane % net.width;
    const int in = net.layer[0].in, out = net.layer[net.layers - 1].out;
    const bool asks = n < net.batch && unit < in, answers = n < net.batch && unit < out;
    const int input = n * in + unit, output = n * out + unit;
    if constexpr (!STAYS) { /* its number is in it */
        const uint64_t note = asks ? note_look(net.mail.question(first) + input) : 0;
        answer_take_parameters(&net, parameters);
        __syncwarp();
        const float y = ascend(&net, parameters, __uint_as_float((uint32_t)note));
        const uint32_t number = __shfl_sync(~0u, note_number(note), 0);
        if (answers)
            note_put(net.mail.answer(first) + output, y, number);
        return;
    }
    answer_take_parameters(&net, parameters);
    if (threadIdx.x == 0)
        next = first;
    __syncthreads();
    uint32_t last = first;
    for (int look = 1; look <= MAIL_LOOKS; look++) {
        const uint32_t number = __shfl_sync(~0u, lane == 0 ? atomicAdd(&next, 0) : 0, 0);
        const uint64_t note = asks ? note_look(net.mail.question(number) + input) : 0;
        if (__all_sync(~0u, !asks || note_number(note) == number)) {
            uint32_t found = 0; /* asked for while the answer is computed */
            if (lane == 0)
                found = atomicCAS(&next, number, number + 1);
            const float y = ascend(&net, parameters, __uint_as_float((uint32_t)note));
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

cudaError_t answer_warp_launch(const struct answer_net *net, uint32_t first, bool stays,
                               cudaStream_t stream)
{
    void *arguments[] = {(void *)net, &first};
    return cudaLaunchKernel(stays ? (void *)answer_warp<true> : (void *)answer_warp<false>, dim3(1),
                            dim3(stays ? 32 * WATCHERS : 32), arguments, net->span * sizeof(float),
                            stream);
}
