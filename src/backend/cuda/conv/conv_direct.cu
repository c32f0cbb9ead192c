/* conv_direct.cu: y from x, and x from y, where the result has at most 16 channels and the weights
 * fit into shared memory: a thread has one pixel of the result, all channels, and needs nobody
 * else's values; each value of the source that it reads serves all of them. Tiles
 * (conv_implicit_gemm.cu) would mostly be empty. fp32, sums in the order of (ky, kx, channel).
 *
 * Small images are brought into shared memory as a whole: a block has pixels of one sample, and
 * eight channels, so that there are enough blocks; nothing waits for the caches between products.
 *
 * Bound: two vectors of weights from shared memory for 8 multiply-adds. */
#include "backend/cuda/conv/conv_taps.h"

enum {
    FLAT_TALL = 16,
    FLAT_THREADS = 128,
    FLAT_BYTES = 48 << 10, /* of weights */
    FLAT_AHEAD = 8,        /* values of the source that are on their way at once */
    STAGED_TALL = 8,
    STAGED_BYTES = 40 << 10 /* of weights and a sample of the source */
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

bool conv_direct_fits(const struct conv &conv, bool back)
{
    return tall_of(conv, back) <= FLAT_TALL && flat_bytes(conv, back) <= FLAT_BYTES;
}

/* w[tap][channel][TALL], of the weights that the section meets; of the result's channels those from
 * `first` on */
template <int TALL>
static __device__ void take_weights(const struct gather &gather, const struct section &section,
                                    int32_t group, int32_t first, float *w)
{
    const struct conv &conv = gather.conv;
    const int32_t tall = tall_of(conv, gather.back), channels = section.source_channels;
    const int32_t count = section.depths * TALL;
#pragma unroll 8 /* so that loads, which nothing here writes to, go together */
    for (int32_t i = (int32_t)threadIdx.x; i < count; i += FLAT_THREADS) {
        const int32_t row = first + i % TALL;
        const int32_t channel = i / TALL % channels, tap = i / TALL / channels;
        const int32_t ky = section.down.first + tap / section.across.count * section.down.every;
        const int32_t kx = section.across.first + tap % section.across.count * section.across.every;
        const int64_t output = group * conv.outer + (gather.back ? channel : row);
        const int64_t input = gather.back ? row : channel;
        const int64_t at =
            ((output * conv.inner + input) * conv.down.kernel + ky) * conv.across.kernel + kx;
        w[i] = row < tall ? __ldg(gather.w + at) : 0.0f;
    }
}

/* The ending of the channels from `first` on of a pixel. */
template <int TALL>
static __device__ void put_pixel(const struct gather &gather, const struct section &section,
                                 int32_t group, int32_t first, int64_t result,
                                 const float (&sums)[TALL])
{
    const int32_t tall = tall_of(gather.conv, gather.back);
#pragma unroll
    for (int i = 0; i < TALL; i++) {
        const int32_t channel = group * tall + first + i;
        if (first + i >= tall)
            continue;
        struct conv_channel_end end;
        end.take(gather.ending, channel);
        const int64_t at = result + (int64_t)channel * section.result_plane;
        const float y = end.of(sums[i]);
        gather.to[at] =
            conv_activation(gather.ending, gather.ending.add ? y + gather.ending.add[at] : y);
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
    const int32_t channels = section.source_channels;
    int64_t result;
    const struct column column =
        column_of(gather, section, (int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x, &result);
    float sums[TALL] = {};

    take_weights<TALL>(gather, section, group, 0, (float *)shared);
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
    put_pixel<TALL>(gather, section, group, 0, result, sums);
}

/* Floats of shared memory that a block of the staged kernel takes; the source begins behind the
 * weights. */
static __host__ __device__ int32_t staged_weights(const struct conv &conv, bool back)
{
    return conv.taps * source_of(conv, back) * STAGED_TALL;
}

static int64_t staged_bytes(const struct conv &conv, bool back)
{
    const int64_t plane =
        back ? (int64_t)conv.down.y * conv.across.y : (int64_t)conv.down.x * conv.across.x;
    return (staged_weights(conv, back) + plane * source_of(conv, back)) * (int64_t)sizeof(float);
}

static __global__ void __launch_bounds__(FLAT_THREADS)
    gather_staged(struct gather gather, int32_t chunks)
{
    extern __shared__ float4 shared[];
    const struct conv &conv = gather.conv;
    const struct section section = section_of(gather, (int32_t)blockIdx.y);
    const int32_t group = (int32_t)blockIdx.y / (int32_t)(gridDim.y / (unsigned)conv.groups);
    const int32_t plane = section.source_rows * section.source_columns;
    const int32_t channels = section.source_channels, first = (int32_t)blockIdx.z * STAGED_TALL;
    const int32_t places = section.down.places * section.across.places;
    const int64_t sample = blockIdx.x / (unsigned)chunks;
    const int32_t within =
        (int32_t)(blockIdx.x % (unsigned)chunks) * FLAT_THREADS + (int32_t)threadIdx.x;
    float *source = (float *)shared + staged_weights(conv, gather.back);
    const float *image =
        gather.from + sample * section.source_sample + (int64_t)section.source_first * plane;
    float sums[STAGED_TALL] = {};
    int64_t result;

#pragma unroll 8
    for (int32_t i = (int32_t)threadIdx.x; i < channels * plane; i += FLAT_THREADS)
        source[i] = __ldg(image + i);
    take_weights<STAGED_TALL>(gather, section, group, first, (float *)shared);
    __syncthreads();
    if (within >= places)
        return;
    const struct column column = column_of(gather, section, sample * places + within, &result);
    const float4 *w = shared;
    for (int32_t ky = 0; ky < section.down.count; ky++)
        for (int32_t kx = 0; kx < section.across.count; kx++) {
            const int32_t row = column.row + section.down.shift + ky * section.down.turn;
            const int32_t across = column.column + section.across.shift + kx * section.across.turn;
            const bool there = (uint32_t)row < (uint32_t)section.source_rows &&
                               (uint32_t)across < (uint32_t)section.source_columns;
            const float *from = source + (there ? row * section.source_columns + across : 0);
#pragma unroll 4
            for (int32_t channel = 0; channel < channels; channel++) {
                const float x = there ? from[channel * plane] : 0.0f;
#pragma unroll
                for (int k = 0; k < STAGED_TALL / 4; k++) {
                    const float4 four = *w++;
                    sums[4 * k] = fmaf(x, four.x, sums[4 * k]);
                    sums[4 * k + 1] = fmaf(x, four.y, sums[4 * k + 1]);
                    sums[4 * k + 2] = fmaf(x, four.z, sums[4 * k + 2]);
                    sums[4 * k + 3] = fmaf(x, four.w, sums[4 * k + 3]);
                }
            }
        }
    put_pixel<STAGED_TALL>(gather, section, group, first, result, sums);
}

void conv_direct(struct queue *queue, const struct conv &conv, bool back, const float *from,
                 const float *w, float *to, const struct conv_ending &ending)
{
    const struct gather gather = {conv, back, conv_is_pointwise(conv), 0, from, w, to, ending};
    const struct walk down = walk_of(conv.down, gather.back, 0);
    const struct walk across = walk_of(conv.across, gather.back, 0);
    const int64_t places = (int64_t)down.places * across.places, pixels = conv.samples * places;
    const unsigned sections = (unsigned)(conv.groups * phases_of(conv, gather.back));
    const dim3 grid(blocks_for(pixels, FLAT_THREADS), sections);
    if (staged_bytes(conv, gather.back) <= STAGED_BYTES) {
        const unsigned chunks = blocks_for(places, FLAT_THREADS);
        enqueue_large(queue, gather_staged,
                      dim3((unsigned)conv.samples * chunks, sections,
                           blocks_for(tall_of(conv, gather.back), STAGED_TALL)),
                      dim3(FLAT_THREADS), (size_t)staged_bytes(conv, gather.back), gather,
                      (int32_t)chunks);
        return;
    }
    enqueue_large(queue,
                  flat_tall(conv, gather.back) == FLAT_TALL ? gather_flat<FLAT_TALL>
                                                            : gather_flat<FLAT_TALL / 2>,
                  grid, dim3(FLAT_THREADS), flat_bytes(conv, gather.back), gather);
}
