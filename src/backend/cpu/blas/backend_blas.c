/* backend_blas.c: the plans of the CPU with the matrix products of OpenBLAS or BLIS, so that these
 * can be compared with our own kernels under equal conditions: dense layers, batched products and
 * convolutions (through patches) are theirs; everything else is simd's, layers over time too, whose
 * products are woven into their steps. Weights are plain matrices, not blocks, and nothing is one
 * kernel for a whole program. */
#include "backend/cpu/blas/blas_library.h"
#include "backend/cpu/cpu_backends.h"
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/rounded.h"
#include "backend/cpu/simd/simd_isas.h"

#ifndef __has_feature /* gcc's word for it is __SANITIZE_THREAD__ */
#define __has_feature(name) 0
#endif

static enum status blas_probe(void)
{
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
    FAIL(STATUS_UNSUPPORTED, "the thread sanitizer does not see how a BLAS's own threads wait for "
                             "each other");
#endif
    return blas_load();
}

static enum status blas_open(const struct device_options *options, struct device **out)
{
    TRY(cpu_open(&backend_blas, options, out));
    struct kernel_table *table = &(*out)->kernels;
    kernels_add(table, blas_dense_list((*out)->isa));
    kernels_add(table, blas_conv_list());
    simd_add(table, (*out)->isa, &(*out)->cpu);
    kernels_add(table, &rounded_kernels);
    kernels_add(table, &ref_kernels);
    return STATUS_OK;
}

const struct backend backend_blas = {
    .abi = BACKEND_ABI,
    .name = "blas",
    .unit = "cpu",
    .probe = blas_probe,
    .open = blas_open,
    CPU_HOOKS,
};
