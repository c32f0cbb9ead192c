/* fills.h: each family of kernels puts its rows for an ISA into the table. */
#ifndef PRONY_BACKEND_CPU_SIMD_FILLS_H
#define PRONY_BACKEND_CPU_SIMD_FILLS_H

#include "backend/cpu/kernel.h"

void dense_fill_avx2(struct kernel_table *table), dense_fill_avx512(struct kernel_table *table);
void conv_fill_avx2(struct kernel_table *table), conv_fill_avx512(struct kernel_table *table);

#endif
