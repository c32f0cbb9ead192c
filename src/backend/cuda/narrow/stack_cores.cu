/* stack_cores.cu: see stack_cores.h.
 *
 * A block has some tiles of eight outputs of every layer but the last, whole, and keeps their
 * weights in shared memory for the launch; what does not fit is read anew in every step, and is on
 * its way while the block waits for its inputs. Warps share the depth, 64 bytes at a time. Tensor
 * cores (mma.sync) have samples as rows and outputs as columns; they take depths in any order if
 * both factors have the same, so a lane's are the eight neighbouring bytes that it reads. Warps'
 * sums are added up in order; the outputs are rounded to 8 or 16 bits as every product reads them.
 *
 * The last block feeds the others with the inputs of a step and makes the last layer, while they
 * are a step ahead. Blocks never meet at a barrier: what they tell each other are packets of 16
 * bytes, eight of them results of one sample, and the number of the step, written and read as one.
 * Who needs a packet reads it until the number is right.
 *
 * There are two sets of packets, for even and odd steps. Inputs of step t are handed out when the
 * last block has had all of step t - 2; each other block has a tile of every layer, so by then all
 * have read what step t overwrites.
 *
 * Bound: an exchange costs about 0.9 µs, and a step of L layers has L - 1 of them; weights are read
 * from shared memory. */
#include "backend/cuda/narrow/stack_cores_block.h"

#if __CUDA_ARCH__ >= 900

/* The data of steps, for the last block. */
struct cores_data {
    const struct cores_net &net;
    uint64_t place, samples;
    const uint32_t *order;
    const float *data;
    __device__ cores_data(const struct cores_net &net_)
        : net(net_), place(net_.feed->place), samples(net_.feed->samples), order(net_.feed->order),
          data((const float *)net_.view_x->data)
    {
    }
    /* The rows of a step, by all threads. */
    __device__ void find_rows(int64_t step, uint64_t *rows) const
    {
        __syncthreads();
        if ((int)threadIdx.x < net.batch) {
            const uint64_t ahead = (uint64_t)(step * net.batch) + threadIdx.x;
            const uint64_t at = (place + ahead) % samples;
            rows[threadIdx.x] = order ? __ldg(&order[at]) : at;
        }
        __syncthreads();
    }
};

/* All other blocks have read the number of the last step: it may move. */
static __device__ void leave_turn(const struct cores_net &net, uint32_t last)
{
    if (threadIdx.x > 0)
        return;
    while (number_look(net.came) != gridDim.x - 1)
        continue;
    *net.came = 0;
    *net.turn = last;
}

/* Notes of question `call`, as far as they are there, to `heard`. All threads: are all? */
static __device__ bool look_at_question(const struct mailbox &mail, uint32_t call, float *heard)
{
    const uint64_t *from = mail.question(call);
    bool all = true;
    for (int i = (int)threadIdx.x; i < mail.inputs; i += CORES_THREADS) {
        const uint64_t note = note_look(&from[i]);
        heard[i] = __uint_as_float((uint32_t)note);
        all = all && note_number(note) == call;
    }
    return __syncthreads_and(all);
}

/* The question in a slot, which is there. Returns its number. */
static __device__ uint32_t read_question(const struct mailbox &mail, uint32_t slot, float *heard)
{
    __shared__ uint32_t call;
    const uint64_t *from = mail.question(slot);
    for (int i = (int)threadIdx.x; i < mail.inputs; i += CORES_THREADS) {
        const uint64_t note = note_look(&from[i]);
        heard[i] = __uint_as_float((uint32_t)note);
        if (i == 0)
            call = note_number(note);
    }
    __syncthreads();
    return call;
}

/* False: nobody asks any more. */
static __device__ bool wait_for_question(const struct mailbox &mail, uint32_t call, float *heard)
{
    for (int look = 1; look <= MAIL_LOOKS; look++) {
        if (look_at_question(mail, call, heard))
            return true;
        if (look % MAIL_STOPS == 0 &&
            __syncthreads_or(threadIdx.x == 0 && note_look(mail.stop) != 0))
            return false;
    }
    return false;
}

/* Output o of `out` as its share of all. */
static __device__ float softmax_of(const float *values, int out, int o)
{
    float most = values[0], sum = 0.0f;
    for (int i = 1; i < out; i++)
        most = fmaxf(most, values[i]);
    for (int i = 0; i < out; i++)
        sum += expf(values[i] - most);
    return expf(values[o] - most) / sum;
}

/* Hands the answer of a step out: put(sample, output, value). */
template <typename Block, typename Put> static __device__ void end_step(const Block &block, Put put)
{
    const int batch = block.net.batch, out = block.net.layer[block.net.layers - 1].out;
    float *finals = (float *)(block.shared + block.net.finals_at); /* [batch][out] */
    for (int e = block.thread; e < batch * out; e += CORES_THREADS) {
        const int sample = e / out, o = e % out;
        const float value = block.final_value(o / CORES_TILE, sample, o % CORES_TILE);
        if (block.net.softmax)
            finals[e] = value;
        else
            put(sample, o, value);
    }
    if (!block.net.softmax)
        return;
    __syncthreads();
    for (int e = block.thread; e < batch * out; e += CORES_THREADS)
        put(e / out, e % out, softmax_of(&finals[e / out * out], out, e % out));
}

template <typename Block>
static __device__ void last_layer(Block &block, uint32_t number, bool first)
{
    const int last = block.net.layers - 1;
    block.take_inputs(last, number, first);
    block.multiply(last);
}

/* The last block, of steps: inputs are handed out as far ahead as may be. */
template <typename Block>
static __device__ void end_steps(Block &block, uint32_t first, int64_t steps)
{
    const struct cores_net &net = block.net;
    const struct cores_data data(net);
    const int in = net.layer[0].in, out = net.layer[net.layers - 1].out;
    __shared__ uint64_t rows[2][CORES_BATCH_MOST]; /* of even and of odd steps */
    const auto feed = [&](int64_t step) {
        const uint64_t *own = rows[step & 1];
        if (step == steps)
            return;
        data.find_rows(step, rows[step & 1]);
        block.feed(first + (uint32_t)step, true, [&](int sample, int feature) {
            return __ldg(&data.data[own[sample] * (uint64_t)in + (uint64_t)feature]);
        });
    };
    feed(0);
    for (int64_t done = 0; done < steps; done++) {
        feed(done + 1);
        last_layer(block, first + (uint32_t)done, done == 0);
        if (net.view_y && net.view_y->data)
            end_step(block, [&](int sample, int o, float value) {
                const uint64_t row = rows[done & 1][sample];
                net.view_y->data[row * (uint64_t)out + (uint64_t)o] = __float_as_uint(value);
                net.view_y->written[row] = 1;
            });
    }
    if (block.thread == 0)
        net.feed->place += (uint64_t)(steps * net.batch);
    leave_turn(net, first + (uint32_t)steps - 1);
}

/* … of one call, whose question is there, or of all from `call` on. */
template <typename Block>
static __device__ void end_calls(Block &block, uint32_t first, uint32_t call, bool stays)
{
    const struct cores_net &net = block.net;
    const int in = net.layer[0].in, out = net.layer[net.layers - 1].out;
    float *heard = (float *)(block.shared + net.heard_at);
    const auto feed = [&](uint32_t number, bool goes_on) {
        block.feed(number, goes_on,
                   [&](int sample, int feature) { return heard[sample * in + feature]; });
        __syncthreads();
    };
    if (!stays) {
        call = read_question(net.mail, call, heard);
        feed(first, true);
    }
    bool ahead = !stays;
    uint32_t done = 0;
    for (;; done++) {
        if (!ahead) {
            const bool goes_on = wait_for_question(net.mail, call + done, heard);
            feed(first + done, goes_on);
            if (!goes_on)
                break;
        }
        ahead = stays && look_at_question(net.mail, call + done + 1, heard);
        if (ahead)
            feed(first + done + 1, true);
        last_layer(block, first + done, done == 0);
        end_step(block, [&](int sample, int o, float value) {
            note_put(net.mail.answer(call + done) + sample * out + o, value, call + done);
        });
        if (!stays)
            break;
    }
    leave_turn(net, first + done);
}

#endif

template <enum cores_number NUMBER, bool UPPER>
static __global__ void __launch_bounds__(CORES_THREADS, 1)
    stack_cores(const __grid_constant__ struct cores_net net, enum cores_task task, int64_t count)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 cores_shared[];
    struct cores_block<NUMBER, UPPER> block(net, (char *)cores_shared);
    const uint32_t first = number_look(net.turn) + 1;
    block.settle();
    __syncthreads();
    if (!block.ends && block.thread == 0)
        atomicAdd(net.came, 1u);
    if (block.ends) {
        if (task == CORES_STEPS)
            end_steps(block, first, count);
        else
            end_calls(block, first, (uint32_t)count, task == CORES_CALLS);
        return;
    }
    const int64_t most = task == CORES_STEPS ? count : task == CORES_CALL ? 1 : INT64_MAX;
    for (int64_t done = 0; done < most; done++)
        for (int l = 0; l < net.layers - 1; l++) {
            const uint32_t number = first + (uint32_t)done;
            block.fetch_far(l);
            if (!block.take_inputs(l, number, done == 0))
                return;
            block.multiply(l);
            block.hand_out(l, number);
        }
#endif
}

/* A thread has 16 bytes of one output: eight of each half of a pair. */
template <typename Element>
static __global__ void pack_weights(int64_t in, int64_t out, int64_t pieces, int32_t pairs,
                                    const Element *w, uint4 *to)
{
    constexpr int SOME = 8 / (int)sizeof(Element);
    FOR_EACH(piece, pieces)
    {
        const int lane = (int)(piece % 32);
        const int64_t pair = piece / 32 % pairs, tile = piece / 32 / pairs;
        const int64_t column = tile * CORES_TILE + lane / 4;
        alignas(16) Element own[2 * SOME];
#pragma unroll
        for (int i = 0; i < 2 * SOME; i++) {
            const int64_t depth = ((2 * pair + i / SOME) * 4 + lane % 4) * SOME + i % SOME;
            own[i] = depth < in && column < out ? w[depth * out + column] : (Element)0;
        }
        to[piece] = *(const uint4 *)own;
    }
}

cudaError_t cores_pack(const void *w, int64_t in, int64_t out, int32_t element_bytes, int32_t tiles,
                       int32_t pairs, uint4 *to, cudaStream_t stream)
{
    const int64_t pieces = (int64_t)tiles * pairs * 32;
    const unsigned blocks = blocks_striding(pieces);
    if (element_bytes == 1)
        pack_weights<<<blocks, THREADS, 0, stream>>>(in, out, pieces, pairs, (const int8_t *)w, to);
    else
        pack_weights<<<blocks, THREADS, 0, stream>>>(in, out, pieces, pairs, (const uint16_t *)w,
                                                     to);
    return cudaGetLastError();
}

template <bool UPPER> static void *cores_kernel(enum cores_number number)
{
    return number == CORES_INT8   ? (void *)stack_cores<CORES_INT8, UPPER>
           : number == CORES_BF16 ? (void *)stack_cores<CORES_BF16, UPPER>
                                  : (void *)stack_cores<CORES_FP16, UPPER>;
}

cudaError_t cores_launch(const struct cores_net *net, enum cores_task task, int64_t count,
                         cudaStream_t stream)
{
    void *kernel =
        net->batch > 8 ? cores_kernel<true>(net->number) : cores_kernel<false>(net->number);
    void *arguments[] = {(void *)net, &task, &count};
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, net->bytes);
    if (error == cudaSuccess)
        error =
            cudaLaunchCooperativeKernel(kernel, dim3((unsigned)net->blocks), dim3(CORES_THREADS),
                                        arguments, (size_t)net->bytes, stream);
    return error;
}
