/* request.c: see request.h. */
#include "bench/sweep/request.h"
#include "bench/meter/watch.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "bench/sweep/target.h"
#include "estimate/calibration_kept.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define AT(field) ARG(struct bench_request, field)
#define MEANING_TEXT "A,B,…"
#define MEANING_INT "A,B-C,…"
/* What is found out is not asked for, and networks have no flag. */
#define IS_FLAG(key, where) (!((where)&AXIS_FOUND) && AXIS_##key != AXIS_model)
const struct arg request_flags[] = {
#define AXIS(key, kind, where, dlbs, otherwise, help)                                              \
    {ARG_NAMED(IS_FLAG(key, where) ? #key : NULL, struct bench_request, axis_text[AXIS_##key]),    \
     MEANING_##kind, help},
#include "record/axes.def"
    {AT(skip), "'AXIS=A,B …; …'",
     "leave out configurations that fit all terms of a rule; ';' ends a rule"},
    {AT(against), "NAME",
     "compare with a backend, a framework, another prony, or through engine or library: which is "
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
     "seconds that a check may take; else the result stays unchecked, or --until gives a seed up "
     "(default 20)",
     ARG_FROM(0.1, 86400), "20"},
    {AT(bound), "p99=TIME", "scenario server: the bound of its latencies: p99=10ms, p90=500us"},
    {AT(until), "TARGET", "train on --dataset until accuracy=0.95 or loss=0.1 of held-out rows"},
    {AT(dataset), "DATA", "data of --until: a name (iris, digits) or a file"},
    {ARG_NAMED("accuracy", struct bench_request, accurate), "DATA",
     "inference of a trained network: its right answers on this data, and what a smaller type loses"},
    {AT(seeds), "N", "trainings of --until, from --seed on (default 3, with --against 2)",
     ARG_FROM(1, 1000), "3"},
    {AT(seed), "N", "random seed of arrivals (server) and of the first training (default 1)",
     ARG_FROM(0, 1e9), "1"},
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
        FAIL(STATUS_INPUT, "--until goes without --scenario, --data and --against");
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

/* Every precision there is. */
static enum status all_precisions(struct arena *arena, struct sweep_list *out)
{
    const char **names = arena_array(arena, CHOICE_COUNT, sizeof *names);
    NEED(names);
    *out = (struct sweep_list){names, 0};
    for (int c = 0; c < CHOICE_COUNT; c++)
        if (choice_find(AXIS_precision, choice_name((enum choice)c)) == (enum choice)c)
            names[out->count++] = choice_name((enum choice)c);
    return STATUS_OK;
}

/* Is it called like a file, and is none? Whoever opens it says so. */
static bool is_missing_file(const char *model)
{
    return strchr(model, '.') && access(model, F_OK) != 0;
}

/* Accuracy is that of trained weights. */
static enum status request_accuracy(const struct bench_request *request)
{
    const struct sweep_list *models = &request->sweep.lists[AXIS_model];
    const struct sweep_list *phases = &request->sweep.lists[AXIS_phase];
    for (int i = 0; request->accurate && i < models->count; i++)
        if (!accuracy_is_trained(models->values[i]) && !is_missing_file(models->values[i]))
            FAIL(STATUS_INPUT,
                 "--accuracy %s: found the network '%s', which has no trained weights; expected a "
                 "file that prony train or prony quantise wrote, or an ONNX file",
                 request->accurate, models->values[i]);
    if (request->accurate && phases->count && !sweep_has(phases, "inference"))
        FAIL(STATUS_INPUT, "--accuracy %s needs --phase inference", request->accurate);
    return STATUS_OK;
}

enum status bench_request_sweep(struct bench_request *request, const char *const *models,
                                int model_count, struct arena *arena)
{
    static const char *const inference[] = {"inference"};
    struct sweep *sweep = &request->sweep;
    request->all = text_equal(request->axis_text[AXIS_precision], "all");
    for (int i = 0; i < AXIS_COUNT; i++)
        if (request->axis_text[i] && !(i == AXIS_precision && request->all))
            TRY(sweep_split(&axes[i], request->axis_text[i], arena, &sweep->lists[i]));
    if (request->all)
        TRY(all_precisions(arena, &sweep->lists[AXIS_precision]));
    request->sheet = request->all || request->accurate;
    sweep->against = request->against;
    if (request->seconds <= 0)
        request->seconds = request->against ? 8 : 3;
    TRY(request_models(&sweep->lists[AXIS_model], models, model_count, arena));
    if (request->bound)
        TRY(scenario_parse_bound(request->bound, &request->holds));
    if (request->bound && !sweep_has(&sweep->lists[AXIS_scenario], "server"))
        FAIL(STATUS_INPUT, "--bound %s needs --scenario server", request->bound);
    TRY(request_companions(request));
    TRY(request_accuracy(request));
    if (request->sheet && !sweep->lists[AXIS_phase].count)
        sweep->lists[AXIS_phase] = (struct sweep_list){inference, 1};
    TRY(request_until(request));
    return request->skip ? sweep_parse_skip(sweep, request->skip, arena) : STATUS_OK;
}

/* Does some backend here compute in it? A CPU's says so when it is opened; a GPU's have them all.
 */
static bool has_precision(const struct registry *registry, const char *precision)
{
    const struct device_options options = {.threads = 1, .precision = precision};
    for (int i = 0; i < registry->count; i++) {
        const struct backend *backend = registry->list[i].backend;
        struct device *device;
        if (!backend || backend->probe() != STATUS_OK)
            continue;
        if (strcmp(backend->unit, "cpu") != 0)
            return true;
        if (backend->open(&options, &device) == STATUS_OK) {
            backend->close(device);
            return true;
        }
    }
    return false;
}

/* Is prony alone asked? Other frameworks have precisions of their own. */
static bool is_alone(const struct sweep *sweep)
{
    const struct sweep_list *frameworks = &sweep->lists[AXIS_framework];
    return !sweep->against &&
           (!frameworks->count || (frameworks->count == 1 && sweep_has(frameworks, "prony")));
}

enum status bench_request_precisions(struct bench_request *request, const struct registry *registry,
                                     struct arena *arena)
{
    struct sweep_list *list = &request->sweep.lists[AXIS_precision];
    const struct backend *gpu;
    const char **kept;
    int count = 0;
    if (!is_alone(&request->sweep))
        return STATUS_OK;
    NEED(kept = arena_array(arena, (size_t)list->count + 1, sizeof *kept));
    for (int i = 0; i < list->count; i++) {
        if (has_precision(registry, list->values[i])) {
            kept[count++] = list->values[i];
            continue;
        }
        enum status status = registry_first(registry, "gpu", &gpu); /* why there is none */
        status = status_prefix(status, "--precision %s: only backends of a GPU compute in it",
                               list->values[i]);
        if (request->all) {
            log_info("%s left out: no backend here computes in it", list->values[i]);
            continue;
        }
        if (!count && i == list->count - 1)
            return status;
        log_warning("%s", status_message());
    }
    *list = (struct sweep_list){kept, count};
    return STATUS_OK;
}

/* How far a run is. */
struct progress {
    int done, total; /* points */
    uint64_t start_ns;
    double planned, begun; /* seconds: for all of it, for the groups that were begun */
    const struct bench_watcher *watcher;
};

/* What groups took, against what was planned for them, scales the rest. */
static void tell_progress(void *context, const struct point *points, int count, double seconds)
{
    struct progress *progress = context;
    const double taken = (double)(clock_ns() - progress->start_ns) * 1e-9;
    const double after = fmax(progress->planned - progress->begun - seconds, 0);
    const struct bench_stage stage = {
        .points = points,
        .count = count,
        .done = progress->done,
        .total = progress->total,
        .seconds = pace_correct(seconds, progress->begun, taken),
        .after = pace_correct(after, progress->begun, taken),
    };
    progress->watcher->tell(progress->watcher->context, &stage);
    progress->done += count;
    progress->begun += seconds;
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
    bench->accuracy = request->accurate;
    bench->sheet = request->sheet;
    bench->until.dataset = request->dataset;
    bench->until.accuracy = request->accuracy;
    bench->until.loss = request->loss;
    bench->until.seeds = request->seeds;
}

/* Everything is looked at before anything is run. */
static enum status count_work(struct bench *bench, struct bench_request *const *requests, int count,
                              struct progress *progress)
{
    bench->crowd = watch_crowd(bench->facts.cpu.cores);
    for (int i = 0; i < count; i++) {
        int points;
        double seconds;
        use_request(bench, requests[i]); /* its goal decides what is done */
        enum status status = sweep_check(&requests[i]->sweep, bench);
        if (status != STATUS_OK && requests[i]->place)
            return status_prefix(status, "%s", requests[i]->place);
        TRY(status);
        TRY(sweep_count(&requests[i]->sweep, bench, &points, &seconds));
        progress->total += points;
        progress->planned += seconds;
    }
    progress->start_ns = clock_ns();
    return STATUS_OK;
}

static enum status run_all(struct bench *bench, struct bench_request *const *requests, int count,
                           const struct bench_watcher *watcher, struct arena *arena)
{
    struct progress progress = {.watcher = watcher};
    enum status status = STATUS_OK;

    TRY(count_work(bench, requests, count, &progress));
    if (progress.total)
        watcher->plan(watcher->context, progress.total, progress.planned);
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        struct sweep *sweep = &requests[i]->sweep;
        use_request(bench, requests[i]);
        sweep->progress = tell_progress;
        sweep->context = &progress;
        watcher->begin(watcher->context, sweep);
        status = sweep_run(sweep, bench);
    }
    const int written = bench->ok + bench->skipped + bench->failed;
    if (status == STATUS_INTERRUPTED)
        log_warning("stopped: what was finished is kept");
    else if (status == STATUS_OK && !written)
        log_info("nothing is left to be measured");
    if (written && (status == STATUS_OK || status == STATUS_INTERRUPTED)) {
        enum status told = write_machine(bench, arena);
        status = told == STATUS_OK ? status : told;
    }
    return status;
}

enum status bench_request_check(const struct bench_request *request,
                                const struct registry *registry, const char *peers)
{
    const struct bench bench = {.registry = registry, .peers = peers};
    return sweep_check(&request->sweep, &bench);
}

enum status bench_request_plan(struct bench *bench, struct bench_request *const *requests,
                               int count, int *points, double *seconds)
{
    struct progress progress = {0};
    facts_find(&bench->facts);
    TRY(calibration_open(&bench->calibration));
    enum status status = count_work(bench, requests, count, &progress);
    calibration_free(&bench->calibration);
    *points = progress.total;
    *seconds = progress.planned;
    return status;
}

/* The best ceilings seen here are read before, and kept after whatever happened. */
enum status bench_request_run(struct bench *bench, struct bench_request *const *requests, int count,
                              const struct bench_watcher *watcher)
{
    struct arena arena = {0};
    facts_find(&bench->facts);
    if (strcmp(bench->facts.build, "release") != 0)
        log_warning("this is a %s build: its times say little", bench->facts.build);
    enum status status = facts_trees(&bench->facts, &arena, &bench->machine, &bench->software);
    if (status == STATUS_OK)
        status = calibration_open(&bench->calibration);
    if (status == STATUS_OK)
        status = run_all(bench, requests, count, watcher, &arena);
    calibration_close(&bench->calibration);
    peer_bank_close(&bench->waiting);
    accuracies_free(&bench->accuracies);
    arena_free(&arena);
    return status;
}
