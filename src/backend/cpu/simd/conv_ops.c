/* conv_ops.c: conv, conv_fused, conv_t and conv_dw: which way an op goes. */
#include "backend/cpu/simd/blocked.h"
#include "backend/cpu/simd/conv_loops.h"
#include "backend/cpu/simd/fills.h"

struct conv_isa {
    const struct conv_kernels *conv, *narrow; /* the narrowest there are */
    const struct gemm_kernels *gemm;
};

/* Do lanes suit many outputs, which share what panels gather? Where a pixel is gathered more than
 * once, nearly all lanes are filled and what a row needs is in L2. */
static bool lanes_suit_many(const struct conv_kernels *kernels,
                            const struct conv_relation *relation)
{
    int64_t filled = relation->batch, lanes = blocked_up(filled, kernels->lanes);
    return relation->taps > relation->in_group && 8 * filled >= 7 * lanes &&
           conv_lanes_fit(kernels, relation);
}

/* Lanes want samples to fill half of them, and have no second summand. NULL: panels it is. */
static const struct conv_kernels *lanes_for(const struct conv_isa *isa,
                                            const struct conv_relation *relation, bool adds)
{
    const struct conv_kernels *kernels =
        relation->batch <= isa->narrow->lanes ? isa->narrow : isa->conv;
    bool suit = 2 * relation->batch >= kernels->lanes && !adds &&
                (relation->out_group <= 24 || lanes_suit_many(kernels, relation));
    return suit ? kernels : NULL;
}

/* Weights, and their gradient, in blocks (blocked.h) are the panels' alone. */
static bool is_blocked(const struct tensor *weights)
{
    return blocked_wanted(weights->matrix, weights->dtype, &weights->shape);
}

/* Operands: the larger image, the weights, the smaller image. */
static const int *operands_of(enum op_kind kind)
{
    static const int conv[] = {0, 1, 3}, conv_fused[] = {0, 1, 8}, conv_t[] = {3, 1, 0},
                     conv_dw[] = {0, 2, 1};
    switch (kind) {
    case OP_conv: return conv;
    case OP_conv_fused: return conv_fused;
    case OP_conv_t: return conv_t;
    default: return conv_dw;
    }
}

static void run(const struct call *call, const struct conv_isa *isa)
{
    const int *at = operands_of(call->op->kind);
    struct conv_relation relation = conv_relation_of(
        &call->tensors[at[0]]->shape, &call->tensors[at[1]]->shape, &call->tensors[at[2]]->shape,
        &call->op->attr, call->op->kind == OP_conv_t);
    bool adds = call->op->kind == OP_conv_fused && call->data[CONV_ADD];
    bool blocked = is_blocked(call->tensors[at[1]]);
    const struct conv_kernels *lanes = blocked ? NULL : lanes_for(isa, &relation, adds);
    bool weigh = call->op->kind == OP_conv_dw;
    if (conv_planes_suit(&relation))
        (weigh ? conv_planes_weigh : conv_planes_sum)(call, isa->conv, &relation);
    else if (lanes && weigh)
        conv_lanes_weigh(call, lanes, &relation);
    else if (lanes)
        conv_lanes_sum(call, lanes, &relation);
    else if (weigh)
        conv_gemm_weigh(call, isa->gemm, isa->conv, &relation, blocked);
    else
        conv_gemm_sum(call, isa->gemm, isa->conv, &relation, blocked);
}

static const struct shape *shape_of(const struct program *program, const struct op *op, int operand)
{
    return &program->tensors[program->operands[op->first + operand]].shape;
}

static uint64_t workspace_of(const struct program *program, const struct op *op, int threads,
                             const struct conv_isa *isa)
{
    const int *at = operands_of(op->kind);
    struct conv_relation relation =
        conv_relation_of(shape_of(program, op, at[0]), shape_of(program, op, at[1]),
                         shape_of(program, op, at[2]), &op->attr, op->kind == OP_conv_t);
    bool adds = op->kind == OP_conv_fused && op_input(program, op, CONV_ADD) >= 0;
    bool weigh = op->kind == OP_conv_dw;
    bool blocked = is_blocked(&program->tensors[program->operands[op->first + at[1]]]);
    const struct conv_kernels *lanes = blocked ? NULL : lanes_for(isa, &relation, adds);
    if (conv_planes_suit(&relation))
        return conv_planes_bytes(isa->conv, &relation, threads);
    if (lanes)
        return conv_lanes_bytes(lanes, &relation, weigh, threads);
    return weigh ? conv_gemm_weigh_bytes(&relation, blocked, threads)
                 : conv_gemm_sum_bytes(isa->gemm, &relation, blocked, threads);
}

/* The same kernel for both forms of the weights. */
#define ROW(op, isa)                                                                               \
    table->rows[DTYPE_F32][OP_##op] = table->blocked[OP_##op] =                                    \
        (struct kernel){#op "_f32_" #isa, run_##isa, workspace_##isa};
#define ENTRIES(isa)                                                                               \
    static const struct conv_isa isa##_kernels = {&conv_kernels_##isa, &conv_kernels_avx2,         \
                                                  &gemm_kernels_##isa};                            \
    static void run_##isa(const struct call *call)                                                 \
    {                                                                                              \
        run(call, &isa##_kernels);                                                                 \
    }                                                                                              \
    static uint64_t workspace_##isa(const struct program *program, const struct op *op,            \
                                    int threads)                                                   \
    {                                                                                              \
        return workspace_of(program, op, threads, &isa##_kernels);                                 \
    }                                                                                              \
    void conv_fill_##isa(struct kernel_table *table)                                               \
    {                                                                                              \
        ROW(conv, isa)                                                                             \
        ROW(conv_fused, isa)                                                                       \
        ROW(conv_t, isa)                                                                           \
        ROW(conv_dw, isa)                                                                          \
    }

ENTRIES(avx2)
ENTRIES(avx512)
