/* blas.h: matrix products through NVIDIA's cuBLASLt, where it is installed: it is looked for when
 * the device is opened and never needed. */
#ifndef PRONY_BACKEND_CUDA_BLAS_H
#define PRONY_BACKEND_CUDA_BLAS_H

#include "backend/cuda/launch.h"

/* NULL when the library is not there. `tf32`: products may round their factors to 11 bits. */
struct blas *blas_open(bool tf32);
void blas_close(struct blas *blas);

/* The kernel for this op, when there is one and the op is large enough for it to win; else NULL. */
const struct kernel *blas_kernel(const struct blas *blas, const struct program *program,
                                 const struct op *op);

#endif
