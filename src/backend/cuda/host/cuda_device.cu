/* cuda_device.cu: the GPU: is there one, what is it, its stream and its memory. */
#include "backend/cuda/conv/cudnn.h"
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/host/nccl.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/product/blas.h"

#include <cstdio>
#include <cstring>

extern "C" {
#include "base/memory.h"
}

enum { LEAST_MAJOR = 8 };     /* the oldest compute capability the plugin is built for … */
enum { FP8_CAPABILITY = 89 }; /* … and the oldest with products in fp8 */

#define NEEDS_LESS                                                                                 \
    "a smaller batch or network needs less, and a GPU that nothing else uses has more"

/* Some errors lose everything the process has on the GPU; then the next call fails as well. It may
 * also fail because there was no room to begin with, or because another process has the GPU for
 * itself: nothing is lost then. */
static bool is_lost(void)
{
    const cudaError_t next = cudaFree(NULL);
    return next != cudaSuccess && next != cudaErrorMemoryAllocation &&
           next != cudaErrorDevicesUnavailable;
}

enum status cuda_fail(const char *file, int line, cudaError_t error, const char *doing)
{
    (void)cudaGetLastError(); /* so that it is not found again by the next launch */
    const bool room = error == cudaErrorMemoryAllocation;
    return status_fail(room ? STATUS_MEMORY : STATUS_DEVICE, file, line, "CUDA: %s (%s) in %s%s",
                       cudaGetErrorString(error), cudaGetErrorName(error), doing,
                       room        ? "; " NEEDS_LESS
                       : is_lost() ? "; the GPU can be used again by a new process only"
                                   : "");
}

static enum status count_devices(int *count)
{
    cudaError_t error = cudaGetDeviceCount(count);
    if (error == cudaErrorInsufficientDriver) {
        int version = 0;
        cudaRuntimeGetVersion(&version);
        FAIL(STATUS_UNSUPPORTED,
             "there is no NVIDIA driver for CUDA %d.%d or newer: install or update the driver",
             version / 1000, version % 1000 / 10);
    }
    if (error == cudaErrorNoDevice || (error == cudaSuccess && *count == 0))
        FAIL(STATUS_UNSUPPORTED, "the NVIDIA driver sees no GPU: check nvidia-smi and "
                                 "CUDA_VISIBLE_DEVICES");
    if (error != cudaSuccess)
        FAIL(STATUS_UNSUPPORTED, "the NVIDIA driver does not start: %s (%s); check nvidia-smi",
             cudaGetErrorString(error), cudaGetErrorName(error));
    return STATUS_OK;
}

static enum status read_properties(int index, cudaDeviceProp *properties)
{
    CUDA(cudaGetDeviceProperties(properties, index));
    if (properties->major < LEAST_MAJOR)
        FAIL(STATUS_UNSUPPORTED,
             "%s has compute capability %d.%d; the CUDA plugin is built for %d.0 and newer",
             properties->name, properties->major, properties->minor, LEAST_MAJOR);
    return STATUS_OK;
}

enum status cuda_probe(void)
{
    int count = 0;
    cudaDeviceProp properties;
    TRY(count_devices(&count));
    return read_properties(0, &properties);
}

static enum status parse_precision(const char *text, struct device *device)
{
    enum precision *out = &device->precision;
    static const char *const names[PRECISION_COUNT] = {"fp32", "tf32", "bf16", "fp16"};
    int i = 0;
    *out = PRECISION_FP32;
    if (text && !strcmp(text, "int8"))
        return STATUS_OK; /* a program in 8 bits says so op by op; its reals are fp32 */
    device->fp8 = text && !strcmp(text, "fp8");
    if (device->fp8) {
        *out = PRECISION_BF16;
        if (device->properties.major * 10 + device->properties.minor < FP8_CAPABILITY)
            FAIL(STATUS_UNSUPPORTED,
                 "fp8 needs a GPU of compute capability 8.9 or newer, such as Ada or Hopper; %s "
                 "has %d.%d",
                 device->properties.name, device->properties.major, device->properties.minor);
        return STATUS_OK;
    }
    while (text && text[0] && i < PRECISION_COUNT && strcmp(names[i], text) != 0)
        i++;
    if (i == PRECISION_COUNT)
        FAIL(STATUS_UNSUPPORTED,
             "the CUDA backend computes in fp32, tf32, bf16, fp16, fp8 or int8, not in %s", text);
    *out = (enum precision)i;
    return STATUS_OK;
}

/* Products in anything but fp32 are cuBLASLt's: without it they would be fp32 under another name.
 */
static enum status open_blas(struct device *device, const char *precision)
{
    TRY(parse_precision(precision, device));
    device->blas = blas_open(device->precision, device->paper);
    if (device->precision != PRECISION_FP32 && !device->blas)
        FAIL(STATUS_UNSUPPORTED,
             "%s needs cuBLASLt (libcublasLt.so.12 or .13): install NVIDIA's CUDA libraries",
             precision);
    return STATUS_OK;
}

/* Whether the code that is loaded has what only Hopper has: not if it was built for 90 instead of
 * 90a, or is compiled from PTX. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
static __device__ const int has_warpgroups = 1;
#else
static __device__ const int has_warpgroups = 0;
#endif

static enum status find_warpgroups(struct device *device)
{
    int has = 0;
    CUDA(cudaMemcpyFromSymbol(&has, has_warpgroups, sizeof has));
    device->warpgroups = has;
    return STATUS_OK;
}

/* What CUDA itself takes for a process depends on the GPU: some 500 MB of an H200. */
static enum status begin_gpu(const struct device *device)
{
    const cudaError_t error = cudaSetDevice(device->index);
    if (error != cudaErrorMemoryAllocation)
        return error == cudaSuccess ? STATUS_OK
                                    : cuda_fail(__FILE__, __LINE__, error, "cudaSetDevice");
    (void)cudaGetLastError();
    FAIL(STATUS_MEMORY,
         "out of GPU memory on %s: not even what CUDA needs to begin is free; see nvidia-smi for "
         "what else uses it",
         device->properties.name);
}

static enum status open_gpu(struct device *device, int index)
{
    int count = 0;
    TRY(count_devices(&count));
    if (index < 0 || index >= count)
        FAIL(STATUS_INPUT, "there is no GPU %d: this machine has %d, counted from 0", index, count);
    device->index = index;
    TRY(read_properties(index, &device->properties));
    TRY(begin_gpu(device));
    CUDA(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
    return find_warpgroups(device);
}

/* What of the GPU that the kernels were made on decides which of them run. */
static void open_paper(struct device *device)
{
    cudaDeviceProp *properties = &device->properties;
    device->paper = true;
    snprintf(properties->name, sizeof properties->name, "NVIDIA H200");
    properties->major = 9;
    device->warpgroups = true;
    properties->multiProcessorCount = TARGET_MULTIPROCESSORS;
    properties->sharedMemPerBlockOptin = TARGET_SHARED_BYTES;
    properties->l2CacheSize = 60 << 20;
    properties->totalGlobalMem = (size_t)141 << 30;
}

enum status cuda_open(const struct device_options *options, struct device **out)
{
    struct device *device = (struct device *)mem_alloc(sizeof *device);
    enum status status = STATUS_OK;
    NEED(device);
    if (options->paper)
        open_paper(device);
    else
        status = open_gpu(device, options->index);
    if (status == STATUS_OK)
        status = open_blas(device, options->precision);
    if (status != STATUS_OK) {
        cuda_close(device);
        return status;
    }
    *out = device;
    return STATUS_OK;
}

enum status cuda_probe_cudnn(void)
{
    TRY(cuda_probe());
    return cudnn_probe();
}

enum status cuda_open_cudnn(const struct device_options *options, struct device **out)
{
    struct device *device;
    if (options->paper)
        FAIL(STATUS_UNSUPPORTED, "which of cuDNN's engines run is found by timing them: without a "
                                 "GPU only the backend 'cuda' can say what it would do");
    TRY(cuda_open(options, &device));
    enum status status = cudnn_open(device->precision != PRECISION_FP32, &device->cudnn);
    if (status != STATUS_OK) {
        cuda_close(device);
        return status;
    }
    *out = device;
    return STATUS_OK;
}

void cuda_close(struct device *device)
{
    if (!device)
        return;
    if (!device->paper)
        cudaSetDevice(device->index);
    blas_close(device->blas);
    cudnn_close(device->cudnn);
    nccl_leave(device);
    if (device->stream)
        cudaStreamDestroy(device->stream);
    mem_free(device);
}

/* 13010: "13.1", as CUDA counts. */
static void write_version(char out[DEVICE_VERSION], int version)
{
    snprintf(out, DEVICE_VERSION, "%d.%d", version / 1000, version % 1000 / 10);
}

/* 130102: "13.1.2", as cuBLASLt and cuDNN count; of 0 nothing is said. */
static void add_library(struct device_info *info, int *count, const char *name, size_t version)
{
    if (!version)
        return;
    auto *library = &info->software[(*count)++];
    library->name = name;
    snprintf(library->version, sizeof library->version, "%zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
}

void cuda_describe(const struct device *device, struct device_info *out)
{
    const cudaDeviceProp *properties = &device->properties;
    int driver = 0, runtime = 0, count = 1;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    *out = {};
    snprintf(out->name, sizeof out->name, "%.*s", DEVICE_NAME - 1, properties->name);
    out->memory_bytes = properties->totalGlobalMem;
    out->l2_bytes = (uint64_t)properties->l2CacheSize;
    out->multiprocessors = properties->multiProcessorCount;
    write_version(out->compute_capability, properties->major * 1000 + properties->minor * 10);
    write_version(out->driver, driver);
    out->software[0].name = "cuda";
    write_version(out->software[0].version, runtime);
    add_library(out, &count, "cublaslt", blas_version(device->blas));
    add_library(out, &count, "cudnn", cudnn_version(device->cudnn));
    add_library(out, &count, "nccl", (size_t)nccl_version(device));
}

const char *cuda_supports(const struct device *device, const struct program *program,
                          const struct op *op)
{
    if (!op)
        return stack_supports(device, program);
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t tensor = program->operands[op->first + i];
        if (tensor >= 0 && program->tensors[tensor].dtype == DTYPE_F64)
            return "the CUDA backend computes in f32, not f64";
    }
    if (op->kind == OP_dense_sgd && device && device->precision == PRECISION_FP16)
        return "in fp16 no update may begin before all gradients are known";
    return kernel_has(op->kind) ? NULL : "the CUDA backend has no kernel for it";
}

enum status cuda_use(struct device *device)
{
    if (device->paper)
        return STATUS_OK;
    CUDA(cudaSetDevice(device->index));
    return answer_stop(device);
}

enum status cuda_alloc(const struct device *device, uint64_t bytes, const char *what, void **out)
{
    *out = NULL;
    if (bytes == 0)
        return STATUS_OK;
    cudaError_t error = cudaMalloc(out, bytes);
    if (error == cudaErrorMemoryAllocation) {
        size_t free = 0, total = 0;
        (void)cudaGetLastError();
        cudaMemGetInfo(&free, &total);
        FAIL(STATUS_MEMORY,
             "out of GPU memory on %s: %.1f MB for %s, and %.1f of %.1f MB are free; " NEEDS_LESS,
             device->properties.name, (double)bytes / 1e6, what, (double)free / 1e6,
             (double)total / 1e6);
    }
    CUDA(error);
    error = cudaMemsetAsync(*out, 0, bytes, device->stream);
    if (error == cudaSuccess)
        return STATUS_OK;
    cudaFree(*out);
    *out = NULL;
    return cuda_fail(__FILE__, __LINE__, error, "cudaMemsetAsync");
}
