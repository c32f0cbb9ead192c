/* dense_blas.cu: the GEMM family through cuBLASLt: layers, with bias and relu in the product's
 * epilogue, and which kernel takes an op. Where factors are kept in 16 bits (bf16, fp16) sums and
 * weights are fp32 all the same.
 *
 * cuBLASLt counts by columns: our y[n, o] = x[n, i]·W[i, o] is its yᵀ = Wᵀ·xᵀ, the same bytes. */
#include "backend/cuda/device/activation.h"
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/product/dense_blas.h"
#include "backend/cuda/product/skinny.h"
#include "backend/cuda/product/small_gemm.h"

bool dense_blas_transposes(const struct device *device, const struct program *program,
                           const struct op *op)
{
    return device->precision == PRECISION_TF32 && dense_wgrad_transposes(program, op);
}

uint64_t workspace_blas_f32(const struct program *program, const struct op *op)
{
    return dense_workspace_bytes(SPARE_NONE, program, op);
}

uint64_t workspace_blas_tf32(const struct program *program, const struct op *op)
{
    return dense_workspace_bytes(SPARE_TRANSPOSED, program, op);
}

uint64_t workspace_blas_16bit(const struct program *program, const struct op *op)
{
    return dense_workspace_bytes(SPARE_ROUNDED, program, op);
}

uint64_t workspace_split_k(const struct program *program, const struct op *op)
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
    if (call_has(call, AT_dense_b))
        product->bias = precision_is_16bit(y.type)
                            ? mixed_copy(call->mixed, call_tensor(call, 2)).data
                            : call_reals(call, AT_dense_b);
    product->relu = function == ACTIVATION_RELU;
    blas_multiply(queue, product, dense_workspace_of(call, queue, call->workspace).product);
    if (function != ACTIVATION_NONE && function != ACTIVATION_RELU)
        mixed_activate(queue, call_count(call, AT_dense_y), function, 0.0f, y, y);
}

void launch_dense_blas(const struct call *call, struct queue *queue)
{
    const struct room room = dense_workspace_of(call, queue, call->workspace);
    struct product product = {};
    product.m = call_dim(call, AT_dense_w, 1);
    product.n = call_dim(call, AT_dense_x, 0);
    product.k = call_dim(call, AT_dense_w, 0);
    set_factors_of(&product, dense_factor(call, queue, 1, &room),
                   dense_factor(call, queue, 0, &room));
    finish_layer(call, queue, &product, (enum activation)call->op->attr.dense.activation);
}

void launch_dense_t_blas(const struct call *call, struct queue *queue)
{
    const struct room room = dense_workspace_of(call, queue, call->workspace);
    const struct cells x = dense_factor(call, queue, 0, &room);
    const struct cells w = dense_factor(call, queue, 1, &room);
    struct product product =
        product_transposed(x, w, call_dim(call, AT_dense_t_x, 0), call_dim(call, AT_dense_t_w, 0),
                           call_dim(call, AT_dense_t_w, 1));
    finish_layer(call, queue, &product, (enum activation)call->op->attr.dense_t.activation);
}

/* dense and dense_t, whose attributes and operands are alike */
void launch_layer_split_k(const struct call *call, struct queue *queue)
{
    const struct split_k split_k = split_k_of(call->program, call->op);
    float *pieces = dense_workspace_of(call, queue, call->workspace).pieces;
    split_k_multiply(queue, &split_k, call_reals(call, AT_dense_w), call_reals(call, AT_dense_x),
                     pieces);
    split_k_finish(queue, &split_k, pieces, call_reals(call, AT_dense_b),
                   (enum activation)call->op->attr.dense.activation, call_reals(call, AT_dense_y));
}

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

/* Is the product so large that cuBLASLt, or a kernel in its place, beats dense.cu's? Below 1,024
 * weights dense.cu is faster; with few inputs up to 12 samples, and small_gemm.h's products with up
 * to 512 inputs. */
bool dense_is_worth(const struct choice *choice)
{
    enum { WEIGHTS_LEAST = 1024, DEPTH_LEAST = 16, FEW_INPUTS_SAMPLES = 12, SMALL_INPUTS = 512 };
    const struct device *device = choice->device;
    const struct program *program = choice->program;
    const struct op *op = choice->op;
    const int32_t matrix = op->kind == OP_outer || op->kind == OP_dense_sgd ? 2 : 1;
    const int64_t *w = tensor_of(program, op, matrix)->shape.dim;
    if (!device->blas || w[0] * w[1] < WEIGHTS_LEAST)
        return false;
    if (precision_is_16bit(device->precision))
        return true;
    const int64_t samples = tensor_of(program, op, 0)->shape.dim[0];
    if (dense_has_few_inputs(device, program, op))
        return samples > FEW_INPUTS_SAMPLES;
    if (op->kind == OP_dense && w[0] < DEPTH_LEAST)
        return false;
    return !small_gemm_fits(samples, w[0], w[1]) || w[0] > SMALL_INPUTS;
}

/* … where the op before has left the gradient transposed */
bool takes_split_k(const struct choice *choice)
{
    struct split_k split_k;
    return dense_is_worth(choice) &&
           dense_blas_split_k(choice->device, choice->program, choice->op, &split_k);
}

bool takes_blas(const struct choice *choice)
{
    return dense_is_worth(choice);
}

/* … where samples are so few that others were asked first */
bool takes_blas_few_samples(const struct choice *choice)
{
    enum { TILE_SAMPLES = 64 };
    const int64_t samples = tensor_of(choice->program, choice->op, 0)->shape.dim[0];
    return dense_is_worth(choice) &&
           (precision_is_16bit(choice->device->precision) ? samples <= SKINNY_SAMPLES
                                                          : samples < TILE_SAMPLES);
}

bool takes_without_blas(const struct choice *choice)
{
    return !choice->device->blas;
}
