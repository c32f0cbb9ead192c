/* recurrent.h: what layers over time share: the samples' lengths, the running state, and the
 * backward pass from the sums of all steps to what made them. */
#ifndef PRONY_BACKEND_CUDA_RECURRENT_H
#define PRONY_BACKEND_CUDA_RECURRENT_H

#include "backend/cuda/device/launch.h"

struct sequence {
    int64_t n, steps, hidden;
    const int32_t *lengths; /* [n], or NULL: all are whole */
    __device__ bool active(int64_t sample, int64_t step) const
    {
        return !lengths || step < lengths[sample];
    }
};

/* Gates of all samples: those of one unit lie `hidden` apart. */
struct gate_block {
    float *data;
    int64_t sample_stride, step_stride;
    __device__ float *of(int64_t sample, int64_t step, int64_t unit) const
    {
        return data + sample * sample_stride + step * step_stride + unit;
    }
};

/* A layer whose samples do not need each other: a block has a few of them and goes through all
 * steps, the recurrent weights in shared memory, a thread for each sample and unit. */
struct persistent_layer {
    struct sequence sequence;
    int32_t gates;   /* sums of a unit */
    int32_t width;   /* threads of a sample: its units, in whole warps */
    int32_t samples; /* of a block */
    /* Of a row of weights: padded, so that neither rows nor columns meet in a bank. */
    __host__ __device__ int64_t stride() const
    {
        return gates * sequence.hidden + 1;
    }
    /* Weights, and what a sample's units tell each other. */
    size_t bytes() const
    {
        return (size_t)(sequence.hidden * stride() + samples * gates * sequence.hidden) *
               sizeof(float);
    }
    unsigned blocks() const
    {
        return blocks_for(sequence.n, samples);
    }
};

static inline struct persistent_layer lay_out(const struct sequence &sequence, int32_t gates)
{
    const int32_t width = (int32_t)blocks_for(sequence.hidden, 32) * 32;
    return {sequence, gates, width, THREADS / width};
}

/* The sample and unit of a thread, and what its block shares. */
struct persistent_seat {
    int32_t slot, unit;
    int64_t sample, cell;
    bool lives;
    float *weights; /* shared: [hidden, stride] */
    float *own;     /* shared: [gates · hidden], of the thread's sample */
    __device__ persistent_seat(const struct persistent_layer &layer, float *shared, const float *wh)
    {
        const int64_t hidden = layer.sequence.hidden, all = layer.gates * hidden;
        slot = (int32_t)threadIdx.x / layer.width;
        unit = (int32_t)threadIdx.x % layer.width;
        sample = (int64_t)blockIdx.x * layer.samples + slot;
        cell = sample * hidden + unit;
        lives = slot < layer.samples && unit < hidden && sample < layer.sequence.n;
        weights = shared;
        own = shared + hidden * layer.stride() + slot * all;
        for (int64_t i = threadIdx.x; i < hidden * all; i += THREADS)
            weights[i / all * layer.stride() + i % all] = wh[i];
    }
};

/* to = from, or 0 where there is none. */
static __global__ void state_begin(int64_t count, const float *from, float *to)
{
    FOR_EACH(index, count)
    to[index] = from ? from[index] : 0.0f;
}

static inline void begin_state(struct queue *queue, int64_t count, const float *from, float *to)
{
    enqueue(queue, state_begin, dim3(blocks_striding(count)), dim3(THREADS), count, from, to);
}

/* dh = sum, or added to what is there; where a sample's sequence has ended, its state stood still
 * and dh passes through. */
struct to_state {
    float *dh;
    struct sequence sequence;
    int64_t step;
    bool add;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        float *to = &dh[row * sequence.hidden + col];
        if (sequence.active(row, step))
            *to = add ? *to + sum : sum;
    }
};

/* recurrent.cu. x, wx and bx are operands 0, 1 and 3 of all these ops: x·Wx + bx of all steps, in
 * rows `stride` apart. `room` is workspace_inputs. */
void sums_of_inputs(const struct call *call, struct queue *queue, float *sums, int64_t stride,
                    void *room);
uint64_t workspace_inputs(const struct program *program, const struct op *op);

/* Bytes up to where the next part of a workspace may begin. */
static inline uint64_t padded(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* What the device at hand has of something; on paper what an H200 has. */
int64_t device_has(enum cudaDeviceAttr what, int64_t on_paper);

/* From the gradients of the sums with x and with h, [n, steps, gates] each, those of
 * all that made them. x, wx, wh and y are operands 0 to 3 of all these ops; their outputs begin dx,
 * dwx, dwh, dbx, dbh. */
void sums_grad(const struct call *call, struct queue *queue, const float *h0, const float *dgates,
               const float *dsums, bool accumulate);
uint64_t workspace_sums_grad(const struct program *program, const struct op *op);

#endif
