/* test_guide_api.c: the endpoints of the API, without a server: what they answer is what counting
 * by hand gives. */
#include "asked.h"
#include "base/file.h"

static const struct {
    const char *words;
    double time_ns;
} results[] = {
    {"backend=ref batch=1 threads=1 server=box", 1000},
    {"backend=ref batch=8 threads=1 server=box", 8000},
    {"backend=simd batch=1 threads=1 server=box", 100},
    {"backend=simd batch=8 threads=1 server=box", 400},
    {"backend=simd batch=8 threads=2 server=box", 250},
    {"backend=cuda batch=8 unit=gpu server=far", 50},
};
enum { RESULTS = sizeof results / sizeof *results };

static enum status add_result(struct store *store, size_t index)
{
    struct store_where where;
    struct record record;
    struct text line = {0};
    double times[7];
    record_start(&record);
    record.program = "0123456789abcdef"; /* as of a network that prony opened */
    for (int i = 0; i < 7; i++)
        times[i] = results[index].time_ns * (0.97 + 0.01 * i);
    TRY(store_where_parse(&arena, results[index].words, &where));
    TRY(point_set(&record.point, &axes[AXIS_model], "net"));
    for (size_t i = 0; i < where.count; i++)
        TRY(point_set(&record.point, axis_find(where.filters[i].key), where.filters[i].value));
    point_settle(&record.point);
    record.flop = 1000;
    record.bytes = 500;
    record.parameters = 62;
    record.layers = 4;
    record.check.verdict = RECORD_RIGHT;
    record.at = "2026-11-15T10:03:58Z";
    TRY(record_measure(&record, &arena, times, 7, 1));
    record_write(&record, &line);
    enum status status = store_add(store, text_of(&line), line.length, &record, NULL, NULL);
    text_free(&line);
    return status;
}

static enum status fill(struct store *store)
{
    static const char lines[] =
        "{\"prony\":1,\"kind\":\"machine\",\"machine\":{\"server\":\"box\",\"cores\":2},"
        "\"calibration\":{\"ceilings\":["
        "{\"ceiling\":\"fp32\",\"isa\":\"avx2\",\"threads\":1,\"per_s\":1e11},"
        "{\"ceiling\":\"read\",\"isa\":\"avx2\",\"threads\":1,\"pages\":\"2m\",\"set_bytes\":16384,"
        "\"per_s\":2e10},"
        "{\"ceiling\":\"update\",\"isa\":\"avx2\",\"threads\":1,\"pages\":\"2m\",\"set_bytes\":16384,"
        "\"per_s\":3e10}]}}\n"
        "{\"prony\":1,\"kind\":\"network\",\"network\":{\"model\":\"net\",\"phase\":\"training\","
        "\"batch\":1,\"backend\":null,\"parameters\":62,\"ops\":[]}}\n"
        "{\"prony\":1,\"kind\":\"profile\",\"profile\":{\"title\":\"train\",\"command\":\"train -x\","
        "\"steps\":2,\"step_ns\":500,\"budget\":{\"window_ns\":1000,\"compute\":900,"
        "\"host code\":100},\"findings\":[{\"rule\":\"R10\",\"title\":\"spin\",\"gain\":2}],"
        "\"flame\":{\"of\":\"ops\",\"names\":[\"\",\"main\"],\"nodes\":[[0,0,0,0],[0,1,0,9]]},"
        "\"trace\":\"prony trace 1\\ntext\\tmain\\ntext\\tgemm\\ntext\\ta.py\\nsite\\t3\\t1\\t7\\t0\\n"
        "lane\\tthread\\t0\\t1\\t4\\t0\\nop\\t0\\t100\\t600\\t2\\t1\\nop\\t0\\t100\\t200\\t1\\n\"},"
        "\"at\":\"2026-11-15T10:03:58Z\"}\n"
        "{\"prony\":1,\"kind\":\"profile\",\"profile\":{\"title\":\"torn\","
        "\"budget\":{\"window_ns\":0},\"trace\":\"prony trace 1\\nop\\t9\\n\"}}\n"
        "{\"prony\":1,\"kind\":\"proof\",\"proof\":{\"rule\":\"R10\",\"command\":\"train -x\","
        "\"change\":\"ONE=1\",\"expected\":2,\"low\":1.5,\"high\":3,\"measured\":2.5,"
        "\"measured_low\":2.4,\"measured_high\":2.6,\"rounds\":8,\"verdict\":\"faster\"}}\n"
        "{\"prony\":1,\"kind\":\"proof\",\"proof\":{\"rule\":\"R10\",\"command\":\"other\","
        "\"expected\":2,\"low\":1.5,\"high\":3,\"measured\":1,\"measured_low\":0.9,"
        "\"measured_high\":1.1,\"rounds\":8,\"verdict\":\"same\"}}\n";
    for (size_t i = 0; i < RESULTS; i++)
        TRY(add_result(store, i));
    return record_read_all("lines", lines, sizeof lines - 1, asked_add_line, store);
}

static bool start(void)
{
    return asked_start(fill);
}

static const struct json *item(const struct json *array, size_t index)
{
    const struct json *at = array ? array->first : NULL;
    while (at && index--)
        at = at->next;
    return at;
}

/* What a page needs to offer a metric comes from its row. */
TEST(metrics_have_titles_and_groups)
{
    if (!start())
        return;
    const struct json *answer = get("/api/axes", 200);
    const struct json *metric = item(json_get(answer, "metrics"), METRIC_of_limit);
    CHECK_EQUAL_TEXT(json_text(metric, "key", ""), "of_limit");
    CHECK_EQUAL_TEXT(json_text(metric, "title", ""), "share of the limit");
    CHECK_EQUAL_TEXT(json_text(metric, "group", ""), "limit");
    CHECK_EQUAL_TEXT(item(json_get(answer, "groups"), METRIC_GROUP_LEARNING)->string, "learning");
}

TEST(status_says_which_views_are_filled)
{
    if (!start())
        return;
    const struct json *views = json_get(get("/api/status", 200), "views");
    CHECK(json_bool(views, "scaling", false)); /* one result has more threads */
    CHECK(json_bool(views, "profiles", false));
    CHECK(!json_bool(views, "precision", true));
}

TEST(points_beside_a_baseline)
{
    if (!start())
        return;
    const struct json *answer = get("/api/query?x=batch&y=time_median&group=backend&unit=cpu"
                                    "&threads=1&baseline=backend=ref",
                                    200);
    const struct json *last = item(json_get(answer, "points"), 3);
    CHECK_NEAR(json_real(last, "speedup", 0), 20, 1e-9);
    CHECK(json_real(last, "speedup_low", 0) < 20 && json_real(last, "speedup_high", 0) > 20);
    CHECK_NEAR(item(json_get(last, "box"), 2)->number, 400, 1e-9);
    CHECK_EQUAL_INT(json_get(last, "ids")->count, 1);
    CHECK_EQUAL_INT(json_int(answer, "results", 0), 4);
    get("/api/query?x=batch&y=time_median&baseline=model=net", 400);
    get("/api/query?x=batch&y=time_median&baseline=fire=", 400);
}

TEST(says_what_differs)
{
    if (!start())
        return;
    const struct json *answer =
        get("/api/query?x=batch&y=throughput&group=backend&backend=simd&batch=8", 200);
    const struct json *point = item(json_get(answer, "points"), 0);
    CHECK_EQUAL_INT(json_int(point, "configurations", 0), 2);
    CHECK_EQUAL_TEXT(item(json_get(point, "differs"), 0)->string, "threads");
    CHECK_EQUAL_INT(json_get(answer, "differs")->count, 1);
}

TEST(scaling_against_the_ideal)
{
    if (!start())
        return;
    const struct json *series = json_get(get("/api/scaling?over=threads", 200), "series");
    if (!CHECK(series && series->count == 1))
        return;
    const struct json *second = item(json_get(item(series, 0), "points"), 1);
    CHECK_NEAR(json_real(second, "speedup", 0), 1.6, 1e-9);
    CHECK_NEAR(json_real(second, "ideal", 0), 2, 1e-9);
    CHECK_NEAR(json_real(second, "efficiency", 0), 0.8, 1e-9);
    get("/api/scaling?over=batch", 400);
}

TEST(compares_two_selections)
{
    if (!start())
        return;
    const struct json *answer = get("/api/compare?a=backend=simd&b=backend=ref", 200);
    CHECK_EQUAL_INT(json_get(answer, "rows")->count, 2);
    const struct json *row = item(json_get(answer, "rows"), 1);
    CHECK_EQUAL_INT(json_int(json_get(row, "point"), "batch", 0), 8);
    CHECK_NEAR(json_real(row, "ratio", 0), 0.05, 1e-9);
    CHECK_EQUAL_TEXT(json_text(row, "verdict", ""), "faster");
    CHECK_EQUAL_INT(json_int(json_get(answer, "summary"), "faster", 0), 2);
    CHECK_EQUAL_INT(json_int(json_get(answer, "summary"), "only_a", 0), 1);
    answer = get("/api/compare?a=unit=cpu&b=unit=gpu&batch=8", 200);
    CHECK_EQUAL_INT(json_get(answer, "rows")->count, 1);
    get("/api/compare?a=backend=simd", 400);
    get("/api/compare?a=bckend=simd&b=backend=ref", 400);
}

TEST(roofline_of_a_machine)
{
    if (!start())
        return;
    const struct json *answer = get("/api/roofline", 200);
    CHECK_EQUAL_TEXT(json_text(answer, "server", ""), "box");
    CHECK_EQUAL_INT(json_get(answer, "servers")->count, 2);
    CHECK_EQUAL_INT(json_get(answer, "points")->count, 5);
    const struct json *ceiling = item(json_get(answer, "ceilings"), 0);
    CHECK_NEAR(json_real(ceiling, "flop_per_s", 0), 1e11, 1);
    CHECK_NEAR(json_real(ceiling, "read_per_s", 0), 2e10, 1);
    CHECK_NEAR(json_real(ceiling, "update_per_s", 0), 3e10, 1);
    const struct json *newest = item(json_get(answer, "points"), 0); /* 250 ns */
    CHECK_NEAR(json_real(newest, "intensity", 0), 2, 1e-9);
    CHECK_NEAR(json_real(newest, "flop_rate", 0), 4e9, 1);
    answer = get("/api/roofline?server=far", 200);
    CHECK_EQUAL_INT(json_get(answer, "points")->count, 1);
    CHECK_EQUAL_INT(json_get(answer, "ceilings")->count, 0);
}

TEST(terms_are_explained)
{
    if (!start())
        return;
    const struct json *terms = json_get(get("/api/glossary", 200), "terms");
    CHECK(terms->count >= 40);
    for (const struct json *term = terms->first; term; term = term->next)
        CHECK(json_text(term, "key", "")[0] && json_text(term, "term", "")[0] &&
              json_text(term, "text", "")[0]);
}

TEST(machines_and_networks)
{
    if (!start())
        return;
    const struct json *box = item(json_get(get("/api/machines", 200), "machines"), 0);
    CHECK_EQUAL_TEXT(json_text(box, "server", ""), "box");
    CHECK_EQUAL_TEXT(json_text(box, "title", ""), "box, 2 cores");
    CHECK_EQUAL_INT(json_int(box, "records", 0), 5);
    CHECK_EQUAL_INT(json_int(json_get(box, "machine"), "cores", 0), 2);
    const struct json *network = item(json_get(get("/api/networks", 200), "networks"), 0);
    CHECK_EQUAL_INT(json_int(network, "parameters", 0), 62);
    CHECK_EQUAL_INT(json_int(network, "layers", 0), 4);
    CHECK_EQUAL_INT(json_int(network, "records", 0), RESULTS);
    CHECK_EQUAL_INT(json_get(network, "explained")->count, 1);
    CHECK_EQUAL_TEXT(
        json_text(json_get(get("/api/network/net?batch=1", 200), "network"), "model", ""), "net");
    get("/api/network/net?batch=2", 404);
    get("/api/network/none", 404);
}

TEST(records_of_a_point)
{
    if (!start())
        return;
    const struct json *records =
        json_get(get("/api/records?ids=3,99,1&samples=no", 200), "records");
    CHECK_EQUAL_INT(records->count, 2); /* there is no 99 */
    CHECK_EQUAL_INT(json_int(item(records, 0), "id", 0), 3);
    CHECK(json_get(json_get(item(records, 0), "record"), "samples_ns") == NULL);
    CHECK(json_get(json_get(item(records, 0), "record"), "result") != NULL);
    get("/api/records?ids=1,x", 400);
    get("/api/records?samples=yes", 400);
    const struct json *record = get("/api/record/5", 200);
    CHECK_EQUAL_TEXT(json_text(record, "command", ""),
                     "prony bench net --backend simd --batch 8 --threads 2");
    CHECK(text_starts(json_text(record, "label", ""), "net training, batch 8"));
    CHECK_EQUAL_INT(json_get(json_get(record, "record"), "samples_ns")->count, 7);
}

static const struct json *rule_of(const struct json *answer, const char *id)
{
    const struct json *rule = item(json_get(answer, "rules"), 0);
    while (rule && strcmp(json_text(rule, "rule", ""), id) != 0)
        rule = rule->next;
    return rule;
}

TEST(profiles_that_were_kept)
{
    if (!start())
        return;
    const struct json *answer = get("/api/profiles", 200);
    const struct json *torn = item(json_get(answer, "profiles"), 0);
    const struct json *train = item(json_get(answer, "profiles"), 1);
    CHECK_EQUAL_TEXT(json_text(torn, "title", ""), "torn"); /* the newest first */
    CHECK_EQUAL_TEXT(json_text(train, "title", ""), "train");
    CHECK_EQUAL_INT(json_int(json_get(train, "budget"), "compute", 0), 900);
    CHECK_EQUAL_INT(json_int(train, "findings", 0), 1);
    CHECK_EQUAL_TEXT(json_text(json_get(train, "first"), "rule", ""), "R10");
    CHECK(json_get(train, "flame") == NULL);
    const struct json *rule = rule_of(answer, "R10");
    CHECK_EQUAL_INT(json_int(rule, "proofs", 0), 2);
    CHECK_EQUAL_INT(json_int(rule, "faster", 0), 1);
    CHECK_EQUAL_INT(json_int(rule, "held", 0), 1);
    CHECK_EQUAL_INT(json_int(rule_of(answer, "R1"), "proofs", -1), 0);
}

/* Its number: records of other kinds come before and after. */
static int64_t profile_id(size_t index)
{
    return json_int(item(json_get(get("/api/profiles", 200), "profiles"), index), "id", 0);
}

TEST(one_profile_with_its_proofs)
{
    char path_of[64];
    if (!start())
        return;
    snprintf(path_of, sizeof path_of, "/api/profile/%lld", (long long)profile_id(1));
    const struct json *profile = get(path_of, 200);
    const struct json *proofs = json_get(item(json_get(profile, "findings"), 0), "proofs");
    CHECK_EQUAL_INT(proofs->count, 1); /* the other is of another program */
    CHECK_NEAR(json_real(item(proofs, 0), "measured", 0), 2.5, 1e-9);
    CHECK(json_bool(item(proofs, 0), "held", false));
    CHECK_EQUAL_INT(json_get(json_get(profile, "flame"), "nodes")->count, 2);
    CHECK(json_get(profile, "trace") == NULL);
    get("/api/profile/1", 404);
    get("/api/profile/999", 404);
    get("/api/profile/x", 400);
    get("/api/profile/", 400);
}

TEST(a_timeline_of_blocks)
{
    char path_of[64];
    if (!start())
        return;
    snprintf(path_of, sizeof path_of, "/api/timeline/%lld", (long long)profile_id(1));
    const struct json *timeline = get(path_of, 200);
    CHECK_EQUAL_INT(json_int(timeline, "end", 0), 600);
    const struct json *block = item(json_get(timeline, "blocks"), 1);
    static const int64_t wanted[] = {0, 1, 100, 200, 2, 6, 1, -1};
    for (size_t i = 0; i < 8; i++)
        CHECK_EQUAL_INT(item(block, i) ? item(block, i)->integer : -99, wanted[i]);
    CHECK_EQUAL_TEXT(item(json_get(timeline, "names"), 0)->string, "gemm");
    CHECK_EQUAL_TEXT(item(json_get(timeline, "names"), 1)->string, "a.py:7");
    CHECK_EQUAL_TEXT(json_text(item(json_get(timeline, "lanes"), 0), "name", ""), "thread 4");
    char part[128];
    snprintf(part, sizeof part, "%s?from=400&to=600&most=400", path_of);
    CHECK_EQUAL_INT(json_get(get(part, 200), "blocks")->count, 1);
    snprintf(part, sizeof part, "%s?most=10", path_of);
    get(part, 400);
    snprintf(part, sizeof part, "%s?from=-1", path_of);
    get(part, 400);
    snprintf(path_of, sizeof path_of, "/api/timeline/%lld", (long long)profile_id(0));
    get(path_of, 404); /* its trace is torn */
}

TEST(answers_questions)
{
    if (!start())
        return;
    const struct json *answer = get("/api/answers", 200);
    CHECK_EQUAL_TEXT(json_text(answer, "model", ""), "net");
    CHECK_EQUAL_TEXT(json_text(answer, "machine", ""), "far");
    CHECK(!json_bool(answer, "shipped", true));
    CHECK_EQUAL_INT(json_get(answer, "answers")->count, 8); /* none of workers */
    answer = item(json_get(get("/api/answer/threads?model=net&server=box", 200), "answers"), 0);
    CHECK_EQUAL_TEXT(json_text(answer, "sentence", ""),
                     "A second thread brings 1.6 × in training `net` at batch 8 (± 4 %).");
    CHECK(json_bool(answer, "known", false));
    get("/api/answer/none", 404);
    CHECK_EQUAL_INT(json_get(get("/api/answers?model=none", 200), "answers")->count, 0);
}

/* What is known of one machine: the chosen one, and which others there are. */
TEST(tells_what_was_found)
{
    if (!start())
        return;
    const struct json *overview = get("/api/overview?server=box", 200);
    CHECK_EQUAL_TEXT(json_text(overview, "server", ""), "box");
    CHECK_EQUAL_TEXT(json_text(overview, "newest", ""), "2026-11-15T10:03:58Z");
    CHECK_EQUAL_INT(json_int(overview, "results", 0), 5);
    const struct json *other = item(json_get(overview, "others"), 0);
    CHECK_EQUAL_TEXT(json_text(other, "server", ""), "far");
    CHECK_EQUAL_TEXT(json_text(other, "source", ""), "own");
    CHECK_EQUAL_INT(json_int(other, "results", 0), 1);
    const struct json *finding = item(json_get(overview, "findings"), 0);
    CHECK_EQUAL_TEXT(json_text(finding, "name", ""), "batch"); /* there is no limit */
    CHECK_EQUAL_TEXT(json_text(finding, "title", ""), "Which batch");
    CHECK_EQUAL_TEXT(json_text(finding, "kind", ""), "lines");
    CHECK(text_starts(json_text(finding, "sentence", ""), "Batches pay: batch 8 trains 2 ×"));
    CHECK(text_starts(json_text(finding, "chart", ""), "x=batch&y=throughput"));
    CHECK(text_starts(json_text(finding, "command", ""), "prony bench net"));
    CHECK(json_get(finding, "ids")->count > 0 && !json_bool(finding, "approximate", true));
    overview = get("/api/overview?server=nowhere", 200);
    CHECK(json_text(overview, "server", NULL) == NULL);
    CHECK_EQUAL_INT(json_get(overview, "findings")->count, 0);
}

TEST(tells_what_is_new)
{
    if (!start())
        return;
    const struct json *live = get("/api/live?after=4", 200);
    CHECK_EQUAL_INT(json_int(live, "newest", 0), RESULTS);
    CHECK_EQUAL_INT(json_get(live, "records")->count, 2);
    CHECK_EQUAL_INT(json_int(item(json_get(live, "records"), 0), "id", 0), 5);
    CHECK_NEAR(json_real(item(json_get(live, "records"), 0), "time_median", 0), 250, 1e-9);
    CHECK_EQUAL_INT(json_get(live, "running")->count, 0);
    struct store *store;
    if (!CHECK_OK(store_open(asked_path, STORE_WRITE, &store)))
        return;
    char server[100] = "";
    gethostname(server, sizeof server - 1);
    CHECK_OK(store_run(store, &(struct store_running){getpid(), server, "2026-11-15T10:03:58Z", 1,
                                                      4, "net training", 12,
                                                      "[[1,0.5,null],[2,0.25,0.75]]"}));
    const struct json *running = item(json_get(get("/api/live", 200), "running"), 0);
    CHECK_EQUAL_INT(json_int(running, "total", 0), 4);
    CHECK_NEAR(json_real(running, "left_s", 0), 12, 1e-9);
    CHECK_NEAR(item(item(json_get(running, "curve"), 1), 2)->number, 0.75, 1e-9);
    store_run_end(store, getpid());
    store_close(store);
}

/* The same question again, from the cache; and anew once there is another record. */
TEST(remembers_until_something_changes)
{
    static const char question[] = "/api/query?x=batch&y=throughput&backend=new";
    struct store *store;
    if (!start())
        return;
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL_INT(json_get(get(question, 200), "points")->count, 0);
    if (!CHECK_OK(store_open(asked_path, STORE_WRITE, &store)))
        return;
    struct text line = {0};
    struct record record;
    int64_t id;
    record_start(&record);
    CHECK_OK(point_set(&record.point, &axes[AXIS_backend], "new"));
    record.throughput = 5;
    record_write(&record, &line);
    CHECK_OK(store_add(store, text_of(&line), line.length, &record, &id, NULL));
    CHECK_EQUAL_INT(json_get(get(question, 200), "points")->count, 1);
    CHECK_OK(store_remove(store, id));
    CHECK_EQUAL_INT(json_get(get(question, 200), "points")->count, 0);
    text_free(&line);
    store_close(store);
}

CHECK_MAIN
