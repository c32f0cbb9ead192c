/* cmd_store.c: prony store: puts records into the results store and gets them out. */
#include "cli/commands.h"

#include "base/file.h"
#include "base/memory.h"
#include "cli/screen.h"
#include "cli/show/record_list.h"
#include "cli/store_file.h"
#include "record/import.h"
#include "record/tables/table.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

struct options {
    const char *verb;
    const char *const *rest; /* what follows the verb */
    int rest_count;
    const char *store, *where, *format;
    int64_t limit;
    bool empty, repair;
};

static const size_t file_most = (size_t)1 << 30;

static enum status print_text(struct text *text)
{
    TRY(text_done(text));
    if (fwrite(text_of(text), 1, text->length, stdout) != text->length)
        FAIL(STATUS_IO, "cannot write to standard output");
    return STATUS_OK;
}

static enum status print_line(void *context, int64_t id, const char *line, size_t length)
{
    (void)context;
    (void)id;
    if (fwrite(line, 1, length, stdout) != length || putchar('\n') == EOF)
        FAIL(STATUS_IO, "cannot write to standard output");
    return STATUS_OK;
}

struct adding {
    struct store *store;
    const char *path; /* of the file that is added */
    uint64_t added, known;
};

static enum status add_record(void *context, const struct record *record, const char *line,
                              size_t length)
{
    struct adding *adding = context;
    bool added;
    TRY(store_add(adding->store, line, length, record, NULL, &added));
    ++*(added ? &adding->added : &adding->known);
    return STATUS_OK;
}

static enum status add_foreign(void *context, const struct record *record, const char *line,
                               size_t length)
{
    struct adding *adding = context;
    enum status status = record_plausible(record);
    if (status != STATUS_OK)
        return status_prefix(status, "%s: record %llu", adding->path,
                             (unsigned long long)(adding->added + adding->known + 1));
    return add_record(context, record, line, length);
}

/* All of a file or nothing; but what a killed process left unfinished is no part of it. */
static enum status add_file(struct store *store, const char *path)
{
    struct text text = {0}, imported = {0};
    struct adding adding = {.store = store, .path = path};
    bool foreign;
    enum status status;
    TRY_OR(done, file_read(path, file_most, &text));
    TRY_OR(done, import_lines(path, text_of(&text), text.length, &foreign, &imported));
    const struct text *lines = foreign ? &imported : &text;
    TRY_OR(done, store_begin(store));
    TRY_OR(done, record_read_whole(path, text_of(lines), lines->length, add_foreign, &adding));
    TRY_OR(done, store_commit(store));
    printf("%s: %llu added, %llu there already\n", path, (unsigned long long)adding.added,
           (unsigned long long)adding.known);
done:
    store_rollback(store);
    text_free(&text);
    text_free(&imported);
    return status;
}

static enum status run_add(struct store *store, const struct options *options)
{
    if (options->rest_count == 0)
        FAIL(STATUS_INPUT,
             "prony store add: found no file, expected FILE… or - for standard input");
    for (int i = 0; i < options->rest_count; i++)
        TRY(add_file(store, options->rest[i]));
    return STATUS_OK;
}

/* Rows for a table. What is kept of a record has no samples: a table shows none, and they are most
 * of it. */
struct listing {
    struct arena arena;
    struct table_row *rows;
    size_t count, capacity;
};

static enum status keep_record(struct listing *listing, int64_t id, const struct record *whole)
{
    struct record *record;
    struct record small = *whole;
    small.sample_count = 0;
    NEED(record = arena_alloc(&listing->arena, sizeof *record));
    TRY(record_copy(&listing->arena, &small, record));
    listing->rows[listing->count++] = (struct table_row){id, record};
    return STATUS_OK;
}

static enum status list_record(void *context, int64_t id, const char *line, size_t length)
{
    struct listing *listing = context;
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
        struct table_row *grown;
        NEED(grown = mem_grow(listing->rows, capacity, sizeof *grown));
        listing->rows = grown;
        listing->capacity = capacity;
    }
    struct arena arena = {0};
    struct record record;
    enum status status = record_read(&arena, "store", (long)id, line, length, &record);
    if (status == STATUS_OK)
        status = keep_record(listing, id, &record);
    arena_free(&arena);
    return status;
}

static enum status print_table(struct store *store, struct store_where where, int64_t limit,
                               enum table_format format)
{
    struct listing listing = {0};
    struct text out = {0};
    int64_t all = 0;
    enum status status;
    TRY_OR(done, store_count(store, where, &all));
    TRY_OR(done, store_list(store, where, limit, 0, list_record, &listing));
    TRY_OR(done, format == TABLE_ALIGNED ? record_list_print(listing.rows, listing.count, &out)
                                         : table_print(listing.rows, listing.count, format, &out));
    TRY_OR(done, print_text(&out));
    if ((int64_t)listing.count < all)
        fprintf(stderr, "the newest %zu of %lld; --limit 0 shows all\n", listing.count,
                (long long)all);
    if (all == 0)
        fprintf(stderr, "no record\n");
done:
    arena_free(&listing.arena);
    mem_free(listing.rows);
    text_free(&out);
    return status;
}

static enum status print_csv(void *context, int64_t id, const char *line, size_t length)
{
    bool *heading = context;
    struct arena arena = {0};
    struct text out = {0};
    struct record record;
    enum status status;
    TRY_OR(done, record_read(&arena, "store", (long)id, line, length, &record));
    TRY_OR(done, table_csv(&(struct table_row){id, &record}, true, *heading, &out));
    TRY_OR(done, print_text(&out));
    *heading = false;
done:
    arena_free(&arena);
    text_free(&out);
    return status;
}

static enum status print_results(struct store *store, struct store_where where,
                                 const struct options *options)
{
    enum table_format format;
    bool heading = true;
    if (text_equal(options->format, "json")) {
        screen_exact();
        return store_list(store, where, options->limit, 0, print_line, NULL);
    }
    if (text_equal(options->format, "csv"))
        return store_list(store, where, options->limit, 0, print_csv, &heading);
    if (!table_format_parse(options->format, &format))
        FAIL(STATUS_INPUT, "--format: found \"%s\", expected table, csv, md or json",
             options->format);
    return print_table(store, where, options->limit, format);
}

static enum status run_list(struct store *store, const struct options *options)
{
    struct arena arena = {0};
    struct store_where where;
    enum status status = store_where_parse(&arena, options->where, &where);
    if (status == STATUS_OK)
        status = print_results(store, where, options);
    arena_free(&arena);
    return status;
}

static enum status run_show(struct store *store, const struct options *options)
{
    struct text line = {0};
    int64_t id;
    if (options->rest_count != 1 || !text_to_int(options->rest[0], &id))
        FAIL(STATUS_INPUT, "prony store show: expected one number, as \"prony store list\" shows");
    enum status status = store_get(store, id, &line);
    text_add_char(&line, '\n');
    screen_exact();
    if (status == STATUS_OK)
        status = print_text(&line);
    text_free(&line);
    return status;
}

/* Everything: lines of every kind as they came in, or the results as CSV. */
static enum status run_export(struct store *store, const struct options *options)
{
    if (text_equal(options->format, "json") && !options->where[0]) {
        screen_exact();
        return store_export(store, NULL, print_line, NULL);
    }
    return run_list(store, options);
}

/* Numbers on the command line, or all that --where leaves: at once, or none. */
struct removal {
    struct arena arena;
    int64_t *ids;
    size_t count, room;
};

static enum status note_id(void *context, int64_t id, const char *line, size_t length)
{
    struct removal *removal = context;
    (void)line, (void)length;
    if (removal->count == removal->room) {
        size_t room = removal->room ? 2 * removal->room : 64;
        int64_t *grown = mem_grow(removal->ids, room, sizeof *grown);
        NEED(grown);
        removal->ids = grown;
        removal->room = room;
    }
    removal->ids[removal->count++] = id;
    return STATUS_OK;
}

static enum status choose_records(struct store *store, const struct options *options,
                                  struct removal *removal)
{
    struct store_where where;
    if ((options->rest_count == 0) == (options->where[0] == '\0'))
        FAIL(STATUS_INPUT, "prony store remove: expected numbers, as \"prony store list\" shows "
                           "them, or --where");
    for (int i = 0; i < options->rest_count; i++) {
        int64_t id;
        if (!text_to_int(options->rest[i], &id))
            FAIL(STATUS_INPUT, "prony store remove: found \"%s\", expected a number",
                 options->rest[i]);
        TRY(note_id(removal, id, NULL, 0));
    }
    if (options->rest_count)
        return STATUS_OK;
    TRY(store_where_parse(&removal->arena, options->where, &where));
    return store_list(store, where, 0, 0, note_id, removal);
}

static enum status run_remove(struct store *store, const struct options *options)
{
    struct removal removal = {0};
    enum status status;
    TRY_OR(done, choose_records(store, options, &removal));
    TRY_OR(done, store_begin(store));
    for (size_t i = 0; i < removal.count; i++)
        TRY_OR(done, store_remove(store, removal.ids[i]));
    TRY_OR(done, store_commit(store));
    printf("%zu removed\n", removal.count);
done:
    store_rollback(store);
    mem_free(removal.ids);
    arena_free(&removal.arena);
    return status;
}

static enum status merge_line(void *context, int64_t id, const char *line, size_t length)
{
    (void)id;
    return record_read_all("store", line, length, add_record, context);
}

/* All of another store or nothing. */
static enum status merge_store(struct store *store, const char *path)
{
    struct adding adding = {.store = store};
    struct store *other = NULL;
    enum status status;
    TRY_OR(done, store_open(path, STORE_READ, &other));
    TRY_OR(done, store_begin(store));
    TRY_OR(done, store_export(other, NULL, merge_line, &adding));
    TRY_OR(done, store_commit(store));
    printf("%s: %llu added, %llu there already\n", path, (unsigned long long)adding.added,
           (unsigned long long)adding.known);
done:
    store_rollback(store);
    store_close(other);
    return status;
}

static enum status run_merge(struct store *store, const struct options *options)
{
    if (options->rest_count == 0)
        FAIL(STATUS_INPUT, "prony store merge: found no file, expected other stores");
    for (int i = 0; i < options->rest_count; i++)
        TRY(merge_store(store, options->rest[i]));
    return STATUS_OK;
}

static enum status print_problem(void *context, const char *problem)
{
    ++*(int64_t *)context;
    printf("%s\n", problem);
    return STATUS_OK;
}

static enum status run_check(struct store *store, const struct options *options)
{
    int64_t problems = 0, lines;
    if (options->repair)
        TRY(store_repair(store));
    TRY(store_check(store, print_problem, &problems, &lines));
    if (problems)
        FAIL(STATUS_WRONG, "found %lld problem%s in %lld records; %s", (long long)problems,
             problems == 1 ? "" : "s", (long long)lines,
             options->repair ? "keep the readable records: prony store export > kept.jsonl"
                             : "prony store check --repair rebuilds the columns from the records");
    printf("%lld records, all whole\n", (long long)lines);
    return STATUS_OK;
}

static enum status run_vacuum(struct store *store, const struct options *options)
{
    (void)options;
    return store_vacuum(store);
}

static enum status run_create(struct store *store, const struct options *options)
{
    (void)store, (void)options; /* opening made it */
    return STATUS_OK;
}

static const struct {
    const char *name;
    enum status (*run)(struct store *store, const struct options *options);
    enum store_access access;
    bool takes_rest;
    const char *format; /* unless --format says otherwise */
    int64_t limit;      /* unless --limit does */
} verbs[] = {
    {"add", run_add, STORE_SHIPPED, true, "", 0},
    {"check", run_check, STORE_READ, false, "", 0},
    {"create", run_create, STORE_SHIPPED, false, "", 0},
    {"export", run_export, STORE_READ, false, "json", 0},
    {"list", run_list, STORE_READ, false, "table", 50},
    {"merge", run_merge, STORE_SHIPPED, true, "", 0},
    {"remove", run_remove, STORE_CHANGE, true, "", 0},
    {"show", run_show, STORE_READ, true, "", 0},
    {"vacuum", run_vacuum, STORE_CHANGE, false, "", 0},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static enum status unknown_verb(const char *verb)
{
    struct text all = {0};
    for (size_t i = 0; i < VERBS; i++)
        text_printf(&all, "%s%s", i == 0 ? "" : i + 1 < VERBS ? ", " : " or ", verbs[i].name);
    enum status status =
        status_fail(STATUS_INPUT, __FILE__, __LINE__,
                    "found \"%s\" after \"prony store\", expected %s", verb, text_of(&all));
    text_free(&all);
    return status;
}

static enum status run_verb(struct options *options)
{
    size_t verb = 0;
    while (verb < VERBS && strcmp(verbs[verb].name, options->verb) != 0)
        verb++;
    if (verb == VERBS)
        return unknown_verb(options->verb);
    if (options->rest_count && !verbs[verb].takes_rest)
        FAIL(STATUS_INPUT, "found \"%s\" after \"prony store %s\", expected options only",
             options->rest[0], options->verb);
    if (options->repair && strcmp(options->verb, "check") != 0)
        FAIL(STATUS_INPUT, "found --repair after \"prony store %s\", expected it with check",
             options->verb);
    options->format = options->format ? options->format : verbs[verb].format;
    options->limit = options->limit >= 0 ? options->limit : verbs[verb].limit;
    enum store_access access = options->empty    ? STORE_WRITE
                               : options->repair ? STORE_CHANGE
                                                 : verbs[verb].access;
    struct store *store = NULL;
    TRY(store_file_open(options->store, access, &store));
    enum status status = verbs[verb].run(store, options);
    store_close(store);
    return status;
}

static enum status run_store(struct cli *cli, void *given)
{
    struct options *options = given;
    options->verb = cli->found.positional[0];
    options->rest = cli->found.positional + 1;
    options->rest_count = cli->found.count - 1;
    return run_verb(options);
}

#define AT(field) ARG(struct options, field)
static const struct arg rows[] = {
    {CLI_STORE(struct options)},
    {AT(where), "'KEY=VALUE,… …'",
     "only results with these values; keys are the axes, commit, time, status", .otherwise = ""},
    {AT(limit), "N", "the newest N results; 0 for all (list: 50)", ARG_FROM(0, 1e9), "-1"},
    {AT(format), "NAME", "table, csv, md or json (list: table; export: json)"},
    {AT(empty), NULL, "make the store without the results that come with prony"},
    {AT(repair), NULL, "with check: first rebuild the columns from the records"},
    ARG_END,
};

const struct command cmd_store = {
    .summary = "keep records of benchmarks in a file, list and export them",
    .run = run_store,
    .alone = true,
    .bytes = sizeof(struct options),
    .args = {.command = "prony store",
             .usage = "add FILE…|- | list | show ID | export | merge STORE… | remove ID… | check "
                      "| vacuum | create [options]",
             .summary =
                 "Keeps records of benchmarks in one file, which prony query and the guide read.",
             .examples =
                 "  prony store add results.jsonl        # records of a bench; twice does no "
                 "harm\n  prony store add hyperfine.json       # also llama-bench, DLBS logs …\n  "
                 "ssh box prony bench small --format json | prony store add -\n  prony store list "
                 "--where 'model=small batch=1,10' --limit 20\n  prony store show 17               "
                 "   # one record, whole\n  prony store export --format csv > all.csv\n  prony "
                 "store merge colleague.db       # everything another store has\n  prony store "
                 "remove 17 18             # or --where, for all that fit\n  prony store check "
                 "--repair           # rebuild the columns from the records\n  prony store create "
                 "--empty           # without the results that come with prony\n",
             .lists = {{rows, 0}},
             .least = 1,
             .most = -1},
};
