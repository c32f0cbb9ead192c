/* job_network.c: see job_network.h. */
#include "bench/job/job_network.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "bench/check/outcome.h"
#include "bench/job/describe.h"
#include "core/pass/recompute.h"
#include "record/stats.h"
#include "train/engine.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { LOSS_RING = 64, VIEWS = 6, PART_SAMPLES = 32 };
enum { LUCKS = 2 };
static const uint32_t LUCK_BYTES[LUCKS] = {32 << 10, 16 << 20};
static const uint64_t PARTS_NS = 50000000; /* for looking at the parts of an iteration */

struct job_network {
    struct job job;
    struct task *task;
    struct network_options options;
    struct device *device;
    struct instance *instance;
    struct recipe_step made; /* of the task's programs by passes; or empty */
    struct plan *plans[RECIPE_TURNS];
    struct plan *watched[RECIPE_TURNS]; /* prepared to be observed, or NULL */
    void *luck[LUCKS]; /* memory that is in the way of the rest, and otherwise not used */
    uint32_t renewals;
    struct samples samples;
    struct arena arena;
    bool interrupted;      /* options.stopped said so between two ops */
    uint64_t calls;        /* since the data was bound; of chained ones only */
    void *y;               /* outputs, a row per row of the data; NULL in training */
    void *losses, *rights; /* rings of reals, one a step; NULL in inference */
};

/* Room for the program's output `name`, if it has one, and its view. */
static enum status network_output(struct job_network *network, const struct program *program,
                                  const char *name, int64_t rows, struct view *views,
                                  int32_t *count, void **out)
{
    int32_t tensor = program_find(program, ROLE_OUTPUT, name);
    if (tensor < 0)
        return STATUS_OK;
    const struct tensor *of = &program->tensors[tensor];
    size_t row_bytes = (size_t)(of->bytes / (uint64_t)of->shape.dim[0]);
    if (!*out)
        NEED(*out = arena_array(&network->arena, (size_t)rows, row_bytes));
    views[(*count)++] = (struct view){.tensor = tensor, .data = *out, .rows = rows};
    return STATUS_OK;
}

/* What the job runs: the task's programs, or what passes made of them. */
static const struct recipe_step *network_step(const struct job_network *network)
{
    return network->made.count ? &network->made : &network->task->step;
}

/* Where iterations are timed on a GPU that has the samples, large outputs stay there too, as a
 * peer's do: only calls and checks bring them back. */
static bool network_leaves_output(const struct job_network *network, const struct program *program)
{
    const uint64_t large = 64 << 10;
    int32_t y = program_find(program, ROLE_OUTPUT, "y");
    return y >= 0 && program->tensors[y].bytes > large &&
           strcmp(network->options.backend->unit, "gpu") == 0 &&
           network->options.ingestion <= INGEST_RESIDENT &&
           network->options.answering == ANSWER_STEPS;
}

/* One program's plan, from the first row of the order on, whatever ran before. `checked`: its
 * outputs are looked at. */
static enum status network_bind(struct job_network *network, int32_t p, struct plan *plan,
                                bool checked)
{
    struct task *task = network->task;
    const struct program *program = network_step(network)->programs[p];
    struct view views[VIEWS];
    int32_t count = 0;

    for (int32_t e = 0; e < task->data.count; e++) {
        int32_t tensor = program_find(program, ROLE_INPUT, task->data.entries[e].name);
        if (tensor >= 0)
            views[count++] = (struct view){.tensor = tensor,
                                           .data = samples_data(&network->samples, task, e),
                                           .rows = task->rows};
    }
    if (checked || !network_leaves_output(network, program))
        TRY(network_output(network, program, "y", task->rows, views, &count, &network->y));
    TRY(network_output(network, program, "loss", LOSS_RING, views, &count, &network->losses));
    TRY(network_output(network, program, "right", LOSS_RING, views, &count, &network->rights));
    const struct binding binding = {.views = views,
                                    .view_count = count,
                                    .order = task->order,
                                    .order_count = task->rows,
                                    .ingestion =
                                        network->options.answering == ANSWER_STEPS
                                            ? network->options.ingestion
                                            : INGEST_PINNED}; /* calls come from the host */
    return network->options.backend->bind(plan, &binding);
}

static enum status network_bind_all(struct job_network *network, bool checked)
{
    network->calls = 0;
    for (int32_t p = 0; p < network->task->step.count; p++)
        TRY(network_bind(network, p, network->plans[p], checked));
    return STATUS_OK;
}

static void ask_event(void *context, const struct event *event)
{
    struct job_network *network = context;
    (void)event;
    network->interrupted |= network->options.stopped();
}

/* The instance and a plan of each program. */
static enum status network_attach(struct job_network *network)
{
    const struct backend *backend = network->options.backend;
    struct plan_options plain = {.answering = network->options.answering};

    if (network->options.stopped && network->options.long_steps)
        plain.observer = (struct observer){OBSERVE_OPS, ask_event, network};

    TRY(backend->attach(network->device, &network->task->params, &network->instance));
    for (int32_t p = 0; p < network->task->step.count; p++)
        TRY(backend->prepare(network->instance, network_step(network)->programs[p], &plain,
                             &network->plans[p]));
    return network_bind_all(network, false);
}

static void network_detach(struct job_network *network)
{
    const struct backend *backend = network->options.backend;
    for (int32_t p = 0; p < RECIPE_TURNS; p++) {
        if (network->plans[p])
            backend->release(network->plans[p]);
        network->plans[p] = NULL;
    }
    if (network->instance)
        backend->detach(network->instance);
    network->instance = NULL;
}

/* What the job's passes make of one of the task's programs. */
static enum status network_make(struct job_network *network, int32_t p)
{
    const struct network_options *options = &network->options;
    const struct program *program = network->task->step.programs[p];
    struct program **made = &network->made.programs[p];
    const struct engine engine = {
        .backend = options->backend, .device = network->device, .recompute = options->recompute};
    if (!options->fusion && !options->recompute)
        return STATUS_OK;
    TRY(options->fusion ? engine_fuse(&engine, program, made) : recompute(program, 0, made));
    network->made.count++;
    return STATUS_OK;
}

static enum status network_prepare(struct job *job)
{
    struct job_network *network = (struct job_network *)job;
    const struct backend *backend = network->options.backend;
    const struct recipe_step *step = &network->task->step;

    if (network->options.chained && network->task->data.entries[0].dtype != DTYPE_F32)
        FAIL(STATUS_UNSUPPORTED, "chained needs questions of real numbers, not of whole ones");
    TRY(backend->probe());
    TRY(backend->open(&network->options.device, &network->device));
    for (int32_t p = 0; p < step->count; p++)
        TRY(network_make(network, p));
    TRY(engine_check_memory(backend, network_step(network)->programs, step->count,
                            &network->task->params, network->task->data.blocks[ROLE_PARAM].bytes));
    TRY(samples_open(&network->samples, network->task, network->options.place));
    return network_attach(network);
}

static void network_free_luck(struct job_network *network)
{
    for (int i = 0; i < LUCKS; i++) {
        mem_free(network->luck[i]);
        network->luck[i] = NULL;
    }
}

/* Where the new memory lies must not be where the old one was: what is freed last is given out
 * first, so something of another size is put in between: little, which moves what lies in the gap
 * that the old one left, and much, which moves what is larger. Two that are compared must not move
 * alike. */
static enum status network_renew(struct job *job, int *process)
{
    struct job_network *network = (struct job_network *)job;
    const struct rng_key key = {.stream = (uint32_t)((uintptr_t)network / sizeof *network)};

    (void)process;
    job_network_unwatch(job);
    network_detach(network);
    network_free_luck(network);
    network->renewals++;
    for (uint32_t i = 0; i < LUCKS; i++) {
        size_t bytes = rng_below(key, network->renewals, i, LUCK_BYTES[i]);
        NEED(network->luck[i] = mem_aligned(64, bytes));
    }
    return network_attach(network);
}

/* Row of the data that holds sample number `sample`. */
static int64_t network_row(const struct job_network *network, uint64_t sample)
{
    return network->task->order[sample % (uint64_t)network->task->rows];
}

/* The next question waits for this answer: nothing times its first number is added to each of its
 * samples, which leaves them as they are. */
static void network_chain(struct job_network *network)
{
    const struct task *task = network->task;
    int32_t tensor;
    const struct program *program = task_find(network->task, ROLE_OUTPUT, "y", &tensor);
    int64_t y_width = shape_count(&program->tensors[tensor].shape) / task->batch;
    int64_t x_width = shape_count(&task->data.entries[0].shape) / task->rows;
    const float *y = network->y;
    float *x = samples_data(&network->samples, task, 0);
    uint64_t first = network->calls++ * (uint64_t)task->batch, next = first + (uint64_t)task->batch;
    for (uint64_t n = 0; n < (uint64_t)task->batch; n++)
        x[network_row(network, next + n) * x_width] +=
            0 * y[network_row(network, first + n) * y_width];
}

/* So many iterations: of one program all at once, unless they are calls; of several in turn. */
static enum status network_iterate(struct job_network *network, int64_t iterations)
{
    const struct backend *backend = network->options.backend;
    int32_t count = network->task->step.count;
    const bool at_once = count == 1 && network->options.answering == ANSWER_STEPS;
    if (at_once)
        TRY(backend->run(network->plans[0], PARTS_ALL, 0, iterations));
    for (int64_t i = 0; !at_once && i < iterations; i++) {
        for (int32_t p = 0; p < count; p++)
            TRY(backend->run(network->plans[p], PARTS_ALL, 0, 1));
        if (network->options.chained) {
            TRY(backend->sync(network->plans[count - 1]));
            network_chain(network);
        }
    }
    for (int32_t p = 0; p < count; p++)
        TRY(backend->sync(network->plans[p]));
    return STATUS_OK;
}

/* The same, of a check: whoever waits may stop it. */
static enum status network_check_iterate(struct job_network *network, int64_t iterations)
{
    bool (*const stopped)(void) = network->options.stopped;
    for (int64_t i = 0; stopped && i < iterations; i++) {
        TRY(network_iterate(network, 1));
        if (network->interrupted || stopped())
            FAIL(STATUS_INTERRUPTED, "stopped");
    }
    return stopped ? STATUS_OK : network_iterate(network, iterations);
}

/* Samples on the disk are read from there once: after that they are in memory, until they are put
 * out of it again, which is not timed. */
static enum status network_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    struct job_network *network = (struct job_network *)job;
    const bool on_disk = network->options.place == SAMPLES_DISK;

    *elapsed_ns = 0;
    while (iterations > 0) {
        int64_t now = on_disk && iterations > TASK_BATCHES ? TASK_BATCHES : iterations;
        if (on_disk)
            TRY(samples_evict(&network->samples));
        uint64_t start_ns = clock_ns();
        TRY(network_iterate(network, now));
        *elapsed_ns += clock_ns() - start_ns;
        iterations -= now;
    }
    return STATUS_OK;
}

static double network_real(const struct job_network *network, const void *data, int64_t i)
{
    return network->task->params.real == DTYPE_F64 ? ((const double *)data)[i]
                                                   : (double)((const float *)data)[i];
}

static void network_answers(const struct job_network *network, struct outcome *out)
{
    const struct task *task = network->task;
    int32_t y;
    const struct program *program = task_find(task, ROLE_OUTPUT, "y", &y);
    const int64_t width = shape_count(&program->tensors[y].shape) / task->batch;
    for (int64_t i = 0; i < task->value_count; i++)
        out->values[i] =
            network_real(network, network->y, task->order[i / width] * width + i % width);
}

/* The loss and the parameters now, at the end of a stage. */
static enum status network_learnt(struct job_network *network, int32_t stage, struct params *after,
                                  struct outcome *out)
{
    const struct task *task = network->task;
    const int64_t step = task_steps(task, stage) - 1, from = stage * task->value_count;
    out->loss[stage] = network_real(network, network->losses, step % LOSS_RING);
    TRY(network->options.backend->download(network->instance, after));
    for (int64_t i = 0; i < task->value_count; i++)
        out->values[from + i] = task_real(after, task->places[i].entry, task->places[i].element);
    return STATUS_OK;
}

static enum status network_train(struct job_network *network, struct outcome *out)
{
    const struct task *task = network->task;
    struct params after;
    int32_t entry, steps = 0;
    enum status status = STATUS_OK;

    params_init(&after, task->params.real);
    for (int32_t e = 0; e < task->params.count; e++) {
        const struct entry *like = &task->params.entries[e];
        TRY_OR(done, params_declare(&after, like->name, like->role, like->dtype, like->shape,
                                    like->init, &entry));
    }
    for (int32_t stage = 0; stage < task_stages(task); stage++) {
        TRY_OR(done, network_check_iterate(network, task_steps(task, stage) - steps));
        TRY_OR(done, network_learnt(network, stage, &after, out));
        steps = task_steps(task, stage);
    }
done:
    params_free(&after);
    return status;
}

/* From the initial parameters and the first batch again: the check's steps, and what came of it. */
static enum status network_outcome(struct job_network *network, struct outcome *out)
{
    const struct task *task = network->task;
    TRY(network->options.backend->upload(network->instance, &task->params));
    TRY(network_bind_all(network, true));
    if (task->phase == PHASE_TRAINING)
        return network_train(network, out);
    TRY(network_check_iterate(network, task->check_steps));
    network_answers(network, out);
    return network_bind_all(network, false);
}

const struct recipe_step *job_network_step(const struct job *job)
{
    return network_step((const struct job_network *)job);
}

/* The watched plans: so many steps, as network_run has them. */
static enum status network_step_watched(const struct job_network *network, int steps)
{
    const struct backend *backend = network->options.backend;
    if (network->options.place == SAMPLES_DISK)
        TRY(samples_evict(&network->samples));
    for (int32_t p = 0; p < network->task->step.count; p++) {
        TRY(backend->run(network->watched[p], PARTS_ALL, 0, steps));
        TRY(backend->sync(network->watched[p]));
    }
    return STATUS_OK;
}

enum status job_network_watch(struct job *job, const struct watching *watching)
{
    struct job_network *network = (struct job_network *)job;
    const struct backend *backend = network->options.backend;

    job_network_unwatch(job);
    for (int32_t p = 0; p < network->task->step.count; p++) {
        const struct plan_options observed = {.observer = watching->observers[p]};
        TRY(backend->prepare(network->instance, network_step(network)->programs[p], &observed,
                             &network->watched[p]));
        TRY(network_bind(network, p, network->watched[p], false));
    }
    const int most = network->options.place == SAMPLES_DISK ? TASK_BATCHES : INT_MAX;
    const int wanted = watching->together ? watching->together : 1;
    const int together = wanted < most ? wanted : most;
    uint64_t start_ns = clock_ns();
    for (int step = 0; step <= watching->steps; step++) {
        if (step > 1 && clock_ns() - start_ns > watching->limit_ns)
            break;
        TRY(network_step_watched(network, together));
        watching->after(watching->context, step);
    }
    return STATUS_OK;
}

void job_network_unwatch(struct job *job)
{
    struct job_network *network = (struct job_network *)job;
    for (int32_t p = 0; p < RECIPE_TURNS; p++) {
        if (network->watched[p])
            network->options.backend->release(network->watched[p]);
        network->watched[p] = NULL;
    }
}

/* The times of each part, over all programs of a step. */
struct parts_seen {
    double step_ns[PART_COUNT]; /* of the step that is running, so far, … */
    bool ran[PART_COUNT];       /* … if it has such a part */
    double ns[PART_COUNT][PART_SAMPLES];
    size_t count[PART_COUNT];
};

static void parts_event(void *context, const struct event *event)
{
    struct parts_seen *seen = context;
    seen->step_ns[event->part] += (double)(event->end_ns - event->start_ns);
    seen->ran[event->part] = true;
}

static void parts_after(void *context, int step)
{
    struct parts_seen *seen = context;
    for (int part = 0; part < PART_COUNT; part++) {
        if (step > 0 && seen->ran[part]) /* the first was the warm-up */
            seen->ns[part][seen->count[part]++] = seen->step_ns[part];
        seen->step_ns[part] = 0;
        seen->ran[part] = false;
    }
}

static double parts_scale(double ns[PART_COUNT], double step_ns)
{
    double sum = 0;
    for (int part = 0; part < PART_COUNT; part++)
        sum += isnan(ns[part]) ? 0 : ns[part];
    for (int part = 0; part < PART_COUNT && sum > step_ns; part++)
        ns[part] *= step_ns / sum;
    return sum > step_ns ? step_ns / sum : (double)NAN;
}

enum status job_network_parts(struct job *job, double step_ns, double parts_ns[PART_COUNT],
                              double *scaled)
{
    struct parts_seen seen = {0};
    struct observer observers[RECIPE_TURNS];
    const struct watching watching = {.observers = observers,
                                      .after = parts_after,
                                      .context = &seen,
                                      .steps = PART_SAMPLES,
                                      .limit_ns = PARTS_NS};
    for (int32_t p = 0; p < RECIPE_TURNS; p++)
        observers[p] = (struct observer){OBSERVE_PARTS, parts_event, &seen};
    enum status status = job_network_watch(job, &watching);
    job_network_unwatch(job);
    for (int part = 0; part < PART_COUNT; part++) {
        double low, high;
        parts_ns[part] = (double)NAN;
        if (seen.count[part])
            stats_median(seen.ns[part], seen.count[part], 0.95, &parts_ns[part], &low, &high);
    }
    *scaled = parts_scale(parts_ns, step_ns);
    return status;
}

/* The times of ops of one program, added up. */
struct conversions_seen {
    const struct program *program;
    double *converting_ns, *all_ns; /* of all programs */
};

static void conversions_event(void *context, const struct event *event)
{
    struct conversions_seen *seen = context;
    const double ns = (double)(event->end_ns - event->start_ns);
    const enum op_kind kind = event->op >= 0 ? seen->program->ops[event->op].kind : OP_load;
    *seen->all_ns += event->op >= 0 ? ns : 0;
    *seen->converting_ns += kind == OP_quantise || kind == OP_dequantise ? ns : 0;
}

static void conversions_after(void *context, int step)
{
    struct conversions_seen *seen = context;
    if (step == 0) /* the warm-up */
        *seen->all_ns = *seen->converting_ns = 0;
}

enum status job_network_conversions(struct job *job, double *share)
{
    const struct recipe_step *step = job_network_step(job);
    struct conversions_seen seen[RECIPE_TURNS];
    struct observer observers[RECIPE_TURNS];
    double converting_ns = 0, all_ns = 0;
    const struct watching watching = {.observers = observers,
                                      .after = conversions_after,
                                      .context = seen,
                                      .steps = PART_SAMPLES,
                                      .limit_ns = PARTS_NS};
    for (int32_t p = 0; p < RECIPE_TURNS; p++) {
        seen[p] = (struct conversions_seen){p < step->count ? step->programs[p] : NULL,
                                            &converting_ns, &all_ns};
        observers[p] = (struct observer){OBSERVE_OPS, conversions_event, &seen[p]};
    }
    enum status status = job_network_watch(job, &watching);
    job_network_unwatch(job);
    *share = converting_ns / all_ns; /* NaN: nothing was seen */
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

enum status job_network_outcome(struct job *job, struct outcome *out)
{
    return network_outcome((struct job_network *)job, out);
}

static enum status network_check(struct job *job, double *error)
{
    struct job_network *network = (struct job_network *)job;
    struct outcome found;

    TRY(outcome_make(network->task, &network->arena, &found));
    TRY(network_outcome(network, &found));
    return outcome_check(network->task, &found, error);
}

static enum status network_describe(struct job *job, struct arena *arena, struct job_info *out)
{
    struct job_network *network = (struct job_network *)job;
    TRY(describe_plans(network->options.backend, network->device, network->plans,
                       network->task->step.count, arena, out));
    if (network->options.place == SAMPLES_DISK)
        out->storage = network->samples.storage;
    return STATUS_OK;
}

static void network_close(struct job *job)
{
    struct job_network *network = (struct job_network *)job;
    const struct backend *backend = network->options.backend;

    job_network_unwatch(job);
    network_detach(network);
    if (network->device)
        backend->close(network->device);
    recipe_free(&network->made);
    samples_close(&network->samples);
    network_free_luck(network);
    arena_free(&network->arena);
    mem_free(network);
}

static const struct job_kind network_kind = {"network",     network_prepare, network_run,
                                             network_renew, network_check,   network_describe,
                                             network_close};

enum status job_network_open(struct task *task, const struct network_options *options,
                             struct job **out)
{
    struct job_network *network = mem_alloc(sizeof *network);

    NEED(network);
    network->job.kind = &network_kind;
    network->task = task;
    network->options = *options;
    *out = &network->job;
    return STATUS_OK;
}

enum status job_network_answer(struct task *task, const struct network_options *options,
                               struct outcome *out)
{
    struct job *job = NULL;

    TRY(job_network_open(task, options, &job));
    enum status status = network_prepare(job);
    if (status == STATUS_OK)
        status = network_outcome((struct job_network *)job, out);
    network_close(job);
    return status;
}
