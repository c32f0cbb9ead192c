/* test_store_charts.c: charts, baselines and comparisons get the figures that counting by hand
 * gives. */
#include "stored.h"

#include <math.h>

TEST(charts)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "batch",
                                .y = "time_median",
                                .groups = {"backend"},
                                .group_count = 1,
                                .where = WHERE({"model", "small"}),
                                .aggregate = STORE_BEST};
    fill(store);
    check_chart(store, query,
                "ref/1=300(300..300 n1 u0 c1 #1) ref/10=400(400..900 n3 u1 c1 #3) "
                "simd/9=100(100..100 n1 u0 c1 #5) ");
    query.groups[1] = "model";
    query.group_count = 2;
    query.where = WHERE({"batch", "1"});
    check_chart(store, query,
                "ref+large/1=7000(7000..7000 n1 u0 c1 #6) ref+small/1=300(300..300 n1 u0 c1 #1) ");
    query.group_count = 0;
    query.where = (struct store_where){0};
    query.aggregate = STORE_MEDIAN;
    check_chart(store, query,
                "/1=3650(300..7000 n2 u0 c2 #1) /9=100(100..100 n1 u0 c1 #5) "
                "/10=500(400..900 n3 u1 c1 #2) ");
    query.x = "model";
    query.aggregate = STORE_MAX;
    query.where = WHERE({"batch", "1"});
    check_chart(store, query,
                "/large=7000(7000..7000 n1 u0 c1 #6) /small=300(300..300 n1 u0 c1 #1) ");
    query.y = "throughput"; /* none has it */
    check_chart(store, query, "");
    query.y = "status";
    struct store_chart chart;
    CHECK_STATUS(STATUS_INPUT, store_chart(store, &query, &chart));
    CHECK_MESSAGE("expected a metric");
    enum store_aggregate aggregate;
    CHECK(store_aggregate_parse("mean", &aggregate) && aggregate == STORE_MEAN);
    CHECK(!store_aggregate_parse("worst", &aggregate));
    store_close(store);
}

/* The same on two machines is two configurations; with other software it is one. */
TEST(machines_are_configurations)
{
    static const char *const servers[] = {"one", "other"};
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "model", .y = "time_median", .aggregate = STORE_MAX};
    for (int i = 0; i < 2; i++) {
        struct record record;
        record_start(&record);
        CHECK_OK(point_set(&record.point, &axes[AXIS_model], "small"));
        CHECK_OK(point_set(&record.point, &axes[AXIS_server], servers[i]));
        record.time_ns.median = 300 + 200 * i;
        CHECK_OK(add_record(store, &record, NULL));
    }
    check_chart(store, query, "/small=500(300..500 n2 u2 c2 #2) ");
    query.where = WHERE({"server", "other"});
    struct record newer;
    record_start(&newer);
    CHECK_OK(point_set(&newer.point, &axes[AXIS_model], "small"));
    CHECK_OK(point_set(&newer.point, &axes[AXIS_server], "other"));
    CHECK_OK(point_set(&newer.point, &axes[AXIS_software], "prony 2"));
    newer.time_ns.median = 100;
    CHECK_OK(add_record(store, &newer, NULL));
    check_chart(store, query, "/small=500(100..500 n2 u2 c1 #2) ");
    struct store_chart chart;
    CHECK_OK(store_chart(store, &query, &chart));
    CHECK_EQUAL_INT(chart.differs, (uint64_t)1 << AXIS_software);
    store_chart_free(&chart);
    store_close(store);
}

/* The box of one result is that of its samples, turned round for a rate; of several, theirs. */
TEST(boxes)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "batch", .y = "time_median", .aggregate = STORE_MEDIAN};
    struct store_chart chart;
    add_words(store, "model=a batch=10", 100);
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 1)) {
        CHECK_NEAR(chart.marks[0].box[0], 96, 1e-9);
        CHECK_NEAR(chart.marks[0].box[2], 100, 1e-9);
        CHECK_NEAR(chart.marks[0].box[4], 104, 1e-9);
        CHECK(chart.marks[0].box[1] > 96 && chart.marks[0].box[1] < 100);
        CHECK(chart.marks[0].low >= 96 && chart.marks[0].low < 100);
    }
    store_chart_free(&chart);
    query.y = "throughput";
    if (CHECK_OK(store_chart(store, &query, &chart))) {
        CHECK_NEAR(chart.marks[0].box[0], 10e9 / 104, 1);
        CHECK_NEAR(chart.marks[0].box[4], 10e9 / 96, 1);
    }
    store_chart_free(&chart);
    query.y = "time_min"; /* one figure */
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK(isnan(chart.marks[0].box[0]));
    store_chart_free(&chart);
    add_words(store, "model=b batch=10", 200);
    add_words(store, "model=b batch=10 threads=2", 300);
    query.y = "time_median";
    if (CHECK_OK(store_chart(store, &query, &chart))) {
        CHECK_NEAR(chart.marks[0].y, 200, 1e-9);
        CHECK_NEAR(chart.marks[0].box[1], 150, 1e-9);
        CHECK_EQUAL_INT(chart.marks[0].configurations, 3);
        CHECK_EQUAL_INT(chart.marks[0].differs,
                        (uint64_t)1 << AXIS_model | (uint64_t)1 << AXIS_threads);
        CHECK_EQUAL_INT(chart.marks[0].ids[0], 3);
    }
    store_chart_free(&chart);
    store_close(store);
}

/* Speed-up and efficiency by hand. */
TEST(baselines)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "threads",
                                .y = "time_median",
                                .groups = {"backend"},
                                .group_count = 1,
                                .aggregate = STORE_MEDIAN,
                                .baseline = "threads=1"};
    struct store_chart chart;
    add_words(store, "backend=ref threads=2", 1000);
    add_words(store, "backend=simd threads=1", 400);
    add_words(store, "backend=simd threads=4", 200);
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 3)) {
        CHECK(isnan(chart.marks[0].speedup)); /* ref has no point at one thread */
        CHECK_NEAR(chart.marks[1].speedup, 1, 1e-9);
        CHECK_NEAR(chart.marks[2].speedup, 2, 1e-9);
        CHECK_NEAR(chart.marks[2].efficiency, 0.5, 1e-9);
        CHECK(chart.marks[2].speedup_low < 2 && chart.marks[2].speedup_high > 2);
    }
    store_chart_free(&chart);
    query.baseline = "first";
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK_NEAR(chart.marks[0].speedup, 1, 1e-9);
    store_chart_free(&chart);
    query.baseline = "backend=ref threads=2";
    query.y = "throughput"; /* the other way round, the same speed-up */
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK_NEAR(chart.marks[2].speedup, 5, 1e-9);
    store_chart_free(&chart);
    query.baseline = "model=a";
    CHECK_STATUS(STATUS_INPUT, store_chart(store, &query, &chart));
    CHECK_MESSAGE("expected x or an axis of the groups");
    store_close(store);
}

/* Strong scaling reads the batch as that of all; one worker scales either way. */
TEST(scaling_reads_the_batch)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    add_words(store, "workers=1 batch=64", 100);
    add_words(store, "workers=2 batch=32 scaling=strong", 60);
    add_words(store, "workers=2 batch=64 scaling=weak", 110);
    CHECK_EQUAL_INT(count(store, WHERE({"scaling", "strong"}, {"batch", "64"})), 2);
    CHECK_EQUAL_INT(count(store, WHERE({"scaling", "weak"}, {"batch", "64"})), 2);
    CHECK_EQUAL_INT(count(store, WHERE({"scaling", "strong"}, {"batch", "32"})), 0);
    struct store_query query = {.x = "workers",
                                .y = "time_median",
                                .where = WHERE({"scaling", "weak"}),
                                .baseline = "first"};
    struct store_chart chart;
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 2)) {
        CHECK_NEAR(chart.marks[1].ideal, 1, 1e-9); /* at best it takes as long */
        CHECK_NEAR(chart.marks[1].efficiency, 100.0 / 110, 1e-9);
    }
    store_chart_free(&chart);
    store_close(store);
}

/* The newest of the same configuration are matched; the verdict is that of the intervals. */
TEST(compares)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_matches matches;
    add_words(store, "model=a batch=1 framework=prony backend=simd", 900);
    add_words(store, "model=a batch=1 framework=prony backend=simd", 100);
    add_words(store, "model=a batch=1 framework=numpy", 200);
    add_words(store, "model=a batch=2 framework=prony backend=simd", 300);
    add_words(store, "model=a batch=2 framework=numpy", 300);
    add_words(store, "model=a batch=4 framework=numpy", 1);
    struct store_opposed question = {
        .a = WHERE({"framework", "prony"}), .b = WHERE({"framework", "numpy"}), .y = "time_median"};
    if (CHECK_OK(store_compare(store, &question, &matches)) && CHECK(matches.count == 2)) {
        CHECK_NEAR(matches.list[0].found.ratio, 0.5, 1e-9);
        CHECK_EQUAL_INT(matches.list[0].found.verdict, VERDICT_FASTER);
        CHECK_EQUAL_INT(matches.list[0].a.id, 2);
        CHECK_EQUAL_INT(matches.list[1].found.verdict, VERDICT_UNKNOWN); /* wide intervals */
        CHECK_EQUAL_INT(matches.only_b, 1);
        CHECK_EQUAL_INT(matches.axes, (uint64_t)1 << AXIS_batch);
    }
    store_matches_free(&matches);
    question.y = "throughput";
    if (CHECK_OK(store_compare(store, &question, &matches)))
        CHECK_NEAR(matches.list[0].found.ratio, 0.5, 1e-9);
    store_matches_free(&matches);
    store_close(store);
}

/* What only one of the two phases has need not be the same. */
TEST(compares_phases)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_matches matches;
    add_words(store, "model=a batch=1 phase=training optimiser=adam", 300);
    add_words(store, "model=a batch=1 phase=inference", 100);
    struct store_opposed question = {
        .a = WHERE({"phase", "training"}), .b = WHERE({"phase", "inference"}), .y = "time_median"};
    if (CHECK_OK(store_compare(store, &question, &matches)) && CHECK(matches.count == 1))
        CHECK_NEAR(matches.list[0].found.ratio, 3, 1e-9);
    store_matches_free(&matches);
    store_close(store);
}

/* Series whose results must be alike are as many as there are ways to be so. */
TEST(keeps_unlike_results_apart)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "batch", .y = "time_median"};
    struct store_chart chart;
    add_words(store, "model=a batch=1 precision=fp32", 300);
    add_words(store, "model=a batch=2 precision=fp32", 400);
    add_words(store, "model=a batch=1 precision=bf16", 100);
    query.alike = (uint64_t)1 << AXIS_precision | (uint64_t)1 << AXIS_phase;
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 3)) {
        CHECK(store_same_series(&chart.marks[0], &chart.marks[1], &query));
        CHECK(!store_same_series(&chart.marks[1], &chart.marks[2], &query));
        CHECK_NEAR(chart.marks[2].y, 100, 1e-9);
        CHECK_EQUAL_INT(chart.parted, (uint64_t)1 << AXIS_precision);
    }
    store_chart_free(&chart);
    query.alike = 0;
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK_EQUAL_INT(chart.count, 2);
    store_chart_free(&chart);
    store_close(store);
}

/* Who asks for nothing has what was measured; simulated results come by a filter or a group. */
TEST(keeps_simulated_results_apart)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "workers", .y = "time_median"};
    struct store_chart chart;
    add_words(store, "model=a workers=1", 300);
    add_words(store, "model=a workers=2", 200);
    add_words(store, "model=a workers=2 origin=simulated", 150);
    add_words(store, "model=a workers=4 origin=simulated", 75);
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 2))
        CHECK_NEAR(chart.marks[1].y, 200, 1e-9);
    store_chart_free(&chart);
    query.groups[query.group_count++] = "origin";
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 4))
        CHECK(!store_same_series(&chart.marks[1], &chart.marks[2], &query));
    store_chart_free(&chart);
    query.group_count = 0;
    query.where = WHERE({"origin", "simulated"});
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK_EQUAL_INT(chart.count, 2);
    store_chart_free(&chart);
    store_close(store);
}

/* Every axis has so many values that all of them together are more than a number of 64 bits. */
TEST(compares_what_differs_in_everything)
{
    enum { PAIRS = 24 };
    static const char *const makers[] = {"prony", "numpy"};
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_matches matches;
    for (int i = 0; i < 2 * PAIRS; i++) {
        struct record record;
        char value[16];
        record_start(&record);
        snprintf(value, sizeof value, "%d", i / 2 + 1);
        for (size_t k = 0; k < AXIS_COUNT; k++)
            if (k != AXIS_origin) /* what was not measured is compared only where it is asked for */
                CHECK_OK(point_set(&record.point, &axes[k], value));
        CHECK_OK(point_set(&record.point, &axes[AXIS_framework], makers[i % 2]));
        record.time_ns.median = i % 2 ? 200 : i / 2 + 1;
        CHECK_OK(add_record(store, &record, NULL));
    }
    struct store_opposed question = {
        .a = WHERE({"framework", "prony"}), .b = WHERE({"framework", "numpy"}), .y = "time_median"};
    if (CHECK_OK(store_compare(store, &question, &matches)) && CHECK(matches.count == PAIRS)) {
        CHECK_EQUAL_INT(matches.only_a + matches.only_b, 0);
        CHECK_EQUAL_TEXT(matches.list[0].values[AXIS_batch], "1");
        for (int i = 0; i < PAIRS; i++) {
            const struct store_match *match = &matches.list[i];
            CHECK_NEAR(match->found.ratio, strtod(match->values[AXIS_batch], NULL) / 200, 1e-9);
        }
    }
    store_matches_free(&matches);
    store_close(store);
}

static void add_time(struct store *store, const char *framework, double median,
                     const char *handicap)
{
    struct record record;
    record_start(&record);
    CHECK_OK(point_set(&record.point, &axes[AXIS_model], "net"));
    CHECK_OK(point_set(&record.point, &axes[AXIS_framework], framework));
    record.time_ns.median = median;
    record.check.verdict = RECORD_RIGHT;
    record.handicap = handicap;
    CHECK_OK(add_record(store, &record, NULL));
}

/* Nothing is concluded from what did not run as its users run it; it is drawn with its reason. */
TEST(marks_the_handicapped)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "framework", .y = "time_median", .aggregate = STORE_BEST};
    const struct store_opposed question = {
        .a = WHERE({"framework", "prony"}), .b = WHERE({"framework", "numpy"}), .y = "time_median"};
    struct store_chart chart;
    struct store_matches matches;
    add_time(store, "numpy", 900, "reference BLAS (netlib)");
    add_time(store, "prony", 100, NULL);
    query.baseline = "framework=numpy";
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 2)) {
        CHECK_EQUAL_TEXT(chart.marks[0].handicap, "reference BLAS (netlib)");
        CHECK(!chart.marks[1].handicap && isnan(chart.marks[1].speedup));
    }
    store_chart_free(&chart);
    query.fair = true;
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 1))
        CHECK_EQUAL_TEXT(chart.left_out, "numpy: reference BLAS (netlib)");
    store_chart_free(&chart);
    if (CHECK_OK(store_compare(store, &question, &matches))) {
        CHECK_EQUAL_INT(matches.count, 0);
        CHECK_EQUAL_INT(matches.handicapped, 1);
    }
    store_matches_free(&matches);
    query.fair = false;
    add_time(store, "numpy", 300, NULL); /* now there is a fair one, however slow */
    add_time(store, "numpy", 30, "debug build");
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 2)) {
        CHECK(!chart.marks[0].handicap);
        CHECK_NEAR(chart.marks[0].y, 300, 1e-9);
        CHECK_NEAR(chart.marks[1].speedup, 3, 1e-9);
    }
    store_chart_free(&chart);
    if (CHECK_OK(store_compare(store, &question, &matches)) && CHECK(matches.count == 1))
        CHECK_NEAR(matches.list[0].found.ratio, 1.0 / 3, 1e-9);
    store_matches_free(&matches);
    store_close(store);
}

CHECK_MAIN
