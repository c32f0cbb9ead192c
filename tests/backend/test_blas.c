/* The backend blas: which kernels are the library's, and that all others are simd's. */
#include "backend/cpu/cpu_backends.h"
#include "backend/cpu/cpu_device.h"
#include "base/text.h"
#include "check.h"

static bool is_product(enum op_kind kind)
{
    static const enum op_kind products[] = {OP_dense,  OP_dense_t,   OP_outer,     OP_dense_sgd,
                                            OP_matmul, OP_matmul_nt, OP_matmul_tn, OP_conv,
                                            OP_conv_t, OP_conv_dw};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (products[i] == kind)
            return true;
    return false;
}

TEST(products_are_the_librarys_and_all_else_is_simds)
{
    struct device_options options = {.threads = 1, .isa = ISA_AVX512};
    struct device *blas = NULL, *simd = NULL;
    if (backend_blas.probe() != STATUS_OK || backend_simd.probe() != STATUS_OK)
        SKIP("%s", status_message());
    if (CHECK_OK(backend_blas.open(&options, &blas)) &&
        CHECK_OK(backend_simd.open(&options, &simd)))
        for (int kind = 0; kind < OP_COUNT; kind++) {
            const struct kernel *row = kernel_first(&blas->kernels, DTYPE_F32, (enum op_kind)kind);
            const struct kernel *own = kernel_first(&simd->kernels, DTYPE_F32, (enum op_kind)kind);
            bool right = kind == OP_conv_fused || kind == OP_dense_update ? !row->run
                         : is_product((enum op_kind)kind)
                             ? text_ends(row->name, "_openblas") || text_ends(row->name, "_blis")
                             : row->run == own->run;
            if (!CHECK(right))
                printf("    %s is by %s\n", op_name((enum op_kind)kind), row->name);
        }
    backend_blas.close(blas);
    backend_simd.close(simd);
}

CHECK_MAIN
