/* target_gpu.h: the GPU that the kernels were made for, NVIDIA's H200. C and CUDA.
 *
 * Work is cut into as many blocks as it has multiprocessors, on other GPUs as well: so the order of
 * sums depends on shapes alone. A device on paper (device_options.paper) has these sizes, too. */
#ifndef PRONY_BACKEND_CUDA_TARGET_GPU_H
#define PRONY_BACKEND_CUDA_TARGET_GPU_H

enum {
    TARGET_MULTIPROCESSORS = 132,
    TARGET_SHARED_BYTES = 227 << 10, /* that a block can have */
};

#endif
