/* warpgroup.h: Hopper's own instructions, as far as products need them: copies of tiles by the
 * tensor memory accelerator, barriers that count bytes, and products of a warpgroup (four warps),
 * 64 rows of results, of factors in shared memory. Only sm_90a has all of them. */
#ifndef PRONY_BACKEND_CUDA_WARPGROUP_H
#define PRONY_BACKEND_CUDA_WARPGROUP_H

#include <cstdint>
#include <cuda.h>
#include <cuda_runtime.h>

enum {
    SLAB_BYTES = 128,      /* of depth, in a row of a tile */
    SLAB = SLAB_BYTES / 4, /* the same in floats */
    STEP = 8               /* floats of depth that one instruction multiplies */
};

/* Where tiles of a matrix of floats come from, each SLAB columns wide; `step` from one row of the
 * matrix to the next, in floats. What lies outside is read as zero. The driver's function is found
 * by the runtime: nothing is linked with the driver. */
static inline bool tile_map(CUtensorMap *map, const void *matrix, int64_t columns, int64_t rows,
                            int64_t step, int tile_rows)
{
    cudaDriverEntryPointQueryResult found;
    const cuuint64_t sizes[2] = {(cuuint64_t)columns, (cuuint64_t)rows};
    const cuuint64_t steps[1] = {(cuuint64_t)step * sizeof(float)};
    const cuuint32_t box[2] = {SLAB, (cuuint32_t)tile_rows}, each[2] = {1, 1};
    void *entry = NULL;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &found) != cudaSuccess ||
        !entry)
        return false;
    return ((decltype(&cuTensorMapEncodeTiled))entry)(
               map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)matrix, sizes, steps, box, each,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

static inline __device__ void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Barriers that were set up are seen by the copies, too. */
static inline __device__ void barrier_publish(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}

static inline __device__ void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

static inline __device__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Until the phase of this parity is over. */
static inline __device__ void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* A tile, whose first element is (column, row), on its way to shared memory. */
static inline __device__ void tile_fetch(uint32_t to, const CUtensorMap *map, int column, int row,
                                         uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

/* Rows of 128 bytes, swizzled, along the depth. */
static inline __device__ uint64_t tile_factor(uint32_t from)
{
    return (uint64_t)((from & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

static inline __device__ void products_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static inline __device__ void products_end(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

#define SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS_16 SUMS_4(0), SUMS_4(4), SUMS_4(8), SUMS_4(12)
#define SUMS_32 SUMS_16, SUMS_4(16), SUMS_4(20), SUMS_4(24), SUMS_4(28)
#define SUMS_40 SUMS_32, SUMS_4(32), SUMS_4(36)
#define NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_32                                                                                   \
    NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_40 NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define PRODUCT "wgmma.mma_async.sync.aligned.m64"

/* d += a·b in tf32, a in registers, b [N, 8] in shared memory; N is twice the sums of a thread. */
static inline __device__ void product_add(float (&d)[16], const uint32_t (&a)[4], uint64_t b)
{
    asm volatile(PRODUCT "n32k8.f32.tf32.tf32 {" NAMES_16 "}, {%16, %17, %18, %19}, %20, 1, 1, 1;"
                 : SUMS_16
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

static inline __device__ void product_add(float (&d)[32], const uint32_t (&a)[4], uint64_t b)
{
    asm volatile(PRODUCT "n64k8.f32.tf32.tf32 {" NAMES_32 "}, {%32, %33, %34, %35}, %36, 1, 1, 1;"
                 : SUMS_32
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

static inline __device__ void product_add(float (&d)[40], const uint32_t (&a)[4], uint64_t b)
{
    asm volatile(PRODUCT "n80k8.f32.tf32.tf32 {" NAMES_40 "}, {%40, %41, %42, %43}, %44, 1, 1, 1;"
                 : SUMS_40
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* … both in shared memory */
static inline __device__ void product_add(float (&d)[32], uint64_t a, uint64_t b)
{
    asm volatile(PRODUCT "n64k8.f32.tf32.tf32 {" NAMES_32 "}, %32, %33, 1, 1, 1;"
                 : SUMS_32
                 : "l"(a), "l"(b));
}

static inline __device__ void product_add(float (&d)[40], uint64_t a, uint64_t b)
{
    asm volatile(PRODUCT "n80k8.f32.tf32.tf32 {" NAMES_40 "}, %40, %41, 1, 1, 1;"
                 : SUMS_40
                 : "l"(a), "l"(b));
}

#endif
#endif
