/* ref_table.c: a row of ops.def without a reference kernel does not link. */
#include "backend/cpu/kernel.h"

#define OP(kind, inputs, outputs, flop, attributes) kernel_run ref_##kind##_f32, ref_##kind##_f64;
#include "core/ops.def"
#undef OP

void ref_fill(struct kernel_table *table)
{
#define OP(kind, inputs, outputs, flop, attributes)                                                \
    table->rows[DTYPE_F32][OP_##kind] = (struct kernel){#kind "_f32_ref", ref_##kind##_f32, NULL}; \
    table->rows[DTYPE_F64][OP_##kind] = (struct kernel){#kind "_f64_ref", ref_##kind##_f64, NULL};
#include "core/ops.def"
#undef OP
}
