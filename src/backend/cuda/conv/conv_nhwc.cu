/* conv_nhwc.cu: y from x, and x from y, of images in NHWC order (nhwc.h), in tf32 or in 16
 * bits by a warpgroup's products (wgmma, Hopper): a product of pixels and weights.
 *
 * Rows of the result are pixels numbered over the batch, columns are channels. Two warpgroups make
 * a tile of 128 × WIDE, each 64 rows. Depth is (ky, kx, channel of the source), 32 a slab: 128
 * bytes of a row, eight vectors of four channels, each of one (ky, kx). A thread brings four
 * vectors of pixels and WIDE / 32 of weights, all at the same place in their rows, so it walks
 * through (ky, kx, channel) once for all of them; where a pixel lies outside the image, zeros are
 * written and nothing is read. Vectors are put where the products look for them: in row r at place
 * v ^ (r mod 8), so that neither side meets itself in a bank.
 *
 * Weights lie before as they are wanted, [channel of the result][ky][kx][channel of the source],
 * rounded to nearest; of the pixels the tensor cores drop what lies below tf32.
 *
 * In 16 bits the weights are of 16 bits already: their rows are 64 bytes, four vectors of eight
 * channels, at v ^ (r / 2 mod 4), and a thread walks through them on its own. Pixels stay fp32 up
 * to shared memory; a thread takes those that it multiplies into registers and rounds them there.
 *
 * Bound: 128 × 128 × 32 multiply-adds take a multiprocessor 512 cycles, and 32 KB come from L2 for
 * them; two blocks share a multiprocessor, so that one multiplies while the other waits. */
#include "backend/cuda/conv/conv_nhwc.h"

#include "backend/cuda/conv/conv_taps.h"
#include "backend/cuda/conv/conv_tile.h"
#include "backend/cuda/ops/nhwc.h"

enum {
    NHWC_TALL = 128,    /* pixels of a tile */
    NHWC_DEPTH = 32,    /* of a slab */
    NHWC_THREADS = 256, /* two warpgroups */
    NHWC_ALIGN = 1024   /* of a tile in shared memory: eight rows of 128 bytes repeat */
};

/* What a slab is made of in this precision. */
template <enum precision TYPE> struct nhwc_form {
    static constexpr bool BITS16 = TYPE != PRECISION_TF32;
    static constexpr int STAGES = BITS16 ? 4 : 3;  /* on their way, or being multiplied */
    static constexpr int WEIGHTS = BITS16 ? 8 : 4; /* of a vector */
    static constexpr int ROW_BYTES = NHWC_DEPTH * 16 / WEIGHTS;
    static constexpr int VECTORS = NHWC_DEPTH / WEIGHTS; /* of a row of weights */
};

template <int WIDE, enum precision TYPE>
struct nhwc_room {
    typedef struct nhwc_form<TYPE> form; float a[form::STAGES][NHWC_TALL][NHWC_DEPTH];
    char b[form::STAGES][WIDE][form::ROW_BYTES];
    int64_t results[NHWC_TALL]; /* where a pixel is written, channel 0; -1: nowhere */
    struct conv_channel_end ends[WIDE];
};

template <int WIDE, enum precision TYPE> static constexpr size_t nhwc_room_bytes(void)
{
    return sizeof(struct nhwc_room<WIDE, TYPE>) + NHWC_ALIGN;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* Where a thread's next vector lies in depth. */
struct nhwc_place {
    int32_t down, across, channel;
    __device__ void advance(const struct section &section, int32_t by)
    {
        for (channel += by; channel >= section.source_channels && down < section.down.count;) {
            channel -= section.source_channels;
            if (++across < section.across.count)
                continue;
            across = 0;
            down++;
        }
    }
};

/* The pixel of a row of the tile. */
struct nhwc_pixel {
    const float *image; /* its sample */
    int32_t row, column;
};

static __device__ struct nhwc_pixel nhwc_pixel_of(const struct gather &gather,
                                                  const struct section &section, int64_t number,
                                                  int32_t channels, int64_t *result)
{
    const uint32_t places = (uint32_t)(section.down.places * section.across.places);
    const int64_t sample = places ? number / places : gather.conv.samples;
    const uint32_t within = (uint32_t)(number - sample * places);
    const int32_t row = (int32_t)(within / (uint32_t)section.across.places);
    const int32_t across = (int32_t)(within % (uint32_t)section.across.places);
    const bool inside = sample < gather.conv.samples;
    const struct nhwc_pixel pixel = {gather.from + (inside ? sample * section.source_sample : 0),
                                     inside ? row * section.down.source_step : NOWHERE,
                                     across * section.across.source_step};
    *result =
        inside ? (sample * section.result_plane +
                  (section.down.begin + row * section.down.result_step) * section.result_columns +
                  section.across.begin + across * section.across.result_step) *
                     channels
               : -1;
    return pixel;
}

/* A factor in shared memory: rows of 128 or 64 bytes whose vectors change places, eight of them one
 * after another. */
template <int ROW_BYTES> static __device__ uint64_t nhwc_described(const void *tile)
{
    return (uint64_t)(shared_address(tile) >> 4 & 0x3fff) | (uint64_t)1 << 16 |
           (uint64_t)(8 * ROW_BYTES >> 4) << 32 | (uint64_t)(ROW_BYTES == 128 ? 1 : 2) << 62;
}

#define SUMS_8(n)                                                                                  \
    "+f"(sums[n]), "+f"(sums[n + 1]), "+f"(sums[n + 2]), "+f"(sums[n + 3]), "+f"(sums[n + 4]),     \
        "+f"(sums[n + 5]), "+f"(sums[n + 6]), "+f"(sums[n + 7])
#define SUMS_32 SUMS_8(0), SUMS_8(8), SUMS_8(16), SUMS_8(24)
#define SUMS_64 SUMS_32, SUMS_8(32), SUMS_8(40), SUMS_8(48), SUMS_8(56)
#define NAMES_32                                                                                   \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "   \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64                                                                                   \
    NAMES_32                                                                                       \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
    "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PRODUCT "wgmma.mma_async.sync.aligned.m64"

/* tf32, eight deep: both factors in shared memory */
static __device__ void nhwc_multiply(float (&sums)[32], uint64_t a, uint64_t b)
{
    asm volatile(PRODUCT "n64k8.f32.tf32.tf32 {" NAMES_32 "}, %32, %33, 1, 1, 1;"
                 : SUMS_32
                 : "l"(a), "l"(b));
}

static __device__ void nhwc_multiply(float (&sums)[64], uint64_t a, uint64_t b)
{
    asm volatile(PRODUCT "n128k8.f32.tf32.tf32 {" NAMES_64 "}, %64, %65, 1, 1, 1;"
                 : SUMS_64
                 : "l"(a), "l"(b));
}

/* 16 bits, sixteen deep: the left one in registers */
template <enum precision TYPE>
static __device__ void nhwc_multiply(float (&sums)[32], const uint32_t (&a)[4], uint64_t b)
{
#define MULTIPLY(type)                                                                             \
    asm volatile(PRODUCT "n64k16.f32." type "." type " {" NAMES_32                                 \
                         "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"                               \
                 : SUMS_32                                                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
    if constexpr (TYPE == PRECISION_BF16)
        MULTIPLY("bf16");
    else
        MULTIPLY("f16");
#undef MULTIPLY
}

template <enum precision TYPE>
static __device__ void nhwc_multiply(float (&sums)[64], const uint32_t (&a)[4], uint64_t b)
{
#define MULTIPLY(type)                                                                             \
    asm volatile(PRODUCT "n128k16.f32." type "." type " {" NAMES_64                                \
                         "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;"                               \
                 : SUMS_64                                                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
    if constexpr (TYPE == PRECISION_BF16)
        MULTIPLY("bf16");
    else
        MULTIPLY("f16");
#undef MULTIPLY
}
#undef PRODUCT
#undef NAMES_64
#undef NAMES_32
#undef SUMS_64
#undef SUMS_32
#undef SUMS_8

/* Two neighbours in depth, rounded; the first in the lower half. */
template <enum precision TYPE> static __device__ uint32_t nhwc_rounded(float2 two)
{
    uint32_t pair;
    if constexpr (TYPE == PRECISION_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(two.y), "f"(two.x));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(two.y), "f"(two.x));
    return pair;
}

/* The pixels of a thread, sixteen deep, as the products want them: two rows, 8 apart, and of each
 * two pairs, 8 apart. `a`: the rows of its warpgroup. */
template <enum precision TYPE>
static __device__ void nhwc_take(uint32_t (&to)[4], const float (*a)[NHWC_DEPTH], int depth)
{
    const int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int at = depth + lane % 4 * 2 + i / 2 * 8, below = row + i % 2 * 8;
        to[i] = nhwc_rounded<TYPE>(*(const float2 *)&a[below][((at / 4) ^ below % 8) * 4 + at % 4]);
    }
}

/* sums += a·b over one slab; what was copied is seen by all. */
template <int WIDE, enum precision TYPE>
static __device__ void nhwc_add(float (&sums)[WIDE / 2], const float (*a)[NHWC_DEPTH],
                                const void *b)
{
    constexpr int DEEP = nhwc_form<TYPE>::BITS16 ? 16 : 8; /* 32 bytes of weights */
    const uint64_t right = nhwc_described<nhwc_form<TYPE>::ROW_BYTES>(b);
    if constexpr (nhwc_form<TYPE>::BITS16) {
        uint32_t left[NHWC_DEPTH / DEEP][4];
#pragma unroll
        for (int i = 0; i < NHWC_DEPTH / DEEP; i++)
            nhwc_take<TYPE>(left[i], a, i * DEEP);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < NHWC_DEPTH / DEEP; i++)
            nhwc_multiply<TYPE>(sums, left[i], right + (uint64_t)(2 * i));
    } else {
        const uint64_t left = nhwc_described<128>(a);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < NHWC_DEPTH / DEEP; i++)
            nhwc_multiply(sums, left + (uint64_t)(2 * i), right + (uint64_t)(2 * i));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int WIDE> static __device__ void nhwc_wait(float (&sums)[WIDE / 2])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < WIDE / 2; i++) /* they are read from here on, not before */
        asm volatile("" : "+f"(sums[i])::"memory");
}

template <int WIDE, typename Room>
static __device__ void nhwc_put(const struct gather &gather, const Room &room, int32_t column0,
                                int32_t channels, const float (&sums)[WIDE / 2])
{
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int row = thread / 32 * 16 + lane / 4;
    const struct conv_ending &ending = gather.ending;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t at = room.results[row + 8 * half];
        if (at < 0)
            continue;
#pragma unroll
        for (int p = 0; p < WIDE / 8; p++) {
            const int column = p * 8 + lane % 4 * 2;
            if (column0 + column >= channels)
                continue;
            const int64_t index = at + column0 + column;
            const float2 add =
                ending.add ? *(const float2 *)(ending.add + index) : make_float2(0.0f, 0.0f);
            float2 y = make_float2(room.ends[column].of(sums[p * 4 + half * 2]),
                                   room.ends[column + 1].of(sums[p * 4 + half * 2 + 1]));
            if (ending.add)
                y.x += add.x, y.y += add.y;
            y.x = conv_activation(ending, y.x);
            y.y = conv_activation(ending, y.y);
            *(float2 *)(gather.to + index) = y;
        }
    }
}

template <int WIDE, enum precision TYPE>
static __device__ void nhwc_tile(const struct gather &gather, struct nhwc_room<WIDE, TYPE> &room)
{
    typedef struct nhwc_form<TYPE> form;
    constexpr int LINES = NHWC_THREADS / form::VECTORS; /* of weights, that are brought at once */
    const int thread = (int)threadIdx.x, row0 = thread / 8, vector = thread % 8;
    const struct section section = section_of(gather, (int32_t)blockIdx.y);
    const int32_t channels = tall_of(gather.conv, gather.back);
    const int32_t across = (channels + WIDE - 1) / WIDE;
    const int32_t column0 = (int32_t)(blockIdx.x % (unsigned)across) * WIDE;
    const int64_t pixel0 = (int64_t)(blockIdx.x / (unsigned)across) * NHWC_TALL;
    const int32_t kernel = gather.conv.across.kernel, depth = gather.conv.taps;
    const int32_t slabs = (section.depths + NHWC_DEPTH - 1) / NHWC_DEPTH;
    struct nhwc_pixel pixels[NHWC_TALL / 32];
    const int line = thread / form::VECTORS, part = thread % form::VECTORS; /* of weights */
    struct nhwc_place place = {}, place_16 = {};
    struct nhwc_place &weight = form::BITS16 ? place_16 : place; /* tf32: the same as the pixels' */
    float sums[WIDE / 2] = {};

    if (thread < WIDE)
        room.ends[thread].take(gather.ending, min(column0 + thread, channels - 1));
#pragma unroll
    for (int i = 0; i < NHWC_TALL / 32; i++) {
        int64_t result;
        pixels[i] = nhwc_pixel_of(gather, section, pixel0 + row0 + 32 * i, channels, &result);
        if (vector == 0)
            room.results[row0 + 32 * i] = result;
    }
    place.advance(section, vector * 4);
    if (form::BITS16)
        weight.advance(section, part * form::WEIGHTS);
    const auto load = [&](int32_t slab) {
        if (slab < slabs) {
            const bool some = place.down < section.down.count;
            const int32_t down = section.down.shift + place.down * section.down.turn;
            const int32_t right = section.across.shift + place.across * section.across.turn;
            const int to = (vector ^ row0 % 8) * 4;
#pragma unroll
            for (int i = 0; i < NHWC_TALL / 32; i++) {
                const int32_t row = pixels[i].row + down, column = pixels[i].column + right;
                const bool inside = some && (uint32_t)row < (uint32_t)section.source_rows &&
                                    (uint32_t)column < (uint32_t)section.source_columns;
                const int64_t from =
                    ((int64_t)row * section.source_columns + column) * section.source_channels +
                    place.channel;
                copy_vector(&room.a[slab % form::STAGES][row0 + 32 * i][to],
                            inside ? pixels[i].image + from : gather.from, inside);
            }
            const bool more = weight.down < section.down.count;
            const int32_t tap = (section.down.first + weight.down * section.down.every) * kernel +
                                section.across.first + weight.across * section.across.every;
            const int turn = form::BITS16 ? line / 2 % 4 : line % 8;
#pragma unroll
            for (int i = 0; i < WIDE / LINES; i++) {
                const int32_t column = column0 + line + LINES * i;
                const bool inside = more && column < channels;
                const int64_t from =
                    ((int64_t)column * depth + tap) * section.source_channels + weight.channel;
                const char *at = (const char *)gather.w + from * (16 / form::WEIGHTS);
                copy_vector(
                    (float *)&room.b[slab % form::STAGES][line + LINES * i][(part ^ turn) * 16],
                    inside ? (const float *)at : gather.w, inside);
            }
            place.advance(section, NHWC_DEPTH);
            if (form::BITS16)
                weight.advance(section, NHWC_DEPTH);
        }
        copy_commit();
    };
    for (int32_t slab = 0; slab < form::STAGES - 1; slab++)
        load(slab);
    for (int32_t slab = 0; slab < slabs; slab++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(form::STAGES - 2));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        nhwc_add<WIDE, TYPE>(sums, &room.a[slab % form::STAGES][thread / 128 * 64],
                             room.b[slab % form::STAGES]);
        load(slab + form::STAGES - 1); /* where the slab before this one was */
        nhwc_wait<WIDE>(sums);
    }
    __syncthreads(); /* also when there is no slab: results and ends are there */
    nhwc_put<WIDE>(gather, room, column0, channels, sums);
}
#endif

template <int WIDE, enum precision TYPE>
static __global__ void __launch_bounds__(NHWC_THREADS, 2) nhwc_gemm(struct gather gather)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ float4 shared[];
    const uintptr_t at = ((uintptr_t)shared + NHWC_ALIGN - 1) / NHWC_ALIGN * NHWC_ALIGN;
    nhwc_tile<WIDE, TYPE>(gather, *(struct nhwc_room<WIDE, TYPE> *)at);
#else
    __trap(); /* built for a Hopper without its own instructions, or chosen for another GPU */
#endif
}

template <int WIDE, enum precision TYPE>
static void nhwc_launch(struct queue *queue, const struct gather &gather)
{
    const struct conv &conv = gather.conv;
    const struct walk down = walk_of(conv.down, gather.back, 0);
    const struct walk across = walk_of(conv.across, gather.back, 0);
    const int64_t pixels = (int64_t)conv.samples * down.places * across.places;
    const unsigned tiles =
        blocks_for(pixels, NHWC_TALL) * blocks_for(tall_of(conv, gather.back), WIDE);
    enqueue_large(queue, nhwc_gemm<WIDE, TYPE>, dim3(tiles, (unsigned)phases_of(conv, gather.back)),
                  dim3(NHWC_THREADS), nhwc_room_bytes<WIDE, TYPE>(), gather);
}

template <enum precision TYPE>
static void nhwc_launch_as(struct queue *queue, const struct gather &gather)
{
    if (tall_of(gather.conv, gather.back) <= 64)
        nhwc_launch<64, TYPE>(queue, gather);
    else
        nhwc_launch<128, TYPE>(queue, gather);
}

void conv_nhwc_gemm(struct queue *queue, const struct conv &conv, bool back, enum precision type,
                    const float *from, const void *w, float *to, const struct conv_ending &ending)
{
    const struct gather gather = {conv, back, false, 0, from, (const float *)w, to, ending};
    switch (type) {
    case PRECISION_BF16: nhwc_launch_as<PRECISION_BF16>(queue, gather); break;
    case PRECISION_FP16: nhwc_launch_as<PRECISION_FP16>(queue, gather); break;
    default: nhwc_launch_as<PRECISION_TF32>(queue, gather);
    }
}
