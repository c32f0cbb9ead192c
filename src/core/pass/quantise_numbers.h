/* quantise_numbers.h: scales, multipliers, tables and weights of 8 bits, from reals. All of it runs
 * when a network is quantised, in double; what runs afterwards is integers. */
#ifndef PRONY_CORE_PASS_QUANTISE_NUMBERS_H
#define PRONY_CORE_PASS_QUANTISE_NUMBERS_H

#include "core/program.h"

/* What a tensor was seen to hold. low > high: nothing is known of it. */
struct range {
    float low, high;
};

/* A level q stands for (q - zero)·scale; levels are 0 … most. */
struct scale {
    float scale;
    int32_t zero, most;
};

bool range_is_known(const struct range *range);
/* The scale on which the range and 0 have levels; of a plain one the scale is a power of two, and
 * there are 128 levels. */
struct scale scale_of(const struct range *range, bool plain);
/* The level nearest to a value. */
int32_t scale_level(const struct scale *scale, double value);

/* multiplier / 2^shift nearest to `ratio`, which is below 1 and not negative; false: it is not, or
 * too large. */
bool ratio_split(double ratio, int32_t *multiplier, int32_t *shift);
/* The same of the two summands of add_int8, with one shift. */
bool ratio_split_pair(double a, double b, int32_t *multiplier_a, int32_t *multiplier_b,
                      int32_t *shift);

/* One function of one number: an activate or bound op, or with NULL the number itself. */
double function_value(const struct op *op, double x);
/* table[q] is the level of `to` nearest to what the function gives for the level q of `from`. */
void table_fill(uint8_t table[256], const struct op *op, const struct scale *from,
                const struct scale *to);

/* The step of weights of so many bits of which the largest is `most`, where no level of the bias,
 * in units of x's scale times this, exceeds its bound. */
double weight_step(double most, double bias, double x_scale, int32_t bits, bool plain);
/* The level nearest to a weight. */
int8_t weight_level(double weight, double step, int32_t bits);

#endif
