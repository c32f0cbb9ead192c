/* cudnn_plan.cu: see cudnn_plan.h. Of what cuDNN proposes only engines are taken whose sums have a
 * fixed order; in fp32 none that says that it multiplies on tensor cores, and none whose results
 * are off, whatever it says (cudnn_check.cu). */
#include "backend/cuda/conv/cudnn.h"

#if __has_include(<cudnn.h>)
#include "backend/cuda/conv/cudnn_plan.h"

extern "C" {
#include "base/memory.h"
}

#include <cmath>
#include <cstring>

enum { PROPOSALS = 8, ALIGNMENT = 16 };

typedef cudnnBackendDescriptor_t description;

uint64_t cudnn_most_bytes(void)
{
    size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? total / 32 : 0;
}

/* A description being filled in; `fine` as long as nothing was refused. */
struct filling {
    const struct cudnn *cudnn;
    description made;
    bool fine;
    filling(const struct cudnn *with, cudnnBackendDescriptorType_t type) : cudnn(with), made(NULL)
    {
        fine = cudnn->BackendCreateDescriptor(type, &made) == CUDNN_STATUS_SUCCESS;
    }
    void put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
             const void *values)
    {
        fine = fine &&
               cudnn->BackendSetAttribute(made, name, type, count, values) == CUDNN_STATUS_SUCCESS;
    }
    void put_number(cudnnBackendAttributeName_t name, int64_t value)
    {
        put(name, CUDNN_TYPE_INT64, 1, &value);
    }
    void put_made(cudnnBackendAttributeName_t name, description value)
    {
        fine = fine && value;
        put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
    }
    /* NULL when anything was refused. */
    description finish(void)
    {
        fine = fine && cudnn->BackendFinalize(made) == CUDNN_STATUS_SUCCESS;
        if (!fine && made)
            cudnn->BackendDestroyDescriptor(made);
        return fine ? made : NULL;
    }
};

/* What describes a form; each NULL where something was refused. */
struct described {
    description x, w, y, how, operation, graph;
};

enum { UID_X = 1, UID_W, UID_Y };

static description describe_tensor(const struct cudnn *cudnn, int64_t uid, bool nhwc, int64_t n,
                                   int64_t channels, int64_t rows, int64_t columns)
{
    const int64_t dims[4] = {n, channels, rows, columns};
    const int64_t nchw_steps[4] = {channels * rows * columns, rows * columns, columns, 1};
    const int64_t nhwc_steps[4] = {channels * rows * columns, 1, columns * channels, channels};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    struct filling tensor(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.put(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    tensor.put(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    tensor.put(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, nhwc ? nhwc_steps : nchw_steps);
    tensor.put_number(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    tensor.put_number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT);
    return tensor.finish();
}

static description describe_how(const struct cudnn *cudnn, const struct conv &conv)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t pads[2] = {conv.down.pad, conv.across.pad};
    const int64_t strides[2] = {conv.down.stride, conv.across.stride};
    const int64_t dilations[2] = {conv.down.dilation, conv.across.dilation};
    struct filling how(cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    how.put(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    how.put(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    how.put_number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    how.put(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    how.put(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    how.put(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    how.put(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
    return how.finish();
}

/* What a task's operation and its attributes are called. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, how, x, w, y;
} tasks[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

static void describe(const struct cudnn *cudnn, const struct conv_form *form,
                     struct described *made)
{
    const struct conv &conv = form->conv;
    const auto &task = tasks[form->task];
    const float one = 1.0f, zero = 0.0f;
    made->x = describe_tensor(cudnn, UID_X, form->nhwc, conv.samples, conv.in, conv.down.x,
                              conv.across.x);
    made->w = describe_tensor(cudnn, UID_W, form->nhwc, conv.out, conv.inner, conv.down.kernel,
                              conv.across.kernel);
    made->y = describe_tensor(cudnn, UID_Y, form->nhwc, conv.samples, conv.out, conv.down.y,
                              conv.across.y);
    made->how = describe_how(cudnn, conv);
    struct filling operation(cudnn, task.type);
    operation.put(task.alpha, CUDNN_TYPE_FLOAT, 1, &one);
    operation.put(task.beta, CUDNN_TYPE_FLOAT, 1, &zero);
    operation.put_made(task.how, made->how);
    operation.put_made(task.x, made->x);
    operation.put_made(task.w, made->w);
    operation.put_made(task.y, made->y);
    made->operation = operation.finish();
    struct filling graph(cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.put(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn->handle);
    graph.put_made(CUDNN_ATTR_OPERATIONGRAPH_OPS, made->operation);
    made->graph = graph.finish();
}

static void described_drop(const struct cudnn *cudnn, const struct described *made)
{
    const description all[] = {made->graph, made->operation, made->how, made->y, made->w, made->x};
    for (description one : all)
        if (one)
            cudnn->BackendDestroyDescriptor(one);
}

/* May this engine be taken? */
static bool may_take(const struct cudnn *cudnn, description config)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    description engine = NULL;
    bool may = cudnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) ==
                   CUDNN_STATUS_SUCCESS &&
               cudnn->BackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                          &engine) == CUDNN_STATUS_SUCCESS &&
               cudnn->BackendGetAttribute(
                   engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) == CUDNN_STATUS_SUCCESS;
    for (int64_t i = 0; may && i < count; i++)
        may = notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC &&
              notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS &&
              notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION &&
              (cudnn->tf32 ||
               (notes[i] != CUDNN_NUMERICAL_NOTE_TENSOR_CORE &&
                notes[i] != CUDNN_NUMERICAL_NOTE_WINOGRAD && notes[i] != CUDNN_NUMERICAL_NOTE_FFT));
    if (engine)
        cudnn->BackendDestroyDescriptor(engine);
    return may;
}

/* A plan by this proposal, and the bytes it takes; NULL: it may not be taken. */
static description make_plan(const struct cudnn *cudnn, description config, int64_t *bytes)
{
    int64_t count = 0;
    if (!may_take(cudnn, config))
        return NULL;
    struct filling filling(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    filling.put(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn->handle);
    filling.put_made(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    description plan = filling.finish();
    if (plan &&
        cudnn->BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                   1, &count, bytes) == CUDNN_STATUS_SUCCESS &&
        (uint64_t)*bytes <= cudnn_most_bytes())
        return plan;
    if (plan)
        cudnn->BackendDestroyDescriptor(plan);
    return NULL;
}

bool cudnn_execute(const struct cudnn *cudnn, const struct cudnn_choice *choice, const float *x,
                   const float *w, const float *y, void *workspace, cudaStream_t stream)
{
    const int64_t names[3] = {UID_X, UID_W, UID_Y};
    const void *places[3] = {x, w, y};
    struct filling filling(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    filling.put(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, names);
    filling.put(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, places);
    filling.put(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    description pack = filling.finish();
    const bool done =
        pack && cudnn->SetStream(cudnn->handle, stream) == CUDNN_STATUS_SUCCESS &&
        cudnn->BackendExecute(cudnn->handle, choice->plan, pack) == CUDNN_STATUS_SUCCESS;
    if (pack)
        cudnn->BackendDestroyDescriptor(pack);
    return done;
}

/* Memory in which proposals are tried. */
struct trial {
    float *x, *w, *y;
    cudaStream_t stream;
    cudaEvent_t from, to;
};

/* Numbers between -1 and 1: zeros are multiplied with less power, and so quicker. */
static __global__ void fill_any(int64_t count, float *values)
{
    FOR_EACH(index, count)
    values[index] = (float)((uint32_t)index * 2654435761u >> 8) / 8388608.0f - 1.0f;
}

static bool trial_open(const struct conv &conv, struct trial *trial)
{
    const auto take = [&](float **out, int64_t count) {
        if (cudaMalloc((void **)out, (size_t)count * sizeof(float)) != cudaSuccess)
            return false;
        fill_any<<<blocks_striding(count), THREADS, 0, trial->stream>>>(count, *out);
        return cudaGetLastError() == cudaSuccess;
    };
    return cudaStreamCreateWithFlags(&trial->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cudaEventCreate(&trial->from) == cudaSuccess &&
           cudaEventCreate(&trial->to) == cudaSuccess && take(&trial->x, count_x(conv)) &&
           take(&trial->w, count_w(conv)) && take(&trial->y, count_y(conv));
}

static void trial_close(struct trial *trial)
{
    if (trial->to)
        cudaEventDestroy(trial->to);
    if (trial->from)
        cudaEventDestroy(trial->from);
    if (trial->stream)
        cudaStreamDestroy(trial->stream);
    cudaFree(trial->y);
    cudaFree(trial->w);
    cudaFree(trial->x);
    (void)cudaGetLastError(); /* who gets no memory to try in has no plan */
}

/* Milliseconds of a few runs; infinite when it fails. */
static float trial_time(const struct cudnn *cudnn, const struct trial *trial,
                        const struct cudnn_choice *choice)
{
    enum { RUNS = 3 };
    void *workspace = NULL;
    float ms = INFINITY;
    const auto run = [&] {
        return cudnn_execute(cudnn, choice, trial->x, trial->w, trial->y, workspace, trial->stream);
    };
    bool ok = choice->bytes == 0 || cudaMalloc(&workspace, (size_t)choice->bytes) == cudaSuccess;
    ok = ok && run() && cudaEventRecord(trial->from, trial->stream) == cudaSuccess;
    for (int i = 0; ok && i < RUNS; i++)
        ok = run();
    ok = ok && cudaEventRecord(trial->to, trial->stream) == cudaSuccess &&
         cudaEventSynchronize(trial->to) == cudaSuccess &&
         cudaEventElapsedTime(&ms, trial->from, trial->to) == cudaSuccess;
    cudaFree(workspace);
    (void)cudaGetLastError();
    return ok ? ms : INFINITY;
}

/* … in which nothing is left of what was there before, and all results must be right. */
static float trial_checked(const struct cudnn *cudnn, const struct trial *trial,
                           const struct cudnn_choice *choice, float least)
{
    const struct conv_form *form = &choice->form;
    const struct conv &conv = form->conv;
    float *made = form->task == CONV_FORWARD ? trial->y
                  : form->task == CONV_DGRAD ? trial->x
                                             : trial->w;
    const int64_t count = form->task == CONV_FORWARD ? count_y(conv)
                          : form->task == CONV_DGRAD ? count_x(conv)
                                                     : count_w(conv);
    const bool poisoned =
        cudaMemsetAsync(made, 0xff, (size_t)count * sizeof(float), trial->stream) == cudaSuccess;
    const float ms = poisoned ? trial_time(cudnn, trial, choice) : INFINITY;
    return ms < least &&
                   cudnn_is_right(form, cudnn->tf32, trial->x, trial->w, trial->y, trial->stream)
               ? ms
               : INFINITY;
}

/* The quickest of what cuDNN proposes in this mode. */
static void try_proposals(const struct cudnn *cudnn, const struct trial *trial, description graph,
                          cudnnBackendHeurMode_t mode, struct cudnn_choice *choice)
{
    description configs[PROPOSALS] = {};
    int64_t found = 0;
    float least = INFINITY;
    struct filling filling(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    filling.put_made(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    filling.put(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    description heuristic = filling.finish();
    for (description &config : configs)
        if (cudnn->BackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config) !=
            CUDNN_STATUS_SUCCESS)
            config = NULL;
    if (!heuristic || cudnn->BackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, PROPOSALS, &found,
                                                 configs) != CUDNN_STATUS_SUCCESS)
        found = 0;
    for (int64_t i = 0; i < found && i < PROPOSALS; i++) {
        struct cudnn_choice tried = *choice;
        tried.plan = make_plan(cudnn, configs[i], &tried.bytes);
        const float ms = tried.plan ? trial_checked(cudnn, trial, &tried, least) : INFINITY;
        const description worse = ms < least ? choice->plan : tried.plan;
        if (worse)
            cudnn->BackendDestroyDescriptor(worse);
        if (ms < least) {
            choice->plan = tried.plan;
            choice->bytes = tried.bytes;
            least = ms;
        }
    }
    for (description config : configs)
        if (config)
            cudnn->BackendDestroyDescriptor(config);
    if (heuristic)
        cudnn->BackendDestroyDescriptor(heuristic);
}

const struct cudnn_choice *cudnn_known(const struct cudnn *cudnn, const struct conv_form *form)
{
    const struct cudnn_choice *choice = cudnn->choices;
    while (choice && memcmp(&choice->form, form, sizeof *form) != 0)
        choice = choice->next;
    return choice;
}

const struct cudnn_choice *cudnn_choose(struct cudnn *cudnn, const struct conv_form *form)
{
    const struct cudnn_choice *known = cudnn_known(cudnn, form);
    if (known)
        return known;
    struct cudnn_choice *choice = (struct cudnn_choice *)mem_alloc(sizeof *choice);
    struct described made = {};
    struct trial trial = {};
    if (!choice)
        return NULL;
    choice->form = *form;
    describe(cudnn, form, &made);
    if (made.graph && trial_open(form->conv, &trial)) {
        try_proposals(cudnn, &trial, made.graph, CUDNN_HEUR_MODE_A, choice);
        if (!choice->plan)
            try_proposals(cudnn, &trial, made.graph, CUDNN_HEUR_MODE_FALLBACK, choice);
    }
    trial_close(&trial);
    described_drop(cudnn, &made);
    choice->next = cudnn->choices;
    cudnn->choices = choice;
    return choice;
}

void cudnn_forget(struct cudnn *cudnn)
{
    while (cudnn->choices) {
        struct cudnn_choice *next = cudnn->choices->next;
        if (cudnn->choices->plan)
            cudnn->BackendDestroyDescriptor(cudnn->choices->plan);
        mem_free(cudnn->choices);
        cudnn->choices = next;
    }
}

#endif
