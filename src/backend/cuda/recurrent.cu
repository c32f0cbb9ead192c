/* recurrent.cu: the way back from the sums of all steps of a recurrent layer to what made them. The
 * gradients of the weights have a depth of all steps of all samples, so they are cut into pieces;
 * they and those of the biases are one product where the gates' gradients are. */
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

/* What the sums of a step were made of, one below another: x, the state before it, and 1 for their
 * bias. */
struct sources {
    const float *x; /* [n·steps, in] */
    struct state_before before;
    int64_t in, hidden;
    static constexpr bool along_depth = false;
    int64_t rows() const
    {
        return in + hidden + 1;
    }
    __device__ float at(int64_t position, int64_t depth) const
    {
        if (position < in)
            return x[depth * in + position];
        return position < in + hidden ? before.at(position - in, depth) : 1.0f;
    }
};

/* Each row of the product to its gradient; those of the biases are alike, and either may be NULL.
 */
struct to_gradients {
    struct to_gradient dwx, dwh, dbx, dbh;
    int64_t in, hidden;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        if (row < in)
            dwx.put(row, col, sum);
        else if (row < in + hidden)
            dwh.put(row - in, col, sum);
        else {
            if (dbx.dw)
                dbx.put(0, col, sum);
            if (dbh.dw)
                dbh.put(0, col, sum);
        }
    }
};

/* Workspace of sums_grad: pieces of its largest product, which has all rows. */
uint64_t workspace_sums_grad(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, 0)].shape;
    const struct shape *wh = &program->tensors[op_input(program, op, 2)].shape;
    const int64_t all = wh->dim[1];
    uint64_t most = 0;
    for (int64_t rows : {x->dim[2] + wh->dim[0] + 1, x->dim[2] + 1, wh->dim[0] + 1}) {
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
    const auto gradient = [&](int32_t operand) {
        return to_gradient{call_reals(call, operand), all, 1.0f, accumulate};
    };
    const auto weigh = [&](const struct sources &sources, const float *gradients,
                           const struct to_gradients &finish) {
        gemm_deep(queue, sources.rows(), all, n * steps, sources, by_column{gradients, all}, finish,
                  (float *)call->workspace);
    };
    const float *x = call_reals(call, 0);
    const struct state_before before = {call_reals(call, 3), h0, steps, hidden};
    const struct to_gradient none = {};

    if (call_has(call, dx))
        gemm(queue, n * steps, in, all, by_row{dgates, all}, by_row{call_reals(call, 1), all},
             to_layer{call_reals(call, dx), in, NULL, ACTIVATION_NONE});
    if (call->op->kind != OP_gru_grad) { /* dsums are dgates */
        weigh(sources{x, before, in, hidden}, dgates,
              to_gradients{gradient(dwx), gradient(dwh), gradient(dbx), gradient(dbh), in, hidden});
        return;
    }
    weigh(sources{x, before, in, 0}, dgates,
          to_gradients{gradient(dwx), none, gradient(dbx), none, in, 0});
    weigh(sources{x, before, 0, hidden}, dsums,
          to_gradients{none, gradient(dwh), none, gradient(dbh), 0, hidden});
}
