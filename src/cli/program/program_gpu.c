/* program_gpu.c: see program_gpu.h. */
#include "cli/program/program_gpu.h"

#include "cli/program/trace_output.h"
#include "estimate/calibration_kept.h"
#include "watch/gpu_link.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status add_time(struct trace *trace, double ns)
{
    char text[40];
    snprintf(text, sizeof text, "%.0f", ns);
    return trace_add_fact(trace, "unwatched_ns", text);
}

/* A step and how sure that is: the two facts are so far apart as their spread then says. */
static enum status add_step(struct trace *trace, double step_ns, double spread_ns)
{
    TRY(add_time(trace, step_ns - spread_ns));
    return add_time(trace, step_ns + spread_ns);
}

/* A step takes what the run that was not watched took, less what stands before and after the steps
 * in the watched run, where the agent's own start is left out. That differs a little from run to
 * run. */
static bool step_of_whole(const struct running_end *unwatched, const struct watched *watched,
                          const struct steps *steps, double *step_ns, double *spread_ns)
{
    static const double jitter = 0.02;
    const double window = (double)(steps->end_ns - steps->start_ns);
    const double around = watched->end.wall_ns - watched->gpu.init_ns - window;
    const double left = unwatched->wall_ns - around, count = (double)steps->count;
    *step_ns = fmin(left, window) / count;
    *spread_ns = jitter * around / count;
    return around >= 0 && left > 0;
}

/* Where what stands around the steps leaves them unsure, the program is run once more, and one of
 * its calls beats time. */
static enum status find_step(const struct watching_options *options,
                             const struct running_end *unwatched, const struct watched *watched,
                             const struct steps *steps, struct trace *trace)
{
    static const double sure = 0.01, least = 0.1;
    double step_ns, spread_ns;
    bool known = step_of_whole(unwatched, watched, steps, &step_ns, &spread_ns);
    if (known && spread_ns <= sure * step_ns)
        return add_step(trace, step_ns, spread_ns);
    const struct beat beat = beat_choose(trace, steps);
    if (beat.name && options->agent_gpu) {
        double beat_ns, beat_spread_ns;
        struct running_end end;
        bool heard;
        TRY(watching_beats(options, &beat, &heard, &beat_ns, &beat_spread_ns, &end));
        if (heard)
            return add_step(trace, beat_ns, beat_spread_ns);
    }
    return known && spread_ns <= least * step_ns ? add_step(trace, step_ns, spread_ns) : STATUS_OK;
}

enum status program_unwatched(const struct watching_options *options,
                              const struct running_end *unwatched, const struct watched *watched,
                              struct trace *trace)
{
    struct steps steps;
    TRY(steps_find(trace, &steps));
    enum status status = STATUS_OK;
    if (steps.gpu < 0)
        status = add_time(trace, unwatched->wall_ns);
    else if (steps.count && !watched->stopped && !watched->end.code && !watched->end.signal)
        status = find_step(options, unwatched, watched, &steps, trace);
    steps_free(&steps);
    return status;
}

static enum status add_fact(struct trace *trace, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.4g", value);
    return value > 0 ? trace_add_fact(trace, key, text) : STATUS_OK;
}

/* Where the GPU has been calibrated: prony machine --calibrate. */
static enum status add_ceilings(struct trace *trace)
{
    static const enum ceiling kinds[] = {CEILING_FP32, CEILING_TF32, CEILING_BF16};
    const char *gpu = trace_fact(trace, "gpu");
    struct calibration calibration = {0};
    enum status status = calibration_open(&calibration);
    for (size_t i = 0; status == STATUS_OK && gpu && i < sizeof kinds / sizeof *kinds; i++) {
        double best = 0;
        for (size_t k = 0; k < calibration.count; k++)
            if (calibration.rows[k].ceiling == kinds[i] && !strcmp(calibration.rows[k].unit, gpu))
                best = fmax(best, calibration.rows[k].per_s);
        status = add_fact(trace, ceiling_name(kinds[i]), best);
    }
    calibration_close(&calibration);
    return status;
}

enum status program_gpu_facts(const struct watched *watched, struct trace *trace,
                              struct text *notes)
{
    static const double busy_least = 5; /* per cent */
    struct gpu_link link;
    if (!watched->gpu.kernels)
        return STATUS_OK;
    if (getenv("CUDA_LAUNCH_BLOCKING"))
        text_add(notes, "CUDA_LAUNCH_BLOCKING is set: each launch waits for its kernel\n");
    TRY(add_ceilings(trace));
    if (gpu_link_measure(watched->gpu.device, watched->start_us, &link) != STATUS_OK)
        return STATUS_OK; /* rules then take a usual rate, and say so */
    if (link.others_busy >= busy_least)
        text_printf(notes,
                    "another process computed on the GPU, for up to %.0f %% of the time: times of "
                    "the GPU may be longer by it\n",
                    link.others_busy);
    TRY(add_fact(trace, "pinned_up", link.up));
    return add_fact(trace, "pinned_down", link.down);
}

enum status program_gpu_text(const struct trace *trace, const struct advice *advice, int width,
                             struct text *out)
{
    if (advice->steps.gpu < 0)
        return STATUS_OK;
    text_add_char(out, '\n');
    return traced_parts(trace, advice, width, out);
}

void program_gpu_json(const struct gpu_seen *gpu, const struct advice *advice,
                      struct json_writer *json)
{
    json_key(json, "gpu");
    json_object(json);
    json_put_real(json, "processes", (double)gpu->processes);
    json_put_text(json, "reason", gpu->reason);
    json_put_real(json, "cupti", gpu->cupti);
    json_put_real(json, "kernels", (double)gpu->kernels);
    json_put_real(json, "copies", (double)gpu->copies);
    json_put_real(json, "fills", (double)gpu->fills);
    json_put_real(json, "calls", (double)gpu->calls);
    json_put_real(json, "with_call", (double)gpu->with_call);
    json_put_real(json, "with_line", (double)gpu->with_line);
    json_put_real(json, "lost", gpu->lost);
    json_put_real(json, "init_ns", gpu->init_ns);
    if (advice->steps.gpu >= 0) {
        json_put_real(json, "steps", (double)advice->steps.count);
        json_put_real(json, "kernels_a_step", (double)advice->steps.period);
        json_put_real(json, "step_ns", advice->step_ns);
        json_put_real(json, "step_spread", advice->spread);
        traced_json_budget(json, &advice->budget);
    }
    json_end(json);
}
