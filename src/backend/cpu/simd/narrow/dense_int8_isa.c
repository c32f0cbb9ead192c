/* dense_int8_isa.c: dense layers of 8 bits over packed weights (narrow.h), and their row. */
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/product_narrow.h"
#include "backend/cpu/simd/narrow/vec_requantise.h"

#include <string.h>

/* Weights of the instance can be packed; others are nowhere. */
static bool takes(const struct program *program, const struct op *op)
{
    const struct tensor *w = &program->tensors[op_input(program, op, AT_dense_int8_w)];
    return role_is_kept(w->role) && w->view_of < 0;
}

static uint64_t dense_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct tensor *x = &program->tensors[op_input(program, op, AT_dense_int8_x)];
    const struct tensor *w = &program->tensors[op_input(program, op, AT_dense_int8_w)];
    const struct narrow narrow = narrow_of(&w->shape, DTYPE_I8, NARROW_FORWARD);
    return narrow_product_bytes(&ISA(int8_kernels), &narrow, x->shape.dim[0], threads);
}

/* The channels from `lane` on, of which there are `have`. */
static struct requantise_lanes lanes_at(const struct call *call, int64_t lane, int64_t have)
{
    return requantise_lanes_of(call->data[AT_dense_int8_multiplier],
                               call->data[AT_dense_int8_shift], lane, have,
                               call->op->attr.dense_int8.zero, call->op->attr.dense_int8.low,
                               call->op->attr.dense_int8.high);
}

static void store_bytes(const struct call *call, const int32_t *sums, int64_t stride, int64_t rows,
                        int64_t lane, uint8_t *y, int64_t all)
{
    const uint8_t *table = call->data[AT_dense_int8_table];
    const int64_t have = all - lane < REQUANTISE_LANES ? all - lane : REQUANTISE_LANES;
    const struct requantise_lanes lanes = lanes_at(call, lane, have);
    for (int64_t r = 0; r < rows; r++, y += all) {
        uint8_t bytes[REQUANTISE_LANES];
        requantise_16(sums + r * stride, &lanes, bytes);
        if (table)
            for (int k = 0; k < REQUANTISE_LANES; k++)
                bytes[k] = table[bytes[k]];
        memcpy(y + lane, bytes, (size_t)have);
    }
}

static void store(const struct narrow_product *product, void *sums, int64_t row, int64_t rows,
                  int64_t lane, int64_t lanes, bool many)
{
    (void)many;
    const struct call *call = product->context;
    const int64_t all = product->narrow.lanes, end = lane + lanes < all ? lane + lanes : all;
    if (!call->data[AT_dense_int8_multiplier]) {
        int32_t *y = call->data[AT_dense_int8_y];
        for (int64_t r = 0; r < rows; r++)
            memcpy(y + (row + r) * all + lane, (const int32_t *)sums + r * lanes,
                   (size_t)(end - lane) * sizeof *y);
        return;
    }
    for (int64_t at = lane; at < end; at += REQUANTISE_LANES)
        store_bytes(call, (const int32_t *)sums + (at - lane), lanes, rows, at,
                    (uint8_t *)call->data[AT_dense_int8_y] + row * all, all);
}

static void run_dense_int8(const struct call *call)
{
    const struct narrow_product product = {
        .kernels = &ISA(int8_kernels),
        .narrow = narrow_of(&call->tensors[AT_dense_int8_w]->shape, DTYPE_I8, NARROW_FORWARD),
        .packed = call->packed,
        .x = call->data[AT_dense_int8_x],
        .x_bytes = 1,
        .rows = call->tensors[AT_dense_int8_x]->shape.dim[0],
        .b = call->data[AT_dense_int8_b],
        .store = store,
        .context = call,
    };
    narrow_product_run(call, &product);
}

static const struct kernel rows[] = {
    {.op = OP_dense_int8,
     .name = "dense_int8_" ISA_NAME,
     .packs = NARROW_FORWARD,
     .packed = AT_dense_int8_w,
     .takes = takes,
     .workspace = dense_workspace,
     .run = run_dense_int8},
};

const struct kernel_list ISA(dense_int8_list) = KERNEL_LIST(rows);
