/* conv_loops.h: the ways of a convolution: with samples in lanes (conv_lanes.c), as products of
 * packed panels (conv_gemm.c, conv_gemm_wgrad.c), and depthwise plane by plane (conv_planes.c).
 * conv_rows_isa.c says when each is taken. Each computes y from x and w (conv, conv_fused and
 * conv_t), or the gradient of the weights (conv_dw), and says what workspace it needs. */
#ifndef PRONY_BACKEND_CPU_SIMD_CONV_CONV_LOOPS_H
#define PRONY_BACKEND_CPU_SIMD_CONV_CONV_LOOPS_H

#include "backend/cpu/conv_relation.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/conv/conv_shared.h"
#include "backend/cpu/simd/gemm/gemm_packed.h"

/* Operands of conv_fused behind x and w. */
enum { CONV_BIAS = 2, CONV_GAMMA, CONV_BETA, CONV_MEAN, CONV_VARIANCE, CONV_ADD };

/* Is what a row of the target needs of the source small enough for L2? */
bool conv_lanes_fit(const struct conv_kernels *kernels, const struct conv_relation *relation);
void conv_lanes_sum(const struct call *call, const struct conv_kernels *kernels,
                    const struct conv_relation *relation);
void conv_lanes_wgrad(const struct call *call, const struct conv_kernels *kernels,
                      const struct conv_relation *relation);
uint64_t conv_lanes_bytes(const struct conv_kernels *kernels, const struct conv_relation *relation,
                          bool wgrad, int threads);

/* `blocked`: the weights, or their gradient, are in blocks (blocked.h). */
void conv_gemm_sum(const struct call *call, const struct gemm_kernels *gemm,
                   const struct conv_kernels *conv, const struct conv_relation *relation,
                   bool blocked);
void conv_gemm_wgrad(const struct call *call, const struct gemm_kernels *gemm,
                     const struct conv_kernels *conv, const struct conv_relation *relation,
                     bool blocked);
uint64_t conv_gemm_sum_bytes(const struct gemm_kernels *gemm, const struct conv_relation *relation,
                             bool blocked, int threads);
/* Are the panels of the sum bands of rows (conv_band.h), not patches? */
bool conv_gemm_has_bands(const struct gemm_kernels *gemm, const struct conv_relation *relation,
                         bool blocked);
uint64_t conv_gemm_wgrad_bytes(const struct conv_relation *relation, bool blocked, int threads);

/* Is it depthwise, a channel from a channel? */
bool conv_planes_suit(const struct conv_relation *relation);
void conv_planes_sum(const struct call *call, const struct conv_kernels *kernels,
                     const struct conv_relation *relation);
void conv_planes_wgrad(const struct call *call, const struct conv_kernels *kernels,
                       const struct conv_relation *relation);
uint64_t conv_planes_bytes(const struct conv_kernels *kernels, const struct conv_relation *relation,
                           int threads);

/* What follows the sums of conv, conv_t or conv_fused; scale and shift have room for as many
 * numbers as there are outputs. */
void conv_after_of(const struct call *call, int64_t outputs, struct conv_after *after);

#endif
