/* job_cold.c: see job_cold.h. */
#include "bench/job_cold.h"

#include "base/memory.h"

enum { LINE_BYTES = 64 };

struct job_cold {
    struct job job;
    struct job *inner;
    volatile unsigned char *memory;
    size_t bytes;
};

static enum status cold_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct job_cold *cold = (struct job_cold *)job;

    *elapsed_ns = 0;
    for (int64_t i = 0; i < iterations; i++) {
        uint64_t one_ns;
        for (size_t at = 0; at < cold->bytes; at += LINE_BYTES)
            cold->memory[at]++;
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

enum status job_cold_open(struct job *inner, size_t bytes, struct job **out)
{
    struct job_cold *cold = mem_alloc(sizeof *cold);
    NEED(cold);
    cold->job.kind = &cold_kind;
    cold->inner = inner;
    cold->bytes = bytes;
    cold->memory = mem_alloc(bytes);
    if (!cold->memory) {
        mem_free(cold);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    *out = &cold->job;
    return STATUS_OK;
}
