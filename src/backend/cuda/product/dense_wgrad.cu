/* dense_wgrad.cu: gradients of weights through cuBLASLt, and the update of dense_sgd as a product
 * that adds to the weights. */
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/ops/transpose.h"
#include "backend/cuda/product/activation_grad.h"
#include "backend/cuda/product/dense_blas.h"

/* Where the factors of the gradient of weights lie transposed. */
static float *transposed_inputs(const struct call *call, const struct room *room)
{
    return call->act_grad ? call->act_grad->inputs : (float *)room->spare[0];
}

static float *transposed_gradient(const struct call *call, const struct room *room)
{
    return call->act_grad ? call->act_grad->transposed : (float *)room->spare[1];
}

/* Is there something to transpose? An activation gradient has transposed the gradient. */
static bool transposes_here(const struct call *call, const struct queue *queue)
{
    return blas_is_tf32(queue->blas) && dense_wgrad_transposes(call->program, call->op);
}

static void transpose_factors(const struct call *call, struct queue *queue, const struct room *room)
{
    const int64_t n = call_dim(call, AT_outer_x, 0), i = call_dim(call, AT_outer_x, 1),
                  o = call_dim(call, AT_outer_dy, 1);
    const struct transposed of_x = {call_reals(call, AT_outer_x), i, transposed_inputs(call, room)};
    const struct transposed of_dy = {call_reals(call, AT_outer_dy), o,
                                     transposed_gradient(call, room)};
    if (transposes_here(call, queue))
        transpose_matrices(queue, n, dense_wgrad_step(n), &of_x, call->act_grad ? NULL : &of_dy);
}

/* dw[i, o] from x[n, i] and dy[n, o], or from both of them transposed */
static struct product product_outer(const struct call *call, const struct queue *queue,
                                    const struct room *room, struct cells x, struct cells dy)
{
    struct product product = {};
    product.m = call_dim(call, AT_outer_dy, 1);
    product.n = call_dim(call, AT_outer_x, 1);
    product.k = call_dim(call, AT_outer_x, 0);
    product.b_transposed = true;
    if (transposes_here(call, queue)) {
        x.data = transposed_inputs(call, room);
        dy.data = transposed_gradient(call, room);
        product.a_transposed = true;
        product.b_transposed = false;
        product.a_step = product.b_step = dense_wgrad_step(product.k);
    }
    set_factors_of(&product, dy, x);
    return product;
}

static __global__ void factors_set(float alpha, const float *rate, float beta, float *factors)
{
    factors[0] = rate ? -*rate : alpha;
    factors[1] = beta;
}

static void set_factors(struct queue *queue, float alpha, const float *rate, float beta,
                        float *factors, struct product *product)
{
    enqueue(queue, factors_set, dim3(1), dim3(1), alpha, rate, beta, factors);
    product->alpha = factors;
    product->beta = factors + 1;
}

static __device__ const float device_one = 1.0f;

/* The product is the gradient of weights, or its negative if an activation gradient has transposed
 * one factor: it is added, times the rate. */
static void set_rate(const struct call *call, struct queue *queue, const struct room *room,
                     struct product *product)
{
    const float *rate = call_reals(call, AT_dense_sgd_rate);
    void *one = NULL;
    if (!call->act_grad || !transposes_here(call, queue)) {
        set_factors(queue, 0.0f, rate, 1.0f, room->factors, product);
        return;
    }
    if (!queue->counting && queue->error == cudaSuccess)
        queue->error = cudaGetSymbolAddress(&one, device_one);
    product->alpha = rate;
    product->beta = (const float *)one;
}

void launch_outer_blas(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.outer;
    const struct room room = dense_workspace_of(call, queue, call->workspace);
    const struct cells x = dense_factor(call, queue, 0, &room);
    const struct cells dy = dense_factor(call, queue, 1, &room);
    struct product product = product_outer(call, queue, &room, x, dy);
    transpose_factors(call, queue, &room);
    set_result(&product, call_cells(call, 2));
    if (attr.scale != 1.0f || attr.accumulate)
        set_factors(queue, attr.scale, NULL, attr.accumulate ? 1.0f : 0.0f, room.factors, &product);
    blas_multiply(queue, &product, room.product);
}

/* b -= rate · Σ dy */
struct to_bias {
    float *b;
    const float *rate;
    __device__ void put(int64_t, int64_t col, float sum) const
    {
        b[col] = update_sgd(b[col], sum, *rate);
    }
};

/* Who makes the gradient of the input. */
enum way { WAY_BLAS, WAY_SPLIT_K };

static void make_dx_blas(const struct call *call, struct queue *queue, struct cells dy,
                         struct cells w, const struct room *room)
{
    struct product down =
        product_transposed(dy, w, call_dim(call, AT_dense_sgd_x, 0),
                           call_dim(call, AT_dense_sgd_w, 0), call_dim(call, AT_dense_sgd_w, 1));
    set_result(&down, call_cells(call, 7));
    blas_multiply(queue, &down, room->product);
}

/* … all of it, or for the next op in pieces */
static void make_dx_split_k(const struct call *call, struct queue *queue, const struct room *room)
{
    const struct split_k split_k = split_k_of(call->program, call->op);
    float *pieces = call->below ? (float *)call->below->pieces.data : room->pieces;
    split_k_multiply(queue, &split_k, call_reals(call, AT_dense_sgd_w),
                     call_reals(call, AT_dense_sgd_dy), pieces);
    if (!call->below)
        split_k_finish(queue, &split_k, pieces, NULL, ACTIVATION_NONE,
                       call_reals(call, AT_dense_sgd_dx));
}

/* b -= rate · Σ dy, from what the activation gradient has left */
static void update_bias(const struct call *call, struct queue *queue)
{
    if (call_has(call, AT_dense_sgd_b_out))
        sum_rows(
            queue, call->act_grad->chunks, call_dim(call, AT_dense_sgd_w, 1),
            reduce_value{call->act_grad->sums},
            to_bias{call_reals(call, AT_dense_sgd_b_out), call_reals(call, AT_dense_sgd_rate)});
}

/* Nothing waits for the update but what follows the step, so it is done on the side stream, unless
 * a factor was rounded to where the next op rounds its own. dx is made with the weights as they
 * were: the update waits for it, or where dx reads a copy of the weights, the copy does. What the
 * update needs beside its product is not held up by cuBLASLt's dx; ours is over sooner than that is
 * begun. */
static void update_layer(const struct call *call, struct queue *queue, enum way way)
{
    const int64_t n = call_dim(call, AT_dense_sgd_x, 0), o = call_dim(call, AT_dense_sgd_w, 1);
    const float *rate = call_reals(call, AT_dense_sgd_rate);
    const bool rounds = call->mixed && (!call_is_16bit(call, 0) || !call_is_16bit(call, 1));
    const struct room here = dense_workspace_of(call, queue, call->workspace);
    const struct cells x = dense_factor(call, queue, 0, &here);
    const struct cells dy = dense_factor(call, queue, 1, &here);
    const struct cells w = dense_factor(call, queue, 2, &here);

    if (way == WAY_SPLIT_K && call_has(call, AT_dense_sgd_dx))
        make_dx_split_k(call, queue, &here);
    cudaStream_t stream = rounds ? queue->stream : queue_fork(queue);
    const struct room room =
        queue->forked ? dense_workspace_of(call, queue, call->side_workspace) : here;
    cudaStream_t side = queue_fork_twin(queue);
    if (call_has(call, AT_dense_sgd_b_out) && call->act_grad)
        update_bias(call, queue);
    else if (call_has(call, AT_dense_sgd_b_out))
        sum_rows_split(queue, n, o, cells_value{call_cells(call, 1)},
                       to_bias{call_reals(call, AT_dense_sgd_b_out), rate},
                       queue->forked ? (float *)call->twin : here.sums);
    const bool beside = call->act_grad && transposes_here(call, queue);
    if (beside) /* its place for that is read by no update before this one */
        transpose_factors(call, queue, &room);
    queue_back(queue, side);
    struct product update = product_outer(call, queue, &room, x, dy);
    if (!beside)
        transpose_factors(call, queue, &room);
    set_rate(call, queue, &room, &update);
    set_result(&update, call_cells(call, 5));
    if (beside)
        queue_join_twin(queue);
    if (call->mixed)
        blas_multiply(queue, &update, room.product);
    queue_back(queue, stream);

    if (way == WAY_BLAS && call_has(call, AT_dense_sgd_dx))
        make_dx_blas(call, queue, dy, w, &here);
    if (!rounds)
        queue_fork(queue);
    if (!call->mixed)
        blas_multiply(queue, &update, room.product);
    if (!beside)
        queue_join_twin(queue);
    mixed_refresh(call, queue);
    queue_back(queue, stream);
}

void launch_dense_sgd_blas(const struct call *call, struct queue *queue)
{
    update_layer(call, queue, WAY_BLAS);
}

void launch_dense_sgd_split_k(const struct call *call, struct queue *queue)
{
    update_layer(call, queue, WAY_SPLIT_K);
}
