/* dense.cu: the GEMM family: dense, dense_t, outer, sum_rows and the fused backward-and-update
 * dense_sgd. All are one matrix product (gemm.h) with another ending. */
#include "backend/cuda/families.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/reduce.h"
#include "backend/cuda/update.h"

/* w -= rate · sum */
struct to_weights {
    float *w;
    int64_t stride;
    const float *rate; /* [1] */
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        float *weight = &w[row * stride + col];
        *weight = update_sgd(*weight, sum, *rate);
    }
};

void launch_dense(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 1, 0), o = call_dim(call, 1, 1);
    const struct to_layer finish = {call_reals(call, 3), o, call_reals(call, 2),
                                    (enum activation)call->op->attr.dense.activation};
    gemm(queue, n, o, i, by_row{call_reals(call, 0), i}, by_column{call_reals(call, 1), o}, finish);
}

void launch_dense_t(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 1, 0), o = call_dim(call, 1, 1);
    const struct to_layer finish = {call_reals(call, 3), i, call_reals(call, 2),
                                    (enum activation)call->op->attr.dense_t.activation};
    gemm(queue, n, i, o, by_row{call_reals(call, 0), o}, by_row{call_reals(call, 1), o}, finish);
}

void launch_outer(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 0, 1), o = call_dim(call, 1, 1);
    const struct to_gradient finish = {call_reals(call, 2), o, call->op->attr.outer.scale,
                                       call->op->attr.outer.accumulate != 0};
    gemm(queue, i, o, n, by_column{call_reals(call, 0), i}, by_column{call_reals(call, 1), o},
         finish);
}

void launch_sum_rows(const struct call *call, struct queue *queue)
{
    const struct to_gradient finish = {call_reals(call, 1), 0, call->op->attr.sum_rows.scale,
                                       call->op->attr.sum_rows.accumulate != 0};
    sum_rows(queue, call_dim(call, 0, 0), call_dim(call, 0, 1), call_reals(call, 0), finish);
}

/* dx comes first: it is made with the weights as they were. */
void launch_dense_sgd(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 2, 0), o = call_dim(call, 2, 1);
    const float *x = call_reals(call, 0), *dy = call_reals(call, 1);
    float *w = call_reals(call, 5), *b = call_reals(call, 6), *dx = call_reals(call, 7);
    const float *rate = call_reals(call, 4);

    if (call_has(call, 7))
        gemm(queue, n, i, o, by_row{dy, o}, by_row{w, o}, to_layer{dx, i, NULL, ACTIVATION_NONE});
    gemm(queue, i, o, n, by_column{x, i}, by_column{dy, o}, to_weights{w, o, rate});
    if (call_has(call, 6))
        sum_rows(queue, n, o, dy, to_weights{b, 0, rate});
}
