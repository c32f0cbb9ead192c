/* skinny.h: products of weights, in 16 bits or fp32, with a handful of samples, where cuBLASLt's
 * tiles are nearly empty and all that counts is how soon the weights come. Sums, biases and the
 * weights that an update changes are fp32 in either. */
#ifndef PRONY_BACKEND_CUDA_SKINNY_H
#define PRONY_BACKEND_CUDA_SKINNY_H

#include "backend/cuda/device/launch.h"

/* At most; beyond so many weights or so much depth cuBLASLt reads them quicker. In fp32 fewer than
 * so many samples are mostly taken by kernels of whole steps, or else by cuBLASLt. */
enum {
    HANDFUL_SAMPLES = 32,
    HANDFUL_WEIGHTS = 24 << 20,
    HANDFUL_DEPTH = 8192,
    HANDFUL_F32_LEAST = 13,
    HANDFUL_WIDE = 1 << 19 /* a grid has no more blocks in y than 65,535, of 16 rows each */
};

/* y[n, m] from samples[n, k] and weights, [k, m] or turned [m, k]. */
struct handful {
    int64_t n, m, k;
    bool turned;
};

/* Is there a kernel for it, in 16 bits or in fp32, and is it quicker than the library? */
static inline bool handful_takes(const struct handful *handful)
{
    return handful->n <= HANDFUL_SAMPLES && handful->m % 4 == 0 && handful->k % 4 == 0 &&
           handful->m <= HANDFUL_WIDE && handful->k <= HANDFUL_DEPTH &&
           handful->m * handful->k <= HANDFUL_WEIGHTS;
}

/* y = f(x·W + bias), x and W in the same 16 bits; bias NULL: there is none. */
void handful_multiply(struct queue *queue, const struct handful *handful, struct cells weights,
                      const void *x, const float *bias, enum activation function, struct cells y);

/* The same in fp32 (skinny_f32.cu). */
void handful_multiply_reals(struct queue *queue, const struct handful *handful, const float *w,
                            const float *x, const float *bias, enum activation function, float *y);

/* An update: w[i, o] -= rate · xᵀ·dy, b -= rate · Σ dy, and both rounded to their copies; b NULL:
 * there is none; likewise where copies have no address. Outputs are a multiple of four. */
struct handful_update {
    int64_t n, i, o;
    struct cells x, dy; /* [n, i], [n, o] */
    const float *rate;
    float *w, *b;
    struct cells w_copy, b_copy;
};

void handful_apply(struct queue *queue, const struct handful_update *update);

#endif
