/* stack_cores.h: a stack of dense layers in 8 or 16 bits at inference, for at most 16 samples, in
 * one kernel: steps over bound data or calls (stack_cores.cu). */
#ifndef PRONY_BACKEND_CUDA_STACK_CORES_H
#define PRONY_BACKEND_CUDA_STACK_CORES_H

#include "backend/cuda/device/mailbox.h"
#include "backend/cuda/device/packet.h"
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/narrow/integer.h"
#include "backend/cuda/stack/answer_calls.h"
#include "backend/cuda/stack/stack_run.h"

enum {
    CORES_THREADS = 512,
    CORES_WARPS = CORES_THREADS / 32,
    CORES_BATCH_MOST = 16, /* rows of a tensor core's tile */
    CORES_TILE = 8,        /* outputs of one */
    CORES_TILES = 4,       /* of a layer that a block has, at most */
    CORES_FAR = 8,         /* pieces of weights that a thread fetches anew in every step, at most */
    CORES_PAIR = 64,       /* bytes of depth that a warp takes at a time */
    CORES_NOTES_MOST = 2048, /* of a question that a kernel that stays waits for */
};

enum cores_number { CORES_INT8, CORES_BF16, CORES_FP16 };

/* A layer as a program has it. */
struct cores_dense {
    int32_t op;                      /* that makes it */
    int32_t w, b, multiplier, shift; /* tensors; -1: none */
    int32_t table;
    int32_t in, out;
    int32_t zero, low, high;
    enum activation function;
};

/* What there is to run. In 8 bits a quantise comes before the layers and a dequantise behind. */
struct cores_find {
    enum cores_number number;
    int32_t layers, load, store;
    int32_t quantise, dequantise; /* ops; -1 in 16 bits */
    bool softmax;
    struct cores_dense layer[DENSE_STACK_MOST];
};

/* As the kernel is told of it; places are bytes of shared memory. */
struct cores_layer {
    int32_t in, out, tiles, pairs;
    int32_t far; /* tiles of a block that are not kept in shared memory */
    int32_t w_at, channels_at, table_at;
    const uint4 *w;            /* [tile][pair][lane]: the weights as tensor cores want them */
    uint4 *y;                  /* [2][sample][packet]: what blocks tell each other */
    const float *b;            /* in 16 bits; or NULL */
    struct int8_ending ending; /* in 8 bits */
    enum activation function;
};

struct cores_net {
    enum cores_number number;
    int32_t batch, layers, blocks; /* blocks: with the last one, which feeds the others and ends */
    int32_t pitch, sums_at, heard_at, finals_at, bytes;
    bool softmax;   /* of the outputs */
    uint4 *x;       /* [2][1 + packets]: inputs, behind the word whether there are any */
    uint32_t *turn; /* the number of the last step … */
    uint32_t *came; /* … and blocks that have read it */
    float scale;    /* quantise … */
    int32_t zero, low, high;
    float scale_y;         /* … and dequantise: of all, or … */
    const float *scales_y; /* … of each output */
    int32_t zero_y;
    struct feed *feed;
    const struct feed_view *view_x;
    struct feed_view *view_y;
    struct mailbox mail;
    struct cores_layer layer[DENSE_STACK_MOST];
};

/* What a launch is for. */
enum cores_task { CORES_STEPS, CORES_CALL, CORES_CALLS };

/* stack_cores_plan.cu. Why the program is not run so (static text). */
const char *cores_why_none(const struct device *device, const struct program *program);
/* What calls need to know, whether a kernel can stay for them, and the op of the first layer. */
struct answer_net cores_sizes(const struct stack *stack);
bool cores_can_listen(const struct stack *stack);
int32_t cores_first_op(const struct plan *plan);
void cores_listen(struct stack *stack, const struct mailbox *mail);
/* Weights that have changed since are laid out anew. */
enum status cores_refresh(struct plan *plan);

/* stack_cores.cu */
cudaError_t cores_launch(const struct cores_net *net, enum cores_task task, int64_t count,
                         cudaStream_t stream);
cudaError_t cores_pack(const void *w, int64_t in, int64_t out, int32_t element_bytes, int32_t tiles,
                       int32_t pairs, uint4 *to, cudaStream_t stream);

#endif
