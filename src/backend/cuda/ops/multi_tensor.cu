/* multi_tensor.cu: the updates of many small parameters in one kernel. A step of an optimiser is a
 * few numbers for a bias or a norm, and a launch takes longer than they do: the last of them does
 * all, from a list that the kernel is launched with. So do plain gradient descent, where its
 * updates are done on the side stream (side_stream.h), and adam. */
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/plan/kernel_families.h"

#include <cstring>

enum { MULTI_TENSOR_EACH = 4096 }; /* numbers of a block */

struct multi_tensor {
    const float *rate;
    const int32_t *steps; /* adam: updates so far */
    struct any_rule rule; /* sgd or adam */
    int32_t count;
    struct {
        float *w;
        const float *g;
        float *mean, *squares;  /* adam */
        int32_t numbers, block; /* block: the first that works on it */
    } at[MULTI_TENSOR_MOST];
};

template <bool ADAM>
static __global__ void __launch_bounds__(THREADS)
    multi_tensor_update(const __grid_constant__ struct multi_tensor all)
{
    __shared__ int32_t own;
    __shared__ float seen[2];
    const int32_t block = (int32_t)blockIdx.x, thread = (int32_t)threadIdx.x;
    if (thread < all.count && all.at[thread].block <= block &&
        (thread + 1 == all.count || all.at[thread + 1].block > block))
        own = thread;
    if (ADAM && thread >= THREADS - 2)
        seen[thread % 2] = adam_seen(all.rule.adam, thread % 2, *all.steps);
    __syncthreads();
    const auto &mine = all.at[own];
    const struct pace pace = {*all.rate, {seen[0], seen[1]}, 0};
    const int32_t from = (block - mine.block) * MULTI_TENSOR_EACH;
    const int32_t to = min(from + (int32_t)MULTI_TENSOR_EACH, mine.numbers);
#pragma unroll 4
    for (int32_t i = from + thread; i < to; i += THREADS) {
        const float w = mine.w[i], g = mine.g[i];
        if (ADAM) {
            float kept[2] = {mine.mean[i], mine.squares[i]};
            mine.w[i] = all.rule.adam.step(w, g, pace, kept);
            mine.mean[i] = kept[0];
            mine.squares[i] = kept[1];
        } else
            mine.w[i] = all.rule.sgd.step(w, g, pace, NULL);
    }
}

/* May the update be one of many? None of them clears its gradient, and they go alike. */
static bool is_plain(const struct program *program, const struct op *op, const struct op *first)
{
    enum { SMALL_BYTES = 1 << 20 };
    const bool adam = op->kind == OP_adam;
    return op->kind == first->kind && op_output(program, op, 1) < 0 &&
           program->tensors[op_input(program, op, 0)].bytes <= SMALL_BYTES &&
           op_input(program, op, 2) == op_input(program, first, 2) &&
           (adam ? memcmp(&op->attr.adam, &first->attr.adam, sizeof op->attr.adam) == 0 &&
                       op_input(program, op, AT_adam_count) ==
                           op_input(program, first, AT_adam_count)
                 : memcmp(&op->attr.sgd, &first->attr.sgd, sizeof op->attr.sgd) == 0);
}

/* The first update of the program, if it is by one of these optimisers. */
static const struct op *first_update(const struct program *program)
{
    for (int32_t o = program->parts[PART_UPDATE].from; o < program->parts[PART_UPDATE].to; o++)
        if (program->ops[o].kind == OP_sgd || program->ops[o].kind == OP_adam)
            return &program->ops[o];
    return NULL;
}

/* Calls visit(op) for each update of the program that may. */
template <typename Visit> static void each_plain(const struct program *program, Visit visit)
{
    const struct op *first = first_update(program);
    const struct op *end = program->ops + program->parts[PART_UPDATE].to;
    for (const struct op *op = first; first && op < end; op++)
        if (is_plain(program, op, first))
            visit(op);
}

/* All updates of the list that this op ends. */
void launch_multi_tensor(const struct call *call, struct queue *queue)
{
    const struct program *program = call->program;
    const struct op *last = call->op;
    const bool adam = last->kind == OP_adam;
    struct multi_tensor all = {};
    int32_t blocks = 0;
    all.rate = call_reals(call, AT_sgd_rate);
    all.steps = adam ? call_integers(call, AT_adam_count) : NULL;
    all.rule = rule_of(last);
    each_plain(program, [&](const struct op *op) {
        if (op > last)
            return;
        if (all.count == MULTI_TENSOR_MOST)
            all.count = blocks = 0; /* those were another's */
        float *const *operands = (float *const *)call->operands + (op->first - last->first);
        const int64_t numbers = shape_count(&program->tensors[op_input(program, op, 0)].shape);
        all.at[all.count++] = {operands[0],
                               operands[1],
                               adam ? operands[AT_adam_mean] : NULL,
                               adam ? operands[AT_adam_squares] : NULL,
                               (int32_t)numbers,
                               blocks};
        blocks += (int32_t)blocks_for(numbers, MULTI_TENSOR_EACH);
    });
    enqueue(queue, adam ? multi_tensor_update<true> : multi_tensor_update<false>,
            dim3((unsigned)blocks), dim3(THREADS), all);
}

/* Nothing but updates of this kind may lie between those of one step, as the first of them waits
 * for the last; and all of them are on the side stream, or none is. Those of plain sgd are where
 * there is a backward part (side_stream.cu). */
static bool may_group(const struct program *program, const struct op *first)
{
    const auto &update = program->parts[PART_UPDATE], &backward = program->parts[PART_BACKWARD];
    for (const struct op *op = first; op < program->ops + update.to; op++)
        if (op->kind != first->kind && op->kind != OP_tick)
            return false;
    return first->kind == OP_adam ||
           (first == program->ops + update.from && backward.from < backward.to);
}

bool takes_multi_tensor(const struct choice *choice)
{
    const struct op *first = first_update(choice->program);
    return first && choice->op >= first && is_plain(choice->program, choice->op, first) &&
           may_group(choice->program, first);
}
