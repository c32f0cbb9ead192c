/* layers_run.c: see layers_run.h. */
#include "cli/layers_run.h"

#include "bench/bench.h"
#include "bench/layers/layer_own.h"
#include "bench/layers/layer_peer.h"
#include "cli/bench_run.h"
#include "cli/screen.h"
#include "cli/show/layers_output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double WATCH_NS = 5e8; /* of a peer */
enum { STEPS_LEAST = 3, STEPS_MOST = 200 };

static int64_t steps_for(double step_ns)
{
    const double steps = WATCH_NS / fmax(step_ns, 1);
    return steps < STEPS_LEAST ? STEPS_LEAST : steps > STEPS_MOST ? STEPS_MOST : (int64_t)steps;
}

static enum status look_into(struct layers *layers, struct layer_side *side,
                             const struct bench_look *look)
{
    const struct json *answer;
    if (!look->is_peer)
        return layers_own(layers, side, look->task, look->job);
    TRY(job_peer_profile(look->job, steps_for(side->step_ns), &layers->arena, &answer));
    return layers_peer(layers, side, answer);
}

/* The bench shows each framework that it timed. Whoever cannot tell of its layers stays with its
 * time alone. */
static enum status look(void *context, const struct bench_look *look)
{
    struct layers *layers = context;
    const struct stats *time = &look->record->time_ns;
    struct layer_side *side;
    if (!layers->side_count)
        TRY(layers_name(layers, look->task->network));
    TRY(layers_side(layers, look->record->point.framework, &side));
    side->step_ns = time->median;
    side->interval_ns = (time->ci_high - time->ci_low) / 2;
    enum status status = look_into(layers, side, look);
    if (status == STATUS_OK || status == STATUS_INTERRUPTED || status == STATUS_MEMORY)
        return status;
    side->row_count = 0;
    side->watched_ns = 0;
    NEED(side->absent = arena_text(&layers->arena, status_message()));
    return STATUS_OK;
}

static enum status print(struct layers *layers, const struct bench_output *output, bool json)
{
    struct text text = {0};
    TRY(layers_group(layers));
    const struct layered layered = {layers, output->kept, output->kept_count};
    enum status status = json ? layered_json(&layered, &text) : layered_text(&layered, &text);
    if (status == STATUS_OK)
        status = text_done(&text);
    if (status == STATUS_OK)
        fputs(text_of(&text), stdout);
    text_free(&text);
    return status;
}

enum status layers_run(const struct cli *cli, struct bench_request *request, bool json)
{
    struct layers layers = {0};
    struct bench_output output = {.style = OUTPUT_KEPT, .look = look, .look_context = &layers};
    struct arena arena = {0};
    const char *const *models = cli->found.positional;
    enum status status = bench_request_sweep(request, models, 1, &arena);
    if (status == STATUS_OK)
        status = cli_bench(cli, &request, 1, &output, false);
    if ((status == STATUS_OK || status == STATUS_WRONG) && output.kept_count) {
        const struct error first = *status_last();
        const enum status printed = print(&layers, &output, json);
        if (status != STATUS_OK && printed == STATUS_OK)
            *status_last() = first;
        status = printed == STATUS_OK ? status : printed;
    }
    bench_output_close(&output);
    layers_free(&layers);
    arena_free(&arena);
    return status;
}
