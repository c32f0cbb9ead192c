/* cmd_answer.c: prony answer: without a network, what the results of this machine mean; with one,
 * how to run it here, when answer_trials.c has measured what the store does not say yet. */
#include "cli/commands.h"

#include "cli/answer_trials.h"
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

static enum status print_text(const struct answer_options *options,
                              const struct finding_about *about, const char *untried)
{
    const int width = screen_width(stdout);
    printf("%s, %s, on %s%s\n\n", options->network, options->phase, about->machine.title,
           about->machine.shipped ? " (shipped with prony)" : "");
    TRY(print_best(about, width));
    TRY(print_findings(about, width));
    TRY(tell_left_out(about, "skipped", width));
    TRY(tell_left_out(about, "failed", width));
    return *untried ? answer_line("no time", untried, width) : STATUS_OK;
}

/* What is no network cannot be measured either. */
static enum status blame_network(const struct answer_options *options, enum status status)
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

static enum status print_all(const struct cli *cli, const struct answer_options *options,
                             const char *untried)
{
    struct store *store;
    struct arena arena = {0};
    struct finding_about about;
    TRY(store_open(options->store, STORE_READ, &store));
    enum status status = answer_look(store, options, &arena, &about);
    if (status == STATUS_INPUT)
        status = blame_network(options, status);
    if (status == STATUS_OK) {
        about.machine.gpu |= about.machine.here && has_gpu(cli);
        about.machine.no_gpu = !has_gpu(cli);
        status = options->format ? answer_json(&about) : print_text(options, &about, untried);
    }
    store_close(store);
    arena_free(&arena);
    return status;
}

/* What was measured is in the store, and is answered from, also when it was stopped. */
static enum status answer_network(const struct cli *cli, const struct answer_options *options)
{
    struct text untried = {0};
    enum status status = options->minutes > 0 ? answer_measure(cli, options, &untried) : STATUS_OK;
    if (status == STATUS_INTERRUPTED || status == STATUS_OK)
        status = print_all(cli, options, text_of(&untried));
    text_free(&untried);
    return status;
}

static enum status answer_machine(const struct answer_options *options)
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
    struct answer_options *options = given;
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
    {ARG(struct answer_options, minutes), "N",
     "time to measure what is missing (default: 2); 0: use the store alone", ARG_FROM(0, 1000),
     "2"},
    {ARG(struct answer_options, phase), "PHASE",
     "training or inference (default: training; for an ONNX file inference)"},
    {CLI_STORE(struct answer_options)},
    {ARG(struct answer_options, unit), "UNIT",
     "cpu or gpu: results of this unit only (default: all)"},
    {CLI_SHAPE(struct answer_options)},
    {ARG(struct answer_options, format), "FORMAT", "json: for a program (default: for a person)"},
    ARG_END,
};

const struct command cmd_answer = {
    .summary = "say what the results mean, or how to run a network on this machine",
    .run = run_answer,
    .alone = true,
    .bytes = sizeof(struct answer_options),
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
