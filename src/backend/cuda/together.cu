/* together.cu: the updates of many small parameters in one kernel. A step of plain gradient descent
 * is a few numbers for a bias or a norm, and a launch takes longer than they do: of the updates
 * that are done aside (aside.h) the last one does all, from a list that the kernel is launched
 * with. */
#include "backend/cuda/merge.h"
#include "backend/cuda/update.h"

#include <cstring>

enum { TOGETHER_MOST = 128, TOGETHER_EACH = 4096 }; /* updates; numbers of a block */

struct together {
    const float *rate;
    float decay;
    int32_t count;
    struct {
        float *w;
        const float *g;
        int32_t numbers, block; /* block: the first that works on it */
    } at[TOGETHER_MOST];
};

static __global__ void __launch_bounds__(THREADS)
    update_together(const __grid_constant__ struct together all)
{
    __shared__ int32_t own;
    const int32_t block = (int32_t)blockIdx.x, thread = (int32_t)threadIdx.x;
    if (thread < all.count && all.at[thread].block <= block &&
        (thread + 1 == all.count || all.at[thread + 1].block > block))
        own = thread;
    __syncthreads();
    const auto &mine = all.at[own];
    const float rate = *all.rate;
    const int32_t from = (block - mine.block) * TOGETHER_EACH;
    const int32_t to = min(from + (int32_t)TOGETHER_EACH, mine.numbers);
#pragma unroll 4
    for (int32_t i = from + thread; i < to; i += THREADS) {
        const float w = mine.w[i];
        mine.w[i] = update_sgd(w, mine.g[i] + all.decay * w, rate);
    }
}

/* May the update be one of many? None of them clears its gradient, and they go alike. */
static bool is_plain(const struct program *program, const struct op *op, const struct op *first)
{
    enum { SMALL_BYTES = 1 << 20 };
    return op->kind == OP_sgd && op_output(program, op, 1) < 0 &&
           program->tensors[op_input(program, op, 0)].bytes <= SMALL_BYTES &&
           op_input(program, op, 2) == op_input(program, first, 2) &&
           memcmp(&op->attr.sgd.decay, &first->attr.sgd.decay, sizeof(float)) == 0;
}

/* Calls visit(op) for each update of the program that may. */
template <typename Visit> static void each_plain(const struct program *program, Visit visit)
{
    const struct op *first = NULL;
    for (int32_t o = program->parts[PART_UPDATE].from; o < program->parts[PART_UPDATE].to; o++) {
        const struct op *op = &program->ops[o];
        if (!first && op->kind == OP_sgd)
            first = op;
        if (first && is_plain(program, op, first))
            visit(op);
    }
}

/* All updates of the list that this op ends. */
static void launch_together(const struct call *call, struct queue *queue)
{
    const struct program *program = call->program;
    struct together all = {call_reals(call, 2), call->op->attr.sgd.decay, 0, {}};
    int32_t blocks = 0;
    each_plain(program, [&](const struct op *op) {
        if (op > call->op)
            return;
        if (all.count == TOGETHER_MOST)
            all.count = blocks = 0; /* those were another's */
        void *const *operands = call->operands + (op->first - call->op->first);
        const int64_t numbers = shape_count(&program->tensors[op_input(program, op, 0)].shape);
        all.at[all.count++] = {(float *)operands[0], (const float *)operands[1], (int32_t)numbers,
                               blocks};
        blocks += (int32_t)blocks_for(numbers, TOGETHER_EACH);
    });
    enqueue(queue, update_together, dim3((unsigned)blocks), dim3(THREADS), all);
}

void together_choose(struct plan *plan)
{
    static const struct kernel together = {
        OP_sgd, "sgd_together_f32_cuda", launch_together, NULL, NULL, 0, false};
    const struct program *program = plan->program;
    const struct op *before = NULL;
    int32_t count = 0;
    bool aside = !plan->narrow;
    for (int32_t o = program->parts[PART_UPDATE].from; o < program->parts[PART_UPDATE].to; o++)
        aside = aside && (program->ops[o].kind == OP_sgd || program->ops[o].kind == OP_tick);
    each_plain(program, [&](const struct op *op) {
        aside = aside && plan->aside.operands[op - program->ops] == ASIDE_WHOLE;
    });
    if (aside)
        each_plain(program, [&](const struct op *op) {
            if (before && count % TOGETHER_MOST)
                merge_leave(plan, (int32_t)(before - program->ops));
            plan->kernels[op - program->ops] = &together;
            before = op;
            count++;
        });
}
