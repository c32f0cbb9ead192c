/* planted.h: faults that are planted where results are made: a backend that does as another one,
 * but for one mistake, and a task that starts from numbers which somebody read wrongly. */
#ifndef PRONY_TESTS_PLANTED_H
#define PRONY_TESTS_PLANTED_H

#include "base/memory.h"
#include "bench/check/outcome.h"
#include "bench/check/reference.h"
#include "bench/check/task_copy.h"
#include "bench/job/job_network.h"

#include <math.h>

enum fault {
    FAULT_NONE,
    FAULT_NO_UPDATE,   /* nothing is learnt */
    FAULT_LONG,        /* the update of an entry is `times` too long, as its gradient × that */
    FAULT_LONG_ALL,    /* … of all of them */
    FAULT_NOT_UPDATED, /* an entry is left out in the last step */
    FAULT_STALE,       /* … its forward and backward pass read it as it was at the start */
    FAULT_TAIL,        /* the last number of an entry is never updated */
    FAULT_INFINITE,    /* … is infinite after the last step */
    FAULT_SKIPPED,     /* a bias is taken for zero */
    FAULT_SWAPPED,     /* a matrix is read as its transpose */
    FAULT_OLD,         /* inference with weights of before an update: off by a twentieth */
    FAULT_COUNT
};

static const char *const fault_names[FAULT_COUNT] = {
    "none",         "no update",       "long update",      "long updates",
    "not updated",  "stale weight",    "tail not updated", "infinite tail",
    "skipped bias", "swapped operand", "old weight"};

struct plant {
    enum fault fault;
    int32_t entry;
    double times;
    const struct backend *inner;
    struct task *task;
    struct instance *instance;
    struct params before, after;
    int64_t run, runs; /* calls of `run`, and how many there are in a check */
};
static struct plant plant;

static enum status planted_attach(struct device *device, const struct params *params,
                                  struct instance **out)
{
    enum status status = plant.inner->attach(device, params, out);
    plant.instance = *out;
    return status;
}

static enum status planted_upload(struct instance *instance, const struct params *params)
{
    plant.run = 0;
    return plant.inner->upload(instance, params);
}

static void entry_copy(const struct params *from, struct params *to, int32_t entry)
{
    memcpy(params_data(to, entry), params_data(from, entry), (size_t)to->entries[entry].bytes);
}

/* to = from + times × (after − before) */
static void entry_move(struct params *to, const struct params *from, int32_t entry, double times)
{
    const float *start = params_data(from, entry), *before = params_data(&plant.before, entry);
    const float *after = params_data(&plant.after, entry);
    float *out = params_data(to, entry);
    for (int64_t i = 0; i < shape_count(&to->entries[entry].shape); i++)
        out[i] = (float)((double)start[i] + times * ((double)after[i] - (double)before[i]));
}

static void planted_mend(struct params *result, const struct params *was)
{
    const bool last = plant.run + plant.task->step.count >= plant.runs;
    for (int32_t e = 0; e < result->count; e++) {
        const bool is_it = e == plant.entry || plant.fault == FAULT_LONG_ALL;
        if (result->entries[e].role != ROLE_PARAM || !is_it)
            continue;
        const int64_t tail = shape_count(&result->entries[e].shape) - 1;
        float *to = params_data(result, e);
        if (plant.fault == FAULT_LONG || plant.fault == FAULT_LONG_ALL)
            entry_move(result, was, e, plant.times);
        else if (last && plant.fault == FAULT_NOT_UPDATED)
            entry_copy(was, result, e);
        else if (last && plant.fault == FAULT_STALE)
            entry_move(result, was, e, 1);
        else if (plant.fault == FAULT_TAIL)
            to[tail] = ((const float *)params_data(was, e))[tail];
        else if (last && plant.fault == FAULT_INFINITE)
            to[tail] = INFINITY;
    }
}

/* One step, and what is wrong with it. */
static enum status planted_step(struct plan *plan, unsigned parts, int slot)
{
    struct params was = plant.before; /* the same entries; blocks of its own */
    const size_t bytes = (size_t)was.blocks[ROLE_PARAM].bytes;
    TRY(plant.inner->download(plant.instance, &plant.before));
    NEED(was.blocks[ROLE_PARAM].data = mem_alloc(bytes));
    memcpy(was.blocks[ROLE_PARAM].data, plant.before.blocks[ROLE_PARAM].data, bytes);
    if (plant.fault == FAULT_STALE && plant.run + plant.task->step.count >= plant.runs) {
        entry_copy(&plant.task->params, &plant.before, plant.entry);
        TRY(plant.inner->upload(plant.instance, &plant.before));
    }
    TRY(plant.inner->run(plan, parts, slot, 1));
    TRY(plant.inner->sync(plan));
    TRY(plant.inner->download(plant.instance, &plant.after));
    struct params result = plant.after;
    NEED(result.blocks[ROLE_PARAM].data = mem_alloc(bytes));
    memcpy(result.blocks[ROLE_PARAM].data, plant.after.blocks[ROLE_PARAM].data, bytes);
    planted_mend(&result, &was);
    enum status status = plant.inner->upload(plant.instance, &result);
    mem_free(result.blocks[ROLE_PARAM].data);
    mem_free(was.blocks[ROLE_PARAM].data);
    return status;
}

static enum status planted_run(struct plan *plan, unsigned parts, int slot, int64_t steps)
{
    if (plant.fault == FAULT_NO_UPDATE)
        parts &= ~(1u << PART_UPDATE);
    const bool between = plant.fault >= FAULT_LONG && plant.fault <= FAULT_INFINITE;
    if (!between)
        return plant.inner->run(plan, parts, slot, steps);
    for (int64_t i = 0; i < steps; i++, plant.run++)
        TRY(planted_step(plan, parts, slot));
    return STATUS_OK;
}

static enum status params_like(const struct params *like, struct params *out)
{
    int32_t entry;
    params_init(out, like->real);
    for (int32_t e = 0; e < like->count; e++)
        TRY(params_declare(out, like->entries[e].name, like->entries[e].role,
                           like->entries[e].dtype, like->entries[e].shape, like->entries[e].init,
                           &entry));
    return STATUS_OK;
}

/* What is read in the place of an entry's numbers. */
static void planted_misread(struct task *copy, enum fault fault, int32_t entry)
{
    const struct shape *shape = &copy->params.entries[entry].shape;
    const int64_t count = shape_count(shape), rows = shape->dim[0], columns = count / rows;
    const float *right = params_data(&plant.task->params, entry);
    float *wrong = params_data(&copy->params, entry);
    for (int64_t i = 0; i < count; i++)
        wrong[i] = fault == FAULT_SKIPPED ? 0
                   : fault == FAULT_OLD   ? 1.05f * right[i]
                                          : right[i % rows * columns + i / rows];
}

/* What the job gives, with that fault. */
static enum status planted_answer(struct task *task, const struct network_options *options,
                                  enum fault fault, int32_t entry, double times,
                                  struct outcome *out)
{
    struct backend wrong = *options->backend;
    struct network_options planted = *options;
    struct task *copy = NULL;

    plant = (struct plant){.fault = fault, .entry = entry, .times = times, .task = task};
    plant.inner = options->backend;
    plant.runs = (int64_t)task->check_steps * task->step.count;
    wrong.attach = planted_attach;
    wrong.upload = planted_upload;
    wrong.run = planted_run;
    planted.backend = &wrong;
    TRY(params_like(&task->params, &plant.before));
    TRY(params_like(&task->params, &plant.after));
    TRY(outcome_make(task, &task->arena, out));
    TRY(task_copy(task, DTYPE_F32, task->batch, &copy));
    if (fault >= FAULT_SKIPPED)
        planted_misread(copy, fault, entry);
    enum status status = job_network_answer(copy, &planted, out);
    for (int32_t stage = 0; task->places && stage < task_stages(task); stage++)
        for (int64_t i = 0; i < task->value_count; i++)
            out->values[stage * task->value_count + i] +=
                task_initial(task, i) - task_initial(copy, i);
    task_close(copy);
    params_free(&plant.before);
    params_free(&plant.after);
    return status;
}

#endif
