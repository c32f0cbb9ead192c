/* packet.h: what blocks of one launch send each other without a barrier: packets of 16 bytes, three
 * floats and the number of the step, written and read as one. Who waits for a packet reads it until
 * the number is right. */
#ifndef PRONY_BACKEND_CUDA_PACKET_H
#define PRONY_BACKEND_CUDA_PACKET_H

#include <cstdint>

static inline __device__ void packet_put(uint4 *to, float a, float b, float c, uint32_t number)
{
    const uint64_t low = (uint64_t)__float_as_uint(b) << 32 | __float_as_uint(a);
    const uint64_t high = (uint64_t)number << 32 | __float_as_uint(c);
    asm volatile("{ .reg .b128 packet;\n\tmov.b128 packet, {%1, %2};\n\t"
                 "st.relaxed.gpu.global.b128 [%0], packet; }" ::"l"(to),
                 "l"(low), "l"(high)
                 : "memory");
}

/* All four words must be used by who calls it: ptxas drops what is not, and then loads the rest
 * word by word, which another step may come between. */
static inline __device__ uint4 packet_look(const uint4 *from)
{
    uint64_t low, high;
    asm volatile("{ .reg .b128 packet;\n\tld.relaxed.gpu.global.b128 packet, [%2];\n\t"
                 "mov.b128 {%0, %1}, packet; }"
                 : "=l"(low), "=l"(high)
                 : "l"(from)
                 : "memory");
    return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}

/* A number that one block leaves for another. */
static inline __device__ void number_put(uint32_t *to, uint32_t number)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(number) : "memory");
}

static inline __device__ uint32_t number_look(const uint32_t *from)
{
    uint32_t number;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(number) : "l"(from) : "memory");
    return number;
}

/* One packet, once it has come. */
static inline __device__ float3 packet_wait(const uint4 *from, uint32_t number)
{
    uint4 packet = packet_look(from);
    while (packet.w != number)
        packet = packet_look(from);
    return make_float3(__uint_as_float(packet.x), __uint_as_float(packet.y),
                       __uint_as_float(packet.z));
}

/* The sum of `count` packets, `apart` from each other, in their order, once they have come. All
 * that have not are asked for again at once: each answer takes as long as an exchange. */
static inline __device__ float3 packets_sum(const uint4 *from, int count, int apart,
                                            uint32_t number)
{
    enum { AHEAD = 12 };
    float3 sum = {};
#pragma unroll 1
    for (int k0 = 0; k0 < count; k0 += AHEAD, from += AHEAD * apart) {
        const int some = count - k0 < AHEAD ? count - k0 : AHEAD;
        uint4 packet[AHEAD];
        bool missing = true;
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            packet[k] = make_uint4(0, 0, 0, k < some ? ~number : number);
        while (missing) {
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                if (packet[k].w != number)
                    packet[k] = packet_look(from + k * apart);
            missing = false;
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                missing = missing || packet[k].w != number;
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            sum.x += __uint_as_float(packet[k].x);
            sum.y += __uint_as_float(packet[k].y);
            sum.z += __uint_as_float(packet[k].z);
        }
    }
    return sum;
}

#endif
