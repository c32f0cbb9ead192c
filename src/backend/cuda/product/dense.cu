/* dense.cu: the GEMM family: dense, dense_t, outer, sum_rows, the fused backward-and-update
 * dense_sgd, and products of many pairs of matrices. All are one matrix product (gemm.h) with
 * another epilogue. */
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/small_gemm.h"

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

/* Is it a product of small_gemm.h? */
bool takes_small_gemm(const struct choice *choice)
{
    const struct program *program = choice->program;
    const struct op *op = choice->op;
    const int32_t matrix = op->kind == OP_outer || op->kind == OP_dense_sgd ? 2 : 1;
    const struct shape *w = &program->tensors[program->operands[op->first + matrix]].shape;
    const int64_t samples = program->tensors[op_input(program, op, 0)].shape.dim[0];
    return small_gemm_fits(samples, w->dim[0], w->dim[1]);
}

void launch_dense(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_dense_x, 0), i = call_dim(call, AT_dense_w, 0),
                  o = call_dim(call, AT_dense_w, 1);
    const struct to_layer finish = {call_reals(call, AT_dense_y), o, call_reals(call, AT_dense_b),
                                    (enum activation)call->op->attr.dense.activation};
    dense_product(queue, n, o, i, by_row{call_reals(call, AT_dense_x), i},
                  by_column{call_reals(call, AT_dense_w), o}, finish);
}

void launch_dense_t(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_dense_t_x, 0), i = call_dim(call, AT_dense_t_w, 0),
                  o = call_dim(call, AT_dense_t_w, 1);
    const struct to_layer finish = {call_reals(call, AT_dense_t_y), i,
                                    call_reals(call, AT_dense_t_b),
                                    (enum activation)call->op->attr.dense_t.activation};
    dense_product(queue, n, i, o, by_row{call_reals(call, AT_dense_t_x), o},
                  by_row{call_reals(call, AT_dense_t_w), o}, finish);
}

/* Of the gradients of weights, and of the biases of many samples where an op has both. */
uint64_t workspace_outer(const struct program *program, const struct op *op)
{
    const struct shape *x = &program->tensors[op_input(program, op, 0)].shape;
    const int64_t out = program->tensors[op_input(program, op, 1)].shape.dim[1];
    const uint64_t product = split_bytes(x->dim[1], out, x->dim[0]);
    const bool has_bias = op->kind == OP_dense_sgd && x->dim[0] >= SPLIT_FROM;
    const uint64_t sums = has_bias ? sum_rows_bytes(out) : 0;
    return product > sums ? product : sums;
}

void launch_outer(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_outer_x, 0), i = call_dim(call, AT_outer_x, 1),
                  o = call_dim(call, AT_outer_dy, 1);
    const struct to_gradient finish = {call_reals(call, AT_outer_dw), o, call->op->attr.outer.scale,
                                       call->op->attr.outer.accumulate != 0};
    product_split(queue, i, o, n, by_column{call_reals(call, AT_outer_x), i},
                  by_column{call_reals(call, AT_outer_dy), o}, finish, (float *)call->workspace);
}

uint64_t workspace_sum_rows(const struct program *program, const struct op *op)
{
    return sum_rows_bytes(program->tensors[op_input(program, op, 0)].shape.dim[1]);
}

void launch_sum_rows(const struct call *call, struct queue *queue)
{
    const struct to_gradient finish = {call_reals(call, AT_sum_rows_y), 0,
                                       call->op->attr.sum_rows.scale,
                                       call->op->attr.sum_rows.accumulate != 0};
    sum_rows_split(queue, call_dim(call, AT_sum_rows_x, 0), call_dim(call, AT_sum_rows_x, 1),
                   cells_value{call_cells(call, 0)}, finish, (float *)call->workspace);
}

/* dx comes first: it is made with the weights as they were. Nothing waits for the update but what
 * follows the step, so it is done on the side stream; in 16 bits the copies of the weights follow
 * it. */
void launch_dense_sgd(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_dense_sgd_x, 0), i = call_dim(call, AT_dense_sgd_w, 0),
                  o = call_dim(call, AT_dense_sgd_w, 1);
    const float *x = call_reals(call, AT_dense_sgd_x), *dy = call_reals(call, AT_dense_sgd_dy);
    float *w = call_reals(call, AT_dense_sgd_w_out), *b = call_reals(call, AT_dense_sgd_b_out),
          *dx = call_reals(call, AT_dense_sgd_dx);
    const float *rate = call_reals(call, AT_dense_sgd_rate);

    if (call_has(call, AT_dense_sgd_dx))
        dense_product(queue, n, i, o, by_row{dy, o}, by_row{w, o},
                      to_layer{dx, i, NULL, ACTIVATION_NONE});
    cudaStream_t stream = call->mixed ? queue->stream : queue_fork(queue);
    float *partial = (float *)(queue->forked ? call->side_workspace : call->workspace);
    product_split(queue, i, o, n, by_column{x, i}, by_column{dy, o}, to_weights{w, o, rate},
                  partial);
    if (call_has(call, AT_dense_sgd_b_out) && n >= SPLIT_FROM)
        sum_rows_split(queue, n, o, reduce_value{dy}, to_weights{b, 0, rate}, partial);
    else if (call_has(call, AT_dense_sgd_b_out))
        sum_rows(queue, n, o, reduce_value{dy}, to_weights{b, 0, rate});
    queue_back(queue, stream);
}

/* y = scale · sum, of one of several products */
struct to_product {
    float *y;
    int64_t rows, cols;
    float scale;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        y[(blockIdx.z * rows + row) * cols + col] = scale * sum;
    }
};

/* y[n,i,j] from the operands a and b of each n, however they lie: Left and Right say it. */
template <typename Left, typename Right>
static void products(const struct call *call, struct queue *queue, float scale)
{
    const int64_t n = call_dim(call, AT_matmul_y, 0), i = call_dim(call, AT_matmul_y, 1),
                  j = call_dim(call, AT_matmul_y, 2);
    const int64_t k = call_count(call, AT_matmul_a) / (n * i);
    for (int64_t first = 0; first < n; first += GEMM_MOST) {
        const Left left = {call_reals(call, AT_matmul_a) + first * i * k,
                           call_dim(call, AT_matmul_a, 2)};
        const Right right = {call_reals(call, AT_matmul_b) + first * k * j,
                             call_dim(call, AT_matmul_b, 2)};
        const struct to_product finish = {call_reals(call, AT_matmul_y) + first * i * j, i, j,
                                          scale};
        gemm(queue, i, j, k, one_of<Left>{left, i * k}, one_of<Right>{right, k * j}, finish,
             n - first < GEMM_MOST ? n - first : (int64_t)GEMM_MOST);
    }
}

void launch_matmul(const struct call *call, struct queue *queue)
{
    products<by_row, by_column>(call, queue, call->op->attr.matmul.scale);
}

void launch_matmul_nt(const struct call *call, struct queue *queue)
{
    products<by_row, by_row>(call, queue, call->op->attr.matmul_nt.scale);
}

void launch_matmul_tn(const struct call *call, struct queue *queue)
{
    products<by_column, by_column>(call, queue, call->op->attr.matmul_tn.scale);
}
