/* reference.c: see reference.h. */
#include "bench/check/reference.h"

#include "base/machine/cpu.h"
#include "base/machine/room.h"
#include "bench/check/reference_file.h"
#include "bench/check/task_copy.h"

#include <math.h>
#include <stdio.h>

static const double EXACT_FLOP = 5e8; /* `ref` is not asked for more, in double */
enum { PERTURBED_DRAWS = 2 };
static const double FP32_TIMES = 16; /* so many roundings perturb it */

/* What the fast backend does at least, in a second. */
static const double FAST_FLOP_PER_S = 2e10, FAST_BYTES_PER_S = 1e10;

/* Of all steps of the check. */
static double reference_flop(const struct task *task)
{
    return (double)(task->work.forward.flop + task->work.backward.flop) * task->check_steps;
}

/* Is it so much work that its outcome is kept? */
static bool reference_is_dear(const struct task *task)
{
    static const double DEAR_FLOP = 1e9;
    return reference_flop(task) >= DEAR_FLOP;
}

/* At most, of one thread of the fast backend, which also has to go over all operands. */
static double reference_seconds(const struct task *task)
{
    double bytes = 0;
    for (int32_t p = 0; p < task->step.count; p++)
        for (int32_t i = 0; i < task->step.programs[p]->op_count; i++)
            bytes += (double)op_bytes(task->step.programs[p], &task->step.programs[p]->ops[i]);
    return reference_flop(task) / FAST_FLOP_PER_S + bytes * task->check_steps / FAST_BYTES_PER_S;
}

static double reference_bytes(const struct task *task)
{
    double most = 0, host = 0; /* what the task holds itself */
    for (int role = 0; role < ROLE_COUNT; role++)
        host += (double)(task->params.blocks[role].bytes + task->data.blocks[role].bytes);
    for (int32_t p = 0; p < task->step.count; p++) {
        double bytes = 0;
        for (int role = 0; role < ROLE_COUNT; role++)
            bytes += (double)task->step.programs[p]->role_bytes[role];
        most = fmax(most, bytes);
    }
    return most + host;
}

enum status reference_refuse(const struct bench *bench, double check_ns, const char *about)
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
static enum status reference_cut(struct reference *reference, const struct bench *bench,
                                 struct task *task, double seconds)
{
    const double patience = (double)bench->patience_ns * 1e-9;
    const double share = task->phase == PHASE_INFERENCE ? patience / seconds : 1;
    int32_t y;

    if (task->phase == PHASE_TRAINING && seconds / task->check_steps <= patience) {
        task->check_steps = 1;
        snprintf(reference->name, sizeof reference->name, "simd/%s, unfused, 1 step",
                 isa_name(reference->options.device.isa));
        return STATUS_OK;
    }
    if (task->phase == PHASE_INFERENCE && share * task->batch >= 1) {
        const struct program *program = task_find(task, ROLE_OUTPUT, "y", &y);
        const int64_t width = shape_count(&program->tensors[y].shape) / task->batch;
        reference->batch = (int32_t)(share * task->batch);
        task->check_steps = 1;
        if (task->value_count > reference->batch * width)
            task->value_count = reference->batch * width;
        snprintf(reference->name, sizeof reference->name, "simd/%s, unfused, %d of %d samples",
                 isa_name(reference->options.device.isa), reference->batch, task->batch);
        return STATUS_OK;
    }
    char about[64];
    snprintf(about, sizeof about, " (%.0f GFLOP)", reference_flop(task) * 1e-9);
    return reference_refuse(bench, seconds * 1e9, about);
}

/* Integers have one right answer, and `ref` has it. */
static enum status reference_settle_int8(struct reference *reference, const struct bench *bench,
                                         struct task *task)
{
    static const double REF_FLOP_PER_S = 1e9;
    const double seconds = reference_flop(task) / REF_FLOP_PER_S;
    *reference = (struct reference){
        .options = {.device = {.threads = 1}}, .real = DTYPE_F32, .batch = task->batch};
    snprintf(reference->name, sizeof reference->name, "ref");
    if (seconds * 1e9 > (double)bench->patience_ns)
        TRY(reference_cut(reference, bench, task, seconds));
    return registry_find(bench->registry, "ref", &reference->options.backend);
}

static enum status reference_settle(struct reference *reference, const struct bench *bench,
                                    struct task *task)
{
    if (task->quantise || task->network->quantised)
        return reference_settle_int8(reference, bench, task);
    struct cpu cpu;
    cpu_detect(&cpu);
    const bool exact = reference_flop(task) <= EXACT_FLOP;
    const int threads = exact ? 1 : cpu.cores;
    const double seconds = reference_seconds(task) * (1 + PERTURBED_DRAWS) / threads;

    *reference = (struct reference){
        .options = {.device = {.threads = threads, .isa = cpu_isa(&cpu, ISA_AVX2)}},
        .real = exact ? DTYPE_F64 : DTYPE_F32,
        .batch = task->batch,
    };
    snprintf(reference->name, sizeof reference->name, "ref f64");
    if (!exact)
        snprintf(reference->name, sizeof reference->name, "simd/%s, unfused",
                 isa_name(reference->options.device.isa));
    if (!exact && seconds * 1e9 > (double)bench->patience_ns)
        TRY(reference_cut(reference, bench, task, seconds));
    if (reference_bytes(task) > room_bytes()) /* a GPU may have more */
        FAIL(STATUS_UNSUPPORTED, "the check would need %.0f GB of memory, and there are %.0f free",
             reference_bytes(task) * 1e-9, room_bytes() * 1e-9);
    TRY(registry_find(bench->registry, exact ? "ref" : "simd", &reference->options.backend));
    return reference->options.backend->probe();
}

void reference_choose(struct reference *reference, const struct bench *bench, struct task *task)
{
    const bool dear = reference_is_dear(task);
    if (reference_settle(reference, bench, task) != STATUS_OK)
        snprintf(reference->missing, sizeof reference->missing, "%s", status_message());
    reference->options.stopped = bench->measure.stopped;
    reference->options.long_steps = dear;
}

/* Counts how far parameters moved from where they started, perturbed or not. */
static void reference_level(const struct task *task, const struct task *copy, struct outcome *out)
{
    if (task->phase != PHASE_TRAINING)
        return;
    for (int32_t stage = 0; stage < task_stages(task); stage++)
        for (int64_t i = 0; i < task->value_count; i++)
            out->values[stage * task->value_count + i] +=
                task_initial(task, i) - task_initial(copy, i);
}

static enum status reference_draw(const struct reference *reference, struct task *task,
                                  struct task *runs)
{
    struct outcome *out = &task->draws[task->draw_count];
    TRY(outcome_make(task, &task->arena, out));
    TRY(job_network_answer(runs, &reference->options, out));
    reference_level(task, runs, out);
    task->draw_count++;
    return STATUS_OK;
}

/* What `copy` gives, perturbed so. */
static enum status reference_perturb(const struct reference *reference, struct task *task,
                                     struct task *copy, double rounding)
{
    for (uint32_t draw = 0; draw < PERTURBED_DRAWS; draw++) {
        task_perturb(copy, task, rounding, draw);
        TRY(reference_draw(reference, task, copy));
    }
    return STATUS_OK;
}

/* What fp32 itself makes of it. */
static enum status reference_round(const struct reference *reference, struct task *task)
{
    struct task *copy = NULL;
    TRY(reference_draw(reference, task, task));
    TRY(task_copy(task, DTYPE_F32, reference->batch, &copy));
    enum status status = reference_perturb(reference, task, copy, task->rounding);
    task_close(copy);
    return status;
}

enum status reference_compute(const struct reference *reference, struct task *task)
{
    const double rounding = task->rounding * (is_fp32(task) ? FP32_TIMES : 1);
    struct task *copy = NULL;
    enum status status = STATUS_OK;

    task->draw_count = 0;
    TRY(outcome_make(task, &task->arena, &task->reference));
    TRY(task_copy(task, reference->real, reference->batch, &copy));
    TRY_OR(done, job_network_answer(copy, &reference->options, &task->reference));
    if (!task->network->quantised)
        TRY_OR(done, reference_perturb(reference, task, copy, rounding));
    if (reference->real == DTYPE_F64 && is_fp32(task))
        TRY_OR(done, reference_round(reference, task));
    task->has_reference = true;
done:
    task_close(copy);
    return status;
}

static enum status reference_find(const struct reference *reference, const struct bench *bench,
                                  struct task *task)
{
    if (!reference_is_dear(task))
        return reference_compute(reference, task);
    TRY(reference_load(task, reference->name, bench->facts.commit));
    if (task->has_reference)
        return STATUS_OK;
    TRY(reference_compute(reference, task));
    return reference_save(task, reference->name, bench->facts.commit);
}

enum status reference_begin(struct reference *reference, const struct bench *bench,
                            struct task *task)
{
    if (reference->begun || reference->missing[0])
        return STATUS_OK;
    reference->begun = true;
    enum status status = reference_find(reference, bench, task);
    if (status != STATUS_OK)
        snprintf(reference->missing, sizeof reference->missing, "%s", status_message());
    return status == STATUS_MEMORY || status == STATUS_INTERRUPTED ? status : STATUS_OK;
}

enum status reference_check(const struct reference *reference, struct job *job, double *error)
{
    if (reference->missing[0])
        FAIL(STATUS_UNSUPPORTED, "%s", reference->missing);
    return job->kind->check(job, error);
}
