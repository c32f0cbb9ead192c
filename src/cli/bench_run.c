/* bench_run.c: see bench_run.h. */
#include "cli/bench_run.h"

#include "base/clock.h"
#include "cli/peer_folder.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "record/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A run, and the group that is under way. */
struct run {
    struct bench_output *output;
    struct progress progress;
    struct bench_stage stage; /* its points are not kept: */
    struct text label;        /* this is what they are called */
    uint64_t stage_ns;        /* when it began */
};

/* The one that is_stopped shows: the bench asks between samples, and tells nobody for whom. */
static struct run *shown;

static void begin_rows(void *context, const struct sweep *sweep)
{
    struct run *run = context;
    struct text before = {0};
    bench_table_start(&run->output->rows, sweep, &before);
    if (run->output->style != OUTPUT_KEPT)
        fputs(text_of(&before), stdout);
    text_free(&before);
}

/* The time of all parts, once; where nobody sees the bar, each part. */
static void tell_part(struct bench_part *part, int points, double seconds)
{
    struct text text = {0};
    if (!points)
        return;
    if (!part->told) {
        progress_add_time(&text, seconds + part->after_s, true);
        fprintf(stderr, "prony: measuring for about %s\n", text_of(&text));
    }
    part->told = true;
    if (!screen_is_terminal(stderr))
        fprintf(stderr, "prony: %s: %d configuration%s\n", part->name, points,
                points == 1 ? "" : "s");
    text_free(&text);
}

/* Whoever waits hears it before the first result; a short run needs no word where nobody looks. */
static void tell_plan(void *context, int points, double seconds)
{
    static const double WORTH_S = 2, WORTH_PLAIN_S = 20;
    const struct run *run = context;
    struct text text = {0};
    if (run->output->part) {
        tell_part(run->output->part, points, seconds);
        return;
    }
    if (run->output->style == OUTPUT_NOTHING ||
        seconds < (screen_is_terminal(stderr) ? WORTH_S : WORTH_PLAIN_S))
        return;
    text_printf(&text, "%d configuration%s, about ", points, points == 1 ? "" : "s");
    progress_add_time(&text, seconds, true);
    fprintf(stderr, "prony: %s\n", text_of(&text));
    text_free(&text);
}

/* "large, inference, batch 10, prony, NumPy": a group differs in who computes. */
static void label_stage(struct text *label, const struct point *points, int count)
{
    const char *folder = strrchr(points->model, '/');
    text_clear(label);
    text_printf(label, "%s, %s, batch %lld", folder ? folder + 1 : points->model, points->phase,
                (long long)points->batch);
    for (int i = 0; i < count; i++) {
        bool again = false;
        for (int before = 0; before < i && !again; before++)
            again = strcmp(points[before].framework, points[i].framework) == 0;
        if (!again)
            text_printf(label, ", %s", framework_title(points[i].framework));
    }
}

/* By the time that is planned for the group: what takes longer comes ever closer to its end. */
static void show(struct run *run)
{
    const struct bench_stage *stage = &run->stage;
    const uint64_t now_ns = clock_ns();
    const double before = (double)(run->stage_ns - run->progress.start_ns) * 1e-9;
    const double here = (double)(now_ns - run->stage_ns) * 1e-9;
    const double part = stage->seconds > 0 ? here / stage->seconds : 1;
    const double share = part < 0.9 ? part : 1 - 0.1 * exp(9 - 10 * part);
    const struct bench_part *part_of = run->output->part;
    const double after = stage->after + (part_of ? part_of->after_s : 0);
    const double all = before + stage->seconds + after;
    struct text count = {0};
    if (part_of)
        text_printf(&count, "%s: ", part_of->name);
    text_printf(&count, "%d of %d", stage->done, stage->total);
    progress_show(&run->progress, all > 0 ? (before + share * stage->seconds) / all : 0,
                  fmax(stage->seconds - here, here / 10) + after, text_of(&count),
                  text_of(&run->label));
    text_free(&count);
}

/* The bench asks this between two samples and while it waits for a peer. */
static bool is_stopped(void)
{
    if (shown && progress_due(&shown->progress))
        show(shown);
    return cli_interrupted();
}

/* For the person who waits, and for who looks at the store. */
static void tell_stage(void *context, const struct bench_stage *stage)
{
    struct run *run = context;
    run->stage = *stage;
    run->stage_ns = clock_ns();
    label_stage(&run->label, stage->points, stage->count);
    if (screen_is_terminal(stderr))
        show(run);
    bench_output_tell(run->output, stage->points, stage->done, stage->total,
                      stage->seconds + stage->after);
}

/* Prints what was finished, however the run ended: a disk that is full must not lose it. What went
 * wrong first is told. */
static enum status finish(const struct bench *bench, struct bench_output *output,
                          enum status status)
{
    struct error first = *status_last();
    enum status printed = bench_output_finish(output);
    if (status != STATUS_OK) {
        *status_last() = first;
        return status;
    }
    TRY(printed);
    if (bench->failed)
        FAIL(STATUS_WRONG, "%d of %d configurations failed", bench->failed,
             bench->ok + bench->skipped + bench->failed);
    return STATUS_OK;
}

static enum status watch(struct bench *bench, struct bench_request *const *requests, int count,
                         struct bench_output *output)
{
    struct run run = {.output = output};
    const struct bench_watcher watcher = {tell_plan, begin_rows, tell_stage, &run};
    struct bench_part *part = output->part;
    if (part && part->progress.start_ns)
        run.progress = part->progress;
    else
        progress_begin(&run.progress);
    shown = &run;
    enum status status = bench_request_run(bench, requests, count, &watcher);
    shown = NULL;
    if (part)
        part->progress = run.progress;
    else
        progress_end(&run.progress);
    text_free(&run.label);
    return status;
}

enum status cli_bench(const struct cli *cli, struct bench_request *const *requests, int count,
                      struct bench_output *output, bool resume)
{
    struct arena arena = {0};
    struct done done = {0};
    struct bench bench = {.registry = cli->registry,
                          .measure = {.target = 0.01, .stopped = is_stopped},
                          .done = resume ? &done : NULL,
                          .sink = bench_output_sink(output),
                          .look = output->look,
                          .look_context = output->look_context,
                          .unread = bench_output_is_plain(output)};
    enum status status = cli_peers(cli, &arena, &bench.peers);
    output->command = cli->typed;
    if (status == STATUS_OK)
        status = bench_output_done(output, resume ? &done : NULL, &bench.pace);
    if (status == STATUS_OK)
        status = finish(&bench, output, watch(&bench, requests, count, output));
    done_free(&done);
    arena_free(&arena);
    return status;
}
