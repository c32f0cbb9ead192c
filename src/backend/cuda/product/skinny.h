/* skinny.h: products of weights, in 16 bits or fp32, with few samples (at most 32), where
 * cuBLASLt's tiles are nearly empty and all that counts is how soon the weights come. Sums, biases
 * and the weights that an update changes are fp32 in either. */
#ifndef PRONY_BACKEND_CUDA_SKINNY_H
#define PRONY_BACKEND_CUDA_SKINNY_H

#include "backend/cuda/device/launch.h"

/* At most; beyond so many weights or so much depth cuBLASLt reads them quicker. In fp32 fewer than
 * so many samples are mostly taken by kernels of whole steps, or else by cuBLASLt. */
enum {
    SKINNY_SAMPLES = 32,
    SKINNY_WEIGHTS = 24 << 20,
    SKINNY_DEPTH = 8192,
    SKINNY_F32_LEAST = 13,
    SKINNY_WIDE = 1 << 19 /* a grid has no more blocks in y than 65,535, of 16 rows each */
};

/* y[n, m] from samples[n, k] and weights, [k, m] or transposed [m, k]. */
struct skinny {
    int64_t n, m, k;
    bool transposed;
};

/* Is there a kernel for it, in 16 bits or in fp32, and is it quicker than the library? */
static inline bool skinny_takes(const struct skinny *skinny)
{
    return skinny->n <= SKINNY_SAMPLES && skinny->m % 4 == 0 && skinny->k % 4 == 0 &&
           skinny->m <= SKINNY_WIDE && skinny->k <= SKINNY_DEPTH &&
           skinny->m * skinny->k <= SKINNY_WEIGHTS;
}

/* y = f(x·W + bias), x and W in the same 16 bits; bias NULL: there is none. */
void skinny_multiply(struct queue *queue, const struct skinny *skinny, struct cells weights,
                     const void *x, const float *bias, enum activation function, struct cells y);

/* The same in fp32 (skinny_f32.cu). */
void skinny_multiply_reals(struct queue *queue, const struct skinny *skinny, const float *w,
                           const float *x, const float *bias, enum activation function, float *y);

/* An update: w[i, o] -= rate · xᵀ·dy, b -= rate · Σ dy, and both rounded to their copies; b NULL:
 * there is none; likewise where copies have no address. Outputs are a multiple of four. */
struct skinny_update {
    int64_t n, i, o;
    struct cells x, dy; /* [n, i], [n, o] */
    const float *rate;
    float *w, *b;
    struct cells w_copy, b_copy;
};

void skinny_apply(struct queue *queue, const struct skinny_update *update);

#endif
