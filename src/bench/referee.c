/* referee.c: see referee.h. */
#include "bench/referee.h"

#include "base/cpu.h"
#include "base/memory.h"
#include "bench/judge.h"
#include "bench/reference.h"

#include <stdio.h>

static const double REFERENCE_FLOP = 5e9; /* `ref` is not asked for more */

enum status referee_refuse(const struct bench *bench, double check_ns, const char *about)
{
    struct text takes = {0};
    text_add_time(&takes, check_ns);
    enum status status = text_done(&takes);
    if (status == STATUS_OK)
        status = status_fail(STATUS_UNSUPPORTED, __FILE__, __LINE__,
                             "the check would take %s%s, and --patience is %.3g s", text_of(&takes),
                             about, (double)bench->patience_ns * 1e-9);
    text_free(&takes);
    return status;
}

static enum status referee_choose(struct referee *referee, const struct bench *bench,
                                  const struct task *task)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    const double flop = reference_flop(task);
    const bool fast = flop > REFERENCE_FLOP;
    const int threads = fast ? cpu.cores : 1;
    const double seconds = reference_seconds(task) / threads;
    referee->options = (struct network_options){.device = {.threads = threads, .isa = ISA_AVX2}};
    referee->name = fast ? "simd/avx2, unfused" : "ref";
    if (fast && seconds * 1e9 > (double)bench->patience_ns) {
        char about[64];
        snprintf(about, sizeof about, " (%.0f GFLOP)", flop * 1e-9);
        return referee_refuse(bench, seconds * 1e9, about);
    }
    if (reference_bytes(task) > (double)mem_total()) /* a GPU may have more */
        FAIL(STATUS_UNSUPPORTED, "the check would need %.0f GB of memory, and there are %.0f",
             reference_bytes(task) * 1e-9, (double)mem_total() * 1e-9);
    TRY(registry_find(bench->registry, fast ? "simd" : "ref", &referee->options.backend));
    return referee->options.backend->probe();
}

static enum status referee_refer(struct referee *referee, const struct bench *bench,
                                 struct task *task)
{
    TRY(referee_choose(referee, bench, task));
    if (!reference_is_dear(task))
        return job_network_refer(task, &referee->options);
    TRY(reference_load(task, bench->facts.commit));
    if (task->referred)
        return STATUS_OK;
    TRY(job_network_refer(task, &referee->options));
    return reference_save(task, bench->facts.commit);
}

enum status referee_begin(struct referee *referee, const struct bench *bench, struct task *task)
{
    enum status status = referee_refer(referee, bench, task);
    if (status != STATUS_OK)
        snprintf(referee->missing, sizeof referee->missing, "%s", status_message());
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

enum status referee_judge(const struct referee *referee, const struct bench *bench,
                          struct task *task, struct job *job, double *error)
{
    if (referee->missing[0])
        FAIL(STATUS_UNSUPPORTED, "%s", referee->missing);
    enum status status = job->kind->check(job, error);
    if (status != STATUS_WRONG || !judge_may_shake(task))
        return status;
    TRY(job_network_shake(task, &referee->options));
    if (reference_is_dear(task))
        TRY(reference_save(task, bench->facts.commit));
    return job->kind->check(job, error);
}
