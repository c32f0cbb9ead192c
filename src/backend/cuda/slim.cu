/* slim.cu: see slim.h. Up: a block has one or four samples; its threads go through the weights as
 * they lie, so many at a time that each stays with one output, and add up their sums in the end.
 * Down: a thread has the weights of one input in registers. Bound: the bytes of x, or of dx. */
#include "backend/cuda/slim.h"

#include "backend/cuda/activation.h"

enum { SLIM_THREADS = 1024, SLIM_ROWS = 8 };

template <int SAMPLES>
static __global__ void __launch_bounds__(SLIM_THREADS)
    slim_up(int64_t n, int64_t i, int o, const float *x, const float *w, const float *bias,
            enum activation function, float *y)
{
    __shared__ float share[SAMPLES][SLIM_THREADS];
    const int thread = (int)threadIdx.x, inputs = SLIM_THREADS / o;
    const int64_t n0 = (int64_t)blockIdx.x * SAMPLES;
    float sums[SAMPLES] = {};
    allow_next();
    await_last();
    if (thread < inputs * o)
#pragma unroll 4
        for (int64_t at = thread / o; at < i; at += inputs) {
            const float weight = w[at * o + thread % o];
#pragma unroll
            for (int s = 0; s < SAMPLES; s++)
                if (n0 + s < n)
                    sums[s] = fmaf(x[(n0 + s) * i + at], weight, sums[s]);
        }
#pragma unroll
    for (int s = 0; s < SAMPLES; s++)
        share[s][thread] = sums[s];
    __syncthreads();
    /* now a warp an output */
    const int output = thread / 32, lane = thread % 32;
#pragma unroll
    for (int s = 0; s < SAMPLES; s++) {
        float sum = 0.0f;
        if (output >= o || n0 + s >= n)
            continue;
        for (int other = lane; other < inputs; other += 32)
            sum += share[s][other * o + output];
        for (int half = 16; half > 0; half /= 2)
            sum += __shfl_down_sync(UINT32_MAX, sum, (unsigned)half);
        if (lane == 0)
            y[(n0 + s) * o + output] = activation_value(function, bias ? sum + bias[output] : sum);
    }
}

void slim_layer(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *x,
                const float *w, const float *bias, enum activation function, float *y)
{
    enum { ALONE = 256, SOME = 4 }; /* from more samples on they share the reading of weights */
    enqueue_early(queue, n <= ALONE ? slim_up<1> : slim_up<SOME>,
                  dim3(blocks_for(n, n <= ALONE ? 1 : SOME)), dim3(SLIM_THREADS), 0, n, i, (int)o,
                  x, w, bias, function, y);
}

static __global__ void __launch_bounds__(THREADS)
    slim_rows(int64_t n, int64_t i, int o, const float *dy, const float *w, float *dx)
{
    const int64_t input = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    float weights[SLIM_OUTPUTS];
    allow_next();
    if (input < i)
#pragma unroll
        for (int k = 0; k < SLIM_OUTPUTS; k++)
            weights[k] = k < o ? w[input * o + k] : 0.0f;
    await_last();
    if (input >= i)
        return;
    for (int r = 0; r < SLIM_ROWS; r++) {
        const int64_t row = (int64_t)blockIdx.y * SLIM_ROWS + r;
        float sum = 0.0f;
        if (row >= n)
            return;
#pragma unroll
        for (int k = 0; k < SLIM_OUTPUTS; k++)
            if (k < o)
                sum = fmaf(dy[row * o + k], weights[k], sum);
        dx[row * i + input] = sum;
    }
}

void slim_down(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *dy,
               const float *w, float *dx)
{
    enqueue_early(queue, slim_rows, dim3(blocks_for(i, THREADS), blocks_for(n, SLIM_ROWS)),
                  dim3(THREADS), 0, n, i, (int)o, dy, w, dx);
}
