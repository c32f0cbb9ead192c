/* job_cold.c: see job_cold.h. The calling thread goes from CPU to CPU. On the first of those that
 * share an L3 it writes twice as much as that holds; on the others what drives out their own L1 and
 * L2, which the L3 need not contain. */
#include "bench/job/job_cold.h"

#include "base/memory.h"

#include <sched.h>

enum { LINE_BYTES = 64 };
static const size_t UNKNOWN_BYTES = 1 << 26; /* where the size of the caches is not known */

struct job_cold {
    struct job job;
    struct job *inner;
    volatile unsigned char *memory;
    struct pins pins;
    size_t bytes[PIN_CPUS]; /* that are written on each of them */
    struct meters *meters;  /* or NULL */
    const struct family *family;
};

static enum status cold_move(const struct job_cold *cold, int index)
{
    static const struct family ours = {.count = 0};
    pins_set(&cold->pins, &ours, index);
    if (cold->pins.count > 1 && sched_getcpu() != cold->pins.cpus[index])
        FAIL(STATUS_UNSUPPORTED,
             "the caches of CPU %d cannot be emptied: the system does not let it be used",
             cold->pins.cpus[index]);
    return STATUS_OK;
}

static enum status cold_empty(struct job_cold *cold)
{
    cpu_set_t own;
    enum status status = STATUS_OK;
    bool known = sched_getaffinity(0, sizeof own, &own) == 0;

    for (int i = 0; i < cold->pins.count && status == STATUS_OK; i++) {
        status = cold_move(cold, i);
        for (size_t at = 0; at < cold->bytes[i]; at += LINE_BYTES)
            cold->memory[at]++;
    }
    if (known)
        sched_setaffinity(0, sizeof own, &own);
    return status;
}

static enum status cold_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct job_cold *cold = (struct job_cold *)job;

    *elapsed_ns = 0;
    for (int64_t i = 0; i < iterations; i++) {
        const bool metered = cold->meters && cold->meters->running;
        uint64_t one_ns;
        if (metered)
            meters_end(cold->meters, cold->family);
        enum status status = cold_empty(cold);
        if (metered)
            meters_begin(cold->meters, cold->family);
        TRY(status);
        TRY(cold->inner->kind->run(cold->inner, 1, &one_ns));
        *elapsed_ns += one_ns;
    }
    return STATUS_OK;
}

static void cold_close(struct job *job)
{
    struct job_cold *cold = (struct job_cold *)job;
    mem_free((void *)(uintptr_t)cold->memory);
    mem_free(cold);
}

static const struct job_kind cold_kind = {.name = "cold", .run = cold_run, .close = cold_close};

/* Is it the first of those that share its L3? */
static bool first_of_l3(const struct pins *pins, int index)
{
    const int l3 = cpu_l3(pins->cpus[index]);
    for (int i = 0; l3 >= 0 && i < index; i++)
        if (cpu_l3(pins->cpus[i]) == l3)
            return false;
    return true;
}

enum status job_cold_open(struct job *inner, const struct cpu *cpu, const struct pins *pins,
                          struct job **out)
{
    const size_t all = cpu->l3_bytes ? 2 * (size_t)cpu->l3_bytes : UNKNOWN_BYTES;
    const size_t own = cpu->l2_bytes ? 2 * (size_t)(cpu->l1_bytes + cpu->l2_bytes) : all;

    if (pins->count == 0)
        FAIL(STATUS_UNSUPPORTED,
             "the caches cannot be emptied: the system does not say which CPUs may be used");
    struct job_cold *cold = mem_alloc(sizeof *cold);
    NEED(cold);
    cold->job.kind = &cold_kind;
    cold->inner = inner;
    cold->pins = *pins;
    for (int i = 0; i < pins->count; i++)
        cold->bytes[i] = own > all || first_of_l3(pins, i) ? all : own;
    cold->memory = mem_alloc(all);
    if (!cold->memory) {
        mem_free(cold);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    *out = &cold->job;
    return STATUS_OK;
}

void job_cold_meter(struct job *job, struct meters *meters, const struct family *family)
{
    ((struct job_cold *)job)->meters = meters;
    ((struct job_cold *)job)->family = family;
}
