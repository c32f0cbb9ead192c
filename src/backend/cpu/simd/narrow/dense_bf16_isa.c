/* dense_bf16_isa.c: dense layers in bf16 over packed weights (narrow.h), and their rows. */
#include "backend/cpu/simd/dense/dense_shared.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/product_narrow.h"

#include <string.h>

/* What follows the sums. */
struct after {
    float *y; /* [rows, lanes] */
    int32_t activation;
};

static uint64_t dense_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct tensor *x = &program->tensors[op_input(program, op, AT_dense_x)];
    const struct tensor *w = &program->tensors[op_input(program, op, AT_dense_w)];
    const enum narrow_form form = op->kind == OP_dense ? NARROW_FORWARD : NARROW_BACKWARD;
    const struct narrow narrow = narrow_of(&w->shape, DTYPE_F32, form);
    return narrow_product_bytes(&ISA(bf16_kernels), &narrow, x->shape.dim[0], threads);
}

/* y = f(sums), or y = sums where f follows for more of them at once. */
static void store(const struct narrow_product *product, void *sums, int64_t row, int64_t rows,
                  int64_t lane, int64_t lanes, bool many)
{
    const struct after *after = product->context;
    const int64_t all = product->narrow.lanes, have = all - lane < lanes ? all - lane : lanes;
    if (many && after->activation != ACTIVATION_NONE)
        ISA_LEVEL(dense_kernels).activate(after->activation, sums, sums, rows * lanes);
    for (int64_t r = 0; r < rows; r++)
        memcpy(after->y + (row + r) * all + lane, (const float *)sums + r * lanes,
               (size_t)have * sizeof *after->y);
}

static void finish(const struct narrow_product *product, int64_t row, int64_t rows, int64_t lane,
                   int64_t end)
{
    const struct after *after = product->context;
    for (int64_t r = row; r < row + rows && after->activation != ACTIVATION_NONE; r++) {
        float *y = after->y + r * product->narrow.lanes + lane;
        ISA_LEVEL(dense_kernels).activate(after->activation, y, y, end - lane);
    }
}

static void run_forward(const struct call *call, enum narrow_form form, int32_t activation)
{
    const struct after after = {call->data[AT_dense_y], activation};
    const struct narrow_product product = {
        .kernels = &ISA(bf16_kernels),
        .narrow = narrow_of(&call->tensors[AT_dense_w]->shape, DTYPE_F32, form),
        .packed = call->packed,
        .x = call->data[AT_dense_x],
        .x_bytes = sizeof(float),
        .rows = call->tensors[AT_dense_x]->shape.dim[0],
        .b = call->data[AT_dense_b],
        .store = store,
        .finish = finish,
        .context = &after,
    };
    narrow_product_run(call, &product);
}

static void run_dense(const struct call *call)
{
    run_forward(call, NARROW_FORWARD, call->op->attr.dense.activation);
}

/* Its operands are in dense's order. */
static void run_dense_t(const struct call *call)
{
    run_forward(call, NARROW_BACKWARD, call->op->attr.dense_t.activation);
}

#define NARROW_ROW(kind, copy)                                                                     \
    .op = OP_##kind, .precision = PRECISION_BF16, .form = FORM_BLOCKED, .packs = copy,             \
    .packed = AT_##kind##_w, .name = #kind "_bf16_" ISA_NAME, .workspace = dense_workspace,        \
    .run = run_##kind
static const struct kernel rows[] = {
    {NARROW_ROW(dense, NARROW_FORWARD)},
    {NARROW_ROW(dense_t, NARROW_BACKWARD)},
};

const struct kernel_list ISA(dense_bf16_list) = KERNEL_LIST(rows);
