/* conv_int8_isa.c: convolutions of 8 bits (conv_narrow.h), and their row. Sums are [pixel][output];
 * they are requantised 16 outputs at a time, and transposed to planes. */
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/conv_narrow.h"
#include "backend/cpu/simd/narrow/vec_requantise.h"

#include <string.h>

static struct conv_relation relation_in(const struct program *program, const struct op *op)
{
    return conv_relation_of(&program->tensors[op_input(program, op, AT_conv_int8_x)].shape,
                            &program->tensors[op_input(program, op, AT_conv_int8_w)].shape,
                            &program->tensors[op_output(program, op, 0)].shape, &op->attr, false);
}

static bool takes(const struct program *program, const struct op *op)
{
    const struct tensor *w = &program->tensors[op_input(program, op, AT_conv_int8_w)];
    struct conv_relation relation = relation_in(program, op);
    return role_is_kept(w->role) && w->view_of < 0 && narrow_conv_suits(&relation);
}

static uint64_t conv_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct tensor *w = &program->tensors[op_input(program, op, AT_conv_int8_w)];
    const struct narrow narrow = narrow_of(&w->shape, DTYPE_I8, NARROW_FORWARD);
    struct conv_relation relation = relation_in(program, op);
    return narrow_conv_bytes(&ISA(int8_kernels), &narrow, &relation, threads);
}

struct target {
    const struct call *call;
    int64_t image, outputs; /* pixels of a plane, planes of a sample */
};

static struct requantise_lanes lanes_at(const struct call *call, int64_t lane, int64_t have)
{
    return requantise_lanes_of(call->data[AT_conv_int8_multiplier], call->data[AT_conv_int8_shift],
                               lane, have, call->op->attr.conv_int8.zero,
                               call->op->attr.conv_int8.low, call->op->attr.conv_int8.high);
}

/* Up to 16 outputs of 16 pixels: y[output][pixel], planes `image` apart. */
static void store_square(const uint8_t square[16][REQUANTISE_LANES], const uint8_t *table,
                         int64_t outputs, int64_t pixels, int64_t image, uint8_t *y)
{
    uint8_t planes[REQUANTISE_LANES][16];
    transpose_bytes(square, planes);
    for (int64_t o = 0; o < outputs; o++, y += image) {
        if (table)
            for (int64_t k = 0; k < pixels; k++)
                planes[o][k] = table[planes[o][k]];
        if (pixels == 16)
            memcpy(y, planes[o], 16);
        else
            memcpy(y, planes[o], (size_t)pixels);
    }
}

/* Pixels of one sample. */
static void store_bytes(const struct target *target, const int32_t *sums, int64_t stride,
                        int64_t pixels, int64_t lane, uint8_t *y)
{
    const struct call *call = target->call;
    const int64_t left = target->outputs - lane;
    const int64_t have = left < REQUANTISE_LANES ? left : REQUANTISE_LANES;
    const struct requantise_lanes lanes = lanes_at(call, lane, have);
    uint8_t square[16][REQUANTISE_LANES] = {{0}};
    for (int64_t p = 0; p < pixels; p += 16) {
        int64_t some = pixels - p < 16 ? pixels - p : 16;
        for (int64_t k = 0; k < some; k++)
            requantise_16(sums + (p + k) * stride, &lanes, square[k]);
        store_square((const uint8_t(*)[REQUANTISE_LANES])square, call->data[AT_conv_int8_table],
                     have, some, target->image, y + p);
    }
}

static void store_sums(const struct target *target, const int32_t *sums, int64_t stride,
                       int64_t pixels, int64_t outputs, int32_t *y)
{
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t k = 0; k < pixels; k++)
            y[o * target->image + k] = sums[k * stride + o];
}

static void store(const struct narrow_product *product, void *sums, int64_t row, int64_t rows,
                  int64_t lane, int64_t lanes, bool many)
{
    (void)many;
    const struct target *target = product->context;
    const struct call *call = target->call;
    int64_t end = lane + lanes < target->outputs ? lane + lanes : target->outputs, count;
    for (int64_t r = 0; r < rows; r += count) {
        int64_t sample = (row + r) / target->image, pixel = (row + r) % target->image;
        count = target->image - pixel < rows - r ? target->image - pixel : rows - r;
        const int32_t *from = (const int32_t *)sums + r * lanes;
        int64_t place = (sample * target->outputs + lane) * target->image + pixel;
        if (!call->data[AT_conv_int8_multiplier])
            store_sums(target, from, lanes, count, end - lane,
                       (int32_t *)call->data[AT_conv_int8_y] + place);
        else
            for (int64_t o = lane; o < end; o += REQUANTISE_LANES)
                store_bytes(target, from + (o - lane), lanes, count, o,
                            (uint8_t *)call->data[AT_conv_int8_y] + place +
                                (o - lane) * target->image);
    }
}

static void run_conv_int8(const struct call *call)
{
    struct target target = {.call = call};
    struct narrow_conv conv = {
        .relation = conv_relation_of(&call->tensors[AT_conv_int8_x]->shape,
                                     &call->tensors[AT_conv_int8_w]->shape,
                                     &call->tensors[AT_conv_int8_y]->shape, &call->op->attr, false),
        .x = call->data[AT_conv_int8_x],
        .x_bytes = 1,
        .pad = (uint32_t)call->op->attr.conv_int8.zero_x * 0x01010101u,
        .product = {.kernels = &ISA(int8_kernels),
                    .narrow =
                        narrow_of(&call->tensors[AT_conv_int8_w]->shape, DTYPE_I8, NARROW_FORWARD),
                    .packed = call->packed,
                    .x_bytes = 1,
                    .b = call->data[AT_conv_int8_b],
                    .store = store,
                    .context = &target},
    };
    target.image = conv.relation.down.out * conv.relation.across.out;
    target.outputs = conv.relation.out;
    narrow_conv_run(call, &conv);
}

static const struct kernel rows[] = {
    {.op = OP_conv_int8,
     .name = "conv_int8_" ISA_NAME,
     .packs = NARROW_FORWARD,
     .packed = AT_conv_int8_w,
     .takes = takes,
     .workspace = conv_workspace,
     .run = run_conv_int8},
};

const struct kernel_list ISA(conv_int8_list) = KERNEL_LIST(rows);
