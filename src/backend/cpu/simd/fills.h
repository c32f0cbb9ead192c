/* fills.h: the families of kernels; each puts its rows for an ISA into the table. */
#ifndef PRONY_BACKEND_CPU_SIMD_FILLS_H
#define PRONY_BACKEND_CPU_SIMD_FILLS_H

#include "backend/cpu/kernel.h"

typedef void kernel_fill(struct kernel_table *table);

#define SIMD_FAMILIES(EACH, isa)                                                                   \
    EACH(dense_fill_##isa)                                                                         \
    EACH(small_dense_fill_##isa)                                                                   \
    EACH(shape_fill_##isa)                                                                         \
    EACH(elementwise_fill_##isa)                                                                   \
    EACH(pool_fill_##isa)                                                                          \
    EACH(conv_fill_##isa)                                                                          \
    EACH(lrn_fill_##isa)                                                                           \
    EACH(recurrent_fill_##isa)                                                                     \
    EACH(matmul_fill_##isa)                                                                        \
    EACH(norm_fill_##isa)                                                                          \
    EACH(random_fill_##isa)                                                                        \
    EACH(loss_fill_##isa)
#define DECLARE_FILL(name) kernel_fill name;
SIMD_FAMILIES(DECLARE_FILL, avx2)
SIMD_FAMILIES(DECLARE_FILL, avx512)
#undef DECLARE_FILL

#endif
