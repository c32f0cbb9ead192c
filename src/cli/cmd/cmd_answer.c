/* cmd_answer.c: prony answer: without a network, what the results of this machine mean; with one,
 * how to run it here, measuring what the store does not say yet within a given time. */
#include "cli/commands.h"

#include "base/log.h"
#include "base/machine/cpu.h"
#include "bench/peer/peers.h"
#include "bench/sweep/done.h"
#include "cli/bench_run.h"
#include "cli/peer_folder.h"
#include "cli/screen.h"
#include "cli/show/answer_output.h"
#include "cli/store_file.h"
#include "finding/finding.h"
#include "nn/network.h"
#include "record/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *network, *store, *shape, *format;
    const char *phase; /* NULL: training, or inference of an ONNX file */
    const char *unit;  /* or NULL: any */
    double minutes;
};

enum { BATCHES = 4, NAMES = 256 };
static const char *const batches[BATCHES] = {"1", "8", "64", "256"};
enum { TWO = 2, THREADS = 3 }; /* batches beside others; numbers of threads, at most */
static const double SECONDS_LEAST = 0.3, SECONDS_MOST = 3;

/* Those of the unit that is asked about that can be opened here, with commas between, but the
 * reference, which is not meant to be fast; a GPU's take no threads. */
static enum status list_backends(const struct cli *cli, const char *unit, bool gpu, char out[NAMES],
                                 int *count)
{
    struct text names = {0};
    *count = 0;
    for (int i = 0; i < cli->registry->count; i++) {
        const struct backend *backend = cli->registry->list[i].backend;
        bool is_gpu = backend && strcmp(backend->unit, "cpu") != 0;
        bool asked = backend && (!unit || strcmp(backend->unit, unit) == 0);
        if (asked && strcmp(backend->name, "ref") != 0 && is_gpu == gpu &&
            backend->probe() == STATUS_OK)
            text_printf(&names, "%s%s", (*count)++ ? "," : "", backend->name);
    }
    snprintf(out, NAMES, "%s", text_of(&names));
    enum status status = text_done(&names);
    text_free(&names);
    return status;
}

/* One bench, of which what the store has already is left out. `frameworks`: NULL is prony alone.
 * What fails is in the store and is told at the end: the others go on. */
struct trial {
    const char *name; /* for whoever waits */
    const char *frameworks, *backend, *batch, *threads;
};

/* All of them: one bar for the person who waits. */
struct trials {
    const struct cli *cli;
    const struct options *options;
    double seconds;     /* of a configuration */
    int left;           /* configurations of the trials that follow, at most */
    struct text rivals; /* a list of --framework */
    int rival_count;
    char best[POINT_NUMBER]; /* the best batch so far */
    struct bench_part part;
};

static enum status measure_some(struct trials *trials, const struct trial *trial, int points)
{
    const struct options *options = trials->options;
    struct bench_request request, *list = &request;
    struct bench_output output = {.style = OUTPUT_NOTHING, .part = &trials->part};
    struct arena arena = {0};
    enum status status;
    trials->left -= points;
    trials->part.name = trial->name;
    trials->part.after_s = trials->left * trials->seconds;
    bench_request_start(&request);
    request.axis_text[AXIS_phase] = options->phase;
    request.axis_text[AXIS_framework] = trial->frameworks;
    request.axis_text[AXIS_backend] = trial->backend;
    request.axis_text[AXIS_batch] = trial->batch;
    request.axis_text[AXIS_threads] = trial->threads;
    request.seconds = trials->seconds;
    TRY_OR(done, bench_request_sweep(&request, &options->network, 1, &arena));
    TRY_OR(done, bench_output_use(&output, options->store));
    TRY_OR(done, cli_bench(trials->cli, &list, 1, &output, true));
done:
    bench_output_close(&output);
    arena_free(&arena);
    return status == STATUS_WRONG ? STATUS_OK : status;
}

/* A file may have been another network when it was measured, and so may one of that name in another
 * folder: only what computed the same counts. */
static enum status add_programs(const struct options *options, struct arena *arena,
                                struct store_filter *filters, size_t *count)
{
    char program[DONE_PROGRAM];
    struct point point;
    point_start(&point);
    TRY(point_set(&point, &axes[AXIS_model], options->network));
    TRY(point_set(&point, &axes[AXIS_phase], options->phase));
    for (int i = 0; i < BATCHES && !network_built_in(options->network); i++) {
        TRY(point_set(&point, &axes[AXIS_batch], batches[i]));
        TRY(done_program(&point, program));
        filters[*count].key = "program";
        NEED(filters[*count].value = arena_text(arena, program));
        *count += *program != '\0';
    }
    return STATUS_OK;
}

/* What there is to know of this network on this machine. */
static enum status look(struct store *store, const struct options *options, struct arena *arena,
                        struct finding_about *about)
{
    char server[POINT_TEXT] = "";
    struct store_filter *filters;
    size_t count = 2;
    gethostname(server, sizeof server - 1);
    NEED(filters = arena_array(arena, 4 + BATCHES, sizeof *filters));
    filters[0] = (struct store_filter){"model", options->network};
    filters[1] = (struct store_filter){"phase", options->phase};
    if (options->unit)
        filters[count++] = (struct store_filter){"unit", options->unit};
    if (options->minutes > 0) { /* of any machine when nothing is measured */
        filters[count].key = "server";
        NEED(filters[count++].value = arena_text(arena, server));
    }
    TRY(add_programs(options, arena, filters, &count));
    return finding_about(store, arena, (struct store_where){filters, count}, about);
}

/* The batch that was best so far, for threads and other frameworks to be tried at. */
static enum status best_batch(const struct options *options, char out[POINT_NUMBER])
{
    struct store *store;
    struct arena arena = {0};
    struct finding_about about;
    TRY(store_open(options->store, STORE_READ, &store));
    enum status status = look(store, options, &arena, &about);
    if (status == STATUS_OK)
        snprintf(out, POINT_NUMBER, "%lld",
                 about.best_id ? (long long)about.best.batch : (long long)64);
    store_close(store);
    arena_free(&arena);
    return status;
}

/* "prony,numpy,pytorch": with the other frameworks that are installed with prony, but those that
 * loop over weights in Python: an iteration of theirs may take minutes. "": there are none. */
static enum status list_rivals(const struct cli *cli, struct text *out, int *count)
{
    const char *folder, *const *names;
    struct arena arena = {0};
    size_t found = 0;
    *count = 0;
    enum status status = cli_peers(cli, &arena, &folder);
    if (status == STATUS_OK)
        status = peers_list(folder, &arena, &names, &found);
    text_add(out, "prony");
    for (size_t i = 0; i < found; i++)
        if (!text_starts(names[i], "python-")) {
            text_printf(out, ",%s", names[i]);
            ++*count;
        }
    if (status == STATUS_OK)
        status = text_done(out);
    arena_free(&arena);
    return status;
}

/* Other frameworks at the best batch and at 1, beside prony with as many threads. */
static enum status measure_rivals(struct trials *trials, const char *backends, const char *threads,
                                  int count)
{
    char two[NAMES];
    if (!trials->rival_count)
        return STATUS_OK;
    snprintf(two, sizeof two, strcmp(trials->best, "1") ? "1,%s" : "%s", trials->best);
    return measure_some(
        trials,
        &(struct trial){"other frameworks", text_of(&trials->rivals), backends, two, threads},
        TWO * (trials->rival_count + count));
}

/* Of each backend its batches, the two beside others, and on a CPU its threads; of each rival two
 * on a CPU, and on a GPU. */
static int count_points(const struct trials *trials, int cpus, int gpus)
{
    return (BATCHES + TWO) * (cpus + gpus) + THREADS * cpus +
           TWO * trials->rival_count * ((cpus > 0) + (gpus > 0));
}

/* Batches with all cores, then at the best batch other frameworks and other numbers of threads. */
static enum status measure_trials(struct trials *trials)
{
    const struct options *options = trials->options;
    char cpus[NAMES], gpus[NAMES], all[NAMES] = "", cores[NAMES], threads[NAMES];
    const char *named = NULL;
    struct cpu cpu;
    int cpu_count, gpu_count;
    cpu_detect(&cpu);
    TRY(cli_unit(trials->cli, options->unit, &named)); /* one that is not here says why */
    TRY(list_backends(trials->cli, options->unit, false, cpus, &cpu_count));
    TRY(list_backends(trials->cli, options->unit, true, gpus, &gpu_count));
    TRY(list_rivals(trials->cli, &trials->rivals, &trials->rival_count));
    for (int i = 0; i < BATCHES; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "," : "", batches[i]);
    trials->left = count_points(trials, cpu_count, gpu_count);
    const double each = options->minutes * 60 / (trials->left + 1);
    trials->seconds = fmin(fmax(each, SECONDS_LEAST), SECONDS_MOST);
    snprintf(cores, sizeof cores, "%d", cpu.cores);
    if (cpu_count)
        TRY(measure_some(trials, &(struct trial){"batches", NULL, cpus, all, cores},
                         BATCHES * cpu_count));
    if (gpu_count)
        TRY(measure_some(trials, &(struct trial){"batches, GPU", NULL, gpus, all, NULL},
                         BATCHES * gpu_count));
    TRY(best_batch(options, trials->best));
    if (gpu_count)
        TRY(measure_rivals(trials, gpus, NULL, gpu_count));
    if (!cpu_count)
        return STATUS_OK;
    TRY(measure_rivals(trials, cpus, cores, cpu_count));
    snprintf(threads, sizeof threads, cpu.cores > 3 ? "1,%d,%d" : "1,%d",
             cpu.cores > 3 ? cpu.cores / 2 : cpu.cores, cpu.cores);
    return measure_some(trials, &(struct trial){"threads", NULL, cpus, trials->best, threads},
                        THREADS * cpu_count);
}

static enum status measure_all(const struct cli *cli, const struct options *options)
{
    struct trials trials = {.cli = cli, .options = options};
    enum status status = measure_trials(&trials);
    progress_end(&trials.part.progress);
    text_free(&trials.rivals);
    return status;
}

/* How it is run best, and how fast that is. */
static void describe_best(const struct store_row *best, struct text *out)
{
    const struct point *point = &best->point;
    const bool calls = !point_is(point, CHOICE_scenario_iterate) && point->scenario[0];
    text_printf(out, "%s%s%s%s on the %s", framework_title(point->framework),
                point->backend[0] ? " (" : "", point->backend, point->backend[0] ? ")" : "",
                strcmp(point->unit, "gpu") ? "CPU" : "GPU");
    if (point->unit_name[0]) /* not every framework says which */
        text_printf(out, " (%s)", point->unit_name);
    text_printf(out, ", batch %lld, %s", (long long)point->batch, point->precision);
    if (point->threads)
        text_printf(out, ", %lld thread%s", (long long)point->threads,
                    point->threads == 1 ? "" : "s");
    if (calls)
        text_printf(out, ", scenario %s", point->scenario);
    if (!point_is(point, CHOICE_ingestion_resident) && point->ingestion[0])
        text_printf(out, ", %s ingestion", point->ingestion);
    text_add(out, ": ");
    text_add_time(out, best->metrics[METRIC_time_median]);
    text_add(out, calls ? " a call, " : " a step, ");
    text_add_count(out, best->metrics[METRIC_throughput]);
    text_add(out, " samples/s");
}

/* Also where nothing is concluded from it: the findings say why. */
static enum status print_best(const struct finding_about *about, int width)
{
    struct store_row best;
    struct text text = {0};
    int64_t id = about->best_id;
    if (!id)
        TRY(finding_fastest(about, &id));
    if (!id)
        return STATUS_OK;
    TRY(store_row(about->store, id, &best));
    describe_best(&best, &text);
    if (!about->best_id)
        text_add(&text, " (disturbed or not checked: no finding rests on it)");
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = answer_line("best", text_of(&text), width);
    text_free(&text);
    return status;
}

/* A finding with its name; what to try comes with its command. Unknown ones are told where some
 * result `counts`. */
static enum status print_finding(const struct finding *finding, bool counts, int width)
{
    const bool next = strcmp(finding->name, "next") == 0;
    if (finding->known || next || (counts && finding->command.length))
        TRY(answer_line(finding->name, text_of(&finding->sentence), width));
    if (next && finding->command.length)
        TRY(answer_command("try", text_of(&finding->command), width));
    return STATUS_OK;
}

static enum status print_findings(const struct finding_about *about, int width)
{
    for (size_t i = 0; i < FINDINGS; i++) {
        struct finding finding;
        TRY(finding_ask(about, i, &finding));
        enum status status = print_finding(&finding, about->best_id != 0, width);
        finding_free(&finding);
        TRY(status);
    }
    return STATUS_OK;
}

/* What was not measured: frameworks of which everything was skipped, and what failed, each with its
 * reason. */
enum { LEFT_OUT = 16, LOOKED_AT = 100 /* the newest */ };
struct left_out {
    const struct finding_about *about;
    const char *status; /* of the records: "skipped" or "failed" */
    struct arena arena;
    struct left_out_entry {
        const char *framework, *backend, *reason; /* backend: "" of what was skipped */
        int64_t batches[LEFT_OUT];                /* at which it failed, in order */
        size_t batch_count;
    } list[LEFT_OUT];
    size_t count;
};

static enum status take_id(void *context, const struct store_row *row)
{
    *(int64_t *)context = row->id;
    return STATUS_OK;
}

/* Was it measured all the same? A failure is mended by a newer result of the same. */
static enum status is_measured(const struct left_out *left_out, int64_t id,
                               const struct point *point, bool *out)
{
    static const enum metric_index none[] = {METRIC_COUNT};
    const struct finding_about *about = left_out->about;
    const bool failed = strcmp(left_out->status, "failed") == 0;
    char batch[POINT_NUMBER], threads[POINT_NUMBER];
    int64_t newest = 0, count;
    snprintf(batch, sizeof batch, "%lld", (long long)point->batch);
    snprintf(threads, sizeof threads, "%lld", (long long)point->threads);
    const struct store_filter filters[] = {
        {"framework", point->framework}, {"model", about->model}, {"phase", about->phase},
        {"server", about->server},       {"source", "own"},       {"status", "ok"},
        {"backend", point->backend},     {"batch", batch},        {"threads", threads}};
    const struct store_glance glance = {
        .where = {filters, failed ? 9 : 6}, .metrics = none, .limit = 1};
    TRY(store_rows(about->store, &glance, take_id, &newest, &count));
    *out = failed ? newest > id : count > 0;
    return STATUS_OK;
}

static void add_batch(struct left_out_entry *entry, int64_t batch)
{
    size_t at = 0;
    while (at < entry->batch_count && entry->batches[at] < batch)
        at++;
    if (entry->batch_count == LEFT_OUT || (at < entry->batch_count && entry->batches[at] == batch))
        return;
    memmove(entry->batches + at + 1, entry->batches + at,
            (entry->batch_count++ - at) * sizeof *entry->batches);
    entry->batches[at] = batch;
}

static enum status add_left_out(struct left_out *left_out, const struct record *record)
{
    const struct point *point = &record->point;
    const bool failed = record->status == RECORD_FAILED;
    const char *backend = failed ? point->backend : "", *reason = record->reason;
    struct left_out_entry *entry = left_out->list, *end = left_out->list + left_out->count;
    while (entry < end && (strcmp(entry->framework, point->framework) != 0 ||
                           strcmp(entry->backend, backend) != 0))
        entry++;
    if (entry == left_out->list + LEFT_OUT)
        return STATUS_OK;
    if (entry == end) {
        left_out->count++;
        NEED(entry->framework = arena_text(&left_out->arena, point->framework));
        NEED(entry->backend = arena_text(&left_out->arena, backend));
        NEED(entry->reason = arena_text(&left_out->arena, reason ? reason : left_out->status));
    }
    if (failed)
        add_batch(entry, point->batch);
    return STATUS_OK;
}

static enum status take_left_out(void *context, int64_t id, const char *line, size_t length)
{
    struct left_out *left_out = context;
    struct arena arena = {0};
    struct record record;
    bool measured;
    enum status status = record_read(&arena, "store", 1, line, length, &record);
    if (status == STATUS_OK)
        status = is_measured(left_out, id, &record.point, &measured);
    if (status == STATUS_OK && !measured)
        status = add_left_out(left_out, &record);
    arena_free(&arena);
    return status;
}

/* "left out    CuPy, FANN and Go: prony machine says why" */
static enum status print_more(const struct left_out *left_out, size_t from, int width)
{
    struct text text = {0};
    for (size_t i = from; i < left_out->count; i++)
        text_printf(&text, "%s%s",
                    i == from                 ? ""
                    : i + 1 < left_out->count ? ", "
                                              : " and ",
                    framework_title(left_out->list[i].framework));
    text_add(&text, ": prony machine says why");
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = answer_line("left out", text_of(&text), width);
    text_free(&text);
    return status;
}

/* "failed      prony (blas), batch 64, 256: …"; of many that were skipped the first with reasons.
 */
static enum status print_left_out(const struct left_out *left_out, int width)
{
    enum { REASONS = 3 };
    enum status status = STATUS_OK;
    const bool many = left_out->count > REASONS && !left_out->list[0].batch_count;
    const size_t shown = many ? REASONS - 1 : left_out->count;
    for (size_t i = 0; i < shown && status == STATUS_OK; i++) {
        const struct left_out_entry *entry = &left_out->list[i];
        const char *backend = entry->backend;
        struct text text = {0};
        text_printf(&text, "%s%s%s%s", framework_title(entry->framework), *backend ? " (" : "",
                    backend, *backend ? ")" : "");
        for (size_t k = 0; k < entry->batch_count; k++)
            text_printf(&text, "%s %lld", k ? "," : ", batch", (long long)entry->batches[k]);
        text_printf(&text, ": %s", entry->reason);
        status = text_done(&text);
        if (status == STATUS_OK)
            status = answer_line(entry->batch_count ? "failed" : "left out", text_of(&text), width);
        text_free(&text);
    }
    if (many && status == STATUS_OK)
        status = print_more(left_out, shown, width);
    return status;
}

static enum status tell_left_out(const struct finding_about *about, const char *of_status,
                                 int width)
{
    const struct store_filter filters[] = {{"model", about->model},
                                           {"phase", about->phase},
                                           {"server", about->server},
                                           {"source", "own"},
                                           {"status", of_status}};
    struct left_out left_out = {.about = about, .status = of_status};
    enum status status = store_list(about->store, (struct store_where){filters, 5}, LOOKED_AT, 0,
                                    take_left_out, &left_out);
    if (status == STATUS_OK)
        status = print_left_out(&left_out, width);
    arena_free(&left_out.arena);
    return status;
}

static enum status print_text(const struct options *options, const struct finding_about *about)
{
    const int width = screen_width(stdout);
    printf("%s, %s, on %s%s\n\n", options->network, options->phase, about->machine.title,
           about->machine.shipped ? " (shipped with prony)" : "");
    TRY(print_best(about, width));
    TRY(print_findings(about, width));
    TRY(tell_left_out(about, "skipped", width));
    return tell_left_out(about, "failed", width);
}

/* What is no network cannot be measured either. */
static enum status blame_network(const struct options *options, enum status status)
{
    const struct error lacking = *status_last();
    struct network *network;
    TRY(network_open(options->network, &network));
    network_free(network);
    *status_last() = lacking;
    return status;
}

/* May a GPU be suggested? */
static bool has_gpu(const struct cli *cli)
{
    const struct backend *gpu;
    return registry_first(cli->registry, "gpu", &gpu) == STATUS_OK;
}

static enum status print_all(const struct cli *cli, const struct options *options)
{
    struct store *store;
    struct arena arena = {0};
    struct finding_about about;
    TRY(store_open(options->store, STORE_READ, &store));
    enum status status = look(store, options, &arena, &about);
    if (status == STATUS_INPUT)
        status = blame_network(options, status);
    if (status == STATUS_OK) {
        about.machine.gpu |= about.machine.here && has_gpu(cli);
        about.machine.no_gpu = !has_gpu(cli);
        status = options->format ? answer_json(&about) : print_text(options, &about);
    }
    store_close(store);
    arena_free(&arena);
    return status;
}

/* What was measured is in the store, and is answered from, also when it was stopped. */
static enum status answer_network(const struct cli *cli, const struct options *options)
{
    enum status status = options->minutes > 0 ? measure_all(cli, options) : STATUS_OK;
    if (status != STATUS_INTERRUPTED && status != STATUS_OK)
        return status;
    TRY(print_all(cli, options));
    return status;
}

static enum status answer_machine(const struct options *options)
{
    struct store *store;
    struct arena arena = {0};
    struct overview overview = {0};
    TRY(store_open(options->store, STORE_READ, &store));
    enum status status = overview_find(store, &arena, (struct store_where){0}, &overview);
    if (status == STATUS_OK && options->format)
        status = answer_overview_json(&overview);
    else if (status == STATUS_OK)
        status = answer_overview(&overview, store_flag(store), screen_width(stdout));
    overview_free(&overview);
    store_close(store);
    arena_free(&arena);
    return status;
}

static enum status run_answer(struct cli *cli, void *given)
{
    struct options *options = given;
    struct text path = {0};
    if (options->format && strcmp(options->format, "json") != 0)
        FAIL(STATUS_INPUT, "--format: found \"%s\", expected json", options->format);
    TRY(cli_shape(cli, options->shape));
    options->network = cli->found.count ? cli->found.positional[0] : NULL;
    if (!options->phase)
        options->phase =
            options->network && cli_has_weights(options->network) ? "inference" : "training";
    TRY(axis_check(&axes[AXIS_phase], options->phase));
    enum status status = store_file_path(options->store, &path);
    if (status == STATUS_OK) {
        options->store = text_of(&path);
        status = options->network ? answer_network(cli, options) : answer_machine(options);
    }
    text_free(&path);
    return status;
}

static const struct arg rows[] = {
    {ARG(struct options, minutes), "N",
     "time to measure what is missing (default: 2); 0: use the store alone", ARG_FROM(0, 1000),
     "2"},
    {ARG(struct options, phase), "PHASE",
     "training or inference (default: training; for an ONNX file inference)"},
    {CLI_STORE(struct options)},
    {ARG(struct options, unit), "UNIT", "cpu or gpu: results of this unit only (default: all)"},
    {CLI_SHAPE(struct options)},
    {ARG(struct options, format), "FORMAT", "json: for a program (default: for a person)"},
    ARG_END,
};

const struct command cmd_answer = {
    .summary = "say what the results mean, or how to run a network on this machine",
    .run = run_answer,
    .alone = true,
    .bytes = sizeof(struct options),
    .args = {.command = "prony answer",
             .usage = "[NETWORK] [options]",
             .summary =
                 "Without a network, says in a few sentences what was found on this machine. "
                 "With\none, says how to run it here: unit, batch, threads, framework, distance "
                 "from\nthe limit, next step. It measures what the store lacks.",
             .examples = "  prony answer                              what was found so far\n"
                         "  prony answer large                        about one network\n"
                         "  prony answer model.onnx --minutes 5       your own, in inference\n"
                         "  prony answer large --minutes 0 --store results.db\n",
             .lists = {{rows, 0}},
             .least = 0,
             .most = 1},
};
