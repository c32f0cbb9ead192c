/* dense_stack_vec.h: what the steps of one sample and of a batch share, over vec.h. */
#ifndef PRONY_BACKEND_CPU_SIMD_STACK_DENSE_STACK_VEC_H
#define PRONY_BACKEND_CPU_SIMD_STACK_DENSE_STACK_VEC_H

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/stack/dense_stack.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_softmax.h"

/* d · f′, from y = f */
static inline vec activate_grad(enum activation activation, vec y, vec d)
{
    return vec_mul(d, vec_derivative((int32_t)activation, y, 0));
}

stack_steps ISA(stack_batch), ISA(stack_batch_watched);

#endif
