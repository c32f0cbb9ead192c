/* cudnn.h: convolution through NVIDIA's cuDNN, where it is installed: the backend 'cudnn', which is
 * 'cuda' but for these kernels, to compare with. The library is loaded when such a device is
 * opened. */
#ifndef PRONY_BACKEND_CUDA_CUDNN_H
#define PRONY_BACKEND_CUDA_CUDNN_H

#include "backend/cuda/device/launch.h"

struct cudnn;

/* Is the library there? STATUS_UNSUPPORTED says what to install. */
enum status cudnn_probe(void);
enum status cudnn_open(bool tf32, struct cudnn **out);
void cudnn_close(struct cudnn *cudnn);
size_t cudnn_version(const struct cudnn *cudnn); /* 9.10.2: 91002; 0: there is none */

/* The kernel for this op, or NULL when it is none of cuDNN's. Unless the plan is dry, the
 * quickest way is found by trying, once for each shape. */
const struct kernel *cudnn_kernel(struct cudnn *cudnn, const struct program *program,
                                  const struct op *op, bool dry);

/* The workspace of an op, of which its kernel takes `most`: of cuDNN's, once a way is found, no
 * more than that needs. */
uint64_t cudnn_workspace(const struct cudnn *cudnn, const struct kernel *kernel,
                         const struct program *program, const struct op *op, uint64_t most);

/* Is this kernel of an op one of cuDNN's that takes its images either way (nhwc.h)? */
bool cudnn_reorders(const struct cudnn *cudnn, const struct kernel *kernel,
                    const struct program *program, const struct op *op);

#endif
