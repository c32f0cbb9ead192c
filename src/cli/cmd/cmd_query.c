/* cmd_query.c: prony query: the charts of the guide, in a terminal. The answer comes from
 * store_chart, as the guide's does; here it is only printed. */
#include "cli/commands.h"

#include "base/arena.h"
#include "cli/show/query_draw.h"
#include "cli/show/query_table.h"
#include "cli/store_file.h"
#include "cli/table/wrap.h"
#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a query without --where is narrowed by, unless one of these is its x or in its groups. */
enum { NARROWED = 7 };
static const struct {
    const char *key;
    const char *spread[4];
} narrowed[NARROWED] = {
    {"source", {"source"}},
    {"server", {"server", "machine", "unit_name"}},
    {"model", {"model", "parameters", "layers"}},
    {"phase", {"phase"}},
    {"unit", {"unit", "unit_name"}},
    {"precision", {"precision"}},
    {"scenario", {"scenario"}},
};

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
    const char *groups = options->groups;
    if (!groups) /* a series for each implementation, unless they are what varies */
        groups = options->where || text_equal(options->x, "framework") ||
                         text_equal(options->x, "backend")
                     ? ""
                     : "framework,backend";
    TRY(read_groups(arena, groups, query));
    return options->where ? store_where_parse(arena, options->where, &query->where) : STATUS_OK;
}

/* What a query without --where is narrowed to: what the newest result with the figure was measured
 * on, as the guide's Explore is; an own one where there is any. What the query spreads out stays
 * open. */
struct narrowing {
    struct arena *arena;
    enum metric_index metric;
    const char *values[NARROWED]; /* of `narrowed`; NULL: stays open */
    bool found;
};

static enum status take_newest(void *context, const struct store_row *row)
{
    struct narrowing *narrowing = context;
    char number[POINT_NUMBER];
    if (narrowing->found || isnan(row->metrics[narrowing->metric]) ||
        *point_get(&row->point, axis_find("origin"), number))
        return STATUS_OK;
    narrowing->found = true;
    for (int i = 0; i < NARROWED; i++) {
        const struct axis *axis = axis_find(narrowed[i].key);
        const char *value = axis ? point_get(&row->point, axis, number) : row->source;
        NEED(narrowing->values[i] = arena_text(narrowing->arena, value));
    }
    return STATUS_OK;
}

static enum status find_newest(struct store *store, struct narrowing *narrowing)
{
    enum { LOOKED_AT = 1000 };
    static const struct store_filter own[] = {{"status", "ok"}, {"source", "own"}};
    const enum metric_index wanted[] = {narrowing->metric, METRIC_COUNT};
    int64_t count;
    for (size_t filters = 2; filters > 0 && !narrowing->found; filters--) {
        const struct store_glance glance = {
            .where = {own, filters}, .metrics = wanted, .limit = LOOKED_AT};
        TRY(store_rows(store, &glance, take_newest, narrowing, &count));
    }
    return STATUS_OK;
}

static bool is_spread_out(const struct store_query *query, const char *const *keys)
{
    bool spread = false;
    for (; *keys; keys++) {
        spread |= strcmp(*keys, query->x) == 0;
        for (size_t i = 0; i < query->group_count; i++)
            spread |= strcmp(*keys, query->groups[i]) == 0;
    }
    return spread;
}

/* "server='a b' model=large": as --where takes it. */
static void add_words(struct text *out, const struct store_where *where)
{
    for (size_t i = 0; i < where->count; i++) {
        const char *value = where->filters[i].value;
        const char *quote = strpbrk(value, ", \t") ? "\"" : "";
        text_printf(out, "%s%s=%s%s%s", i ? " " : "", where->filters[i].key, quote, value, quote);
    }
}

static enum status narrow(struct arena *arena, struct store *store, struct store_query *query)
{
    const struct metric *metric;
    struct narrowing narrowing = {.arena = arena};
    struct store_filter *filters;
    TRY(metric_need(query->y, &metric));
    narrowing.metric = (enum metric_index)(metric - metrics);
    TRY(find_newest(store, &narrowing));
    NEED(filters = arena_array(arena, NARROWED, sizeof *filters));
    query->where.filters = filters;
    for (int i = 0; i < NARROWED && narrowing.found; i++)
        if (*narrowing.values[i] && !is_spread_out(query, narrowed[i].spread))
            filters[query->where.count++] =
                (struct store_filter){narrowed[i].key, narrowing.values[i]};
    return STATUS_OK;
}

/* Above the table, or beside what another program reads. */
static void tell_narrowed(const struct options *options, const struct store_query *query,
                          struct text *out)
{
    struct text words = {0}, line = {0};
    add_words(&words, &query->where);
    text_printf(&line, "only --where '%s'; --where '' takes all results", text_of(&words));
    if (strcmp(options->format, "table") != 0)
        fprintf(stderr, "%s\n", text_of(&line));
    else
        wrap_add(out, "", text_of(&line), wrap_screen());
    text_add(out, strcmp(options->format, "table") == 0 ? "\n" : "");
    out->failed |= words.failed || line.failed;
    text_free(&words);
    text_free(&line);
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
    if (!options->where)
        TRY_OR(done, narrow(&arena, store, &query));
    TRY_OR(done, store_chart(store, &query, &chart));
    if (!options->where && query.where.count)
        tell_narrowed(options, &query, &out);
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

static void add_keys(struct text *out)
{
    text_add(out, "\nWithout --where it shows the machine, network and phase of the newest result, "
                  "and without --group-by the frameworks.\nAxes:");
    for (int i = 0; i < AXIS_COUNT; i++)
        text_printf(out, "%s %s", i ? "," : "", axes[i].key);
    for (int i = 0; i < DERIVED_COUNT; i++)
        text_printf(out, ", %s", deriveds[i].key);
    text_add(out, ".\nMetrics:");
    for (int i = 0; i < METRIC_COUNT; i++)
        text_printf(out, "%s %s", i ? "," : "", metrics[i].key);
    text_add(out, ".");
}

#define AT(field) ARG(struct options, field)
static const struct arg rows[] = {
    {AT(x), "AXIS", "the axis that varies (default: batch)", .otherwise = "batch"},
    {AT(y), "METRIC", "the measure that is shown (default: throughput)", .otherwise = "throughput"},
    {AT(where), "'KEY=VALUE,… …'", "only results with these values; '': all results",
     .empty = true},
    {ARG_NAMED("group-by", struct options, groups), "AXIS,…", "a series for each value of these",
     .empty = true},
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
             .add_summary = add_keys,
             .examples =
                 "  prony query --x batch --y throughput --where 'model=large phase=training' "
                 "--group-by framework\n"
                 "  prony query --x threads --y time_median --baseline threads=1 --format md\n"
                 "  prony query --x framework --y times_floor --aggregate best --draw bar\n",
             .lists = {{rows, 0}}},
};
