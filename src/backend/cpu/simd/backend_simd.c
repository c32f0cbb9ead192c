/* backend_simd.c: the CPU at its speed: reference kernels, overwritten row by row by what this CPU
 * supports. */
#include "backend/cpu/cpu_backends.h"
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/simd/fills.h"
#include "backend/cpu/simd/tiny.h"

/* Updates are elementwise, so the plain kernels serve matrices in blocks as well. */
static const enum op_kind elementwise[] = {OP_sgd,  OP_momentum, OP_adagrad, OP_rmsprop,
                                           OP_adam, OP_rprop,    OP_clip,    OP_add};

#define FILL(name) name(table);

void simd_fill(struct kernel_table *table, enum isa isa)
{
    if (isa < ISA_AVX2)
        return;
    table->blocks = true;
    if (isa >= ISA_AVX512) {
        SIMD_FAMILIES(FILL, avx512)
    } else {
        SIMD_FAMILIES(FILL, avx2)
    }
    for (size_t i = 0; i < sizeof elementwise / sizeof *elementwise; i++)
        table->blocked[elementwise[i]] = table->rows[DTYPE_F32][elementwise[i]];
    /* of few weights its three ops are quicker than the reference's one */
    table->rows[DTYPE_F32][OP_dense_update] = (struct kernel){0};
    tiny_fill(table, isa);
}

static enum status simd_probe(void)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    if (cpu.isa < ISA_AVX2)
        FAIL(STATUS_UNSUPPORTED, "this CPU has no AVX2 and FMA; the backend 'ref' runs everywhere");
    return STATUS_OK;
}

static enum status simd_open(const struct device_options *options, struct device **out)
{
    TRY(cpu_open(&backend_simd, options, out));
    simd_fill(&(*out)->kernels, (*out)->isa);
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
