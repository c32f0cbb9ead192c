/* ref_window.h: where the windows of convolutions and poolings lie, for reals and integers. */
#ifndef PRONY_BACKEND_CPU_REF_REF_WINDOW_H
#define PRONY_BACKEND_CPU_REF_REF_WINDOW_H

#include "backend/cpu/real.h"

struct conv {
    int64_t batch;
    int64_t in, height, width;         /* of x */
    int64_t out, rows, columns;        /* of y */
    int64_t inner, kernel_h, kernel_w; /* of w, which is [out][inner][kernel_h][kernel_w] */
    int64_t group;                     /* outputs per group */
    int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
};

/* The attributes of all these ops begin alike. */
static inline struct conv conv_of(const struct call *call, int x, int w, int y)
{
    const union attributes *attr = &call->op->attr;
    struct conv c = {
        .batch = dim(call, x, 0),
        .in = dim(call, x, 1),
        .height = dim(call, x, 2),
        .width = dim(call, x, 3),
        .out = dim(call, y, 1),
        .rows = dim(call, y, 2),
        .columns = dim(call, y, 3),
        .inner = dim(call, w, 1),
        .kernel_h = dim(call, w, 2),
        .kernel_w = dim(call, w, 3),
        .stride_h = attr->conv.stride_h,
        .stride_w = attr->conv.stride_w,
        .pad_h = attr->conv.pad_h,
        .pad_w = attr->conv.pad_w,
        .dilation_h = attr->conv.dilation_h,
        .dilation_w = attr->conv.dilation_w,
    };
    c.group = c.out / (c.in / c.inner);
    return c;
}

struct pooling {
    int64_t planes;
    int64_t height, width; /* of the image */
    int64_t rows, columns; /* of what it is pooled to */
    int64_t window_h, window_w, stride_h, stride_w, pad_h, pad_w;
};

/* The attributes of the pooling ops begin alike. */
static inline struct pooling pooling_of(const struct call *call, int image, int pooled)
{
    const union attributes *attr = &call->op->attr;
    return (struct pooling){
        .planes = dim(call, image, 0) * dim(call, image, 1),
        .height = dim(call, image, 2),
        .width = dim(call, image, 3),
        .rows = dim(call, pooled, 2),
        .columns = dim(call, pooled, 3),
        .window_h = attr->max_pool.window_h,
        .window_w = attr->max_pool.window_w,
        .stride_h = attr->max_pool.stride_h,
        .stride_w = attr->max_pool.stride_w,
        .pad_h = attr->max_pool.pad_h,
        .pad_w = attr->max_pool.pad_w,
    };
}

/* The part of a window that lies in the image: rows and columns from … to, the last not included.
 * Of the window, `padded` elements lie in the image or its pad, which is as wide behind it as
 * before.
 */
struct patch {
    int64_t top, bottom, left, right;
    int64_t padded;
};

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline struct patch patch_at(const struct pooling *pooling, int64_t p, int64_t q)
{
    int64_t top = p * pooling->stride_h - pooling->pad_h;
    int64_t left = q * pooling->stride_w - pooling->pad_w;
    int64_t bottom = top + pooling->window_h, right = left + pooling->window_w;
    return (struct patch){
        .top = top < 0 ? 0 : top,
        .bottom = smaller(bottom, pooling->height),
        .left = left < 0 ? 0 : left,
        .right = smaller(right, pooling->width),
        .padded = (smaller(bottom, pooling->height + pooling->pad_h) - top) *
                  (smaller(right, pooling->width + pooling->pad_w) - left),
    };
}

#endif
