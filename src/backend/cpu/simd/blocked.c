/* blocked.c: see blocked.h. */
#include "backend/cpu/simd/blocked.h"

#include <string.h>

uint64_t blocked_bytes(const struct shape *shape)
{
    int64_t in = blocked_up(shape->dim[0], BLOCKED_LANES);
    return (uint64_t)(in * blocked_up(shape->dim[1], BLOCKED_ROWS)) * sizeof(float);
}

/* Where the 16 inputs from `i` of output `o` are. */
static int64_t vector_at(int64_t in, int64_t out, int64_t i, int64_t o)
{
    int64_t from = i / BLOCKED_CHUNK * BLOCKED_CHUNK;
    int64_t group = o / BLOCKED_ROWS * BLOCKED_ROWS * blocked_width(in, from);
    int64_t vector = (i - from) / BLOCKED_LANES * BLOCKED_ROWS + o % BLOCKED_ROWS;
    return from * blocked_up(out, BLOCKED_ROWS) + group + vector * BLOCKED_LANES;
}

void blocked_pack(const struct shape *shape, const float *canonical, float *blocked)
{
    int64_t in = shape->dim[0], out = shape->dim[1];
    memset(blocked, 0, (size_t)blocked_bytes(shape));
    for (int64_t i = 0; i < in; i += BLOCKED_LANES)
        for (int64_t o = 0; o < out; o++)
            for (int64_t k = i; k < i + BLOCKED_LANES && k < in; k++)
                blocked[vector_at(in, out, i, o) + k - i] = canonical[k * out + o];
}

void blocked_unpack(const struct shape *shape, const float *blocked, float *canonical)
{
    int64_t in = shape->dim[0], out = shape->dim[1];
    for (int64_t i = 0; i < in; i += BLOCKED_LANES)
        for (int64_t o = 0; o < out; o++)
            for (int64_t k = i; k < i + BLOCKED_LANES && k < in; k++)
                canonical[k * out + o] = blocked[vector_at(in, out, i, o) + k - i];
}
