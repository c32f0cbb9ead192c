/* conv_nhwc_wgrad.cu: the gradient of the weights from images in NHWC order (nhwc.h), in
 * tf32: a product over pixels, by tensor cores (mma.sync: wgmma takes 32-bit factors along the
 * depth only).
 *
 * Rows of the result are outputs, columns (ky, kx, channel of x), depth the places of y, numbered
 * over the batch. Both operands come by vectors of four channels into [depth][channel]; a thread
 * has one vector of each, every fourth place of a slab, and walks along the places. The depth is
 * cut into pieces, which are added in order; where to cut depends on the shape only. */
#include "backend/cuda/conv/conv_nhwc.h"

#include "backend/cuda/conv/conv_tile.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/product/gemm.h"

enum { NHWC_BLOCKS = 264, NHWC_SLABS = 16, LINES = TILE_THREADS / (TILE_WIDE / 4) };
enum { MANY_PIECES = 16 }; /* too many for one thread to add */

/* How the depth is cut. */
struct nhwc_cut {
    int32_t pieces, slabs_each;
};

static int32_t nhwc_tall(const struct conv &conv)
{
    return conv.out > 64 ? 128 : 64;
}

static struct nhwc_cut nhwc_cut_of(const struct conv &conv)
{
    const int64_t places = (int64_t)conv.samples * conv.down.y * conv.across.y;
    const int64_t slabs = (places + SLAB - 1) / SLAB;
    const int64_t tiles = (int64_t)blocks_for(conv.out, nhwc_tall(conv)) *
                          blocks_for((int64_t)conv.in * conv.taps, TILE_WIDE);
    const int64_t wanted = min((NHWC_BLOCKS + tiles - 1) / tiles, slabs / NHWC_SLABS);
    const int64_t each = (slabs + max(wanted, (int64_t)1) - 1) / max(wanted, (int64_t)1);
    const struct nhwc_cut cut = {(int32_t)((slabs + each - 1) / each), (int32_t)each};
    return cut;
}

uint64_t conv_nhwc_wgrad_bytes(const struct conv &conv)
{
    return (uint64_t)nhwc_cut_of(conv).pieces * (uint64_t)conv.out * (uint64_t)conv.in *
           (uint64_t)conv.taps * sizeof(float);
}

struct nhwc_wgrad {
    struct conv conv; /* channels filled up */
    int32_t slabs_each;
    const float *x, *dy;
    float *pieces; /* [piece][out][taps][in] */
};

template <int TALL> struct nhwc_wgrad_room {
    float a[STAGES][SLAB][TALL + 8], b[STAGES][SLAB][WIDE_STRIDE];
};

/* A place of y that walks on. */
struct nhwc_walk {
    int64_t number, end;
    int32_t sample, row, column;
    __device__ void begin(const struct conv &conv, int64_t first, int64_t behind)
    {
        number = first;
        end = behind;
        uint32_t within, across;
        const int64_t line = split_number(first, (uint32_t)conv.across.y, &across);
        sample = (int32_t)split_number(line, (uint32_t)conv.down.y, &within);
        row = (int32_t)within;
        column = (int32_t)across;
    }
    __device__ void advance(const struct conv &conv, int32_t by)
    {
        number += by;
        for (column += by; column >= conv.across.y; column -= conv.across.y)
            if (++row == conv.down.y) {
                row = 0;
                sample++;
            }
    }
};

template <int TALL>
static __global__ void __launch_bounds__(TILE_THREADS, 2) wgrad_nhwc(struct nhwc_wgrad wgrad)
{
    extern __shared__ float4 shared[];
    struct nhwc_wgrad_room<TALL> &room = *(struct nhwc_wgrad_room<TALL> *)shared;
    constexpr int VECTORS = TALL / 4, ROWS = TILE_THREADS / VECTORS;
    const struct conv &conv = wgrad.conv;
    const int thread = (int)threadIdx.x;
    const int32_t columns = conv.in * conv.taps, up = (conv.out + TALL - 1) / TALL;
    const int32_t row0 = (int32_t)blockIdx.x % up * TALL;
    const int32_t column0 = (int32_t)blockIdx.x / up * TILE_WIDE;
    const int64_t places = (int64_t)conv.samples * conv.down.y * conv.across.y;
    const int64_t begin = (int64_t)blockIdx.y * wgrad.slabs_each * SLAB;
    const int64_t end = min(begin + (int64_t)wgrad.slabs_each * SLAB, places);
    const int32_t slabs = (int32_t)((end - begin + SLAB - 1) / SLAB);
    /* of dy */
    const int32_t output = row0 + thread % VECTORS * 4;
    /* of x: the vector's (ky, kx), channel */
    const int32_t vector = column0 + thread % 32 * 4;
    const int32_t tap = vector / conv.in, channel = vector % conv.in;
    const int32_t down = tap / conv.across.kernel * conv.down.dilation - conv.down.pad;
    const int32_t across = tap % conv.across.kernel * conv.across.dilation - conv.across.pad;
    struct nhwc_walk walk;
    struct sums<TALL> sums {
    };

    walk.begin(conv, begin + thread / 32, end);
    const auto load = [&](int32_t slab) {
        if (slab < slabs) {
            const int64_t place = begin + (int64_t)slab * SLAB + thread / VECTORS;
#pragma unroll
            for (int i = 0; i < SLAB / ROWS; i++) {
                const bool inside = place + i * ROWS < end && output < conv.out;
                copy_vector(
                    &room.a[slab % STAGES][thread / VECTORS + i * ROWS][thread % VECTORS * 4],
                    inside ? wgrad.dy + (place + i * ROWS) * conv.out + output : wgrad.dy, inside);
            }
#pragma unroll
            for (int i = 0; i < SLAB / LINES; i++) {
                const int32_t row = walk.row * conv.down.stride + down;
                const int32_t column = walk.column * conv.across.stride + across;
                const bool inside = walk.number < end && vector < columns &&
                                    (uint32_t)row < (uint32_t)conv.down.x &&
                                    (uint32_t)column < (uint32_t)conv.across.x;
                const int64_t from =
                    (((int64_t)walk.sample * conv.down.x + row) * conv.across.x + column) *
                        conv.in +
                    channel;
                copy_vector(&room.b[slab % STAGES][thread / 32 + i * LINES][thread % 32 * 4],
                            inside ? wgrad.x + from : wgrad.x, inside);
                walk.advance(conv, LINES);
            }
        }
        copy_commit();
    };
    for (int32_t slab = 0; slab < STAGES - 1; slab++)
        load(slab);
    for (int32_t slab = 0; slab < slabs; slab++) {
        copy_wait();
        __syncthreads();
        load(slab + STAGES - 1);
        add_slab_tf32<TALL, by_depth, by_depth_row<TALL + 8>>(sums, &room.a[slab % STAGES][0][0],
                                                              &room.b[slab % STAGES][0][0]);
    }
    float *to = wgrad.pieces + (int64_t)blockIdx.y * conv.out * columns;
#pragma unroll
    for (int i = 0; i < TALL / 16; i++)
#pragma unroll
        for (int p = 0; p < PAIRS; p++) {
            const int32_t row = row0 + first_row<TALL>() + i * 8;
            const int32_t column = column0 + first_column() + p * 8;
            if (row < conv.out && column < columns)
                *(float2 *)(to + (int64_t)row * columns + column) =
                    make_float2(sums.at[i][p][0], sums.at[i][p][1]);
        }
}

/* dw[out][inner][taps] from sums that are numbered as [out][taps][filled]. */
struct to_canonical {
    float *dw;
    int32_t filled, inner, taps;
    bool accumulate;
    __device__ void put(int64_t, int64_t index, float sum) const
    {
        uint32_t channel, tap;
        const int64_t output =
            split_number(split_number(index, (uint32_t)filled, &channel), (uint32_t)taps, &tap);
        if ((int32_t)channel >= inner)
            return;
        float *to = &dw[(output * inner + channel) * taps + tap];
        *to = accumulate ? *to + sum : sum;
    }
};

template <int TALL>
static void wgrad_launch(struct queue *queue, const struct nhwc_wgrad &wgrad, int32_t pieces)
{
    const struct conv &conv = wgrad.conv;
    const unsigned tiles =
        blocks_for(conv.out, TALL) * blocks_for((int64_t)conv.in * conv.taps, TILE_WIDE);
    enqueue_large(queue, wgrad_nhwc<TALL>, dim3(tiles, (unsigned)pieces), dim3(TILE_THREADS),
                  sizeof(struct nhwc_wgrad_room<TALL>), wgrad);
}

void conv_nhwc_wgrad(struct queue *queue, const struct conv &conv, int32_t inner, const float *x,
                     const float *dy, float *dw, bool accumulate, float *pieces)
{
    const struct nhwc_cut cut = nhwc_cut_of(conv);
    const struct nhwc_wgrad wgrad = {conv, cut.slabs_each, x, dy, pieces};
    const int64_t count = (int64_t)conv.out * conv.in * conv.taps;
    if (nhwc_tall(conv) == 64)
        wgrad_launch<64>(queue, wgrad, cut.pieces);
    else
        wgrad_launch<128>(queue, wgrad, cut.pieces);
    const struct to_canonical finish = {dw, conv.in, inner, conv.taps, accumulate};
    if (cut.pieces > MANY_PIECES)
        sum_rows(queue, cut.pieces, count, reduce_value{pieces}, finish);
    else
        enqueue(queue, gemm_add_pieces<struct to_canonical>, dim3(blocks_striding(count)),
                dim3(THREADS), (int64_t)1, count, cut.pieces, (const float *)pieces, finish);
}
