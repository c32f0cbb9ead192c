/* blas_dense.c: the dense family and batched products by a BLAS; biases and activations are ours,
 * shared by threads. */
#include "backend/cpu/blas/blas_library.h"
#include "backend/cpu/ref/real.h"
#include "backend/cpu/simd/dense_shared.h"
#include "backend/cpu/simd/team.h"

/* y = f(x), `count` of them */
typedef void activate_run(int32_t function, const float *x, float *y, int64_t count);

static void activate_scalar(int32_t function, const float *x, float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = activate(function, x[i]);
}

static void activate_avx2(int32_t function, const float *x, float *y, int64_t count)
{
    dense_kernels_avx2.activate(function, x, y, count);
}

static void activate_avx512(int32_t function, const float *x, float *y, int64_t count)
{
    dense_kernels_avx512.activate(function, x, y, count);
}

/* y[rows, columns] = f(y + b) */
struct job_finish {
    activate_run *run;
    int32_t function;
    float *y;
    const float *b; /* or NULL */
    int64_t rows, columns;
};

static void finish_member(void *context, int member, int members)
{
    const struct job_finish *job = context;
    long n, last;
    pool_share(job->rows, 1, member, members, &n, &last);
    for (; n < last; n++) {
        float *y = job->y + n * job->columns;
        for (int64_t i = 0; job->b && i < job->columns; i++)
            y[i] += job->b[i];
        if (job->function != ACTIVATION_NONE)
            job->run(job->function, y, y, job->columns);
    }
}

static void finish(const struct call *call, struct job_finish job)
{
    int64_t bytes = 2 * job.rows * job.columns * (int64_t)sizeof(float);
    pool_run(call->pool, team_for_bytes(call->pool, bytes, job.rows), finish_member, &job);
}

static void dense(const struct call *call, activate_run *run)
{
    int64_t batch = dim(call, 0, 0), in = dim(call, 1, 0), out = dim(call, 1, 1);
    float *y = reals(call, 3);
    blas_multiply(call, false, false, batch, out, in, 1, reals(call, 0), reals(call, 1), 0, y);
    finish(call, (struct job_finish){run, call->op->attr.dense.activation, y, reals(call, 2), batch,
                                     out});
}

static void dense_t(const struct call *call, activate_run *run)
{
    int64_t batch = dim(call, 0, 0), in = dim(call, 1, 0), out = dim(call, 1, 1);
    float *y = reals(call, 3);
    blas_multiply(call, false, true, batch, in, out, 1, reals(call, 0), reals(call, 1), 0, y);
    finish(call, (struct job_finish){run, call->op->attr.dense_t.activation, y, reals(call, 2),
                                     batch, in});
}

static void outer(const struct call *call)
{
    int64_t batch = dim(call, 0, 0), in = dim(call, 0, 1), out = dim(call, 1, 1);
    blas_multiply(call, true, false, in, out, batch, call->op->attr.outer.scale, reals(call, 0),
                  reals(call, 1), call->op->attr.outer.accumulate ? 1 : 0, reals(call, 2));
}

/* dx with the old weights, then the update. */
static void dense_sgd(const struct call *call)
{
    const float *x = reals(call, 0), *dy = reals(call, 1);
    float *w = reals(call, 2), *b = reals(call, 3), rate = *reals(call, 4), *dx = reals(call, 7);
    int64_t batch = dim(call, 0, 0), in = dim(call, 2, 0), out = dim(call, 2, 1);
    if (dx)
        blas_multiply(call, false, true, batch, in, out, 1, dy, w, 0, dx);
    blas_multiply(call, true, false, in, out, batch, -rate, x, dy, 1, w);
    for (int64_t n = 0; b && n < batch; n++, dy += out)
        for (int64_t o = 0; o < out; o++)
            b[o] -= rate * dy[o];
}

static void matmul(const struct call *call)
{
    int64_t count = dim(call, 2, 0), rows = dim(call, 2, 1), columns = dim(call, 2, 2);
    int64_t inner = call->counts[0] / (count * rows);
    bool turn_a = call->op->kind == OP_matmul_tn, turn_b = call->op->kind == OP_matmul_nt;
    for (int64_t n = 0; n < count; n++)
        blas_multiply(call, turn_a, turn_b, rows, columns, inner, call->op->attr.matmul.scale,
                      reals(call, 0) + n * rows * inner, reals(call, 1) + n * inner * columns, 0,
                      reals(call, 2) + n * rows * columns);
}

#define ENTRIES(isa)                                                                               \
    static void dense_##isa(const struct call *call)                                               \
    {                                                                                              \
        dense(call, activate_##isa);                                                               \
    }                                                                                              \
    static void dense_t_##isa(const struct call *call)                                             \
    {                                                                                              \
        dense_t(call, activate_##isa);                                                             \
    }
ENTRIES(scalar)
ENTRIES(avx2)
ENTRIES(avx512)

void blas_dense_fill(struct kernel_table *table, enum isa isa)
{
    static kernel_run *const forward
        [] = {[ISA_SCALAR] = dense_scalar, [ISA_AVX2] = dense_avx2, [ISA_AVX512] = dense_avx512},
 *const back[] = {
     [ISA_SCALAR] = dense_t_scalar, [ISA_AVX2] = dense_t_avx2, [ISA_AVX512] = dense_t_avx512};
    struct kernel *rows = table->rows[DTYPE_F32];
#define ROW(op, run) rows[OP_##op] = (struct kernel){blas_name(BLAS_NAMES(op)), run, NULL};
    ROW(dense, forward[isa])
    ROW(dense_t, back[isa])
    ROW(outer, outer)
    ROW(dense_sgd, dense_sgd)
    ROW(matmul, matmul)
    ROW(matmul_nt, matmul)
    ROW(matmul_tn, matmul)
    rows[OP_dense_update] = (struct kernel){0}; /* its three ops, of which two are the library's */
}
