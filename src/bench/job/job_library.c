/* job_library.c: see job_library.h. */
#include "bench/job/job_library.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/check/outcome.h"
#include "bench/job/describe.h"
#include "library/prony_inside.h"

#include <string.h>

enum { IN_FLIGHT = 1000 }; /* requests of a stream */

struct job_library {
    struct job job;
    struct task *task;
    struct library_options options;
    struct prony *network;
    struct prony_stream *stream; /* or NULL */
    struct arena arena;
    float *x, *y;            /* [batches, inputs], [batches, outputs], in the order of the visits */
    int64_t inputs, outputs; /* numbers of a batch */
    uint64_t calls;
    uint64_t ticket, waited; /* of the last request that was submitted, and waited for */
};

/* The task's samples as a user has them: whole numbers are floats, too. */
static enum status library_take_samples(struct job_library *library)
{
    const struct task *task = library->task;
    const struct entry *entry = &task->data.entries[0];
    const int64_t width = prony_inputs(library->network);
    const void *from = params_data(&task->data, 0);
    library->inputs = width * task->batch;
    library->outputs = prony_outputs(library->network) * task->batch;
    NEED(library->x = arena_array(&library->arena, (size_t)(task->rows * width), sizeof(float)));
    NEED(library->y =
             arena_array(&library->arena, TASK_BATCHES, (size_t)library->outputs * sizeof(float)));
    for (int64_t row = 0; row < task->rows; row++)
        for (int64_t i = 0; i < width; i++) {
            const int64_t at = task->order[row] * width + i;
            library->x[row * width + i] = entry->dtype == DTYPE_I32
                                              ? (float)((const int32_t *)from)[at]
                                              : ((const float *)from)[at];
        }
    return STATUS_OK;
}

/* The task's parameters in place of those that the seed gave: nothing is attached yet. */
static enum status library_take_parameters(struct job_library *library)
{
    const struct params *from = &library->task->params;
    struct params *to = model_form(&library->network->model).params;
    TRY(params_fill_new(to)); /* or it would be done when they are attached */
    for (int32_t e = 0; e < to->count; e++) {
        const int32_t same = params_find(from, to->entries[e].name);
        if (same < 0 || from->entries[same].bytes != to->entries[e].bytes)
            FAIL(STATUS_UNSUPPORTED, "the library has another parameter '%s' than the engine",
                 to->entries[e].name);
        memcpy(params_data(to, e), params_data(from, same), (size_t)to->entries[e].bytes);
    }
    return STATUS_OK;
}

static enum status library_start(struct job_library *library)
{
    const struct library_options *options = &library->options;
    const struct prony_options open = {
        .backend = options->backend[0] ? options->backend : NULL,
        .threads = options->threads,
        .seed = library->task->params.control.seed,
        .precision = options->precision[0] ? options->precision : NULL,
    };
    const struct prony_stream_options stream = {
        .rows = library->task->batch,
        .depth = IN_FLIGHT,
        .resident = options->answering == ANSWER_RESIDENT,
    };
    library->calls = library->ticket = library->waited = 0;
    TRY((enum status)prony_open(options->model, &open, &library->network));
    TRY(library_take_parameters(library));
    if (options->answering == ANSWER_QUEUED || options->answering == ANSWER_RESIDENT)
        TRY((enum status)prony_stream_open(library->network, &stream, &library->stream));
    return STATUS_OK;
}

static void library_stop(struct job_library *library)
{
    prony_stream_close(library->stream);
    prony_close(library->network);
    library->stream = NULL;
    library->network = NULL;
}

static enum status library_prepare(struct job *job)
{
    struct job_library *library = (struct job_library *)job;
    TRY(library_start(library));
    return library_take_samples(library);
}

static enum status library_renew(struct job *job, int *process)
{
    (void)process;
    library_stop((struct job_library *)job);
    return library_start((struct job_library *)job);
}

static int library_wait(struct job_library *library)
{
    if (library->waited == library->ticket)
        return PRONY_OK;
    library->waited = library->ticket;
    return prony_stream_wait(library->stream, library->ticket);
}

/* One request, of the batch that is due. */
static int library_ask(struct job_library *library)
{
    const uint64_t batch = library->calls++ % TASK_BATCHES;
    const float *x = library->x + batch * (uint64_t)library->inputs;
    float *y = library->y + batch * (uint64_t)library->outputs;
    if (!library->stream)
        return prony_predict(library->network, library->task->batch, x, y);
    if (library->ticket - library->waited == IN_FLIGHT) {
        int code = library_wait(library);
        if (code)
            return code;
    }
    return prony_stream_submit(library->stream, x, y, &library->ticket);
}

static enum status library_iterate(struct job_library *library, int64_t iterations)
{
    for (int64_t i = 0; i < iterations; i++) {
        int code = library_ask(library);
        if (code)
            return (enum status)code;
    }
    return (enum status)library_wait(library);
}

static enum status library_run(struct job *job, int64_t iterations, uint64_t *elapsed_ns)
{
    uint64_t start_ns = clock_ns();
    TRY(library_iterate((struct job_library *)job, iterations));
    *elapsed_ns = clock_ns() - start_ns;
    return STATUS_OK;
}

/* From the first batch again: the check's calls, and what was answered. */
static enum status library_check(struct job *job, double *error)
{
    struct job_library *library = (struct job_library *)job;
    struct task *task = library->task;
    struct outcome found;
    TRY(outcome_make(task, &library->arena, &found));
    library->calls = 0;
    TRY(library_iterate(library, task->check_steps));
    for (int64_t i = 0; i < task->value_count; i++)
        found.values[i] = library->y[i];
    return outcome_check(task, &found, error);
}

/* The predictor that answered: the stream's, or the network's for so many rows; NULL: none yet. */
static const struct predictor *library_predictor(const struct job_library *library)
{
    const struct prony *network = library->network;
    if (library->stream)
        return &library->stream->predictor;
    for (int i = 0; i < BATCHES_MOST; i++)
        if (network->predictors[i].rows == library->task->batch)
            return &network->predictors[i];
    return NULL;
}

static enum status library_describe(struct job *job, struct arena *arena, struct job_info *out)
{
    const struct job_library *library = (const struct job_library *)job;
    const struct engine *engine = &library->network->model.engine;
    const struct predictor *predictor = library_predictor(library);
    struct plan *plan = predictor ? predictor->plan : NULL;
    return describe_plans(engine->backend, engine->device, &plan, plan ? 1 : 0, arena, out);
}

static void library_close(struct job *job)
{
    struct job_library *library = (struct job_library *)job;
    library_stop(library);
    arena_free(&library->arena);
    mem_free(library);
}

static const struct job_kind library_kind = {"library",     library_prepare, library_run,
                                             library_renew, library_check,   library_describe,
                                             library_close};

enum status job_library_open(struct task *task, const struct library_options *options,
                             struct job **out)
{
    struct job_library *library = mem_alloc(sizeof *library);
    NEED(library);
    library->job.kind = &library_kind;
    library->task = task;
    library->options = *options;
    *out = &library->job;
    return STATUS_OK;
}
