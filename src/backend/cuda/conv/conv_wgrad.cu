/* conv_wgrad.cu: the gradient of the weights: a product of y's gradient and pixels (conv_tile.h).
 *
 * Rows of the result are outputs, columns are (input, ky, kx), as the weights lie; depth is the
 * places of y, numbered over the batch. A thread brings the elements of one place, so it works out
 * where that lies once a slab; how far the columns' pixels lie from there is a table made once.
 *
 * The result is small and the depth large: it is cut into pieces of whole slabs, each a product by
 * itself, and the pieces are added in order. Where to cut depends on the shape only. */
#include "backend/cuda/conv/conv.h"
#include "backend/cuda/conv/conv_tile.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/product/gemm.h"

enum { BLOCKS_WANTED = 4 * TARGET_MULTIPROCESSORS, SLABS_LEAST = 8 };
enum { MANY_PIECES = 16 }; /* too many for one thread to add */

/* How the depth is cut. */
struct cut {
    int32_t tall; /* of a tile */
    int32_t pieces, slabs_each;
};

static struct cut cut_of(const struct conv &conv)
{
    struct cut cut = {conv.outer > 64 ? 128 : conv.outer > 16 ? 64 : 16, 1, 0};
    const int64_t places = (int64_t)conv.samples * conv.down.y * conv.across.y;
    const int64_t slabs = (places + SLAB - 1) / SLAB;
    const int64_t tiles = (int64_t)blocks_for(conv.outer, cut.tall) *
                          blocks_for(conv.inner * conv.taps, TILE_WIDE) * conv.groups;
    const int64_t wanted = min((BLOCKS_WANTED + tiles - 1) / tiles, slabs / SLABS_LEAST);
    const int64_t each = (slabs + max(wanted, (int64_t)1) - 1) / max(wanted, (int64_t)1);
    cut.slabs_each = (int32_t)each;
    cut.pieces = (int32_t)((slabs + each - 1) / each);
    return cut;
}

uint64_t conv_wgrad_bytes(const struct conv &conv, bool small)
{
    const int32_t pieces = small ? small_pieces(conv) : cut_of(conv).pieces;
    return pieces == 1 && !small ? 0
                                 : (uint64_t)pieces * (uint64_t)conv.out * (uint64_t)conv.inner *
                                       (uint64_t)conv.taps * sizeof(float);
}

struct wgrad {
    struct conv conv;
    struct cut cut;
    const float *x, *dy;
    float *dw; /* [pieces][out][inner·taps] */
    bool accumulate;
    bool fours;  /* four neighbours of y are brought at once … */
    bool points; /* … and of x, where every pixel meets itself alone */
    bool even;   /* columns are (ky, kx, input), and half a tile's have one (ky, kx) */
};

/* dw[out][inner·taps] = sum, or added to what is there. Columns may be (ky, kx, input). */
struct to_weights {
    float *dw;
    int32_t columns, inner, taps;
    bool even, accumulate;
    __device__ void put_at(int64_t row, int32_t column, float sum) const
    {
        if (even)
            column = column % inner * taps + column / inner;
        float *to = &dw[row * columns + column];
        *to = accumulate ? *to + sum : sum;
    }
    __device__ void put(int64_t, int64_t index, float sum) const
    {
        uint32_t column;
        const int64_t row = split_number(index, (uint32_t)columns, &column);
        put_at(row, (int32_t)column, sum);
    }
};

enum { HALF = TILE_WIDE / 2 };

template <int TALL> struct wgrad_room {
    float a[STAGES][TALL][DEPTH_STRIDE], b[STAGES][TILE_WIDE][DEPTH_STRIDE];
    struct step_to steps[TILE_WIDE];
};

/* How far the pixel of this column lies from the one that a place begins at. */
static __device__ struct step_to step_of(const struct conv &conv, bool even, int32_t column)
{
    struct step_to step = {0, NOWHERE, 0, 0};
    if (column >= conv.inner * conv.taps)
        return step;
    const int32_t channel = even ? column % conv.inner : column / conv.taps;
    const int32_t tap = even ? column / conv.inner : column % conv.taps;
    step.row = tap / conv.across.kernel * conv.down.dilation;
    step.column = tap % conv.across.kernel * conv.across.dilation;
    step.offset = (channel * conv.down.x + step.row) * conv.across.x + step.column;
    return step;
}

template <bool TF32, int TALL>
static __global__ void __launch_bounds__(TILE_THREADS, 2) wgrad_tile(struct wgrad wgrad)
{
    extern __shared__ float4 shared[];
    struct wgrad_room<TALL> &room = *(struct wgrad_room<TALL> *)shared;
    const struct conv &conv = wgrad.conv;
    const int thread = (int)threadIdx.x, lane = thread % SLAB, line = thread / SLAB;
    constexpr int LINES = TILE_THREADS / SLAB;
    const int64_t x_plane = (int64_t)conv.down.x * conv.across.x;
    const int32_t columns = conv.inner * conv.taps, up = (conv.outer + TALL - 1) / TALL;
    const int32_t group = (int32_t)blockIdx.z;
    const int32_t row0 = (int32_t)blockIdx.x % up * TALL;
    const int32_t column0 = (int32_t)blockIdx.x / up * TILE_WIDE;
    const uint32_t plane = (uint32_t)(conv.down.y * conv.across.y);
    const int64_t places = (int64_t)conv.samples * plane;
    const int64_t begin = (int64_t)blockIdx.y * wgrad.cut.slabs_each * SLAB;
    const int64_t end = min(begin + (int64_t)wgrad.cut.slabs_each * SLAB, places);
    const int32_t slabs = (int32_t)((end - begin + SLAB - 1) / SLAB);
    float fetched[TILE_WIDE / LINES]; /* of the slab after the next, on their way */
    struct sums<TALL> sums {
    };

    /* Four places at a time of an image whose planes are as y's: rows of a tile from `first` on. */
    const auto load_fours = [&](float(*tile)[DEPTH_STRIDE], int32_t slab, const float *image,
                                int64_t first, int32_t channels, int32_t rows, int32_t there) {
        const int64_t place = begin + slab * SLAB + thread % 4 * 4;
        const bool inside = place < end;
        const int64_t sample = inside ? place / plane : 0;
        const float *from =
            image + (sample * channels + first) * (int64_t)plane + (place - sample * plane);
#pragma unroll
        for (int row = thread / 4; row < rows; row += TILE_THREADS / 4)
            copy_vector(&tile[row][thread % 4 * 4],
                        inside && row < there ? from + (int64_t)row * plane : image,
                        inside && row < there);
    };
    const auto load = [&](int32_t slab) {
        if (slab < slabs && wgrad.fours)
            load_fours(room.a[slab % STAGES], slab, wgrad.dy, group * conv.outer + row0, conv.out,
                       TALL, conv.outer - row0);
        if (slab < slabs && wgrad.points)
            load_fours(room.b[slab % STAGES], slab, wgrad.x, group * conv.inner + column0, conv.in,
                       TILE_WIDE, conv.inner - column0);
        copy_commit();
    };
    /* One element at a time, of the place that is this thread's. */
    const auto bring_dy = [&](int32_t slab) {
        const int64_t place = begin + slab * SLAB + lane;
        const int64_t sample = place < end ? place / plane : 0;
        const float *dy = wgrad.dy +
                          (sample * conv.out + group * conv.outer + row0) * (int64_t)plane +
                          (place - sample * plane);
        const int32_t there = place < end ? conv.outer - row0 : 0;
        float values[TALL / LINES];
#pragma unroll
        for (int i = 0; i < TALL / LINES; i++) {
            const int row = line + i * LINES;
            values[i] = row < there ? dy[(int64_t)row * plane] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < TALL / LINES; i++)
            room.a[slab % STAGES][line + i * LINES][lane] = values[i];
    };
    const auto fetch_x = [&](int32_t slab) {
        const int64_t place = begin + slab * SLAB + lane;
        const bool inside = place < end;
        const int64_t sample = inside ? place / plane : 0;
        const uint32_t within = inside ? (uint32_t)(place - sample * plane) : 0;
        const int32_t down = (int32_t)(within / (uint32_t)conv.across.y) * conv.down.stride;
        const int32_t across = (int32_t)(within % (uint32_t)conv.across.y) * conv.across.stride;
        const int32_t row = inside ? down - conv.down.pad : NOWHERE;
        const int32_t column = across - conv.across.pad;
        const float *x = wgrad.x + (sample * conv.in + group * conv.inner) * x_plane +
                         (int64_t)(down - conv.down.pad) * conv.across.x + column;
        const auto is_there = [&](const struct step_to &step) {
            return (uint32_t)(row + step.row) < (uint32_t)conv.down.x &&
                   (uint32_t)(column + step.column) < (uint32_t)conv.across.x;
        };
        if (wgrad.even)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const struct step_to step = room.steps[half * HALF];
                const bool there = is_there(step);
                const float *from = x + step.offset + line * x_plane;
#pragma unroll
                for (int i = 0; i < HALF / LINES; i++)
                    fetched[half * (HALF / LINES) + i] =
                        there ? from[(int64_t)(i * LINES) * x_plane] : 0.0f;
            }
        else
#pragma unroll
            for (int i = 0; i < TILE_WIDE / LINES; i++) {
                const struct step_to step = room.steps[line + i * LINES];
                fetched[i] = is_there(step) ? x[step.offset] : 0.0f;
            }
    };
    const auto fetch = [&](int32_t slab) {
        if (!wgrad.points && slab < slabs)
            fetch_x(slab);
    };
    const auto put = [&](int32_t slab) {
        if (!wgrad.points && slab < slabs)
#pragma unroll
            for (int i = 0; i < TILE_WIDE / LINES; i++)
                room.b[slab % STAGES][line + i * LINES][lane] = fetched[i];
        if (!wgrad.fours && slab < slabs)
            bring_dy(slab);
    };
    room.steps[thread] = step_of(conv, wgrad.even, column0 + thread);
    __syncthreads();
    for (int32_t slab = 0; slab < STAGES - 1; slab++)
        load(slab);
    fetch(0);
    put(0);
    fetch(1);
    for (int32_t slab = 0; slab < slabs; slab++) {
        copy_wait();
        __syncthreads();
        load(slab + STAGES - 1);
        put(slab + 1);
        fetch(slab + 2);
        add_slab<TF32, TALL, by_column_depth>(sums, &room.a[slab % STAGES][0][0],
                                              &room.b[slab % STAGES][0][0]);
    }
    const struct to_weights finish = {
        wgrad.dw + (wgrad.cut.pieces > 1 ? (int64_t)blockIdx.y * conv.out * columns : 0),
        columns,
        conv.inner,
        conv.taps,
        wgrad.even && wgrad.cut.pieces == 1,
        wgrad.accumulate};
#pragma unroll
    for (int i = 0; i < TALL / 16; i++)
#pragma unroll
        for (int p = 0; p < PAIRS; p++)
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const int32_t row = row0 + first_row<TALL>() + i * 8;
                const int32_t column = column0 + first_column() + p * 8 + k;
                if (row < conv.outer && column < columns)
                    finish.put_at(group * conv.outer + row, column, sums.at[i][p][k]);
            }
}

template <bool TF32, int TALL>
static void wgrad_launch(struct queue *queue, const struct wgrad &wgrad)
{
    const struct conv &conv = wgrad.conv;
    const unsigned tiles =
        blocks_for(conv.outer, TALL) * blocks_for((int64_t)conv.inner * conv.taps, TILE_WIDE);
    enqueue_large(queue, wgrad_tile<TF32, TALL>,
                  dim3(tiles, (unsigned)wgrad.cut.pieces, (unsigned)conv.groups),
                  dim3(TILE_THREADS), sizeof(struct wgrad_room<TALL>), wgrad);
}

void conv_wgrad(struct queue *queue, const struct conv &conv, enum conv_way way, const float *x,
                const float *dy, float *dw, bool accumulate, void *workspace)
{
    struct wgrad wgrad = {conv,
                          cut_of(conv),
                          x,
                          dy,
                          dw,
                          accumulate,
                          conv.down.y * conv.across.y % 4 == 0,
                          conv_is_pointwise(conv),
                          conv.inner % HALF == 0};
    const bool small = way == CONV_SMALL, tf32 = way == CONV_IN_TF32;
    const int32_t pieces = small ? small_pieces(conv) : wgrad.cut.pieces;
    const int32_t columns = conv.inner * conv.taps;
    const float *parts = (const float *)workspace;
    if (pieces > 1) {
        wgrad.dw = (float *)workspace;
        wgrad.accumulate = false;
    }
    wgrad.even = wgrad.even && !small;
    if (small)
        small_launch(queue, conv, x, dy, (float *)workspace);
    else if (wgrad.cut.tall == 16)
        wgrad_launch<false, 16>(queue, wgrad);
    else if (wgrad.cut.tall == 64)
        tf32 ? wgrad_launch<true, 64>(queue, wgrad) : wgrad_launch<false, 64>(queue, wgrad);
    else
        tf32 ? wgrad_launch<true, 128>(queue, wgrad) : wgrad_launch<false, 128>(queue, wgrad);
    const int64_t count = (int64_t)conv.out * columns;
    const struct to_weights finish = {dw, columns, conv.inner, conv.taps, wgrad.even, accumulate};
    if (pieces > MANY_PIECES)
        sum_rows(queue, pieces, count, reduce_value{parts}, finish);
    else if (pieces > 1 || small)
        enqueue(queue, gemm_add_pieces<struct to_weights>, dim3(blocks_striding(count)),
                dim3(THREADS), (int64_t)1, count, pieces, parts, finish);
}
