/* test_guide_dlpg.c: what HPE's Deep Learning Performance Guide offers, ticked line by line against
 * the API: its axes for x, filters and groups, its metrics for y, aggregation over trials, several
 * series and several charts. The rows below are that list; a row that no longer works fails. */
#include "asked.h"

/* Every axis of a configuration: its value in most records, and in one of its own. */
static const struct {
    const char *key, *usual, *other;
} axis_rows[] = {
    {"framework", "prony", "numpy"},
    {"backend", "simd", "blas"},
    {"model", "large", "small"},
    {"phase", "training", "inference"},
    {"precision", "fp32", "int8"},
    {"data", "synthetic", "real/disk"},
    {"ingestion", "resident", "pinned"},
    {"batch", "64", "128"},
    {"unit", "cpu", "gpu"},
    {"unit_name", "EPYC", "H200"},
    {"threads", "1", "2"},
    {"affinity", "none", "compact"},
    {"workers", "4", "8"},
    {"nodes", "1", "2"},
    {"parallelism", "data", "model"},
    {"scaling", "weak", "strong"},
    {"interconnect", "shm", "ethernet"},
    {"optimiser", "sgd", "adam"},
    {"scenario", "iterate", "offline"},
    {"isa", "avx2", "avx512"},
    {"fusion", "on", "off"},
    {"recompute", "on", "off"},
    {"pages", "4k", "2m"},
    {"server", "box", "far"},
    {"software", "0.1.0", "0.2.0"},
};
enum { AXES = sizeof axis_rows / sizeof *axis_rows, TRIALS = 3, RESULTS = AXES + TRIALS };

/* Axes that are computed: a value that the usual record has. */
static const struct {
    const char *key, *value;
} derived_rows[] = {
    {"effective_batch", "256"},
    {"count", "4"},
    {"parameters", "12337201"},
    {"layers", "5"},
    {"flop", "4000000"},
    {"commit", "aaa1111"},
    {"time", "2026-11-15T10:00:00Z"},
};

/* Every metric: what the usual record's first trial has. */
static const struct {
    const char *key;
    double figure;
} metric_rows[] = {
    {"time_min", 1000},      {"time_median", 2000}, {"time_mean", 2100},    {"time_p90", 2500},
    {"time_p99", 2900},      {"time_ci_low", 1900}, {"time_ci_high", 2200}, {"throughput", 128e6},
    {"prepare", 100},        {"forward", 500},      {"backward", 700},      {"communicate", 300},
    {"update", 400},         {"start", 5000},       {"floor", 1000},        {"times_floor", 2},
    {"best_times_floor", 1}, {"flop_rate", 2e12},   {"byte_rate", 1e12},    {"cpu_utilisation", 99},
    {"gpu_utilisation", 50}, {"system_calls", 12},  {"peak_memory", 2e8},   {"gpu_memory", 3e8},
    {"energy", 0.25},        {"loss", 0.5},         {"accuracy", 0.75},     {"rate", 400},
    {"target_time", 8},      {"target_epochs", 3},
};

/* A result that is usual but for one axis; AXES: for none. */
static void write_line(struct text *line, size_t other, int trial)
{
    text_add(line, "{\"prony\":1,\"kind\":\"result\",\"point\":{");
    for (size_t i = 0; i < AXES; i++) {
        const char *value = i == other ? axis_rows[i].other : axis_rows[i].usual;
        const char *quote = axis_find(axis_rows[i].key)->kind == AXIS_INT ? "" : "\"";
        text_printf(line, "%s\"%s\":%s%s%s", i ? "," : "", axis_rows[i].key, quote, value, quote);
    }
    text_printf(line,
                "},\"status\":\"ok\",\"kernels\":[],\"result\":{\"time_ns\":{\"min\":1000,"
                "\"median\":%d,\"mean\":2100,\"p90\":2500,\"p99\":2900,\"ci_low\":1900,"
                "\"ci_high\":2200,\"count\":9,\"per\":1},\"parts_ns\":{\"prepare\":100,"
                "\"forward\":500,\"backward\":700,\"communicate\":300,\"update\":400},"
                "\"start_ns\":5000,\"throughput\":128e6,\"floor_ns\":1000,\"times_floor\":2,"
                "\"best_times_floor\":1,\"flop\":4000000,\"bytes\":2000000,"
                "\"parameters\":12337201,\"layers\":5,\"check\":{\"verdict\":\"right\"},",
                2000 + 50 * trial);
    text_printf(line,
                "\"meters\":{\"cpu_utilisation\":99,\"gpu_utilisation\":50,\"system_calls\":12,"
                "\"peak_memory\":2e8,\"gpu_memory\":3e8,\"energy\":0.25,\"loss\":0.5,"
                "\"accuracy\":0.75,\"rate\":400,\"target_time\":8,\"target_epochs\":3}},"
                "\"software\":{\"commit\":\"%s\"},\"at\":\"2026-11-15T10:%02d:00Z\"}\n",
                other < AXES ? "bbb2222" : "aaa1111", other < AXES ? (int)other + 10 : trial);
}

static enum status fill(struct store *store)
{
    struct text lines = {0};
    for (size_t i = 0; i < AXES; i++)
        write_line(&lines, i, 0);
    for (int trial = 0; trial < TRIALS; trial++)
        write_line(&lines, AXES, trial);
    enum status status =
        record_read_all("lines", text_of(&lines), lines.length, asked_add_line, store);
    text_free(&lines);
    return status;
}

static bool start(void)
{
    return asked_start(fill);
}

/* The answer to a request that is right. */
__attribute__((format(printf, 1, 2))) static const struct json *found(const char *format, ...)
{
    char request[600];
    va_list values;
    va_start(values, format);
    vsnprintf(request, sizeof request, format, values);
    va_end(values);
    return get(request, 200);
}

static size_t count_of(const struct json *array)
{
    return array ? array->count : 0;
}

static bool is_value(const struct json *value, const char *text)
{
    char number[40];
    if (!value || value->kind == JSON_STRING)
        return value && !strcmp(value->string, text);
    snprintf(number, sizeof number, "%.0f", value->number);
    return !strcmp(number, text);
}

/* The point at this place of x, or NULL. */
static const struct json *point_at(const struct json *answer, const char *x)
{
    const struct json *point =
        json_get(answer, "points") ? json_get(answer, "points")->first : NULL;
    while (point && !is_value(json_get(point, "x"), x))
        point = point->next;
    return point;
}

/* "Every axis is also a filter", an x, a group, and a list of what there is. */
TEST(every_axis_is_x_filter_and_group)
{
    if (!start())
        return;
    for (size_t i = 0; i < AXES; i++) {
        const char *key = axis_rows[i].key, *other = axis_rows[i].other;
        if (!check_wants(key))
            continue;
        const struct json *answer = found("/api/query?x=%s&y=time_median", key);
        CHECK_EQUAL_INT(count_of(json_get(answer, "points")), 2);
        CHECK_EQUAL_INT(json_int(point_at(answer, other), "count", 0), 1);
        CHECK_EQUAL_INT(json_int(point_at(answer, axis_rows[i].usual), "count", 0), RESULTS - 1);
        answer = found("/api/query?x=count&y=time_median&group=%s&nodes=1&workers=4", key);
        CHECK(count_of(json_get(answer, "points")) ==
              (!strcmp(key, "workers") || !strcmp(key, "nodes") ? 1 : 2));
        answer = found("/api/values?axis=%s", key);
        CHECK_EQUAL_INT(count_of(json_get(json_get(answer, "values"), key)), 2);
        if (strcmp(key, "scaling")) { /* which lets through what has one worker, too */
            answer = found("/api/query?x=model&y=time_median&%s=%s", key, other);
            CHECK_EQUAL_INT(json_int(answer, "results", 0), 1);
        }
    }
}

TEST(computed_axes_are_x_and_filter)
{
    if (!start())
        return;
    for (size_t i = 0; i < sizeof derived_rows / sizeof *derived_rows; i++) {
        const char *key = derived_rows[i].key, *value = derived_rows[i].value;
        if (!check_wants(key))
            continue;
        CHECK(point_at(found("/api/query?x=%s&y=throughput", key), value) != NULL);
        CHECK(json_int(found("/api/query?x=model&y=throughput&%s=%s", key, value), "results", 0) >
              0);
    }
}

TEST(every_metric_is_y)
{
    if (!start())
        return;
    for (size_t i = 0; i < sizeof metric_rows / sizeof *metric_rows; i++) {
        if (!check_wants(metric_rows[i].key))
            continue;
        const struct json *answer =
            found("/api/query?x=batch&y=%s&time=2026-11-15T10:00:00Z", metric_rows[i].key);
        CHECK_NEAR(json_real(point_at(answer, "64"), "y", -1), metric_rows[i].figure,
                   1e-6 * metric_rows[i].figure);
    }
}

/* Three trials of one configuration: 2000, 2050 and 2100 ns. */
TEST(trials_are_aggregated)
{
    static const struct {
        const char *how;
        double figure;
    } rows[] = {{"min", 2000}, {"max", 2100}, {"median", 2050}, {"mean", 2050}, {"best", 2000}};
    if (!start())
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!check_wants(rows[i].how))
            continue;
        const struct json *point = point_at(
            found("/api/query?x=batch&y=time_median&commit=aaa1111&aggregate=%s", rows[i].how),
            "64");
        CHECK_NEAR(json_real(point, "y", 0), rows[i].figure, 1e-6);
        CHECK_EQUAL_INT(json_int(point, "count", 0), TRIALS);
        CHECK_EQUAL_INT(json_int(point, "configurations", 0), 1); /* like with like */
    }
}

TEST(unlike_configurations_are_told)
{
    if (!start())
        return;
    const struct json *point = point_at(found("/api/query?x=batch&y=time_median"), "64");
    CHECK(json_int(point, "configurations", 0) > 1);
    CHECK(count_of(json_get(point, "differs")) > 1);
}

/* Several named series on one chart are queries of their own; any of several values is a filter;
 * several charts are one more group. */
TEST(series_and_charts)
{
    if (!start())
        return;
    const struct json *answer =
        found("/api/query?x=batch&y=throughput&group=framework,phase,precision");
    CHECK(count_of(json_get(answer, "points")) >= 4);
    answer = found("/api/query?x=framework&y=throughput&framework=prony&framework=numpy&batch=64");
    CHECK_EQUAL_INT(count_of(json_get(answer, "points")), 2);
    answer = found("/api/query?x=batch&y=throughput&group=framework&optimiser=adam&optimiser=sgd"
                   "&status=ok&check=right&source=own");
    CHECK_EQUAL_INT(json_int(answer, "results", 0), RESULTS);
}

/* Weak reads the batch filter as the batch of one worker, strong as that of all of them. */
TEST(scaling_reads_the_batch)
{
    if (!start())
        return;
    CHECK_EQUAL_INT(
        json_int(found("/api/query?x=workers&y=throughput&scaling=strong&batch=256"), "results", 0),
        1);
    CHECK_EQUAL_INT(
        json_int(found("/api/query?x=workers&y=throughput&scaling=strong&batch=64"), "results", 0),
        0);
    CHECK_EQUAL_INT(
        json_int(found("/api/query?x=workers&y=throughput&scaling=weak&batch=128"), "results", 0),
        1);
}

TEST(speedup_and_efficiency)
{
    if (!start())
        return;
    const struct json *answer =
        found("/api/query?x=threads&y=time_median&baseline=first&aggregate=min");
    const struct json *point = point_at(answer, "2");
    CHECK_NEAR(json_real(point, "speedup", 0), 1, 1e-9);
    CHECK_NEAR(json_real(point, "efficiency", 0), 0.5, 1e-9);
}

CHECK_MAIN
