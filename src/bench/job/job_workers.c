/* job_workers.c: see job_workers.h. A lap over the task's data, again and again: it shares out
 * samples, weights or layers as `prony train` does. */
#include "bench/job/job_workers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/job/describe.h"
#include "train/workers/lap_split.h"

#include <math.h>

/* A lap goes over the data so many times, so that it seldom begins anew. */
enum { ROUNDS = 32 };

struct job_workers {
    struct job job;
    struct task *task;
    struct network_options options;
    struct engine engine;
    struct lap lap;
    struct dataset data;
    struct traffic traffic;
    uint32_t *order;
    struct arena arena;
};

static bool is_split(const struct job_workers *workers)
{
    return sharing_splits(&workers->lap.sharing);
}

static void *data_of(const struct task *task, const char *name)
{
    const int32_t entry = params_find(&task->data, name);
    return entry < 0 ? NULL : params_data(&task->data, entry);
}

static enum status begin_lap(struct job_workers *workers)
{
    const struct lap_data data = {
        .dataset = &workers->data, .targets = data_of(workers->task, "target"), .version = 0};
    return lap_begin(&workers->lap, &data, workers->order, 0);
}

static enum status take_data(struct job_workers *workers)
{
    const struct task *task = workers->task;
    const int64_t rows = ROUNDS * task->rows;
    workers->data = (struct dataset){.name = task->network->name,
                                     .rows = task->rows,
                                     .features = data_of(task, "x"),
                                     .labels = data_of(task, "label")};
    NEED(workers->order = arena_array(&workers->arena, (size_t)rows, sizeof *workers->order));
    for (int64_t i = 0; i < rows; i++)
        workers->order[i] = task->order[i % task->rows];
    return STATUS_OK;
}

/* The device has parameters of this worker's own, or all of them. */
static enum status attach(struct job_workers *workers)
{
    if (!is_split(workers))
        TRY(engine_attach(&workers->engine, &workers->task->params));
    TRY(lap_prepare(&workers->lap, &workers->engine, &workers->task->params));
    return begin_lap(workers);
}

static enum status workers_prepare(struct job *job)
{
    struct job_workers *workers = (struct job_workers *)job;
    const struct task *task = workers->task;
    struct compile_options options = {
        .batch = task->batch, .use = USE_TRAINING, .optimiser = task->optimiser_text};
    struct recipe_traits traits;
    TRY(recipe_traits(task->network, &options, &traits));
    options.classes = traits.classes ? RECIPE_CLASSES : 0;
    if (traits.stages > 1)
        FAIL(STATUS_UNSUPPORTED, "%s is trained in stages: --workers needs a training of one",
             task->network->name);
    workers->engine.recompute = workers->options.recompute;
    TRY(engine_open(&workers->engine, workers->options.backend, &workers->options.device));
    TRY(take_data(workers));
    TRY(lap_compile(&workers->lap, &workers->engine, task->network, &workers->task->params,
                    &options, ROUNDS * task->rows));
    return attach(workers);
}

static enum status iterate(struct job_workers *workers, int64_t iterations, struct score *score)
{
    struct lap *lap = &workers->lap;
    while (iterations > 0) {
        if (lap->step == lap->steps)
            TRY(begin_lap(workers));
        const int64_t left = lap->steps - lap->step, now = iterations < left ? iterations : left;
        TRY(lap_run(lap, now, score));
        iterations -= now;
    }
    return STATUS_OK;
}

/* From where all of them begin to where all have ended. */
static enum status workers_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct job_workers *workers = (struct job_workers *)job;
    struct comm *comm = workers->lap.sharing.comm;
    TRY(comm_barrier(comm));
    const uint64_t start_ns = clock_ns();
    TRY(iterate(workers, iterations, NULL));
    TRY(comm_barrier(comm));
    *elapsed_ns = clock_ns() - start_ns;
    return STATUS_OK;
}

static enum status workers_describe(struct job *job, struct arena *arena, struct job_info *out)
{
    const struct job_workers *workers = (const struct job_workers *)job;
    const struct leg *leg = &workers->lap.legs[0];
    return describe_plans(workers->engine.backend, workers->engine.device, leg->plans,
                          leg->step.count, arena, out);
}

static void workers_close(struct job *job)
{
    struct job_workers *workers = (struct job_workers *)job;
    lap_close(&workers->lap);
    engine_close(&workers->engine);
    arena_free(&workers->arena);
    mem_free(workers);
}

/* From the initial parameters on. */
static enum status restart(struct job_workers *workers)
{
    const struct params *params = &workers->task->params;
    TRY(is_split(workers) ? lap_split_take(&workers->lap, params)
                          : workers->engine.backend->upload(workers->engine.instance, params));
    return begin_lap(workers);
}

static enum status declare_like(const struct params *like, struct params *out)
{
    int32_t entry;
    params_init(out, like->real);
    for (int32_t e = 0; e < like->count; e++) {
        const struct entry *from = &like->entries[e];
        TRY(params_declare(out, from->name, from->role, from->dtype, from->shape, from->init,
                           &entry));
    }
    return STATUS_OK;
}

/* What all of them have learnt, and the loss of the last step. */
static enum status look(struct job_workers *workers, int32_t stage, const struct score *last,
                        struct params *after, struct outcome *out)
{
    const struct task *task = workers->task;
    const int64_t from = stage * task->value_count;
    out->loss[stage] = score_loss(last);
    TRY(is_split(workers) ? lap_split_gather(&workers->lap, after, false)
                          : workers->engine.backend->download(workers->engine.instance, after));
    for (int64_t i = 0; i < task->value_count; i++)
        out->values[from + i] = task_real(after, task->places[i].entry, task->places[i].element);
    return STATUS_OK;
}

enum status job_workers_outcome(struct job *job, struct outcome *out)
{
    struct job_workers *workers = (struct job_workers *)job;
    const struct task *task = workers->task;
    struct params after;
    int32_t steps = 0;
    TRY(restart(workers));
    enum status status = declare_like(&task->params, &after);
    for (int32_t stage = 0; stage < task_stages(task) && status == STATUS_OK; stage++) {
        struct score last = {0};
        status = iterate(workers, task_steps(task, stage) - steps - 1, NULL);
        if (status == STATUS_OK)
            status = iterate(workers, 1, &last);
        if (status == STATUS_OK)
            status = look(workers, stage, &last, &after, out);
        steps = task_steps(task, stage);
    }
    params_free(&after);
    return status;
}

enum status job_workers_staleness(struct job *job, struct staleness *out)
{
    struct job_workers *workers = (struct job_workers *)job;
    TRY(lap_split_add_stale(&workers->lap));
    *out = workers->lap.stale;
    return STATUS_OK;
}

enum status job_workers_traffic(struct job *job, struct traffic *out)
{
    struct job_workers *workers = (struct job_workers *)job;
    struct comm *comm = workers->lap.sharing.comm;
    struct traffic *own = &workers->traffic;
    double sums[] = {(double)own->waited_ns, (double)own->hidden_ns, (double)own->bytes};
    TRY(comm_all_reduce(comm, sums, sizeof sums / sizeof *sums, DTYPE_F64));
    *out = (struct traffic){.waited_ns = (uint64_t)(sums[0] / comm->size),
                            .hidden_ns = (uint64_t)(sums[1] / comm->size),
                            .bytes = (uint64_t)(sums[2] / comm->size)};
    *own = (struct traffic){0};
    return STATUS_OK;
}

static const struct job_kind workers_kind = {"workers", workers_prepare,  workers_run,  NULL,
                                             NULL,      workers_describe, workers_close};

enum status job_workers_open(struct task *task, const struct network_options *options,
                             const struct sharing *sharing, struct job **out)
{
    struct job_workers *workers = mem_alloc(sizeof *workers);
    NEED(workers);
    workers->job.kind = &workers_kind;
    workers->task = task;
    workers->options = *options;
    workers->lap.sharing = *sharing;
    workers->lap.sharing.traffic = &workers->traffic;
    *out = &workers->job;
    return STATUS_OK;
}
