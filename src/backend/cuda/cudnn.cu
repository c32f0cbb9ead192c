/* cudnn.cu: convolution through cuDNN, images as they lie (NCHW). What follows a convolution in a
 * fused op is one pass of ours. Only algorithms whose sums have a fixed order are taken; fp32 never
 * runs on tensor cores.
 *
 * cuDNN knows pads that are the same on both sides; others stay with our own kernels. */
#include "backend/cuda/activation.h"
#include "backend/cuda/conv.h"
#include "backend/cuda/cudnn.h"

extern "C" {
#include "base/memory.h"
}

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#include <dlfcn.h>

#include <cstring>

#define CUDNN_FUNCTIONS(DO)                                                                        \
    DO(Create)                                                                                     \
    DO(Destroy)                                                                                    \
    DO(SetStream)                                                                                  \
    DO(CreateTensorDescriptor)                                                                     \
    DO(DestroyTensorDescriptor)                                                                    \
    DO(SetTensor4dDescriptor)                                                                      \
    DO(CreateFilterDescriptor)                                                                     \
    DO(DestroyFilterDescriptor)                                                                    \
    DO(SetFilter4dDescriptor)                                                                      \
    DO(CreateConvolutionDescriptor)                                                                \
    DO(DestroyConvolutionDescriptor)                                                               \
    DO(SetConvolution2dDescriptor)                                                                 \
    DO(SetConvolutionGroupCount)                                                                   \
    DO(SetConvolutionMathType)                                                                     \
    DO(FindConvolutionForwardAlgorithm)                                                            \
    DO(FindConvolutionBackwardDataAlgorithm)                                                       \
    DO(FindConvolutionBackwardFilterAlgorithm)                                                     \
    DO(ConvolutionForward)                                                                         \
    DO(ConvolutionBackwardData)                                                                    \
    DO(ConvolutionBackwardFilter)

/* What was found for a shape. */
struct choice {
    struct choice *next;
    enum op_kind kind;
    struct conv conv;
    int algorithm; /* of the kind's enum */
    bool works;
};

struct cudnn {
    void *library;
    cudnnHandle_t handle;
    bool tf32;
    struct choice *choices;
#define DO(name) decltype(&cudnn##name) name;
    CUDNN_FUNCTIONS(DO)
#undef DO
};

/* What an algorithm may take: those that turn images to channels-last and back need twice their
 * size. */
static uint64_t workspace_cudnn(const struct program *, const struct op *)
{
    size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? total / 32 : 0;
}

static void *library_open(void)
{
    static const char *const names[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
    for (const char *name : names) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

enum status cudnn_probe(void)
{
    void *library = library_open();
    if (!library)
        FAIL(STATUS_UNSUPPORTED,
             "cuDNN (libcudnn.so.9) is not installed: install NVIDIA's cuDNN 9");
    dlclose(library);
    return STATUS_OK;
}

static bool library_read(struct cudnn *cudnn)
{
#define DO(name)                                                                                   \
    cudnn->name = (decltype(&cudnn##name))dlsym(cudnn->library, "cudnn" #name);                    \
    if (!cudnn->name)                                                                              \
        return false;
    CUDNN_FUNCTIONS(DO)
#undef DO
    return cudnn->Create(&cudnn->handle) == CUDNN_STATUS_SUCCESS;
}

enum status cudnn_open(bool tf32, struct cudnn **out)
{
    TRY(cudnn_probe());
    struct cudnn *cudnn = (struct cudnn *)mem_alloc(sizeof *cudnn);
    NEED(cudnn);
    cudnn->library = library_open();
    cudnn->tf32 = tf32;
    if (!library_read(cudnn)) {
        dlclose(cudnn->library);
        mem_free(cudnn);
        FAIL(STATUS_UNSUPPORTED, "cuDNN (libcudnn.so.9) is there but does not start");
    }
    *out = cudnn;
    return STATUS_OK;
}

void cudnn_close(struct cudnn *cudnn)
{
    if (!cudnn)
        return;
    while (cudnn->choices) {
        struct choice *next = cudnn->choices->next;
        mem_free(cudnn->choices);
        cudnn->choices = next;
    }
    cudnn->Destroy(cudnn->handle);
    dlclose(cudnn->library);
    mem_free(cudnn);
}

/* A convolution in cuDNN's words. */
struct described {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
};

static void described_drop(const struct cudnn *cudnn, struct described *described)
{
    cudnn->DestroyTensorDescriptor(described->x);
    cudnn->DestroyTensorDescriptor(described->y);
    cudnn->DestroyFilterDescriptor(described->w);
    cudnn->DestroyConvolutionDescriptor(described->how);
}

static bool describe(const struct cudnn *cudnn, const struct conv &conv,
                     struct described *described)
{
    const auto fine = [](cudnnStatus_t status) { return status == CUDNN_STATUS_SUCCESS; };
    const auto image = [&](cudnnTensorDescriptor_t *out, int channels, int rows, int columns) {
        return fine(cudnn->CreateTensorDescriptor(out)) &&
               fine(cudnn->SetTensor4dDescriptor(*out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                                 conv.samples, channels, rows, columns));
    };
    return image(&described->x, conv.in, conv.down.x, conv.across.x) &&
           image(&described->y, conv.out, conv.down.y, conv.across.y) &&
           fine(cudnn->CreateFilterDescriptor(&described->w)) &&
           fine(cudnn->SetFilter4dDescriptor(described->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                             conv.out, conv.inner, conv.down.kernel,
                                             conv.across.kernel)) &&
           fine(cudnn->CreateConvolutionDescriptor(&described->how)) &&
           fine(cudnn->SetConvolution2dDescriptor(described->how, conv.down.pad, conv.across.pad,
                                                  conv.down.stride, conv.across.stride,
                                                  conv.down.dilation, conv.across.dilation,
                                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)) &&
           fine(cudnn->SetConvolutionGroupCount(described->how, conv.groups)) &&
           fine(cudnn->SetConvolutionMathType(described->how,
                                              cudnn->tf32 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
}

/* The quickest of those that were tried, which are in order, that may be taken. */
template <typename Tried> static void pick(const Tried *tried, int count, struct choice *choice)
{
    for (int i = 0; i < count && !choice->works; i++) {
        choice->algorithm = (int)tried[i].algo;
        choice->works = tried[i].status == CUDNN_STATUS_SUCCESS &&
                        tried[i].memory <= workspace_cudnn(NULL, NULL) &&
                        tried[i].determinism == CUDNN_DETERMINISTIC;
    }
}

static void find_algorithm(const struct cudnn *cudnn, struct choice *choice)
{
    enum { MOST = 16 };
    cudnnConvolutionFwdAlgoPerf_t ahead[MOST];
    cudnnConvolutionBwdDataAlgoPerf_t back[MOST];
    cudnnConvolutionBwdFilterAlgoPerf_t weigh[MOST];
    struct described at = {};
    int count = 0;
    if (!describe(cudnn, choice->conv, &at)) {
        described_drop(cudnn, &at);
        return;
    }
    switch (choice->kind) {
    case OP_conv_t:
        if (cudnn->FindConvolutionBackwardDataAlgorithm(cudnn->handle, at.w, at.y, at.how, at.x,
                                                        MOST, &count, back) == CUDNN_STATUS_SUCCESS)
            pick(back, count, choice);
        break;
    case OP_conv_dw:
        if (cudnn->FindConvolutionBackwardFilterAlgorithm(cudnn->handle, at.x, at.y, at.how, at.w,
                                                          MOST, &count,
                                                          weigh) == CUDNN_STATUS_SUCCESS)
            pick(weigh, count, choice);
        break;
    default:
        if (cudnn->FindConvolutionForwardAlgorithm(cudnn->handle, at.x, at.w, at.how, at.y, MOST,
                                                   &count, ahead) == CUDNN_STATUS_SUCCESS)
            pick(ahead, count, choice);
    }
    described_drop(cudnn, &at);
}

static const struct choice *find_choice(const struct cudnn *cudnn, enum op_kind kind,
                                        const struct conv &conv)
{
    const struct choice *choice = cudnn->choices;
    while (choice && (choice->kind != kind || memcmp(&choice->conv, &conv, sizeof conv) != 0))
        choice = choice->next;
    return choice;
}

/* The ending of a fused convolution, in place; y may also be what is added. */
static __global__ void finish_each(int64_t count, uint32_t plane, uint32_t channels,
                                   struct conv_ending ending, float *y)
{
    FOR_EACH(index, count)
    {
        uint32_t within, channel;
        split_number(split_number(index, plane, &within), channels, &channel);
        struct conv_channel_end end;
        end.take(ending, (int32_t)channel);
        const float value = end.of(y[index]);
        y[index] =
            activation_value(ending.activation, ending.add ? value + ending.add[index] : value);
    }
}

static void run_cudnn(const struct call *call, struct queue *queue, int32_t result,
                      const struct conv_ending &ending, bool ends)
{
    const struct cudnn *cudnn = queue->cudnn;
    const struct conv conv = conv_of(call->program, call->op);
    const enum op_kind kind = call->op->kind;
    const float one = 1.0f;
    const size_t room = workspace_cudnn(call->program, call->op);
    const float beta = kind == OP_conv_dw && call->op->attr.conv_dw.accumulate ? 1.0f : 0.0f;
    float *a = call_reals(call, 0), *b = call_reals(call, 1), *to = call_reals(call, result);
    queue->launches++;
    if (!queue->counting && queue->error == cudaSuccess) {
        const struct choice *choice = find_choice(cudnn, kind, conv);
        struct described at = {};
        cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
        if (choice && describe(cudnn, conv, &at) &&
            cudnn->SetStream(cudnn->handle, queue->stream) == CUDNN_STATUS_SUCCESS)
            status = kind == OP_conv_t ? cudnn->ConvolutionBackwardData(
                                             cudnn->handle, &one, at.w, b, at.y, a, at.how,
                                             (cudnnConvolutionBwdDataAlgo_t)choice->algorithm,
                                             call->workspace, room, &beta, at.x, to)
                     : kind == OP_conv_dw
                         ? cudnn->ConvolutionBackwardFilter(
                               cudnn->handle, &one, at.x, a, at.y, b, at.how,
                               (cudnnConvolutionBwdFilterAlgo_t)choice->algorithm, call->workspace,
                               room, &beta, at.w, to)
                         : cudnn->ConvolutionForward(cudnn->handle, &one, at.x, a, at.w, b, at.how,
                                                     (cudnnConvolutionFwdAlgo_t)choice->algorithm,
                                                     call->workspace, room, &beta, at.y, to);
        described_drop(cudnn, &at);
        if (status != CUDNN_STATUS_SUCCESS)
            queue->error = cudaErrorNotSupported;
    }
    const int64_t count = call_count(call, result);
    if (ends)
        enqueue(queue, finish_each, dim3(blocks_striding(count)), dim3(THREADS), count,
                (uint32_t)(call_dim(call, result, 2) * call_dim(call, result, 3)),
                (uint32_t)call_dim(call, result, 1), ending, to);
}

/* conv and conv_t */
static void launch_conv_cudnn(const struct call *call, struct queue *queue)
{
    struct conv_ending ending = {};
    ending.bias = call_reals(call, 2);
    run_cudnn(call, queue, 3, ending, call_has(call, 2));
}

static void launch_conv_fused_cudnn(const struct call *call, struct queue *queue)
{
    run_cudnn(call, queue, 8, conv_ending_of(call), true);
}

static void launch_conv_dw_cudnn(const struct call *call, struct queue *queue)
{
    run_cudnn(call, queue, 2, conv_ending{}, false);
}

static const struct kernel kernels[2][4] = {
    {{OP_conv, "conv_f32_cudnn", launch_conv_cudnn, workspace_cudnn, NULL, 0, false},
     {OP_conv_t, "conv_t_f32_cudnn", launch_conv_cudnn, workspace_cudnn, NULL, 0, false},
     {OP_conv_fused, "conv_fused_f32_cudnn", launch_conv_fused_cudnn, workspace_cudnn, NULL, 0,
      false},
     {OP_conv_dw, "conv_dw_f32_cudnn", launch_conv_dw_cudnn, workspace_cudnn, NULL, 0, false}},
    {{OP_conv, "conv_tf32_cudnn", launch_conv_cudnn, workspace_cudnn, NULL, 0, false},
     {OP_conv_t, "conv_t_tf32_cudnn", launch_conv_cudnn, workspace_cudnn, NULL, 0, false},
     {OP_conv_fused, "conv_fused_tf32_cudnn", launch_conv_fused_cudnn, workspace_cudnn, NULL, 0,
      false},
     {OP_conv_dw, "conv_dw_tf32_cudnn", launch_conv_dw_cudnn, workspace_cudnn, NULL, 0, false}}};

/* Are there as many places as cuDNN works out from pads on both sides? */
static bool is_even(const struct conv_axis &axis)
{
    const int32_t room = axis.x + 2 * axis.pad - (axis.kernel - 1) * axis.dilation - 1;
    return room >= 0 && room / axis.stride + 1 == axis.y;
}

/* … and was an algorithm found? It is looked for when the shape is met for the first time. */
static bool is_chosen(struct cudnn *cudnn, enum op_kind kind, const struct conv &conv)
{
    const struct choice *known = find_choice(cudnn, kind, conv);
    if (known)
        return known->works;
    struct choice *choice = (struct choice *)mem_alloc(sizeof *choice);
    if (!choice)
        return false;
    choice->kind = kind;
    choice->conv = conv;
    find_algorithm(cudnn, choice);
    choice->next = cudnn->choices;
    cudnn->choices = choice;
    return choice->works;
}

const struct kernel *cudnn_kernel(struct cudnn *cudnn, const struct program *program,
                                  const struct op *op, bool dry)
{
    for (const struct kernel &kernel : kernels[cudnn && cudnn->tf32]) {
        if (!cudnn || kernel.kind != op->kind)
            continue;
        const struct conv conv = conv_of(program, op);
        if (is_even(conv.down) && is_even(conv.across) && (dry || is_chosen(cudnn, op->kind, conv)))
            return &kernel;
    }
    return NULL;
}

#else

enum status cudnn_probe(void)
{
    FAIL(STATUS_UNSUPPORTED, "this build has no cuDNN: cudnn.h was not found when it was made");
}

enum status cudnn_open(bool, struct cudnn **)
{
    return cudnn_probe();
}

void cudnn_close(struct cudnn *)
{
}

const struct kernel *cudnn_kernel(struct cudnn *, const struct program *, const struct op *, bool)
{
    return NULL;
}

#endif
