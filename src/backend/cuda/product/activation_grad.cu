/* activation_grad.cu: see activation_grad.h. The bound is the bytes: two numbers are read and one
 * is written for each element, or two where it is transposed; without this pass the update would
 * read it twice more. */
#include "backend/cuda/product/activation_grad.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/few_outputs.h"

static __device__ float2 pair_read(struct cells cells, int64_t index)
{
    if (precision_is_16bit(cells.type)) {
        const uint32_t bits = *(const uint32_t *)((const uint16_t *)cells.data + index);
        return make_float2(value_of_16bit((uint16_t)bits, cells.type),
                           value_of_16bit((uint16_t)(bits >> 16), cells.type));
    }
    return *(const float2 *)((const float *)cells.data + index);
}

static __device__ void pair_write(struct cells cells, int64_t index, float2 pair)
{
    if (precision_is_16bit(cells.type))
        *(uint32_t *)((uint16_t *)cells.data + index) =
            (uint32_t)bits_of_16bit(pair.x, cells.type) |
            (uint32_t)bits_of_16bit(pair.y, cells.type) << 16;
    else
        *(float2 *)((float *)cells.data + index) = pair;
}

static __device__ float2 pair_add(const struct pieces &pieces, int64_t index)
{
    const struct vector<2> sum = pieces_sum<2>(pieces, index);
    return make_float2(sum.at[0], sum.at[1]);
}

/* The layer above, where it has few outputs: its gradient and its weights. */
struct above {
    const float *dy; /* [samples, outputs] */
    const float *w;  /* [width, outputs] */
    int outputs;
};

/* How what is read comes. */
enum source { SOURCE_WHOLE, SOURCE_PIECES, SOURCE_FEW_OUTPUTS };

template <enum source SOURCE>
static __global__ void __launch_bounds__(GRAD_COLS / 2 * GRAD_LINES, SOURCE == SOURCE_WHOLE ? 8 : 4)
    activation_grad_tiles(struct activation_grad act_grad, enum activation function, float alpha,
                          struct cells saved, struct cells dy, struct cells dx, struct above above)
{
    constexpr bool FEW_OUTPUTS = SOURCE == SOURCE_FEW_OUTPUTS;
    __shared__ float tile[GRAD_ROWS][GRAD_COLS + 1];
    allow_next();
    await_last();
    const int x = (int)threadIdx.x, line = (int)threadIdx.y;
    const int64_t column0 = (int64_t)blockIdx.x * GRAD_COLS, column = column0 + 2 * x;
    const int64_t from = blockIdx.y * act_grad.chunk_rows;
    const int64_t to = from + act_grad.chunk_rows < act_grad.samples ? from + act_grad.chunk_rows
                                                                     : act_grad.samples;
    float2 sum = make_float2(0.0f, 0.0f), weights[FEW_OUTPUTS ? FEW_OUTPUTS_MOST : 1];
#pragma unroll
    for (int k = 0; FEW_OUTPUTS && k < FEW_OUTPUTS_MOST; k++)
        if (k < above.outputs && column < act_grad.width)
            weights[k] = make_float2(above.w[column * above.outputs + k],
                                     above.w[(column + 1) * above.outputs + k]);
    for (int64_t row0 = from; row0 < to; row0 += GRAD_ROWS) {
#pragma unroll
        for (int i = 0; i < GRAD_ROWS / GRAD_LINES; i++) {
            const int64_t row = row0 + line + i * GRAD_LINES;
            if (row >= to || column >= act_grad.width)
                continue;
            const int64_t index = row * act_grad.width + column;
            const float2 value = pair_read(saved, index);
            float2 pair = make_float2(0.0f, 0.0f);
            if (SOURCE == SOURCE_PIECES)
                pair = pair_add(act_grad.pieces, index);
            if (SOURCE == SOURCE_WHOLE)
                pair = pair_read(dy, index);
#pragma unroll
            for (int k = 0; FEW_OUTPUTS && k < FEW_OUTPUTS_MOST; k++) {
                if (k >= above.outputs)
                    continue;
                const float gradient = above.dy[row * above.outputs + k];
                pair.x = fmaf(gradient, weights[k].x, pair.x);
                pair.y = fmaf(gradient, weights[k].y, pair.y);
            }
            pair.x *= activation_derivative(function, alpha, value.x);
            pair.y *= activation_derivative(function, alpha, value.y);
            pair_write(dx, index, pair);
            sum.x += pair.x;
            sum.y += pair.y;
            tile[line + i * GRAD_LINES][2 * x] = pair.x;
            tile[line + i * GRAD_LINES][2 * x + 1] = pair.y;
        }
        if (!act_grad.transposes)
            continue;
        __syncthreads();
        for (int c = line; c < GRAD_COLS; c += GRAD_LINES)
            if (column0 + c < act_grad.width && row0 + x < to)
                act_grad.transposed[(column0 + c) * act_grad.step + row0 + x] = -tile[x][c];
        __syncthreads();
    }
    __syncthreads();
    tile[line][2 * x] = sum.x;
    tile[line][2 * x + 1] = sum.y;
    __syncthreads();
    const int c = line * GRAD_COLS / 2 + x;
    if (c >= GRAD_COLS || column0 + c >= act_grad.width)
        return;
    float all = 0.0f;
    for (int other = 0; other < GRAD_LINES; other++)
        all += tile[other][c];
    act_grad.sums[blockIdx.y * act_grad.width + column0 + c] = all;
}

/* Without turning: eight neighbours a thread, every 8th row of the chunk. */
static __global__ void __launch_bounds__(GRAD_COLS / 2 * GRAD_LINES)
    activation_grad_rows(struct activation_grad act_grad, enum activation function, float alpha,
                         struct cells saved, struct cells dy, struct cells dx)
{
    __shared__ float partial[GRAD_LINES][GRAD_COLS / 2][CELLS];
    allow_next();
    await_last();
    const int x = (int)threadIdx.x, line = (int)threadIdx.y;
    const int64_t column = ((int64_t)blockIdx.x * (GRAD_COLS / 2) + x) * CELLS;
    const int64_t from = blockIdx.y * act_grad.chunk_rows;
    const int64_t to = from + act_grad.chunk_rows < act_grad.samples ? from + act_grad.chunk_rows
                                                                     : act_grad.samples;
    float sums[CELLS] = {};
#pragma unroll 2
    for (int64_t row = from + line; row < to && column < act_grad.width; row += GRAD_LINES) {
        float slopes[CELLS], values[CELLS];
        cells_read(saved, row * act_grad.width + column, slopes);
        cells_read(dy, row * act_grad.width + column, values);
#pragma unroll
        for (int i = 0; i < CELLS; i++) {
            values[i] *= activation_derivative(function, alpha, slopes[i]);
            sums[i] += values[i];
        }
        cells_write(dx, row * act_grad.width + column, values);
    }
#pragma unroll
    for (int i = 0; i < CELLS; i++)
        partial[line][x][i] = sums[i];
    __syncthreads();
    /* now the lines are the eight neighbours */
    const int64_t own = column + line;
    if (own >= act_grad.width)
        return;
    float all = 0.0f;
    for (int other = 0; other < GRAD_LINES; other++)
        all += partial[other][x][line];
    act_grad.sums[blockIdx.y * act_grad.width + own] = all;
}

void launch_activation_grad(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.activate_grad;
    const struct activation_grad *act_grad = call->act_grad;
    const enum activation function = (enum activation)attr.function;
    const int64_t enough = TARGET_MULTIPROCESSORS * 2; /* blocks */
    const bool eights = !act_grad->transposes && !act_grad->pieces.count &&
                        !act_grad->few_outputs && act_grad->width % CELLS == 0 &&
                        act_grad->chunks * act_grad->width >= enough * CELLS * GRAD_COLS / 2;
    const int64_t columns = eights ? GRAD_COLS / 2 * CELLS : GRAD_COLS; /* of a block */
    const dim3 grid(blocks_for(act_grad->width, columns), (unsigned)act_grad->chunks);
    const dim3 block(GRAD_COLS / 2, GRAD_LINES);
    struct above above = {};
    if (act_grad->few_outputs) {
        const struct call layer = fusion_call(call, call->op - 1);
        above = {call_reals(&layer, 1), call_reals(&layer, 2), (int)call_dim(&layer, 2, 1)};
    }
    if (eights)
        enqueue_early(queue, activation_grad_rows, grid, block, 0, *act_grad, function, attr.alpha,
                      call_cells(call, 0), call_cells(call, 1), call_cells(call, 2));
    else
        enqueue_early(queue,
                      act_grad->few_outputs    ? activation_grad_tiles<SOURCE_FEW_OUTPUTS>
                      : act_grad->pieces.count ? activation_grad_tiles<SOURCE_PIECES>
                                               : activation_grad_tiles<SOURCE_WHOLE>,
                      grid, block, 0, *act_grad, function, attr.alpha, call_cells(call, 0),
                      call_cells(call, 1), call_cells(call, 2), above);
}
