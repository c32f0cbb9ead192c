/* conv_implicit_gemm.cu: y from x, and x from y: a product of weights and pixels (conv_tile.h).
 *
 * Rows of the result are channels, columns are pixels numbered over the batch. A thread brings one
 * column: its pixel's place in the source is worked out once. Depth is (ky, kx, channel of the
 * source), the channels filled up to whole slabs: all of a slab lie equally far from the pixel, so
 * a slab takes one look whether that is outside the image. A 1 × 1 convolution without stride and
 * pad brings four pixels of one depth at once. Where channels are few, depth is (channel, ky, kx),
 * and how far each lies is read from a short table, made a slab at a time beside the products.
 *
 * The weights lie before as the products want them, [channel of the result][depth], the depth a
 * whole number of slabs. */
#include "backend/cuda/conv/conv_taps.h"
#include "backend/cuda/conv/conv_tile.h"

/* Are all depths of a slab of one weight (ky, kx)? */
static __host__ __device__ bool is_even(const struct conv &conv, bool back)
{
    return source_of(conv, back) >= SLAB;
}

static __host__ __device__ int32_t slabs_of(int32_t depths)
{
    return (depths + SLAB - 1) / SLAB;
}

/* Slabs of so many weights (ky, kx). */
static __host__ __device__ int32_t slabs_for(const struct conv &conv, bool back, int32_t taps)
{
    const int32_t channels = source_of(conv, back);
    return is_even(conv, back) ? taps * slabs_of(channels) : slabs_of(taps * channels);
}

/* The most depths of any phase. */
static int32_t depth_room(const struct conv &conv, bool back)
{
    int32_t down = 0, across = 0;
    for (int32_t phase = 0; phase < (back ? conv.down.stride : 1); phase++)
        down = max(down, walk_of(conv.down, back, phase).count);
    for (int32_t phase = 0; phase < phases_across(conv, back); phase++)
        across = max(across, walk_of(conv.across, back, phase).count);
    return slabs_for(conv, back, down * across) * SLAB;
}

/* Do the weights lie as they are wanted? */
static bool is_ready(const struct conv &conv, bool back)
{
    return !back && conv.taps == 1 && conv.inner % SLAB == 0;
}

uint64_t conv_implicit_gemm_bytes(const struct conv &conv, bool back)
{
    if (is_ready(conv, back))
        return 0;
    return (uint64_t)conv.groups * (uint64_t)phases_of(conv, back) * (uint64_t)tall_of(conv, back) *
           (uint64_t)depth_room(conv, back) * sizeof(float);
}

/* packed[group][phase][row][depth] from w[out][inner][ky][kx] */
static __global__ void pack_weights(struct conv conv, bool back, int32_t room, int64_t count,
                                    const float *w, float *packed)
{
    const int32_t tall = tall_of(conv, back), phases = back ? conv.down.stride : 1;
    const int32_t wide = phases_across(conv, back), channels = source_of(conv, back);
    const int32_t filled = slabs_of(channels) * SLAB;
    FOR_EACH(index, count)
    {
        uint32_t depth, row;
        const int32_t which = (int32_t)split_number(split_number(index, (uint32_t)room, &depth),
                                                    (uint32_t)tall, &row);
        const struct walk across = walk_of(conv.across, back, which % wide);
        const struct walk down = walk_of(conv.down, back, which / wide % phases);
        const int32_t group = which / wide / phases, taps = down.count * across.count;
        const int32_t each = is_even(conv, back) ? filled : max(taps, 1);
        const int32_t high = (int32_t)depth / each, low = (int32_t)depth % each;
        const int32_t tap = is_even(conv, back) ? high : low;
        const int32_t channel = is_even(conv, back) ? low : high;
        packed[index] = 0.0f;
        if (tap >= taps || channel >= channels)
            continue;
        const int32_t ky = down.first + tap / across.count * down.every;
        const int32_t kx = across.first + tap % across.count * across.every;
        const int64_t output = group * conv.outer + (back ? channel : (int32_t)row);
        const int64_t input = back ? (int32_t)row : channel;
        packed[index] =
            w[((output * conv.inner + input) * conv.down.kernel + ky) * conv.across.kernel + kx];
    }
}

/* How far this depth lies from a pixel. */
static __device__ struct step_to step_of(const struct section &section, int32_t depth)
{
    struct step_to step = {0, NOWHERE, 0, 0};
    if (depth >= section.depths)
        return step;
    const int32_t tap = depth / section.across.count, channel = tap / section.down.count;
    step.row = section.down.shift + tap % section.down.count * section.down.turn;
    step.column = section.across.shift + depth % section.across.count * section.across.turn;
    step.offset = (channel * section.source_rows + step.row) * section.source_columns + step.column;
    return step;
}

template <int TALL> struct gather_room {
    float a[STAGES][TALL][DEPTH_STRIDE], b[STAGES][SLAB][WIDE_STRIDE];
    struct step_to steps[STAGES][SLAB];
    int64_t results[TILE_WIDE]; /* where a column's pixel is written, channel 0; -1: nowhere */
};

template <int TALL>
static __device__ void put_sums(const struct gather &gather, const struct section &section,
                                const int64_t *results, int32_t group, int32_t row0,
                                const struct sums<TALL> &sums)
{
    constexpr int ROWS = TALL / 16;
    const int32_t tall = tall_of(gather.conv, gather.back), column = first_column();
    const int32_t row = row0 + first_row<TALL>();
    const struct conv_ending &ending = gather.ending;
    struct conv_channel_end ends[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        ends[i].take(ending, group * tall + min(row + i * 8, tall - 1));
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
        const int64_t at[2] = {results[column + p * 8], results[column + p * 8 + 1]};
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int64_t plane = (int64_t)(group * tall + row + i * 8) * section.result_plane;
            float *to = gather.to + at[0] + plane, y[2];
            if (row + i * 8 >= tall)
                continue;
#pragma unroll
            for (int k = 0; k < 2; k++) {
                y[k] = ends[i].of(sums.at[i][p][k]);
                if (ending.add && at[k] >= 0)
                    y[k] += ending.add[at[k] + plane];
                y[k] = conv_activation(ending, y[k]);
            }
            if (at[0] >= 0 && at[1] == at[0] + 1 && (uintptr_t)to % sizeof(float2) == 0) {
                *(float2 *)to = make_float2(y[0], y[1]);
                continue;
            }
            if (at[0] >= 0)
                *to = y[0];
            if (at[1] >= 0)
                gather.to[at[1] + plane] = y[1];
        }
    }
}

/* Where the next slab of an even depth lies. */
struct place_in_depth {
    int32_t channel, down, across;
    __device__ void advance(const struct section &section)
    {
        channel += SLAB;
        if (channel < section.source_channels)
            return;
        channel = 0;
        if (++across < section.across.count)
            return;
        across = 0;
        down++;
    }
};

template <bool TF32, int TALL>
static __global__ void __launch_bounds__(TILE_THREADS, 2) gather_tile(struct gather gather)
{
    extern __shared__ float4 shared[];
    struct gather_room<TALL> &room = *(struct gather_room<TALL> *)shared;
    const int thread = (int)threadIdx.x;
    const bool even = is_even(gather.conv, gather.back);
    const int32_t tall = tall_of(gather.conv, gather.back), up = (tall + TALL - 1) / TALL;
    const int32_t row0 = (int32_t)blockIdx.x % up * TALL;
    const struct section section = section_of(gather, (int32_t)blockIdx.y);
    const int32_t source_plane = section.source_rows * section.source_columns;
    const int64_t pixel0 = (int64_t)(blockIdx.x / up) * TILE_WIDE;
    struct column column = column_of(gather, section, pixel0 + thread, &room.results[thread]);
    int64_t elsewhere;
    if (gather.points)
        column = column_of(gather, section, pixel0 + thread % 32 * 4, &elsewhere);
    const float *w = gather.w + ((int64_t)blockIdx.y * tall + row0) * gather.room;
    const int32_t slabs =
        slabs_for(gather.conv, gather.back, section.down.count * section.across.count);
    struct place_in_depth place = {};
    float fetched[SLAB]; /* of the slab after the next, on their way */
    struct sums<TALL> sums {
    };

    const auto load_weights = [&](int32_t slab) {
#pragma unroll
        for (int i = thread; i < TALL * SLAB / 4; i += TILE_THREADS) {
            const int row = i / 4, at = i % 4 * 4;
            const bool inside = row0 + row < tall;
            copy_vector(&room.a[slab % STAGES][row][at],
                        w + (inside ? (int64_t)row * gather.room + slab * SLAB + at : 0), inside);
        }
    };
    const auto load_points = [&](int32_t slab) {
        const float *from = column.from + (int64_t)(slab * SLAB + thread / 32) * source_plane;
#pragma unroll
        for (int i = 0; i < SLAB; i += TILE_THREADS / 32) {
            const int depth = i + thread / 32;
            const bool inside = column.inside && slab * SLAB + depth < section.source_channels;
            copy_vector(&room.b[slab % STAGES][depth][thread % 32 * 4],
                        inside ? from + (int64_t)i * source_plane : gather.from, inside);
        }
    };
    const auto load = [&](int32_t slab) {
        if (slab < slabs) {
            load_weights(slab);
            if (gather.points)
                load_points(slab);
        }
        copy_commit();
    };
    const auto fetch_even = [&]() {
        const int32_t row = section.down.shift + place.down * section.down.turn;
        const int32_t across = section.across.shift + place.across * section.across.turn;
        const bool inside = column.inside &&
                            (uint32_t)(column.row + row) < (uint32_t)section.source_rows &&
                            (uint32_t)(column.column + across) < (uint32_t)section.source_columns;
        const int32_t there = inside ? section.source_channels - place.channel : 0;
        const float *from = column.from + (int64_t)place.channel * source_plane +
                            row * section.source_columns + across;
#pragma unroll
        for (int depth = 0; depth < SLAB; depth++)
            fetched[depth] = depth < there ? from[(int64_t)depth * source_plane] : 0.0f;
        place.advance(section);
    };
    const auto fetch_uneven = [&](int32_t slab) {
#pragma unroll
        for (int depth = 0; depth < SLAB; depth++) {
            const struct step_to step = room.steps[slab % STAGES][depth];
            const bool inside =
                column.inside &&
                (uint32_t)(column.row + step.row) < (uint32_t)section.source_rows &&
                (uint32_t)(column.column + step.column) < (uint32_t)section.source_columns;
            fetched[depth] = inside ? column.from[step.offset] : 0.0f;
        }
    };
    const auto fetch = [&](int32_t slab) {
        if (gather.points || slab >= slabs)
            return;
        if (even)
            fetch_even();
        else
            fetch_uneven(slab);
    };
    const auto put = [&](int32_t slab) {
        if (!gather.points && slab < slabs)
#pragma unroll
            for (int depth = 0; depth < SLAB; depth++)
                room.b[slab % STAGES][depth][thread] = fetched[depth];
    };
    if (!even && thread < STAGES * SLAB)
        room.steps[thread / SLAB][thread % SLAB] = step_of(section, thread);
    __syncthreads();
    for (int32_t slab = 0; slab < STAGES - 1; slab++)
        load(slab);
    fetch(0);
    put(0);
    fetch(1);
    for (int32_t slab = 0; slab < slabs; slab++) {
        copy_wait();
        __syncthreads();
        load(slab + STAGES - 1);
        put(slab + 1);
        fetch(slab + 2);
        if (!even && thread < SLAB) /* where the steps of `slab` were: read by nobody any more */
            room.steps[slab % STAGES][thread] = step_of(section, (slab + STAGES) * SLAB + thread);
        add_slab<TF32, TALL, by_depth>(sums, &room.a[slab % STAGES][0][0],
                                       &room.b[slab % STAGES][0][0]);
    }
    put_sums<TALL>(gather, section, room.results,
                   (int32_t)blockIdx.y / (int32_t)(gridDim.y / (unsigned)gather.conv.groups), row0,
                   sums);
}

template <bool TF32, int TALL>
static void gather_launch(struct queue *queue, const struct gather &gather)
{
    const struct conv &conv = gather.conv;
    const struct walk down = walk_of(conv.down, gather.back, 0);
    const struct walk across = walk_of(conv.across, gather.back, 0);
    const int64_t pixels = (int64_t)conv.samples * down.places * across.places;
    const unsigned tiles =
        blocks_for(pixels, TILE_WIDE) * blocks_for(tall_of(conv, gather.back), TALL);
    enqueue_large(queue, gather_tile<TF32, TALL>,
                  dim3(tiles, (unsigned)(conv.groups * phases_of(conv, gather.back))),
                  dim3(TILE_THREADS), sizeof(struct gather_room<TALL>), gather);
}

void conv_implicit_gemm(struct queue *queue, const struct conv &conv, bool back, bool tf32,
                        const float *from, const float *w, float *to,
                        const struct conv_ending &ending, void *workspace)
{
    const int32_t tall = tall_of(conv, back);
    struct gather gather = {conv, back,  conv_is_pointwise(conv), depth_room(conv, back), from, w,
                            to,   ending};
    if (!is_ready(conv, back)) {
        const int64_t count = (int64_t)(conv_implicit_gemm_bytes(conv, back) / sizeof(float));
        enqueue(queue, pack_weights, dim3(blocks_striding(count)), dim3(THREADS), conv, back,
                gather.room, count, w, (float *)workspace);
        gather.w = (const float *)workspace;
    }
    if (tall <= 16)
        gather_launch<false, 16>(queue, gather);
    else if (tall <= 64)
        tf32 ? gather_launch<true, 64>(queue, gather) : gather_launch<false, 64>(queue, gather);
    else
        tf32 ? gather_launch<true, 128>(queue, gather) : gather_launch<false, 128>(queue, gather);
}
