/* inside.c: see inside.h. */
#include "bench/inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const uint64_t WATCH_NS = 1000000000; /* for the watched steps */

static enum status inside_time(struct inside *inside, const struct measure_options *options)
{
    struct contender contender = {.job = inside->job};
    enum status status = measure(options, &contender, 1);
    if (status == STATUS_OK && contender.stop == MEASURE_FAILED)
        status = status_fail(contender.status, __FILE__, __LINE__, "%s", contender.message);
    if (status == STATUS_OK)
        status =
            stats_compute(contender.samples_ns, contender.count, contender.per, &inside->time_ns);
    measure_free(&contender);
    return status;
}

static void inside_after(void *context, int step)
{
    profile_step(context, step > 0);
}

static enum status inside_watch(struct inside *inside)
{
    struct profile *profile = &inside->profile;
    TRY(profile_open(profile, job_network_program(inside->job)));
    const struct watching watching = {.observer = profile_observer(profile),
                                      .after = inside_after,
                                      .steps = PROFILE_STEPS,
                                      .limit_ns = WATCH_NS};
    TRY(job_network_watch(inside->job, &watching));
    profile_finish(profile);
    return STATUS_OK;
}

static enum status inside_floors(struct inside *inside, const struct task *task, int threads,
                                 struct calibration *calibration)
{
    const struct program *program = inside->profile.program;
    struct ceilings whole;
    struct floor floor;

    TRY(calibrate(calibration, threads, task->work.set_bytes, &whole));
    floor_of(&task->work, &whole, &floor);
    inside->floor_ns = floor.ns;
    for (int32_t o = 0; o < program->op_count; o++)
        if (!isnan(inside->profile.ops[o].ns))
            TRY(floor_of_op(program, &program->ops[o], calibration, &whole,
                            &inside->profile.ops[o].floor_ns));
    return STATUS_OK;
}

enum status inside_look(struct task *task, const struct inside_options *options,
                        struct calibration *calibration, struct inside *out)
{
    const struct backend *backend = options->network.backend;

    *out = (struct inside){.floor_ns = (double)NAN};
    TRY(job_network_open(task, &options->network, &out->job));
    TRY(out->job->kind->prepare(out->job));
    TRY(inside_time(out, &options->measure));
    TRY(inside_watch(out));
    if (strcmp(backend->unit, "cpu") != 0) {
        snprintf(out->unfounded, sizeof out->unfounded, "only CPUs are calibrated");
        return STATUS_OK;
    }
    enum status status = inside_floors(out, task, options->network.device.threads, calibration);
    if (status == STATUS_UNSUPPORTED)
        snprintf(out->unfounded, sizeof out->unfounded, "%s", status_message());
    return status == STATUS_UNSUPPORTED ? STATUS_OK : status;
}

void inside_close(struct inside *inside)
{
    profile_free(&inside->profile);
    if (inside->job)
        inside->job->kind->close(inside->job);
    *inside = (struct inside){0};
}

double inside_missing(const struct inside *inside)
{
    return 1 - profile_step_ns(&inside->profile) / inside->time_ns.median;
}
