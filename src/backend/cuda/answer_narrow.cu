/* answer_narrow.cu: calls of a network whose layers are at most 32 wide, by one block: the call in
 * one slot of the mailbox, or, by a kernel that stays, all that come.
 *
 * A thread is a unit of a sample. Weights and biases are fetched into shared memory while the
 * question is waited for; a layer is a dot product and a barrier. Bound: reading the question over
 * the bus, about 1 µs, and writing the answer, half of that. */
#include "backend/cuda/answer.h"

/* Floats of shared memory: parameters, then inputs and outputs of the layer at hand. */
static __host__ __device__ int narrow_parameters(const struct answer_net *net)
{
    int count = 0;
    for (int l = 0; l < net->layers; l++)
        count += (net->layer[l].in + 1) * net->layer[l].out;
    return count;
}

int64_t narrow_shared_bytes(const struct answer_net *net)
{
    return 4 * (int64_t)(narrow_parameters(net) + 2 * net->batch * net->width);
}

static __global__ void __launch_bounds__(BLOCK_THREADS_MOST)
    answer_narrow(const __grid_constant__ struct answer_net net, uint32_t first, bool stays)
{
    extern __shared__ float parameters[];
    float *lines[2];
    const int thread = (int)threadIdx.x, threads = (int)blockDim.x;
    const int n = thread / net.width, unit = thread % net.width;
    const int in = net.layer[0].in;
    const int sample = thread / in * net.width + thread % in; /* where this thread's note goes */
    __shared__ uint32_t shared_number;
    uint64_t note = thread < net.mail.inputs ? note_look(net.mail.question(first) + thread) : 0;
    lines[0] = parameters + narrow_parameters(&net);
    lines[1] = lines[0] + net.batch * net.width;
    float *to = parameters;
    for (int l = 0; l < net.layers; l++) {
        const struct answer_layer &layer = net.layer[l];
        for (int k = thread; k < layer.in * layer.out; k += threads)
            to[k] = layer.w[k];
        to += layer.in * layer.out;
        for (int k = thread; k < layer.out; k += threads)
            to[k] = layer.b ? layer.b[k] : 0.0f;
        to += layer.out;
    }
    for (uint32_t number = first; !stays || mail_wait(net.mail, number, &note); number++) {
        const float *w = parameters;
        if (thread < net.mail.inputs)
            lines[0][sample] = __uint_as_float((uint32_t)note);
        if (thread == 0)
            shared_number = note_number(note);
        __syncthreads();
        for (int l = 0; l < net.layers; l++) {
            const struct answer_layer &layer = net.layer[l];
            const float *x = lines[l % 2] + n * net.width, *b = w + layer.in * layer.out;
            if (n < net.batch && unit < layer.out) {
                float sum = b[unit];
#pragma unroll 4
                for (int i = 0; i < layer.in; i++)
                    sum = fmaf(x[i], w[i * layer.out + unit], sum);
                sum = whole_activation(layer.function, sum);
                if (l < net.layers - 1)
                    lines[(l + 1) % 2][n * net.width + unit] = sum;
                else
                    note_put(net.mail.answer(number) + n * layer.out + unit, sum, shared_number);
            }
            w = b + layer.out;
            __syncthreads();
        }
        if (!stays)
            return;
    }
}

cudaError_t narrow_launch(const struct answer_net *net, uint32_t first, bool stays,
                          cudaStream_t stream)
{
    void *arguments[] = {(void *)net, &first, &stays};
    const int threads = round_up(net->batch * net->width, 32);
    return cudaLaunchKernel((void *)answer_narrow, dim3(1), dim3((unsigned)threads), arguments,
                            (size_t)narrow_shared_bytes(net), stream);
}
