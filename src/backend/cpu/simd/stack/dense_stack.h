/* dense_stack.h: a small stack of dense layers as one kernel: all ops of a step, for many steps,
 * without going through the list of calls.
 *
 * Two forms, by the batch:
 *   one sample    a layer's outputs are the lanes. The weights are kept twice, by input for the way
 *                 forward and by output for the way back; both get the same product when they are
 *                 updated, so that they stay equal bit for bit.
 *   a batch       a quarter of a vector is four outputs of one sample, so that samples go through
 *                 the layers side by side without waiting for each other, and few lanes are empty
 *                 at any batch. The weights are in squares of 4 × 4, again in both forms.
 * sgd is done on the way back; for other optimisers the way back leaves gradients, in the form of
 * the parameters, and the optimiser's own kernel runs over all of them as one.
 * What bounds them is the latency of the chain of layers (one sample) or the number of activations
 * (a batch): weights and activations lie in L1, or in L2. */
#ifndef PRONY_BACKEND_CPU_SIMD_STACK_DENSE_STACK_H
#define PRONY_BACKEND_CPU_SIMD_STACK_DENSE_STACK_H

#include "backend/cpu/kernel.h"
#include "base/clock.h"
#include "core/pass/stack_find.h"

/* Beyond these, ops one by one are as fast: what each costs besides its work no longer shows.
 * Weights are counted in both their forms, work as weights times samples. */
enum { STACK_WIDTH = 512, STACK_WEIGHTS = 20 << 10, STACK_WORK = 1 << 20 };
enum { STACK_STATES = 2, STACK_OPERANDS = 16 }; /* of an optimiser's op */

/* Parameters, and what the optimiser keeps of each, are blocks of one form, one behind the other:
 * w and b below are in the first, the parameters'; `span` floats on is the same of a state. */
struct stack_layer {
    int32_t in, out;
    enum activation activation;
    int64_t stride, stride_back; /* one sample: out and in, in whole vectors */
    float *w;                    /* one sample: [in][stride]. A batch: [in][out] in squares */
    float
        *back; /* one sample: [out][stride_back]. A batch: [out][in] in squares; NULL: the first */
    float *b;  /* [stride] */
    float *y;  /* one sample: [stride]. A batch: [squares of out][samples][4] */
    float *d;  /* the loss's gradient; as y, what is beyond the outputs being 0 */
    float *kept_w[1 + STACK_STATES]; /* the instance's: the parameter, then its states … */
    float *kept_b[1 + STACK_STATES]; /* … NULL: there is no bias */
    struct shape shape;              /* of kept_w … */
    bool blocked;                    /* … which may be in blocks */
};

/* A weight's places, counted from the parameters' first: in w and in back. */
struct stack_pair {
    int32_t w, back;
};

/* A watched step: the clock, read where one op's work ends and the next one's begins. The time
 * between two marks belongs to the op of the second; the first has none (-1). */
enum { STACK_MARKS = 2 * DENSE_STACK_MOST + 8 };
struct stack_marks {
    int32_t count;
    int32_t op[STACK_MARKS];
    uint64_t at_ns[STACK_MARKS];
};

struct stack;
typedef void stack_steps(struct stack *stack, int64_t steps);

struct stack {
    int32_t layers, batch;
    struct stack_layer layer[DENSE_STACK_MOST];
    stack_steps *run;
    stack_steps *watched; /* the same, with marks; of one step at a time */
    struct stack_marks marks;
    const char *name;                   /* of the kernel … */
    const struct program *program;      /* … and what it runs */
    const struct dense_stack *dense;    /* where the ops of the program are … */
    int32_t backward[DENSE_STACK_MOST]; /* … and of each layer the one of its way back; -1: none */
    int64_t plane;                      /* a batch: floats of a square of outputs of all samples */
    float *x, *next_x;                  /* one sample: [in]. A batch: [squares of in][samples][4] */
    float *target, *next_target;        /* a batch: as the last layer's y … */
    float *real;                        /* … and 1 where there is an output of a sample, else 0 */
    int32_t *rows, *next_rows;          /* [batch] */
    float *canonical;                   /* room for one matrix */
    bool trains;
    bool probabilities;       /* it stores the softmax of its outputs */
    enum op_kind loss, right; /* OP_COUNT: none */
    float loss_scale;         /* of its gradient */
    float half;               /* right_level: what is nearer than this is right */
    const struct op *schedule;
    int32_t *count; /* of updates */
    /* The optimiser's op over all parameters at once; NULL: sgd, which is done on the way back. */
    kernel_run *optimiser;
    struct call update;
    void *operands[STACK_OPERANDS];
    int64_t counts[STACK_OPERANDS];
    float rate;              /* of this update */
    int64_t span;            /* floats from a parameter to its first state */
    int64_t states;          /* of a parameter */
    int64_t into;            /* from a parameter to what takes its gradient: 0, or another block */
    struct stack_pair *pair; /* all weights that are kept in both forms */
    int64_t pairs;
    struct control *control;
    struct cursor *cursor;
    struct bound *bound_x, *bound_target, *bound_y, *bound_loss, *bound_right; /* NULL: none */
};

/* The steps of one sample whose layers fit into a vector, of one sample, and of a batch. */
struct stack_kernels {
    int64_t lanes;
    stack_steps *narrow, *wide, *batch;
    stack_steps *narrow_watched, *wide_watched, *batch_watched;
};

/* The functions of struct whole, but for `prepare`: an ISA says which kernels it has, and which the
 * machine's least ISA has, whose vectors are the narrowest. */
const char *stack_supports(const struct program *program);
uint64_t stack_bytes(const struct program *program);
void stack_prepare(struct stack *stack, const struct program *program, const struct call *calls,
                   const struct kernel *const *kernels, const struct stack_kernels *widest,
                   const struct stack_kernels *narrowest);
void stack_run(void *state, int64_t steps, bool fresh, const struct observer *observer);

/* Cross-entropy of one sample's outputs; d, as y, gets its gradient. */
float stack_cross_entropy(const struct stack *stack, const float *y, int32_t row, float *d);
/* 1 when these outputs are the right answer, else 0. */
float stack_right(const struct stack *stack, const float *y, int32_t row);
/* The rate of the next update. */
float stack_rate(const struct stack *stack);
/* An update by the optimiser's op, of the gradients that the way back has left. */
void stack_update(struct stack *stack);

/* Times what a gradient is taken from `into`: sgd takes it from the parameters, others add it up in
 * a block of zeros, which their op clears again. */
static inline float stack_factor(const struct stack *stack)
{
    return stack->optimiser ? -1 : stack_rate(stack);
}

/* The way back is done. */
static inline void stack_end_step(struct stack *stack)
{
    if (stack->optimiser)
        stack_update(stack);
    ++*stack->count;
    stack->control->step++;
}

/* The op's work ends here. Unwatched it is nothing: `watched` is known where this is inlined. */
static inline __attribute__((always_inline)) void stack_mark(struct stack *stack,
                                                             const bool watched, int32_t op)
{
    struct stack_marks *marks = &stack->marks;
    if (!watched || marks->count == STACK_MARKS)
        return;
    marks->op[marks->count] = op;
    marks->at_ns[marks->count++] = clock_ns();
}

/* The optimiser's op, or where sgd is done on the way back, the count of steps. */
static inline __attribute__((always_inline)) void stack_mark_end(struct stack *stack)
{
    stack_mark(stack, true, stack->optimiser ? stack->dense->optimiser : stack->dense->tick);
}

enum { STACK_SQUARE = 4 };

static inline int64_t stack_squares(int64_t count)
{
    return (count + STACK_SQUARE - 1) / STACK_SQUARE;
}

/* A sample's row of a bound view, [width]. */
static inline float *stack_row(const struct bound *bound, int32_t row, int32_t width)
{
    return (float *)(void *)bound->data + (int64_t)row * width;
}

/* One value a step, to a ring. */
static inline void stack_store(struct bound *bound, float value)
{
    if (!bound || !bound->data)
        return;
    uint64_t at = bound->stored++;
    if (at >= (uint64_t)bound->rows)
        at %= (uint64_t)bound->rows;
    ((float *)(void *)bound->data)[at] = value;
}

/* The plan's place in its data, for the time of one run. */
struct stack_walk {
    uint64_t at, count;
    const uint32_t *order;
};

static inline struct stack_walk stack_begin(const struct stack *stack, int64_t steps)
{
    struct cursor *cursor = stack->cursor;
    struct stack_walk walk = {(cursor->start + cursor->place) % cursor->count, cursor->count,
                              cursor->order};
    cursor->place += (uint64_t)steps * (uint64_t)stack->batch;
    return walk;
}

static inline int32_t stack_next(struct stack_walk *walk)
{
    uint64_t at = walk->at;
    walk->at = at + 1 == walk->count ? 0 : at + 1;
    return (int32_t)(walk->order ? walk->order[at] : at);
}

#endif
