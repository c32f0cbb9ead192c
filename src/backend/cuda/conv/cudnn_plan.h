/* cudnn_plan.h: one convolution as cuDNN runs it: its description in cuDNN's graph interface, and
 * the quickest of the engines that cuDNN proposes for it. */
#ifndef PRONY_BACKEND_CUDA_CUDNN_PLAN_H
#define PRONY_BACKEND_CUDA_CUDNN_PLAN_H

#include "backend/cuda/conv/reorder.h"

#include <cudnn.h>

#define CUDNN_FUNCTIONS(DO)                                                                        \
    DO(Create)                                                                                     \
    DO(Destroy)                                                                                    \
    DO(GetVersion)                                                                                 \
    DO(SetStream)                                                                                  \
    DO(BackendCreateDescriptor)                                                                    \
    DO(BackendDestroyDescriptor)                                                                   \
    DO(BackendSetAttribute)                                                                        \
    DO(BackendGetAttribute)                                                                        \
    DO(BackendFinalize)                                                                            \
    DO(BackendExecute)

/* What was found for a form. */
struct cudnn_choice {
    struct cudnn_choice *next;
    struct conv_form form;
    cudnnBackendDescriptor_t plan; /* NULL: none works */
    int64_t bytes;                 /* of workspace */
};

struct cudnn {
    void *library;
    cudnnHandle_t handle;
    bool tf32;
    struct cudnn_choice *choices;
#define DO(name) decltype(&cudnn##name) name;
    CUDNN_FUNCTIONS(DO)
#undef DO
};

/* What a plan may take. */
uint64_t cudnn_most_bytes(void);

/* The choice for a form; when it is met for the first time, proposals are tried. NULL: no memory.
 */
const struct cudnn_choice *cudnn_choose(struct cudnn *cudnn, const struct conv_form *form);
const struct cudnn_choice *cudnn_known(const struct cudnn *cudnn, const struct conv_form *form);

/* Enqueues it. */
bool cudnn_execute(const struct cudnn *cudnn, const struct cudnn_choice *choice, const float *x,
                   const float *w, const float *y, void *workspace, cudaStream_t stream);

/* cudnn_check.cu: does what was made agree with sums in double, as far as the precision allows?
 * Some of the results are looked at. It waits for the stream. */
bool cudnn_is_right(const struct conv_form *form, bool tf32, const float *x, const float *w,
                    const float *y, cudaStream_t stream);

void cudnn_forget(struct cudnn *cudnn); /* all choices */

#endif
