/* reason.cu: why a plan runs an op by the kernel that it does, for `explain`, where there were
 * several to choose from. The limits themselves are where the choice is made; each was set where
 * one kernel overtook the other on a device (docs/gpu.md). */
#include "backend/cuda/answer_calls.h"
#include "backend/cuda/conv.h"

#include <cstring>

/* By what a kernel's name contains; the first that fits. */
static const struct {
    const char *part, *why;
} reasons[] = {
    {"whole_warp", "one sample of narrow layers: a warp keeps all weights in registers"},
    {"whole_team", "few samples of narrow layers: each weight is kept by a thread of its own"},
    {"whole_block", "narrow layers: a block keeps the network in shared memory"},
    {"whole_grid", "few samples of wide dense layers: each multiprocessor keeps its tile of every "
                   "layer's weights, and steps need no launch"},
    {"answer_warp", "calls of narrow layers: one warp answers"},
    {"answer_block", "calls of narrow layers: one block answers"},
    {"answer_flow", "calls of several samples of wide layers: one kernel on all multiprocessors, "
                    "the next layer's weights on their way while this one's sums are exchanged"},
    {"answer_layers", "calls of few samples of wide layers: a kernel a layer, its weights on their "
                      "way before the one below is done"},
    {"_thin", "few samples: cuBLASLt's tiles would leave multiprocessors idle, so the depth is cut "
              "among them"},
    {"_slim", "few outputs: cuBLASLt's tiles would be nearly empty"},
    {"_cublaslt", "a large product: cuBLASLt's tiles fill the GPU"},
    {"_last_cuda", "convolution in tf32: images lie channels last, as the tensor cores read them"},
    {"_cudnn", "the quickest of the engines that cuDNN proposes for this shape"},
};

const char *cuda_reason(const struct plan *plan, int32_t o, const char *name)
{
    const struct program *program = plan->program;
    const bool own = strstr(name, "conv_dw_f32_cuda") || strstr(name, "conv_dw_tf32_cuda");
    if (own && small_fits(conv_of(program, &program->ops[o])))
        return "few weights of small images: whole images lie in shared memory (conv_small.cu)";
    for (const auto &reason : reasons)
        if (strstr(name, reason.part))
            return reason.why;
    return NULL;
}
