/* burst_gemm.cu: what the matrix units can do at best, as NVIDIA's own library reaches it: one
 * square product, large enough to fill the GPU, of numbers as layers have them behind a relu. */
#include "backend/cuda/host/burst.h"
#include "backend/cuda/product/blas.h"

#include <cstring>

enum { SIDE = 8192 };

/* Numbers between -1 and 1, `least` instead of what is below it: zeros take less power, and so run
 * faster. */
static __global__ void fill_factor(int64_t count, float least, struct cells cells)
{
    FOR_EACH(index, count)
    {
        const uint32_t any = (uint32_t)index * 2654435761u >> 8;
        const float value = (float)any / 8388608.0f - 1.0f;
        const bool is_8bit = cells.type == PRECISION_FP8 || cells.type == PRECISION_INT8;
        if (is_8bit) /* no NaN; behind a relu half are 0 */
            ((uint8_t *)cells.data)[index] =
                value < least ? (uint8_t)0 : (uint8_t)(any & (least < 0.0f ? 0xb7 : 0x37));
        else
            cells_put(cells, index, fmaxf(value, least));
    }
}

/* One product between two events, behind one that keeps the GPU busy until the host has sent it. A
 * GPU that multiplies all the time is slowed down to hold its power, by a tenth and more: so it
 * rests between bursts. The first product looks for the quickest algorithm, which is no burst. */
static enum status time_products(struct queue *queue, const struct product *product, void *room,
                                 const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    enum { BURSTS_LEAST = 8 };
    const double flop = 2.0 * SIDE * SIDE * SIDE;
    const uint64_t rest_ns = 20000000;
    blas_multiply(queue, product, room);
    CUDA(queue->error);
    CUDA(cudaStreamSynchronize(watch->stream));
    const uint64_t deadline_ns = clock_ns() + limit_ns;
    for (int burst = 0; burst < BURSTS_LEAST || clock_ns() < deadline_ns; burst++) {
        float ms;
        clock_sleep_ns(rest_ns);
        blas_multiply(queue, product, room);
        CUDA(cudaEventRecord(watch->start, watch->stream));
        blas_multiply(queue, product, room);
        CUDA(queue->error);
        CUDA(cudaEventRecord(watch->end, watch->stream));
        CUDA(cudaEventSynchronize(watch->end));
        CUDA(cudaEventElapsedTime(&ms, watch->start, watch->end));
        *per_s = flop / (double)ms * 1e3 > *per_s ? flop / (double)ms * 1e3 : *per_s;
    }
    return STATUS_OK;
}

static enum status with_memory(const struct device *device, struct blas *blas, enum precision type,
                               const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    const int64_t count = (int64_t)SIDE * SIDE;
    const bool is_8bit = type == PRECISION_FP8 || type == PRECISION_INT8;
    const uint64_t bytes = (uint64_t)count * (precision_is_16bit(type) ? 2 : 4); /* as results */
    struct product product = {};
    struct queue queue = {};
    void *memory;
    TRY(cuda_alloc(device, 3 * bytes + PRODUCT_BYTES, "calibration", &memory));
    for (int factor = 0; factor < 2; factor++) /* weights, and what a relu has left */
        fill_factor<<<blocks_striding(count), THREADS, 0, watch->stream>>>(
            count, factor ? 0.0f : -1.0f, cells{(char *)memory + (uint64_t)factor * bytes, type});
    product.m = product.n = product.k = SIDE;
    product.a_transposed = true; /* what the matrix units like best */
    product.in = type;
    product.out = type == PRECISION_FP8 ? PRECISION_BF16 : is_8bit ? PRECISION_FP32 : type;
    product.a = memory;
    product.b = (char *)memory + bytes;
    product.d = (char *)memory + 2 * bytes;
    queue.stream = watch->stream;
    queue.blas = blas;
    enum status status =
        time_products(&queue, &product, (char *)memory + 3 * bytes, watch, limit_ns, per_s);
    cudaFree(memory);
    return status;
}

enum status burst_product(const struct device *device, const char *kind,
                          const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    static const struct {
        const char *name;
        enum precision opened, factors;
    } rows[] = {{"tf32", PRECISION_TF32, PRECISION_FP32},
                {"bf16", PRECISION_BF16, PRECISION_BF16},
                {"fp16", PRECISION_FP16, PRECISION_FP16},
                {"fp8", PRECISION_BF16, PRECISION_FP8},
                {"int8", PRECISION_FP32, PRECISION_INT8}};
    for (const auto &row : rows) {
        if (strcmp(row.name, kind) != 0)
            continue;
        struct blas *blas = blas_open(row.opened, false);
        if (!blas)
            FAIL(STATUS_UNSUPPORTED,
                 "products in %s are cuBLASLt's (libcublasLt.so.12 or .13), which is not there: "
                 "install NVIDIA's CUDA libraries",
                 kind);
        const enum status status = with_memory(device, blas, row.factors, watch, limit_ns, per_s);
        blas_close(blas);
        return status;
    }
    FAIL(STATUS_UNSUPPORTED, "the CUDA backend does not compute in %s", kind);
}
