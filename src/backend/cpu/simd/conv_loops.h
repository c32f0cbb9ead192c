/* conv_loops.h: the two ways of a convolution: with samples in lanes (conv_lanes.c), and as
 * products of packed panels (conv_gemm.c). conv_ops.c chooses. Each computes y from x and w (conv
 * and conv_t), or the gradient of the weights (conv_dw), and says what workspace it needs. */
#ifndef PRONY_BACKEND_CPU_SIMD_CONV_LOOPS_H
#define PRONY_BACKEND_CPU_SIMD_CONV_LOOPS_H

#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/conv_relation.h"
#include "backend/cpu/simd/conv_shared.h"
#include "backend/cpu/simd/gemm_packed.h"

void conv_lanes_sum(const struct call *call, const struct conv_kernels *kernels,
                    const struct conv_relation *relation);
void conv_lanes_weigh(const struct call *call, const struct conv_kernels *kernels,
                      const struct conv_relation *relation);
uint64_t conv_lanes_bytes(const struct conv_kernels *kernels, const struct conv_relation *relation,
                          bool weigh, int threads);

void conv_gemm_sum(const struct call *call, const struct gemm_kernels *gemm,
                   const struct conv_kernels *conv, const struct conv_relation *relation);
void conv_gemm_weigh(const struct call *call, const struct gemm_kernels *gemm,
                     const struct conv_kernels *conv, const struct conv_relation *relation);
uint64_t conv_gemm_bytes(const struct gemm_kernels *gemm, const struct conv_relation *relation,
                         int threads);

#endif
