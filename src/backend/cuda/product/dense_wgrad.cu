/* dense_wgrad.cu: gradients of weights through cuBLASLt, and the update of dense_sgd as a product
 * that adds to the weights. */
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/ops/transpose.h"
#include "backend/cuda/product/activation_grad.h"
#include "backend/cuda/product/dense_blas.h"
#include "backend/cuda/product/dgrad_update.h"

/* Where the factors of the gradient of weights lie turned. */
static float *turned_inputs(const struct call *call, const struct room *room)
{
    return call->slope ? call->slope->inputs : (float *)room->spare[0];
}

static float *turned_gradient(const struct call *call, const struct room *room)
{
    return call->slope ? call->slope->turned : (float *)room->spare[1];
}

/* Is there something to turn? A slope has turned the gradient. */
static bool turns_here(const struct call *call, const struct queue *queue)
{
    return blas_is_tf32(queue->blas) && dense_room_turns(call->program, call->op);
}

static void turn_factors(const struct call *call, struct queue *queue, const struct room *room)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 0, 1), o = call_dim(call, 1, 1);
    const struct turned of_x = {call_reals(call, 0), i, turned_inputs(call, room)};
    const struct turned of_dy = {call_reals(call, 1), o, turned_gradient(call, room)};
    if (turns_here(call, queue))
        turn_matrices(queue, n, dense_blas_turned_step(n), &of_x, call->slope ? NULL : &of_dy);
}

/* dw[i, o] from x[n, i] and dy[n, o], or from both of them turned */
static struct product product_outer(const struct call *call, const struct queue *queue,
                                    const struct room *room, struct cells x, struct cells dy)
{
    struct product product = {};
    product.m = call_dim(call, 1, 1);
    product.n = call_dim(call, 0, 1);
    product.k = call_dim(call, 0, 0);
    product.b_turned = true;
    if (turns_here(call, queue)) {
        x.data = turned_inputs(call, room);
        dy.data = turned_gradient(call, room);
        product.a_turned = true;
        product.b_turned = false;
        product.a_step = product.b_step = dense_blas_turned_step(product.k);
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

/* The product is the gradient of weights, or its negative if a slope has turned one factor: it is
 * added, times the rate. */
static void set_rate(const struct call *call, struct queue *queue, const struct room *room,
                     struct product *product)
{
    const float *rate = call_reals(call, 4);
    void *one = NULL;
    if (!call->slope || !turns_here(call, queue)) {
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
    const struct room room = dense_room(call, queue, call->workspace);
    const struct cells x = dense_factor(call, queue, 0, &room);
    const struct cells dy = dense_factor(call, queue, 1, &room);
    struct product product = product_outer(call, queue, &room, x, dy);
    turn_factors(call, queue, &room);
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
enum way { WAY_BLAS, WAY_THIN };

static void make_dx_blas(const struct call *call, struct queue *queue, struct cells dy,
                         struct cells w, const struct room *room)
{
    struct product down =
        product_turned(dy, w, call_dim(call, 0, 0), call_dim(call, 2, 0), call_dim(call, 2, 1));
    set_result(&down, call_cells(call, 7));
    blas_multiply(queue, &down, room->product);
}

/* … all of it, or for the next op in pieces */
static void make_dx_thin(const struct call *call, struct queue *queue, const struct room *room)
{
    const struct thin thin = thin_of(call->program, call->op);
    float *pieces = call->below ? (float *)call->below->pieces.data : room->pieces;
    thin_multiply(queue, &thin, call_reals(call, 2), call_reals(call, 1), pieces);
    if (!call->below)
        thin_finish(queue, &thin, pieces, NULL, ACTIVATION_NONE, call_reals(call, 7));
}

/* b -= rate · Σ dy, from what the slope has left */
static void update_bias(const struct call *call, struct queue *queue)
{
    if (call_has(call, 6))
        sum_rows(queue, call->slope->chunks, call_dim(call, 2, 1), reduce_value{call->slope->sums},
                 to_bias{call_reals(call, 6), call_reals(call, 4)});
}

/* dx and the update of the weights in one pass. */
static void descend_layer(const struct call *call, struct queue *queue)
{
    const struct room room = dense_room(call, queue, call->workspace);
    float *pieces = call->below ? (float *)call->below->pieces.data : room.pieces;
    const struct descend descend = {thin_of(call->program, call->op),
                                    call_has(call, 7),
                                    call_reals(call, 0),
                                    call_reals(call, 1),
                                    call->slope->turned,
                                    call->slope->step,
                                    call_reals(call, 4),
                                    call_reals(call, 5),
                                    pieces};
    descend_pass(queue, &descend);
    if (descend.down && !call->below)
        thin_finish(queue, &descend.thin, pieces, NULL, ACTIVATION_NONE, call_reals(call, 7));
    cudaStream_t stream = queue_part(queue);
    update_bias(call, queue);
    queue_return(queue, stream);
}

/* Nothing waits for the update but what follows the step, so it is done aside, unless a factor was
 * rounded to where the next op rounds its own. dx is made with the weights as they were: the update
 * waits for it, or where dx reads a copy of the weights, the copy does. What the update needs
 * beside its product is not held up by cuBLASLt's dx; ours is over sooner than that is begun. */
static void update_layer(const struct call *call, struct queue *queue, enum way way)
{
    const int64_t n = call_dim(call, 0, 0), o = call_dim(call, 2, 1);
    const float *rate = call_reals(call, 4);
    const bool rounds = call->narrow && (!call_is_narrow(call, 0) || !call_is_narrow(call, 1));
    const struct room here = dense_room(call, queue, call->workspace);
    const struct cells x = dense_factor(call, queue, 0, &here);
    const struct cells dy = dense_factor(call, queue, 1, &here);
    const struct cells w = dense_factor(call, queue, 2, &here);

    if (way == WAY_THIN && call->slope && call->slope->turns) {
        descend_layer(call, queue);
        return;
    }
    if (way == WAY_THIN && call_has(call, 7))
        make_dx_thin(call, queue, &here);
    cudaStream_t stream = rounds ? queue->stream : queue_part(queue);
    const struct room room = queue->aside ? dense_room(call, queue, call->aside) : here;
    cudaStream_t side = queue_twin(queue);
    if (call_has(call, 6) && call->slope)
        update_bias(call, queue);
    else if (call_has(call, 6))
        sum_rows_split(queue, n, o, cells_value{call_cells(call, 1)},
                       to_bias{call_reals(call, 6), rate},
                       queue->aside ? (float *)call->twin : here.sums);
    const bool beside = call->slope && turns_here(call, queue);
    if (beside) /* its place for that is read by no update before this one */
        turn_factors(call, queue, &room);
    queue_return(queue, side);
    struct product update = product_outer(call, queue, &room, x, dy);
    if (!beside)
        turn_factors(call, queue, &room);
    set_rate(call, queue, &room, &update);
    set_result(&update, call_cells(call, 5));
    if (beside)
        queue_meet(queue);
    if (call->narrow)
        blas_multiply(queue, &update, room.product);
    queue_return(queue, stream);

    if (way == WAY_BLAS && call_has(call, 7))
        make_dx_blas(call, queue, dy, w, &here);
    if (!rounds)
        queue_part(queue);
    if (!call->narrow)
        blas_multiply(queue, &update, room.product);
    if (!beside)
        queue_meet(queue);
    narrow_refresh(call, queue);
    queue_return(queue, stream);
}

void launch_dense_sgd_blas(const struct call *call, struct queue *queue)
{
    update_layer(call, queue, WAY_BLAS);
}

void launch_dense_sgd_thin(const struct call *call, struct queue *queue)
{
    update_layer(call, queue, WAY_THIN);
}
