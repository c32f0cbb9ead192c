/* recurrent.cu: the sums of all steps of a recurrent layer with its inputs, and the backward pass
 * from them to what made them: by cuBLASLt where they are large enough for it.
 *
 * The gradients of the weights have a depth of all steps of all samples. Where they are ours that
 * is cut into pieces; they and those of the biases are one product where the gates' gradients are.
 */
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/product/blas.h"
#include "backend/cuda/product/small_gemm.h"
#include "backend/cuda/recurrent/recurrent.h"

int64_t device_has(enum cudaDeviceAttr what, int64_t on_paper)
{
    int index = 0, value = 0;
    const bool found = cudaGetDevice(&index) == cudaSuccess &&
                       cudaDeviceGetAttribute(&value, what, index) == cudaSuccess;
    return found ? value : on_paper;
}

/* What a recurrent op's products over all steps have in common. */
struct all_steps {
    int64_t rows, in, hidden, all;
    bool large; /* for cuBLASLt, which is there or not */
};

enum { BLAS_GATES = 512 }; /* below, one product of ours makes all gradients of the weights */

static struct all_steps all_steps_of(const struct program *program, const struct op *op)
{
    const int64_t *x = program->tensors[op_input(program, op, 0)].shape.dim;
    const int64_t *wh = program->tensors[op_input(program, op, 2)].shape.dim;
    const int64_t rows = x[0] * x[1];
    const bool large = wh[1] >= BLAS_GATES && !small_gemm_fits(rows, wh[1], x[2] + wh[0]);
    return {rows, x[2], wh[0], wh[1], large};
}

uint64_t workspace_inputs(const struct program *program, const struct op *op)
{
    return all_steps_of(program, op).large ? PRODUCT_BYTES : 0;
}

void sums_of_inputs(const struct call *call, struct queue *queue, float *sums, int64_t stride,
                    void *room)
{
    const struct all_steps steps = all_steps_of(call->program, call->op);
    const float *x = call_reals(call, AT_rnn_x), *wx = call_reals(call, AT_rnn_wx),
                *bx = call_reals(call, AT_rnn_bx);
    if (!queue->blas || !steps.large) {
        gemm(queue, steps.rows, steps.all, steps.in, by_row{x, steps.in}, by_column{wx, steps.all},
             to_layer{sums, stride, bx, ACTIVATION_NONE});
        return;
    }
    struct product product = {};
    product.m = steps.all;
    product.n = steps.rows;
    product.k = steps.in;
    product.a = wx;
    product.b = x;
    product.d = sums;
    product.d_step = stride;
    product.bias = bx;
    blas_multiply(queue, &product, room);
}

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

/* Workspace of sums_grad: pieces of our largest product, which has all rows; or what cuBLASLt's
 * products and the sums of the biases need, and the state before each step. */
uint64_t workspace_sums_grad(const struct program *program, const struct op *op)
{
    const struct all_steps steps = all_steps_of(program, op);
    uint64_t most = 0;
    for (int64_t rows : {steps.in + steps.hidden + 1, steps.in + 1, steps.hidden + 1}) {
        const uint64_t bytes = (uint64_t)gemm_pieces(rows, steps.all, steps.rows) *
                               (uint64_t)(rows * steps.all) * sizeof(float);
        most = max(most, bytes);
    }
    const uint64_t states = (uint64_t)(steps.rows * steps.hidden) * sizeof(float);
    return steps.large ? max(most, PRODUCT_BYTES + padded(sum_rows_bytes(steps.all)) + states)
                       : most;
}

static __global__ void states_before(int64_t rows, struct state_before before, float *states)
{
    FOR_EACH(index, rows * before.hidden)
    {
        uint32_t unit;
        const int64_t row = split_number(index, (uint32_t)before.hidden, &unit);
        states[index] = before.at(unit, row);
    }
}

/* left[k, n]ᵀ · gradients[k, m], to where it lies close together */
static void blas_wgrad(struct queue *queue, int64_t m, int64_t n, int64_t k, const float *left,
                       const float *gradients, bool accumulate, float *to, void *room)
{
    struct product product = {};
    product.m = m;
    product.n = n;
    product.k = k;
    product.a = gradients;
    product.b = left;
    product.b_transposed = true;
    product.d = to;
    product.adds = accumulate;
    blas_multiply(queue, &product, room);
}

static void blas_sums_grad(const struct call *call, struct queue *queue,
                           const struct state_before &before, const float *dgates,
                           const float *dsums, bool accumulate)
{
    const struct all_steps steps = all_steps_of(call->program, call->op);
    const int32_t dx = call->op->inputs, dwx = dx + 1, dwh = dx + 2, dbx = dx + 3, dbh = dx + 4;
    char *room = (char *)call->workspace;
    float *sums = (float *)(room + PRODUCT_BYTES);
    float *states = (float *)(room + PRODUCT_BYTES + padded(sum_rows_bytes(steps.all)));
    const auto gradient = [&](int32_t operand) {
        return to_gradient{call_reals(call, operand), steps.all, 1.0f, accumulate};
    };
    const struct to_gradient none = {};

    if (call_has(call, dx)) {
        struct product product = {};
        product.m = steps.in;
        product.n = steps.rows;
        product.k = steps.all;
        product.a = call_reals(call, AT_rnn_grad_wx);
        product.a_transposed = true;
        product.b = dgates;
        product.d = call_reals(call, dx);
        blas_multiply(queue, &product, room);
    }
    blas_wgrad(queue, steps.all, steps.in, steps.rows, call_reals(call, AT_rnn_grad_x), dgates,
               accumulate, call_reals(call, dwx), room);
    enqueue(queue, states_before, dim3(blocks_striding(steps.rows * steps.hidden)), dim3(THREADS),
            steps.rows, before, states);
    blas_wgrad(queue, steps.all, steps.hidden, steps.rows, states, dsums, accumulate,
               call_reals(call, dwh), room);
    const bool alike = call->op->kind != OP_gru_grad; /* dsums are dgates */
    sum_rows_split(queue, steps.rows, steps.all, reduce_value{dgates},
                   to_gradients{none, none, gradient(dbx), alike ? gradient(dbh) : none, 0, 0},
                   sums);
    if (!alike)
        sum_rows_split(queue, steps.rows, steps.all, reduce_value{dsums},
                       to_gradients{none, none, none, gradient(dbh), 0, 0}, sums);
}

void sums_grad(const struct call *call, struct queue *queue, const float *h0, const float *dgates,
               const float *dsums, bool accumulate)
{
    const int64_t n = call_dim(call, AT_rnn_grad_x, 0), steps = call_dim(call, AT_rnn_grad_x, 1),
                  in = call_dim(call, AT_rnn_grad_x, 2);
    const int64_t hidden = call_dim(call, AT_rnn_grad_wh, 0),
                  all = call_dim(call, AT_rnn_grad_wh, 1);
    const int32_t dx = call->op->inputs, dwx = dx + 1, dwh = dx + 2, dbx = dx + 3, dbh = dx + 4;
    const auto gradient = [&](int32_t operand) {
        return to_gradient{call_reals(call, operand), all, 1.0f, accumulate};
    };
    const auto wgrad = [&](const struct sources &sources, const float *gradients,
                           const struct to_gradients &finish) {
        gemm_deep(queue, sources.rows(), all, n * steps, sources, by_column{gradients, all}, finish,
                  (float *)call->workspace);
    };
    const float *x = call_reals(call, AT_rnn_grad_x);
    const struct state_before before = {call_reals(call, AT_rnn_grad_y), h0, steps, hidden};
    const struct to_gradient none = {};

    if (queue->blas && all_steps_of(call->program, call->op).large) {
        blas_sums_grad(call, queue, before, dgates, dsums, accumulate);
        return;
    }
    if (call_has(call, dx))
        gemm(queue, n * steps, in, all, by_row{dgates, all},
             by_row{call_reals(call, AT_rnn_grad_wx), all},
             to_layer{call_reals(call, dx), in, NULL, ACTIVATION_NONE});
    if (call->op->kind != OP_gru_grad) { /* dsums are dgates */
        wgrad(sources{x, before, in, hidden}, dgates,
              to_gradients{gradient(dwx), gradient(dwh), gradient(dbx), gradient(dbh), in, hidden});
        return;
    }
    wgrad(sources{x, before, in, 0}, dgates,
          to_gradients{gradient(dwx), none, gradient(dbx), none, in, 0});
    wgrad(sources{x, before, 0, hidden}, dsums,
          to_gradients{none, gradient(dwh), none, gradient(dbh), 0, hidden});
}
