/* cmd_answer.c: prony answer: measures what the store does not say of a network yet, within a given
 * time, and says in ten lines how to run it here. */
#include "cli/commands.h"

#include "base/cpu.h"
#include "base/log.h"
#include "bench/sweep/done.h"
#include "cli/bench_run.h"
#include "cli/store_file.h"
#include "finding/finding.h"
#include "nn/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *network, *phase, *store, *shape;
    const char *unit; /* or NULL: any */
    double minutes;
};

enum { BATCHES = 4, NAMES = 256 };
static const char *const batches[BATCHES] = {"1", "8", "64", "256"};
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

/* One bench, of which what the store has already is left out. */
static enum status measure_some(const struct cli *cli, const struct options *options,
                                const char *backend, const char *batch, const char *threads,
                                double seconds)
{
    struct bench_request request, *list = &request;
    struct bench_output output = {.style = OUTPUT_NOTHING};
    struct arena arena = {0};
    enum status status;
    bench_request_start(&request);
    request.axis_text[AXIS_phase] = options->phase;
    request.axis_text[AXIS_backend] = backend;
    request.axis_text[AXIS_batch] = batch;
    request.axis_text[AXIS_threads] = threads;
    request.seconds = fmin(fmax(seconds, SECONDS_LEAST), SECONDS_MOST);
    TRY_OR(done, bench_request_sweep(&request, &options->network, 1, &arena));
    TRY_OR(done, bench_output_use(&output, options->store));
    TRY_OR(done, cli_bench(cli, &list, 1, &output, true));
done:
    bench_output_close(&output);
    arena_free(&arena);
    return status;
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

/* The result with the most samples a second; STATUS_INPUT when there is none. */
static enum status find_best(const struct finding_about *about, struct store_row *best)
{
    struct finding next;
    size_t index;
    finding_named("next", &index);
    TRY(finding_ask(about, index, &next));
    enum status status = next.id_count ? store_row(about->store, next.ids[0], best) : STATUS_INPUT;
    finding_free(&next);
    return status;
}

/* The batch that was best so far, for the threads to be tried at. */
static enum status best_batch(const struct options *options, char out[POINT_NUMBER])
{
    struct store *store;
    struct arena arena = {0};
    struct finding_about about;
    struct store_row best;
    TRY(store_open(options->store, STORE_READ, &store));
    enum status status = look(store, options, &arena, &about);
    if (status == STATUS_OK)
        status = find_best(&about, &best);
    if (status == STATUS_OK)
        snprintf(out, POINT_NUMBER, "%lld", (long long)best.point.batch);
    store_close(store);
    arena_free(&arena);
    return status;
}

static enum status measure_all(const struct cli *cli, const struct options *options)
{
    char cpus[NAMES], gpus[NAMES], all[NAMES] = "", batch[POINT_NUMBER], threads[NAMES];
    const char *named = NULL;
    struct cpu cpu;
    int cpu_count, gpu_count;
    cpu_detect(&cpu);
    TRY(cli_unit(cli, options->unit, &named)); /* one that is not here says why */
    TRY(list_backends(cli, options->unit, false, cpus, &cpu_count));
    TRY(list_backends(cli, options->unit, true, gpus, &gpu_count));
    for (int i = 0; i < BATCHES; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "," : "", batches[i]);
    double each = options->minutes * 60 / ((BATCHES + 3) * (cpu_count + gpu_count) + 1);
    snprintf(threads, sizeof threads, "%d", cpu.cores);
    if (cpu_count)
        TRY(measure_some(cli, options, cpus, all, threads, each));
    if (gpu_count)
        TRY(measure_some(cli, options, gpus, all, NULL, each));
    if (!cpu_count)
        return STATUS_OK;
    TRY(best_batch(options, batch));
    snprintf(threads, sizeof threads, cpu.cores > 3 ? "1,%d,%d" : "1,%d",
             cpu.cores > 3 ? cpu.cores / 2 : cpu.cores, cpu.cores);
    return measure_some(cli, options, cpus, batch, threads, each);
}

static void print_line(const char *name, const struct text *text)
{
    printf("%-10s%s\n", name, text_of(text));
}

/* A sentence of finding.h; `with_command`: and the command that goes with it. */
static enum status print_answer(const struct finding_about *about, const char *name,
                                bool with_command)
{
    struct finding answer;
    size_t index;
    finding_named(name, &index);
    TRY(finding_ask(about, index, &answer));
    print_line(name, &answer.sentence);
    if (with_command && answer.command.length)
        print_line("try", &answer.command);
    finding_free(&answer);
    return STATUS_OK;
}

static enum status print_best(const struct store_row *best)
{
    const struct point *point = &best->point;
    struct text text = {0};
    double floors = best->metrics[METRIC_times_floor];
    text_printf(&text, "%s/%s in %s on the %s", point->framework, point->backend, point->precision,
                point->unit);
    if (point->unit_name[0]) /* other frameworks do not say which */
        text_printf(&text, " (%s)", point->unit_name);
    text_printf(&text, ", batch %lld", (long long)point->batch);
    if (point->threads)
        text_printf(&text, ", %lld thread%s", (long long)point->threads,
                    point->threads == 1 ? "" : "s");
    bool calls = !point_is(point, CHOICE_scenario_iterate) && point->scenario[0];
    if (calls)
        text_printf(&text, ", scenario %s", point->scenario);
    if (!point_is(point, CHOICE_ingestion_resident) && point->ingestion[0])
        text_printf(&text, ", %s ingestion", point->ingestion);
    print_line("best", &text);
    text_clear(&text);
    text_add_time(&text, best->metrics[METRIC_time_median]);
    text_add(&text, calls ? " a call, " : " an iteration, ");
    text_add_count(&text, best->metrics[METRIC_throughput]);
    text_add(&text, " samples/s");
    print_line("speed", &text);
    text_clear(&text);
    if (isnan(floors) && strcmp(best->bound, "latency") == 0)
        text_add(&text, "none worth the name: what it waits for is latency");
    else if (isnan(floors))
        text_add(&text, "not known: there was no calibration of the unit");
    else if (floors < FINDING_FLOOR_LEAST)
        text_printf(&text, "not known: at %.3g × it is faster than ceilings that were seen too low",
                    floors);
    else
        text_printf(&text, "it takes %.3g × what the hardware allows, which is bound by %s", floors,
                    *best->bound ? best->bound : "what is not known");
    print_line("floor", &text);
    enum status status = text_done(&text);
    text_free(&text);
    return status;
}

/* Of what is no network nothing can be measured either. */
static enum status blame_network(const struct options *options, enum status status)
{
    const struct error lacking = *status_last();
    struct network *network;
    TRY(network_open(options->network, &network));
    network_free(network);
    *status_last() = lacking;
    return status;
}

static enum status print_all(const struct options *options)
{
    static const char *const names[] = {"unit", "batch", "threads", "framework", "next"};
    struct store *store;
    struct arena arena = {0};
    struct finding_about about;
    struct store_row best;
    TRY(store_open(options->store, STORE_READ, &store));
    enum status status = look(store, options, &arena, &about);
    if (status == STATUS_INPUT)
        status = blame_network(options, status);
    if (status == STATUS_OK)
        status = find_best(&about, &best);
    if (status == STATUS_OK) {
        printf("network   %s, %s, on %s\n", options->network, options->phase, about.server);
        status = print_best(&best);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && status == STATUS_OK; i++)
        status = print_answer(&about, names[i], strcmp(names[i], "next") == 0);
    store_close(store);
    arena_free(&arena);
    return status;
}

/* What was measured is in the store, and is answered from, also when it was stopped or something
 * failed. */
static enum status answer(const struct cli *cli, struct options *options)
{
    struct text path = {0};
    enum status status = store_file_path(options->store, &path);
    if (status == STATUS_OK) {
        options->store = text_of(&path);
        status = options->minutes > 0 ? measure_all(cli, options) : STATUS_OK;
        if (status == STATUS_INTERRUPTED)
            status = print_all(options) == STATUS_OK ? STATUS_INTERRUPTED : status;
        else if (status == STATUS_OK)
            status = print_all(options);
    }
    text_free(&path);
    return status;
}

static enum status run_answer(struct cli *cli, void *given)
{
    struct options *options = given;
    TRY(cli_shape(cli, options->shape));
    options->network = cli->found.positional[0];
    TRY(axis_check(&axes[AXIS_phase], options->phase));
    return answer(cli, options);
}

static const struct arg rows[] = {
    {ARG(struct options, minutes), "N",
     "for measuring what is missing (default: 2); 0: only what the store says", ARG_FROM(0, 1000),
     "2"},
    {ARG(struct options, phase), "PHASE", "training or inference (default: training)",
     .otherwise = "training"},
    {CLI_STORE(struct options)},
    {ARG(struct options, unit), "UNIT",
     "cpu or gpu: only what is measured there (default: all there are)"},
    {CLI_SHAPE(struct options)},
    ARG_END,
};

const struct command cmd_answer = {
    .summary = "say how to run a network on this machine, measuring what is missing",
    .run = run_answer,
    .bytes = sizeof(struct options),
    .args = {.command = "prony answer",
             .usage = "NETWORK [options]",
             .summary =
                 "Says how to run a network on this machine: unit, batch, threads, how far that "
                 "is from\nwhat the hardware allows, and what to try next. Measures what the "
                 "store does not say yet.",
             .examples = "  prony answer large\n"
                         "  prony answer lenet --phase inference --minutes 5\n"
                         "  prony answer large --minutes 0 --store results.db\n",
             .lists = {{rows, 0}},
             .least = 1,
             .most = 1},
};
