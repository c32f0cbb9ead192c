/* split_k.h: products of weights with few samples, in tf32, where cuBLASLt's tiles leave most of a
 * GPU idle. Ours cut the depth, so that every multiprocessor has a block; the pieces are added up,
 * in order, by whoever reads them: split_k_finish, or an activation gradient (activation_grad.h).
 */
#ifndef PRONY_BACKEND_CUDA_SPLIT_K_H
#define PRONY_BACKEND_CUDA_SPLIT_K_H

#include "backend/cuda/device/launch.h"

/* y[n, m] from samples[n, k] and weights, [k, m] or transposed [m, k]. */
struct split_k {
    int64_t n, m, k;
    bool transposed;
};

/* Is there a kernel for it on such a GPU, and is it quicker than the library? */
bool split_k_takes(const struct split_k *split_k);

/* Parts of a sum that somebody else has left, each [n, m]. */
struct pieces {
    const float *data;
    int64_t each; /* n · m */
    int32_t count;
};

struct pieces split_k_pieces(const struct split_k *split_k, const float *data);

static inline uint64_t split_k_bytes(const struct split_k *split_k)
{
    const struct pieces pieces = split_k_pieces(split_k, NULL);
    return (uint64_t)pieces.each * (uint64_t)pieces.count * sizeof(float);
}

/* Leaves the pieces in `data`, split_k_bytes long. */
void split_k_multiply(struct queue *queue, const struct split_k *split_k, const float *weights,
                      const float *samples, float *data);

/* y = f(Σ pieces + bias); bias NULL: there is none. */
void split_k_finish(struct queue *queue, const struct split_k *split_k, const float *data,
                    const float *bias, enum activation function, float *y);

/* WIDE neighbours of the whole, the first of them at `index`. */
template <int WIDE>
static inline __device__ struct vector<WIDE> pieces_sum(const struct pieces &pieces,
                                                        int64_t index) {
    enum { AT_ONCE = 10 }; /* loads on their way */
    struct vector<WIDE> sum = {
    };
    for (int32_t first = 0; first < pieces.count; first += AT_ONCE) {
        struct vector<WIDE> part[AT_ONCE] = {
        };
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i < pieces.count)
                part[i] =
                    *(const struct vector<WIDE> *)(pieces.data + (first + i) * pieces.each + index);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
            for (int w = 0; w < WIDE; w++)
                sum.at[w] += part[i].at[w];
    }
    return sum;
}

#endif
