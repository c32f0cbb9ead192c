/* vec_pick.h: vectors of elements a stride apart, and the larger of two with its index. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_PICK_H
#define PRONY_BACKEND_CPU_SIMD_VEC_PICK_H

#include "backend/cpu/simd/vec.h"

/* x[0], x[2], …; bit 2·i of the mask says whether there is a lane i, else it is 0. */
static inline vec pick_second(const float *x, uint32_t mask)
{
    return pick_even(vec_load_mask(x, mask), vec_load_mask(x + VEC_LANES, mask >> VEC_LANES));
}

/* x[0], x[stride], … for `count` lanes; reads nothing behind the last of them. */
static inline vec pick_strided(const float *x, int64_t stride, int64_t count)
{
    if (stride == 1)
        return vec_load_part(x, count);
    if (stride == 2) {
        int64_t span = 2 * count - 1;
        vec behind = span > VEC_LANES ? vec_load_part(x + VEC_LANES, span - VEC_LANES) : vec_zero();
        return pick_even(vec_load_part(x, span), behind);
    }
    _Alignas(64) float lanes[VEC_LANES] = {0};
    for (int64_t i = 0; i < count; i++)
        lanes[i] = x[i * stride];
    return vec_load(lanes);
}

#endif
