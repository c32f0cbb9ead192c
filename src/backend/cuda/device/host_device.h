/* host_device.h: included before headers of base/ and core/ whose functions kernels call, too
 * (base/everywhere.h). */
#ifndef PRONY_BACKEND_CUDA_HOST_DEVICE_H
#define PRONY_BACKEND_CUDA_HOST_DEVICE_H

#define EVERYWHERE static inline __host__ __device__

#endif
