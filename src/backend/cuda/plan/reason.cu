/* reason.cu: why a plan runs an op by the kernel that it does, for `explain`, where there were
 * several to choose from. The limits themselves are where the choice is made; each was set where
 * one kernel overtook the other on a device (docs/gpu.md). */
#include "backend/cuda/conv/conv_taps.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/skinny.h"
#include "backend/cuda/stack/answer_calls.h"

#include <cstring>

/* By what a kernel's name contains; the first that fits. */
static const struct {
    const char *part, *why;
} reasons[] = {
    {"whole_warp", "one sample of narrow layers: a warp keeps all weights in registers"},
    {"whole_team", "few samples of narrow layers: each weight is kept by a thread of its own"},
    {"whole_block", "narrow layers: a block keeps the network in shared memory"},
    {"whole_many",
     "many samples of narrow layers: each block keeps the network in shared memory and "
     "has a share of the samples"},
    {"whole_grid", "few samples of wide dense layers: each multiprocessor keeps its tile of every "
                   "layer's weights, and steps need no launch"},
    {"whole_own",
     "training with up to four samples of wide dense layers: each multiprocessor keeps "
     "its tile of every layer's weights, of one layer in registers, and steps need no "
     "launch"},
    {"answer_warp", "calls of narrow layers: one warp answers"},
    {"answer_block", "calls of narrow layers: one block answers"},
    {"answer_flow", "calls of several samples of wide layers: one kernel on all multiprocessors, "
                    "the next layer's weights on their way while this one's sums are exchanged"},
    {"answer_layers", "calls of few samples of wide layers: a kernel a layer, its weights on their "
                      "way before the one below is done"},
    {"_handful",
     "few samples: a product that is over as soon as its weights have come, the first of "
     "them on their way before the layer below is done"},
    {"_thin", "few samples: cuBLASLt's tiles would leave multiprocessors idle, so the depth is cut "
              "among them"},
    {"_slim", "few outputs: cuBLASLt's tiles would be nearly empty"},
    {"_shallow", "few inputs: hardly anything is multiplied, only outputs are written or read"},
    {"_last_cuda", "a convolution for tensor cores: images lie channels last, as these read them"},
    {"_cudnn", "the quickest of the engines that cuDNN proposes for this shape"},
};

static const char *reason_product(const struct plan *plan, const struct op *op)
{
    if (dense_is_small(plan->program, op))
        return "a small product: many threads cut its depth, and are done before cuBLASLt's first "
               "tile would be";
    return plan->instance->device->blas
               ? "hardly any weights for so many samples: cuBLASLt's tiles would be nearly empty"
               : "cuBLASLt is not there: tiles of our own";
}

/* Of our own convolutions and products, where the size of the work decides within a kernel's row.
 */
static const char *reason_by_size(const struct plan *plan, const struct op *op)
{
    switch (op->kind) {
    case OP_conv_dw:
        return small_fits(conv_of(plan->program, op))
                   ? "few weights of small images: whole images lie in shared memory"
                   : NULL;
    case OP_conv:
    case OP_conv_fused:
    case OP_conv_t:
        return flat_fits(conv_of(plan->program, op), op->kind == OP_conv_t)
                   ? "few channels of the result: a thread has a pixel, all its channels in registers"
                   : NULL;
    case OP_dense:
    case OP_dense_t:
    case OP_dense_sgd:
    case OP_outer: return reason_product(plan, op);
    default: return NULL;
    }
}

/* Of cuBLASLt's products: it has them from a number of samples on that does not fill its tiles. */
static const char *reason_blas(const struct plan *plan, const struct op *op)
{
    enum { TILE_SAMPLES = 64 };
    const int64_t samples = plan->program->tensors[op_input(plan->program, op, 0)].shape.dim[0];
    if (precision_is_16bit(plan->instance->device->precision))
        return samples <= SKINNY_SAMPLES
                   ? "few samples in 16 bits of more weights than our kernels for them read as "
                     "quickly, of rows that no vector divides, or not of weights"
                   : "a product in 16 bits of more than a handful of samples";
    return samples < TILE_SAMPLES
               ? "too large for our kernels of small products: cuBLASLt is quicker, though so few "
                 "samples do not fill its tiles"
               : "a large product: cuBLASLt's tiles fill the GPU";
}

const char *cuda_reason(const struct plan *plan, int32_t o, const char *name)
{
    const struct op *op = &plan->program->ops[o];
    const size_t kind = strlen(op_name(op->kind));
    const char *type = strncmp(name, op_name(op->kind), kind) == 0 ? name + kind : "";
    if (strcmp(type, "_f32_cuda") == 0 || strcmp(type, "_tf32_cuda") == 0)
        return reason_by_size(plan, op);
    if (strstr(name, "_cublaslt"))
        return reason_blas(plan, op);
    for (const auto &reason : reasons)
        if (strstr(name, reason.part))
            return reason.why;
    return NULL;
}
