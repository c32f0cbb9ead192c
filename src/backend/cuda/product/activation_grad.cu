/* activation_grad.cu: see activation_grad.h. The bound is the bytes: two numbers are read and one
 * is written for each element, or two where it is turned; without this pass the update would read
 * it twice more. */
#include "backend/cuda/product/activation_grad.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/plan/merge.h"
#include "backend/cuda/product/blas.h"
#include "backend/cuda/product/few_outputs.h"

/* A block has a tile of 64 columns, two neighbours a thread, and goes down a chunk of rows, 32 at a
 * time: a line of 32 threads has every 8th of them. */
enum { SLOPE_COLS = 64, SLOPE_ROWS = 32, SLOPE_LINES = 8, SLOPE_CHUNKS = 64, SLOPE_FROM = 48 };
enum { SLOPE_FEW = 256 }; /* samples: then a chunk is a row a thread */

static __device__ float2 pair_read(struct cells cells, int64_t index)
{
    if (precision_is_narrow(cells.type)) {
        const uint32_t bits = *(const uint32_t *)((const uint16_t *)cells.data + index);
        return make_float2(narrow_value((uint16_t)bits, cells.type),
                           narrow_value((uint16_t)(bits >> 16), cells.type));
    }
    return *(const float2 *)((const float *)cells.data + index);
}

static __device__ void pair_write(struct cells cells, int64_t index, float2 pair)
{
    if (precision_is_narrow(cells.type))
        *(uint32_t *)((uint16_t *)cells.data + index) =
            (uint32_t)narrow_bits(pair.x, cells.type) | (uint32_t)narrow_bits(pair.y, cells.type)
                                                            << 16;
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
enum source { SOURCE_WHOLE, SOURCE_PIECES, SOURCE_SLIM };

template <enum source SOURCE>
static __global__ void __launch_bounds__(SLOPE_COLS / 2 * SLOPE_LINES,
                                         SOURCE == SOURCE_WHOLE ? 8 : 4)
    slope_tiles(struct slope slope, enum activation function, float alpha, struct cells saved,
                struct cells dy, struct cells dx, struct above above)
{
    constexpr bool SLIM = SOURCE == SOURCE_SLIM;
    __shared__ float tile[SLOPE_ROWS][SLOPE_COLS + 1];
    allow_next();
    await_last();
    const int x = (int)threadIdx.x, line = (int)threadIdx.y;
    const int64_t column0 = (int64_t)blockIdx.x * SLOPE_COLS, column = column0 + 2 * x;
    const int64_t from = blockIdx.y * slope.chunk_rows;
    const int64_t to =
        from + slope.chunk_rows < slope.samples ? from + slope.chunk_rows : slope.samples;
    float2 sum = make_float2(0.0f, 0.0f), weights[SLIM ? SLIM_OUTPUTS : 1];
#pragma unroll
    for (int k = 0; SLIM && k < SLIM_OUTPUTS; k++)
        if (k < above.outputs && column < slope.width)
            weights[k] = make_float2(above.w[column * above.outputs + k],
                                     above.w[(column + 1) * above.outputs + k]);
    for (int64_t row0 = from; row0 < to; row0 += SLOPE_ROWS) {
#pragma unroll
        for (int i = 0; i < SLOPE_ROWS / SLOPE_LINES; i++) {
            const int64_t row = row0 + line + i * SLOPE_LINES;
            if (row >= to || column >= slope.width)
                continue;
            const int64_t index = row * slope.width + column;
            const float2 value = pair_read(saved, index);
            float2 pair = make_float2(0.0f, 0.0f);
            if (SOURCE == SOURCE_PIECES)
                pair = pair_add(slope.pieces, index);
            if (SOURCE == SOURCE_WHOLE)
                pair = pair_read(dy, index);
#pragma unroll
            for (int k = 0; SLIM && k < SLIM_OUTPUTS; k++) {
                if (k >= above.outputs)
                    continue;
                const float gradient = above.dy[row * above.outputs + k];
                pair.x = fmaf(gradient, weights[k].x, pair.x);
                pair.y = fmaf(gradient, weights[k].y, pair.y);
            }
            pair.x *= activation_slope(function, alpha, value.x);
            pair.y *= activation_slope(function, alpha, value.y);
            pair_write(dx, index, pair);
            sum.x += pair.x;
            sum.y += pair.y;
            tile[line + i * SLOPE_LINES][2 * x] = pair.x;
            tile[line + i * SLOPE_LINES][2 * x + 1] = pair.y;
        }
        if (!slope.turns)
            continue;
        __syncthreads();
        for (int c = line; c < SLOPE_COLS; c += SLOPE_LINES)
            if (column0 + c < slope.width && row0 + x < to)
                slope.turned[(column0 + c) * slope.step + row0 + x] = -tile[x][c];
        __syncthreads();
    }
    __syncthreads();
    tile[line][2 * x] = sum.x;
    tile[line][2 * x + 1] = sum.y;
    __syncthreads();
    const int c = line * SLOPE_COLS / 2 + x;
    if (c >= SLOPE_COLS || column0 + c >= slope.width)
        return;
    float all = 0.0f;
    for (int other = 0; other < SLOPE_LINES; other++)
        all += tile[other][c];
    slope.sums[blockIdx.y * slope.width + column0 + c] = all;
}

/* Without turning: eight neighbours a thread, every 8th row of the chunk. */
static __global__ void __launch_bounds__(SLOPE_COLS / 2 * SLOPE_LINES)
    slope_rows(struct slope slope, enum activation function, float alpha, struct cells saved,
               struct cells dy, struct cells dx)
{
    __shared__ float partial[SLOPE_LINES][SLOPE_COLS / 2][CELLS];
    allow_next();
    await_last();
    const int x = (int)threadIdx.x, line = (int)threadIdx.y;
    const int64_t column = ((int64_t)blockIdx.x * (SLOPE_COLS / 2) + x) * CELLS;
    const int64_t from = blockIdx.y * slope.chunk_rows;
    const int64_t to =
        from + slope.chunk_rows < slope.samples ? from + slope.chunk_rows : slope.samples;
    float sums[CELLS] = {};
#pragma unroll 2
    for (int64_t row = from + line; row < to && column < slope.width; row += SLOPE_LINES) {
        float slopes[CELLS], values[CELLS];
        cells_read(saved, row * slope.width + column, slopes);
        cells_read(dy, row * slope.width + column, values);
#pragma unroll
        for (int i = 0; i < CELLS; i++) {
            values[i] *= activation_slope(function, alpha, slopes[i]);
            sums[i] += values[i];
        }
        cells_write(dx, row * slope.width + column, values);
    }
#pragma unroll
    for (int i = 0; i < CELLS; i++)
        partial[line][x][i] = sums[i];
    __syncthreads();
    /* now the lines are the eight neighbours */
    const int64_t own = column + line;
    if (own >= slope.width)
        return;
    float all = 0.0f;
    for (int other = 0; other < SLOPE_LINES; other++)
        all += partial[other][x][line];
    slope.sums[blockIdx.y * slope.width + own] = all;
}

void slope_launch(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.activate_grad;
    const struct slope *slope = call->slope;
    const enum activation function = (enum activation)attr.function;
    const int64_t enough = 132 * 2; /* blocks: two for each multiprocessor */
    const bool eights = !slope->turns && !slope->pieces.count && !slope->slim &&
                        slope->width % CELLS == 0 &&
                        slope->chunks * slope->width >= enough * CELLS * SLOPE_COLS / 2;
    const int64_t columns = eights ? SLOPE_COLS / 2 * CELLS : SLOPE_COLS; /* of a block */
    const dim3 grid(blocks_for(slope->width, columns), (unsigned)slope->chunks);
    const dim3 block(SLOPE_COLS / 2, SLOPE_LINES);
    struct above above = {};
    if (slope->slim) {
        const struct call layer = merge_call(call, call->op - 1);
        above = {call_reals(&layer, 1), call_reals(&layer, 2), (int)call_dim(&layer, 2, 1)};
    }
    if (eights)
        enqueue_early(queue, slope_rows, grid, block, 0, *slope, function, attr.alpha,
                      call_cells(call, 0), call_cells(call, 1), call_cells(call, 2));
    else
        enqueue_early(queue,
                      slope->slim           ? slope_tiles<SOURCE_SLIM>
                      : slope->pieces.count ? slope_tiles<SOURCE_PIECES>
                                            : slope_tiles<SOURCE_WHOLE>,
                      grid, block, 0, *slope, function, attr.alpha, call_cells(call, 0),
                      call_cells(call, 1), call_cells(call, 2), above);
}

static const struct kernel kernel_slope = {
    OP_activate_grad, "activate_grad_sums_cuda", slope_launch, NULL, NULL, 0, false};

static uint64_t floats(int64_t count)
{
    return (uint64_t)count * sizeof(float);
}

static uint64_t take_bytes(struct plan *plan, uint64_t bytes)
{
    const uint64_t at = plan->slope_bytes;
    plan->slope_bytes += (bytes + 255) / 256 * 256;
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
           program->ops[o].part == program->ops[o - 1].part && shape->dim[0] >= SLOPE_FROM &&
           shape->dim[1] % 2 == 0 && op_input(program, &program->ops[o], 3) >= 0;
}

/* Does the op before `o`, a slope, make what that reads, for nobody else? */
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
static void join_product(struct plan *plan, int32_t o, struct slope *slope)
{
    const struct device *device = plan->instance->device;
    const struct op *above = &plan->program->ops[o - 1];
    struct thin thin;
    if (!follows_product(plan, o))
        return;
    if (dense_blas_thin(device, plan->program, above, &thin)) {
        slope->pieces = thin_pieces(&thin, NULL);
        slope->pieces_at = take_bytes(plan, thin_bytes(&thin));
    }
    slope->slim = dense_lean_slim(device, plan->program, above);
}

enum status slope_choose(struct plan *plan)
{
    const struct program *program = plan->program;
    const struct device *device = plan->instance->device;
    NEED(plan->slopes = (struct slope **)arena_array(&plan->arena, (size_t)program->op_count + 1,
                                                     sizeof *plan->slopes));
    for (int32_t o = 0; o < program->op_count; o++) {
        if (plan->kernels[o] != dense_blas_kernel(device, program, &program->ops[o]) ||
            !follows(program, o))
            continue;
        struct slope *slope;
        NEED(slope = (struct slope *)arena_alloc(&plan->arena, sizeof *slope));
        const int64_t *dim = program->tensors[op_input(program, &program->ops[o], 1)].shape.dim;
        const int64_t inputs =
            program->tensors[op_input(program, &program->ops[o], 0)].shape.dim[1];
        const int64_t least = (dim[0] + SLOPE_CHUNKS - 1) / SLOPE_CHUNKS;
        const int64_t rows = dim[0] <= SLOPE_FEW ? SLOPE_LINES : SLOPE_ROWS;
        slope->samples = dim[0];
        slope->width = dim[1];
        slope->chunk_rows = (least + rows - 1) / rows * rows;
        slope->chunks = blocks_for(slope->samples, slope->chunk_rows);
        slope->sums_at = take_bytes(plan, floats(slope->chunks * slope->width));
        slope->turns = dense_blas_turns(device, program, &program->ops[o]);
        slope->step = dense_blas_turned_step(slope->samples);
        if (slope->turns)
            slope->turned_at = take_bytes(plan, floats(slope->width * slope->step));
        if (dense_blas_turns_inputs(device, program, &program->ops[o]))
            slope->inputs_at = take_bytes(plan, floats(inputs * slope->step));
        join_product(plan, o - 1, slope);
        plan->slopes[o - 1] = plan->slopes[o] = slope;
        plan->kernels[o - 1] = &kernel_slope;
        if (slope->slim)
            merge_leave(plan, o - 1);
    }
    return STATUS_OK;
}

void slope_place(struct plan *plan)
{
    for (int32_t o = 0; o < plan->program->op_count; o++) {
        struct slope *slope = plan->slopes[o];
        if (!slope)
            continue;
        slope->sums = (float *)(plan->slope_memory + slope->sums_at);
        slope->pieces.data = (const float *)(plan->slope_memory + slope->pieces_at);
        slope->turned = slope->turns ? (float *)(plan->slope_memory + slope->turned_at) : NULL;
        slope->inputs = (float *)(plan->slope_memory + slope->inputs_at);
    }
}

const struct slope *slope_below(const struct plan *plan, int32_t op)
{
    const bool is_last = op + 1 >= plan->program->op_count;
    const struct slope *next = is_last ? NULL : plan->slopes[op + 1];
    return next && next != plan->slopes[op] && (next->pieces.count || next->slim) ? next : NULL;
}
