/* blas.h: matrix products through NVIDIA's cuBLASLt, where it is installed: it is looked for when
 * the device is opened and never needed. */
#ifndef PRONY_BACKEND_CUDA_BLAS_H
#define PRONY_BACKEND_CUDA_BLAS_H

#include "backend/cuda/product/split_k.h"

/* NULL when the library is not there; on paper, where products are only counted, it need not be. */
struct blas *blas_open(enum precision precision, bool paper);
void blas_close(struct blas *blas);
size_t blas_version(const struct blas *blas); /* 13.1.2: 130102; 0: there is none */
bool blas_is_tf32(const struct blas *blas);

/* One product by columns: d[m, n] = f(alpha·a·b + beta·d + bias), a being [m, k] and b [k, n], or
 * transposed. Sums are in fp32, whatever the factors are. */
struct product {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    const void *a, *b;
    int64_t a_step, b_step, d_step; /* elements from one column to the next; 0: no gap */
    enum precision in; /* of a and b: fp32 (then tf32 is tf32's), bf16, fp16, fp8, int8 */
    const float *scale_a, *scale_b; /* device, of fp8: what one stands for; NULL: 1 */
    void *d;
    enum precision out;        /* of d and the bias: fp32, or 16 bits; of int8 sums are written */
    const float *alpha, *beta; /* device; NULL: 1 and 0, or where it `adds` 1 and 1 */
    bool adds;
    const void *bias; /* [m], or NULL */
    bool relu;
};

enum { PRODUCT_BYTES = 32 << 20 }; /* of workspace that a product may take */

/* `room` is PRODUCT_BYTES on the device, nobody else's while it runs. */
void blas_multiply(struct queue *queue, const struct product *product, void *room);

/* dense_blas.cu: is the product large enough for cuBLASLt, or for a kernel in its place? */
struct choice;
bool dense_is_worth(const struct choice *choice);
/* Workspace of what its update does beside its product (queue_fork_twin). */
uint64_t dense_blas_twin_bytes(const struct program *program, const struct op *op);
/* Is this op's product (of dense_sgd: the gradient of its input) a split-K one? Then *split_k says
 * which.
 */
bool dense_blas_split_k(const struct device *device, const struct program *program,
                        const struct op *op, struct split_k *split_k);
/* Does its update want the inputs and the gradient of the outputs transposed? Then rows of these
 * are so many elements apart. */
bool dense_blas_transposes(const struct device *device, const struct program *program,
                           const struct op *op);
int64_t dense_wgrad_step(int64_t samples);

/* dense_few_features.cu: are its outputs few (few_outputs.h)? Its inputs (few_inputs.h)? */
bool dense_has_few_outputs(const struct device *device, const struct program *program,
                           const struct op *op);
bool dense_has_few_inputs(const struct device *device, const struct program *program,
                          const struct op *op);

#endif
