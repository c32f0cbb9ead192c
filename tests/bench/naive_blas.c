/* naive_blas.c: as much of a reference BLAS as NumPy links with, by plain loops: planted by
 * tests/bench/fair_peers.sh, which sees whether it is noticed. The complex functions are there to
 * be linked and end the process. */
#include <stdlib.h>

enum { COLUMN_MAJOR = 102, TURNED = 112 };

#define REAL(letter, type)                                                                         \
    type cblas_##letter##dot(int n, const type *x, int incx, const type *y, int incy);             \
    type cblas_##letter##dot(int n, const type *x, int incx, const type *y, int incy)              \
    {                                                                                              \
        type sum = 0;                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            sum += x[(long)i * incx] * y[(long)i * incy];                                          \
        return sum;                                                                                \
    }                                                                                              \
    void cblas_##letter##axpy(int n, type a, const type *x, int incx, type *y, int incy);          \
    void cblas_##letter##axpy(int n, type a, const type *x, int incx, type *y, int incy)           \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            y[(long)i * incy] += a * x[(long)i * incx];                                            \
    }                                                                                              \
    void cblas_##letter##gemm(int order, int turn_a, int turn_b, int m, int n, int k, type alpha,  \
                              const type *a, int lda, const type *b, int ldb, type beta, type *c,  \
                              int ldc);                                                            \
    void cblas_##letter##gemm(int order, int turn_a, int turn_b, int m, int n, int k, type alpha,  \
                              const type *a, int lda, const type *b, int ldb, type beta, type *c,  \
                              int ldc)                                                             \
    {                                                                                              \
        if (order == COLUMN_MAJOR) { /* the same product of the transposes */                      \
            cblas_##letter##gemm(101, turn_b, turn_a, n, m, k, alpha, b, ldb, a, lda, beta, c,     \
                                 ldc);                                                             \
            return;                                                                                \
        }                                                                                          \
        for (int i = 0; i < m; i++)                                                                \
            for (int j = 0; j < n; j++) {                                                          \
                type sum = 0, *out = &c[(long)i * ldc + j];                                        \
                for (int p = 0; p < k; p++)                                                        \
                    sum += (turn_a == TURNED ? a[(long)p * lda + i] : a[(long)i * lda + p]) *      \
                           (turn_b == TURNED ? b[(long)j * ldb + p] : b[(long)p * ldb + j]);       \
                *out = alpha * sum + (beta == 0 ? 0 : beta * *out);                                \
            }                                                                                      \
    }                                                                                              \
    void cblas_##letter##gemv(int order, int turn, int m, int n, type alpha, const type *a,        \
                              int lda, const type *x, int incx, type beta, type *y, int incy);     \
    void cblas_##letter##gemv(int order, int turn, int m, int n, type alpha, const type *a,        \
                              int lda, const type *x, int incx, type beta, type *y, int incy)      \
    {                                                                                              \
        int turned = (turn == TURNED) != (order == COLUMN_MAJOR);                                  \
        int rows = turn == TURNED ? n : m, columns = turn == TURNED ? m : n;                       \
        for (int i = 0; i < rows; i++) {                                                           \
            type sum = 0, *out = &y[(long)i * incy];                                               \
            for (int j = 0; j < columns; j++)                                                      \
                sum += a[turned ? (long)j * lda + i : (long)i * lda + j] * x[(long)j * incx];      \
            *out = alpha * sum + (beta == 0 ? 0 : beta * *out);                                    \
        }                                                                                          \
    }                                                                                              \
    void cblas_##letter##syrk(int order, int half, int turn, int n, int k, type alpha,             \
                              const type *a, int lda, type beta, type *c, int ldc);                \
    void cblas_##letter##syrk(int order, int half, int turn, int n, int k, type alpha,             \
                              const type *a, int lda, type beta, type *c, int ldc)                 \
    {                                                                                              \
        (void)half;                                                                                \
        cblas_##letter##gemm(order, turn, turn == TURNED ? 111 : TURNED, n, n, k, alpha, a, lda,   \
                             a, lda, beta, c, ldc);                                                \
    }

REAL(s, float)
REAL(d, double)

#define ABSENT(name)                                                                               \
    void cblas_##name(void);                                                                       \
    void cblas_##name(void)                                                                        \
    {                                                                                              \
        abort();                                                                                   \
    }

ABSENT(caxpy)
ABSENT(cdotc_sub)
ABSENT(cdotu_sub)
ABSENT(cgemm)
ABSENT(cgemv)
ABSENT(csyrk)
ABSENT(zaxpy)
ABSENT(zdotc_sub)
ABSENT(zdotu_sub)
ABSENT(zgemm)
ABSENT(zgemv)
ABSENT(zsyrk)
