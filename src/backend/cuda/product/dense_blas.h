/* dense_blas.h: what the kernels of the GEMM family share: their workspace, and their operands as
 * factors of products. */
#ifndef PRONY_BACKEND_CUDA_DENSE_BLAS_H
#define PRONY_BACKEND_CUDA_DENSE_BLAS_H

#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/product/blas.h"

/* What the products need beside their operands: factors in 16 bits when they are not kept so; in
 * tf32, for the gradient of weights, both factors transposed: the matrix units take numbers of 32
 * bits in the order of the sum only, here the order of the samples, and cuBLASLt is half as fast
 * without. */
enum spare { SPARE_NONE, SPARE_TRANSPOSED, SPARE_ROUNDED };

/* A workspace as these kernels use it: alpha and beta, the parts of a bias's gradient, what the
 * product may take, one spare place for each of the first three operands, and the pieces of a
 * split-K product. */
struct room {
    float *factors, *sums;
    void *product;
    char *spare[3];
    float *pieces;
};

static inline const struct tensor *tensor_of(const struct program *program, const struct op *op,
                                             int32_t operand)
{
    return &program->tensors[program->operands[op->first + operand]];
}

/* dense_workspace.cu. What a workspace takes, and where in it things lie. */
uint64_t dense_workspace_bytes(enum spare spare, const struct program *program,
                               const struct op *op);
struct room dense_workspace_of(const struct call *call, const struct queue *queue, void *workspace);
/* Is it a gradient of weights over enough samples for turning to pay? */
bool dense_wgrad_transposes(const struct program *program, const struct op *op);
/* An operand as a factor of a product: as it is kept, or rounded. */
struct cells dense_factor(const struct call *call, struct queue *queue, int32_t operand,
                          const struct room *room);

/* The op's product with a matrix of weights: of dense_sgd the gradient of its input. */
static inline struct split_k split_k_of(const struct program *program, const struct op *op)
{
    const int64_t *w = tensor_of(program, op, op->kind == OP_dense_sgd ? 2 : 1)->shape.dim;
    const bool transposed = op->kind != OP_dense;
    return {tensor_of(program, op, 0)->shape.dim[0], w[transposed ? 0 : 1], w[transposed ? 1 : 0],
            transposed};
}

static inline void set_factors_of(struct product *product, struct cells a, struct cells b)
{
    product->a = a.data;
    product->b = b.data;
    product->in = a.type;
}

static inline void set_result(struct product *product, struct cells d)
{
    product->d = d.data;
    product->out = d.type;
}

/* y[n, i] = x[n, o]·Wᵀ, the gradient of a layer's input among them */
static inline struct product product_transposed(struct cells x, struct cells w, int64_t n,
                                                int64_t i, int64_t o)
{
    struct product product = {};
    product.m = i;
    product.n = n;
    product.k = o;
    product.a_transposed = true;
    set_factors_of(&product, w, x);
    return product;
}

/* dense_wgrad.cu: gradients of weights, and updates; what makes the gradient of the input is
 * cuBLASLt, or a split-K product. */
void launch_outer_blas(const struct call *call, struct queue *queue);
void launch_dense_sgd_blas(const struct call *call, struct queue *queue);
void launch_dense_sgd_split_k(const struct call *call, struct queue *queue);

#endif
