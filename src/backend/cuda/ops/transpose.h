/* transpose.h: matrices of samples turned, so that samples lie side by side. */
#ifndef PRONY_BACKEND_CUDA_TRANSPOSE_H
#define PRONY_BACKEND_CUDA_TRANSPOSE_H

#include "backend/cuda/device/launch.h"

/* turned[i, n] = matrix[n, i] */
struct turned {
    const float *matrix;
    int64_t width;
    float *turned;
};

/* One or (`second` not NULL) two matrices of so many samples, rows of the turned ones `step` apart.
 */
void turn_matrices(struct queue *queue, int64_t samples, int64_t step, const struct turned *first,
                   const struct turned *second);

#endif
