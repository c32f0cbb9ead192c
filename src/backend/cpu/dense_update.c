/* dense_update.c: see dense_update.h. */
#include "backend/cpu/dense_update.h"

#include "core/ops.h"

/* Operands of dense_update; its outputs but dx are inputs too. */
enum { W = 2, RATE, COUNT, DIRECTION, SIZE };
enum { G = 1 }; /* of an optimiser: the first of two; the second is there when it is cleared */

void dense_update_begin(struct dense_update *update, const struct call *whole)
{
    static const int before[] = {W, -1, RATE, COUNT, DIRECTION, SIZE},
                     after[] = {W, -1, DIRECTION, SIZE};
    struct op *op = &update->op;
    *update = (struct dense_update){.whole = whole};
    op->kind = (enum op_kind)whole->op->attr.dense_update.optimiser;
    ops_take_attributes(op, whole->op);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (before[i] < 0 || whole->data[before[i]])
            update->from[op->inputs++] = before[i];
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        if (after[i] < 0 || whole->data[after[i]])
            update->from[op->inputs + op->outputs++] = after[i];
    update->call = (struct call){
        .op = op,
        .data = update->data,
        .counts = update->counts,
        .control = whole->control,
        .pool = whole->pool,
    };
}

const struct call *dense_update_at(struct dense_update *update, int64_t first, void *gradient,
                                   int64_t count)
{
    const struct call *whole = update->whole;
    int64_t bytes = first * (int64_t)dtype_bytes(whole->tensors[W]->dtype);
    for (int32_t i = 0; i < update->op.inputs + update->op.outputs; i++) {
        int from = update->from[i];
        bool single = from == RATE || from == COUNT;
        if (from >= 0)
            update->data[i] = (char *)whole->data[from] + (single ? 0 : bytes);
        update->counts[i] = single ? 1 : count;
    }
    update->data[G] = gradient;
    return &update->call;
}
