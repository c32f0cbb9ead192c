/* bench_request.c: see bench_request.h. */
#include "cli/bench_request.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "bench/sweep/target.h"
#include "cli/peer_folder.h"
#include "cli/screen.h"
#include "estimate/calibration_kept.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AT(field) ARG(struct bench_request, field)
#define MEANING_TEXT "A,B,…"
#define MEANING_INT "A,B-C,…"
/* What is found out is not asked for, and networks have no flag. */
#define IS_FLAG(key, where) (!((where)&AXIS_FOUND) && AXIS_##key != AXIS_model)
const struct arg request_flags[] = {
#define AXIS(key, kind, where, dlbs, otherwise, choices, help)                                     \
    {ARG_NAMED(IS_FLAG(key, where) ? #key : NULL, struct bench_request, axis_text[AXIS_##key]),    \
     MEANING_##kind, help},
#include "record/axes.def"
    {AT(skip), "'AXIS=A,B …; …'", "leave these out: all terms of a rule hold; ';' ends a rule"},
    {AT(against), "NAME",
     "compare with a backend, a framework, an executable, or through engine or library: which is "
     "faster?"},
    {.name = "margin",
     .kind = ARG_SHARE,
     ARG_PLACE(struct bench_request, margin),
     "SHARE",
     "differences up to this are not called faster or slower (default 1%)",
     ARG_FROM(0, 1),
     "1%"},
    {AT(seconds), "S",
     "how long each configuration is timed (default 3; --against 8, --kernels 0.2), or until it "
     "has six samples",
     ARG_FROM(0.01, 86400)},
    {AT(patience), "S",
     "seconds: what needs longer for its check is timed but not checked; --until gives a seed up "
     "(default 20)",
     ARG_FROM(0.1, 86400), "20"},
    {AT(bound), "p99=TIME", "scenario server: what latencies must hold: p99=10ms, p90=500us"},
    {AT(until), "TARGET", "train on --dataset until accuracy=0.95 or loss=0.1 of held-out rows"},
    {AT(dataset), "DATA", "of --until: a name (iris, digits) or a file"},
    {AT(seeds), "N", "of --until: so many trainings, from --seed on (default 3, with --against 2)",
     ARG_FROM(1, 1000), "3"},
    {AT(seed), "N", "of arrivals (server) and of the first training (default 1)", ARG_FROM(0, 1e9),
     "1"},
    ARG_END,
};

void bench_request_start(struct bench_request *request)
{
    const struct args args = {.lists = {{request_flags, 0}}};
    *request = (struct bench_request){0};
    args_defaults(&args, request);
}

/* A target is a scenario of its own, on real data. */
static enum status request_until(struct bench_request *request)
{
    static const char *const scenario[] = {"target"}, *const data[] = {"real/dram"};
    struct sweep_list *lists = request->sweep.lists;

    for (int i = 0; i < lists[AXIS_scenario].count && !request->until; i++)
        if (strcmp(lists[AXIS_scenario].values[i], scenario[0]) == 0)
            FAIL(STATUS_INPUT, "--scenario target: expected --until accuracy=0.95 --dataset iris "
                               "in its place");
    if (!request->until && !request->dataset)
        return STATUS_OK;
    if (!request->until || !request->dataset)
        FAIL(STATUS_INPUT, "--until and --dataset go together: prony bench small --until "
                           "accuracy=0.95 --dataset iris");
    if (lists[AXIS_scenario].count || lists[AXIS_data].count || request->against)
        FAIL(STATUS_INPUT, "--until says what is measured: leave out --scenario, --data and "
                           "--against");
    lists[AXIS_scenario] = (struct sweep_list){scenario, 1};
    lists[AXIS_data] = (struct sweep_list){data, 1};
    return target_parse(request->until, &request->accuracy, &request->loss);
}

/* "small large" or "small,large", each once; a file may have a comma in its name. */
static enum status request_models(struct sweep_list *out, const char *const *models, int count,
                                  struct arena *arena)
{
    size_t room = 0;
    for (int i = 0; i < count; i++)
        room += strlen(models[i]) / 2 + 1; /* a name and its comma are two bytes at least */
    const char **once = arena_array(arena, room, sizeof *once);
    NEED(once);
    *out = (struct sweep_list){once, 0};
    for (int i = 0; i < count; i++) {
        struct sweep_list list = {&models[i], 1};
        if (!file_exists(models[i]))
            TRY(sweep_split(&axes[AXIS_model], models[i], arena, &list));
        for (int k = 0; k < list.count; k++)
            if (!sweep_has(out, list.values[k]))
                once[out->count++] = list.values[k];
    }
    return STATUS_OK;
}

/* What only means something beside another flag is not passed over in silence. */
static enum status request_companions(const struct bench_request *request)
{
    static const char *const pairs[][2] = {{"margin", "against"}, {"seeds", "until"}};
    for (size_t r = 0; request->said && r < sizeof pairs / sizeof *pairs; r++)
        if (args_given(request->args, request->said, pairs[r][0]) &&
            !args_given(request->args, request->said, pairs[r][1]))
            FAIL(STATUS_INPUT, "--%s: expected --%s with it", pairs[r][0], pairs[r][1]);
    return STATUS_OK;
}

enum status bench_request_sweep(struct bench_request *request, const char *const *models,
                                int model_count, struct arena *arena)
{
    struct sweep *sweep = &request->sweep;
    for (int i = 0; i < AXIS_COUNT; i++)
        if (request->axis_text[i])
            TRY(sweep_split(&axes[i], request->axis_text[i], arena, &sweep->lists[i]));
    sweep->against = request->against;
    if (request->seconds <= 0)
        request->seconds = request->against ? 8 : 3;
    TRY(request_models(&sweep->lists[AXIS_model], models, model_count, arena));
    if (request->bound)
        TRY(scenario_parse_bound(request->bound, &request->holds));
    if (request->bound && !sweep_has(&sweep->lists[AXIS_scenario], "server"))
        FAIL(STATUS_INPUT, "--bound: nothing has to hold %s, expected --scenario server with it",
             request->bound);
    TRY(request_companions(request));
    TRY(request_until(request));
    return request->skip ? sweep_parse_skip(sweep, request->skip, arena) : STATUS_OK;
}

/* How far it is, for the person who waits. */
struct progress {
    int done, total; /* points */
    uint64_t start_ns;
    double seconds; /* a guess for one point, until one was seen */
    struct bench_output *output;
};

static void show_progress(void *context, const struct point *next, int points)
{
    struct progress *progress = context;
    double each_ns = progress->done
                         ? (double)(clock_ns() - progress->start_ns) / (double)progress->done
                         : progress->seconds * 1e9;
    struct text left = {0};

    /* how long an iteration takes, and so six of them, is not known yet */
    text_add(&left, progress->done ? "about " : "");
    text_add_time(&left, each_ns * (progress->total - progress->done));
    text_add(&left, progress->done ? "" : " or more");
    if (isatty(STDERR_FILENO)) { /* the next row writes over it */
        screen_control(stderr, "\r\033[K");
        fprintf(stderr, "[%d/%d] %s, %s, batch %lld … %s left", progress->done + 1, progress->total,
                next->model, next->phase, (long long)next->batch, text_of(&left));
        screen_control(stderr, "\r");
    }
    text_free(&left);
    bench_output_tell(progress->output, next, progress->done, progress->total,
                      each_ns * (progress->total - progress->done) / 1e9);
    progress->done += points;
}

/* Once a run: what it was measured on, with the ceilings that the floors came from. */
static enum status write_machine(struct bench *bench, struct arena *arena)
{
    struct record record;
    struct text text = {0};
    struct json_writer writer;
    struct json *calibration;
    char at[CLOCK_STAMP];

    json_begin(&writer, &text);
    calibration_write(&bench->calibration, &writer);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = json_parse(arena, "calibration", text_of(&text), text.length, &calibration);
    text_free(&text);
    TRY(status);
    TRY(facts_trees(&bench->facts, arena, &bench->machine, &bench->software)); /* and its GPU's */
    record_start(&record);
    record.kind = RECORD_MACHINE;
    record.machine = bench->machine;
    record.software = bench->software;
    record.calibration = calibration;
    clock_stamp(at);
    record.at = at;
    record_write(&record, &text);
    status = text_done(&text);
    if (status == STATUS_OK)
        status = bench->sink.write(bench->sink.context, text_of(&text), &record);
    text_free(&text);
    return status;
}

static void use_request(struct bench *bench, const struct bench_request *request)
{
    bench->measure.limit_ns = (uint64_t)(request->seconds * 1e9);
    bench->measure.least_ns = measure_usual_least(bench->measure.limit_ns);
    bench->measure.compare = request->against != NULL;
    bench->measure.margin = request->margin;
    bench->patience_ns = (uint64_t)(request->patience * 1e9);
    bench->bound = request->holds;
    bench->seed = (uint64_t)request->seed;
    bench->until.dataset = request->dataset;
    bench->until.accuracy = request->accuracy;
    bench->until.loss = request->loss;
    bench->until.seeds = request->seeds;
}

/* Everything is looked at before anything is run. */
static enum status count_work(struct bench *bench, struct bench_request *const *requests, int count,
                              struct progress *progress)
{
    double seconds = 0;
    for (int i = 0; i < count; i++) {
        int points;
        use_request(bench, requests[i]); /* its goal decides what is done */
        enum status status = sweep_check(&requests[i]->sweep, bench);
        if (status != STATUS_OK && requests[i]->place)
            return status_prefix(status, "%s", requests[i]->place);
        TRY(status);
        TRY(sweep_count(&requests[i]->sweep, bench, &points));
        progress->total += points;
        seconds += points * requests[i]->seconds;
    }
    progress->seconds = progress->total ? seconds / progress->total : 0;
    progress->start_ns = clock_ns();
    return STATUS_OK;
}

/* Prints what was finished, however the run ended: a disk that is full must not lose it. What went
 * wrong first is told. */
static enum status end_all(struct bench *bench, struct bench_output *output, struct arena *arena,
                           enum status status)
{
    const int written = bench->ok + bench->skipped + bench->failed;
    if (status == STATUS_INTERRUPTED)
        log_warning("stopped: what was finished is kept");
    else if (status == STATUS_OK && !written)
        log_info("nothing is left to be measured");
    if (written && (status == STATUS_OK || status == STATUS_INTERRUPTED)) {
        enum status told = write_machine(bench, arena);
        status = told == STATUS_OK ? status : told;
    }
    struct error first = *status_last();
    enum status printed = bench_output_finish(output);
    if (status != STATUS_OK) {
        *status_last() = first;
        return status;
    }
    TRY(printed);
    if (bench->failed)
        FAIL(STATUS_WRONG, "%d of %d configurations failed", bench->failed, written);
    return STATUS_OK;
}

static enum status run_all(struct bench *bench, struct bench_request *const *requests, int count,
                           struct bench_output *output, struct arena *arena)
{
    struct progress progress = {.output = output};
    enum status status = STATUS_OK;

    TRY(count_work(bench, requests, count, &progress));
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        struct sweep *sweep = &requests[i]->sweep;
        use_request(bench, requests[i]);
        sweep->progress = show_progress;
        sweep->context = &progress;
        bench_table_start(&output->rows, sweep);
        status = sweep_run(sweep, bench);
    }
    return end_all(bench, output, arena, status);
}

/* The best ceilings seen here are read before, and kept after whatever happened. */
static enum status run_with_calibration(struct bench *bench, struct bench_request *const *requests,
                                        int count, struct bench_output *output, struct arena *arena)
{
    enum status status = calibration_open(&bench->calibration);
    if (status == STATUS_OK)
        status = run_all(bench, requests, count, output, arena);
    calibration_close(&bench->calibration);
    return status;
}

enum status bench_request_check(const struct cli *cli, const struct bench_request *request)
{
    struct arena arena = {0};
    struct bench bench = {.registry = cli->registry};
    enum status status = cli_peers(cli, &arena, &bench.peers);
    if (status == STATUS_OK)
        status = sweep_check(&request->sweep, &bench);
    arena_free(&arena);
    return status;
}

enum status bench_request_run(const struct cli *cli, struct bench_request *const *requests,
                              int count, struct bench_output *output, bool resume)
{
    struct arena arena = {0};
    struct done done = {0};
    struct bench bench = {
        .registry = cli->registry,
        .measure = {.target = 0.01, .stopped = cli_interrupted},
        .sink = bench_output_sink(output),
        .unread = bench_output_is_plain(output),
    };
    enum status status = cli_peers(cli, &arena, &bench.peers);

    facts_find(&bench.facts);
    if (strcmp(bench.facts.build, "release") != 0)
        log_warning("this is a %s build: its times say little", bench.facts.build);
    if (status == STATUS_OK)
        status = facts_trees(&bench.facts, &arena, &bench.machine, &bench.software);
    if (resume)
        bench.done = &done;
    if (status == STATUS_OK)
        status = bench_output_done(output, resume ? &done : NULL);
    if (status == STATUS_OK)
        status = run_with_calibration(&bench, requests, count, output, &arena);
    peer_bank_close(&bench.waiting);
    done_free(&done);
    arena_free(&arena);
    return status;
}
