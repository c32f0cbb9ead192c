/* dense_blas.cu: the GEMM family through cuBLASLt: bias and relu in the product's epilogue, and the
 * update of dense_sgd as a product that adds to the weights. Where factors are kept in 16 bits
 * (bf16, fp16) sums and weights are fp32 all the same.
 *
 * cuBLASLt counts by columns: our y[n, o] = x[n, i]·W[i, o] is its yᵀ = Wᵀ·xᵀ, the same bytes. */
#include "backend/cuda/activation.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/families.h"
#include "backend/cuda/narrow.h"
#include "backend/cuda/reduce.h"
#include "backend/cuda/update.h"

/* A workspace as these kernels use it: alpha and beta, the parts of a bias's gradient, what the
 * product may take; then, not aside, both factors in 16 bits when they are not kept so. */
struct room {
    float *factors, *sums;
    void *product;
    char *rounded[2];
};

enum { FACTORS_BYTES = 256 };

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

static uint64_t aside_blas(const struct program *program, const struct op *op)
{
    return FACTORS_BYTES + padded(sums_bytes(program, op)) + PRODUCT_BYTES;
}

static uint64_t workspace_blas(const struct program *program, const struct op *op)
{
    return aside_blas(program, op) + padded(tensor_of(program, op, 0)->bytes / 2) +
           padded(tensor_of(program, op, 1)->bytes / 2);
}

static struct room room_of(const struct call *call, void *workspace)
{
    struct room room;
    char *at = (char *)workspace;
    room.factors = (float *)at;
    at += FACTORS_BYTES;
    room.sums = (float *)at;
    at += padded(sums_bytes(call->program, call->op));
    room.product = at;
    room.rounded[0] = at + PRODUCT_BYTES;
    room.rounded[1] = room.rounded[0] + padded(call_tensor(call, 0)->bytes / 2);
    return room;
}

/* An operand as a factor of a product: as it is kept, or rounded; `rounded` says where to. */
static struct cells factor_of(const struct call *call, struct queue *queue, int32_t operand,
                              char *rounded)
{
    const struct cells kept = call_cells(call, operand);
    if (!call->narrow || precision_is_narrow(kept.type))
        return kept;
    if (call_tensor(call, operand)->role == ROLE_PARAM)
        return narrow_copy(call->narrow, call_tensor(call, operand));
    const struct cells factor = {rounded, call->narrow->type};
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
    blas_multiply(queue, product, room_of(call, call->workspace).product);
    if (function != ACTIVATION_NONE && function != ACTIVATION_RELU)
        narrow_activate(queue, call_count(call, 3), function, 0.0f, y, y);
}

static void launch_dense_blas(const struct call *call, struct queue *queue)
{
    const struct room room = room_of(call, call->workspace);
    struct product product = {};
    product.m = call_dim(call, 1, 1);
    product.n = call_dim(call, 0, 0);
    product.k = call_dim(call, 1, 0);
    set_factors_of(&product, factor_of(call, queue, 1, room.rounded[1]),
                   factor_of(call, queue, 0, room.rounded[0]));
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
    const struct room room = room_of(call, call->workspace);
    const struct cells x = factor_of(call, queue, 0, room.rounded[0]);
    const struct cells w = factor_of(call, queue, 1, room.rounded[1]);
    struct product product =
        product_turned(x, w, call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1));
    finish_layer(call, queue, &product, (enum activation)call->op->attr.dense_t.activation);
}

/* dw[i, o] from x[n, i] and dy[n, o] */
static struct product product_outer(struct cells x, struct cells dy, float *dw, int64_t n,
                                    int64_t i, int64_t o)
{
    struct product product = {};
    product.m = o;
    product.n = i;
    product.k = n;
    product.b_turned = true;
    set_factors_of(&product, dy, x);
    set_result(&product, cells{dw, PRECISION_FP32});
    return product;
}

static __global__ void factors_set(float alpha, const float *rate, float beta, float *factors)
{
    factors[0] = rate ? -*rate : alpha;
    factors[1] = beta;
}

static void set_factors(struct queue *queue, float alpha, const float *rate, float beta,
                        float *factors)
{
    enqueue(queue, factors_set, dim3(1), dim3(1), alpha, rate, beta, factors);
}

static void launch_outer_blas(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.outer;
    const struct room room = room_of(call, call->workspace);
    const struct cells x = factor_of(call, queue, 0, room.rounded[0]);
    const struct cells dy = factor_of(call, queue, 1, room.rounded[1]);
    struct product product = product_outer(x, dy, call_reals(call, 2), call_dim(call, 0, 0),
                                           call_dim(call, 0, 1), call_dim(call, 1, 1));
    if (attr.scale != 1.0f || attr.accumulate) {
        set_factors(queue, attr.scale, NULL, attr.accumulate ? 1.0f : 0.0f, room.factors);
        product.factors = room.factors;
    }
    blas_multiply(queue, &product, room.product);
}

/* b -= rate · Σ dy; whoever has the first column also writes the factors of the update. */
struct to_bias {
    float *b;
    const float *rate;
    float *factors;
    __device__ void put(int64_t, int64_t col, float sum) const
    {
        b[col] = update_sgd(b[col], sum, *rate);
        if (col == 0) {
            factors[0] = -*rate;
            factors[1] = 1.0f;
        }
    }
};

/* dx comes first: it is made with the weights as they were. Nothing waits for the update but what
 * follows the step, so it is done aside, unless a factor is where the next op rounds its own. */
static void launch_dense_sgd_blas(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 2, 0), o = call_dim(call, 2, 1);
    const float *rate = call_reals(call, 4);
    const bool rounds = call->narrow && (!call_is_narrow(call, 0) || !call_is_narrow(call, 1));
    struct room room = room_of(call, call->workspace);
    const struct cells x = factor_of(call, queue, 0, room.rounded[0]);
    const struct cells dy = factor_of(call, queue, 1, room.rounded[1]);
    if (call_has(call, 7)) {
        struct product down = product_turned(dy, factor_of(call, queue, 2, NULL), n, i, o);
        set_result(&down, call_cells(call, 7));
        blas_multiply(queue, &down, room.product);
    }
    cudaStream_t stream = rounds ? queue->stream : queue_part(queue);
    if (queue->aside)
        room = room_of(call, call->aside);
    if (call_has(call, 6))
        sum_rows_split(queue, n, o, cells_value{call_cells(call, 1)},
                       to_bias{call_reals(call, 6), rate, room.factors}, room.sums);
    else
        set_factors(queue, 0.0f, rate, 1.0f, room.factors);
    struct product update = product_outer(x, dy, call_reals(call, 5), n, i, o);
    update.factors = room.factors;
    blas_multiply(queue, &update, room.product);
    narrow_refresh(call, queue);
    queue_return(queue, stream);
}

enum { ASIDE_DENSE_SGD = 0x7f }; /* all operands but dx */

#define ROW(kind, type, aside)                                                                     \
    {                                                                                              \
        OP_##kind, #kind "_" type "_cublaslt", launch_##kind##_blas, workspace_blas, aside_blas,   \
            aside, aside != 0                                                                      \
    }
#define ROWS(type)                                                                                 \
    {                                                                                              \
        ROW(dense, type, 0), ROW(dense_t, type, 0), ROW(outer, type, 0),                           \
            ROW(dense_sgd, type, ASIDE_DENSE_SGD)                                                  \
    }

static const struct kernel kernels[PRECISION_COUNT][4] = {ROWS("f32"), ROWS("tf32"), ROWS("bf16"),
                                                          ROWS("f16")};

const struct kernel *dense_blas_kernel(const struct device *device, const struct program *program,
                                       const struct op *op)
{
    enum {
        SAMPLES_LEAST = 13,
        WEIGHTS_LEAST = 1024,
        DEPTH_LEAST = 16
    }; /* below, ours are faster */
    const bool narrow = precision_is_narrow(device->precision);
    if (!device->blas)
        return NULL;
    for (const struct kernel &kernel : kernels[device->precision]) {
        if (kernel.kind != op->kind)
            continue;
        const int32_t matrix = op->kind == OP_outer ? 2 : op->kind == OP_dense_sgd ? 2 : 1;
        const struct tensor *w = tensor_of(program, op, matrix);
        const bool wide_bias = op->kind != OP_outer && op->kind != OP_dense_sgd &&
                               op_input(program, op, 2) >= 0 &&
                               tensor_of(program, op, 2)->role != ROLE_PARAM;
        if (w->shape.dim[0] * w->shape.dim[1] < WEIGHTS_LEAST)
            return NULL;
        if (narrow)
            return wide_bias ? NULL : &kernel;
        if (op->kind == OP_dense && w->shape.dim[0] < DEPTH_LEAST)
            return NULL;
        return tensor_of(program, op, 0)->shape.dim[0] >= SAMPLES_LEAST ? &kernel : NULL;
    }
    return NULL;
}
