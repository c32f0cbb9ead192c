/* channel_reduce.h: sums over the channels of x[n, c, inner], in a fixed order.
 *
 * A channel is cut into pieces, one block each; a block leaves two sums, and who needs the whole
 * channel's adds those of its pieces. Where to cut depends on the shape only.
 *
 * Of x[n, inner, c], NHWC, a block has up to 128 channels and a piece of the rows, a
 * thread four neighbouring channels; the pieces are many, and a kernel adds them up. */
#ifndef PRONY_BACKEND_CUDA_CHANNEL_REDUCE_H
#define PRONY_BACKEND_CUDA_CHANNEL_REDUCE_H

#include "backend/cuda/device/reduce.h"
#include "backend/cuda/ops/nhwc.h"

enum { CHANNEL_PIECE = 1024, CHANNEL_PIECES = 64 }; /* values worth a block; at most */
enum { CHANNEL_BLOCKS = 2048 };                     /* enough to fill a GPU */

struct channels {
    int64_t n, channels, inner;
    int32_t pieces;
    bool wide; /* values can be read by fours */
    bool nhwc; /* the channel is the last dimension */
};

/* NHWC: `lanes` threads side by side, the others of a block in lines below. */
enum {
    LINES_LANES = 32,
    LINES_BLOCKS = TARGET_MULTIPROCESSORS * 6,
    LINES_ROWS = 8
}; /* rows a thread, at least */

static inline __host__ __device__ int32_t lines_lanes(const struct channels &channels)
{
    int32_t lanes = LINES_LANES;
    while (lanes > 1 && (int64_t)lanes / 2 * NHWC_VECTOR >= channels.channels)
        lanes /= 2;
    return lanes;
}

static inline int32_t lines_pieces(const struct channels &channels)
{
    const int32_t lanes = lines_lanes(channels);
    const int64_t across = blocks_for(channels.channels, lanes * NHWC_VECTOR);
    const int64_t worth = channels.n * channels.inner / (THREADS / lanes * LINES_ROWS);
    const int64_t fill = LINES_BLOCKS / across < worth ? LINES_BLOCKS / across : worth;
    return fill < 1 ? 1 : (int32_t)fill;
}

static inline dim3 lines_grid(const struct channels &channels)
{
    return dim3(blocks_for(channels.channels, lines_lanes(channels) * NHWC_VECTOR),
                (unsigned)channels.pieces);
}

static inline struct channels channels_of_shape(const struct shape *shape, bool nhwc)
{
    struct channels channels = {shape->dim[0], shape->dim[1], 0, 0, nhwc, nhwc};
    channels.inner = shape_count(shape) / channels.n / channels.channels;
    if (nhwc) {
        channels.pieces = lines_pieces(channels);
        return channels;
    }
    const int64_t fill = CHANNEL_BLOCKS / channels.channels;
    const int64_t worth = channels.n * channels.inner / CHANNEL_PIECE;
    const int64_t pieces = fill < worth ? fill : worth;
    channels.pieces = pieces < 1 ? 1 : pieces < CHANNEL_PIECES ? (int32_t)pieces : CHANNEL_PIECES;
    channels.wide = channels.inner % 4 == 0;
    return channels;
}

static inline struct channels channels_of(const struct call *call)
{
    return channels_of_shape(&call_tensor(call, 0)->shape, call_is_nhwc(call, 0));
}

static inline dim3 channels_grid(const struct channels &channels)
{
    return dim3((unsigned)channels.channels * (unsigned)channels.pieces);
}

/* Where a block works: a piece of a channel. A second pass begins with the last ones, which the
 * first has left in the cache. */
struct channel_piece {
    struct channels all;
    int64_t channel;
    int32_t piece;
    __device__ channel_piece(const struct channels &channels, bool second) : all(channels)
    {
        const unsigned block = second ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
        channel = block / (unsigned)channels.pieces;
        piece = (int32_t)(block % (unsigned)channels.pieces);
    }
    /* visit(index) for every WIDE values of the piece that are this thread's. */
    template <int WIDE, typename Visit> __device__ void each(Visit visit) const
    {
        const uint32_t row = (uint32_t)(all.inner / WIDE);
        const uint32_t skip = THREADS / row, over = THREADS % row;
        const int64_t count = all.n * row, share = (count + all.pieces - 1) / all.pieces;
        const int64_t to = min(share * (piece + 1), count);
        const int64_t first = share * piece + threadIdx.x;
        const int32_t mine = first < to ? (int32_t)((to - first + THREADS - 1) / THREADS) : 0;
        uint32_t rest;
        int64_t sample = split_number(first, row, &rest);
#pragma unroll 4
        for (int32_t i = 0; i < mine; i++) {
            visit((sample * all.channels + channel) * all.inner + (int64_t)rest * WIDE);
            rest += over;
            sample += skip + (rest >= row);
            rest -= rest >= row ? row : 0;
        }
    }
};

/* Where a thread works: four channels, and every so many of the rows of a piece. */
struct channel_lines {
    int64_t channel; /* the first; beyond the last one: nothing */
    int32_t lane, line, lanes;
    int64_t from, to, step; /* places of the thread's first four values, and behind the piece */
    __device__ channel_lines(const struct channels &channels, bool second)
    {
        const int64_t rows = channels.n * channels.inner;
        const int64_t share = (rows + channels.pieces - 1) / channels.pieces;
        const int64_t piece = second ? gridDim.y - 1 - blockIdx.y : blockIdx.y;
        lanes = lines_lanes(channels);
        lane = (int32_t)threadIdx.x % lanes;
        line = (int32_t)threadIdx.x / lanes;
        channel = ((int64_t)blockIdx.x * lanes + lane) * NHWC_VECTOR;
        const bool inside = channel < channels.channels;
        from = inside ? (share * piece + line) * channels.channels + channel : 0;
        to = inside ? min(share * (piece + 1), rows) * channels.channels : 0;
        step = THREADS / lanes * channels.channels;
    }
    template <typename Visit> __device__ void each(Visit visit) const
    {
#pragma unroll 4
        for (int64_t index = from; index < to; index += step)
            visit(index);
    }
};

/* Neighbours that nothing writes while they are read: so that several can be on their way. */
template <int WIDE> static inline __device__ vector<WIDE> read_only(const float *from)
{
    vector<WIDE> value;
    if constexpr (WIDE == 4) {
        const float4 four = __ldg((const float4 *)from);
        value.at[0] = four.x, value.at[1] = four.y, value.at[2] = four.z, value.at[3] = four.w;
    } else
        value.at[0] = __ldg(from);
    return value;
}

struct two {
    float a, b;
};

/* Workspace: two sums of every piece, and of channels that are last also of the whole. */
static inline uint64_t channels_bytes(const struct program *program, const struct op *op)
{
    const struct shape *shape = &program->tensors[op_input(program, op, 0)].shape;
    const int32_t pieces = channels_of_shape(shape, false).pieces;
    const int32_t lines = channels_of_shape(shape, true).pieces + 1;
    return (uint64_t)shape->dim[1] * (uint64_t)(pieces > lines ? pieces : lines) *
           sizeof(struct two);
}

/* The sums of a block's channel. */
static inline __device__ struct two channel_whole(const struct channel_piece &at,
                                                  const struct two *sums)
{
    struct two whole = {};
    for (int32_t piece = 0; piece < at.all.pieces; piece++) {
        const struct two sum = sums[at.channel * at.all.pieces + piece];
        whole.a += sum.a;
        whole.b += sum.b;
    }
    return whole;
}

/* Σ term.of(channel, value at index …) of every piece. */
template <int WIDE, typename Term>
static __global__ void __launch_bounds__(THREADS)
    sum_pieces(struct channels channels, Term term, struct two *sums)
{
    const struct channel_piece at(channels, false);
    const typename Term::fixed fixed = term.of_channel(at.channel, at.channel * channels.inner);
    float a = 0.0f, b = 0.0f;
    at.each<WIDE>([&](int64_t index) {
        const vector<WIDE> first = read_only<WIDE>(term.first + index);
        const vector<WIDE> second =
            term.second ? read_only<WIDE>(term.second + index) : vector<WIDE>{};
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
            const struct two value = Term::of(fixed, first.at[i], second.at[i]);
            a += value.a;
            b += value.b;
        }
    });
    a = block_sum(a);
    b = block_sum(b);
    if (threadIdx.x == 0)
        sums[at.channel * channels.pieces + at.piece] = {a, b};
}

/* … NHWC */
template <typename Term>
static __global__ void __launch_bounds__(THREADS)
    sum_lines(struct channels channels, Term term, struct two *sums)
{
    __shared__ struct two partial[THREADS][NHWC_VECTOR];
    const struct channel_lines at(channels, false);
    typename Term::fixed fixed[NHWC_VECTOR] = {};
    struct two sum[NHWC_VECTOR] = {};
    for (int i = 0; i < NHWC_VECTOR && at.channel < channels.channels; i++)
        fixed[i] = term.of_channel(at.channel + i, at.channel + i);
    at.each([&](int64_t index) {
        const vector<NHWC_VECTOR> first = read_only<NHWC_VECTOR>(term.first + index);
        const vector<NHWC_VECTOR> second =
            term.second ? read_only<NHWC_VECTOR>(term.second + index) : vector<NHWC_VECTOR>{};
#pragma unroll
        for (int i = 0; i < NHWC_VECTOR; i++) {
            const struct two value = Term::of(fixed[i], first.at[i], second.at[i]);
            sum[i].a += value.a;
            sum[i].b += value.b;
        }
    });
    const int32_t thread = (int32_t)threadIdx.x;
    for (int i = 0; i < NHWC_VECTOR; i++)
        partial[thread][i] = sum[i];
    for (int32_t half = THREADS / 2; half >= at.lanes; half /= 2) {
        __syncthreads();
        for (int i = 0; thread < half && i < NHWC_VECTOR; i++) {
            partial[thread][i].a += partial[thread + half][i].a;
            partial[thread][i].b += partial[thread + half][i].b;
        }
    }
    for (int i = 0; at.line == 0 && at.channel < channels.channels && i < NHWC_VECTOR; i++)
        sums[(at.channel + i) * channels.pieces + blockIdx.y] = partial[thread][i];
}

/* A warp adds up the pieces of a channel. */
static __global__ void __launch_bounds__(THREADS)
    add_lines(struct channels channels, const struct two *sums, struct two *wholes)
{
    const int64_t channel = (int64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    struct two sum = {};
    if (channel >= channels.channels)
        return;
    for (int32_t piece = (int32_t)threadIdx.x % 32; piece < channels.pieces; piece += 32) {
        const struct two more = sums[channel * channels.pieces + piece];
        sum.a += more.a;
        sum.b += more.b;
    }
    for (int half = 16; half > 0; half /= 2) {
        sum.a += __shfl_down_sync(~0u, sum.a, half);
        sum.b += __shfl_down_sync(~0u, sum.b, half);
    }
    if (threadIdx.x % 32 == 0)
        wholes[channel] = sum;
}

/* Leaves sums of pieces, which channel_whole adds up; NHWC, those of whole channels. */
template <typename Term>
static const struct two *sum_channel_pieces(struct queue *queue, const struct channels &channels,
                                            Term term, struct two *sums)
{
    if (channels.nhwc) {
        struct two *wholes = sums + channels.channels * channels.pieces;
        enqueue(queue, sum_lines<Term>, lines_grid(channels), dim3(THREADS), channels, term, sums);
        enqueue(queue, add_lines, dim3(blocks_for(channels.channels, THREADS / 32)), dim3(THREADS),
                channels, (const struct two *)sums, wholes);
        return wholes;
    }
    if (channels.wide)
        enqueue(queue, sum_pieces<4, Term>, channels_grid(channels), dim3(THREADS), channels, term,
                sums);
    else
        enqueue(queue, sum_pieces<1, Term>, channels_grid(channels), dim3(THREADS), channels, term,
                sums);
    return sums;
}

#endif
