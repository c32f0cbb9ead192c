/* burst.cu: what the GPU can do at best: the kernels of calibration.
 *
 * A kernel goes many times over its work within one launch, so that launching does not count, and
 * is timed by events; the best of several launches is the ceiling. Memory has two ways: all of the
 * set behind the caches as they are, or as much of it as fits in the multiprocessors' shared memory
 * and the rest behind the caches. What a network of this size needs can lie there as well. */
#include "backend/cuda/host/burst.h"

#include <cstring>

enum { BURST_THREADS = 1024, WAYS = 2 };

/* The work of one launch, and how it is launched. */
struct burst {
    char *data;          /* device [set_bytes] */
    uint64_t set_bytes;  /* a multiple of `blocks` × 16 */
    unsigned blocks;     /* one a multiprocessor, or two */
    unsigned kept_bytes; /* of a block's share: what stays in shared memory */
    int32_t times;       /* passes */
    uint32_t *sink;      /* device: keeps the compiler from leaving the work out */
};

static __device__ uint4 load_16(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

static __device__ uint4 load_shared_16(const uint4 *from)
{
    uint4 v;
    const unsigned address = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address));
    return v;
}

static __device__ uint32_t fold(uint4 v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

static __device__ uint4 raised(uint4 v)
{
    return make_uint4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
}

extern __shared__ uint4 kept[];

/* Four loads in flight a thread. */
static __global__ void __launch_bounds__(BURST_THREADS) burst_read(struct burst burst)
{
    const int64_t share = (int64_t)(burst.set_bytes / burst.blocks / 16);
    const int64_t near = burst.kept_bytes / 16;
    const uint4 *data = (const uint4 *)burst.data + blockIdx.x * share + near;
    const int64_t far = share - near;
    uint32_t sum = 0;
    for (int64_t i = threadIdx.x; i < near; i += BURST_THREADS)
        kept[i] = data[i - near]; /* a thread reads what it wrote: nobody waits */
    for (int32_t time = 0; time < burst.times; time++) {
        int64_t i = threadIdx.x;
        for (; i + 3 * BURST_THREADS < far; i += 4 * BURST_THREADS) {
            const uint4 a = load_16(data + i), b = load_16(data + i + BURST_THREADS);
            const uint4 c = load_16(data + i + 2 * BURST_THREADS);
            const uint4 d = load_16(data + i + 3 * BURST_THREADS);
            sum ^= fold(a) ^ fold(b) ^ fold(c) ^ fold(d);
        }
        for (; i < far; i += BURST_THREADS)
            sum ^= fold(load_16(data + i));
        for (i = threadIdx.x; i < near; i += BURST_THREADS)
            sum ^= fold(load_shared_16(kept + i));
    }
    if (sum == 0x5eed5eed)
        *burst.sink = sum;
}

/* Reads and writes back. */
static __global__ void __launch_bounds__(BURST_THREADS) burst_update(struct burst burst)
{
    const int64_t share = (int64_t)(burst.set_bytes / burst.blocks / 16);
    const int64_t near = burst.kept_bytes / 16;
    uint4 *data = (uint4 *)burst.data + blockIdx.x * share + near;
    const int64_t far = share - near;
    for (int64_t i = threadIdx.x; i < near; i += BURST_THREADS)
        kept[i] = data[i - near];
    for (int32_t time = 0; time < burst.times; time++) {
        int64_t i = threadIdx.x;
        for (; i + 3 * BURST_THREADS < far; i += 4 * BURST_THREADS) {
            const uint4 a = load_16(data + i), b = load_16(data + i + BURST_THREADS);
            const uint4 c = load_16(data + i + 2 * BURST_THREADS);
            const uint4 d = load_16(data + i + 3 * BURST_THREADS);
            data[i] = raised(a);
            data[i + BURST_THREADS] = raised(b);
            data[i + 2 * BURST_THREADS] = raised(c);
            data[i + 3 * BURST_THREADS] = raised(d);
        }
        for (; i < far; i += BURST_THREADS)
            data[i] = raised(load_16(data + i));
        for (i = threadIdx.x; i < near; i += BURST_THREADS)
            kept[i] = raised(load_shared_16(kept + i));
    }
    for (int64_t i = threadIdx.x; i < near; i += BURST_THREADS)
        data[i - near] = kept[i];
}

/* From the first half of each block's share to the second. */
static __global__ void __launch_bounds__(BURST_THREADS) burst_copy(struct burst burst)
{
    const int64_t half = (int64_t)(burst.set_bytes / burst.blocks / 32);
    uint4 *data = (uint4 *)burst.data + blockIdx.x * 2 * half;
    for (int32_t time = 0; time < burst.times; time++) {
        int64_t i = threadIdx.x;
        for (; i + 3 * BURST_THREADS < half; i += 4 * BURST_THREADS) {
            const uint4 a = load_16(data + i), b = load_16(data + i + BURST_THREADS);
            const uint4 c = load_16(data + i + 2 * BURST_THREADS);
            const uint4 d = load_16(data + i + 3 * BURST_THREADS);
            data[half + i] = a;
            data[half + i + BURST_THREADS] = b;
            data[half + i + 2 * BURST_THREADS] = c;
            data[half + i + 3 * BURST_THREADS] = d;
        }
        for (; i < half; i += BURST_THREADS)
            data[half + i] = load_16(data + i);
    }
}

enum { SUMS = 16, ROUNDS = 256 }; /* of a thread; multiply-adds of each in one pass */

static __global__ void __launch_bounds__(BURST_THREADS) burst_fp32(struct burst burst)
{
    const float factor = __uint_as_float(0x3f800000u | (burst.kept_bytes & 1u));
    float sum[SUMS];
    for (int j = 0; j < SUMS; j++)
        sum[j] = (float)(threadIdx.x + (unsigned)j);
    for (int32_t time = 0; time < burst.times; time++)
#pragma unroll 4
        for (int round = 0; round < ROUNDS; round++)
#pragma unroll
            for (int j = 0; j < SUMS; j++)
                sum[j] = __fmaf_rn(sum[j], factor, factor);
    for (int j = 1; j < SUMS; j++)
        sum[0] += sum[j];
    if (sum[0] == -1.0f)
        *burst.sink = 1;
}

static __global__ void burst_nothing(struct burst burst)
{
    (void)burst;
}

typedef void burst_kernel(struct burst burst);

/* How long one launch takes, by events around it. */
static cudaError_t time_launch(const struct burst *burst, burst_kernel *kernel, unsigned threads,
                               const struct stopwatch *watch, float *ms)
{
    cudaEventRecord(watch->start, watch->stream);
    kernel<<<burst->blocks, threads, burst->kept_bytes, watch->stream>>>(*burst);
    cudaError_t error = cudaGetLastError();
    cudaEventRecord(watch->end, watch->stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(watch->end);
    return error == cudaSuccess ? cudaEventElapsedTime(ms, watch->start, watch->end) : error;
}

/* The most that is done in a second; passes double until a launch is long enough. */
static enum status best_of(struct burst *burst, burst_kernel *kernel, double work,
                           const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    const float long_ms = 1.0f;
    const uint64_t deadline_ns = clock_ns() + limit_ns;
    bool found = false;
    burst->times = 1;
    do {
        float ms;
        CUDA(time_launch(burst, kernel, BURST_THREADS, watch, &ms));
        if (ms < long_ms && burst->times < 1 << 20) {
            burst->times *= 2;
            continue;
        }
        const double rate = work * (double)burst->times / (double)ms * 1e3;
        *per_s = rate > *per_s ? rate : *per_s;
        found = true;
    } while (clock_ns() < deadline_ns || !found);
    return STATUS_OK;
}

static enum status memory_best(const struct device *device, burst_kernel *kernel, bool keeps,
                               double per_byte, const struct stopwatch *watch, uint64_t limit_ns,
                               struct burst *burst, double *per_s)
{
    const unsigned sms = (unsigned)device->properties.multiProcessorCount;
    const uint64_t asked = burst->set_bytes;
    for (int way = 0; way < (keeps ? WAYS : 1); way++) {
        burst->blocks = way ? sms : 2 * sms;
        burst->set_bytes = asked / burst->blocks / 64 * 64 * burst->blocks;
        const uint64_t share = burst->set_bytes / burst->blocks;
        const uint64_t room = device->properties.sharedMemPerBlockOptin;
        burst->kept_bytes = way ? (unsigned)(share < room ? share : room / 16 * 16) : 0;
        CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)burst->kept_bytes));
        TRY(best_of(burst, kernel, per_byte * (double)burst->set_bytes, watch,
                    limit_ns / (keeps ? WAYS : 1), per_s));
    }
    return STATUS_OK;
}

static enum status copy_engine_best(const struct burst *burst, const struct stopwatch *watch,
                                    double *per_s)
{
    enum { TRIES = 5 };
    const uint64_t half = burst->set_bytes / 2;
    for (int i = 0; i < TRIES; i++) {
        float ms;
        CUDA(cudaEventRecord(watch->start, watch->stream));
        CUDA(cudaMemcpyAsync(burst->data + half, burst->data, half, cudaMemcpyDeviceToDevice,
                             watch->stream));
        CUDA(cudaEventRecord(watch->end, watch->stream));
        CUDA(cudaEventSynchronize(watch->end));
        CUDA(cudaEventElapsedTime(&ms, watch->start, watch->end));
        const double rate = 2 * (double)half / (double)ms * 1e3;
        *per_s = rate > *per_s ? rate : *per_s;
    }
    return STATUS_OK;
}

/* Launches in a queue, as the host can send them. */
static enum status launch_best(struct burst *burst, const struct stopwatch *watch,
                               uint64_t limit_ns, double *per_s)
{
    enum { LAUNCHES = 1000 };
    const uint64_t deadline_ns = clock_ns() + limit_ns;
    burst->blocks = 1;
    do {
        const uint64_t start_ns = clock_ns();
        for (int i = 0; i < LAUNCHES; i++)
            burst_nothing<<<1, 32, 0, watch->stream>>>(*burst);
        CUDA(cudaGetLastError());
        CUDA(cudaStreamSynchronize(watch->stream));
        const double rate = LAUNCHES * 1e9 / (double)(clock_ns() - start_ns);
        *per_s = rate > *per_s ? rate : *per_s;
    } while (clock_ns() < deadline_ns);
    return STATUS_OK;
}

static enum status fp32_best(const struct device *device, struct burst *burst,
                             const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    burst->blocks = 2 * (unsigned)device->properties.multiProcessorCount;
    const double flop = 2.0 * SUMS * ROUNDS * BURST_THREADS * burst->blocks;
    return best_of(burst, burst_fp32, flop, watch, limit_ns, per_s);
}

static enum status run_burst(const struct device *device, const char *kind, struct burst *burst,
                             const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    if (strcmp(kind, "fp32") == 0)
        return fp32_best(device, burst, watch, limit_ns, per_s);
    if (strcmp(kind, "launch") == 0)
        return launch_best(burst, watch, limit_ns, per_s);
    if (strcmp(kind, "read") == 0)
        return memory_best(device, burst_read, true, 1, watch, limit_ns, burst, per_s);
    if (strcmp(kind, "update") == 0)
        return memory_best(device, burst_update, true, 2, watch, limit_ns, burst, per_s);
    TRY(copy_engine_best(burst, watch, per_s));
    return memory_best(device, burst_copy, false, 1, watch, limit_ns, burst, per_s);
}

static bool is_own(const char *kind)
{
    for (const char *own : {"fp32", "launch", "read", "update", "copy"})
        if (strcmp(kind, own) == 0)
            return true;
    return false;
}

static enum status with_memory(struct device *device, const char *kind, uint64_t set_bytes,
                               const struct stopwatch *watch, uint64_t limit_ns, double *per_s)
{
    struct burst burst = {};
    void *memory;
    burst.set_bytes = set_bytes > 1 << 20 ? set_bytes : 1 << 20; /* smaller ones lie beside it */
    TRY(cuda_alloc(device, burst.set_bytes + sizeof *burst.sink, "calibration", &memory));
    burst.data = (char *)memory;
    burst.sink = (uint32_t *)(burst.data + burst.set_bytes);
    enum status status = run_burst(device, kind, &burst, watch, limit_ns, per_s);
    cudaFree(memory);
    return status;
}

enum status cuda_burst(struct device *device, const char *kind, uint64_t set_bytes,
                       uint64_t limit_ns, double *per_s)
{
    struct stopwatch watch = {};
    *per_s = 0;
    watch.stream = device->stream;
    TRY(cuda_use(device));
    CUDA(cudaEventCreate(&watch.start));
    CUDA(cudaEventCreate(&watch.end));
    enum status status = is_own(kind)
                             ? with_memory(device, kind, set_bytes, &watch, limit_ns, per_s)
                             : burst_product(device, kind, &watch, limit_ns, per_s);
    cudaEventDestroy(watch.start);
    cudaEventDestroy(watch.end);
    return status;
}
