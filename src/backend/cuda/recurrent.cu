/* recurrent.cu: the way back from the sums of all steps of a recurrent layer to what made them. The
 * gradients of the weights have a depth of all steps of all samples, so they are cut into pieces.
 */
#include "backend/cuda/gemm.h"
#include "backend/cuda/recurrent.h"

/* The state each step started from, by column: y one step earlier, h0 at the first. Where a
 * sequence has ended this is not it, but the gates' gradients are 0 there. */
struct state_before {
    const float *y, *h0; /* h0 may be NULL */
    int64_t steps, hidden;
    static constexpr bool along_depth = false;
    __device__ float at(int64_t position, int64_t depth) const
    {
        uint32_t step;
        const int64_t sample = split_number(depth, (uint32_t)steps, &step);
        if (step > 0)
            return y[(depth - 1) * hidden + position];
        return h0 ? h0[sample * hidden + position] : 0.0f;
    }
};

/* What turns a product into a sum over depth. */
struct ones {
    static constexpr bool along_depth = true;
    __device__ float at(int64_t, int64_t) const
    {
        return 1.0f;
    }
};

/* Workspace of sums_grad: pieces of the largest product. */
uint64_t workspace_sums_grad(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, 0)].shape;
    const struct shape *wh = &program->tensors[op_input(program, op, 2)].shape;
    uint64_t most = 0;
    for (int64_t rows : {x->dim[2], wh->dim[0], (int64_t)1}) {
        const int64_t all = wh->dim[1];
        const uint64_t bytes = (uint64_t)gemm_pieces(rows, all, x->dim[0] * x->dim[1]) *
                               (uint64_t)(rows * all) * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    return most;
}

void sums_grad(const struct call *call, struct queue *queue, const float *h0, const float *dgates,
               const float *dsums, bool accumulate)
{
    const int64_t n = call_dim(call, 0, 0), steps = call_dim(call, 0, 1), in = call_dim(call, 0, 2);
    const int64_t hidden = call_dim(call, 2, 0), all = call_dim(call, 2, 1);
    const int32_t dx = call->op->inputs, dwx = dx + 1, dwh = dx + 2, dbx = dx + 3, dbh = dx + 4;
    float *parts = (float *)call->workspace;
    const struct state_before before = {call_reals(call, 3), h0, steps, hidden};

    if (call_has(call, dx))
        gemm(queue, n * steps, in, all, by_row{dgates, all}, by_row{call_reals(call, 1), all},
             to_layer{call_reals(call, dx), in, NULL, ACTIVATION_NONE});
    gemm_deep(queue, in, all, n * steps, by_column{call_reals(call, 0), in}, by_column{dgates, all},
              to_gradient{call_reals(call, dwx), all, 1.0f, accumulate}, parts);
    gemm_deep(queue, hidden, all, n * steps, before, by_column{dsums, all},
              to_gradient{call_reals(call, dwh), all, 1.0f, accumulate}, parts);
    gemm_deep(queue, 1, all, n * steps, ones{}, by_column{dgates, all},
              to_gradient{call_reals(call, dbx), 0, 1.0f, accumulate}, parts);
    gemm_deep(queue, 1, all, n * steps, ones{}, by_column{dsums, all},
              to_gradient{call_reals(call, dbh), 0, 1.0f, accumulate}, parts);
}
