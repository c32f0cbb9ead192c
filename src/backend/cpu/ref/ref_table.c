/* ref_table.c: a row of ops.def without a reference kernel does not link. */
#include "backend/cpu/kernel.h"

#define OP(kind, inputs, outputs, flop, attributes) kernel_run ref_##kind##_f32, ref_##kind##_f64;
#include "core/ops.def"
#undef OP

static const struct kernel rows[] = {
#define OP(kind, inputs, outputs, flop, attributes)                                                \
    {.op = OP_##kind, .real = DTYPE_F32, .name = #kind "_f32_ref", .run = ref_##kind##_f32},       \
        {.op = OP_##kind, .real = DTYPE_F64, .name = #kind "_f64_ref", .run = ref_##kind##_f64},
#include "core/ops.def"
#undef OP
};

const struct kernel_list ref_kernels = KERNEL_LIST(rows);
