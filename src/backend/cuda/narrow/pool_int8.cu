/* pool_int8.cu: pooling of images of 8 bits (docs/quantisation.md); windows as in pool.cu. Images
 * may lie either way; where both are NHWC a thread has four neighbouring channels. */
#include "backend/cuda/ops/pool_window.h"
#include "backend/cuda/plan/kernel_families.h"

/* The largest, or the mean with halves up, of a window; the pad counts as `zero` or for nothing. */
template <int WIDE, bool MOST>
static __global__ void pool_each(int64_t count, struct pooling pooling, struct image from,
                                 struct image to, bool include_pad, int32_t zero, const uint8_t *x,
                                 uint8_t *y)
{
    struct alignas(WIDE) bytes {
        uint8_t at[WIDE];
    };
    allow_next();
    await_last();
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<WIDE>(to, index);
        const struct patch patch = patch_at(pooling, (int32_t)at.row, (int32_t)at.column);
        const int32_t inside = (patch.bottom - patch.top) * (patch.right - patch.left);
        const int32_t elements = include_pad ? patch.padded : inside;
        int32_t found[WIDE] = {};
        for (int32_t row = patch.top; row < patch.bottom; row++)
            for (int32_t column = patch.left; column < patch.right; column++) {
                const struct bytes value = *(
                    const struct bytes *)(x + from.at(at.sample, (int32_t)at.channel, row, column));
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    found[i] = MOST ? max(found[i], (int32_t)value.at[i]) : found[i] + value.at[i];
            }
        struct bytes result;
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            result.at[i] =
                (uint8_t)(MOST ? found[i]
                               : (2 * ((int64_t)found[i] + (int64_t)(elements - inside) * zero) +
                                  elements) /
                                     (2 * (int64_t)elements));
        *(struct bytes *)(y + index * WIDE) = result;
    }
}

template <bool MOST>
static void launch_pool(const struct call *call, struct queue *queue, bool include_pad,
                        int32_t zero)
{
    const struct image from = image_of(call, 0), to = image_of(call, 1);
    const int wide = from.nhwc && to.nhwc ? NHWC_VECTOR : 1;
    const int64_t count = shape_count(&call_tensor(call, 1)->shape) / wide;
    enqueue_early(queue, wide > 1 ? pool_each<NHWC_VECTOR, MOST> : pool_each<1, MOST>,
                  dim3(blocks_striding(count)), dim3(THREADS), 0, count, pooling_of(call, 0, 1),
                  from, to, include_pad, zero, (const uint8_t *)call->operands[0],
                  (uint8_t *)call->operands[1]);
}

void launch_max_pool_int8(const struct call *call, struct queue *queue)
{
    launch_pool<true>(call, queue, false, 0);
}

void launch_average_pool_int8(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.average_pool_int8;
    launch_pool<false>(call, queue, attr.include_pad, attr.zero);
}
