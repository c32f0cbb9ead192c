/* isa.h: for the sources that the build compiles once per ISA, those called *_isa.c: the names of
 * what they define, their rows in the lists of kernels, and what they use of each other. The build
 * gives them PRONY_ISA, the name of the ISA or extension, PRONY_ISA_LEVEL, that of the extension's
 * ISA, and PRONY_ISA_LEAST, that of the machine's first row in base/machine/isa.def. */
#ifndef PRONY_BACKEND_CPU_SIMD_ISA_H
#define PRONY_BACKEND_CPU_SIMD_ISA_H

#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/simd_isas.h"

#define ISA_JOIN(name, isa) name##_##isa
#define ISA_EXPAND(name, isa) ISA_JOIN(name, isa)
#define ISA(name) ISA_EXPAND(name, PRONY_ISA)
#define ISA_LEVEL(name) ISA_EXPAND(name, PRONY_ISA_LEVEL)
#define ISA_LEAST(name) ISA_EXPAND(name, PRONY_ISA_LEAST)
#define ISA_TEXT(isa) #isa
#define ISA_QUOTE(isa) ISA_TEXT(isa)
#define ISA_NAME ISA_QUOTE(PRONY_ISA)

/* The start of the row of an op whose kernel is run_OP. */
#define ROW(kind) .op = OP_##kind, .name = #kind "_f32_" ISA_NAME, .run = run_##kind

extern const struct conv_kernels ISA(conv_kernels), ISA_LEVEL(conv_kernels),
    ISA_LEAST(conv_kernels);
extern const struct dense_kernels ISA(dense_kernels), ISA_LEVEL(dense_kernels);
extern const struct narrow_kernels ISA(bf16_kernels), ISA(int8_kernels);
extern const struct gemm_kernels ISA(gemm_kernels);
extern const struct recurrent_kernels ISA(recurrent_kernels);
extern const struct stack_kernels ISA(stack_kernels), ISA_LEAST(stack_kernels);
extern const struct whole ISA(stack);
/* An optimiser's step over `count` weights (elementwise_isa.c). */
void ISA(update_span)(const struct call *call, int64_t count);

extern const struct kernel_list *const ISA(bf16_lists)[], *const ISA(int8_lists)[];
#define SIMD_LIST(name) extern const struct kernel_list ISA(name##_list);
#include "backend/cpu/simd/lists.def"
#undef SIMD_LIST

#endif
