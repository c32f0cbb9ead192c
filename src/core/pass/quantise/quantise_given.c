/* quantise_given.c: a program that rounds to 8 bits where its file says so. Its own quantise and
 * dequantise ops have the scales; what lies between two of them and has a form in integers is
 * computed in it. Weights are real numbers on a grid, of which the step of each channel is found
 * again. A layer that has no such form stays as it is, and why is noted. */
#include "core/pass/quantise/quantise_inside.h"
#include "core/requantise.h"

#include <float.h>
#include <math.h>

static bool same_scale(const struct scale *a, const struct scale *b)
{
    return a->zero == b->zero && a->most == b->most && !(a->scale < b->scale) &&
           !(a->scale > b->scale);
}

static struct scale scale_of_op(const struct op *op)
{
    return (struct scale){.scale = op->attr.quantise.scale,
                          .zero = op->attr.quantise.zero,
                          .most = op->attr.quantise.high};
}

bool given_scale(const struct walk *walk, int32_t tensor, struct scale *out)
{
    const struct program *from = walk->from;
    const int32_t root = program_root(from, tensor);
    bool found = false;
    for (int32_t o = 0; o < from->op_count; o++)
        for (int32_t i = 0; i < from->ops[o].inputs; i++) {
            const struct op *op = &from->ops[o];
            int32_t read = op_input(from, op, i);
            if (read < 0 || program_root(from, read) != root)
                continue;
            struct scale scale = scale_of_op(op);
            if (op->kind != OP_quantise || op->attr.quantise.low ||
                (found && !same_scale(&scale, out)))
                return false;
            *out = scale;
            found = true;
        }
    return found;
}

/* A number is on the levels that it has already, on others, or a real that is rounded once for all
 * that round it so. */
static bool take_quantise(struct walk *walk, const struct op *op)
{
    const struct program *from = walk->from;
    int32_t x = op_input(from, op, 0), y = op_output(from, op, 0);
    struct form *of_x = &walk->forms[program_root(from, x)];
    struct form *of_y = &walk->forms[program_root(from, y)];
    const struct scale scale = scale_of_op(op);
    if (op->attr.quantise.low)
        return false;
    if (of_x->u8 >= 0 && !same_scale(&of_x->scale, &scale)) {
        int32_t in = walk_u8(walk, x);
        int32_t table = walk_table(walk, op, NULL, &of_x->scale, &scale);
        draft_op(&walk->draft, OP_table_int8, IN(in, table), OUT(walk_write(walk, y, scale)));
        return true;
    }
    if (of_x->u8 < 0 && of_x->rounded < 0 && function_source(walk, x) >= 0) {
        function_table(walk, x, scale);
        of_x->rounded = of_x->u8;
        of_x->rounded_scale = scale;
        of_x->u8 = -1;
    }
    *of_y = (struct form){.real = -1, .u8 = of_x->u8, .rounded = -1, .scale = scale};
    if (of_x->u8 < 0 && of_x->rounded >= 0 && same_scale(&of_x->rounded_scale, &scale))
        of_y->u8 = of_x->rounded;
    if (of_y->u8 >= 0)
        return true;
    int32_t real = walk_real(walk, x);
    draft_op(&walk->draft, OP_quantise, IN(real), OUT(walk_write(walk, y, scale)))->attr = op->attr;
    of_x->rounded = of_y->u8;
    of_x->rounded_scale = scale;
    return true;
}

/* The same levels, which stand for reals from here on. */
static bool take_dequantise(struct walk *walk, const struct op *op)
{
    const struct program *from = walk->from;
    const struct form *of_x = &walk->forms[program_root(from, op_input(from, op, 0))];
    if (of_x->u8 < 0 || op_input(from, op, 1) >= 0)
        return false;
    walk->forms[program_root(from, op_output(from, op, 0))] =
        (struct form){.real = -1,
                      .u8 = of_x->u8,
                      .rounded = -1,
                      .scale = {.scale = op->attr.dequantise.scale,
                                .zero = op->attr.dequantise.zero,
                                .most = of_x->scale.most}};
    return true;
}

bool given_conversion(struct walk *walk, const struct op *op)
{
    return op->kind == OP_quantise ? take_quantise(walk, op) : take_dequantise(walk, op);
}

void given_table(uint8_t table[256], const struct op *function, const struct scale *from,
                 const struct scale *to)
{
    for (int32_t q = 0; q < 256; q++) {
        const float x = from->scale * (float)(q - from->zero);
        const float y = function ? (float)function_value(function, (double)x) : x;
        const float level = rintf(y / to->scale) + (float)to->zero;
        table[q] =
            (uint8_t)(isnan(level) ? (float)to->zero : fminf(fmaxf(level, 0), (float)to->most));
    }
}

/* Of an odd number of levels no mean lies half-way between two. */
bool given_pool(const struct walk *walk, const struct op *op)
{
    const struct form *x = &walk->forms[program_root(walk->from, op_input(walk->from, op, 0))];
    struct scale scale;
    if (op->kind == OP_max_pool)
        return true;
    return op->attr.average_pool.window_h % 2 && op->attr.average_pool.window_w % 2 &&
           !op->attr.average_pool.pad_h && !op->attr.average_pool.pad_w &&
           given_scale(walk, op_output(walk->from, op, 0), &scale) && same_scale(&x->scale, &scale);
}

void given_note(struct walk *walk, const struct op *op, const char *why)
{
    struct quantisation *how = walk->how;
    if (!how->given || !walk->source)
        return;
    how->keep[how->keep_count] = op->layer;
    how->why[how->keep_count++] = why;
}

/* Is a real number so many whole steps, as exactly as fp32 says it? */
static bool is_whole(double steps, double tolerance)
{
    return fabs(steps - rint(steps)) <= tolerance;
}

/* The largest weight is k steps: are all of them whole then? */
static bool is_grid(const struct channel_weights *w, double step)
{
    static const double ROUNDED = 4e-5; /* 127 steps of which each has 24 bits, twice */
    for (int64_t i = 0; i < w->count; i++)
        if (!is_whole((double)w->values[i * w->stride] * w->factor / step, ROUNDED))
            return false;
    return true;
}

bool given_step(const struct channel_weights *w, double bias, double x_scale, double *step)
{
    double most = 0;
    bool found = false;
    for (int64_t i = 0; i < w->count; i++)
        most = fmax(most, fabs((double)w->values[i * w->stride] * w->factor));
    if (!(most > (double)FLT_MIN)) {
        *step = weight_step(0, bias, x_scale, 8, false);
        return true;
    }
    for (int32_t k = 1; k <= INT8_WEIGHT_MOST; k++) {
        double level = bias / (x_scale * most / k);
        if (!is_grid(w, most / k) || fabs(level) > INT8_BIAS_MOST / 2)
            continue;
        found = true;
        *step = most / k;
        if (is_whole(level, 1e-4 + 4e-7 * fabs(level)))
            break;
    }
    return found;
}

void given_other(struct walk *walk, const struct op *op)
{
    switch (op->kind) {
    case OP_conv_t: given_note(walk, op, "transposed convolutions have no form in integers"); break;
    case OP_matmul: given_note(walk, op, "both of its factors are data"); break;
    case OP_lstm:
    case OP_gru:
    case OP_rnn: given_note(walk, op, "recurrent layers have no form in integers"); break;
    default: break;
    }
}
