/* matmul_isa.c: batched products y = scale·a·b, a·bᵀ, aᵀ·b. Threads share the matrices where there
 * are enough of them, else the columns or rows of each. Small ones are not packed. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/gemm/gemm_packed.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/team.h"

static const struct gemm_kernels *const kernels = &ISA(gemm_kernels);

struct job_matmul {
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

static void matmul_member(void *context, int member, int members)
{
    const struct job_matmul *job = context;
    long n, last;
    pool_share(job->count, 1, member, members, &n, &last);
    struct gemm gemm = product_at(job, n);
    for (; n < last; n++) {
        if (job->small)
            kernels->small(&gemm);
        else
            gemm_multiply(kernels, &gemm, job->workspace + member * gemm_floats());
        gemm.a.data += job->a_step;
        gemm.b.data += job->b_step;
        gemm.c += job->c_step;
    }
}

static void run_products(const struct call *call, bool small)
{
    const int64_t *y = call->tensors[AT_matmul_y]->shape.dim, rows = y[1], columns = y[2];
    int64_t inner = call->counts[0] / (y[0] * rows);
    bool transpose_a = call->op->kind == OP_matmul_tn, transpose_b = call->op->kind == OP_matmul_nt;
    struct job_matmul job = {
        .first =
            {
                .rows = rows,
                .inner = inner,
                .columns = columns,
                .a = {call->data[AT_matmul_a], transpose_a ? 1 : inner, transpose_a ? rows : 1},
                .b = {call->data[AT_matmul_b], transpose_b ? 1 : columns, transpose_b ? inner : 1},
                .c = call->data[AT_matmul_y],
                .stride = columns,
                .scale = call->op->attr.matmul.scale,
            },
        .a_step = rows * inner,
        .b_step = inner * columns,
        .c_step = rows * columns,
        .count = y[0],
        .small = small,
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

static void run_small(const struct call *call)
{
    run_products(call, true);
}

static void run_packed(const struct call *call)
{
    run_products(call, false);
}

/* Is packing more than it saves? Where rows of b are in lanes up to so many multiply-adds, and
 * where each result is a sum over lanes up to fewer. */
static bool is_small(const struct program *program, const struct op *op)
{
    enum { SMALL_ROWS = 1 << 15, SMALL_DOTS = 1 << 10 };
    const struct tensor *a = &program->tensors[op_input(program, op, 0)];
    const int64_t *y = program->tensors[op_output(program, op, 0)].shape.dim;
    return shape_count(&a->shape) / y[0] * y[2] <=
           (op->kind == OP_matmul_nt ? SMALL_DOTS : SMALL_ROWS);
}

static uint64_t packed_workspace(const struct program *program, const struct op *op, int threads)
{
    (void)program;
    (void)op;
    return (uint64_t)threads * (uint64_t)gemm_floats() * sizeof(float);
}

#define ROWS(kind)                                                                                 \
    {.op = OP_##kind,                                                                              \
     .name = #kind "_f32_" ISA_NAME "_small",                                                      \
     .why = "packing would cost more than it saves",                                               \
     .takes = is_small,                                                                            \
     .run = run_small},                                                                            \
    {                                                                                              \
        .op = OP_##kind, .name = #kind "_f32_" ISA_NAME,                                           \
        .why = "large enough to pack both factors", .workspace = packed_workspace,                 \
        .run = run_packed                                                                          \
    }
static const struct kernel rows[] = {ROWS(matmul), ROWS(matmul_nt), ROWS(matmul_tn)};

const struct kernel_list ISA(matmul_list) = KERNEL_LIST(rows);
