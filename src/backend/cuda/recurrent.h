/* recurrent.h: what layers over time share: the samples' lengths, the running state, and the way
 * back from the sums of all steps to what made them. */
#ifndef PRONY_BACKEND_CUDA_RECURRENT_H
#define PRONY_BACKEND_CUDA_RECURRENT_H

#include "backend/cuda/gemm.h"
#include "backend/cuda/reduce.h"

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

/* The state each step started from, by column: y one step earlier, h0 at the first. Where a
 * sequence has ended this is not it, but the gates' gradients are 0 there. */
struct state_before {
    const float *y, *h0; /* h0 may be NULL */
    int64_t steps, hidden;
    static constexpr bool along_depth = false;
    __device__ float at(int64_t position, int64_t depth) const
    {
        if (depth % steps > 0)
            return y[(depth - 1) * hidden + position];
        return h0 ? h0[depth / steps * hidden + position] : 0.0f;
    }
};

/* From the gradients of the sums with x and with h, [n, steps, gates] each, those of all that made
 * them. x, wx, wh and y are operands 0 to 3 of all these ops; their outputs begin dx, dwx, dwh,
 * dbx, dbh. */
static inline void sums_grad(const struct call *call, struct queue *queue, const float *h0,
                             const float *dgates, const float *dsums, bool accumulate)
{
    const int64_t n = call_dim(call, 0, 0), steps = call_dim(call, 0, 1), in = call_dim(call, 0, 2);
    const int64_t hidden = call_dim(call, 2, 0), all = call_dim(call, 2, 1);
    const int32_t dx = call->op->inputs, dwx = dx + 1, dwh = dx + 2, dbx = dx + 3, dbh = dx + 4;
    const struct state_before before = {call_reals(call, 3), h0, steps, hidden};

    if (call_has(call, dx))
        gemm(queue, n * steps, in, all, by_row{dgates, all}, by_row{call_reals(call, 1), all},
             to_layer{call_reals(call, dx), in, NULL, ACTIVATION_NONE});
    gemm(queue, in, all, n * steps, by_column{call_reals(call, 0), in}, by_column{dgates, all},
         to_gradient{call_reals(call, dwx), all, 1.0f, accumulate});
    gemm(queue, hidden, all, n * steps, before, by_column{dsums, all},
         to_gradient{call_reals(call, dwh), all, 1.0f, accumulate});
    sum_rows(queue, n * steps, all, reduce_value{dgates},
             to_gradient{call_reals(call, dbx), 0, 1.0f, accumulate});
    sum_rows(queue, n * steps, all, reduce_value{dsums},
             to_gradient{call_reals(call, dbh), 0, 1.0f, accumulate});
}

#endif
