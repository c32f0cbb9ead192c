/* backend_ref.c: the reference backend: the CPU framework with nothing but reference kernels. */
#include "backend/cpu/cpu_backends.h"
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/rounded.h"

static enum status ref_probe(void)
{
    return STATUS_OK; /* plain C runs everywhere */
}

static enum status ref_open(const struct device_options *options, struct device **out)
{
    struct device_options one = *options;
    one.threads = 1; /* reference kernels are single-threaded */
    one.isa = ISA_SCALAR;
    TRY(cpu_open(&backend_ref, &one, out));
    kernels_add(&(*out)->kernels, &rounded_kernels);
    kernels_add(&(*out)->kernels, &ref_kernels);
    return STATUS_OK;
}

const struct backend backend_ref = {
    .abi = BACKEND_ABI,
    .name = "ref",
    .unit = "cpu",
    .probe = ref_probe,
    .open = ref_open,
    CPU_HOOKS,
};
