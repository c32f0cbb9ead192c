/* matmul.c: batched products y = scale·a·b, a·bᵀ, aᵀ·b. Threads share the matrices where there are
 * enough of them, else the columns or rows of each. Small ones are not packed. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/fills.h"
#include "backend/cpu/simd/gemm_packed.h"
#include "backend/cpu/simd/team.h"

struct job_matmul {
    const struct gemm_kernels *kernels;
    struct gemm first;              /* the product of the first matrices */
    int64_t a_step, b_step, c_step; /* to the next ones */
    int64_t count;
    bool small;
    float *workspace; /* not for small ones */
};

static struct gemm product_at(const struct job_matmul *job, int64_t n)
{
    struct gemm gemm = job->first;
    gemm.a.data += n * job->a_step;
    gemm.b.data += n * job->b_step;
    gemm.c += n * job->c_step;
    return gemm;
}

/* Is packing more than it saves? Where rows of b are in lanes up to so many multiply-adds, and
 * where each result is a sum over lanes up to fewer. */
static bool is_small(enum op_kind kind, int64_t rows, int64_t inner, int64_t columns)
{
    enum { SMALL_ROWS = 1 << 15, SMALL_DOTS = 1 << 10 };
    return rows * inner * columns <= (kind == OP_matmul_nt ? SMALL_DOTS : SMALL_ROWS);
}

static void matmul_member(void *context, int member, int members)
{
    const struct job_matmul *job = context;
    long n, last;
    pool_share(job->count, 1, member, members, &n, &last);
    struct gemm gemm = product_at(job, n);
    for (; n < last; n++) {
        if (job->small)
            job->kernels->small(&gemm);
        else
            gemm_multiply(job->kernels, &gemm, job->workspace + member * gemm_floats());
        gemm.a.data += job->a_step;
        gemm.b.data += job->b_step;
        gemm.c += job->c_step;
    }
}

static void run_matmul(const struct call *call, const struct gemm_kernels *kernels)
{
    const int64_t *y = call->tensors[2]->shape.dim, rows = y[1], columns = y[2];
    int64_t inner = call->counts[0] / (y[0] * rows);
    bool turn_a = call->op->kind == OP_matmul_tn, turn_b = call->op->kind == OP_matmul_nt;
    struct job_matmul job = {
        .kernels = kernels,
        .first =
            {
                .rows = rows,
                .inner = inner,
                .columns = columns,
                .a = {call->data[0], turn_a ? 1 : inner, turn_a ? rows : 1},
                .b = {call->data[1], turn_b ? 1 : columns, turn_b ? inner : 1},
                .c = call->data[2],
                .stride = columns,
                .scale = call->op->attr.matmul.scale,
            },
        .a_step = rows * inner,
        .b_step = inner * columns,
        .c_step = rows * columns,
        .count = y[0],
        .small = is_small(call->op->kind, rows, inner, columns),
        .workspace = call->workspace,
    };
    if (job.count >= pool_at_once(call->pool) || job.small) {
        int64_t flop = 2 * job.count * rows * inner * columns;
        pool_run(call->pool, team_for_flop(call->pool, flop, job.count), matmul_member, &job);
        return;
    }
    for (int64_t n = 0; n < job.count; n++) {
        struct gemm gemm = product_at(&job, n);
        gemm_run(kernels, &gemm, call->pool, job.workspace);
    }
}

static uint64_t matmul_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct tensor *a = &program->tensors[op_input(program, op, 0)];
    const int64_t *y = program->tensors[op_output(program, op, 0)].shape.dim;
    bool small = is_small(op->kind, y[1], shape_count(&a->shape) / (y[0] * y[1]), y[2]);
    return small ? 0 : (uint64_t)threads * (uint64_t)gemm_floats() * sizeof(float);
}

#define ENTRIES(isa)                                                                               \
    static void matmul_##isa(const struct call *call)                                              \
    {                                                                                              \
        run_matmul(call, &gemm_kernels_##isa);                                                     \
    }                                                                                              \
    void matmul_fill_##isa(struct kernel_table *table)                                             \
    {                                                                                              \
        struct kernel *rows = table->rows[DTYPE_F32];                                              \
        rows[OP_matmul] = (struct kernel){"matmul_f32_" #isa, matmul_##isa, matmul_workspace};     \
        rows[OP_matmul_nt] =                                                                       \
            (struct kernel){"matmul_nt_f32_" #isa, matmul_##isa, matmul_workspace};                \
        rows[OP_matmul_tn] =                                                                       \
            (struct kernel){"matmul_tn_f32_" #isa, matmul_##isa, matmul_workspace};                \
    }

ENTRIES(avx2)
ENTRIES(avx512)
