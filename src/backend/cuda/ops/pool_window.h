/* pool_window.h: where the windows of poolings lie, for reals and integers. */
#ifndef PRONY_BACKEND_CUDA_POOL_WINDOW_H
#define PRONY_BACKEND_CUDA_POOL_WINDOW_H

#include "backend/cuda/ops/nhwc.h"

struct pooling {
    int32_t height, width; /* of the image */
    int32_t rows, columns; /* of what it is pooled to */
    int32_t window_h, window_w, stride_h, stride_w, pad_h, pad_w;
    __host__ __device__ int64_t plane(void) const
    {
        return (int64_t)height * width;
    }
};

/* The attributes of the pooling ops begin alike. */
static inline struct pooling pooling_of(const struct call *call, int32_t image, int32_t pooled)
{
    const auto &attr = call->op->attr.max_pool;
    const struct pooling pooling = {(int32_t)call_dim(call, image, 2),
                                    (int32_t)call_dim(call, image, 3),
                                    (int32_t)call_dim(call, pooled, 2),
                                    (int32_t)call_dim(call, pooled, 3),
                                    attr.window_h,
                                    attr.window_w,
                                    attr.stride_h,
                                    attr.stride_w,
                                    attr.pad_h,
                                    attr.pad_w};
    return pooling;
}

/* The part of a window that lies in the image: rows and columns from … to, the last not included.
 * Of the window, `padded` elements lie in the image or its pad, which is as wide behind it as
 * before.
 */
struct patch {
    int32_t top, bottom, left, right;
    int32_t padded;
};

static inline __device__ struct patch patch_at(const struct pooling &pooling, int32_t p, int32_t q)
{
    const int32_t top = p * pooling.stride_h - pooling.pad_h;
    const int32_t left = q * pooling.stride_w - pooling.pad_w;
    const int32_t bottom = top + pooling.window_h, right = left + pooling.window_w;
    const struct patch patch = {max(top, 0), min(bottom, pooling.height), max(left, 0),
                                min(right, pooling.width),
                                (min(bottom, pooling.height + pooling.pad_h) - top) *
                                    (min(right, pooling.width + pooling.pad_w) - left)};
    return patch;
}

#endif
