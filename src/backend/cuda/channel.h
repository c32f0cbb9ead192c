/* channel.h: sums over the channels of x[n, c, inner], in a fixed order.
 *
 * A channel is cut into pieces, one block each; a block leaves two sums, and who needs the whole
 * channel's adds those of its pieces. Where to cut depends on the shape only. */
#ifndef PRONY_BACKEND_CUDA_CHANNEL_H
#define PRONY_BACKEND_CUDA_CHANNEL_H

#include "backend/cuda/reduce.h"

enum { CHANNEL_PIECE = 1024, CHANNEL_PIECES = 64 }; /* values worth a block; at most */
enum { CHANNEL_BLOCKS = 2048 };                     /* enough to fill a GPU */

struct channels {
    int64_t n, channels, inner;
    int32_t pieces;
    bool wide; /* values can be read by fours */
};

static inline struct channels channels_of_shape(const struct shape *shape)
{
    struct channels channels = {shape->dim[0], shape->dim[1], 0, 0, false};
    channels.inner = shape_count(shape) / channels.n / channels.channels;
    const int64_t fill = CHANNEL_BLOCKS / channels.channels;
    const int64_t worth = channels.n * channels.inner / CHANNEL_PIECE;
    const int64_t pieces = fill < worth ? fill : worth;
    channels.pieces = pieces < 1 ? 1 : pieces < CHANNEL_PIECES ? (int32_t)pieces : CHANNEL_PIECES;
    channels.wide = channels.inner % 4 == 0;
    return channels;
}

static inline struct channels channels_of(const struct call *call)
{
    return channels_of_shape(&call_tensor(call, 0)->shape);
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

/* Workspace: two sums of every piece. */
static inline uint64_t channels_bytes(const struct program *program, const struct op *op)
{
    const struct channels channels =
        channels_of_shape(&program->tensors[op_input(program, op, 0)].shape);
    return (uint64_t)channels.channels * (uint64_t)channels.pieces * sizeof(struct two);
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
    const typename Term::fixed fixed = term.of_channel(at);
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

template <typename Term>
static void sum_channel_pieces(struct queue *queue, const struct channels &channels, Term term,
                               struct two *sums)
{
    if (channels.wide)
        enqueue(queue, sum_pieces<4, Term>, channels_grid(channels), dim3(THREADS), channels, term,
                sums);
    else
        enqueue(queue, sum_pieces<1, Term>, channels_grid(channels), dim3(THREADS), channels, term,
                sums);
}

#endif
