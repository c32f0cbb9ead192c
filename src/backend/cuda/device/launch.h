/* launch.h: how an op becomes kernels on a stream, and what a kernel can read.
 *
 * A kernel is a row of kernel_list.def: a name, a function that enqueues it, and the device memory
 * it needs while it runs. That function sees only a `struct call` (operands resolved to device
 * addresses) and writes to a `struct queue`, which also counts: a queue without a stream enqueues
 * nothing, so explain knows the launches of a plan that takes no memory, by the very code that
 * launches.
 *
 * Nothing a kernel is launched with changes from step to step: what changes (control block, place
 * in the data, bound views) lies on the device behind fixed addresses. So a captured step can be
 * replayed, also after the plan was bound to other data.
 *
 * Sums have a fixed order that depends on shapes only, never on timing; no atomics on floats. */
#ifndef PRONY_BACKEND_CUDA_LAUNCH_H
#define PRONY_BACKEND_CUDA_LAUNCH_H

extern "C" {
#include "core/backend.h"
}

#include "backend/cuda/device/precision.h"
#include "backend/cuda/device/target_gpu.h"

#include <cuda_runtime.h>

/* Where the data of a plan is, on the device. */
struct feed {
    uint64_t place;        /* samples taken so far, from the binding's start on */
    const uint32_t *order; /* device, or NULL */
    uint64_t samples;      /* of the order or of the data; 0: no data, samples are just numbered */
    uint32_t part, parts;  /* of staged views: which one the step reads, and of how many */
};

/* What one tensor of the program is bound to; the plan has one for each of its tensors. */
struct feed_view {
    uint32_t *data; /* device, or NULL when not bound; all element types have four bytes */
    bool staged;    /* data holds the rows of `parts` steps, in order, not all rows */
    uint64_t rows;
    uint8_t *written; /* device [rows], set for rows that were stored; outputs only */
    uint64_t stored;  /* rows handed out so far by a store that has no rows operand */
};

/* How and where a plan keeps a tensor. */
struct place {
    enum precision type; /* of its elements: fp32, or the plan's 16 bits (mixed_precision.h) */
    bool nhwc;           /* an image is [n, rows, columns, channels] (nhwc.h) */
    int64_t own;         /* its place behind the others of a slot (side_stream.h); -1: none */
    char *at;            /* device, in the first copy of a slot; NULL: the plan is dry */
    uint64_t apart;      /* bytes from copy to copy; 0: all share it */
};

/* One op of one slot, ready to run. */
struct call {
    const struct program *program;
    const struct op *op;
    void *const *operands; /* device; inputs, then outputs; NULL where one is absent */
    void *workspace;       /* device; as much as the op's row asks for; shared by all ops */
    struct control *control;
    struct feed *feed;
    struct feed_view *views;   /* by tensor */
    void *side_workspace;      /* device; workspace of what the op does on the side stream … */
    void *twin;                /* … and of what is done beside that (queue_fork_twin) */
    const struct mixed *mixed; /* mixed_precision.h; NULL: everything is in fp32 */
    const struct activation_grad
        *act_grad;              /* activation_grad.h; what one op leaves for the next, or NULL */
    const struct place *places; /* [tensor] */
    const struct activation_grad
        *below;        /* … that the next op begins with pieces of what this one makes */
    struct talk *talk; /* cuda_exchange.h; of an op that speaks to other ranks, else NULL */
};

struct blas;  /* blas.h */
struct cudnn; /* cudnn.h */

struct queue {
    cudaStream_t stream;
    cudaStream_t side;       /* for work that what follows need not wait for; NULL: there is none */
    cudaEvent_t fork;        /* where it leaves the stream */
    cudaStream_t twin;       /* beside that, for parts of it that do not need each other … */
    cudaEvent_t join;        /* … and where these end */
    bool forked;             /* the op at hand has put work there */
    const struct blas *blas; /* or NULL: not loaded */
    const struct cudnn *cudnn; /* or NULL: not asked for */
    bool counting;             /* only count launches */
    bool beside;               /* rows are moved beside what computes (double_buffer.h) */
    int32_t launches;          /* so far */
    bool early;                /* the GPU lets kernels begin early (enqueue_early) */
    int32_t chained;           /* `launches` where the stream ends with a kernel, else less */
    bool was_chained;          /* … was it so where side-stream work parted from the stream? */
    cudaError_t error;         /* the first one; nothing is launched after it */
};

enum { THREADS = 256 }; /* of a block, where nothing speaks for another number */

template <typename... Parameters, typename... Arguments>
static inline void enqueue(struct queue *queue, void (*kernel)(Parameters...), dim3 grid,
                           dim3 block, Arguments... arguments)
{
    queue->launches++;
    if (queue->counting || queue->error != cudaSuccess)
        return;
    kernel<<<grid, block, 0, queue->stream>>>(arguments...);
    queue->error = cudaGetLastError();
    queue->chained = queue->launches;
}

/* What is enqueued between these two follows all that was enqueued so far, and runs beside what
 * comes after; whoever needs its results or its operands' places waits for it (side_stream.h). */
static inline cudaStream_t queue_fork(struct queue *queue)
{
    cudaStream_t stream = queue->stream;
    if (!queue->side || queue->error != cudaSuccess)
        return stream;
    queue->error = cudaEventRecord(queue->fork, stream);
    if (queue->error == cudaSuccess)
        queue->error = cudaStreamWaitEvent(queue->side, queue->fork, 0);
    queue->was_chained = queue->chained > 0 && queue->chained == queue->launches;
    queue->stream = queue->side;
    queue->forked = true;
    queue->chained = 0;
    return stream;
}

static inline void queue_back(struct queue *queue, cudaStream_t stream)
{
    if (queue->stream != stream)
        queue->chained = stream != queue->side && queue->was_chained ? queue->launches : 0;
    queue->stream = stream;
}

/* From here to queue_back, on the side stream: what needs nothing of the side-stream work since it
 * parted. It does not wait for side-stream work of ops before this one either, and so has a
 * workspace of its own. */
static inline cudaStream_t queue_fork_twin(struct queue *queue)
{
    cudaStream_t stream = queue->stream;
    if (!queue->forked || queue->error != cudaSuccess)
        return stream;
    queue->error = cudaStreamWaitEvent(queue->twin, queue->fork, 0);
    queue->stream = queue->twin;
    queue->chained = 0;
    return stream;
}

/* Aside: what follows waits for what its twin does. */
static inline void queue_join_twin(struct queue *queue)
{
    if (!queue->forked || queue->error != cudaSuccess)
        return;
    queue->error = cudaEventRecord(queue->join, queue->twin);
    if (queue->error == cudaSuccess)
        queue->error = cudaStreamWaitEvent(queue->stream, queue->join, 0);
    queue->chained = 0;
}

/* … of a kernel that takes more shared memory than a block has unasked, `bytes` of it. */
template <typename... Parameters, typename... Arguments>
static inline void enqueue_large(struct queue *queue, void (*kernel)(Parameters...), dim3 grid,
                                 dim3 block, size_t bytes, Arguments... arguments)
{
    queue->launches++;
    if (queue->counting || queue->error != cudaSuccess)
        return;
    queue->error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (queue->error == cudaSuccess) /* left to itself CUDA has room for one block */
        queue->error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared);
    if (queue->error != cudaSuccess)
        return;
    kernel<<<grid, block, bytes, queue->stream>>>(arguments...);
    queue->error = cudaGetLastError();
    queue->chained = queue->launches;
}

/* … of a kernel that may begin before the one in front of it has ended: it calls await_last before
 * it touches anything that the step writes, in every block. */
template <typename... Parameters, typename... Arguments>
static inline void enqueue_early(struct queue *queue, void (*kernel)(Parameters...), dim3 grid,
                                 dim3 block, size_t bytes, Arguments... arguments)
{
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t launch = {};
    const bool chained = queue->chained > 0 && queue->chained == queue->launches;
    queue->launches++;
    if (queue->counting || queue->error != cudaSuccess)
        return;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    launch.gridDim = grid;
    launch.blockDim = block;
    launch.dynamicSmemBytes = bytes;
    launch.stream = queue->stream;
    launch.attrs = &attribute;
    launch.numAttrs = queue->early && chained ? 1 : 0;
    if (bytes)
        queue->error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (queue->error == cudaSuccess)
        queue->error = cudaLaunchKernelEx(&launch, kernel, (Parameters)arguments...);
    queue->chained = queue->launches;
}

/* Inside a kernel that is enqueued so. */
static inline __device__ void await_last(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* From here on the kernel behind this one may begin, once all blocks have come so far. */
static inline __device__ void allow_next(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static inline unsigned blocks_for(int64_t count, int64_t per_block)
{
    return (unsigned)((count + per_block - 1) / per_block);
}

/* Kernels over elements run a bounded grid that strides over all of them. */
static inline unsigned blocks_striding(int64_t count)
{
    const unsigned most = TARGET_MULTIPROCESSORS * 16;
    int64_t blocks = (count + THREADS - 1) / THREADS;
    return blocks < (int64_t)most ? (unsigned)blocks : most;
}

#define FOR_EACH(index, count)                                                                     \
    for (int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; index < (count);          \
         index += (int64_t)gridDim.x * blockDim.x)

/* number / by, and what remains: by 32 bits where that is enough, which takes a third of the time.
 */
static inline __device__ int64_t split_number(int64_t number, uint32_t by, uint32_t *rest)
{
    const bool is_small = (uint64_t)number >> 32 == 0;
    const int64_t whole = is_small ? (uint32_t)number / by : number / by;
    *rest = (uint32_t)(number - whole * by);
    return whole;
}

/* WIDE neighbours in memory, moved at once. */
template <int WIDE> struct alignas(WIDE * sizeof(float)) vector {
    float at[WIDE];
};

/* Operands are counted over inputs and outputs, as ops.def has them. */
static inline const struct tensor *call_tensor(const struct call *call, int32_t operand)
{
    return &call->program->tensors[call->program->operands[call->op->first + operand]];
}

static inline int64_t call_dim(const struct call *call, int32_t operand, int32_t dim)
{
    return call_tensor(call, operand)->shape.dim[dim];
}

static inline int64_t call_count(const struct call *call, int32_t operand)
{
    return (int64_t)(call_tensor(call, operand)->bytes / sizeof(float));
}

/* Is this optional operand there? To be asked rather than the address: a dry plan has none. */
static inline bool call_has(const struct call *call, int32_t operand)
{
    return call->program->operands[call->op->first + operand] >= 0;
}

static inline float *call_reals(const struct call *call, int32_t operand)
{
    return (float *)call->operands[operand];
}

static inline const int32_t *call_integers(const struct call *call, int32_t operand)
{
    return (const int32_t *)call->operands[operand];
}

#endif
