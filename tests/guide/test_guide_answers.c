/* test_guide_answers.c: what the API answers over real sockets, in figures and in errors. */
#include "base/file.h"
#include "served.h"

TEST(lists_axes_and_metrics)
{
    if (!start())
        return;
    const struct json *tree = get_json("/api/axes", 200);
    const struct json *axis_list = json_get(tree, "axes"), *metric_list = json_get(tree, "metrics");
    if (!CHECK(axis_list && metric_list))
        return;
    CHECK_EQUAL_INT(axis_list->count, AXIS_COUNT + DERIVED_COUNT);
    CHECK_EQUAL_INT(metric_list->count, METRIC_COUNT);
    CHECK_EQUAL_TEXT(json_text(axis_list->first, "key", NULL), "framework");
    CHECK_EQUAL_TEXT(json_text(axis_list->first, "kind", NULL), "text");
}

TEST(says_what_is_stored)
{
    if (!start())
        return;
    const struct json *tree = get_json("/api/status", 200);
    CHECK_EQUAL_INT(json_int(tree, "records", 0), 5);
    const struct json *newest = json_get(tree, "newest");
    CHECK_EQUAL_TEXT(json_text(newest, "at", NULL), "2026-11-15T10:03:58Z");
    CHECK_EQUAL_TEXT(json_text(json_get(newest, "point"), "backend", NULL), "simd"); /* not cuda */
}

TEST(counts_values_under_the_other_filters)
{
    if (!start())
        return;
    const struct json *values =
        json_get(get_json("/api/values?backend=simd&batch=1", 200), "values");
    const struct json *backend = json_get(values, "backend"), *batch = json_get(values, "batch");
    if (!CHECK(backend && batch))
        return;
    CHECK_EQUAL_INT(backend->count, 2); /* ref too: only the batch filter counts here */
    CHECK_EQUAL_TEXT(json_text(backend->first, "value", NULL), "ref");
    CHECK_EQUAL_INT(json_int(backend->first, "count", 0), 1);
    CHECK_EQUAL_INT(batch->count, 2);
    CHECK_EQUAL_INT(json_int(batch->first, "value", 0), 1);

    values = json_get(get_json("/api/values?axis=batch&backend=none", 200), "values");
    CHECK_EQUAL_INT(values ? values->count : 0, 1);
    batch = json_get(values, "batch");
    CHECK(batch && batch->count == 0);
}

TEST(gives_the_points_of_a_chart)
{
    if (!start())
        return;
    const struct json *points = json_get(
        get_json("/api/query?x=batch&y=time_median&group=backend&model=small", 200), "points");
    if (!CHECK(points && points->count == 4))
        return;
    const struct json *point = points->first; /* ref, 1 */
    CHECK_EQUAL_TEXT(json_get(point, "group")->first->string, "ref");
    CHECK_EQUAL_INT(json_int(point, "x", 0), 1);
    CHECK_NEAR(json_real(point, "y", 0), 1000, 1e-9);
    CHECK(json_real(point, "low", 0) < 1000 && json_real(point, "high", 0) > 1000);
    CHECK_EQUAL_INT(json_int(point, "count", 0), 1);
    CHECK_EQUAL_INT(json_int(point, "unchecked", -1), 0);
    CHECK_EQUAL_INT(json_int(point, "configurations", 0), 1);
    point = point->next->next->next; /* simd, 10 */
    CHECK_EQUAL_INT(json_int(point, "x", 0), 10);
    CHECK_NEAR(json_real(point, "y", 0), 800, 1e-9);
    CHECK_EQUAL_INT(json_int(point, "unchecked", -1), 1);

    points = json_get(get_json("/api/query?x=batch&y=throughput&group=framework,backend", 200),
                      "points");
    if (!CHECK(points && points->count == 4))
        return;
    point = points->first;
    CHECK_EQUAL_INT(json_get(point, "group")->count, 2);
    CHECK_NEAR(json_real(point, "y", 0), 1e6, 1e-3);
    CHECK(json_real(point, "low", 0) < 1e6 && json_real(point, "high", 0) > 1e6);

    points = json_get(get_json("/api/query?x=model&y=time_min&aggregate=max", 200), "points");
    if (!CHECK(points && points->count == 1))
        return;
    CHECK_NEAR(json_real(points->first, "y", 0), 4850, 1e-9);
    CHECK_EQUAL_INT(json_int(points->first, "configurations", 0), 4);
}

TEST(names_the_parameter_that_is_wrong)
{
    static const struct {
        const char *path, *parameter, *found, *expected;
    } cases[] = {
        {"/api/query?x=bacth&y=throughput", "x", "bacth", "an axis; did you mean \"batch\"?"},
        {"/api/query?y=throughput", "x", "", "an axis"},
        {"/api/query?x=batch", "y", "", "a metric"},
        {"/api/query?x=batch&y=through", "y", "through", "a metric"},
        {"/api/query?x=batch&y=time_min&group=no", "group", "no", "an axis"},
        {"/api/query?x=batch&y=time_min&group=model,,", "group", "", "an axis"},
        {"/api/query?x=batch&y=time_min&aggregate=sum", "aggregate", "sum", "best, min"},
        {"/api/query?x=batch&x=model&y=time_min", "x", "model", "only once"},
        {"/api/query?x=batch&y=time_min&batch=one", "batch", "one", "a whole number"},
        {"/api/values?axis=q%22%0a", "axis", "q\"\n", "an axis"},
        {"/api/values?colour=red", "colour", "red", "no parameter"},
        {"/api/status?model=small", "model", "small", "no parameter"},
        {"/api/records?limit=0", "limit", "0", "a whole number from 1"},
        {"/api/records?limit=9999999", "limit", "9999999", "a whole number from 1"},
        {"/api/records?offset=-1", "offset", "-1", "a whole number from 0"},
        {"/api/record/x", "ID", "x", "a whole number"},
    };
    if (!start())
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct json *error = json_get(get_json(cases[i].path, 400), "error");
        CHECK_EQUAL_TEXT(json_text(error, "parameter", NULL), cases[i].parameter);
        CHECK_EQUAL_TEXT(json_text(error, "found", NULL), cases[i].found);
        CHECK(strstr(json_text(error, "expected", ""), cases[i].expected));
        CHECK(strstr(json_text(error, "message", ""), cases[i].expected));
    }
}

TEST(gives_records)
{
    if (!start())
        return;
    const struct json *tree = get_json("/api/records?backend=ref&limit=1", 200);
    CHECK_EQUAL_INT(json_int(tree, "count", 0), 2);
    const struct json *records = json_get(tree, "records");
    if (!CHECK(records && records->count == 1))
        return;
    char path[40];
    int64_t id = json_int(records->first, "id", 0);
    const struct json *record = json_get(records->first, "record");
    CHECK_EQUAL_TEXT(json_text(json_get(record, "point"), "backend", NULL), "ref");
    snprintf(path, sizeof path, "/api/record/%lld", (long long)id);
    tree = get_json(path, 200);
    CHECK_EQUAL_INT(json_int(tree, "id", 0), id);
    record = json_get(tree, "record");
    CHECK_EQUAL_TEXT(json_text(json_get(record, "point"), "backend", NULL), "ref");
    CHECK(json_get(record, "samples_ns") && json_get(record, "samples_ns")->count == 7);
    CHECK_EQUAL_TEXT(
        json_text(json_get(get_json("/api/record/99999", 404), "error"), "message", NULL),
        "there is no record 99999");
}

TEST(an_empty_store_fills_while_it_is_served)
{
    struct guide *later;
    const char *path = at("later.db");
    if (!CHECK_OK(guide_start(path, &(struct http_place){0}, &later)))
        return;
    static const char request[] = "GET /api/status HTTP/1.1\r\n" LOCAL "\r\n";
    static const char query[] = "GET /api/query?x=batch&y=throughput HTTP/1.1\r\n" LOCAL "\r\n";
    CHECK(strstr(exchange(guide_port(later), request, strlen(request)), "\"records\":0"));
    CHECK(strstr(exchange(guide_port(later), query, strlen(query)), "{\"points\":[],"));
    CHECK(!file_exists(path)); /* looking makes nothing */
    CHECK_OK(make_store(path));
    CHECK(strstr(exchange(guide_port(later), request, strlen(request)), "\"records\":5"));
    guide_stop(later);
}

TEST(stops)
{
    guide_stop(guide);
    guide = NULL;
    guide_stop(NULL);
}

CHECK_MAIN
