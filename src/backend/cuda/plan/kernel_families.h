/* kernel_families.h: the launch, workspace and takes functions of all kernels, as the rows of
 * kernel_list.def declare them; several rows may declare one. */
#ifndef PRONY_BACKEND_CUDA_KERNEL_FAMILIES_H
#define PRONY_BACKEND_CUDA_KERNEL_FAMILIES_H

#include "backend/cuda/plan/choice.h"

struct stack_kernel;
struct answer_kernel;

enum { MULTI_TENSOR_MOST = 80 }; /* parameters that a kernel of multi_tensor.cu updates */

/* NONE declares a function that nothing defines or calls. */
#define NONE none
#define ROW(kind, name, precisions, traits, takes, launch, workspace, why)                         \
    takes_function takes;                                                                          \
    launch_function launch;                                                                        \
    workspace_function workspace;
#define SGD_ROW(name, precisions, traits, takes, launch, workspace, side_bytes, why)               \
    takes_function takes;                                                                          \
    launch_function launch;                                                                        \
    workspace_function workspace, side_bytes;
#define FUSED(name, traits, takes, launch, workspace, side, why, home, count, ...)                 \
    takes_function takes;                                                                          \
    launch_function launch;                                                                        \
    workspace_function workspace;
#define GROUP(name, kind, workspace)                                                               \
    takes_function takes_multi_tensor;                                                             \
    launch_function launch_multi_tensor;                                                           \
    workspace_function workspace;
#define STEPS(name, precisions, traits, takes, kernel, why)                                        \
    takes_function takes;                                                                          \
    extern const struct stack_kernel kernel;
#define CALLS(name, precisions, traits, takes, kernel, why)                                        \
    takes_function takes;                                                                          \
    extern const struct answer_kernel kernel;
#include "backend/cuda/plan/kernel_list.def"
#undef NONE
#undef ROW
#undef SGD_ROW
#undef FUSED
#undef GROUP
#undef STEPS
#undef CALLS

#endif
