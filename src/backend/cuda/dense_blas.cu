/* dense_blas.cu: the GEMM family through cuBLASLt: bias and relu in the product's epilogue, and the
 * update of dense_sgd as a product that adds to the weights. Where factors are kept in 16 bits
 * (bf16, fp16) sums and weights are fp32 all the same.
 *
 * cuBLASLt counts by columns: our y[n, o] = x[n, i]·W[i, o] is its yᵀ = Wᵀ·xᵀ, the same bytes. */
#include "backend/cuda/activation.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/descend.h"
#include "backend/cuda/families.h"
#include "backend/cuda/few.h"
#include "backend/cuda/narrow.h"
#include "backend/cuda/reduce.h"
#include "backend/cuda/slope.h"
#include "backend/cuda/turn.h"
#include "backend/cuda/update.h"

/* What the products need beside their operands: factors in 16 bits when they are not kept so; in
 * tf32, for the gradient of weights, both factors turned: the matrix units take numbers of 32 bits
 * in the order of the sum only, here the order of the samples, and cuBLASLt is half as fast
 * without. */
enum spare { SPARE_NONE, SPARE_TURNED, SPARE_ROUNDED };

/* A workspace as these kernels use it: alpha and beta, the parts of a bias's gradient, what the
 * product may take, one spare place for each of the first three operands, and the pieces of a thin
 * product. */
struct room {
    float *factors, *sums;
    void *product;
    char *spare[3];
    float *pieces;
};

enum { FACTORS_BYTES = 256, TURNS_FROM = 512, TURNED_STEP = 8 };

static uint64_t padded(uint64_t bytes)
{
    return (bytes + FACTORS_BYTES - 1) / FACTORS_BYTES * FACTORS_BYTES;
}

static const struct tensor *tensor_of(const struct program *program, const struct op *op,
                                      int32_t operand)
{
    return &program->tensors[program->operands[op->first + operand]];
}

static uint64_t sums_bytes(const struct program *program, const struct op *op)
{
    return op->kind == OP_dense_sgd ? sum_rows_bytes(tensor_of(program, op, 1)->shape.dim[1]) : 0;
}

uint64_t dense_blas_twin_bytes(const struct program *program, const struct op *op)
{
    return sums_bytes(program, op);
}

/* Is it a gradient of weights over enough samples for turning to pay? */
static bool turns(const struct program *program, const struct op *op)
{
    const int64_t *x = tensor_of(program, op, 0)->shape.dim;
    const int64_t *dy = tensor_of(program, op, 1)->shape.dim;
    return (op->kind == OP_outer || op->kind == OP_dense_sgd) && x[0] >= TURNS_FROM &&
           x[1] >= TURNS_FROM && dy[1] >= TURNS_FROM;
}

/* The op's product with a matrix of weights: of dense_sgd the gradient of its input. */
static struct thin thin_of(const struct program *program, const struct op *op)
{
    const int64_t *w = tensor_of(program, op, op->kind == OP_dense_sgd ? 2 : 1)->shape.dim;
    const bool turned = op->kind != OP_dense;
    return {tensor_of(program, op, 0)->shape.dim[0], w[turned ? 0 : 1], w[turned ? 1 : 0], turned};
}

/* Does one pass take it, once a slope has left the gradient turned? */
static bool descends(const struct device *device, const struct program *program,
                     const struct op *op)
{
    if (device->precision != PRECISION_TF32 || op->kind != OP_dense_sgd)
        return false;
    const struct thin thin = thin_of(program, op);
    return device->warpgroups && thin_takes(&thin) && descend_takes(&thin);
}

bool dense_blas_turns_inputs(const struct device *device, const struct program *program,
                             const struct op *op)
{
    return device->precision == PRECISION_TF32 && turns(program, op);
}

bool dense_blas_turns(const struct device *device, const struct program *program,
                      const struct op *op)
{
    return dense_blas_turns_inputs(device, program, op) || descends(device, program, op);
}

int64_t dense_blas_turned_step(int64_t samples)
{
    return (samples + TURNED_STEP - 1) / TURNED_STEP * TURNED_STEP;
}

static uint64_t spare_bytes(enum spare spare, const struct program *program, const struct op *op,
                            int32_t operand)
{
    if (operand >= op->inputs || op_input(program, op, operand) < 0)
        return 0;
    const struct tensor *tensor = tensor_of(program, op, operand);
    if (spare == SPARE_ROUNDED)
        return padded(tensor->bytes / 2);
    if (spare == SPARE_TURNED && operand < 2 && turns(program, op))
        return padded(
            (uint64_t)(tensor->shape.dim[1] * dense_blas_turned_step(tensor->shape.dim[0])) *
            sizeof(float));
    return 0;
}

template <enum spare SPARE>
static uint64_t workspace_blas(const struct program *program, const struct op *op)
{
    uint64_t bytes = FACTORS_BYTES + padded(sums_bytes(program, op)) + PRODUCT_BYTES;
    for (int32_t operand = 0; operand < 3; operand++)
        bytes += spare_bytes(SPARE, program, op, operand);
    return bytes;
}

static uint64_t workspace_thin(const struct program *program, const struct op *op)
{
    const struct thin thin = thin_of(program, op);
    return workspace_blas<SPARE_TURNED>(program, op) + thin_bytes(&thin);
}

static struct room room_of(const struct call *call, const struct queue *queue, void *workspace)
{
    const enum spare spare = call->narrow                ? SPARE_ROUNDED
                             : blas_is_tf32(queue->blas) ? SPARE_TURNED
                                                         : SPARE_NONE;
    struct room room;
    char *at = (char *)workspace;
    room.factors = (float *)at;
    at += FACTORS_BYTES;
    room.sums = (float *)at;
    at += padded(sums_bytes(call->program, call->op));
    room.product = at;
    at += PRODUCT_BYTES;
    for (int32_t operand = 0; operand < 3; operand++) {
        room.spare[operand] = at;
        at += spare_bytes(spare, call->program, call->op, operand);
    }
    room.pieces = (float *)at;
    return room;
}

/* An operand as a factor of a product: as it is kept, or rounded. */
static struct cells factor_of(const struct call *call, struct queue *queue, int32_t operand,
                              const struct room *room)
{
    const struct cells kept = call_cells(call, operand);
    if (!call->narrow || precision_is_narrow(kept.type))
        return kept;
    if (call_tensor(call, operand)->role == ROLE_PARAM)
        return narrow_copy(call->narrow, call_tensor(call, operand));
    const struct cells factor = {room->spare[operand], call->narrow->type};
    narrow_cast(queue, call_count(call, operand), kept, factor);
    return factor;
}

static void set_factors_of(struct product *product, struct cells a, struct cells b)
{
    product->a = a.data;
    product->b = b.data;
    product->in = a.type;
}

static void set_result(struct product *product, struct cells d)
{
    product->d = d.data;
    product->out = d.type;
}

/* Bias and activation; what the epilogue has not is a pass of its own. */
static void finish_layer(const struct call *call, struct queue *queue, struct product *product,
                         enum activation function)
{
    const struct cells y = call_cells(call, 3);
    set_result(product, y);
    if (call_has(call, 2))
        product->bias = precision_is_narrow(y.type)
                            ? narrow_copy(call->narrow, call_tensor(call, 2)).data
                            : call_reals(call, 2);
    product->relu = function == ACTIVATION_RELU;
    blas_multiply(queue, product, room_of(call, queue, call->workspace).product);
    if (function != ACTIVATION_NONE && function != ACTIVATION_RELU)
        narrow_activate(queue, call_count(call, 3), function, 0.0f, y, y);
}

static void launch_dense_blas(const struct call *call, struct queue *queue)
{
    const struct room room = room_of(call, queue, call->workspace);
    struct product product = {};
    product.m = call_dim(call, 1, 1);
    product.n = call_dim(call, 0, 0);
    product.k = call_dim(call, 1, 0);
    set_factors_of(&product, factor_of(call, queue, 1, &room), factor_of(call, queue, 0, &room));
    finish_layer(call, queue, &product, (enum activation)call->op->attr.dense.activation);
}

/* y[n, i] = x[n, o]·Wᵀ, the gradient of a layer's input among them */
static struct product product_turned(struct cells x, struct cells w, int64_t n, int64_t i,
                                     int64_t o)
{
    struct product product = {};
    product.m = i;
    product.n = n;
    product.k = o;
    product.a_turned = true;
    set_factors_of(&product, w, x);
    return product;
}

static void launch_dense_t_blas(const struct call *call, struct queue *queue)
{
    const struct room room = room_of(call, queue, call->workspace);
    const struct cells x = factor_of(call, queue, 0, &room);
    const struct cells w = factor_of(call, queue, 1, &room);
    struct product product =
        product_turned(x, w, call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1));
    finish_layer(call, queue, &product, (enum activation)call->op->attr.dense_t.activation);
}

static const float *bias_of(const struct call *call)
{
    return call_has(call, 2) ? call_reals(call, 2) : NULL;
}

/* dense and dense_t, whose attributes and operands are alike */
static void launch_layer_thin(const struct call *call, struct queue *queue)
{
    const struct thin thin = thin_of(call->program, call->op);
    float *pieces = room_of(call, queue, call->workspace).pieces;
    thin_multiply(queue, &thin, call_reals(call, 1), call_reals(call, 0), pieces);
    thin_finish(queue, &thin, pieces, bias_of(call),
                (enum activation)call->op->attr.dense.activation, call_reals(call, 3));
}

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
    return blas_is_tf32(queue->blas) && turns(call->program, call->op);
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

static void launch_outer_blas(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.outer;
    const struct room room = room_of(call, queue, call->workspace);
    const struct cells x = factor_of(call, queue, 0, &room);
    const struct cells dy = factor_of(call, queue, 1, &room);
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
    const struct room room = room_of(call, queue, call->workspace);
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
template <enum way WAY>
static void launch_dense_sgd_blas(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), o = call_dim(call, 2, 1);
    const float *rate = call_reals(call, 4);
    const bool rounds = call->narrow && (!call_is_narrow(call, 0) || !call_is_narrow(call, 1));
    const struct room here = room_of(call, queue, call->workspace);
    const struct cells x = factor_of(call, queue, 0, &here);
    const struct cells dy = factor_of(call, queue, 1, &here);
    const struct cells w = factor_of(call, queue, 2, &here);

    if (WAY == WAY_THIN && call->slope && call->slope->turns) {
        descend_layer(call, queue);
        return;
    }
    if (WAY == WAY_THIN && call_has(call, 7))
        make_dx_thin(call, queue, &here);
    cudaStream_t stream = rounds ? queue->stream : queue_part(queue);
    const struct room room = queue->aside ? room_of(call, queue, call->aside) : here;
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

    if (WAY == WAY_BLAS && call_has(call, 7))
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

#define ROW(kind, name, launch, workspace, aside)                                                  \
    {                                                                                              \
        OP_##kind, #kind "_" name, launch, workspace, workspace, aside, aside != 0                 \
    }
#define ROWS(type, spare)                                                                          \
    {                                                                                              \
        ROW(dense, type "_cublaslt", launch_dense_blas, workspace_blas<spare>, 0),                 \
            ROW(dense_t, type "_cublaslt", launch_dense_t_blas, workspace_blas<spare>, 0),         \
            ROW(outer, type "_cublaslt", launch_outer_blas, workspace_blas<spare>, 0),             \
            ROW(dense_sgd, type "_cublaslt", launch_dense_sgd_blas<WAY_BLAS>,                      \
                workspace_blas<spare>, ASIDE_DENSE_SGD)                                            \
    }

static const struct kernel kernels[PRECISION_COUNT][4] = {
    ROWS("f32", SPARE_NONE), ROWS("tf32", SPARE_TURNED), ROWS("bf16", SPARE_ROUNDED),
    ROWS("f16", SPARE_ROUNDED)};

/* … with products of our own; the update of dense_sgd is cuBLASLt's all the same. */
static const struct kernel thin_kernels[] = {
    ROW(dense, "tf32_thin", launch_layer_thin, workspace_thin, 0),
    ROW(dense_t, "tf32_thin", launch_layer_thin, workspace_thin, 0),
    ROW(dense_sgd, "tf32_thin", launch_dense_sgd_blas<WAY_THIN>, workspace_thin, ASIDE_DENSE_SGD)};

/* Does the op multiply by a matrix of weights? */
static bool multiplies(const struct program *program, const struct op *op)
{
    return op->kind == OP_dense || op->kind == OP_dense_t ||
           (op->kind == OP_dense_sgd && op_output(program, op, 2) >= 0);
}

bool dense_blas_thin(const struct device *device, const struct program *program,
                     const struct op *op, struct thin *thin)
{
    if (device->precision != PRECISION_TF32 || !multiplies(program, op))
        return false;
    *thin = thin_of(program, op);
    return device->warpgroups && thin_takes(thin);
}

static const struct kernel *find_kernel(const struct device *device, const struct program *program,
                                        const struct op *op)
{
    struct thin thin;
    const struct kernel *lean = dense_lean_kernel(device, program, op);
    if (lean)
        return lean;
    const struct kernel *handful = dense_handful_kernel(device, program, op);
    if (handful)
        return handful;
    return dense_blas_thin(device, program, op, &thin) || descends(device, program, op)
               ? kernel_in(thin_kernels, op->kind)
               : kernel_in(kernels[device->precision], op->kind);
}

const struct kernel *dense_blas_kernel(const struct device *device, const struct program *program,
                                       const struct op *op)
{
    /* Below, ours are faster; of layers of few inputs so they are for up to so many samples, and of
     * products that few.h has, with up to so many inputs. */
    enum { WEIGHTS_LEAST = 1024, DEPTH_LEAST = 16, SHALLOW_SAMPLES = 12, FEW_INPUTS = 512 };
    const struct kernel *kernel = device->blas ? find_kernel(device, program, op) : NULL;
    if (!kernel)
        return NULL;
    const int32_t matrix = op->kind == OP_outer ? 2 : op->kind == OP_dense_sgd ? 2 : 1;
    const struct tensor *w = tensor_of(program, op, matrix);
    if (w->shape.dim[0] * w->shape.dim[1] < WEIGHTS_LEAST)
        return NULL;
    if (precision_is_narrow(device->precision))
        return kernel;
    const int64_t samples = tensor_of(program, op, 0)->shape.dim[0];
    if (dense_lean_shallow(device, program, op))
        return samples > SHALLOW_SAMPLES ? kernel : NULL;
    if (op->kind == OP_dense && w->shape.dim[0] < DEPTH_LEAST)
        return NULL;
    const bool few =
        few_fits(samples, w->shape.dim[0], w->shape.dim[1]) && w->shape.dim[0] <= FEW_INPUTS;
    return few ? NULL : kernel;
}
