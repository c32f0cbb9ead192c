/* transpose.h: matrices of samples transposed, so that samples lie side by side. */
#ifndef PRONY_BACKEND_CUDA_TRANSPOSE_H
#define PRONY_BACKEND_CUDA_TRANSPOSE_H

#include "backend/cuda/device/launch.h"

/* transposed[i, n] = matrix[n, i] */
struct transposed {
    const float *matrix;
    int64_t width;
    float *transposed;
};

/* One or (`second` not NULL) two matrices of so many samples, rows of the transposed ones `step`
 * apart.
 */
void transpose_matrices(struct queue *queue, int64_t samples, int64_t step,
                        const struct transposed *first, const struct transposed *second);

#endif
