/* backend_simd.c: the CPU at its speed: the kernels of the best ISA that it has, then the
 * reference's. */
#include "backend/cpu/cpu_backends.h"
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/rounded.h"
#include "backend/cpu/simd/simd_isas.h"

static enum status simd_probe(void)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    if (!simd_isa_of(cpu.isa))
        FAIL(STATUS_UNSUPPORTED,
             "this CPU has no vectors that there are kernels for (AVX2 and FMA, "
             "AVX-512, NEON); the backend 'ref' runs everywhere");
    return STATUS_OK;
}

static enum status simd_open(const struct device_options *options, struct device **out)
{
    TRY(cpu_open(&backend_simd, options, out));
    struct kernel_table *table = &(*out)->kernels;
    const struct simd_isa *isa = simd_isa_of((*out)->isa);
    table->blocks = isa;
    table->whole = isa && table->precision == PRECISION_FP32 ? isa->whole : NULL;
    simd_add(table, (*out)->isa, &(*out)->cpu);
    kernels_add(table, &rounded_kernels);
    kernels_add(table, &ref_kernels);
    return STATUS_OK;
}

const struct backend backend_simd = {
    .abi = BACKEND_ABI,
    .name = "simd",
    .unit = "cpu",
    .probe = simd_probe,
    .open = simd_open,
    CPU_HOOKS,
};
