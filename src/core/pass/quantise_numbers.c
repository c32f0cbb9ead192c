/* quantise_numbers.c: see quantise_numbers.h. */
#include "core/pass/quantise_numbers.h"

#include "core/requantise.h"

#include <float.h>
#include <math.h>

enum { LEVELS = 255, PLAIN_LEVELS = 127 };

bool range_is_known(const struct range *range)
{
    return isfinite(range->low) && isfinite(range->high) && range->low <= range->high;
}

/* The least power of two on which the range has no more levels than there are. */
static struct scale plain_scale(double low, double high)
{
    int exponent;
    frexp((high - low) / PLAIN_LEVELS, &exponent);
    for (double step = ldexp(1, exponent - 1);; step *= 2) {
        double below = ceil(-low / step), above = ceil(high / step);
        if (below + above <= PLAIN_LEVELS)
            return (struct scale){(float)step, (int32_t)below, PLAIN_LEVELS};
    }
}

struct scale scale_of(const struct range *range, bool plain)
{
    double low = fmin((double)range->low, 0), high = fmax((double)range->high, 0);
    if (high - low < (double)FLT_MIN * LEVELS)
        high = low + 1; /* it was 0 throughout */
    if (plain)
        return plain_scale(low, high);
    struct scale scale = {.scale = (float)((high - low) / LEVELS), .most = LEVELS};
    scale.zero = clamped(llrint(-low / (double)scale.scale), 0, LEVELS);
    return scale;
}

int32_t scale_level(const struct scale *scale, double value)
{
    double steps = value / (double)scale->scale;
    if (isnan(steps))
        return scale->zero;
    steps = fmin(fmax(steps, (double)-scale->zero), (double)(scale->most - scale->zero));
    return scale->zero + (int32_t)lrint(steps);
}

bool ratio_split(double ratio, int32_t *multiplier, int32_t *shift)
{
    int exponent;
    int64_t fraction = llrint(ldexp(frexp(ratio, &exponent), REQUANTISE_SHIFT_LEAST));
    if (fraction == (int64_t)REQUANTISE_ONE * 2) {
        fraction /= 2;
        exponent++;
    }
    *shift = REQUANTISE_SHIFT_LEAST - exponent;
    for (; *shift > REQUANTISE_SHIFT_MOST; --*shift)
        fraction /= 2;
    *multiplier = (int32_t)fraction;
    return ratio >= 0 && isfinite(ratio) && exponent <= 0;
}

bool ratio_split_pair(double a, double b, int32_t *multiplier_a, int32_t *multiplier_b,
                      int32_t *shift)
{
    double most = fmax(a, b);
    if (!(most > 0) || !isfinite(most))
        return false;
    *shift = INT8_ADD_SHIFT_MOST;
    while (*shift > 0 && ldexp(most, *shift) > INT8_ADD_MULTIPLIER_MOST)
        --*shift;
    *multiplier_a = (int32_t)lrint(ldexp(a, *shift));
    *multiplier_b = (int32_t)lrint(ldexp(b, *shift));
    return *shift > 0;
}

static double activation_value(enum activation function, double alpha, double x)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    case ACTIVATION_TANH: return tanh(x);
    case ACTIVATION_RELU: return fmax(x, 0);
    case ACTIVATION_GELU: return x * 0.5 * (1 + erf(x * 0.70710678118654752440));
    case ACTIVATION_SOFTPLUS: return fmax(x, 0) + log1p(exp(-fabs(x)));
    case ACTIVATION_LEAKY_RELU: return x < 0 ? alpha * x : x;
    case ACTIVATION_ELU: return x < 0 ? alpha * expm1(x) : x;
    case ACTIVATION_ERF: return erf(x);
    case ACTIVATION_SQRT: return sqrt(x);
    case ACTIVATION_RECIPROCAL: return 1 / x;
    case ACTIVATION_EXP: return exp(x);
    case ACTIVATION_LOG: return log(x);
    default: return x;
    }
}

double function_value(const struct op *op, double x)
{
    if (op && op->kind == OP_activate)
        return activation_value((enum activation)op->attr.activate.function,
                                (double)op->attr.activate.alpha, x);
    if (op && op->kind == OP_bound)
        return fmin(fmax(x, (double)op->attr.bound.low), (double)op->attr.bound.high);
    return x;
}

void table_fill(uint8_t table[256], const struct op *op, const struct scale *from,
                const struct scale *to)
{
    for (int32_t q = 0; q < 256; q++) {
        double x = (double)from->scale * (q - from->zero);
        table[q] = (uint8_t)scale_level(to, function_value(op, x));
    }
}

static int32_t weight_most(int32_t bits)
{
    return (1 << (bits - 1)) - 1;
}

double weight_step(double most, double bias, double x_scale, int32_t bits, bool plain)
{
    double step = fmax(most / weight_most(bits), fabs(bias) / x_scale / (INT8_BIAS_MOST / 2));
    int exponent;
    if (!(step > (double)FLT_MIN))
        step = (double)FLT_MIN; /* all weights are 0, and the bias is */
    if (!plain)
        return step;
    double fraction = frexp(step, &exponent);
    return ldexp(1, fraction > 0.5 ? exponent : exponent - 1);
}

int8_t weight_level(double weight, double step, int32_t bits)
{
    int32_t most = weight_most(bits);
    return (int8_t)clamped(llrint(weight / step), -most, most);
}
