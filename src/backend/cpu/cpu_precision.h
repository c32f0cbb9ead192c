/* cpu_precision.h: what the CPU multiplies in. A program stays fp32; the precision is the device's.
 *
 * bf16: a product rounds its factors to bf16, to nearest, ties to even. Weights are rounded when
 * they are uploaded or updated, everything else when the op reads it. Products of two bf16 numbers
 * are exact in fp32, and they are summed in fp32. Results, the bias, the epilogue of an op
 * (activation, batch-norm, summand) and all other ops are fp32; so are the weights that an update
 * changes. Between two products the result is rounded once, as if it were kept in bf16. Factors
 * below 2⁻¹²⁶ may count as 0. */
#ifndef PRONY_BACKEND_CPU_CPU_PRECISION_H
#define PRONY_BACKEND_CPU_CPU_PRECISION_H

#include "core/program.h"

#include <string.h>

enum precision { PRECISION_FP32, PRECISION_BF16 };

/* False: the CPU's backends do not compute in it. NULL or "" is fp32. */
bool precision_parse(const char *text, enum precision *out);
const char *precision_name(enum precision precision);

/* A bit for each operand of the op that is a factor of its products; 0: it has no products, and is
 * the same in every precision. */
unsigned precision_factors(enum op_kind kind);

/* To nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(value != value ? bits >> 16 | 0x40 : rounded);
}

static inline float bf16_value(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
