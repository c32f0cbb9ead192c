/* conv_rows_isa.c: the ways of conv, conv_fused, conv_t and conv_dw, a row each: when a way is
 * taken, and what it needs. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/simd/conv/conv_loops.h"
#include "backend/cpu/simd/isa.h"

static const struct conv_kernels *const conv = &ISA(conv_kernels), *const narrow =
                                                                       &ISA_LEAST(conv_kernels);
static const struct gemm_kernels *const gemm = &ISA(gemm_kernels);

/* Operands: the larger image, the weights, the smaller image. */
static const int *operands_of(enum op_kind kind)
{
    static const int forward[] = {0, 1, 3}, fused[] = {0, 1, 8}, transposed[] = {3, 1, 0},
                     wgrad[] = {0, 2, 1};
    switch (kind) {
    case OP_conv: return forward;
    case OP_conv_fused: return fused;
    case OP_conv_t: return transposed;
    default: return wgrad;
    }
}

static const struct shape *shape_of(const struct program *program, const struct op *op, int operand)
{
    return &program->tensors[program->operands[op->first + operand]].shape;
}

static struct conv_relation relation_in(const struct program *program, const struct op *op)
{
    const int *at = operands_of(op->kind);
    return conv_relation_of(shape_of(program, op, at[0]), shape_of(program, op, at[1]),
                            shape_of(program, op, at[2]), &op->attr, op->kind == OP_conv_t);
}

static struct conv_relation relation_of(const struct call *call)
{
    const int *at = operands_of(call->op->kind);
    return conv_relation_of(&call->tensors[at[0]]->shape, &call->tensors[at[1]]->shape,
                            &call->tensors[at[2]]->shape, &call->op->attr,
                            call->op->kind == OP_conv_t);
}

/* Weights, and their gradient, in blocks (blocked.h) are the panels' alone. */
static bool is_blocked(const struct tensor *weights)
{
    return blocked_wanted(weights->matrix, weights->dtype, &weights->shape);
}

static bool is_blocked_in(const struct program *program, const struct op *op)
{
    return is_blocked(&program->tensors[program->operands[op->first + operands_of(op->kind)[1]]]);
}

/* ---- depthwise, plane by plane ---- */

static bool takes_depthwise(const struct program *program, const struct op *op)
{
    struct conv_relation relation = relation_in(program, op);
    return conv_planes_suit(&relation);
}

static uint64_t depthwise_workspace(const struct program *program, const struct op *op, int threads)
{
    struct conv_relation relation = relation_in(program, op);
    return conv_planes_bytes(conv, &relation, threads);
}

static void run_depthwise(const struct call *call)
{
    struct conv_relation relation = relation_of(call);
    if (call->op->kind == OP_conv_dw)
        conv_planes_wgrad(call, conv, &relation);
    else
        conv_planes_sum(call, conv, &relation);
}

/* ---- samples in lanes, of these vectors or of the narrowest ---- */

/* Do lanes suit many outputs, which share what panels gather? Where a pixel is gathered more than
 * once, nearly all lanes are filled and what a row needs is in L2. */
static bool lanes_suit_many(const struct conv_kernels *kernels,
                            const struct conv_relation *relation)
{
    int64_t filled = relation->batch, lanes = blocked_up(filled, kernels->lanes);
    return relation->taps > relation->in_group && 8 * filled >= 7 * lanes &&
           conv_lanes_fit(kernels, relation);
}

/* Lanes want samples to fill half of them, and have no second summand. */
static bool lanes_suit(const struct program *program, const struct op *op,
                       const struct conv_kernels *kernels)
{
    struct conv_relation relation = relation_in(program, op);
    bool adds = op->kind == OP_conv_fused && op_input(program, op, CONV_ADD) >= 0;
    return 2 * relation.batch >= kernels->lanes && !adds &&
           (relation.out_group <= 24 || lanes_suit_many(kernels, &relation));
}

static bool takes_narrow(const struct program *program, const struct op *op)
{
    return relation_in(program, op).batch <= narrow->lanes && lanes_suit(program, op, narrow);
}

static bool takes_lanes(const struct program *program, const struct op *op)
{
    return relation_in(program, op).batch > narrow->lanes && lanes_suit(program, op, conv);
}

static uint64_t narrow_workspace(const struct program *program, const struct op *op, int threads)
{
    struct conv_relation relation = relation_in(program, op);
    return conv_lanes_bytes(narrow, &relation, op->kind == OP_conv_dw, threads);
}

static uint64_t lanes_workspace(const struct program *program, const struct op *op, int threads)
{
    struct conv_relation relation = relation_in(program, op);
    return conv_lanes_bytes(conv, &relation, op->kind == OP_conv_dw, threads);
}

static void lanes_run(const struct call *call, const struct conv_kernels *kernels)
{
    struct conv_relation relation = relation_of(call);
    if (call->op->kind == OP_conv_dw)
        conv_lanes_wgrad(call, kernels, &relation);
    else
        conv_lanes_sum(call, kernels, &relation);
}

static void run_narrow(const struct call *call)
{
    lanes_run(call, narrow);
}

static void run_lanes(const struct call *call)
{
    lanes_run(call, conv);
}

/* ---- a product of packed panels: of bands, or of patches ---- */

static bool takes_bands(const struct program *program, const struct op *op)
{
    struct conv_relation relation = relation_in(program, op);
    return conv_gemm_has_bands(gemm, &relation, is_blocked_in(program, op));
}

static uint64_t gemm_workspace(const struct program *program, const struct op *op, int threads)
{
    struct conv_relation relation = relation_in(program, op);
    bool blocked = is_blocked_in(program, op);
    return op->kind == OP_conv_dw ? conv_gemm_wgrad_bytes(&relation, blocked, threads)
                                  : conv_gemm_sum_bytes(gemm, &relation, blocked, threads);
}

static void run_gemm(const struct call *call)
{
    struct conv_relation relation = relation_of(call);
    bool blocked = is_blocked(call->tensors[operands_of(call->op->kind)[1]]);
    if (call->op->kind == OP_conv_dw)
        conv_gemm_wgrad(call, gemm, conv, &relation, blocked);
    else
        conv_gemm_sum(call, gemm, conv, &relation, blocked);
}

#define WAY(kind, isa, way) .op = OP_##kind, .name = #kind "_f32_" isa "_" way
#define DEPTHWISE                                                                                  \
    .form = FORM_ANY, .why = "each channel has one of its own", .takes = takes_depthwise,          \
    .workspace = depthwise_workspace, .run = run_depthwise
#define NARROW                                                                                     \
    .why = "few channels; the samples fill the narrowest vectors", .takes = takes_narrow,          \
    .workspace = narrow_workspace, .run = run_narrow
#define LANES                                                                                      \
    .why = "few channels; the samples fill vectors", .takes = takes_lanes,                         \
    .workspace = lanes_workspace, .run = run_lanes
#define BANDS                                                                                      \
    .form = FORM_ANY, .why = "all taps are offsets into a band of rows", .takes = takes_bands,     \
    .workspace = gemm_workspace, .run = run_gemm
#define PATCHES                                                                                    \
    .form = FORM_ANY, .why = "a product of gathered patches suits all sizes",                      \
    .workspace = gemm_workspace, .run = run_gemm
#define LEAST_NAME ISA_QUOTE(PRONY_ISA_LEAST)

#define SUM_ROWS(kind)                                                                             \
    {WAY(kind, ISA_NAME, "depthwise"), DEPTHWISE}, {WAY(kind, LEAST_NAME, "lanes"), NARROW},       \
        {WAY(kind, ISA_NAME, "lanes"), LANES}, {WAY(kind, ISA_NAME, "bands"), BANDS},              \
    {                                                                                              \
        WAY(kind, ISA_NAME, "patches"), PATCHES                                                    \
    }
static const struct kernel rows[] = {
    SUM_ROWS(conv),
    SUM_ROWS(conv_fused),
    SUM_ROWS(conv_t),
    {WAY(conv_dw, ISA_NAME, "depthwise"), DEPTHWISE},
    {WAY(conv_dw, LEAST_NAME, "lanes"), NARROW},
    {WAY(conv_dw, ISA_NAME, "lanes"), LANES},
    {WAY(conv_dw, ISA_NAME, "patches"), PATCHES},
};

const struct kernel_list ISA(conv_list) = KERNEL_LIST(rows);
