/* stack_grid_registers.h: the grid's kernel for training with few samples
 * (stack_grid_registers.cu). */
#ifndef PRONY_BACKEND_CUDA_STACK_GRID_REGISTERS_H
#define PRONY_BACKEND_CUDA_STACK_GRID_REGISTERS_H

#include <stdint.h>

/* As stack_grid.cu's, with OWN_THREADS; for layouts that say so. */
void *grid_registers_kernel(int32_t samples);

#endif
