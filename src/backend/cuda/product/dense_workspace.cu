/* dense_workspace.cu: the workspace of products, and their factors. */
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/product/dense_blas.h"

enum { FACTORS_BYTES = 256, TRANSPOSES_FROM = 512, TRANSPOSED_STEP = 8 };

static uint64_t padded(uint64_t bytes)
{
    return (bytes + FACTORS_BYTES - 1) / FACTORS_BYTES * FACTORS_BYTES;
}

static uint64_t sums_bytes(const struct program *program, const struct op *op)
{
    return op->kind == OP_dense_sgd ? sum_rows_bytes(tensor_of(program, op, 1)->shape.dim[1]) : 0;
}

uint64_t dense_blas_twin_bytes(const struct program *program, const struct op *op)
{
    return sums_bytes(program, op);
}

bool dense_wgrad_transposes(const struct program *program, const struct op *op)
{
    const int64_t *x = tensor_of(program, op, 0)->shape.dim;
    const int64_t *dy = tensor_of(program, op, 1)->shape.dim;
    return (op->kind == OP_outer || op->kind == OP_dense_sgd) && x[0] >= TRANSPOSES_FROM &&
           x[1] >= TRANSPOSES_FROM && dy[1] >= TRANSPOSES_FROM;
}

int64_t dense_wgrad_step(int64_t samples)
{
    return (samples + TRANSPOSED_STEP - 1) / TRANSPOSED_STEP * TRANSPOSED_STEP;
}

static uint64_t spare_bytes(enum spare spare, const struct program *program, const struct op *op,
                            int32_t operand)
{
    if (operand >= op->inputs || op_input(program, op, operand) < 0)
        return 0;
    const struct tensor *tensor = tensor_of(program, op, operand);
    if (spare == SPARE_ROUNDED)
        return padded(tensor->bytes / 2);
    if (spare == SPARE_TRANSPOSED && operand < 2 && dense_wgrad_transposes(program, op))
        return padded((uint64_t)(tensor->shape.dim[1] * dense_wgrad_step(tensor->shape.dim[0])) *
                      sizeof(float));
    return 0;
}

uint64_t dense_workspace_bytes(enum spare spare, const struct program *program, const struct op *op)
{
    uint64_t bytes = FACTORS_BYTES + padded(sums_bytes(program, op)) + PRODUCT_BYTES;
    for (int32_t operand = 0; operand < 3; operand++)
        bytes += spare_bytes(spare, program, op, operand);
    return bytes;
}

struct room dense_workspace_of(const struct call *call, const struct queue *queue, void *workspace)
{
    const enum spare spare = call->mixed                 ? SPARE_ROUNDED
                             : blas_is_tf32(queue->blas) ? SPARE_TRANSPOSED
                                                         : SPARE_NONE;
    struct room room;
    char *at = (char *)workspace;
    room.factors = (float *)at;
    at += FACTORS_BYTES;
    room.sums = (float *)at;
    at += padded(sums_bytes(call->program, call->op));
    room.product = at;
    at += PRODUCT_BYTES;
    for (int32_t operand = 0; operand < 3; operand++) {
        room.spare[operand] = at;
        at += spare_bytes(spare, call->program, call->op, operand);
    }
    room.pieces = (float *)at;
    return room;
}

struct cells dense_factor(const struct call *call, struct queue *queue, int32_t operand,
                          const struct room *room)
{
    const struct cells kept = call_cells(call, operand);
    if (!call->mixed || precision_is_16bit(kept.type))
        return kept;
    if (call_tensor(call, operand)->role == ROLE_PARAM)
        return mixed_copy(call->mixed, call_tensor(call, operand));
    const struct cells factor = {room->spare[operand], call->mixed->type};
    mixed_cast(queue, call_count(call, operand), kept, factor);
    return factor;
}
