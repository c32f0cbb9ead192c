/* gemm_int8.cu: see gemm_int8.h.
 *
 * A block makes a tile of the result. Slabs of 64 depths of both factors come to shared memory by
 * cp.async, some stages ahead. x lies there as rows of 64 bytes, whose pieces of 16 are exchanged
 * so that ldmatrix meets no bank twice. Weights lie as in memory, rows of columns; a thread reads
 * four neighbouring columns of four depths and transposes them in registers (eight byte
 * permutations for four tensor core operands). Tensor core column g of tile j is column 4·g + j, so
 * that a thread ends with eight neighbouring results of a row. */
#include "backend/cuda/narrow/gemm_int8.h"

enum { SLAB = 64, STAGES = 4, PIECE = 16 };
enum { SMALL_DOWN = 2, LARGE_DOWN = 4 }; /* rows of a warp's tile, by 16 */

#if __CUDA_ARCH__ >= 800

/* BYTES of shared memory, from memory or, where `there` is false, zeros. */
template <int BYTES> static __device__ void copy_piece(uint32_t to, const void *from, bool there)
{
    const int some = there ? BYTES : 0;
    if constexpr (BYTES == PIECE)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(some)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(some)
                     : "memory");
}

/* Where a piece of 16 bytes of a row of x is. */
static __device__ uint32_t place_x(int row, int piece)
{
    return (uint32_t)(row * SLAB + ((piece ^ (row >> 1 & 3)) * PIECE));
}

/* Where a column of a depth of w is. */
template <int COLUMNS> static __device__ uint32_t place_w(int depth, int column)
{
    return (uint32_t)(depth * COLUMNS + (column ^ ((depth >> 2 & (COLUMNS / 32 - 1)) * 32)));
}

/* A thread's share of the copies of x: pieces at one place of the depth, of some rows. */
template <int ROWS, int THREADS_, int WIDE> struct x_pieces {
    static constexpr int ACROSS = SLAB / WIDE, APART = THREADS_ / ACROSS, COUNT = ROWS / APART;
    const struct gemm_int8 &gemm;
    int32_t depth, channel, tap_row, tap_column; /* of the next slab's piece */
    int32_t top[COUNT], left[COUNT];             /* of the windows */
    const uint8_t *image[COUNT];                 /* NULL: there is no such row */

    __device__ x_pieces(const struct gemm_int8 &gemm_, int row0) : gemm(gemm_)
    {
        depth = (int32_t)threadIdx.x % ACROSS * WIDE;
        const int32_t tap = depth / gemm.channels;
        channel = depth % gemm.channels;
        tap_row = tap / gemm.across.kernel;
        tap_column = tap % gemm.across.kernel;
        const int32_t pixels = gemm.down.y * gemm.across.y;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int32_t row = row0 + (int32_t)threadIdx.x / ACROSS + i * APART;
            const int32_t sample = row / pixels, pixel = row - sample * pixels;
            const int32_t p = pixel / gemm.across.y, q = pixel - p * gemm.across.y;
            image[i] = row < gemm.rows
                           ? gemm.x + (int64_t)sample * gemm.down.x * gemm.across.x * gemm.channels
                           : NULL;
            top[i] = p * gemm.down.stride - gemm.down.pad;
            left[i] = q * gemm.across.stride - gemm.across.pad;
        }
    }
    __device__ void ask(uint32_t shared)
    {
        const int32_t within = (int32_t)threadIdx.x % ACROSS * WIDE;
        const int32_t down = tap_row * gemm.down.dilation,
                      right = tap_column * gemm.across.dilation;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int32_t row = top[i] + down, column = left[i] + right;
            const bool inside =
                (uint32_t)row < (uint32_t)gemm.down.x && (uint32_t)column < (uint32_t)gemm.across.x;
            const bool there = depth < gemm.depth && image[i] && (inside || gemm.outside);
            const uint8_t *from =
                !there ? gemm.x
                : inside
                    ? image[i] + ((int64_t)row * gemm.across.x + column) * gemm.channels + channel
                    : gemm.outside;
            const int at = (int)threadIdx.x / ACROSS + i * APART;
            copy_piece<WIDE>(shared + place_x(at, within / PIECE) + (uint32_t)(within % PIECE),
                             from, there);
        }
        depth += SLAB;
        channel += SLAB;
        while (channel >= gemm.channels) {
            channel -= gemm.channels;
            if (++tap_column == gemm.across.kernel) {
                tap_column = 0;
                tap_row++;
            }
        }
    }
};

/* … and of those of w. */
template <int COLUMNS, int THREADS_, int WIDE>
static __device__ void ask_w(const struct gemm_int8 &gemm, uint32_t shared, int column0,
                             int32_t depth0)
{
    constexpr int ACROSS = COLUMNS / WIDE, APART = THREADS_ / ACROSS, COUNT = SLAB / APART;
    const int column = (int)threadIdx.x % ACROSS * WIDE;
    const bool exists = column0 + column < gemm.columns;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int row = (int)threadIdx.x / ACROSS + i * APART;
        const bool there = exists && depth0 + row < gemm.depth;
        const int8_t *from =
            there ? gemm.w + (int64_t)(depth0 + row) * gemm.pitch + column0 + column : gemm.w;
        copy_piece<WIDE>(shared + place_w<COLUMNS>(row, column), from, there);
    }
}

static __device__ void load_matrices(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ uint32_t load_word(uint32_t from)
{
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}

/* A warp's tile: 16·DOWN rows of 32 columns. */
template <int DOWN, int COLUMNS>
static __device__ void multiply_slab(int32_t (&sums)[DOWN][4][4], uint32_t x, uint32_t w, int row0,
                                     int column0)
{
    const int lane = (int)threadIdx.x % 32, group = lane / 4, place = lane % 4;
#pragma unroll
    for (int half = 0; half < SLAB / 32; half++) {
        uint32_t b[2][4];
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                b[upper][i] = load_word(w + place_w<COLUMNS>(half * 32 + upper * 16 + place * 4 + i,
                                                             column0 + 4 * group));
            int8_transpose(b[upper]);
        }
#pragma unroll
        for (int d = 0; d < DOWN; d++) {
            uint32_t a[4];
            load_matrices(a, x + place_x(row0 + d * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < 4; j++)
                int8_multiply_add(sums[d][j], a, b[0][j], b[1][j]);
        }
    }
}

/* Eight neighbouring results of a row. */
static __device__ void end_row(const struct gemm_int8 &gemm,
                               const struct int8_channel (&channels)[8], int32_t row,
                               int32_t column, const int32_t (&sums)[8])
{
    const int32_t pixels = gemm.down.y * gemm.across.y;
    const int some = min(8, gemm.columns - column);
    int64_t at = (int64_t)row * gemm.columns + column, apart = 1;
    if (gemm.nchw) {
        const int32_t sample = row / pixels;
        apart = pixels;
        at = ((int64_t)sample * gemm.columns + column) * pixels + (row - sample * pixels);
    }
    uint8_t levels[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (i >= some)
            continue;
        const int32_t sum = sums[i] + channels[i].bias;
        if (!gemm.ending.multiplier)
            ((int32_t *)gemm.y)[at + i * apart] = sum;
        else
            levels[i] = int8_end(gemm.ending, channels[i], sum);
    }
    if (!gemm.ending.multiplier)
        return;
    uint8_t *y = (uint8_t *)gemm.y + at;
    if (apart == 1 && some == 8 && gemm.columns % 8 == 0) {
        *(uint2 *)y = make_uint2((uint32_t)levels[0] | (uint32_t)levels[1] << 8 |
                                     (uint32_t)levels[2] << 16 | (uint32_t)levels[3] << 24,
                                 (uint32_t)levels[4] | (uint32_t)levels[5] << 8 |
                                     (uint32_t)levels[6] << 16 | (uint32_t)levels[7] << 24);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < some)
            y[i * apart] = levels[i];
}

#endif

/* Warps are DOWN_WARPS × ACROSS_WARPS; X_WIDE and W_WIDE: bytes that are copied at once. */
template <int DOWN, int DOWN_WARPS, int ACROSS_WARPS, int X_WIDE, int W_WIDE>
static __global__ void __launch_bounds__(32 * DOWN_WARPS * ACROSS_WARPS)
    gemm_int8_tile(const __grid_constant__ struct gemm_int8 gemm)
{
#if __CUDA_ARCH__ >= 800
    constexpr int ROWS = 16 * DOWN * DOWN_WARPS, COLUMNS = 32 * ACROSS_WARPS;
    constexpr int OWN_THREADS = 32 * DOWN_WARPS * ACROSS_WARPS;
    constexpr uint32_t X_BYTES = ROWS * SLAB, STAGE_BYTES = X_BYTES + SLAB * COLUMNS;
    extern __shared__ uint4 gemm_int8_shared[];
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(gemm_int8_shared);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int row0 = (int)blockIdx.y * ROWS, column0 = (int)blockIdx.x * COLUMNS;
    const int down = warp / ACROSS_WARPS * 16 * DOWN, across = warp % ACROSS_WARPS * 32;
    const int slabs = (gemm.depth + SLAB - 1) / SLAB;
    struct x_pieces<ROWS, OWN_THREADS, X_WIDE> pieces(gemm, row0);
    int32_t sums[DOWN][4][4] = {};
    const auto ask = [&](int slab) {
        const uint32_t stage = shared + (uint32_t)(slab % STAGES) * STAGE_BYTES;
        if (slab < slabs) {
            pieces.ask(stage);
            ask_w<COLUMNS, OWN_THREADS, W_WIDE>(gemm, stage + X_BYTES, column0, slab * SLAB);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    allow_next();
    await_last();
    for (int slab = 0; slab < STAGES - 1; slab++)
        ask(slab);
    for (int slab = 0; slab < slabs; slab++) {
        const uint32_t stage = shared + (uint32_t)(slab % STAGES) * STAGE_BYTES;
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        ask(slab + STAGES - 1);
        multiply_slab<DOWN, COLUMNS>(sums, stage, stage + X_BYTES, down, across);
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");

    const int32_t column = column0 + across + 8 * (lane % 4);
    struct int8_channel channels[8];
    if (column >= gemm.columns)
        return;
#pragma unroll
    for (int i = 0; i < 8; i++)
        channels[i].take(gemm.ending, min(column + i, gemm.columns - 1));
#pragma unroll
    for (int d = 0; d < DOWN; d++)
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            const int32_t row = row0 + down + d * 16 + upper * 8 + lane / 4;
            int32_t own[8];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                own[j] = sums[d][j][2 * upper];
                own[4 + j] = sums[d][j][2 * upper + 1];
            }
            if (row < gemm.rows)
                end_row(gemm, channels, row, column, own);
        }
#endif
}

/* Rows of weights that are no whole pieces have the smallest tiles alone. */
template <int DOWN, int DOWN_WARPS, int ACROSS_WARPS>
static void launch_tile(struct queue *queue, const struct gemm_int8 &gemm)
{
    constexpr int ROWS = 16 * DOWN * DOWN_WARPS, COLUMNS = 32 * ACROSS_WARPS;
    constexpr int W_LEAST = DOWN == SMALL_DOWN ? 4 : PIECE;
    const bool wide_x = gemm.channels % PIECE == 0, wide_w = gemm.pitch % PIECE == 0;
    const auto kernel =
        wide_x   ? wide_w ? gemm_int8_tile<DOWN, DOWN_WARPS, ACROSS_WARPS, PIECE, PIECE>
                          : gemm_int8_tile<DOWN, DOWN_WARPS, ACROSS_WARPS, PIECE, W_LEAST>
          : wide_w ? gemm_int8_tile<DOWN, DOWN_WARPS, ACROSS_WARPS, 4, PIECE>
                 : gemm_int8_tile<DOWN, DOWN_WARPS, ACROSS_WARPS, 4, W_LEAST>;
    enqueue_early(
        queue, kernel, dim3(blocks_for(gemm.columns, COLUMNS), blocks_for(gemm.rows, ROWS)),
        dim3(32 * DOWN_WARPS * ACROSS_WARPS), (size_t)STAGES * SLAB * (ROWS + COLUMNS), gemm);
}

/* The largest tile of which every multiprocessor has one. */
void gemm_int8_multiply(struct queue *queue, const struct gemm_int8 *gemm)
{
    const auto tiles = [&](int rows, int columns) {
        return (int64_t)blocks_for(gemm->rows, rows) * blocks_for(gemm->columns, columns);
    };
    if (gemm->pitch % PIECE != 0)
        launch_tile<SMALL_DOWN, 2, 2>(queue, *gemm);
    else if (gemm->columns > 64 && tiles(128, 128) >= TARGET_MULTIPROCESSORS)
        launch_tile<LARGE_DOWN, 2, 4>(queue, *gemm);
    else if (tiles(128, 64) >= TARGET_MULTIPROCESSORS)
        launch_tile<LARGE_DOWN, 2, 2>(queue, *gemm);
    else
        launch_tile<SMALL_DOWN, 2, 2>(queue, *gemm);
}
