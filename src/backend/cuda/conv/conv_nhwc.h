/* conv_nhwc.h: convolutions of images in NHWC order, on Hopper's tensor cores. */
#ifndef PRONY_BACKEND_CUDA_CONV_NHWC_H
#define PRONY_BACKEND_CUDA_CONV_NHWC_H

#include "backend/cuda/conv/conv.h"

/* conv_nhwc.cu: y from x, or with `back` x from y. Channels are multiples of four (in 16 bits those
 * of the source of eight), in one group; the weights are [channel of the result][ky][kx][channel of
 * the source], floats or of 16 bits. */
void conv_nhwc_gemm(struct queue *queue, const struct conv &conv, bool back, enum precision type,
                    const float *from, const void *w, float *to, const struct conv_ending &ending);

/* conv_nhwc_wgrad.cu: w [out][inner][ky][kx] from x and y; conv.in are the channels of x, filled up
 * to a multiple of four. `pieces`: conv_nhwc_wgrad_bytes. */
void conv_nhwc_wgrad(struct queue *queue, const struct conv &conv, int32_t inner, const float *x,
                     const float *dy, float *dw, bool accumulate, float *pieces);
uint64_t conv_nhwc_wgrad_bytes(const struct conv &conv);

#endif
