/* referee.c: see referee.h. */
#include "bench/check/referee.h"

#include "base/cpu.h"
#include "base/memory.h"
#include "bench/check/reference.h"

#include <math.h>
#include <stdio.h>

static const double EXACT_FLOP = 5e8; /* `ref` is not asked for more, in double */
enum { SHAKEN_DRAWS = 2 };
static const double FP32_TIMES = 16; /* so many roundings shake it */

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

static bool is_fp32(const struct task *task)
{
    return task->rounding <= 0x1p-24;
}

/* Of an inference the first samples only, of a training the first step. */
static enum status referee_cut(struct referee *referee, const struct bench *bench,
                               struct task *task, double seconds)
{
    const double patience = (double)bench->patience_ns * 1e-9;
    const double share = task->phase == PHASE_INFERENCE ? patience / seconds : 1;
    int32_t y;

    if (task->phase == PHASE_TRAINING && seconds / task->check_steps <= patience) {
        task->check_steps = 1;
        snprintf(referee->name, sizeof referee->name, "simd/avx2, unfused, 1 step");
        return STATUS_OK;
    }
    if (task->phase == PHASE_INFERENCE && share * task->batch >= 1) {
        const struct program *program = task_output(task, "y", &y);
        const int64_t width = shape_count(&program->tensors[y].shape) / task->batch;
        referee->batch = (int32_t)(share * task->batch);
        task->check_steps = 1;
        if (task->value_count > referee->batch * width)
            task->value_count = referee->batch * width;
        snprintf(referee->name, sizeof referee->name, "simd/avx2, unfused, %d of %d samples",
                 referee->batch, task->batch);
        return STATUS_OK;
    }
    char about[64];
    snprintf(about, sizeof about, " (%.0f GFLOP)", reference_flop(task) * 1e-9);
    return referee_refuse(bench, seconds * 1e9, about);
}

static enum status referee_settle(struct referee *referee, const struct bench *bench,
                                  struct task *task)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    const bool exact = reference_flop(task) <= EXACT_FLOP;
    const int threads = exact ? 1 : cpu.cores;
    const double seconds = reference_seconds(task) * (1 + SHAKEN_DRAWS) / threads;

    *referee = (struct referee){
        .options = {.device = {.threads = threads, .isa = ISA_AVX2}},
        .real = exact ? DTYPE_F64 : DTYPE_F32,
        .batch = task->batch,
    };
    snprintf(referee->name, sizeof referee->name, exact ? "ref f64" : "simd/avx2, unfused");
    if (!exact && seconds * 1e9 > (double)bench->patience_ns)
        TRY(referee_cut(referee, bench, task, seconds));
    if (reference_bytes(task) > (double)mem_total()) /* a GPU may have more */
        FAIL(STATUS_UNSUPPORTED, "the check would need %.0f GB of memory, and there are %.0f",
             reference_bytes(task) * 1e-9, (double)mem_total() * 1e-9);
    TRY(registry_find(bench->registry, exact ? "ref" : "simd", &referee->options.backend));
    return referee->options.backend->probe();
}

void referee_choose(struct referee *referee, const struct bench *bench, struct task *task)
{
    if (referee_settle(referee, bench, task) != STATUS_OK)
        snprintf(referee->missing, sizeof referee->missing, "%s", status_message());
}

/* Counts how far parameters moved from where they started, shaken or not. */
static void referee_level(const struct task *task, const struct task *twin, struct outcome *out)
{
    if (task->phase != PHASE_TRAINING)
        return;
    for (int32_t stage = 0; stage < task_stages(task); stage++)
        for (int64_t i = 0; i < task->value_count; i++)
            out->values[stage * task->value_count + i] +=
                task_initial(task, i) - task_initial(twin, i);
}

static enum status referee_draw(const struct referee *referee, struct task *task, struct task *runs)
{
    struct outcome *out = &task->draws[task->draw_count];
    TRY(task_outcome(task, &task->arena, out));
    TRY(job_network_answer(runs, &referee->options, out));
    referee_level(task, runs, out);
    task->draw_count++;
    return STATUS_OK;
}

/* What `twin` gives, shaken so. */
static enum status referee_shake(const struct referee *referee, struct task *task,
                                 struct task *twin, double rounding)
{
    for (uint32_t draw = 0; draw < SHAKEN_DRAWS; draw++) {
        task_shake(twin, task, rounding, draw);
        TRY(referee_draw(referee, task, twin));
    }
    return STATUS_OK;
}

/* What fp32 itself makes of it. */
static enum status referee_round(const struct referee *referee, struct task *task)
{
    struct task *twin = NULL;
    TRY(referee_draw(referee, task, task));
    TRY(task_twin(task, DTYPE_F32, referee->batch, &twin));
    enum status status = referee_shake(referee, task, twin, task->rounding);
    task_close(twin);
    return status;
}

enum status referee_refer(const struct referee *referee, struct task *task)
{
    const double rounding = task->rounding * (is_fp32(task) ? FP32_TIMES : 1);
    struct task *twin = NULL;
    enum status status = STATUS_OK;

    task->draw_count = 0;
    TRY(task_outcome(task, &task->arena, &task->reference));
    TRY(task_twin(task, referee->real, referee->batch, &twin));
    TRY_OR(done, job_network_answer(twin, &referee->options, &task->reference));
    TRY_OR(done, referee_shake(referee, task, twin, rounding));
    if (referee->real == DTYPE_F64 && is_fp32(task))
        TRY_OR(done, referee_round(referee, task));
    task->referred = true;
done:
    task_close(twin);
    return status;
}

static enum status referee_find(const struct referee *referee, const struct bench *bench,
                                struct task *task)
{
    if (!reference_is_dear(task))
        return referee_refer(referee, task);
    TRY(reference_load(task, referee->name, bench->facts.commit));
    if (task->referred)
        return STATUS_OK;
    TRY(referee_refer(referee, task));
    return reference_save(task, referee->name, bench->facts.commit);
}

enum status referee_begin(struct referee *referee, const struct bench *bench, struct task *task)
{
    if (referee->begun || referee->missing[0])
        return STATUS_OK;
    referee->begun = true;
    enum status status = referee_find(referee, bench, task);
    if (status != STATUS_OK)
        snprintf(referee->missing, sizeof referee->missing, "%s", status_message());
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

enum status referee_judge(const struct referee *referee, struct job *job, double *error)
{
    if (referee->missing[0])
        FAIL(STATUS_UNSUPPORTED, "%s", referee->missing);
    return job->kind->check(job, error);
}
