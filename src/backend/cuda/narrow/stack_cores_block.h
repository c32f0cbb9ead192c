/* stack_cores_block.h: a block of stack_cores.cu at work: its weights, its inputs, what it hands
 * out. */
#ifndef PRONY_BACKEND_CUDA_STACK_CORES_BLOCK_H
#define PRONY_BACKEND_CUDA_STACK_CORES_BLOCK_H

#include "backend/cuda/narrow/stack_cores.h"

struct cores_stretch {
    int begin, count;
    __device__ cores_stretch(int all, int index, int of)
        : begin((int)((int64_t)all * index / of)),
          count((int)((int64_t)all * (index + 1) / of) - begin)
    {
    }
};

#if __CUDA_ARCH__ >= 900

/* Eight bytes of results; the third word says the same as the last: all four must be used. */
static inline __device__ void put_results(uint4 *to, uint32_t low, uint32_t high, uint32_t number)
{
    packet_put(to, __uint_as_float(low), __uint_as_float(high), __uint_as_float(~number), number);
}

static inline __device__ bool has_come(const uint4 &packet, uint32_t number)
{
    return packet.w == number && packet.z == ~number;
}

static inline __device__ void copy_16(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* Until all copies but those of the last `left` groups have come. */
static inline __device__ void wait_groups(int left)
{
#define WAIT_GROUPS(some)                                                                          \
    case some: asm volatile("cp.async.wait_group %0;" ::"n"(some) : "memory"); break
    switch (left) {
        WAIT_GROUPS(1);
        WAIT_GROUPS(2);
        WAIT_GROUPS(3);
        WAIT_GROUPS(4);
        WAIT_GROUPS(5);
        WAIT_GROUPS(6);
        WAIT_GROUPS(7);
        WAIT_GROUPS(8);
        WAIT_GROUPS(9);
        WAIT_GROUPS(10);
        WAIT_GROUPS(11);
        WAIT_GROUPS(12);
        WAIT_GROUPS(13);
        WAIT_GROUPS(14);
    default: asm volatile("cp.async.wait_group 0;" ::: "memory"); break;
    }
#undef WAIT_GROUPS
}

static constexpr __device__ enum precision type_of(enum cores_number number)
{
    return number == CORES_BF16 ? PRECISION_BF16 : PRECISION_FP16;
}

template <enum cores_number NUMBER> struct cores_sum {
    typedef float type;
};
template <> struct cores_sum<CORES_INT8> {
    typedef int32_t type;
};

/* sums[16 samples, 8 outputs] += 32 bytes of depth of each. */
template <enum cores_number NUMBER>
static inline __device__ void multiply_add(typename cores_sum<NUMBER>::type (&sums)[4],
                                           const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    if constexpr (NUMBER == CORES_INT8)
        int8_multiply_add(sums, a, b0, b1);
    else if constexpr (NUMBER == CORES_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* One block at work. */
template <enum cores_number NUMBER, bool UPPER> struct cores_block {
    typedef typename cores_sum<NUMBER>::type sum_type;
    static constexpr int PER_PACKET = NUMBER == CORES_INT8 ? 8 : 4; /* results */
    const struct cores_net &net;
    char *shared;
    int thread, lane, warp, group, place;
    bool ends; /* the last block */
    uint4 away[CORES_FAR];
    sum_type sums[CORES_TILES][4];

    __device__ cores_block(const struct cores_net &net_, char *shared_)
        : net(net_), shared(shared_), thread((int)threadIdx.x), lane((int)threadIdx.x % 32),
          warp((int)threadIdx.x / 32), group((int)threadIdx.x % 32 / 4),
          place((int)threadIdx.x % 4), ends(blockIdx.x == gridDim.x - 1)
    {
    }
    __device__ struct cores_stretch tiles_of(int l) const
    {
        const int tiles = net.layer[l].tiles;
        return ends ? cores_stretch(tiles, 0, 1)
                    : cores_stretch(tiles, (int)blockIdx.x, (int)gridDim.x - 1);
    }
    static __device__ int packets_of(int features)
    {
        return (features + PER_PACKET - 1) / PER_PACKET;
    }
    __device__ int first_layer() const
    {
        return ends ? net.layers - 1 : 0;
    }
    __device__ int behind_layers() const
    {
        return ends ? net.layers : net.layers - 1;
    }
    __device__ int kept(int l, const struct cores_stretch &tiles) const
    {
        const int far = ends ? 0 : net.layer[l].far;
        return tiles.count > far ? tiles.count - far : 0;
    }
    __device__ void settle() const;
    __device__ void fetch_far(int l);
    __device__ bool take_inputs(int l, uint32_t number, bool first);
    __device__ void multiply(int l);
    __device__ sum_type added_up(int t, int sample, int column) const;
    __device__ void hand_out(int l, uint32_t number);
    __device__ float final_value(int t, int sample, int column) const;
    __device__ uint32_t level_of(float value) const;
    template <typename Value> __device__ void feed(uint32_t number, bool goes_on, Value value);
};

/* Asks for the weights, a group of copies a layer, and has all else that is kept. */
template <enum cores_number NUMBER, bool UPPER>
__device__ void cores_block<NUMBER, UPPER>::settle() const
{
    for (int i = thread; i < net.batch * net.pitch / 16; i += CORES_THREADS)
        ((uint4 *)shared)[i] = uint4{};
    for (int l = first_layer(); l < behind_layers(); l++) {
        const struct cores_layer &layer = net.layer[l];
        const struct cores_stretch tiles = tiles_of(l);
        const int pieces = kept(l, tiles) * layer.pairs * 32;
        const uint4 *from = layer.w + (int64_t)tiles.begin * layer.pairs * 32;
        const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared + layer.w_at);
        for (int i = thread; i < pieces; i += CORES_THREADS)
            copy_16(to + 16 * (uint32_t)i, from + i);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int l = first_layer(); l < behind_layers(); l++) {
        const struct cores_layer &layer = net.layer[l];
        const struct cores_stretch tiles = tiles_of(l);
        for (int i = thread; i < tiles.count * CORES_TILE; i += CORES_THREADS) {
            const int column = tiles.begin * CORES_TILE + i;
            const bool there = column < layer.out;
            if constexpr (NUMBER == CORES_INT8) {
                struct int8_channel channel = {0, 0, 31};
                if (there)
                    channel.take(layer.ending, column);
                ((struct int8_channel *)(shared + layer.channels_at))[i] = channel;
            } else {
                ((float *)(shared + layer.channels_at))[i] =
                    there && layer.b ? __ldg(&layer.b[column]) : 0.0f;
            }
        }
        if (NUMBER == CORES_INT8 && layer.ending.table && thread < 256)
            shared[layer.table_at + thread] = (char)__ldg(&layer.ending.table[thread]);
    }
}

/* The weights that are not kept: tiles behind the others, as this warp takes them. */
template <enum cores_number NUMBER, bool UPPER>
__device__ void cores_block<NUMBER, UPPER>::fetch_far(int l)
{
    const struct cores_layer &layer = net.layer[l];
    const struct cores_stretch tiles = tiles_of(l);
    const int first = kept(l, tiles), rounds = (layer.pairs + CORES_WARPS - 1) / CORES_WARPS;
    if (first == tiles.count)
        return;
    const uint4 *from = layer.w + (int64_t)(tiles.begin + first) * layer.pairs * 32 + lane;
#pragma unroll
    for (int k = 0; k < CORES_FAR; k++) {
        const int t = k / rounds, pair = k % rounds * CORES_WARPS + warp;
        away[k] = first + t < tiles.count && pair < layer.pairs
                      ? __ldcg(&from[(t * layer.pairs + pair) * 32])
                      : uint4{};
    }
}

/* The inputs of all samples, as rows in shared memory. False: there are no more. */
template <enum cores_number NUMBER, bool UPPER>
__device__ bool cores_block<NUMBER, UPPER>::take_inputs(int l, uint32_t number, bool first)
{
    enum { AHEAD = 8 };
    const struct cores_layer &layer = net.layer[l];
    const int packets = packets_of(layer.in), items = net.batch * packets;
    const uint4 *from = l == 0 ? net.x + (number & 1) * (uint32_t)(1 + items) + 1
                               : net.layer[l - 1].y + (number & 1) * (uint32_t)items;
    int goes_on = 1;
    if (l == 0 && thread == CORES_THREADS - 1) {
        uint4 word = packet_look(from - 1);
        while (!has_come(word, number))
            word = packet_look(from - 1);
        goes_on = (word.x | word.y) != 0;
    }
    if (l == 0 && !__syncthreads_and(goes_on))
        return false;
    for (int item0 = thread; item0 < items; item0 += AHEAD * CORES_THREADS) {
        uint4 packet[AHEAD];
        char *to[AHEAD];
        bool missing = true;
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const int item = item0 + k * CORES_THREADS;
            packet[k] = item < items ? make_uint4(0, 0, number, ~number)
                                     : make_uint4(0, 0, ~number, number);
            to[k] = shared + item / packets * net.pitch + item % packets * 8;
        }
        while (missing) {
            missing = false;
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                if (!has_come(packet[k], number))
                    packet[k] = packet_look(&from[item0 + k * CORES_THREADS]);
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                missing = missing || !has_come(packet[k], number);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (item0 + k * CORES_THREADS < items)
                *(uint2 *)to[k] = make_uint2(packet[k].x, packet[k].y);
    }
    const int end = packets * 8, row = layer.pairs * CORES_PAIR; /* what is behind counts as 0 */
    const int words = (row - end) / 8;
    for (int i = thread; i < net.batch * words; i += CORES_THREADS)
        *(uint2 *)(shared + i / words * net.pitch + end + i % words * 8) = uint2{};
    if (first)
        wait_groups(behind_layers() - 1 - l);
    __syncthreads();
    return true;
}

/* Sums over this warp's share of the depth, to where the block finds them. */
template <enum cores_number NUMBER, bool UPPER>
__device__ void cores_block<NUMBER, UPPER>::multiply(int l)
{
    const struct cores_layer &layer = net.layer[l];
    const struct cores_stretch tiles = tiles_of(l);
    const int held = kept(l, tiles), rounds = (layer.pairs + CORES_WARPS - 1) / CORES_WARPS;
    const uint4 *w = (const uint4 *)(shared + layer.w_at) + lane;
    const bool lower_there = group < net.batch, upper_there = UPPER && group + 8 < net.batch;
    const char *row = shared + group * net.pitch + place * 8;
    uint32_t a[2][4];
    const auto take_samples = [&](int pair) {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const char *at = row + pair * CORES_PAIR + s * (CORES_PAIR / 2);
            const uint2 lower = lower_there ? *(const uint2 *)at : uint2{};
            const uint2 upper = upper_there ? *(const uint2 *)(at + 8 * net.pitch) : uint2{};
            a[s][0] = lower.x, a[s][1] = upper.x, a[s][2] = lower.y, a[s][3] = upper.y;
        }
    };
#pragma unroll
    for (int t = 0; t < CORES_TILES; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[t][i] = 0;
    for (int pair = warp; pair < layer.pairs; pair += CORES_WARPS) {
        take_samples(pair);
#pragma unroll
        for (int t = 0; t < CORES_TILES; t++)
            if (t < held) {
                const uint4 piece = w[(t * layer.pairs + pair) * 32];
                multiply_add<NUMBER>(sums[t], a[0], piece.x, piece.y);
                multiply_add<NUMBER>(sums[t], a[1], piece.z, piece.w);
            }
    }
    if (held < tiles.count)
#pragma unroll
        for (int k = 0; k < CORES_FAR; k++) {
            const int own = held + k / rounds, pair = k % rounds * CORES_WARPS + warp;
            if (own >= tiles.count || pair >= layer.pairs)
                continue;
            take_samples(pair);
#pragma unroll
            for (int t = 0; t < CORES_TILES; t++)
                if (t == own) {
                    multiply_add<NUMBER>(sums[t], a[0], away[k].x, away[k].y);
                    multiply_add<NUMBER>(sums[t], a[1], away[k].z, away[k].w);
                }
        }
    sum_type *to = (sum_type *)(shared + net.sums_at) +
                   ((int64_t)warp * CORES_TILES * net.batch + group) * CORES_TILE + 2 * place;
#pragma unroll
    for (int t = 0; t < CORES_TILES; t++) {
        if (t >= tiles.count)
            continue;
        sum_type *at = to + t * net.batch * CORES_TILE;
        if (lower_there)
            at[0] = sums[t][0], at[1] = sums[t][1];
        if (upper_there)
            at[8 * CORES_TILE] = sums[t][2], at[8 * CORES_TILE + 1] = sums[t][3];
    }
    __syncthreads();
}

template <enum cores_number NUMBER, bool UPPER>
__device__ typename cores_block<NUMBER, UPPER>::sum_type
cores_block<NUMBER, UPPER>::added_up(int t, int sample, int column) const
{
    const sum_type *from =
        (const sum_type *)(shared + net.sums_at) + (t * net.batch + sample) * CORES_TILE + column;
    sum_type sum = 0;
#pragma unroll
    for (int i = 0; i < CORES_WARPS; i++)
        sum += from[i * CORES_TILES * net.batch * CORES_TILE];
    return sum;
}

/* The block's outputs of the layer to all others; eight lanes have the outputs of one tile. */
template <enum cores_number NUMBER, bool UPPER>
__device__ void cores_block<NUMBER, UPPER>::hand_out(int l, uint32_t number)
{
    const struct cores_layer &layer = net.layer[l];
    const struct cores_stretch tiles = tiles_of(l);
    const int packets = packets_of(layer.out), count = tiles.count * net.batch * CORES_TILE;
    uint4 *to = layer.y + (number & 1) * (uint32_t)(net.batch * packets);
    for (int e0 = 0; e0 < count; e0 += CORES_THREADS) {
        const int e = e0 + thread, column = e % CORES_TILE, t = e / CORES_TILE / net.batch;
        const int sample = e / CORES_TILE % net.batch;
        const bool here = e < count;
        uint32_t low = 0, high;
        if constexpr (NUMBER == CORES_INT8) {
            if (here) {
                const struct int8_channel channel =
                    ((const struct int8_channel *)(shared +
                                                   layer.channels_at))[t * CORES_TILE + column];
                struct int8_ending ending = layer.ending;
                ending.table = NULL;
                uint8_t level =
                    int8_end(ending, channel, added_up(t, sample, column) + channel.bias);
                if (layer.ending.table)
                    level = (uint8_t)shared[layer.table_at + level];
                low = (uint32_t)level << column % 4 * 8;
            }
            low |= __shfl_xor_sync(~0u, low, 1);
            low |= __shfl_xor_sync(~0u, low, 2);
            high = __shfl_xor_sync(~0u, low, 4);
        } else {
            if (here) {
                const float bias =
                    ((const float *)(shared + layer.channels_at))[t * CORES_TILE + column];
                const float y =
                    stack_activation(layer.function, added_up(t, sample, column) + bias);
                low = (uint32_t)bits_of_16bit(y, type_of(NUMBER)) << column % 2 * 16;
            }
            low |= __shfl_xor_sync(~0u, low, 1);
            high = __shfl_xor_sync(~0u, low, 2);
        }
        const int packet = ((tiles.begin + t) * CORES_TILE + column) / PER_PACKET;
        if (here && column % PER_PACKET == 0 && packet < packets)
            put_results(&to[sample * packets + packet], low, high, number);
    }
}

/* A number of the answer. */
template <enum cores_number NUMBER, bool UPPER>
__device__ float cores_block<NUMBER, UPPER>::final_value(int t, int sample, int column) const
{
    const struct cores_layer &layer = net.layer[net.layers - 1];
    const int o = t * CORES_TILE + column;
    if constexpr (NUMBER == CORES_INT8) {
        const struct int8_channel channel =
            ((const struct int8_channel *)(shared + layer.channels_at))[o];
        int32_t value = added_up(t, sample, column) + channel.bias;
        if (layer.ending.multiplier) {
            struct int8_ending ending = layer.ending;
            ending.table = NULL;
            value = int8_end(ending, channel, value);
            if (layer.ending.table)
                value = (uint8_t)shared[layer.table_at + value];
        }
        return (float)(value - net.zero_y) * (net.scales_y ? __ldg(&net.scales_y[o]) : net.scale_y);
    } else {
        const float bias = ((const float *)(shared + layer.channels_at))[o];
        return stack_activation(layer.function, added_up(t, sample, column) + bias);
    }
}

/* The bits of an input as products read it. */
template <enum cores_number NUMBER, bool UPPER>
__device__ uint32_t cores_block<NUMBER, UPPER>::level_of(float value) const
{
    if constexpr (NUMBER == CORES_INT8)
        return quantised(value, net.scale, net.zero, (float)net.low, (float)net.high);
    else
        return bits_of_16bit(value, type_of(NUMBER));
}

/* The inputs of a step, value(sample, feature), to all; or the word that there are none. */
template <enum cores_number NUMBER, bool UPPER>
template <typename Value>
__device__ void cores_block<NUMBER, UPPER>::feed(uint32_t number, bool goes_on, Value value)
{
    const int in = net.layer[0].in, packets = packets_of(in), items = net.batch * packets;
    uint4 *to = net.x + (number & 1) * (uint32_t)(1 + items);
    for (int item = thread; goes_on && item < items; item += CORES_THREADS) {
        const int sample = item / packets, first = item % packets * PER_PACKET;
        uint32_t words[2] = {};
#pragma unroll
        for (int i = 0; i < PER_PACKET; i++)
            if (first + i < in)
                words[i / (PER_PACKET / 2)] |= level_of(value(sample, first + i))
                                               << i % (PER_PACKET / 2) * (64 / PER_PACKET);
        put_results(&to[1 + item], words[0], words[1], number);
    }
    if (thread == 0)
        put_results(to, goes_on, 0, number);
}

#endif

#endif
