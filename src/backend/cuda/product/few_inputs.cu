/* few_inputs.cu: see few_inputs.h. Up: a thread has the weights of one output in registers and goes
 * through samples. The update: a thread has one output and every 32nd sample; what the lines of a
 * block have summed is added up in order. Bound: the bytes of y, or of dy. */
#include "backend/cuda/product/few_inputs.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/device/optimiser_rules.h"

enum { WIDE = 32, LINES = 8, ROWS = 4 }; /* a block: 32 outputs of 32 samples, 4 a thread */

static __global__ void __launch_bounds__(WIDE *LINES)
    few_inputs_up(int64_t n, int64_t i, int64_t o, const float *x, const float *w,
                  const float *bias, enum activation function, float *y)
{
    const uint32_t across = (uint32_t)((o + WIDE - 1) / WIDE);
    const int64_t output = (int64_t)(blockIdx.x % across) * WIDE + threadIdx.x;
    float weights[FEW_INPUTS_MOST], constant = 0.0f;
    allow_next();
    if (output < o) {
#pragma unroll
        for (int k = 0; k < FEW_INPUTS_MOST; k++)
            weights[k] = k < i ? w[k * o + output] : 0.0f;
        constant = bias ? bias[output] : 0.0f;
    }
    await_last();
    if (output >= o)
        return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = ((int64_t)(blockIdx.x / across) * ROWS + r) * LINES + threadIdx.y;
        float sum = 0.0f;
        if (row >= n)
            return;
#pragma unroll
        for (int k = 0; k < FEW_INPUTS_MOST; k++)
            if (k < i)
                sum = fmaf(x[row * i + k], weights[k], sum);
        y[row * o + output] = activation_value(function, sum + constant);
    }
}

void few_inputs_layer(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *x,
                      const float *w, const float *bias, enum activation function, float *y)
{
    enqueue_early(queue, few_inputs_up, dim3(blocks_for(o, WIDE) * blocks_for(n, LINES * ROWS)),
                  dim3(WIDE, LINES), 0, n, i, o, x, w, bias, function, y);
}

enum { UPDATE_LINES = 32, INPUTS_AND_BIAS = FEW_INPUTS_MOST + 1 };

static __global__ void __launch_bounds__(WIDE *UPDATE_LINES)
    few_inputs_sgd(int64_t n, int i, int64_t o, const float *x, const float *dy, const float *rate,
                   float *w, float *b)
{
    __shared__ float lines[INPUTS_AND_BIAS][UPDATE_LINES][WIDE + 1];
    const int column = (int)threadIdx.x, line = (int)threadIdx.y;
    const int64_t output = (int64_t)blockIdx.x * WIDE + column;
    const bool is_bias = line == FEW_INPUTS_MOST;
    float sums[INPUTS_AND_BIAS] = {}, all = 0.0f;
    allow_next();
    await_last();
    if (output < o)
#pragma unroll 8
        for (int64_t row = line; row < n; row += UPDATE_LINES) {
            const float gradient = dy[row * o + output];
#pragma unroll
            for (int k = 0; k < FEW_INPUTS_MOST; k++)
                if (k < i)
                    sums[k] = fmaf(x[row * i + k], gradient, sums[k]);
            sums[FEW_INPUTS_MOST] += gradient;
        }
#pragma unroll
    for (int k = 0; k < INPUTS_AND_BIAS; k++)
        lines[k][line][column] = sums[k];
    __syncthreads();
    /* now a line is an input, or the bias */
    if (line >= INPUTS_AND_BIAS || output >= o || (is_bias ? !b : line >= i))
        return;
#pragma unroll
    for (int other = 0; other < UPDATE_LINES; other++)
        all += lines[line][other][column];
    float *to = is_bias ? b + output : w + line * o + output;
    *to = update_sgd(*to, all, *rate);
}

void few_inputs_update(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *x,
                       const float *dy, const float *rate, float *w, float *b)
{
    enqueue_early(queue, few_inputs_sgd, dim3(blocks_for(o, WIDE)), dim3(WIDE, UPDATE_LINES), 0, n,
                  (int)i, o, x, dy, rate, w, b);
}
