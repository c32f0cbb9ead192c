/* conv_bf16_isa.c: convolutions in bf16 (conv_narrow.h), and their rows. */
#include "backend/cpu/simd/conv/conv_loops.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/conv_narrow.h"
#include "backend/cpu/simd/workspace.h"

#define CONV ISA_LEVEL(conv_kernels)

static struct conv_relation relation_in(const struct program *program, const struct op *op)
{
    return conv_relation_of(&program->tensors[op_input(program, op, AT_conv_x)].shape,
                            &program->tensors[op_input(program, op, AT_conv_w)].shape,
                            &program->tensors[op_output(program, op, 0)].shape, &op->attr, false);
}

static bool takes(const struct program *program, const struct op *op)
{
    struct conv_relation relation = relation_in(program, op);
    return narrow_conv_suits(&relation);
}

/* Factor and summand of each output; what the convolution needs lies behind. */
static uint64_t lay_out(int64_t outputs, char *workspace, struct conv_after *after)
{
    uint64_t used = 0;
    after->scale = workspace_take(workspace, &used, outputs, sizeof(float));
    after->shift = workspace_take(workspace, &used, outputs, sizeof(float));
    return used;
}

static uint64_t conv_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct tensor *w = &program->tensors[op_input(program, op, AT_conv_w)];
    const struct narrow narrow = narrow_of(&w->shape, DTYPE_F32, NARROW_FORWARD);
    struct conv_relation relation = relation_in(program, op);
    struct conv_after unused;
    return lay_out(relation.out, NULL, &unused) +
           narrow_conv_bytes(&ISA(bf16_kernels), &narrow, &relation, threads);
}

struct target {
    struct conv_after after;
    float *y;
    int64_t image, outputs; /* pixels of a plane, planes of a sample */
};

/* Pixels of one sample after the other, a vector of outputs at a time. */
static void store(const struct narrow_product *product, void *sums, int64_t row, int64_t rows,
                  int64_t lane, int64_t lanes, bool many)
{
    (void)many;
    const struct target *target = product->context;
    int64_t end = lane + lanes < target->outputs ? lane + lanes : target->outputs, count;
    for (int64_t r = 0; r < rows; r += count) {
        int64_t sample = (row + r) / target->image, pixel = (row + r) % target->image;
        count = target->image - pixel < rows - r ? target->image - pixel : rows - r;
        for (int64_t o = lane; o < end; o += CONV.lanes)
            CONV.finish_transposed(&target->after, o,
                                   (sample * target->outputs + o) * target->image + pixel,
                                   target->image, (const float *)sums + r * lanes + (o - lane),
                                   lanes, count, target->y);
    }
}

static void run_conv(const struct call *call)
{
    struct target target = {.y = call->data[call->op->inputs]};
    struct narrow_conv conv = {
        .relation =
            conv_relation_of(&call->tensors[AT_conv_x]->shape, &call->tensors[AT_conv_w]->shape,
                             &call->tensors[call->op->inputs]->shape, &call->op->attr, false),
        .x = call->data[AT_conv_x],
        .x_bytes = sizeof(float),
        .product = {.kernels = &ISA(bf16_kernels),
                    .narrow =
                        narrow_of(&call->tensors[AT_conv_w]->shape, DTYPE_F32, NARROW_FORWARD),
                    .packed = call->packed,
                    .x_bytes = sizeof(float),
                    .store = store,
                    .context = &target},
    };
    struct call behind = *call;
    target.image = conv.relation.down.out * conv.relation.across.out;
    target.outputs = conv.relation.out;
    behind.workspace =
        (char *)call->workspace + lay_out(target.outputs, call->workspace, &target.after);
    conv_after_of(call, target.outputs, &target.after);
    narrow_conv_run(&behind, &conv);
}

#define CONV_ROW(kind)                                                                             \
    .op = OP_##kind, .precision = PRECISION_BF16, .form = FORM_BLOCKED, .packs = NARROW_FORWARD,   \
    .packed = AT_##kind##_w, .name = #kind "_bf16_" ISA_NAME, .takes = takes,                      \
    .workspace = conv_workspace, .run = run_conv
static const struct kernel rows[] = {{CONV_ROW(conv)}, {CONV_ROW(conv_fused)}};

const struct kernel_list ISA(conv_bf16_list) = KERNEL_LIST(rows);
