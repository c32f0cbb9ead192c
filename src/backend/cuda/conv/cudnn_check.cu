/* cudnn_check.cu: is what an engine makes of a convolution right? cuDNN says of engines how they
 * compute, but not all of it: one without any note was off by a part in 5,000 in fp32 (the gradient
 * of 5 × 5 filters; docs/gpu.md). So before one is taken some of its results are compared with sums
 * in double. */
#include "backend/cuda/conv/cudnn.h"

#if __has_include(<cudnn.h>)
#include "backend/cuda/conv/cudnn_plan.h"

/* A pixel of x, a weight and a place of y that meet. */
struct join {
    int64_t sample;
    int32_t in, inner, out, row, column, p, q, ky, kx; /* `inner`: the channel within its group */
};

/* What is known of meetings by the result that they are added up to. */
static __device__ struct join meeting_at(const struct conv_form &form, int64_t result)
{
    const struct conv &conv = form.conv;
    const bool nhwc = form.nhwc != 0;
    const struct image x = {conv.in, conv.down.x, conv.across.x, nhwc};
    const struct image y = {conv.out, conv.down.y, conv.across.y, nhwc};
    const struct image w = {conv.inner, conv.down.kernel, conv.across.kernel, nhwc};
    const struct pixel at = pixel_of<1>(form.task == CONV_FORWARD ? y
                                        : form.task == CONV_DGRAD ? x
                                                                  : w,
                                        result);
    const int32_t channel = (int32_t)at.channel, row = (int32_t)at.row, column = (int32_t)at.column;
    struct join join = {};
    join.sample = at.sample;
    if (form.task == CONV_FORWARD) {
        join.out = channel, join.p = row, join.q = column;
    } else if (form.task == CONV_DGRAD) {
        join.in = channel, join.row = row, join.column = column;
        join.inner = channel % conv.inner;
    } else {
        join.out = (int32_t)at.sample;
        join.inner = channel, join.ky = row, join.kx = column;
    }
    return join;
}

static __host__ __device__ int64_t meetings_of(const struct conv_form &form)
{
    const struct conv &conv = form.conv;
    return form.task == CONV_FORWARD ? (int64_t)conv.inner * conv.taps
           : form.task == CONV_DGRAD ? (int64_t)conv.outer * conv.taps
                                     : (int64_t)conv.samples * conv.down.y * conv.across.y;
}

static __device__ bool place_of(const struct conv_axis &axis, int32_t x, int32_t kernel, int32_t *y)
{
    const int32_t from = x + axis.pad - kernel * axis.dilation;
    *y = from / axis.stride;
    return from >= 0 && from % axis.stride == 0 && *y < axis.y;
}

static __device__ bool pixel_at(const struct conv_axis &axis, int32_t y, int32_t kernel, int32_t *x)
{
    *x = y * axis.stride + kernel * axis.dilation - axis.pad;
    return *x >= 0 && *x < axis.x;
}

/* The rest of it, by its number among those of the result; false: beyond the edge. */
static __device__ bool meeting_fill(const struct conv_form &form, int64_t number, struct join *join)
{
    const struct conv &conv = form.conv;
    uint32_t a, b;
    const bool is_wgrad = form.task == CONV_WGRAD;
    number = split_number(number, (uint32_t)(is_wgrad ? conv.across.y : conv.across.kernel), &a);
    number = split_number(number, (uint32_t)(is_wgrad ? conv.down.y : conv.down.kernel), &b);
    if (is_wgrad) {
        join->sample = number, join->p = (int32_t)b, join->q = (int32_t)a;
    } else {
        join->ky = (int32_t)b, join->kx = (int32_t)a;
    }
    if (form.task == CONV_DGRAD) {
        join->out = join->in / conv.inner * conv.outer + (int32_t)number;
        return place_of(conv.down, join->row, join->ky, &join->p) &&
               place_of(conv.across, join->column, join->kx, &join->q);
    }
    if (form.task == CONV_FORWARD)
        join->inner = (int32_t)number;
    join->in = join->out / conv.outer * conv.inner + join->inner;
    return pixel_at(conv.down, join->p, join->ky, &join->row) &&
           pixel_at(conv.across, join->q, join->kx, &join->column);
}

/* A warp a result, `step` of them apart. */
static __global__ void __launch_bounds__(32)
    check_each(const __grid_constant__ struct conv_form form, int64_t step, double tolerance,
               const float *x, const float *w, const float *y, uint32_t *wrong)
{
    const struct conv &conv = form.conv;
    const bool nhwc = form.nhwc != 0;
    const struct image of_x = {conv.in, conv.down.x, conv.across.x, nhwc};
    const struct image of_y = {conv.out, conv.down.y, conv.across.y, nhwc};
    const struct image of_w = {conv.inner, conv.down.kernel, conv.across.kernel, nhwc};
    const int64_t result = blockIdx.x * step, count = meetings_of(form);
    const float *made = form.task == CONV_FORWARD ? y : form.task == CONV_DGRAD ? x : w;
    struct join at = meeting_at(form, result);
    double sum = 0, size = 0;
    for (int64_t i = threadIdx.x; i < count; i += 32) {
        if (!meeting_fill(form, i, &at))
            continue;
        const float factors[3] = {y[of_y.at(at.sample, at.out, at.p, at.q)],
                                  x[of_x.at(at.sample, at.in, at.row, at.column)],
                                  w[of_w.at(at.out, at.inner, at.ky, at.kx)]};
        const double term = (double)factors[form.task == CONV_FORWARD] *
                            (double)factors[form.task == CONV_WGRAD ? 1 : 2];
        sum += term;
        size += fabs(term);
    }
    for (int half = 16; half > 0; half /= 2) {
        sum += __shfl_xor_sync(~0u, sum, half);
        size += __shfl_xor_sync(~0u, size, half);
    }
    if (threadIdx.x == 0 && !(fabs((double)made[result] - sum) <= tolerance * size))
        *wrong = 1;
}

bool cudnn_is_right(const struct conv_form *form, bool tf32, const float *x, const float *w,
                    const float *y, cudaStream_t stream)
{
    const int64_t RESULTS_MOST = 4096, RESULTS_LEAST = 32, MEETINGS_MOST = 1 << 27;
    const double tolerance = tf32 ? 2e-3 : 5e-6; /* of the sum of all magnitudes */
    const struct conv &conv = form->conv;
    const int64_t all = form->task == CONV_FORWARD ? count_y(conv)
                        : form->task == CONV_DGRAD ? count_x(conv)
                                                   : count_w(conv);
    int64_t some = MEETINGS_MOST / meetings_of(*form);
    some = some < RESULTS_LEAST ? RESULTS_LEAST : some > RESULTS_MOST ? RESULTS_MOST : some;
    const int64_t step = (all + some - 1) / some;
    uint32_t *wrong = NULL, found = 1;
    if (cudaMalloc((void **)&wrong, sizeof *wrong) == cudaSuccess &&
        cudaMemsetAsync(wrong, 0, sizeof *wrong, stream) == cudaSuccess) {
        check_each<<<blocks_for(all, step), 32, 0, stream>>>(*form, step, tolerance, x, w, y,
                                                             wrong);
        if (cudaGetLastError() != cudaSuccess ||
            cudaMemcpyAsync(&found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream) !=
                cudaSuccess ||
            cudaStreamSynchronize(stream) != cudaSuccess)
            found = 1;
    }
    cudaFree(wrong);
    return found == 0;
}

#endif
