/* endpoint_query.c: /api/query, the points of a chart, and /api/scaling, the same in series with
 * their ideal. */
#include "guide/endpoints.h"

#include <string.h>

/* Axes with commas between them. */
static enum status read_groups(struct call *call, const char *list, struct store_query *query)
{
    query->group_count = 0;
    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        char *key;
        end = at + strcspn(at, ",");
        NEED(key = arena_bytes(&call->arena, at, (size_t)(end - at)));
        if (query->group_count == STORE_GROUPS)
            return call_refuse(call, "group", list, "%d axes at most", STORE_GROUPS);
        TRY(call_need_axis(call, "group", key));
        query->groups[query->group_count++] = key;
    }
    return STATUS_OK;
}

static enum status read_aggregate(struct call *call, const char *name, struct store_query *query)
{
    query->aggregate = STORE_MEDIAN;
    if (name && !store_aggregate_parse(name, &query->aggregate))
        return call_refuse(call, "aggregate", name, "best, min, max, median or mean");
    return STATUS_OK;
}

static enum status read_query(struct call *call, struct store_query *query)
{
    enum { X, Y, GROUP, AGGREGATE, BASELINE };
    *query = (struct store_query){.x = call->own[X],
                                  .y = call->own[Y],
                                  .where = call_where(call),
                                  .baseline = call->own[BASELINE]};
    if (!query->x)
        return call_refuse(call, "x", "", "an axis; /api/axes lists them");
    if (!query->y)
        return call_refuse(call, "y", "", "a metric; /api/axes lists them");
    TRY(call_need_axis(call, "x", query->x));
    TRY(call_need_metric(call, "y", query->y));
    if (call->own[GROUP])
        TRY(read_groups(call, call->own[GROUP], query));
    return read_aggregate(call, call->own[AGGREGATE], query);
}

/* A baseline is only understood by the store; what it refuses is the caller's mistake. */
static enum status draw(struct call *call, const struct store_query *query,
                        struct store_chart *chart)
{
    *chart = (struct store_chart){0};
    if (!call->store)
        return STATUS_OK;
    enum status status = store_chart(call->store, query, chart);
    if (status == STATUS_INPUT && text_starts(status_message(), "baseline: "))
        return call_refuse(call, "baseline", query->baseline,
                           "\"first\", or KEY=VALUE of x or a group");
    return status;
}

enum status endpoint_query(struct call *call)
{
    struct store_query query;
    struct store_chart chart;
    TRY(read_query(call, &query));
    TRY(draw(call, &query, &chart));
    store_chart_write(&query, &chart, &call->json);
    store_chart_free(&chart);
    return STATUS_OK;
}

/* /api/scaling */

static enum status read_scaling(struct call *call, struct store_query *query)
{
    enum { OVER, Y, GROUP, AGGREGATE };
    const char *over = call->own[OVER] ? call->own[OVER] : "threads";
    *query = (struct store_query){.x = over,
                                  .y = call->own[Y] ? call->own[Y] : "throughput",
                                  .groups = {"model", "phase", "framework", "backend", "batch"},
                                  .group_count = 5,
                                  .where = call_where(call),
                                  .baseline = "first"};
    if (strcmp(over, "threads") && strcmp(over, "workers") && strcmp(over, "nodes"))
        return call_refuse(call, "over", over, "threads, workers or nodes");
    if (strcmp(over, "threads")) /* what was simulated is there, as series of its own */
        query->groups[query->group_count++] = axes[AXIS_origin].key;
    TRY(call_need_metric(call, "y", query->y));
    if (call->own[GROUP])
        TRY(read_groups(call, call->own[GROUP], query));
    return read_aggregate(call, call->own[AGGREGATE], query);
}

/* How many points from `first` on belong to the same series. */
static size_t series_length(const struct store_chart *chart, const struct store_query *query,
                            size_t first)
{
    size_t end = first + 1;
    while (end < chart->count && store_same_series(&chart->marks[end], &chart->marks[first], query))
        end++;
    return end - first;
}

static void add_series(struct json_writer *json, const struct store_mark *marks, size_t count,
                       const struct store_query *query)
{
    json_object(json);
    store_group_write(query, &marks[0], json);
    json_key(json, "points");
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        json_object(json);
        store_mark_write(query, &marks[i], json);
        call_add_real(json, "ideal", marks[i].ideal);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

enum status endpoint_scaling(struct call *call)
{
    struct json_writer *json = &call->json;
    struct store_query query;
    struct store_chart chart;
    TRY(read_scaling(call, &query));
    TRY(draw(call, &query, &chart));
    json_object(json);
    call_add_text(json, "over", query.x);
    json_key(json, "groups");
    json_array(json);
    for (size_t i = 0; i < query.group_count; i++)
        json_add_text(json, query.groups[i]);
    json_end(json);
    json_key(json, "series");
    json_array(json);
    for (size_t i = 0, length; i < chart.count; i += length) {
        length = series_length(&chart, &query, i);
        if (length > 1)
            add_series(json, &chart.marks[i], length, &query);
    }
    json_end(json);
    json_end(json);
    store_chart_free(&chart);
    return STATUS_OK;
}
