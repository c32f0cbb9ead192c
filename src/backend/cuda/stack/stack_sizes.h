/* stack_sizes.h: what layouts of whole programs are made with. C and CUDA: all of these headers are
 * plain arithmetic over sizes, also for tests on a machine without a GPU. */
#ifndef PRONY_BACKEND_CUDA_STACK_SIZES_H
#define PRONY_BACKEND_CUDA_STACK_SIZES_H

#ifdef __cplusplus
extern "C" {
#endif
#include "core/pass/stack_find.h"
#ifdef __cplusplus
}
#endif

#include <string.h>

#ifdef __CUDACC__
#define SIZE_INLINE static inline __host__ __device__
#else
#define SIZE_INLINE static inline
#endif
#ifdef __cplusplus
#define SIZE_CONSTANT constexpr
#else
#define SIZE_CONSTANT
#endif

/* Of the GPU. */
struct stack_limits {
    int32_t multiprocessors;
    int32_t shared_bytes; /* that one block can have */
};

SIZE_INLINE int32_t quads_of(int32_t features)
{
    return (features + 3) / 4;
}

SIZE_INLINE int32_t round_up(int32_t count, int32_t to)
{
    return (count + to - 1) / to * to;
}

static inline int32_t dense_widest(const struct dense_stack *dense)
{
    int32_t widest = dense->layer[0].in;
    for (int32_t l = 0; l < dense->layers; l++)
        widest = dense->layer[l].out > widest ? dense->layer[l].out : widest;
    return widest;
}

#endif
