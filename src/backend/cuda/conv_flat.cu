/* conv_flat.cu: y from x, and x from y, where the result has at most 16 channels and the weights
 * fit into shared memory: a thread has one pixel of the result, all channels, and needs nobody
 * else's values; each value of the source that it reads serves all of them. Tiles (conv_gather.cu)
 * would mostly be empty. fp32, sums in the order of (ky, kx, channel).
 *
 * Bound: two vectors of weights from shared memory for 8 multiply-adds. */
#include "backend/cuda/conv_walk.h"

enum {
    FLAT_TALL = 16,
    FLAT_THREADS = 128,
    FLAT_BYTES = 48 << 10, /* of weights */
    FLAT_AHEAD = 8         /* values of the source that are on their way at once */
};

static int32_t flat_tall(const struct conv &conv, bool back)
{
    return tall_of(conv, back) <= FLAT_TALL / 2 ? FLAT_TALL / 2 : FLAT_TALL;
}

static size_t flat_bytes(const struct conv &conv, bool back)
{
    return (size_t)conv.taps * (size_t)source_of(conv, back) * (size_t)flat_tall(conv, back) *
           sizeof(float);
}

bool flat_fits(const struct conv &conv, bool back)
{
    return tall_of(conv, back) <= FLAT_TALL && flat_bytes(conv, back) <= FLAT_BYTES;
}

/* w[tap][channel][TALL], of the weights that the section meets */
template <int TALL>
static __device__ void take_weights(const struct gather &gather, const struct section &section,
                                    int32_t group, float *w)
{
    const struct conv &conv = gather.conv;
    const int32_t tall = tall_of(conv, gather.back), channels = section.source_channels;
    const int32_t count = section.depths * TALL;
#pragma unroll 8 /* so that loads, which nothing here writes to, go together */
    for (int32_t i = (int32_t)threadIdx.x; i < count; i += FLAT_THREADS) {
        const int32_t row = i % TALL, channel = i / TALL % channels, tap = i / TALL / channels;
        const int32_t ky = section.down.first + tap / section.across.count * section.down.every;
        const int32_t kx = section.across.first + tap % section.across.count * section.across.every;
        const int64_t output = group * conv.outer + (gather.back ? channel : row);
        const int64_t input = gather.back ? row : channel;
        const int64_t at =
            ((output * conv.inner + input) * conv.down.kernel + ky) * conv.across.kernel + kx;
        w[i] = row < tall ? __ldg(gather.w + at) : 0.0f;
    }
}

template <int TALL>
static __global__ void __launch_bounds__(FLAT_THREADS) gather_flat(struct gather gather)
{
    extern __shared__ float4 shared[];
    const struct conv &conv = gather.conv;
    const struct section section = section_of(gather, (int32_t)blockIdx.y);
    const int32_t group = (int32_t)blockIdx.y / (int32_t)(gridDim.y / (unsigned)conv.groups);
    const int32_t plane = section.source_rows * section.source_columns;
    const int32_t tall = tall_of(conv, gather.back), channels = section.source_channels;
    int64_t result;
    const struct column column =
        column_of(gather, section, (int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x, &result);
    float sums[TALL] = {};

    take_weights<TALL>(gather, section, group, (float *)shared);
    __syncthreads();
    if (!column.inside)
        return;
    const float4 *w = shared;
    for (int32_t tap = 0; tap < section.down.count * section.across.count; tap++) {
        const int32_t row = section.down.shift + tap / section.across.count * section.down.turn;
        const int32_t across =
            section.across.shift + tap % section.across.count * section.across.turn;
        const bool there = (uint32_t)(column.row + row) < (uint32_t)section.source_rows &&
                           (uint32_t)(column.column + across) < (uint32_t)section.source_columns;
        const float *from = column.from + row * section.source_columns + across;
        for (int32_t channel = 0; channel < channels; channel += FLAT_AHEAD) {
            float x[FLAT_AHEAD];
            const int32_t some = min(channels - channel, (int32_t)FLAT_AHEAD);
#pragma unroll
            for (int i = 0; i < FLAT_AHEAD; i++)
                x[i] = there && i < some ? from[(int64_t)(channel + i) * plane] : 0.0f;
#pragma unroll
            for (int i = 0; i < FLAT_AHEAD; i++)
                if (i < some)
#pragma unroll
                    for (int k = 0; k < TALL / 4; k++) {
                        const float4 four = *w++;
                        sums[4 * k] = fmaf(x[i], four.x, sums[4 * k]);
                        sums[4 * k + 1] = fmaf(x[i], four.y, sums[4 * k + 1]);
                        sums[4 * k + 2] = fmaf(x[i], four.z, sums[4 * k + 2]);
                        sums[4 * k + 3] = fmaf(x[i], four.w, sums[4 * k + 3]);
                    }
        }
    }
#pragma unroll
    for (int i = 0; i < TALL; i++) {
        if (i >= tall)
            continue;
        struct conv_channel_end end;
        end.take(gather.ending, group * tall + i);
        const int64_t at = result + (int64_t)(group * tall + i) * section.result_plane;
        const float y = end.of(sums[i]);
        gather.to[at] = conv_activation(gather.ending.activation,
                                        gather.ending.add ? y + gather.ending.add[at] : y);
    }
}

void flat_launch(struct queue *queue, const struct gather &gather)
{
    const struct conv &conv = gather.conv;
    const struct walk down = walk_of(conv.down, gather.back, 0);
    const struct walk across = walk_of(conv.across, gather.back, 0);
    const int64_t pixels = (int64_t)conv.samples * down.places * across.places;
    const dim3 grid(blocks_for(pixels, FLAT_THREADS),
                    (unsigned)(conv.groups * phases_of(conv, gather.back)));
    enqueue_large(queue,
                  flat_tall(conv, gather.back) == FLAT_TALL ? gather_flat<FLAT_TALL>
                                                            : gather_flat<FLAT_TALL / 2>,
                  grid, dim3(FLAT_THREADS), flat_bytes(conv, gather.back), gather);
}
