/* burst.h: what the two files of calibration share. */
#ifndef PRONY_BACKEND_CUDA_BURST_H
#define PRONY_BACKEND_CUDA_BURST_H

#include "backend/cuda/host/cuda_device.h"

extern "C" {
#include "base/clock.h"
}

/* Two events on a stream: the time between them. */
struct stopwatch {
    cudaStream_t stream;
    cudaEvent_t start, end;
};

/* burst_gemm.cu: matrix products of "tf32", "bf16", "fp16", "fp8" or "int8" by cuBLASLt, FLOP a
 * second. */
enum status burst_product(const struct device *device, const char *kind,
                          const struct stopwatch *watch, uint64_t limit_ns, double *per_s);

#endif
