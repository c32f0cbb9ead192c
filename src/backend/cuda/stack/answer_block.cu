/* answer_block.cu: calls of a network whose layers are at most 32 wide, by one block: the call in
 * one slot of the mailbox, or, by a kernel that stays, all that come.
 *
 * A thread is a unit of a sample. Weights and biases are fetched into shared memory while the
 * question is waited for; a layer is a dot product and a barrier. Bound: reading the question over
 * the bus, about 1 µs, and writing the answer, half of that. */
#include "backend/cuda/stack/answer_calls.h"

/* Parameters, then inputs and outputs of the layer at hand. */
int64_t answer_block_bytes(const struct answer_net *net)
{
    return 4 * (net->span + 2 * (int64_t)net->batch * net->width);
}

/* All loads that can be on their way at once are. */
static __device__ void take_parameters(const struct answer_net *net, float *to)
{
    enum { AT_ONCE = 8 };
    const int threads = (int)blockDim.x;
    for (int k = (int)threadIdx.x; k < net->span; k += AT_ONCE * threads) {
        float some[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            some[j] = k + j * threads < net->span ? __ldg(&net->parameters[k + j * threads]) : 0.0f;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (k + j * threads < net->span)
                to[k + j * threads] = some[j];
    }
}

/* Compiled twice: what keeps a note while it waits also holds back what need not wait. */
template <bool STAYS>
static __global__ void __launch_bounds__(BLOCK_THREADS_MOST)
    answer_block(const __grid_constant__ struct answer_net net, uint32_t first)
{
    extern __shared__ float parameters[];
    __shared__ uint32_t shared_number;
    float *const lines = parameters + net.span; /* [2][batch][width] */
    const int thread = (int)threadIdx.x, line = net.batch * net.width;
    const int n = thread / net.width, unit = thread % net.width, in = net.layer[0].in;
    const int sample = thread / in * net.width + thread % in; /* where this thread's note goes */
    uint64_t note = 0;
    if (!STAYS && thread < net.mail.inputs)
        note = note_look(net.mail.question(first) + thread);
    take_parameters(&net, parameters);
    for (uint32_t number = first; !STAYS || mail_wait(net.mail, number, &note); number++) {
        if (thread < net.mail.inputs)
            lines[sample] = __uint_as_float((uint32_t)note);
        if (thread == 0)
            shared_number = note_number(note);
        __syncthreads();
        for (int l = 0; l < net.layers; l++) {
            const struct answer_layer &layer = net.layer[l];
            const float *x = lines + l % 2 * line + n * net.width;
            const float *w = parameters + (layer.w - net.parameters) + unit;
            if (n < net.batch && unit < layer.out) {
                float sum = layer.b ? parameters[layer.b - net.parameters + unit] : 0.0f;
#pragma unroll 4
                for (int i = 0; i < layer.in; i++)
                    sum = fmaf(x[i], w[i * layer.out], sum);
                sum = stack_activation(layer.function, sum);
                if (l < net.layers - 1)
                    lines[(l + 1) % 2 * line + n * net.width + unit] = sum;
                else
                    note_put(net.mail.answer(number) + n * layer.out + unit, sum, shared_number);
            }
            __syncthreads();
        }
        if (!STAYS)
            return;
    }
}

static cudaError_t launch(struct answer *answer, uint32_t first, bool stays, cudaStream_t stream)
{
    struct answer_net *net = &answer->net;
    void *arguments[] = {net, &first};
    const int threads = round_up(net->batch * net->width, 32);
    return cudaLaunchKernel(stays ? (void *)answer_block<true> : (void *)answer_block<false>,
                            dim3(1), dim3((unsigned)threads), arguments,
                            (size_t)answer_block_bytes(net), stream);
}

const struct answer_kernel calls_by_block = {true, NULL, launch, NULL};
