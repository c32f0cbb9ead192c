/* gemm_int8.h: products of many rows of u8 by weights of i8, on tensor cores; a convolution is one
 * whose rows are the pixels of its result (implicit GEMM), a dense layer one of 1 × 1 pixels. */
#ifndef PRONY_BACKEND_CUDA_GEMM_INT8_H
#define PRONY_BACKEND_CUDA_GEMM_INT8_H

#include "backend/cuda/narrow/integer.h"

/* Along one axis of the images. */
struct gemm_int8_axis {
    int32_t x, y, kernel, stride, pad, dilation;
};

/* y[row, o] = end(Σ x·w): a row is a pixel of the result, its depth all taps, and the channels of
 * each. x is NHWC; its channels, and the columns of w, are a multiple of four. */
struct gemm_int8 {
    int32_t rows, columns;   /* samples × pixels; channels of the result */
    int32_t channels, depth; /* of x; taps × channels */
    int32_t pitch;           /* bytes from a row of w to the next */
    struct gemm_int8_axis down, across;
    const uint8_t *x, *outside; /* 16 bytes of what stands for pixels beyond the image; or NULL */
    const int8_t *w;            /* [depth][pitch] */
    void *y;                    /* u8, or i32 where the ending has no multiplier */
    bool nchw;                  /* y is [sample][channel][pixel], not [row][channel] */
    struct int8_ending ending;
};

void gemm_int8_multiply(struct queue *queue, const struct gemm_int8 *gemm);

#endif
