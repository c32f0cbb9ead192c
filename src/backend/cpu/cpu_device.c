/* cpu_device.c: opening the CPU: its thread pool. Each backend adds its lists of kernels. */
#include "backend/cpu/cpu_device.h"

#include "base/memory.h"

#include <stdio.h>

enum status cpu_open(const struct backend *backend, const struct device_options *options,
                     struct device **out)
{
    enum precision precision;
    if (!precision_parse(options->precision, &precision))
        FAIL(STATUS_UNSUPPORTED, "the backend '%s' computes in fp32, bf16 and int8, not in %s",
             backend->name, options->precision);
    struct device *device = mem_alloc(sizeof *device);
    NEED(device);
    device->backend = backend;
    device->kernels.precision = precision;
    cpu_detect(&device->cpu);
    device->isa = cpu_isa(&device->cpu, options->isa);
    device->isa_only = options->isa_only;
    if (device->isa_only)
        device->cpu.extensions = 0;
    kernels_add(&device->kernels, &exchange_kernels);
    device->small_pages = options->small_pages || !mem_has_huge_pages();
    int threads = options->threads ? options->threads : device->cpu.cores;
    if (threads > POOL_MOST)
        threads = POOL_MOST;
    enum status status = pool_open(threads, options->affinity, &device->pool);
    if (status != STATUS_OK) {
        mem_free(device);
        return status;
    }
    *out = device;
    return STATUS_OK;
}

void cpu_close(struct device *device)
{
    if (!device)
        return;
    pool_close(device->pool);
    mem_free(device);
}

void *cpu_memory(const struct device *device, uint64_t bytes)
{
    void *memory = mem_large((size_t)bytes);
    if (memory && device->small_pages)
        mem_small_pages(memory, (size_t)bytes);
    return memory;
}

void cpu_describe(const struct device *device, struct device_info *out)
{
    *out = (struct device_info){.threads = pool_threads(device->pool),
                                .isa = device->isa_only ? isa_name_only(device->isa)
                                                        : isa_name(device->isa),
                                .pages = device->small_pages ? "4k" : "2m"};
    snprintf(out->name, sizeof out->name, "%s", device->cpu.model);
}

const char *cpu_supports(const struct device *device, const struct program *program,
                         const struct op *op)
{
    const struct kernel_table *table = &device->kernels;
    if (!op)
        return table->whole ? table->whole->supports(program)
                            : "it has no kernels for whole programs";
    const struct kernel *kernel = kernel_of(table, program, op);
    if (!kernel && table->precision != PRECISION_FP32 &&
        kernel_in(table, program, op, PRECISION_FP32))
        return "it has a kernel in fp32 alone";
    return !kernel ? "there is no kernel for it" : kernel->run ? NULL : kernel->why;
}
