/* rounded.h: products in bf16 by kernels that compute in fp32: their factors are rounded into the
 * workspace first. It is bf16 as cpu_precision.h defines it, at no more than fp32's speed; for ops
 * that have no kernel of their own, and for the reference. */
#ifndef PRONY_BACKEND_CPU_ROUNDED_H
#define PRONY_BACKEND_CPU_ROUNDED_H

#include "backend/cpu/kernel.h"

/* A row for every op whose factors are all operands. There is none for ops that update a factor,
 * and none for layers over time, whose steps make factors of their own. */
extern const struct kernel_list rounded_kernels;

bool kernel_is_rounded(const struct kernel *kernel);
/* Bytes of the rounded factors; the inner kernel's workspace lies behind them. */
uint64_t rounded_bytes(const struct program *program, const struct op *op,
                       const struct kernel_table *table);

#endif
