/* blas_library.h: the BLAS that does the products of the backend `blas`. It is the process's, like
 * its threads, and stays. */
#ifndef PRONY_BACKEND_CPU_BLAS_BLAS_LIBRARY_H
#define PRONY_BACKEND_CPU_BLAS_BLAS_LIBRARY_H

#include "backend/cpu/kernel.h"

/* Loads it, once: the one named by the environment variable PRONY_BLAS (openblas or blis), else the
 * first that is there. */
enum status blas_load(void);

/* The library's number, after blas_load: kernels are named after it. */
enum { BLAS_OPENBLAS, BLAS_BLIS, BLAS_LIBRARIES };
int blas_library(void);

/* c[m,n] = alpha·a·b + beta·c; with `transpose` an operand is the transpose of what is given. In as
 * many threads as the call's pool has. */
void blas_multiply(const struct call *call, bool transpose_a, bool transpose_b, int64_t m,
                   int64_t n, int64_t k, float alpha, const float *a, const float *b, float beta,
                   float *c);

/* The kernels that multiply by it; what follows a product is for this ISA. */
const struct kernel_list *blas_dense_list(enum isa isa);
const struct kernel_list *blas_conv_list(void);

#endif
