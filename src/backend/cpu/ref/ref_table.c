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

/* Sums over ranks are the same whatever form the numbers have, as long as all have the same. */
static const struct kernel exchange_rows[] = {
#define ROW(kind, type, run_it)                                                                    \
    {                                                                                              \
        .op = OP_##kind, .real = type, .form = FORM_ANY, .name = #kind, .run = run_it              \
    }
    ROW(all_reduce, DTYPE_F32, ref_all_reduce_f32),
    ROW(all_reduce, DTYPE_F64, ref_all_reduce_f64),
    ROW(wait, DTYPE_F32, ref_wait_f32),
    ROW(wait, DTYPE_F64, ref_wait_f64),
    ROW(send, DTYPE_F32, ref_send_f32),
    ROW(send, DTYPE_F64, ref_send_f64),
    ROW(receive, DTYPE_F32, ref_receive_f32),
    ROW(receive, DTYPE_F64, ref_receive_f64),
    ROW(receive_add, DTYPE_F32, ref_receive_add_f32),
    ROW(receive_add, DTYPE_F64, ref_receive_add_f64),
#undef ROW
};

const struct kernel_list exchange_kernels = KERNEL_LIST(exchange_rows);
const struct kernel_list ref_kernels = KERNEL_LIST(rows);
