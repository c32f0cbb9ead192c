/* conv.cu: convolution of images as matrix products (gemm.h), one for each group of channels.
 *
 * All three ops are about one relation of an image x, weights w and a smaller image y: the pixel
 * (row, column) of x meets the weight (ky, kx) at the place (p, q) of y when
 *     row = p·stride + ky·dilation - pad,
 * and likewise for columns. The matrices are not written anywhere: an operand works out where its
 * element lies. Places and pixels are numbered over the whole batch, weights within one output (or
 * one input), as they lie in memory; a number within one sample fits into 32 bits. */
#include "backend/cuda/channel.h"
#include "backend/cuda/families.h"
#include "backend/cuda/gemm.h"

struct conv {
    int32_t in, height, width;         /* of x */
    int32_t out, rows, columns;        /* of y */
    int32_t inner, kernel_h, kernel_w; /* of w, which is [out][inner][kernel_h][kernel_w] */
    int32_t group;                     /* outputs per group */
    int32_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
};

/* The attributes of all three ops begin alike. */
static struct conv conv_of(const struct call *call, int32_t x, int32_t w, int32_t y)
{
    const auto &attr = call->op->attr.conv;
    const auto size = [call](int32_t operand, int32_t dim) {
        return (int32_t)call_dim(call, operand, dim);
    };
    struct conv conv = {size(x, 1), size(x, 2), size(x, 3),      size(y, 1),
                        size(y, 2), size(y, 3), size(w, 1),      size(w, 2),
                        size(w, 3), 0,          attr.stride_h,   attr.stride_w,
                        attr.pad_h, attr.pad_w, attr.dilation_h, attr.dilation_w};
    conv.group = conv.out / (conv.in / conv.inner);
    return conv;
}

/* A weight within those of one output, [channel][kernel_h][kernel_w], or of one input, where
 * `channel` is the output. */
struct tap {
    int32_t channel, ky, kx;
};

static __device__ struct tap tap_of(const struct conv &conv, int64_t number)
{
    const int32_t weight = (int32_t)number, column = weight / conv.kernel_w;
    const struct tap tap = {column / conv.kernel_h, column % conv.kernel_h, weight % conv.kernel_w};
    return tap;
}

/* A pixel of some plane of a sample. */
struct pixel {
    int64_t sample;
    int32_t row, column;
};

static __device__ struct pixel pixel_of(int64_t number, int32_t height, int32_t width)
{
    const int64_t sample = number / (height * width);
    const int32_t within = (int32_t)(number - sample * (height * width));
    const struct pixel pixel = {sample, within / width, within % width};
    return pixel;
}

/* The pixel of x that this weight meets at this place of y; 0 outside the image. */
struct conv_patches {
    struct conv conv;
    const float *x;
    __device__ float meet(int64_t place, int64_t weight) const
    {
        const struct pixel at = pixel_of(place, conv.rows, conv.columns);
        const struct tap tap = tap_of(conv, weight);
        const int32_t row = at.row * conv.stride_h + tap.ky * conv.dilation_h - conv.pad_h;
        const int32_t column = at.column * conv.stride_w + tap.kx * conv.dilation_w - conv.pad_w;
        if (row < 0 || row >= conv.height || column < 0 || column >= conv.width)
            return 0.0f;
        const int64_t plane = at.sample * conv.in + blockIdx.z * conv.inner + tap.channel;
        return x[(plane * conv.height + row) * conv.width + column];
    }
};

/* Places by weights, for conv. */
struct patches_by_place : conv_patches {
    static constexpr bool along_depth = false;
    __device__ float at(int64_t position, int64_t depth) const
    {
        return meet(position, depth);
    }
};

/* Weights by places, for conv_dw. */
struct patches_by_weight : conv_patches {
    static constexpr bool along_depth = true;
    __device__ float at(int64_t position, int64_t depth) const
    {
        return meet(depth, position);
    }
};

/* Elements of images [sample][channels][plane]: those of the group, `inner` channels each. */
struct group_planes {
    float *data;
    int64_t channels, inner, plane;
    __device__ float *of(int64_t channel, int64_t number) const
    {
        const int64_t sample = number / plane;
        return data + (sample * channels + blockIdx.z * inner + channel) * plane + number % plane;
    }
};

/* y = sum + b, channels by pixels */
struct to_planes {
    struct group_planes y;
    const float *bias; /* or NULL */
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        *y.of(row, col) = bias ? sum + bias[blockIdx.z * y.inner + row] : sum;
    }
};

/* y[n,o,p,q] = Σ_{i,ky,kx} x[n,i,row,column]·w[o,i,ky,kx] + b[o] */
void launch_conv(const struct call *call, struct queue *queue)
{
    const struct conv conv = conv_of(call, 0, 1, 3);
    const int64_t plane = call_dim(call, 3, 2) * call_dim(call, 3, 3);
    const int64_t weights = call_count(call, 1) / conv.out;
    const one_of<by_row> left = {{call_reals(call, 1), weights}, conv.group * weights};
    const patches_by_place right = {{conv, call_reals(call, 0)}};
    const struct to_planes finish = {{call_reals(call, 3), conv.out, conv.group, plane},
                                     call_reals(call, 2)};
    gemm(queue, conv.group, call_dim(call, 0, 0) * plane, weights, left, right, finish,
         conv.in / conv.inner);
}

/* The weights [inputs of the group] by (output of the group, ky, kx). */
struct conv_weights {
    struct conv conv;
    const float *w;
    static constexpr bool along_depth = true;
    __device__ float at(int64_t position, int64_t depth) const
    {
        const int32_t window = conv.kernel_h * conv.kernel_w;
        const int64_t output = blockIdx.z * conv.group + depth / window;
        return w[(output * conv.inner + position) * window + depth % window];
    }
};

/* The place of y, of one of the group's outputs, at which this weight meets this pixel of x; 0
 * where there is none. */
struct covering_places {
    struct conv conv;
    const float *y;
    static constexpr bool along_depth = false;
    __device__ float at(int64_t position, int64_t depth) const
    {
        const struct pixel at = pixel_of(position, conv.height, conv.width);
        const struct tap tap = tap_of(conv, depth);
        const int32_t down = at.row + conv.pad_h - tap.ky * conv.dilation_h;
        const int32_t right = at.column + conv.pad_w - tap.kx * conv.dilation_w;
        if (down < 0 || right < 0 || down % conv.stride_h || right % conv.stride_w)
            return 0.0f;
        const int32_t p = down / conv.stride_h, q = right / conv.stride_w;
        if (p >= conv.rows || q >= conv.columns)
            return 0.0f;
        const int64_t plane = at.sample * conv.out + blockIdx.z * conv.group + tap.channel;
        return y[(plane * conv.rows + p) * conv.columns + q];
    }
};

/* x[n,i,row,column] = Σ_{o,ky,kx} y[n,o,p,q]·w[o,i,ky,kx] + b[i]: here y is read, x written. */
void launch_conv_t(const struct call *call, struct queue *queue)
{
    const struct conv conv = conv_of(call, 3, 1, 0);
    const int64_t plane = call_dim(call, 3, 2) * call_dim(call, 3, 3);
    const struct to_planes finish = {{call_reals(call, 3), conv.in, conv.inner, plane},
                                     call_reals(call, 2)};
    gemm(queue, conv.inner, call_dim(call, 3, 0) * plane,
         (int64_t)conv.group * conv.kernel_h * conv.kernel_w,
         conv_weights{conv, call_reals(call, 1)}, covering_places{conv, call_reals(call, 0)},
         finish, conv.in / conv.inner);
}

/* Outputs of the group by places. */
struct conv_outputs {
    struct group_planes dy;
    static constexpr bool along_depth = true;
    __device__ float at(int64_t position, int64_t depth) const
    {
        return *dy.of(position, depth);
    }
};

/* dw = sum, or added to what is there; of the group's outputs */
struct to_group_gradient {
    struct to_gradient all;
    int64_t group;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        all.put(blockIdx.z * group + row, col, sum);
    }
};

/* dw[o,i,ky,kx] = Σ_{n,p,q} x[n,i,row,column]·dy[n,o,p,q] */
void launch_conv_dw(const struct call *call, struct queue *queue)
{
    const struct conv conv = conv_of(call, 0, 2, 1);
    const int64_t plane = call_dim(call, 1, 2) * call_dim(call, 1, 3);
    const int64_t weights = call_count(call, 2) / conv.out;
    const struct conv_outputs left = {{call_reals(call, 1), conv.out, conv.group, plane}};
    const patches_by_weight right = {{conv, call_reals(call, 0)}};
    const struct to_gradient all = {call_reals(call, 2), weights, 1.0f,
                                    call->op->attr.conv_dw.accumulate != 0};
    gemm(queue, conv.group, weights, call_dim(call, 0, 0) * plane, left, right,
         to_group_gradient{all, conv.group}, conv.in / conv.inner);
}

/* y[c] = Σ_{n,*} x[n,c,*], or added to what is there */
static __global__ void __launch_bounds__(THREADS)
    sum_one_channel(struct channel channel, bool accumulate, const float *x, float *y)
{
    float sum = 0.0f;
    FOR_CHANNEL(value, channel)
    sum += x[channel.index(value)];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        y[blockIdx.x] = accumulate ? y[blockIdx.x] + sum : sum;
}

void launch_sum_channels(const struct call *call, struct queue *queue)
{
    const struct channel channel = channel_of(call);
    enqueue(queue, sum_one_channel, dim3((unsigned)channel.channels), dim3(THREADS), channel,
            call->op->attr.sum_channels.accumulate != 0, (const float *)call_reals(call, 0),
            call_reals(call, 1));
}
