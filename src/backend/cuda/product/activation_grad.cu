/* activation_grad.cu: see activation_grad.h. The bound is the bytes: two numbers are read and one
 * is written for each element, or two where it is transposed; without this pass the update would
 * read it twice more. */
#include "backend/cuda/product/activation_grad.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/plan/merge.h"
#include "backend/cuda/product/blas.h"
#include "backend/cuda/product/few_outputs.h"

/* A block has a tile of 64 columns, two neighbours a thread, and goes down a chunk of rows, 32 at a
 * time: a line of 32 threads has every 8th of them. */
enum { GRAD_COLS = 64, GRAD_ROWS = 32, GRAD_LINES = 8, GRAD_CHUNKS = 64, GRAD_FROM = 48 };
enum { GRAD_FEW = 256 }; /* samples: then a chunk is a row a thread */

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

void activation_grad_launch(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.activate_grad;
    const struct activation_grad *act_grad = call->act_grad;
    const enum activation function = (enum activation)attr.function;
    const int64_t enough = 132 * 2; /* blocks: two for each multiprocessor */
    const bool eights = !act_grad->transposes && !act_grad->pieces.count &&
                        !act_grad->few_outputs && act_grad->width % CELLS == 0 &&
                        act_grad->chunks * act_grad->width >= enough * CELLS * GRAD_COLS / 2;
    const int64_t columns = eights ? GRAD_COLS / 2 * CELLS : GRAD_COLS; /* of a block */
    const dim3 grid(blocks_for(act_grad->width, columns), (unsigned)act_grad->chunks);
    const dim3 block(GRAD_COLS / 2, GRAD_LINES);
    struct above above = {};
    if (act_grad->few_outputs) {
        const struct call layer = merge_call(call, call->op - 1);
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

static const struct kernel kernel_activation_grad = {
    OP_activate_grad, "activate_grad_sums_cuda", activation_grad_launch, NULL, NULL, 0, false};

static uint64_t floats(int64_t count)
{
    return (uint64_t)count * sizeof(float);
}

static uint64_t take_bytes(struct plan *plan, uint64_t bytes)
{
    const uint64_t at = plan->act_grad_bytes;
    plan->act_grad_bytes += (bytes + 255) / 256 * 256;
    return at;
}

/* Does the op `o` begin with what the op before it ends with? */
static bool follows(const struct program *program, int32_t o)
{
    if (o == 0 || program->ops[o].kind != OP_dense_sgd ||
        program->ops[o - 1].kind != OP_activate_grad)
        return false;
    const int32_t dy = op_input(program, &program->ops[o], 1);
    const struct shape *shape = &program->tensors[dy].shape;
    return op_output(program, &program->ops[o - 1], 0) == dy &&
           program->ops[o].part == program->ops[o - 1].part && shape->dim[0] >= GRAD_FROM &&
           shape->dim[1] % 2 == 0 && op_input(program, &program->ops[o], 3) >= 0;
}

/* Does the op before `o`, an activation gradient, make what that reads, for nobody else? */
static bool follows_product(const struct plan *plan, int32_t o)
{
    const struct program *program = plan->program;
    const struct op *op = &program->ops[o], *above = op - 1;
    if (o == 0 || above->kind != OP_dense_sgd || above->part != op->part)
        return false;
    const int32_t dx = op_output(program, above, 2);
    if (dx < 0 || op_input(program, op, 1) != dx || plan->observer.level != OBSERVE_NOTHING)
        return false;
    for (int32_t other = 0; other < program->op_count; other++)
        for (int32_t i = 0; other != o && i < program->ops[other].inputs; i++)
            if (op_input(program, &program->ops[other], i) == dx)
                return false;
    return plan->kernels[o - 1] == dense_blas_kernel(plan->instance->device, program, above);
}

/* Has that a part in it? */
static void join_product(struct plan *plan, int32_t o, struct activation_grad *act_grad)
{
    const struct device *device = plan->instance->device;
    const struct op *above = &plan->program->ops[o - 1];
    struct split_k split_k;
    if (!follows_product(plan, o))
        return;
    if (dense_blas_split_k(device, plan->program, above, &split_k)) {
        act_grad->pieces = split_k_pieces(&split_k, NULL);
        act_grad->pieces_at = take_bytes(plan, split_k_bytes(&split_k));
    }
    act_grad->few_outputs = dense_has_few_outputs(device, plan->program, above);
}

enum status activation_grad_choose(struct plan *plan)
{
    const struct program *program = plan->program;
    const struct device *device = plan->instance->device;
    NEED(plan->act_grads = (struct activation_grad **)arena_array(
             &plan->arena, (size_t)program->op_count + 1, sizeof *plan->act_grads));
    for (int32_t o = 0; o < program->op_count; o++) {
        if (plan->kernels[o] != dense_blas_kernel(device, program, &program->ops[o]) ||
            !follows(program, o))
            continue;
        struct activation_grad *act_grad;
        NEED(act_grad = (struct activation_grad *)arena_alloc(&plan->arena, sizeof *act_grad));
        const int64_t *dim = program->tensors[op_input(program, &program->ops[o], 1)].shape.dim;
        const int64_t inputs =
            program->tensors[op_input(program, &program->ops[o], 0)].shape.dim[1];
        const int64_t least = (dim[0] + GRAD_CHUNKS - 1) / GRAD_CHUNKS;
        const int64_t rows = dim[0] <= GRAD_FEW ? GRAD_LINES : GRAD_ROWS;
        act_grad->samples = dim[0];
        act_grad->width = dim[1];
        act_grad->chunk_rows = (least + rows - 1) / rows * rows;
        act_grad->chunks = blocks_for(act_grad->samples, act_grad->chunk_rows);
        act_grad->sums_at = take_bytes(plan, floats(act_grad->chunks * act_grad->width));
        act_grad->transposes = dense_blas_transposes(device, program, &program->ops[o]);
        act_grad->step = dense_wgrad_step(act_grad->samples);
        if (act_grad->transposes)
            act_grad->transposed_at = take_bytes(plan, floats(act_grad->width * act_grad->step));
        if (dense_blas_transposes_inputs(device, program, &program->ops[o]))
            act_grad->inputs_at = take_bytes(plan, floats(inputs * act_grad->step));
        join_product(plan, o - 1, act_grad);
        plan->act_grads[o - 1] = plan->act_grads[o] = act_grad;
        plan->kernels[o - 1] = &kernel_activation_grad;
        if (act_grad->few_outputs)
            merge_leave(plan, o - 1);
    }
    return STATUS_OK;
}

void activation_grad_place(struct plan *plan)
{
    for (int32_t o = 0; o < plan->program->op_count; o++) {
        struct activation_grad *act_grad = plan->act_grads[o];
        if (!act_grad)
            continue;
        act_grad->sums = (float *)(plan->act_grad_memory + act_grad->sums_at);
        act_grad->pieces.data = (const float *)(plan->act_grad_memory + act_grad->pieces_at);
        act_grad->transposed = act_grad->transposes
                                   ? (float *)(plan->act_grad_memory + act_grad->transposed_at)
                                   : NULL;
        act_grad->inputs = (float *)(plan->act_grad_memory + act_grad->inputs_at);
    }
}

const struct activation_grad *activation_grad_below(const struct plan *plan, int32_t op)
{
    const bool is_last = op + 1 >= plan->program->op_count;
    const struct activation_grad *next = is_last ? NULL : plan->act_grads[op + 1];
    return next && next != plan->act_grads[op] && (next->pieces.count || next->few_outputs) ? next
                                                                                            : NULL;
}
