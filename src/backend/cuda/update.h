/* update.h: the steps of optimisers, one element, for whoever does them: the same bits whether an
 * op of its own does it, the ending of a fused product, or one kernel for many parameters. */
#ifndef PRONY_BACKEND_CUDA_UPDATE_H
#define PRONY_BACKEND_CUDA_UPDATE_H

static inline __device__ float update_sgd(float w, float g, float rate)
{
    return w - rate * g;
}

struct adam_rule {
    float *mean, *squares;
    const float *seen; /* adam_see */
    float beta1, beta2, epsilon, decay;
    bool decoupled;
    __device__ float step(int64_t index, float w, float g, float rate) const
    {
        const float slope = decoupled ? g : g + decay * w;
        const float m = beta1 * mean[index] + (1.0f - beta1) * slope;
        const float s = beta2 * squares[index] + (1.0f - beta2) * slope * slope;
        mean[index] = m;
        squares[index] = s;
        if (decoupled)
            w -= rate * decay * w;
        return w - rate / seen[0] * m / (sqrtf(s) / seen[1] + epsilon);
    }
};

/* seen = {1 - β1^step, √(1 - β2^step)}, by one thread, for all elements. */
static inline __device__ void adam_see(int32_t count, float beta1, float beta2, float *seen)
{
    const double step = count + 1;
    seen[0] = (float)(1.0 - pow((double)beta1, step));
    seen[1] = sqrtf((float)(1.0 - pow((double)beta2, step)));
}

#endif
