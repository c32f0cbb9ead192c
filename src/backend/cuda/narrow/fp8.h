/* fp8.h: dense layers at inference whose factors have 8 bits (e4m3: 4 significant bits, up to 448),
 * for the precision fp8; all else is as in bf16.
 *
 * A tensor has one scale, which makes its largest number 448: of weights when they are uploaded, of
 * activations in each step. Sums are fp32. */
#ifndef PRONY_BACKEND_CUDA_FP8_H
#define PRONY_BACKEND_CUDA_FP8_H

#include "backend/cuda/device/launch.h"

enum {
    FP8_ALIGN = 16,         /* rows of factors are multiples of this */
    FP8_SAMPLES_LEAST = 33, /* fewer are bound by reading weights, by other kernels */
    FP8_OUT_ALIGN = 8,      /* rows of results are whole pieces of 16 bytes */
    FP8_WEIGHTS_LEAST = 1 << 16,
};

/* The weights of a parameter, transposed: [out][pitch], and what one stands for. NULL: it has none.
 */
struct fp8_copy {
    uint8_t *w; /* device */
    float *scale;
};

static inline int64_t fp8_pitch(int64_t in)
{
    return (in + FP8_ALIGN - 1) / FP8_ALIGN * FP8_ALIGN;
}

/* Has a matrix of weights [in][out] such a copy? */
static inline bool fp8_fits(int64_t in, int64_t out)
{
    return out % FP8_OUT_ALIGN == 0 && in * out >= FP8_WEIGHTS_LEAST;
}

/* Device memory that the rounding of any tensor needs. */
enum { FP8_PARTS = 1024, FP8_ROOM = (FP8_PARTS + 64) * 4 };

/* The copy of weights, by `room` on the device. */
void fp8_round_weights(struct queue *queue, int64_t in, int64_t out, const float *w,
                       const struct fp8_copy *copy, void *room);

#endif
