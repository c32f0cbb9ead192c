/* ref_int8.c: numbers of 8 bits, as docs/quantisation.md defines them. All of it is integer
 * arithmetic but where reals begin and end. */
#include "backend/cpu/real.h"
#include "core/requantise.h"

#include <string.h>

static const uint8_t *bytes(const struct call *call, int operand)
{
    return call->data[operand];
}

/* NaN is zero. Division and rounding (to the nearest, halves to even) are those of the type. */
KERNEL(quantise)
{
    const real *x = reals(call, AT_quantise_x);
    uint8_t *y = call->data[AT_quantise_y];
    int32_t zero = call->op->attr.quantise.zero;
    real scale = (real)call->op->attr.quantise.scale;
    real low = (real)(call->op->attr.quantise.low - zero),
         high = (real)(call->op->attr.quantise.high - zero);
    for (int64_t i = 0, n = count(call, AT_quantise_y); i < n; i++) {
        real steps = x[i] / scale;
        y[i] = isnan(steps) ? (uint8_t)zero
                            : (uint8_t)(zero + (int32_t)real_rint(bounded(steps, low, high)));
    }
}

/* An integer becomes the nearest real, and is multiplied once. */
KERNEL(dequantise)
{
    const uint8_t *x8 = bytes(call, AT_dequantise_x);
    const int32_t *x32 = integers(call, AT_dequantise_x);
    const real *scales = reals(call, AT_dequantise_scale);
    real *y = reals(call, AT_dequantise_y);
    bool wide = call->tensors[AT_dequantise_x]->dtype == DTYPE_I32;
    int32_t zero = call->op->attr.dequantise.zero;
    int64_t channels = dim(call, AT_dequantise_x, 1), n = count(call, AT_dequantise_y);
    int64_t inner = n / (dim(call, AT_dequantise_x, 0) * channels);
    for (int64_t i = 0; i < n; i++)
        y[i] = (real)((wide ? x32[i] : x8[i]) - zero) *
               (scales ? scales[i / inner % channels] : (real)call->op->attr.dequantise.scale);
}

/* y[n,o] = f(b[o] + Σ_i x[n,i]·w[i,o]) */
KERNEL(dense_int8)
{
    const uint8_t *x = bytes(call, AT_dense_int8_x), *table = bytes(call, AT_dense_int8_table);
    const int8_t *w = call->data[AT_dense_int8_w];
    const int32_t *b = integers(call, AT_dense_int8_b),
                  *multiplier = integers(call, AT_dense_int8_multiplier),
                  *shift = integers(call, AT_dense_int8_shift);
    int32_t zero = call->op->attr.dense_int8.zero, low = call->op->attr.dense_int8.low,
            high = call->op->attr.dense_int8.high;
    int64_t batch = dim(call, AT_dense_int8_x, 0), in = dim(call, AT_dense_int8_w, 0),
            out = dim(call, AT_dense_int8_w, 1);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < out; o++) {
            int32_t sum = b[o];
            for (int64_t i = 0; i < in; i++)
                sum += x[n * in + i] * w[i * out + o];
            if (!multiplier) {
                ((int32_t *)call->data[AT_dense_int8_y])[n * out + o] = sum;
                continue;
            }
            uint8_t y = requantise(sum, multiplier[o], shift[o], zero, low, high);
            ((uint8_t *)call->data[AT_dense_int8_y])[n * out + o] = table ? table[y] : y;
        }
}

KERNEL(add_int8)
{
    const uint8_t *a = bytes(call, AT_add_int8_a), *b = bytes(call, AT_add_int8_b);
    uint8_t *y = call->data[AT_add_int8_y];
    int32_t zero_a = call->op->attr.add_int8.zero_a, zero_b = call->op->attr.add_int8.zero_b;
    int32_t times_a = call->op->attr.add_int8.multiplier_a,
            times_b = call->op->attr.add_int8.multiplier_b;
    int32_t shift = call->op->attr.add_int8.shift, half = 1 << (shift - 1);
    for (int64_t i = 0, n = count(call, AT_add_int8_y); i < n; i++) {
        int32_t sum = (a[i] - zero_a) * times_a + (b[i] - zero_b) * times_b + half;
        y[i] = (uint8_t)clamped((sum >> shift) + call->op->attr.add_int8.zero,
                                call->op->attr.add_int8.low, call->op->attr.add_int8.high);
    }
}

KERNEL(table_int8)
{
    const uint8_t *x = bytes(call, AT_table_int8_x), *table = bytes(call, AT_table_int8_table);
    uint8_t *y = call->data[AT_table_int8_y];
    for (int64_t i = 0, n = count(call, AT_table_int8_y); i < n; i++)
        y[i] = table[x[i]];
}

KERNEL(concat_int8)
{
    int inputs = call->op->inputs;
    uint8_t *y = call->data[inputs];
    for (int64_t n = 0; n < dim(call, inputs, 0); n++)
        for (int i = 0; i < inputs; i++) {
            size_t part = (size_t)(dim(call, i, 1) * dim(call, i, 2));
            memcpy(y, bytes(call, i) + (size_t)n * part, part);
            y += part;
        }
}

KERNEL(argmax)
{
    const uint8_t *x8 = bytes(call, AT_argmax_x);
    const int32_t *x32 = integers(call, AT_argmax_x);
    int32_t *index = call->data[AT_argmax_index];
    bool wide = call->tensors[AT_argmax_x]->dtype == DTYPE_I32;
    int64_t width = dim(call, AT_argmax_x, 1);
    for (int64_t n = 0; n < dim(call, AT_argmax_x, 0); n++) {
        int64_t best = n * width;
        for (int64_t i = best; i < (n + 1) * width; i++)
            if (wide ? x32[i] > x32[best] : x8[i] > x8[best])
                best = i;
        index[n] = (int32_t)(best - n * width);
    }
}
