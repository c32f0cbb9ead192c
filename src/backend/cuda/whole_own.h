/* whole_own.h: the grid's kernel for training with few samples (whole_own.cu). */
#ifndef PRONY_BACKEND_CUDA_WHOLE_OWN_H
#define PRONY_BACKEND_CUDA_WHOLE_OWN_H

#include <stdint.h>

/* As whole_grid.cu's, with OWN_THREADS; for layouts that say so. */
void *own_kernel(int32_t samples);

#endif
