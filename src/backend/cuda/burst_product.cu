/* burst_product.cu: what the matrix units can do at best, as NVIDIA's own library reaches it: one
 * square product of random numbers, large enough to fill the GPU. */
#include "backend/cuda/burst.h"

#include <cstring>
#include <cublasLt.h>
#include <dlfcn.h>

enum { SIDE = 8192, WORKSPACE_BYTES = 32 << 20 };

#define PRODUCT_FUNCTIONS(DO)                                                                      \
    DO(Create)                                                                                     \
    DO(Destroy)                                                                                    \
    DO(Matmul)                                                                                     \
    DO(MatmulAlgoGetHeuristic)                                                                     \
    DO(MatmulDescCreate)                                                                           \
    DO(MatmulDescDestroy)                                                                          \
    DO(MatmulDescSetAttribute)                                                                     \
    DO(MatmulPreferenceCreate)                                                                     \
    DO(MatmulPreferenceDestroy)                                                                    \
    DO(MatmulPreferenceSetAttribute)                                                               \
    DO(MatrixLayoutCreate)                                                                         \
    DO(MatrixLayoutDestroy)

/* A kind of product, and everything that cuBLASLt wants for it. */
struct square {
    void *library;
    cublasComputeType_t compute;
    cudaDataType_t type; /* of the factors; the result has the same */
    uint64_t element_bytes;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t how;
    char *memory; /* device: a, b, d, workspace */
#define DO(name) decltype(&cublasLt##name) name;
    PRODUCT_FUNCTIONS(DO)
#undef DO
};

/* Random bits of numbers between 1 and 2, of either sign: zeros would run faster than data do. */
static __global__ void fill_16(uint64_t count, uint32_t exponent, uint32_t mask, uint16_t *out)
{
    FOR_EACH(i, (int64_t)count)
    {
        const uint32_t bits = (uint32_t)i * 2654435761u >> 8;
        out[i] = (uint16_t)(exponent | (bits & mask) | (bits & 0x8000u));
    }
}

static __global__ void fill_32(uint64_t count, uint32_t *out)
{
    FOR_EACH(i, (int64_t)count)
    {
        const uint32_t bits = (uint32_t)i * 2654435761u;
        out[i] = 0x3f800000u | (bits >> 9) | (bits << 31);
    }
}

static bool square_load(struct square *square)
{
    for (const char *name :
         {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
          "/usr/local/cuda/lib64/libcublasLt.so.12"})
        if (!square->library)
            square->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!square->library)
        return false;
#define DO(name)                                                                                   \
    square->name = (decltype(&cublasLt##name))dlsym(square->library, "cublasLt" #name);            \
    if (!square->name)                                                                             \
        return false;
    PRODUCT_FUNCTIONS(DO)
#undef DO
    return square->Create(&square->handle) == CUBLAS_STATUS_SUCCESS;
}

static bool square_describe(struct square *square)
{
    const size_t room = WORKSPACE_BYTES;
    const cublasOperation_t turned = CUBLAS_OP_T; /* what the matrix units like best */
    int found = 0;
    return square->MatmulDescCreate(&square->what, square->compute, CUDA_R_32F) ==
               CUBLAS_STATUS_SUCCESS &&
           square->MatmulDescSetAttribute(square->what, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                          sizeof turned) == CUBLAS_STATUS_SUCCESS &&
           square->MatrixLayoutCreate(&square->layout, square->type, SIDE, SIDE, SIDE) ==
               CUBLAS_STATUS_SUCCESS &&
           square->MatmulPreferenceCreate(&square->wish) == CUBLAS_STATUS_SUCCESS &&
           square->MatmulPreferenceSetAttribute(square->wish,
                                                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                                sizeof room) == CUBLAS_STATUS_SUCCESS &&
           square->MatmulAlgoGetHeuristic(
               square->handle, square->what, square->layout, square->layout, square->layout,
               square->layout, square->wish, 1, &square->how, &found) == CUBLAS_STATUS_SUCCESS &&
           found > 0;
}

static void square_close(struct square *square)
{
    if (square->wish)
        square->MatmulPreferenceDestroy(square->wish);
    if (square->layout)
        square->MatrixLayoutDestroy(square->layout);
    if (square->what)
        square->MatmulDescDestroy(square->what);
    if (square->handle)
        square->Destroy(square->handle);
    if (square->library)
        dlclose(square->library);
    cudaFree(square->memory);
}

static enum status square_time(const struct square *square, const struct stopwatch *watch,
                               uint64_t limit_ns, double *per_s)
{
    const float one = 1, zero = 0;
    const double flop = 2.0 * SIDE * SIDE * SIDE;
    const uint64_t bytes = (uint64_t)SIDE * SIDE * square->element_bytes;
    const char *a = square->memory, *b = a + bytes;
    char *d = square->memory + 2 * bytes;
    const uint64_t deadline_ns = clock_ns() + limit_ns;
    do {
        float ms;
        CUDA(cudaEventRecord(watch->start, watch->stream));
        if (square->Matmul(square->handle, square->what, &one, a, square->layout, b, square->layout,
                           &zero, d, square->layout, d, square->layout, &square->how.algo,
                           d + bytes, WORKSPACE_BYTES, watch->stream) != CUBLAS_STATUS_SUCCESS)
            FAIL(STATUS_UNSUPPORTED, "cuBLASLt refuses a product of %d × %d", SIDE, SIDE);
        CUDA(cudaEventRecord(watch->end, watch->stream));
        CUDA(cudaEventSynchronize(watch->end));
        CUDA(cudaEventElapsedTime(&ms, watch->start, watch->end));
        *per_s = flop / (double)ms * 1e3 > *per_s ? flop / (double)ms * 1e3 : *per_s;
    } while (clock_ns() < deadline_ns);
    return STATUS_OK;
}

static enum status square_run(struct square *square, const struct device *device, const char *kind,
                              const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    const uint64_t count = (uint64_t)SIDE * SIDE;
    void *memory;
    if (!square_load(square) || !square_describe(square))
        FAIL(
            STATUS_UNSUPPORTED,
            "products in %s are cuBLASLt's (libcublasLt.so.12 or .13), which is not there: install "
            "NVIDIA's CUDA libraries",
            kind);
    TRY(cuda_alloc(device, 3 * count * square->element_bytes + WORKSPACE_BYTES, "calibration",
                   &memory));
    square->memory = (char *)memory;
    if (square->element_bytes == 4)
        fill_32<<<blocks_striding((int64_t)count), THREADS, 0, watch->stream>>>(2 * count,
                                                                                (uint32_t *)memory);
    else if (square->type == CUDA_R_16BF)
        fill_16<<<blocks_striding((int64_t)count), THREADS, 0, watch->stream>>>(
            2 * count, 0x3f80u, 0x7fu, (uint16_t *)memory);
    else
        fill_16<<<blocks_striding((int64_t)count), THREADS, 0, watch->stream>>>(
            2 * count, 0x3c00u, 0x3ffu, (uint16_t *)memory);
    CUDA(cudaGetLastError());
    return square_time(square, watch, limit_ns, per_s);
}

enum status burst_product(const struct device *device, const char *kind,
                          const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    struct square square = {};
    square.compute = CUBLAS_COMPUTE_32F;
    square.element_bytes = 2;
    if (strcmp(kind, "tf32") == 0) {
        square.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
        square.type = CUDA_R_32F;
        square.element_bytes = 4;
    } else if (strcmp(kind, "bf16") == 0) {
        square.type = CUDA_R_16BF;
    } else if (strcmp(kind, "fp16") == 0) {
        square.type = CUDA_R_16F;
    } else {
        FAIL(STATUS_UNSUPPORTED, "the CUDA backend does not compute in %s", kind);
    }
    enum status status = square_run(&square, device, kind, watch, limit_ns, per_s);
    square_close(&square);
    return status;
}
