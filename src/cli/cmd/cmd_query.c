/* cmd_query.c: prony query: the charts of the guide, in a terminal. The answer comes from
 * store_chart, as the guide's does; here it is only printed. */
#include "cli/commands.h"

#include "base/arena.h"
#include "cli/show/query_draw.h"
#include "cli/show/query_table.h"
#include "cli/store_file.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

struct options {
    const char *x, *y, *where, *groups, *aggregate, *baseline, *format, *draw, *log, *store;
};

static enum status read_groups(struct arena *arena, const char *list, struct store_query *query)
{
    for (const char *at = list, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, ",");
        if (query->group_count == STORE_GROUPS)
            FAIL(STATUS_INPUT, "--group-by: found \"%s\", expected %d axes at most", list,
                 STORE_GROUPS);
        NEED(query->groups[query->group_count++] = arena_bytes(arena, at, (size_t)(end - at)));
    }
    return STATUS_OK;
}

static enum status read_query(struct arena *arena, const struct options *options,
                              struct store_query *query)
{
    *query = (struct store_query){.x = options->x, .y = options->y, .baseline = options->baseline};
    if (!store_aggregate_parse(options->aggregate, &query->aggregate))
        FAIL(STATUS_INPUT, "--aggregate: found \"%s\", expected best, min, max, median or mean",
             options->aggregate);
    TRY(read_groups(arena, options->groups, query));
    return store_where_parse(arena, options->where, &query->where);
}

static enum status write_chart(const struct options *options, const struct store_query *query,
                               const struct store_chart *chart, struct text *out)
{
    struct json_writer json;
    enum table_format format;
    if (strcmp(options->format, "json") == 0) {
        json_begin(&json, out);
        store_chart_write(query, chart, &json);
        text_add_char(out, '\n');
        return STATUS_OK;
    }
    if (!table_format_parse(options->format, &format))
        FAIL(STATUS_INPUT, "--format: found \"%s\", expected table, csv, md or json",
             options->format);
    TRY(query_table(query, chart, format, out));
    return format == TABLE_ALIGNED ? query_draw(query, chart, options->draw, options->log, out)
                                   : STATUS_OK;
}

static enum status ask(const struct options *options)
{
    struct arena arena = {0};
    struct store *store = NULL;
    struct store_query query;
    struct store_chart chart = {0};
    struct text out = {0};
    enum status status;
    TRY_OR(done, read_query(&arena, options, &query));
    TRY_OR(done, store_file_open(options->store, STORE_READ, &store));
    TRY_OR(done, store_chart(store, &query, &chart));
    TRY_OR(done, write_chart(options, &query, &chart, &out));
    TRY_OR(done, text_done(&out));
    if (fwrite(text_of(&out), 1, out.length, stdout) != out.length)
        TRY_OR(done, status_fail(STATUS_IO, __FILE__, __LINE__, "cannot write to standard output"));
    if (chart.count == 0)
        fprintf(stderr, "no valid result has a figure for %s there\n", options->y);
done:
    store_chart_free(&chart);
    store_close(store);
    text_free(&out);
    arena_free(&arena);
    return status;
}

static enum status run_query(struct cli *cli, void *options)
{
    (void)cli;
    return ask(options);
}

#define AT(field) ARG(struct options, field)
static const struct arg rows[] = {
    {AT(x), "AXIS", "the axis that varies (default: batch)", .otherwise = "batch"},
    {AT(y), "METRIC", "the measure that is shown (default: throughput)", .otherwise = "throughput"},
    {AT(where), "'KEY=VALUE,… …'", "only results with these values", .otherwise = ""},
    {ARG_NAMED("group-by", struct options, groups), "AXIS,…", "a series for each value of these",
     .otherwise = ""},
    {AT(aggregate), "HOW",
     "several results at one point: best, min, max, median or mean (default: median)",
     .otherwise = "median"},
    {AT(baseline), "'KEY=VALUE …'",
     "also show the speed-up against this result; first: each series' first"},
    {AT(format), "NAME", "table, csv, md or json (default: table)", .otherwise = "table"},
    {AT(draw), "HOW", "under the table: bar, line, none or auto (default: auto)",
     .otherwise = "auto"},
    {AT(log), "AXES", "logarithmic axes: x, y, xy, none or auto (default: auto)",
     .otherwise = "auto"},
    {CLI_STORE(struct options)},
    ARG_END,
};

const struct command cmd_query = {
    .summary = "chart stored results: a measure over an axis, in series",
    .run = run_query,
    .bytes = sizeof(struct options),
    .args = {.command = "prony query",
             .usage = "[options]",
             .summary = "Charts stored results: a measure over an axis, a series for each value of "
                        "--group-by.",
             .examples =
                 "  prony query --x batch --y throughput --where 'model=large phase=training' "
                 "--group-by framework\n"
                 "  prony query --x threads --y time_median --baseline threads=1 --format md\n"
                 "  prony query --x framework --y times_floor --aggregate best --draw bar\n",
             .lists = {{rows, 0}}},
};
