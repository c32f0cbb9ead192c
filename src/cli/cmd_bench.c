/* cmd_bench.c: prony bench: flags to a sweep, records to the screen, a file and the store. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench/sweep.h"
#include "cli/bench_table.h"
#include "cli/commands.h"
#include "cli/peer_folder.h"
#include "record/table.h"
#ifdef PRONY_HAVE_STORE
#include "store/store.h"
#endif

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where records go. */
struct output {
    bool json, table; /* else csv or md, printed at the end from the lines kept */
    enum table_format format;
    struct bench_table rows;
    const char *file;  /* or NULL */
    struct sink store; /* write is NULL without one */
    struct text kept;
};

static enum status output_write(void *context, const char *line, const struct record *record)
{
    struct output *output = context;

    if (output->file)
        TRY(file_append_line(output->file, line));
    if (output->store.write)
        TRY(output->store.write(output->store.context, line, record));
    if (output->json) {
        printf("%s\n", line);
    } else if (output->table && record->kind == RECORD_RESULT) {
        struct text row = {0};
        bench_table_row(&output->rows, record, &row);
        fputs(text_of(&row), stdout);
        enum status status = text_done(&row);
        text_free(&row);
        TRY(status);
    } else {
        text_printf(&output->kept, "%s\n", line);
        TRY(text_done(&output->kept));
    }
    if (fflush(stdout) != 0)
        FAIL(STATUS_IO, "cannot write to standard output");
    return STATUS_OK;
}

/* For csv and md, which need all rows to know their columns. */
struct collection {
    struct arena arena;
    struct table_row *rows;
    size_t count, room;
};

static enum status collect_row(void *context, const struct record *record, const char *line,
                               size_t length)
{
    struct collection *all = context;
    if (record->kind != RECORD_RESULT)
        return STATUS_OK;
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        struct table_row *grown = mem_grow(all->rows, room, sizeof *grown);
        NEED(grown);
        all->rows = grown;
        all->room = room;
    }
    struct record *kept = arena_alloc(&all->arena, sizeof *kept);
    NEED(kept);
    TRY(record_read(&all->arena, "bench", 0, line, length, kept));
    all->rows[all->count++] = (struct table_row){.record = kept};
    return STATUS_OK;
}

static enum status output_finish(struct output *output)
{
    if (output->json || output->table)
        return STATUS_OK;
    struct collection all = {0};
    struct text text = {0};
    enum status status =
        record_read_all("bench", text_of(&output->kept), output->kept.length, collect_row, &all);
    if (status == STATUS_OK)
        status = table_print(all.rows, all.count, output->format, &text);
    if (status == STATUS_OK)
        fputs(text_of(&text), stdout);
    text_free(&text);
    mem_free(all.rows);
    arena_free(&all.arena);
    return status;
}

static void show_progress(void *context, const struct point *next, int done, int total)
{
    (void)context;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K[%d/%d] %s, %s, batch %lld …\r", done + 1, total, next->model,
                next->phase, (long long)next->batch); /* the next row writes over it */
}

/* What was asked for on the command line. */
struct request {
    const char *axis_text[AXIS_COUNT];
    const char *format, *out, *store;
    double seconds;
    struct arg list[AXIS_COUNT + 4];
    size_t count;
};

static void request_flags(struct request *request)
{
    for (int i = 0; i < AXIS_COUNT; i++)
        if (i != AXIS_model && !(axes[i].where & AXIS_FOUND))
            request->list[request->count++] = (struct arg){.name = axes[i].key,
                                                           .kind = ARG_TEXT,
                                                           .value = &request->axis_text[i],
                                                           .meaning = "A,B,…",
                                                           .help = axes[i].help};
    request->list[request->count++] =
        (struct arg){"seconds",
                     ARG_REAL,
                     &request->seconds,
                     "S",
                     "at most this long for each configuration (default 3)",
                     0.01,
                     86400,
                     false};
    request->list[request->count++] = (struct arg){
        "format", ARG_TEXT, &request->format, "FORMAT", "table, json, csv or md (default table)", 0,
        0,        false};
    request->list[request->count++] = (struct arg){
        "out", ARG_TEXT, &request->out, "FILE.jsonl", "also append the records to this file",
        0,     0,        false};
    request->list[request->count++] = (struct arg){
        "store", ARG_TEXT, &request->store, "FILE", "also file the records in this store", 0,
        0,       false};
}

static enum status request_output(const struct request *request, struct output *output)
{
    output->json = strcmp(request->format, "json") == 0;
    output->table = strcmp(request->format, "table") == 0;
    if (!output->json && !table_format_parse(request->format, &output->format))
        FAIL(STATUS_INPUT, "--format: found \"%s\", expected table, json, csv or md",
             request->format);
    output->file = request->out;
    return STATUS_OK;
}

static enum status request_sweep(const struct request *request, const char *const *models,
                                 int model_count, struct arena *arena, struct sweep *sweep)
{
    for (int i = 0; i < AXIS_COUNT; i++)
        if (request->axis_text[i])
            TRY(sweep_split(&axes[i], request->axis_text[i], arena, &sweep->lists[i]));
    sweep->lists[AXIS_model] = (struct sweep_list){models, model_count};
    return STATUS_OK;
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

static enum status run_sweep(const struct cli *cli, const struct request *request,
                             const struct args *args, struct output *output, struct arena *arena)
{
    struct sweep sweep = {.progress = show_progress};
    struct bench bench = {
        .registry = cli->registry,
        .measure = {.target = 0.01,
                    .limit_ns = (uint64_t)(request->seconds * 1e9),
                    .stopped = cli_interrupted},
        .sink = {output_write, output},
    };
    TRY(request_sweep(request, args->positional, args->positional_count, arena, &sweep));
    TRY(cli_peers(cli, arena, &bench.peers));
    TRY(sweep_check(&sweep, &bench));
    facts_find(&bench.facts);
    TRY(facts_trees(&bench.facts, arena, &bench.machine, &bench.software));
    if (strcmp(bench.facts.build, "release") != 0)
        log_warning("this is a %s build: its times say little", bench.facts.build);
    bench_table_start(&output->rows, &sweep);

    enum status status = sweep_run(&sweep, &bench);
    if (status == STATUS_INTERRUPTED)
        log_warning("stopped: what was measured so far is kept");
    else if (status != STATUS_OK)
        return status;
    TRY(write_machine(&bench, arena));
    TRY(output_finish(output));
    TRY(status);
    if (bench.failed)
        FAIL(STATUS_WRONG, "%d of %d configurations failed", bench.failed,
             bench.ok + bench.skipped + bench.failed);
    return STATUS_OK;
}

static enum status run_stored(const struct cli *cli, const struct request *request,
                              const struct args *args, struct output *output, struct arena *arena)
{
    if (!request->store)
        return run_sweep(cli, request, args, output, arena);
#ifdef PRONY_HAVE_STORE
    struct store *store;
    TRY(store_open(request->store, STORE_WRITE, &store));
    output->store = store_sink(store);
    enum status status = run_sweep(cli, request, args, output, arena);
    store_close(store);
    return status;
#else
    FAIL(STATUS_UNSUPPORTED, "--store: this prony was built without the store (it needs sqlite3); "
                             "--out FILE.jsonl keeps the records");
#endif
}

enum status cmd_bench(struct cli *cli, int argc, const char *const *argv)
{
    struct request request = {.format = "table", .seconds = 3};
    struct output output = {0};
    struct arena arena = {0};

    request_flags(&request);
    struct args args = {
        .command = "prony bench",
        .usage = "NETWORK… [options]",
        .summary =
            "Measures how fast networks train and predict. Every axis takes a list (1,2,4); "
            "the product is run,\nand who computes (framework, backend, threads) takes turns.",
        .examples = "  prony bench small\n"
                    "  prony bench small large --phase training,inference --batch 1,3,10\n"
                    "  prony bench small --framework prony,python-list,numpy --out results.jsonl\n",
        .list = request.list,
        .count = request.count,
        .least = 1,
        .most = -1,
        .positional = cli->positional};
    enum status status = cli_args(&args, argc, argv);
    if (status == STATUS_OK && !args.help) {
        status = request_output(&request, &output);
        if (status == STATUS_OK)
            status = run_stored(cli, &request, &args, &output, &arena);
    }
    text_free(&output.kept);
    arena_free(&arena);
    return status;
}
