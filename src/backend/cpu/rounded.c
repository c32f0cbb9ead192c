/* rounded.c: see rounded.h. */
#include "backend/cpu/rounded.h"

#include "backend/cpu/blocked.h"
#include "backend/cpu/cpu_precision.h"

enum { OPERANDS = 16, ALIGN = 64 };

static uint64_t padded(int64_t count)
{
    return ((uint64_t)count * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t rounded_bytes(const struct program *program, const struct op *op,
                       const struct kernel_table *table)
{
    const unsigned factors = precision_factors(op->kind);
    uint64_t bytes = 0;
    for (int32_t i = 0; i < op->inputs; i++) {
        if (!(factors >> i & 1))
            continue;
        const struct tensor *tensor = &program->tensors[op_input(program, op, i)];
        bool blocked =
            table->blocks && blocked_wanted(tensor->matrix, tensor->dtype, &tensor->shape);
        bytes += blocked ? (blocked_bytes(&tensor->shape) + ALIGN - 1) / ALIGN * ALIGN
                         : padded(shape_count(&tensor->shape));
    }
    return bytes;
}

static void round_to(const float *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = bf16_value(bf16_of(from[i]));
}

static void run_rounded(const struct call *call)
{
    const unsigned factors = precision_factors(call->op->kind);
    const int32_t operands = call->op->inputs + call->op->outputs;
    void *data[OPERANDS];
    char *at = call->workspace;
    for (int32_t i = 0; i < operands; i++) {
        data[i] = call->data[i];
        if (!(factors >> i & 1))
            continue;
        round_to(call->data[i], (float *)(void *)at, call->counts[i]);
        data[i] = at;
        at += padded(call->counts[i]);
    }
    struct call inner = *call;
    inner.data = data;
    inner.workspace = at;
    call->inner->run(&inner);
}

bool kernel_is_rounded(const struct kernel *kernel)
{
    return kernel->run == run_rounded;
}

#define ROUNDED(kind)                                                                              \
    {                                                                                              \
        .op = OP_##kind, .precision = PRECISION_BF16, .form = FORM_ANY,                            \
        .name = #kind "_bf16_rounded",                                                             \
        .why = "factors rounded to bf16, then multiplied in fp32: no quicker than fp32",           \
        .run = run_rounded                                                                         \
    }
static const struct kernel rows[] = {
    ROUNDED(dense),     ROUNDED(dense_t), ROUNDED(outer),  ROUNDED(matmul),  ROUNDED(matmul_nt),
    ROUNDED(matmul_tn), ROUNDED(conv),    ROUNDED(conv_t), ROUNDED(conv_dw), ROUNDED(conv_fused),
};

const struct kernel_list rounded_kernels = KERNEL_LIST(rows);
