/* chart.c: /api/query, the points of a chart with their error bars. */
#include "guide/answers.h"

#include <string.h>

/* Metrics that are the middle of an interval, and the metrics that are its ends. */
static const struct {
    const char *metric, *low, *high;
} intervals[] = {
    {"time_median", "time_ci_low", "time_ci_high"},
    {"throughput", "throughput_ci_low", "throughput_ci_high"},
};

struct mark {
    struct store_mark mark; /* texts in the call's arena */
    struct mark *next;
};

struct marks {
    struct arena *arena;
    struct mark *first, **end;
    struct mark *at; /* where the last end of an interval was put: they come in the same order */
};

static enum status keep_mark(void *context, const struct store_mark *found)
{
    struct marks *marks = context;
    struct mark *kept;
    NEED(kept = arena_alloc(marks->arena, sizeof *kept));
    kept->mark = *found;
    for (size_t i = 0; i < STORE_GROUPS; i++)
        NEED(kept->mark.groups[i] = arena_text(marks->arena, found->groups[i]));
    NEED(kept->mark.x = arena_text(marks->arena, found->x));
    *marks->end = kept;
    marks->end = &kept->next;
    return STATUS_OK;
}

static bool is_same_mark(const struct store_mark *a, const struct store_mark *b)
{
    for (size_t i = 0; i < STORE_GROUPS; i++)
        if (strcmp(a->groups[i], b->groups[i]))
            return false;
    return !strcmp(a->x, b->x);
}

/* The mark of the chart that this mark of an interval's end belongs to; NULL when there is none. */
static struct store_mark *find_mark(struct marks *marks, const struct store_mark *found)
{
    struct mark *mark = marks->at;
    while (mark && !is_same_mark(&mark->mark, found))
        mark = mark->next;
    if (mark)
        marks->at = mark;
    return mark ? &mark->mark : NULL;
}

static enum status widen_low(void *context, const struct store_mark *found)
{
    struct store_mark *mark = find_mark(context, found);
    if (mark && found->y < mark->y_min)
        mark->y_min = found->y;
    return STATUS_OK;
}

static enum status widen_high(void *context, const struct store_mark *found)
{
    struct store_mark *mark = find_mark(context, found);
    if (mark && found->y > mark->y_max)
        mark->y_max = found->y;
    return STATUS_OK;
}

/* y_min and y_max are the spread over the results of a mark; where each of these results has an
 * interval of its own, they become the ends of all of these. */
static enum status widen_marks(struct call *call, struct store_query query, struct marks *marks)
{
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        if (strcmp(query.y, intervals[i].metric))
            continue;
        struct store_query ends = query;
        ends.y = intervals[i].low;
        ends.aggregate = STORE_MIN;
        marks->at = marks->first;
        TRY(store_chart(call->store, &ends, widen_low, marks));
        ends.y = intervals[i].high;
        ends.aggregate = STORE_MAX;
        marks->at = marks->first;
        TRY(store_chart(call->store, &ends, widen_high, marks));
    }
    return STATUS_OK;
}

/* What is asked, and the kinds of the axes it names. */
struct question {
    struct store_query query;
    enum axis_kind x, groups[STORE_GROUPS];
};

static void add_mark(struct json_writer *json, const struct store_mark *mark,
                     const struct question *question)
{
    json_object(json);
    json_key(json, "group");
    json_array(json);
    for (size_t i = 0; i < question->query.group_count; i++)
        call_add_value(json, question->groups[i], mark->groups[i]);
    json_end(json);
    json_key(json, "x");
    call_add_value(json, question->x, mark->x);
    json_key(json, "y");
    json_add_real(json, mark->y);
    json_key(json, "low");
    json_add_real(json, mark->y_min);
    json_key(json, "high");
    json_add_real(json, mark->y_max);
    call_add_int(json, "count", mark->count);
    call_add_int(json, "unchecked", mark->unchecked);
    call_add_int(json, "configurations", mark->configurations);
    call_add_int(json, "id", mark->id);
    json_end(json);
}

/* Axes with commas between them. */
static enum status read_groups(struct call *call, const char *list, struct question *question)
{
    struct store_query *query = &question->query;
    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        char *key;
        end = at + strcspn(at, ",");
        NEED(key = arena_bytes(&call->arena, at, (size_t)(end - at)));
        if (query->group_count == STORE_GROUPS)
            return call_refuse(call, "group", list, "%d axes at most", STORE_GROUPS);
        TRY(call_need_axis(call, "group", key, &question->groups[query->group_count]));
        query->groups[query->group_count++] = key;
    }
    return STATUS_OK;
}

static enum status read_question(struct call *call, struct question *question)
{
    enum { X, Y, GROUP, AGGREGATE };
    const char *aggregate = call->own[AGGREGATE] ? call->own[AGGREGATE] : "median";
    struct store_query *query = &question->query;
    query->x = call->own[X];
    query->y = call->own[Y];
    query->where = call_where(call);
    if (!query->x)
        return call_refuse(call, "x", "", "an axis; /api/axes lists them");
    if (!query->y)
        return call_refuse(call, "y", "", "a metric; /api/axes lists them");
    TRY(call_need_axis(call, "x", query->x, &question->x));
    TRY(call_need_metric(call, "y", query->y));
    if (call->own[GROUP])
        TRY(read_groups(call, call->own[GROUP], question));
    if (!store_aggregate_parse(aggregate, &query->aggregate))
        return call_refuse(call, "aggregate", aggregate, "best, min, max, median or mean");
    return STATUS_OK;
}

enum status answer_query(struct call *call)
{
    struct question question = {0};
    TRY(read_question(call, &question));
    struct marks marks = {.arena = &call->arena, .end = &marks.first};
    if (call->store) {
        TRY(store_chart(call->store, &question.query, keep_mark, &marks));
        TRY(widen_marks(call, question.query, &marks));
    }
    json_object(&call->json);
    json_key(&call->json, "points");
    json_array(&call->json);
    for (const struct mark *mark = marks.first; mark; mark = mark->next)
        add_mark(&call->json, &mark->mark, &question);
    json_end(&call->json);
    json_end(&call->json);
    return STATUS_OK;
}
