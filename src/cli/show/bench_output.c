/* bench_output.c: see bench_output.h. */
#include "cli/show/bench_output.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench/sweep/crossover.h"
#include "cli/commands.h"
#include "cli/explain/explained.h"
#include "cli/gate.h"
#include "cli/screen.h"
#include "cli/show/precision_sheet.h"
#include "record/tables/ingestion_table.h"
#include "record/tables/tests_table.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const size_t FILE_MOST = (size_t)1 << 30;

/* For what needs all rows to know its columns. */
static enum status output_keep(struct bench_output *output, const struct record *record)
{
    struct record *kept;
    if (record->kind != RECORD_RESULT)
        return STATUS_OK;
    if (output->kept_count == output->kept_room) {
        size_t room = output->kept_room ? 2 * output->kept_room : 64;
        struct table_row *grown = mem_grow(output->kept, room, sizeof *grown);
        NEED(grown);
        output->kept = grown;
        output->kept_room = room;
    }
    NEED(kept = arena_alloc(&output->arena, sizeof *kept));
    TRY(record_copy(&output->arena, record, kept));
    output->kept[output->kept_count++] = (struct table_row){.record = kept};
    return STATUS_OK;
}

static enum status output_print(struct bench_output *output, const char *line,
                                const struct record *record)
{
    struct text row = {0};
    enum status status = STATUS_OK;

    switch (output->style) {
    case OUTPUT_JSON: printf("%s\n", line); break;
    case OUTPUT_ROWS:
        if (record->kind == RECORD_MACHINE && record->calibration)
            NEED(output->calibration = json_copy(&output->arena, record->calibration));
        if (record->kind != RECORD_RESULT || record->absent) /* the bench said it once */
            break;
        status = bench_table_row(&output->rows, record, &row);
        fputs(text_of(&row), stdout);
        text_free(&row);
        if (status == STATUS_OK && output->sheet)
            status = output_keep(output, record);
        break;
    case OUTPUT_NOTHING: break;
    case OUTPUT_KEPT:
    case OUTPUT_TABLE:
    case OUTPUT_TESTS:
    case OUTPUT_INGESTION:
    case OUTPUT_CROSSOVER:
    case OUTPUT_CROSSOVER_WIDTHS: status = output_keep(output, record); break;
    }
    if (status == STATUS_OK)
        status = cli_flush();
    /* a reader that had enough does not end what is also filed */
    return screen_reader_left() && (output->file || output->store.write) ? STATUS_OK : status;
}

/* To every place, whatever happens at one of them: a full disk must not lose what can be printed.
 * The first failure is told. What is filed already is not filed again. */
static enum status output_line(struct bench_output *output, const char *line,
                               const struct record *record, bool filed)
{
    enum status status = output->file && !filed ? file_append_line(output->file, line) : STATUS_OK;
    struct error first = *status_last();
    if (output->store.write) {
        enum status stored = output->store.write(output->store.context, line, record);
        if (status == STATUS_OK && stored != STATUS_OK)
            first = *status_last();
        status = status == STATUS_OK ? stored : status;
    }
    enum status printed = output_print(output, line, record);
    if (status == STATUS_OK)
        return printed;
    *status_last() = first;
    return status;
}

/* What need not be written again: a program whose network was, or a machine. */
struct line_seen {
    const char *key;
    bool filed, told; /* in the file when it was opened; in this run */
    struct line_seen *next;
};

static enum status output_see(struct bench_output *output, const char *key, struct line_seen **out)
{
    struct line_seen *seen = output->seen;
    while (seen && strcmp(seen->key, key) != 0)
        seen = seen->next;
    if (!seen) {
        NEED(seen = arena_alloc(&output->arena, sizeof *seen));
        NEED(seen->key = arena_text(&output->arena, key));
        seen->next = output->seen;
        output->seen = seen;
    }
    *out = seen;
    return STATUS_OK;
}

/* The same machine, with the same software and ceilings: how busy it was at some time is not what
 * the line is for. */
static enum status output_see_machine(struct bench_output *output, const struct record *record,
                                      struct line_seen **out)
{
    const struct record lasting = {
        .kind = RECORD_MACHINE, .software = record->software, .calibration = record->calibration};
    struct text key = {0};
    const struct json *gpu = json_get(record->machine, "gpu");
    text_printf(&key, "%s\n%s\n%lld\n%s\n%s\n", json_text(record->machine, "server", ""),
                json_text(record->machine, "cpu", ""),
                (long long)json_int(record->machine, "cores", 0), json_text(gpu, "name", ""),
                json_text(gpu, "driver", ""));
    record_write(&lasting, &key);
    enum status status = text_done(&key);
    if (status == STATUS_OK)
        status = output_see(output, text_of(&key), out);
    text_free(&key);
    return status;
}

/* Before the first result of a program, the line that explains it. */
static enum status output_network(struct bench_output *output, const struct record *record)
{
    struct text line = {0};
    const struct record network = {.kind = RECORD_NETWORK};
    struct line_seen *seen;

    if (record->kind != RECORD_RESULT || !record->program)
        return STATUS_OK;
    TRY(output_see(output, record->program, &seen));
    if (seen->told)
        return STATUS_OK;
    seen->told = true;
    enum status status = explained_line(&record->point, &line);
    if (status == STATUS_OK && line.length > RECORD_BYTES) {
        log_warning("%s: its program takes %zu bytes as a record, at most %d are kept: the guide "
                    "cannot show it",
                    record->point.model, line.length, RECORD_BYTES);
        text_free(&line);
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        line.data[--line.length] = '\0'; /* without the newline */
        status = output_line(output, text_of(&line), &network, seen->filed);
    }
    text_free(&line);
    return status;
}

static enum status output_write(void *context, const char *line, const struct record *record)
{
    struct bench_output *output = context;
    struct line_seen *machine = NULL;
    if (output->gate && record->against.other)
        gate_count(output->gate, &record->against.found,
                   record->against.disturbed ? record->against.disturbed : "");
    enum status told = record->kind == RECORD_MACHINE ? output_see_machine(output, record, &machine)
                                                      : output_network(output, record);
    enum status status = output_line(output, line, record, machine && machine->filed);
    return status == STATUS_OK ? told : status;
}

static bool output_crosses(const struct bench_output *output)
{
    return output->style == OUTPUT_CROSSOVER || output->style == OUTPUT_CROSSOVER_WIDTHS;
}

bool bench_output_is_plain(const struct bench_output *output)
{
    return (output->style == OUTPUT_ROWS || output->style == OUTPUT_KEPT ||
            output_crosses(output)) &&
           !output->file && !output->store.write;
}

struct sink bench_output_sink(struct bench_output *output)
{
    return (struct sink){output_write, output};
}

const struct arg output_flags[] = {
    {ARG(struct output_flags, format), "FORMAT",
     "table, json, csv, md, tests or ingestion (default table)"},
    {ARG_NAMED("out", struct output_flags, file), "FILE.jsonl",
     "also append the records to this file"},
    {ARG(struct output_flags, store), "FILE", "also file the records in this store"},
    ARG_END,
};

enum status bench_output_open(struct bench_output *output, const struct output_flags *flags)
{
    const char *format = flags->format ? flags->format : "table";
    if (strcmp(format, "json") == 0)
        output->style = OUTPUT_JSON;
    else if (strcmp(format, "table") == 0)
        output->style = OUTPUT_ROWS;
    else if (strcmp(format, "tests") == 0)
        output->style = OUTPUT_TESTS;
    else if (strcmp(format, "ingestion") == 0)
        output->style = OUTPUT_INGESTION;
    else if (table_format_parse(format, &output->format))
        output->style = OUTPUT_TABLE;
    else
        FAIL(STATUS_INPUT,
             "--format: found \"%s\", expected table, json, csv, md, tests or ingestion", format);
    output->file = flags->file;
    if (flags->file) /* not after an hour's work */
        TRY(file_try_append(flags->file));
    return flags->store ? bench_output_use(output, flags->store) : STATUS_OK;
}

enum status bench_output_use(struct bench_output *output, const char *store)
{
    enum status status = store_open(store, STORE_SHIPPED, &output->opened);
    if (status == STATUS_UNSUPPORTED)
        return status_prefix(status, "--store cannot be used here, --out FILE.jsonl can");
    TRY(status);
    clock_stamp(output->started);
    output->store = store_sink(output->opened);
    return STATUS_OK;
}

void bench_output_close(struct bench_output *output)
{
    if (output->opened) {
        store_end_waiting(output->opened);
        store_run_end(output->opened, getpid());
    }
    store_close(output->opened);
    bench_table_free(&output->rows);
    mem_free(output->kept);
    arena_free(&output->arena);
}

void bench_output_tell(struct bench_output *output, const struct point *next, int done, int total,
                       double left_s)
{
    struct text label = {0};
    char server[POINT_TEXT] = "";
    if (!output->opened)
        return;
    gethostname(server, sizeof server - 1);
    point_label(next, &label);
    struct store_running running = {.process = getpid(),
                                    .server = server,
                                    .started = output->started,
                                    .done = done,
                                    .total = total,
                                    .current = text_of(&label),
                                    .left_s = left_s};
    if (store_run(output->opened, &running) != STATUS_OK)
        log_warning("%s", status_message()); /* what was measured matters more */
    text_free(&label);
}

/* What a file or store holds already. */
struct held {
    struct bench_output *output;
    struct done *done; /* or NULL */
    struct pace *pace;
    bool in_file;
    char server[POINT_TEXT]; /* this machine */
};

static enum status output_table(const struct bench_output *output, struct text *out)
{
    const struct table_row *rows = output->kept;
    const size_t count = output->kept_count;
    if (output->style == OUTPUT_TESTS)
        return tests_table_print(rows, count, out);
    if (output->style == OUTPUT_INGESTION)
        return ingestion_table_print(rows, count, out);
    if (output_crosses(output))
        return crossover_print(rows, count, output->style == OUTPUT_CROSSOVER_WIDTHS, out);
    return table_print(rows, count, output->format, out);
}

enum status bench_output_finish(struct bench_output *output)
{
    if (output->style == OUTPUT_JSON || output->style == OUTPUT_NOTHING ||
        output->style == OUTPUT_KEPT)
        return STATUS_OK;
    struct text text = {0};
    enum status status =
        output->style == OUTPUT_ROWS
            ? bench_table_end(&output->rows, output->calibration, output->command, &text)
            : output_table(output, &text);
    if (status == STATUS_OK && output->style == OUTPUT_ROWS && output->sheet)
        status = precision_sheet_print(output->kept, output->kept_count, &text);
    if (status == STATUS_OK)
        fputs(text_of(&text), stdout);
    text_free(&text);
    return status;
}

static enum status add_done(void *context, const struct record *record, const char *line,
                            size_t length)
{
    struct held *held = context;
    struct line_seen *seen = NULL;
    (void)line;
    (void)length;
    if (record->kind == RECORD_NETWORK)
        TRY(output_see(held->output, json_text(record->network, "program", ""), &seen));
    if (record->kind == RECORD_MACHINE)
        TRY(output_see_machine(held->output, record, &seen));
    if (seen && held->in_file)
        seen->filed = true;
    pace_learn(held->pace, record, held->server);
    return held->done ? done_add(held->done, record) : STATUS_OK;
}

static enum status add_stored(void *context, int64_t id, const char *line, size_t length)
{
    (void)id;
    return record_read_all("store", line, length, add_done, context);
}

enum status bench_output_done(struct bench_output *output, struct done *done, struct pace *pace)
{
    struct held held = {output, done, pace, true, ""};
    struct text text = {0};
    enum status status = STATUS_OK;

    gethostname(held.server, sizeof held.server - 1);
    if (output->file && file_exists(output->file)) {
        status = file_read(output->file, FILE_MOST, &text);
        if (!done && status != STATUS_OK && status != STATUS_MEMORY)
            status = STATUS_OK; /* a device, or too long: a line can be added */
        else if (status == STATUS_OK)
            status = record_read_whole(output->file, text_of(&text), text.length, add_done, &held);
        if (status == STATUS_OK && output->opened)
            status = store_catch_up(output->opened, output->file, &text);
        if (status == STATUS_INPUT)
            status = status_prefix(status, "--out: found a file of another kind, expected records");
        text_free(&text);
    }
    held.in_file = false;
    if (status == STATUS_OK && output->opened && done)
        status = store_export(output->opened, NULL, add_stored, &held);
    return status;
}
