/* channel.h: one block a channel of x[n, c, inner]: its n × inner values, summed in a fixed order.
 */
#ifndef PRONY_BACKEND_CUDA_CHANNEL_H
#define PRONY_BACKEND_CUDA_CHANNEL_H

#include "backend/cuda/reduce.h"

/* The values of one channel of x[n, c, inner], numbered 0 … n·inner - 1. */
struct channel {
    int64_t n, channels, inner;
    __device__ int64_t count() const
    {
        return n * inner;
    }
    __device__ int64_t index(int64_t value) const
    {
        return (value / inner * channels + blockIdx.x) * inner + value % inner;
    }
};

static inline struct channel channel_of(const struct call *call)
{
    const int64_t n = call_dim(call, 0, 0), channels = call_dim(call, 0, 1);
    const struct channel channel = {n, channels, call_count(call, 0) / n / channels};
    return channel;
}

#define FOR_CHANNEL(value, channel)                                                                \
    for (int64_t value = threadIdx.x; value < (channel).count(); value += THREADS)

#endif
