/* program_gpu.c: see program_gpu.h. */
#include "cli/program/program_gpu.h"

#include "cli/program/trace_output.h"

#include <math.h>
#include <stdio.h>

static enum status add_time(struct trace *trace, double ns)
{
    char text[40];
    snprintf(text, sizeof text, "%.0f", ns);
    return trace_add_fact(trace, "unwatched_ns", text);
}

/* A step takes what the run that was not watched took, less what stands before and after the steps
 * in the watched run, where the agent's own start is left out. That differs a little from run to
 * run: the two facts are so far apart. Where the steps are the smaller part, they are not known. */
static enum status add_step_times(const struct running_end *unwatched,
                                  const struct watched *watched, const struct steps *steps,
                                  struct trace *trace)
{
    static const double least_part = 0.3, jitter = 0.02;
    const double window = (double)(steps->end_ns - steps->start_ns);
    const double around = watched->end.wall_ns - watched->gpu.init_ns - window;
    const double left = unwatched->wall_ns - around, count = (double)steps->count;
    if (left < least_part * unwatched->wall_ns || around < 0)
        return STATUS_OK;
    const double step = fmin(left, window) / count, apart = jitter * around / count;
    TRY(add_time(trace, step - apart));
    return add_time(trace, step + apart);
}

enum status program_unwatched(const struct running_end *unwatched, const struct watched *watched,
                              struct trace *trace)
{
    struct steps steps;
    TRY(steps_find(trace, &steps));
    enum status status = STATUS_OK;
    if (steps.gpu < 0)
        status = add_time(trace, unwatched->wall_ns);
    else if (steps.count && !watched->stopped && watched->end.ended)
        status = add_step_times(unwatched, watched, &steps, trace);
    steps_free(&steps);
    return status;
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
