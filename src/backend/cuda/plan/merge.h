/* merge.h: ops that become one kernel with the op behind them, where nobody else needs what lies
 * between: it is then neither written nor read again. The op that comes last has the kernel; the
 * ones before it launch nothing, and whatever they must wait for is still waited for.
 *
 * Observed plans run every op by itself. */
#ifndef PRONY_BACKEND_CUDA_MERGE_H
#define PRONY_BACKEND_CUDA_MERGE_H

#include "backend/cuda/host/cuda_device.h"

/* Does this op's result go to the next op, and to nobody else? */
bool merge_passes(const struct program *program, const struct op *op);

/* Do the bytes of these tensors meet? */
bool merge_meets(const struct program *program, int32_t a, int32_t b);

/* This op launches nothing: a later one does its work. */
void merge_leave(struct plan *plan, int32_t o);

/* Another op of the same plan and slot, as a call. */
static inline struct call merge_call(const struct call *call, const struct op *op)
{
    struct call other = *call;
    other.op = op;
    other.operands = call->operands + (op->first - call->op->first);
    return other;
}

/* pool.cu, batch_norm.cu: merge what ends with the op `o`, if it is theirs. */
void pool_merge(struct plan *plan, int32_t o);
void norm_merge(struct plan *plan, int32_t o);

#endif
