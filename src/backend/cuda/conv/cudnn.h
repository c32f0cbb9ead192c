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

/* The workspace of an op by one of cuDNN's kernels, which takes `most`: once a way is found, no
 * more than that needs. Unless a plan is dry, takes_cudnn finds the quickest, once for each shape.
 */
uint64_t cudnn_workspace(const struct cudnn *cudnn, const struct program *program,
                         const struct op *op, uint64_t most);

#endif
