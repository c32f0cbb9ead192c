/* recurrent.h: what layers over time share: the samples' lengths, the running state, and the way
 * back from the sums of all steps to what made them. */
#ifndef PRONY_BACKEND_CUDA_RECURRENT_H
#define PRONY_BACKEND_CUDA_RECURRENT_H

#include "backend/cuda/launch.h"

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

/* recurrent.cu. From the gradients of the sums with x and with h, [n, steps, gates] each, those of
 * all that made them. x, wx, wh and y are operands 0 to 3 of all these ops; their outputs begin dx,
 * dwx, dwh, dbx, dbh. */
void sums_grad(const struct call *call, struct queue *queue, const float *h0, const float *dgates,
               const float *dsums, bool accumulate);
uint64_t workspace_sums_grad(const struct program *program, const struct op *op);

#endif
