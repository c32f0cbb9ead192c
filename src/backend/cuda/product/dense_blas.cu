/* dense_blas.cu: the GEMM family through cuBLASLt: layers, with bias and relu in the product's
 * epilogue, and which kernel takes an op. Where factors are kept in 16 bits (bf16, fp16) sums and
 * weights are fp32 all the same.
 *
 * cuBLASLt counts by columns: our y[n, o] = x[n, i]·W[i, o] is its yᵀ = Wᵀ·xᵀ, the same bytes. */
#include "backend/cuda/device/activation.h"
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/product/dense_blas.h"
#include "backend/cuda/product/dgrad_update.h"
#include "backend/cuda/product/small_gemm.h"

/* Does one pass take it, once an activation gradient has left the gradient transposed? */
static bool takes_dgrad_update(const struct device *device, const struct program *program,
                               const struct op *op)
{
    if (device->precision != PRECISION_TF32 || op->kind != OP_dense_sgd)
        return false;
    const struct split_k split_k = split_k_of(program, op);
    return device->warpgroups && split_k_takes(&split_k) && dgrad_update_takes(&split_k);
}

bool dense_blas_transposes_inputs(const struct device *device, const struct program *program,
                                  const struct op *op)
{
    return device->precision == PRECISION_TF32 && dense_wgrad_transposes(program, op);
}

bool dense_blas_transposes(const struct device *device, const struct program *program,
                           const struct op *op)
{
    return dense_blas_transposes_inputs(device, program, op) ||
           takes_dgrad_update(device, program, op);
}

template <enum spare SPARE>
static uint64_t workspace_blas(const struct program *program, const struct op *op)
{
    return dense_workspace_bytes(SPARE, program, op);
}

static uint64_t workspace_split_k(const struct program *program, const struct op *op)
{
    const struct split_k split_k = split_k_of(program, op);
    return dense_workspace_bytes(SPARE_TRANSPOSED, program, op) + split_k_bytes(&split_k);
}

/* Bias and activation; what the epilogue has not is a pass of its own. */
static void finish_layer(const struct call *call, struct queue *queue, struct product *product,
                         enum activation function)
{
    const struct cells y = call_cells(call, 3);
    set_result(product, y);
    if (call_has(call, 2))
        product->bias = precision_is_16bit(y.type)
                            ? mixed_copy(call->mixed, call_tensor(call, 2)).data
                            : call_reals(call, 2);
    product->relu = function == ACTIVATION_RELU;
    blas_multiply(queue, product, dense_workspace_of(call, queue, call->workspace).product);
    if (function != ACTIVATION_NONE && function != ACTIVATION_RELU)
        mixed_activate(queue, call_count(call, 3), function, 0.0f, y, y);
}

static void launch_dense_blas(const struct call *call, struct queue *queue)
{
    const struct room room = dense_workspace_of(call, queue, call->workspace);
    struct product product = {};
    product.m = call_dim(call, 1, 1);
    product.n = call_dim(call, 0, 0);
    product.k = call_dim(call, 1, 0);
    set_factors_of(&product, dense_factor(call, queue, 1, &room),
                   dense_factor(call, queue, 0, &room));
    finish_layer(call, queue, &product, (enum activation)call->op->attr.dense.activation);
}

static void launch_dense_t_blas(const struct call *call, struct queue *queue)
{
    const struct room room = dense_workspace_of(call, queue, call->workspace);
    const struct cells x = dense_factor(call, queue, 0, &room);
    const struct cells w = dense_factor(call, queue, 1, &room);
    struct product product =
        product_transposed(x, w, call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1));
    finish_layer(call, queue, &product, (enum activation)call->op->attr.dense_t.activation);
}

/* dense and dense_t, whose attributes and operands are alike */
static void launch_layer_split_k(const struct call *call, struct queue *queue)
{
    const struct split_k split_k = split_k_of(call->program, call->op);
    float *pieces = dense_workspace_of(call, queue, call->workspace).pieces;
    split_k_multiply(queue, &split_k, call_reals(call, 1), call_reals(call, 0), pieces);
    split_k_finish(queue, &split_k, pieces, call_reals(call, 2),
                   (enum activation)call->op->attr.dense.activation, call_reals(call, 3));
}

#define ROW(kind, name, launch, workspace, side)                                                   \
    {                                                                                              \
        OP_##kind, #kind "_" name, launch, workspace, workspace, side, side != 0                   \
    }
#define ROWS(type, spare)                                                                          \
    {                                                                                              \
        ROW(dense, type "_cublaslt", launch_dense_blas, workspace_blas<spare>, 0),                 \
            ROW(dense_t, type "_cublaslt", launch_dense_t_blas, workspace_blas<spare>, 0),         \
            ROW(outer, type "_cublaslt", launch_outer_blas, workspace_blas<spare>, 0),             \
            ROW(dense_sgd, type "_cublaslt", launch_dense_sgd_blas, workspace_blas<spare>,         \
                SIDE_DENSE_SGD)                                                                    \
    }

static const struct kernel kernels[PRECISION_COUNT][4] = {
    ROWS("f32", SPARE_NONE), ROWS("tf32", SPARE_TRANSPOSED), ROWS("bf16", SPARE_ROUNDED),
    ROWS("f16", SPARE_ROUNDED)};

/* … with products of our own; the update of dense_sgd is cuBLASLt's all the same. */
static const struct kernel split_k_kernels[] = {
    ROW(dense, "tf32_thin", launch_layer_split_k, workspace_split_k, 0),
    ROW(dense_t, "tf32_thin", launch_layer_split_k, workspace_split_k, 0),
    ROW(dense_sgd, "tf32_thin", launch_dense_sgd_split_k, workspace_split_k, SIDE_DENSE_SGD)};

/* Does the op multiply by a matrix of weights? */
static bool multiplies(const struct program *program, const struct op *op)
{
    return op->kind == OP_dense || op->kind == OP_dense_t ||
           (op->kind == OP_dense_sgd && op_output(program, op, 2) >= 0);
}

bool dense_blas_split_k(const struct device *device, const struct program *program,
                        const struct op *op, struct split_k *split_k)
{
    if (device->precision != PRECISION_TF32 || !multiplies(program, op))
        return false;
    *split_k = split_k_of(program, op);
    return device->warpgroups && split_k_takes(split_k);
}

static const struct kernel *find_kernel(const struct device *device, const struct program *program,
                                        const struct op *op)
{
    struct split_k split_k;
    const struct kernel *few_features = dense_few_features_kernel(device, program, op);
    if (few_features)
        return few_features;
    const struct kernel *skinny = dense_skinny_kernel(device, program, op);
    if (skinny)
        return skinny;
    return dense_blas_split_k(device, program, op, &split_k) ||
                   takes_dgrad_update(device, program, op)
               ? kernel_in(split_k_kernels, op->kind)
               : kernel_in(kernels[device->precision], op->kind);
}

const struct kernel *dense_blas_kernel(const struct device *device, const struct program *program,
                                       const struct op *op)
{
    /* Below, ours are faster; of layers of few inputs so they are for up to so many samples, and of
     * products that small_gemm.h has, with up to so many inputs. */
    enum {
        WEIGHTS_LEAST = 1024,
        DEPTH_LEAST = 16,
        FEW_INPUTS_SAMPLES = 12,
        SMALL_GEMM_INPUTS = 512
    };
    const struct kernel *kernel = device->blas ? find_kernel(device, program, op) : NULL;
    if (!kernel)
        return NULL;
    const int32_t matrix = op->kind == OP_outer ? 2 : op->kind == OP_dense_sgd ? 2 : 1;
    const struct tensor *w = tensor_of(program, op, matrix);
    if (w->shape.dim[0] * w->shape.dim[1] < WEIGHTS_LEAST)
        return NULL;
    if (precision_is_16bit(device->precision))
        return kernel;
    const int64_t samples = tensor_of(program, op, 0)->shape.dim[0];
    if (dense_has_few_inputs(device, program, op))
        return samples > FEW_INPUTS_SAMPLES ? kernel : NULL;
    if (op->kind == OP_dense && w->shape.dim[0] < DEPTH_LEAST)
        return NULL;
    const bool few = small_gemm_fits(samples, w->shape.dim[0], w->shape.dim[1]) &&
                     w->shape.dim[0] <= SMALL_GEMM_INPUTS;
    return few ? NULL : kernel;
}
