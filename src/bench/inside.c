/* inside.c: see inside.h. */
#include "bench/inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const uint64_t WATCH_NS = 1000000000; /* for the watched steps */

static enum status inside_time(struct inside *inside, const struct measure_options *options,
                               bool gpu)
{
    struct timing timing = {.job = inside->job, .lasts_ns = gpu ? MEASURE_GPU_NS : 0};
    enum status status = measure(options, &timing, 1);
    if (status == STATUS_OK && timing.stop == MEASURE_FAILED)
        status = status_fail(timing.status, __FILE__, __LINE__, "%s", timing.message);
    if (status == STATUS_OK)
        status = stats_compute(timing.samples_ns, timing.count, timing.per, &inside->time_ns);
    timing_free(&timing);
    return status;
}

static void inside_after(void *context, int step)
{
    struct inside *inside = context;
    for (int32_t p = 0; p < inside->count; p++)
        profile_step(&inside->profiles[p], step > 0);
}

/* The watched steps as spans, with the time of those that nobody watched. */
static enum status inside_trace(struct inside *inside, const struct task *task,
                                const struct network_options *options)
{
    char timed[40], command[300];
    snprintf(command, sizeof command, "%s, %s, batch %d, %s", task->network->name,
             task->phase == PHASE_TRAINING ? "training" : "inference", task->batch,
             options->backend->name);
    TRY(profile_spans(inside->profiles, inside->count, inside->watch.gpu, &inside->trace));
    snprintf(timed, sizeof timed, "%.0f", inside->time_ns.median);
    TRY(trace_add_fact(&inside->trace, "unwatched_ns", timed));
    TRY(trace_add_fact(&inside->trace, "command", command));
    return trace_finish(&inside->trace, "the watched steps");
}

static enum status inside_watch(struct inside *inside)
{
    const struct recipe_step *programs = job_network_step(inside->job);
    struct observer observers[RECIPE_TURNS];
    for (; inside->count < programs->count; inside->count++) {
        struct profile *profile = &inside->profiles[inside->count];
        TRY(profile_open(profile, programs->programs[inside->count]));
        observers[inside->count] = profile_observer(profile);
    }
    const struct watching watching = {.observers = observers,
                                      .after = inside_after,
                                      .context = inside,
                                      .steps = PROFILE_STEPS,
                                      .limit_ns = WATCH_NS};
    TRY(job_network_watch(inside->job, &watching));
    for (int32_t p = 0; p < inside->count; p++)
        profile_finish(&inside->profiles[p]);
    return STATUS_OK;
}

static bool inside_saw(const struct inside *inside, const char *kernel)
{
    for (int32_t p = 0; p < inside->count; p++)
        for (int32_t o = 0; o < inside->profiles[p].program->op_count; o++)
            if (strcmp(inside->profiles[p].ops[o].kernel, kernel) == 0)
                return true;
    return false;
}

/* A step that is one kernel, watched inside it: it tells of the ops that it could tell apart. */
static void inside_one_kernel(struct inside *inside)
{
    const struct profile *profile = &inside->profiles[0];
    const char *kernel = NULL;
    int32_t ops = 0;
    for (int32_t o = 0; profile->program->whole && o < profile->program->op_count; o++) {
        const char *own = profile->ops[o].kernel;
        if (!*own)
            continue;
        if (kernel && strcmp(kernel, own) != 0)
            return;
        kernel = own;
        ops++;
    }
    inside->clock_reads = ops ? ops + 1 : 0;
}

/* What is watched is watched op by op: what the timed plan does in one kernel is not in there. Its
 * launches are those of the timed plan, too. */
static enum status inside_merged(struct inside *inside)
{
    struct arena scratch = {0};
    struct text names = {0};
    struct job_info info;
    enum status status;

    TRY_OR(done, inside->job->kind->describe(inside->job, &scratch, &info));
    inside->launches = inside->watch.gpu ? info.launches : 0;
    for (size_t k = 0; k < info.kernel_count; k++)
        if (!inside_saw(inside, info.kernels[k]))
            text_printf(&names, "%s%s", names.length ? ", " : "", info.kernels[k]);
    TRY_OR(done, text_done(&names));
    snprintf(inside->merged, sizeof inside->merged, "%s", text_of(&names));
done:
    text_free(&names);
    arena_free(&scratch);
    return status;
}

static enum status inside_floors(struct inside *inside, const struct task *task,
                                 const struct yardstick *yardstick)
{
    struct ceilings whole;
    struct floor floor;

    const struct work work = work_in(&task->work, yardstick->precision);
    TRY(yardstick_read(yardstick, work.set_bytes, false, &whole));
    floor_of(&work, &whole, &floor);
    inside->floor_ns = floor.ns;
    inside->launch_ns = whole.launch_ns;
    for (int32_t p = 0; p < inside->count; p++) {
        struct profile *profile = &inside->profiles[p];
        for (int32_t o = 0; o < profile->program->op_count; o++)
            if (!isnan(profile->ops[o].ns))
                TRY(floor_of_op(profile->program, &profile->program->ops[o], yardstick, &whole,
                                &profile->ops[o].floor_ns));
    }
    return STATUS_OK;
}

enum status inside_look(struct task *task, const struct inside_options *options,
                        struct calibration *calibration, struct inside *out)
{
    const struct backend *backend = options->network.backend;

    *out = (struct inside){.floor_ns = (double)NAN};
    TRY(job_network_open(task, &options->network, &out->job));
    TRY(out->job->kind->prepare(out->job));
    out->watch.gpu = strcmp(backend->unit, "gpu") == 0;
    watch_open(&out->watch);
    watch_begin(&out->watch);
    TRY(inside_time(out, &options->measure, out->watch.gpu));
    TRY(inside_watch(out));
    watch_end(&out->watch);
    TRY(inside_trace(out, task, &options->network));
    TRY(inside_merged(out));
    if (out->count == 1)
        inside_one_kernel(out);
    const struct yardstick yardstick = {
        .calibration = calibration,
        .threads = options->network.device.threads,
        .backend = strcmp(backend->unit, "cpu") == 0 ? NULL : backend,
        .precision = options->network.device.precision ? options->network.device.precision : ""};
    enum status status = inside_floors(out, task, &yardstick);
    if (status == STATUS_UNSUPPORTED)
        snprintf(out->unfounded, sizeof out->unfounded, "%s", status_message());
    return status == STATUS_UNSUPPORTED ? STATUS_OK : status;
}

void inside_close(struct inside *inside)
{
    for (int32_t p = 0; p < inside->count; p++)
        profile_free(&inside->profiles[p]);
    trace_free(&inside->trace);
    if (inside->job)
        inside->job->kind->close(inside->job);
    *inside = (struct inside){0};
}

double inside_step_ns(const struct inside *inside)
{
    double sum = 0;
    for (int32_t p = 0; p < inside->count; p++)
        sum += profile_step_ns(&inside->profiles[p]);
    return sum;
}

double inside_missing(const struct inside *inside)
{
    return 1 - inside_step_ns(inside) / inside->time_ns.median;
}
