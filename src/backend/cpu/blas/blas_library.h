/* blas_library.h: the BLAS that does the products of the backend `blas`. It is the process's, like
 * its threads, and stays. */
#ifndef PRONY_BACKEND_CPU_BLAS_BLAS_LIBRARY_H
#define PRONY_BACKEND_CPU_BLAS_BLAS_LIBRARY_H

#include "backend/cpu/kernel.h"

/* Loads it, once: the one named by the environment variable PRONY_BLAS (openblas or blis), else the
 * first that is there. */
enum status blas_load(void);

/* Which of a kernel's names, one a library, tells what runs; after blas_load. */
enum { BLAS_LIBRARIES = 2 };
const char *blas_name(const char *const *names);
#define BLAS_NAMES(op)                                                                             \
    (const char *const[BLAS_LIBRARIES])                                                            \
    {                                                                                              \
#op "_f32_openblas", #op "_f32_blis"                                                       \
    }

/* c[m,n] = alpha·a·b + beta·c; with `turned` an operand is the transpose of what is given. In as
 * many threads as the call's pool has. */
void blas_multiply(const struct call *call, bool turned_a, bool turned_b, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, const float *b, float beta, float *c);

/* Puts the kernels that multiply by it into the table; what follows a product is for this ISA. */
void blas_dense_fill(struct kernel_table *table, enum isa isa);
void blas_conv_fill(struct kernel_table *table);

#endif
