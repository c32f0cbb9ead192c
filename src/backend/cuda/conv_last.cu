/* conv_last.cu: y from x, and x from y, of images that lie channels last (last.h), in tf32 by a
 * warpgroup's products of shared memory (wgmma, Hopper): a product of pixels and weights.
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
 * Bound: 128 × 128 × 32 multiply-adds take a multiprocessor 512 cycles, and 32 KB come from L2 for
 * them; two blocks share a multiprocessor, so that one multiplies while the other waits. */
#include "backend/cuda/conv_last.h"

#include "backend/cuda/conv_tile.h"
#include "backend/cuda/conv_walk.h"
#include "backend/cuda/last.h"

enum {
    LAST_TALL = 128,    /* pixels of a tile */
    LAST_DEPTH = 32,    /* of a slab */
    LAST_THREADS = 256, /* two warpgroups */
    LAST_STAGES = 3,
    LAST_ALIGN = 1024 /* of a tile in shared memory: eight rows of 128 bytes repeat */
};

template <int WIDE> struct last_room {
    float a[LAST_STAGES][LAST_TALL][LAST_DEPTH], b[LAST_STAGES][WIDE][LAST_DEPTH];
    int64_t results[LAST_TALL]; /* where a pixel is written, channel 0; -1: nowhere */
    struct conv_channel_end ends[WIDE];
};

template <int WIDE> static constexpr size_t last_room_bytes(void)
{
    return sizeof(struct last_room<WIDE>) + LAST_ALIGN;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* Where a thread's next vector lies in depth. */
struct last_place {
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
struct last_pixel {
    const float *image; /* its sample */
    int32_t row, column;
};

static __device__ struct last_pixel last_pixel_of(const struct gather &gather,
                                                  const struct section &section, int64_t number,
                                                  int32_t channels, int64_t *result)
{
    const uint32_t places = (uint32_t)(section.down.places * section.across.places);
    const int64_t sample = places ? number / places : gather.conv.samples;
    const uint32_t within = (uint32_t)(number - sample * places);
    const int32_t row = (int32_t)(within / (uint32_t)section.across.places);
    const int32_t across = (int32_t)(within % (uint32_t)section.across.places);
    const bool inside = sample < gather.conv.samples;
    const struct last_pixel pixel = {gather.from + (inside ? sample * section.source_sample : 0),
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

/* Rows of 128 bytes whose vectors change places, eight of them 1,024 bytes. */
static __device__ uint64_t last_described(const float *tile)
{
    return (uint64_t)(shared_address(tile) >> 4 & 0x3fff) | (uint64_t)1 << 16 |
           (uint64_t)(LAST_ALIGN >> 4) << 32 | (uint64_t)1 << 62;
}

#define SUMS_8(n)                                                                                  \
    "+f"(sums[n]), "+f"(sums[n + 1]), "+f"(sums[n + 2]), "+f"(sums[n + 3]), "+f"(sums[n + 4]),     \
        "+f"(sums[n + 5]), "+f"(sums[n + 6]), "+f"(sums[n + 7])

static __device__ void last_multiply(float (&sums)[32], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, 1, 1, 1;"
                 : SUMS_8(0), SUMS_8(8), SUMS_8(16), SUMS_8(24)
                 : "l"(a), "l"(b));
}

static __device__ void last_multiply(float (&sums)[64], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, 1, 1, 1;"
                 : SUMS_8(0), SUMS_8(8), SUMS_8(16), SUMS_8(24), SUMS_8(32), SUMS_8(40), SUMS_8(48),
                   SUMS_8(56)
                 : "l"(a), "l"(b));
}
#undef SUMS_8

/* sums += a·b over one slab; what was copied is seen by all. */
template <int WIDE>
static __device__ void last_add(float (&sums)[WIDE / 2], const float *a, const float *b)
{
    const uint64_t left = last_described(a), right = last_described(b);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < LAST_DEPTH / 8; i++) /* 32 bytes further */
        last_multiply(sums, left + (uint64_t)(2 * i), right + (uint64_t)(2 * i));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int WIDE> static __device__ void last_wait(float (&sums)[WIDE / 2])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < WIDE / 2; i++) /* they are read from here on, not before */
        asm volatile("" : "+f"(sums[i])::"memory");
}

template <int WIDE>
static __device__ void last_put(const struct gather &gather, const struct last_room<WIDE> &room,
                                int32_t column0, int32_t channels, const float (&sums)[WIDE / 2])
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
            y.x = conv_activation(ending.activation, y.x);
            y.y = conv_activation(ending.activation, y.y);
            *(float2 *)(gather.to + index) = y;
        }
    }
}

template <int WIDE>
static __device__ void last_tile(const struct gather &gather, struct last_room<WIDE> &room)
{
    const int thread = (int)threadIdx.x, row0 = thread / 8, vector = thread % 8;
    const struct section section = section_of(gather, (int32_t)blockIdx.y);
    const int32_t channels = tall_of(gather.conv, gather.back);
    const int32_t across = (channels + WIDE - 1) / WIDE;
    const int32_t column0 = (int32_t)(blockIdx.x % (unsigned)across) * WIDE;
    const int64_t pixel0 = (int64_t)(blockIdx.x / (unsigned)across) * LAST_TALL;
    const int32_t kernel = gather.conv.across.kernel, depth = gather.conv.taps;
    const int32_t slabs = (section.depths + LAST_DEPTH - 1) / LAST_DEPTH;
    struct last_pixel pixels[LAST_TALL / 32];
    struct last_place place = {};
    float sums[WIDE / 2] = {};

    if (thread < WIDE)
        room.ends[thread].take(gather.ending, min(column0 + thread, channels - 1));
#pragma unroll
    for (int i = 0; i < LAST_TALL / 32; i++) {
        int64_t result;
        pixels[i] = last_pixel_of(gather, section, pixel0 + row0 + 32 * i, channels, &result);
        if (vector == 0)
            room.results[row0 + 32 * i] = result;
    }
    place.advance(section, vector * 4);
    const auto load = [&](int32_t slab) {
        if (slab < slabs) {
            const bool some = place.down < section.down.count;
            const int32_t down = section.down.shift + place.down * section.down.turn;
            const int32_t right = section.across.shift + place.across * section.across.turn;
            const int32_t tap = (section.down.first + place.down * section.down.every) * kernel +
                                section.across.first + place.across * section.across.every;
            const int to = (vector ^ row0 % 8) * 4;
#pragma unroll
            for (int i = 0; i < LAST_TALL / 32; i++) {
                const int32_t row = pixels[i].row + down, column = pixels[i].column + right;
                const bool inside = some && (uint32_t)row < (uint32_t)section.source_rows &&
                                    (uint32_t)column < (uint32_t)section.source_columns;
                const int64_t from =
                    ((int64_t)row * section.source_columns + column) * section.source_channels +
                    place.channel;
                copy_vector(&room.a[slab % LAST_STAGES][row0 + 32 * i][to],
                            inside ? pixels[i].image + from : gather.from, inside);
            }
#pragma unroll
            for (int i = 0; i < WIDE / 32; i++) {
                const int32_t column = column0 + row0 + 32 * i;
                const bool inside = some && column < channels;
                const int64_t from =
                    ((int64_t)column * depth + tap) * section.source_channels + place.channel;
                copy_vector(&room.b[slab % LAST_STAGES][row0 + 32 * i][to],
                            inside ? gather.w + from : gather.w, inside);
            }
            place.advance(section, LAST_DEPTH);
        }
        copy_commit();
    };
    for (int32_t slab = 0; slab < LAST_STAGES - 1; slab++)
        load(slab);
    for (int32_t slab = 0; slab < slabs; slab++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(LAST_STAGES - 2));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        last_add<WIDE>(sums, &room.a[slab % LAST_STAGES][thread / 128 * 64][0],
                       &room.b[slab % LAST_STAGES][0][0]);
        load(slab + LAST_STAGES - 1); /* where the slab before this one was */
        last_wait<WIDE>(sums);
    }
    __syncthreads(); /* also when there is no slab: results and ends are there */
    last_put<WIDE>(gather, room, column0, channels, sums);
}
#endif

template <int WIDE>
static __global__ void __launch_bounds__(LAST_THREADS, 2) gather_last(struct gather gather)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ float4 shared[];
    last_tile<WIDE>(gather, *(struct last_room<WIDE> *)(((uintptr_t)shared + LAST_ALIGN - 1) /
                                                        LAST_ALIGN * LAST_ALIGN));
#else
    __trap(); /* built for a Hopper without its own instructions, or chosen for another GPU */
#endif
}

template <int WIDE> static void last_launch(struct queue *queue, const struct gather &gather)
{
    const struct conv &conv = gather.conv;
    const struct walk down = walk_of(conv.down, gather.back, 0);
    const struct walk across = walk_of(conv.across, gather.back, 0);
    const int64_t pixels = (int64_t)conv.samples * down.places * across.places;
    const unsigned tiles =
        blocks_for(pixels, LAST_TALL) * blocks_for(tall_of(conv, gather.back), WIDE);
    enqueue_large(queue, gather_last<WIDE>, dim3(tiles, (unsigned)phases_of(conv, gather.back)),
                  dim3(LAST_THREADS), last_room_bytes<WIDE>(), gather);
}

void conv_last_gather(struct queue *queue, const struct conv &conv, bool back, const float *from,
                      const float *w, float *to, const struct conv_ending &ending)
{
    const struct gather gather = {conv, back, false, 0, from, w, to, ending};
    if (tall_of(conv, back) <= 64)
        last_launch<64>(queue, gather);
    else
        last_launch<128>(queue, gather);
}
