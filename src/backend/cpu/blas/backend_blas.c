/* backend_blas.c: the plans of the CPU with the matrix products of OpenBLAS or BLIS, so that these
 * can be compared with our own kernels under equal conditions. Everything else is the reference.
 *
 * The library is loaded at run time: the one named by the environment variable PRONY_BLAS (openblas
 * or blis), else the first that is there. It is the process's, like its threads, and stays. */
#include "backend/cpu/cpu_backends.h"
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/ref/real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 }; /* as cblas.h has them */

typedef void gemm_function(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                           const float *a, int lda, const float *b, int ldb, float beta, float *c,
                           int ldc);

static const struct {
    const char *name, *file, *set_threads;
} libraries[] = {
    {"openblas", "libopenblas.so.0", "openblas_set_num_threads"},
    {"blis", "libblis.so.4", "bli_thread_set_num_threads"},
};

static struct {
    gemm_function *gemm;
    void (*set_threads)(long threads);
} blas; /* gemm is NULL: there is none */

/* A function from a library, which C has no cast for. */
static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

static void load(void)
{
    const char *wanted = getenv("PRONY_BLAS");
    for (size_t i = 0; !blas.gemm && i < sizeof libraries / sizeof *libraries; i++) {
        if (wanted && strcmp(wanted, libraries[i].name) != 0)
            continue;
        void *library = dlopen(libraries[i].file, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        find(library, libraries[i].set_threads, &blas.set_threads);
        find(library, "cblas_sgemm", &blas.gemm);
    }
}

#ifndef __has_feature /* gcc's word for it is __SANITIZE_THREAD__ */
#define __has_feature(name) 0
#endif

static enum status blas_probe(void)
{
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
    FAIL(STATUS_UNSUPPORTED, "the thread sanitizer does not see how a BLAS's own threads wait for "
                             "each other");
#endif
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!blas.gemm)
        FAIL(STATUS_UNSUPPORTED,
             "no BLAS with a C interface was found (Debian: libopenblas0 or libblis4)");
    return STATUS_OK;
}

/* c[m,n] = alpha·a·b + beta·c; with `turned` an operand is the transpose of what is given. */
static void multiply(const struct call *call, bool turned_a, bool turned_b, int64_t m, int64_t n,
                     int64_t k, float alpha, const float *a, const float *b, float beta, float *c)
{
    if (blas.set_threads)
        blas.set_threads(pool_threads(call->pool));
    blas.gemm(ROW_MAJOR, turned_a ? TURNED : PLAIN, turned_b ? TURNED : PLAIN, (int)m, (int)n,
              (int)k, alpha, a, (int)(turned_a ? m : k), b, (int)(turned_b ? k : n), beta, c,
              (int)n);
}

/* y = f(y + b) */
static void finish(float *y, const float *b, int64_t rows, int64_t columns, int32_t activation)
{
    for (int64_t n = 0; n < rows; n++, y += columns)
        for (int64_t i = 0; i < columns; i++)
            y[i] = activate(activation, b ? y[i] + b[i] : y[i]);
}

static void blas_dense(const struct call *call)
{
    int64_t batch = dim(call, 0, 0), in = dim(call, 1, 0), out = dim(call, 1, 1);
    multiply(call, false, false, batch, out, in, 1, reals(call, 0), reals(call, 1), 0,
             reals(call, 3));
    finish(reals(call, 3), reals(call, 2), batch, out, call->op->attr.dense.activation);
}

static void blas_dense_t(const struct call *call)
{
    int64_t batch = dim(call, 0, 0), in = dim(call, 1, 0), out = dim(call, 1, 1);
    multiply(call, false, true, batch, in, out, 1, reals(call, 0), reals(call, 1), 0,
             reals(call, 3));
    finish(reals(call, 3), reals(call, 2), batch, in, call->op->attr.dense_t.activation);
}

static void blas_outer(const struct call *call)
{
    int64_t batch = dim(call, 0, 0), in = dim(call, 0, 1), out = dim(call, 1, 1);
    multiply(call, true, false, in, out, batch, call->op->attr.outer.scale, reals(call, 0),
             reals(call, 1), call->op->attr.outer.accumulate ? 1 : 0, reals(call, 2));
}

/* dx with the old weights, then the update. */
static void blas_dense_sgd(const struct call *call)
{
    const float *x = reals(call, 0), *dy = reals(call, 1);
    float *w = reals(call, 2), *b = reals(call, 3), rate = *reals(call, 4), *dx = reals(call, 7);
    int64_t batch = dim(call, 0, 0), in = dim(call, 2, 0), out = dim(call, 2, 1);
    if (dx)
        multiply(call, false, true, batch, in, out, 1, dy, w, 0, dx);
    multiply(call, true, false, in, out, batch, -rate, x, dy, 1, w);
    for (int64_t o = 0; b && o < out; o++) {
        float sum = 0;
        for (int64_t n = 0; n < batch; n++)
            sum += dy[n * out + o];
        b[o] -= rate * sum;
    }
}

static enum status blas_open(const struct device_options *options, struct device **out)
{
    TRY(cpu_open(&backend_blas, options, out));
    struct kernel *rows = (*out)->kernels.rows[DTYPE_F32];
    rows[OP_dense] = (struct kernel){.name = "dense_f32_blas", .run = blas_dense};
    rows[OP_dense_t] = (struct kernel){.name = "dense_t_f32_blas", .run = blas_dense_t};
    rows[OP_outer] = (struct kernel){.name = "outer_f32_blas", .run = blas_outer};
    rows[OP_dense_update] = (struct kernel){0}; /* its three ops, of which two are BLAS's */
    rows[OP_dense_sgd] = (struct kernel){.name = "dense_sgd_f32_blas", .run = blas_dense_sgd};
    return STATUS_OK;
}

const struct backend backend_blas = {
    .abi = BACKEND_ABI,
    .name = "blas",
    .unit = "cpu",
    .probe = blas_probe,
    .open = blas_open,
    CPU_HOOKS,
};
