/* blas_dense.c: the dense family and batched products by a BLAS; biases and activations are ours,
 * shared by threads. */
#include "backend/cpu/blas/blas_library.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd/dense/dense_shared.h"
#include "backend/cpu/simd/simd_isas.h"
#include "backend/cpu/team.h"

/* y = f(x), `count` of them */
typedef void activate_run(int32_t function, const float *x, float *y, int64_t count);

static void activate_scalar(int32_t function, const float *x, float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = activate(function, x[i]);
}

#define ACTIVATE(isa)                                                                              \
    static void activate_##isa(int32_t function, const float *x, float *y, int64_t count)          \
    {                                                                                              \
        simd_##isa.dense->activate(function, x, y, count);                                         \
    }
#define ISA_ROW(NAME, isa, machine, flags) ISA_ON_##machine(ACTIVATE(isa))
#include "base/machine/isa.def"
#undef ISA_ROW

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
    int64_t batch = dim(call, AT_dense_x, 0), in = dim(call, AT_dense_w, 0),
            out = dim(call, AT_dense_w, 1);
    float *y = reals(call, AT_dense_y);
    blas_multiply(call, false, false, batch, out, in, 1, reals(call, AT_dense_x),
                  reals(call, AT_dense_w), 0, y);
    finish(call, (struct job_finish){run, call->op->attr.dense.activation, y,
                                     reals(call, AT_dense_b), batch, out});
}

static void dense_t(const struct call *call, activate_run *run)
{
    int64_t batch = dim(call, AT_dense_t_x, 0), in = dim(call, AT_dense_t_w, 0),
            out = dim(call, AT_dense_t_w, 1);
    float *y = reals(call, AT_dense_t_y);
    blas_multiply(call, false, true, batch, in, out, 1, reals(call, AT_dense_t_x),
                  reals(call, AT_dense_t_w), 0, y);
    finish(call, (struct job_finish){run, call->op->attr.dense_t.activation, y,
                                     reals(call, AT_dense_t_b), batch, in});
}

static void outer(const struct call *call)
{
    int64_t batch = dim(call, AT_outer_x, 0), in = dim(call, AT_outer_x, 1),
            out = dim(call, AT_outer_dy, 1);
    blas_multiply(call, true, false, in, out, batch, call->op->attr.outer.scale,
                  reals(call, AT_outer_x), reals(call, AT_outer_dy),
                  call->op->attr.outer.accumulate ? 1 : 0, reals(call, AT_outer_dw));
}

/* b -= rate·Σ_n dy. The samples are summed first: one alone may move a bias by less than its last
 * bit. */
static void update_bias(float *b, float rate, const float *dy, int64_t batch, int64_t out)
{
    enum { AT_ONCE = 64 };
    for (int64_t from = 0; from < out; from += AT_ONCE) {
        const int64_t count = out - from < AT_ONCE ? out - from : AT_ONCE;
        float sum[AT_ONCE] = {0};
        for (int64_t n = 0; n < batch; n++)
            for (int64_t o = 0; o < count; o++)
                sum[o] += dy[n * out + from + o];
        for (int64_t o = 0; o < count; o++)
            b[from + o] -= rate * sum[o];
    }
}

/* dx with the old weights, then the update. */
static void dense_sgd(const struct call *call)
{
    const float *x = reals(call, AT_dense_sgd_x), *dy = reals(call, AT_dense_sgd_dy);
    float *w = reals(call, AT_dense_sgd_w), *b = reals(call, AT_dense_sgd_b),
          rate = *reals(call, AT_dense_sgd_rate), *dx = reals(call, AT_dense_sgd_dx);
    int64_t batch = dim(call, AT_dense_sgd_x, 0), in = dim(call, AT_dense_sgd_w, 0),
            out = dim(call, AT_dense_sgd_w, 1);
    if (dx)
        blas_multiply(call, false, true, batch, in, out, 1, dy, w, 0, dx);
    blas_multiply(call, true, false, in, out, batch, -rate, x, dy, 1, w);
    if (b)
        update_bias(b, rate, dy, batch, out);
}

static void matmul(const struct call *call)
{
    int64_t count = dim(call, AT_matmul_y, 0), rows = dim(call, AT_matmul_y, 1),
            columns = dim(call, AT_matmul_y, 2);
    int64_t inner = call->counts[0] / (count * rows);
    bool transpose_a = call->op->kind == OP_matmul_tn, transpose_b = call->op->kind == OP_matmul_nt;
    for (int64_t n = 0; n < count; n++)
        blas_multiply(call, transpose_a, transpose_b, rows, columns, inner,
                      call->op->attr.matmul.scale, reals(call, AT_matmul_a) + n * rows * inner,
                      reals(call, AT_matmul_b) + n * inner * columns, 0,
                      reals(call, AT_matmul_y) + n * rows * columns);
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
#define ISA_ROW(NAME, isa, machine, flags) ISA_ON_##machine(ENTRIES(isa))
#include "base/machine/isa.def"
#undef ISA_ROW

/* A kernel that does not depend on the ISA, and one that does: with each library's name. */
#define PLAIN_ROW(kind, library, function)                                                         \
    {                                                                                              \
        .op = OP_##kind, .name = #kind "_f32_" library, .run = function                            \
    }
#define ROWS(library, isa)                                                                         \
    PLAIN_ROW(dense, library, dense_##isa), PLAIN_ROW(dense_t, library, dense_t_##isa),            \
        PLAIN_ROW(outer, library, outer), PLAIN_ROW(dense_sgd, library, dense_sgd),                \
        PLAIN_ROW(matmul, library, matmul), PLAIN_ROW(matmul_nt, library, matmul),                 \
        PLAIN_ROW(matmul_tn, library, matmul),                                                     \
        {.op = OP_dense_update, .why = "its three ops, of which two are the library's"},
#define LISTS(isa)                                                                                 \
    static const struct kernel openblas_##isa[] = {ROWS("openblas", isa)},                         \
                               blis_##isa[] = {ROWS("blis", isa)};                                 \
    static const struct kernel_list lists_##isa[BLAS_LIBRARIES] = {KERNEL_LIST(openblas_##isa),    \
                                                                   KERNEL_LIST(blis_##isa)};
LISTS(scalar)
#define ISA_ROW(NAME, isa, machine, flags) ISA_ON_##machine(LISTS(isa))
#include "base/machine/isa.def"
#undef ISA_ROW

const struct kernel_list *blas_dense_list(enum isa isa)
{
    static const struct kernel_list *const lists[ISA_COUNT] = {
        [ISA_SCALAR] = lists_scalar,
#define ISA_ROW(NAME, isa, machine, flags) ISA_ON_##machine([ISA_##NAME] = lists_##isa, )
#include "base/machine/isa.def"
#undef ISA_ROW
    };
    return &lists[isa][blas_library()];
}
