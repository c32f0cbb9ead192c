/* bench_output.c: see bench_output.h. */
#include "cli/bench_output.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/tests_table.h"
#ifdef PRONY_HAVE_STORE
#include "store/store.h"
#endif

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const size_t FILE_MOST = (size_t)1 << 30;

static enum status output_print(struct bench_output *output, const char *line,
                                const struct record *record)
{
    struct text row = {0};
    enum status status = STATUS_OK;

    switch (output->style) {
    case OUTPUT_JSON: printf("%s\n", line); break;
    case OUTPUT_ROWS:
        if (record->kind != RECORD_RESULT)
            break;
        bench_table_row(&output->rows, record, &row);
        fputs(text_of(&row), stdout);
        status = text_done(&row);
        text_free(&row);
        break;
    case OUTPUT_TABLE:
    case OUTPUT_TESTS:
        text_printf(&output->kept, "%s\n", line);
        status = text_done(&output->kept);
        break;
    }
    if (status == STATUS_OK && fflush(stdout) != 0)
        FAIL(STATUS_IO, "cannot write to standard output");
    return status;
}

static enum status output_write(void *context, const char *line, const struct record *record)
{
    struct bench_output *output = context;

    if (output->file)
        TRY(file_append_line(output->file, line));
    if (output->store.write)
        TRY(output->store.write(output->store.context, line, record));
    return output_print(output, line, record);
}

struct sink bench_output_sink(struct bench_output *output)
{
    return (struct sink){output_write, output};
}

void bench_output_flags(struct output_flags *flags, struct arg list[OUTPUT_FLAGS])
{
    list[0] = (struct arg){.name = "format",
                           .kind = ARG_TEXT,
                           .value = &flags->format,
                           .meaning = "FORMAT",
                           .help = "table, json, csv, md or tests (default table)"};
    list[1] = (struct arg){.name = "out",
                           .kind = ARG_TEXT,
                           .value = &flags->file,
                           .meaning = "FILE.jsonl",
                           .help = "also append the records to this file"};
    list[2] = (struct arg){.name = "store",
                           .kind = ARG_TEXT,
                           .value = &flags->store,
                           .meaning = "FILE",
                           .help = "also file the records in this store"};
}

enum status bench_output_open(struct bench_output *output, const struct output_flags *flags)
{
    const char *format = flags->format ? flags->format : "table";
    if (strcmp(format, "json") == 0)
        output->style = OUTPUT_JSON;
    else if (strcmp(format, "table") == 0)
        output->style = OUTPUT_ROWS;
    else if (strcmp(format, "tests") == 0)
        output->style = OUTPUT_TESTS;
    else if (table_format_parse(format, &output->format))
        output->style = OUTPUT_TABLE;
    else
        FAIL(STATUS_INPUT, "--format: found \"%s\", expected table, json, csv, md or tests",
             format);
    output->file = flags->file;
    if (!flags->store)
        return STATUS_OK;
#ifdef PRONY_HAVE_STORE
    TRY(store_open(flags->store, STORE_SHIPPED, &output->opened));
    clock_stamp(output->started);
    output->store = store_sink(output->opened);
    return STATUS_OK;
#else
    FAIL(STATUS_UNSUPPORTED, "--store: this prony was built without the store (it needs sqlite3); "
                             "--out FILE.jsonl keeps the records");
#endif
}

void bench_output_close(struct bench_output *output)
{
#ifdef PRONY_HAVE_STORE
    if (output->opened)
        store_run_end(output->opened, getpid());
    store_close(output->opened);
#endif
    text_free(&output->kept);
}

void bench_output_tell(struct bench_output *output, const struct point *next, int done, int total,
                       double left_s)
{
#ifdef PRONY_HAVE_STORE
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
#else
    (void)output, (void)next, (void)done, (void)total, (void)left_s;
#endif
}

/* For what needs all rows to know its columns. */
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

enum status bench_output_finish(struct bench_output *output)
{
    if (output->style == OUTPUT_JSON || output->style == OUTPUT_ROWS)
        return STATUS_OK;
    struct collection all = {0};
    struct text text = {0};
    enum status status =
        record_read_all("bench", text_of(&output->kept), output->kept.length, collect_row, &all);
    if (status == STATUS_OK)
        status = output->style == OUTPUT_TESTS
                     ? tests_table_print(all.rows, all.count, &text)
                     : table_print(all.rows, all.count, output->format, &text);
    if (status == STATUS_OK)
        fputs(text_of(&text), stdout);
    text_free(&text);
    mem_free(all.rows);
    arena_free(&all.arena);
    return status;
}

static enum status add_done(void *context, const struct record *record, const char *line,
                            size_t length)
{
    (void)line;
    (void)length;
    return done_add(context, record);
}

#ifdef PRONY_HAVE_STORE
static enum status add_stored(void *context, int64_t id, const char *line, size_t length)
{
    (void)id;
    return record_read_all("store", line, length, add_done, context);
}
#endif

enum status bench_output_done(const struct bench_output *output, struct done *done)
{
    struct text text = {0};
    enum status status = STATUS_OK;

    if (output->file && file_exists(output->file)) {
        status = file_read(output->file, FILE_MOST, &text);
        if (status == STATUS_OK)
            status = record_read_all(output->file, text_of(&text), text.length, add_done, done);
        text_free(&text);
    }
#ifdef PRONY_HAVE_STORE
    if (status == STATUS_OK && output->opened)
        status = store_export(output->opened, NULL, add_stored, done);
#endif
    return status;
}
