/* requantise.h: the one way from a sum of 32 bits to a number of 8 (docs/quantisation.md). It is
 * plain integer C, so that any implementation may take it as it is. */
#ifndef PRONY_CORE_REQUANTISE_H
#define PRONY_CORE_REQUANTISE_H

#include <stdint.h>

enum {
    REQUANTISE_ONE = 1 << 30, /* the multiplier of shift-only scales; others are below twice that */
    REQUANTISE_SHIFT_LEAST = 31,        /* so the result fits 32 bits … */
    REQUANTISE_SHIFT_MOST = 62,         /* … and the product with its rounding 64 */
    INT8_WEIGHT_MOST = 127,             /* a weight is never -128 */
    INT8_PRODUCTS_MOST = 1 << 15,       /* of one sum: 2^15·255·127 < 2^30 */
    INT8_BIAS_MOST = 1 << 30,           /* so the sum stays within 2^31 in any order */
    INT8_ADD_MULTIPLIER_MOST = 1 << 21, /* two summands of at most 255 times that, and a half */
    INT8_ADD_SHIFT_MOST = 29,
};

static inline int32_t clamped(int64_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : (int32_t)value;
}

/* zero + sum·multiplier / 2^shift, a half rounded up, between low and high. */
static inline uint8_t requantise(int32_t sum, int32_t multiplier, int32_t shift, int32_t zero,
                                 int32_t low, int32_t high)
{
    int64_t product = (int64_t)sum * multiplier + ((int64_t)1 << (shift - 1));
    return (uint8_t)clamped((product >> shift) + zero, low, high);
}

#endif
