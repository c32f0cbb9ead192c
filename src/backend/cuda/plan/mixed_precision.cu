/* mixed_precision.cu: which tensors are kept in 16 bits, and the kernels that are no products and
 * read or write them. */
#include "backend/cuda/plan/mixed_precision.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/merge.h"

static __global__ void cast_each(int64_t count, struct cells from, struct cells to)
{
    for_eights(count, [=](int64_t first, int some) {
        float values[CELLS];
        cells_read_some(from, first, some, values);
        cells_write_some(to, first, some, values);
    });
}

void mixed_cast(struct queue *queue, int64_t count, struct cells from, struct cells to)
{
    enqueue(queue, cast_each, dim3(blocks_of_eights(count)), dim3(THREADS), count, from, to);
}

void mixed_refresh(const struct call *call, struct queue *queue)
{
    for (int32_t i = call->op->inputs; call->mixed && i < call->op->inputs + call->op->outputs;
         i++) {
        if (!call_has(call, i) || call_tensor(call, i)->role != ROLE_PARAM)
            continue;
        mixed_cast(queue, call_count(call, i), call_cells(call, i),
                   mixed_copy(call->mixed, call_tensor(call, i)));
    }
}

void mixed_launch(const struct kernel *kernel, const struct call *call, struct queue *queue)
{
    const int32_t output = call->op->inputs;
    kernel->launch(call, queue);
    if (!kernel->rounds)
        mixed_refresh(call, queue);
    if (call_loss_scale(call) && loss_scale_begins(call->op->kind))
        loss_scale_apply(queue, call_count(call, output), call_reals(call, output),
                         call_loss_scale(call));
}

static __global__ void activate_each(int64_t count, enum activation function, float alpha,
                                     struct cells x, struct cells y)
{
    allow_next();
    await_last();
    for_eights(count, [=](int64_t first, int some) {
        float values[CELLS];
        cells_read_some(x, first, some, values);
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            values[i] = activation_value_alpha(function, alpha, values[i]);
        cells_write_some(y, first, some, values);
    });
}

void mixed_activate(struct queue *queue, int64_t count, enum activation function, float alpha,
                    struct cells x, struct cells y)
{
    enqueue_early(queue, activate_each, dim3(blocks_of_eights(count)), dim3(THREADS), 0, count,
                  function, alpha, x, y);
}

/* A block a row; eight numbers a thread where rows begin at multiples of that. */
static __global__ void MOVING_BOUNDS load_row(int64_t width, const int32_t *rows,
                                              const struct feed *feed, const struct feed_view *view,
                                              struct cells x)
{
    allow_next();
    await_last();
    const int64_t row =
        view->staged ? (int64_t)feed->part * gridDim.x + blockIdx.x : rows[blockIdx.x];
    float *from = (float *)view->data + row * width;
    const int64_t to = (int64_t)blockIdx.x * width;
    if (width % CELLS == 0)
        for (int64_t i = threadIdx.x * CELLS; i < width; i += blockDim.x * CELLS) {
            float values[CELLS];
            cells_read(cells{from, PRECISION_FP32}, i, values);
            cells_write(x, to + i, values);
        }
    else
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
            cells_put(x, to + i, from[i]);
}

static void load_16bit(const struct call *call, struct queue *queue)
{
    const int64_t rows = call_dim(call, 0, 0), width = call_count(call, 1) / rows;
    const int32_t tensor = op_output(call->program, call->op, 0);
    const int64_t share = width % CELLS == 0 ? width / CELLS : width;
    const unsigned most = moving_threads(queue, rows * share);
    const unsigned threads = share < most ? ((unsigned)share + 31) / 32 * 32 : most;
    enqueue_early(queue, load_row, dim3((unsigned)rows), dim3(threads), 0, width,
                  call_integers(call, 0), (const struct feed *)call->feed,
                  (const struct feed_view *)&call->views[tensor], call_cells(call, 1));
}

#define ROW(kind, launch, workspace_bytes)                                                         \
    {                                                                                              \
        OP_##kind, #kind "_16bit_cuda", launch, workspace_bytes, NULL, 0, false                    \
    }

static const struct kernel kernels[] = {ROW(load, load_16bit, NULL),
                                        ROW(activate, launch_activate, NULL),
                                        ROW(activate_grad, launch_activate_grad, NULL),
                                        ROW(sum_rows, launch_sum_rows, workspace_sum_rows)};

const struct kernel *mixed_kernel(const struct op *op)
{
    return kernel_in(kernels, op->kind);
}

/* May this operand be in 16 bits? Of products: factors, and what is no gradient of a parameter; an
 * output with a bias needs that in 16 bits as well. */
static bool takes_16bit(const struct program *program, const struct op *op, bool is_product,
                        int32_t operand)
{
    const bool output = operand == 3;
    const int32_t bias = op->inputs > 2 ? op_input(program, op, 2) : -1;
    switch (op->kind) {
    case OP_dense:
    case OP_dense_t:
        return is_product && (operand == 0 ||
                              (output && (bias < 0 || program->tensors[bias].role == ROLE_PARAM)));
    case OP_outer: return is_product && operand <= 1;
    case OP_dense_sgd: return is_product && (operand <= 1 || operand == 7);
    default: return mixed_kernel(op) && !(op->kind == OP_sum_rows && operand == 1);
    }
}

/* An op that writes over what it reads must find both equally wide. */
static bool keep_wide_in_place(const struct program *program, const struct op *op, bool *tensors)
{
    bool changed = false;
    for (int32_t i = 0; i < op->inputs; i++)
        for (int32_t o = 0; o < op->outputs; o++) {
            const int32_t x = op_input(program, op, i), y = op_output(program, op, o);
            if (x < 0 || y < 0)
                continue;
            const int32_t from = program_root(program, x), to = program_root(program, y);
            if (tensors[from] == tensors[to] || !merge_meets(program, from, to))
                continue;
            tensors[from] = tensors[to] = false;
            changed = true;
        }
    return changed;
}

void mixed_choose(const struct program *program, const bool *is_product, bool *tensors)
{
    for (int32_t t = 0; t < program->tensor_count; t++)
        tensors[t] = false;
    for (int32_t o = 0; o < program->op_count; o++)
        for (int32_t i = 0; is_product[o] && i < program->ops[o].inputs + program->ops[o].outputs;
             i++) {
            const int32_t t = program->operands[program->ops[o].first + i];
            if (t >= 0 && takes_16bit(program, &program->ops[o], true, i))
                tensors[program_root(program, t)] = true;
        }
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            const int32_t t = program->operands[op->first + i];
            if (t >= 0 && !takes_16bit(program, op, is_product[o], i))
                tensors[program_root(program, t)] = false;
        }
    }
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].dtype != DTYPE_F32 ||
            (program->tensors[t].role != ROLE_INPUT && program->tensors[t].role != ROLE_ACTIVATION))
            tensors[t] = false;
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t o = 0; o < program->op_count; o++)
            changed = keep_wide_in_place(program, &program->ops[o], tensors) || changed;
    }
    for (int32_t t = 0; t < program->tensor_count; t++)
        tensors[t] = tensors[program_root(program, t)];
}
