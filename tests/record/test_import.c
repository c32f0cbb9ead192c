/* Results of other tools become records with what they say, and with nothing else. */
#include "check.h"

#include "base/memory.h"
#include "record/import.h"
#include "record/record.h"

#include <math.h>

enum { MOST = 8 };
struct seen {
    struct record records[MOST]; /* their texts are not valid any more */
    char at[MOST][40], reason[MOST][40];
    int count;
};

static enum status see(void *context, const struct record *record, const char *line, size_t length)
{
    struct seen *seen = context;
    (void)line;
    (void)length;
    if (seen->count < MOST) {
        snprintf(seen->at[seen->count], sizeof seen->at[0], "%s", record->at ? record->at : "");
        snprintf(seen->reason[seen->count], sizeof seen->reason[0], "%s",
                 record->reason ? record->reason : "");
        seen->records[seen->count++] = *record;
    }
    return STATUS_OK;
}

static struct seen import(const char *text)
{
    struct seen seen = {0};
    struct text lines = {0};
    bool foreign;
    if (CHECK_OK(import_lines("file", text, strlen(text), &foreign, &lines)) && foreign)
        CHECK_OK(record_read_all("lines", text_of(&lines), lines.length, see, &seen));
    text_free(&lines);
    return seen;
}

TEST(hyperfine)
{
    struct seen seen = import("{\"results\":[{\"command\":\"sleep 0.1\",\"mean\":0.2,"
                              "\"times\":[0.1,0.3,0.2],\"exit_codes\":[0,0,0]},"
                              "{\"command\":\"true\",\"times\":[0.001,-1,0]}]}");
    if (!CHECK_EQUAL_INT(seen.count, 2))
        return;
    CHECK_EQUAL_TEXT(seen.records[0].point.model, "sleep 0.1");
    CHECK_EQUAL_TEXT(seen.records[0].point.framework, "command");
    CHECK_NEAR(seen.records[0].time_ns.median, 2e8, 1);
    CHECK_EQUAL_INT(seen.records[0].time_ns.count, 3);
    CHECK_NEAR(seen.records[1].time_ns.median, 1e6, 1);
    CHECK_EQUAL_INT(seen.records[1].time_ns.count, 1);
}

TEST(hyperfine_commands_that_failed_or_are_long)
{
    char text[1200], long_one[401], other[401];
    memset(long_one, 'a', 400);
    memset(other, 'a', 400);
    long_one[400] = other[400] = '\0';
    other[399] = 'b';
    snprintf(text, sizeof text,
             "{\"results\":[{\"command\":\"false\",\"times\":[0.1,0.2],\"exit_codes\":[1,null]},"
             "{\"command\":\"half\",\"times\":[0.1,0.2],\"exit_codes\":[1,0]},"
             "{\"command\":\"%s\",\"times\":[1]},{\"command\":\"%s\",\"times\":[1]}]}",
             long_one, other);
    struct seen seen = import(text);
    CHECK_EQUAL_INT(seen.count, 4);
    CHECK_EQUAL_INT(seen.records[0].status, RECORD_FAILED);
    CHECK(strstr(seen.reason[0], "ended with a status") != NULL);
    CHECK_EQUAL_INT(seen.records[1].status, RECORD_OK);
    CHECK_NEAR(seen.records[1].time_ns.median, 2e8, 1);
    CHECK(strcmp(seen.records[2].point.model, seen.records[3].point.model) != 0);
}

TEST(google_benchmark)
{
    struct seen seen = import(
        "{\"context\":{\"host_name\":\"box\"},\"benchmarks\":["
        "{\"name\":\"BM_a/8\",\"run_name\":\"BM_a/8\",\"run_type\":\"iteration\",\"iterations\":100,"
        "\"real_time\":2.5,\"time_unit\":\"us\",\"threads\":2},"
        "{\"name\":\"BM_a/8\",\"run_name\":\"BM_a/8\",\"run_type\":\"iteration\",\"iterations\":100,"
        "\"real_time\":3.5,\"time_unit\":\"us\",\"threads\":2},"
        "{\"name\":\"BM_a/8_mean\",\"run_name\":\"BM_a/8\",\"run_type\":\"aggregate\","
        "\"iterations\":2,\"real_time\":99,\"time_unit\":\"us\",\"threads\":2},"
        "{\"name\":\"BM_b\",\"iterations\":10,\"real_time\":7,\"time_unit\":\"ns\"}]}");
    if (!CHECK_EQUAL_INT(seen.count, 2))
        return;
    CHECK_EQUAL_TEXT(seen.records[0].point.model, "BM_a/8");
    CHECK_EQUAL_TEXT(seen.records[0].point.server, "box");
    CHECK_EQUAL_INT(seen.records[0].point.threads, 2);
    CHECK_NEAR(seen.records[0].time_ns.median, 3000, 1e-6);
    CHECK_EQUAL_INT(seen.records[0].time_ns.count, 2);
    CHECK_EQUAL_INT(seen.records[0].time_ns.per, 100);
    CHECK(isnan(seen.records[0].throughput)); /* of what, it does not say */
    CHECK_NEAR(seen.records[1].time_ns.median, 7, 1e-9);
    CHECK_EQUAL_INT(seen.records[1].time_ns.per, 10);
}

TEST(google_benchmarks_that_failed)
{
    struct seen seen = import(
        "{\"context\":{},\"benchmarks\":["
        "{\"name\":\"BM_bad\",\"run_type\":\"iteration\",\"error_occurred\":true,"
        "\"error_message\":\"no device\",\"iterations\":0,\"real_time\":0,\"time_unit\":\"ns\"},"
        "{\"name\":\"BM_good\",\"run_type\":\"iteration\",\"iterations\":3,"
        "\"real_time\":5,\"time_unit\":\"ms\"},"
        "{\"name\":\"BM_odd\",\"run_type\":\"iteration\",\"iterations\":3,"
        "\"real_time\":5,\"time_unit\":\"h\"}]}");
    if (!CHECK_EQUAL_INT(seen.count, 3))
        return;
    CHECK_EQUAL_INT(seen.records[2].status, RECORD_FAILED);
    CHECK_EQUAL_INT(seen.records[0].status, RECORD_FAILED);
    CHECK_EQUAL_TEXT(seen.reason[0], "no device");
    CHECK_EQUAL_INT(seen.records[1].status, RECORD_OK);
    CHECK_NEAR(seen.records[1].time_ns.median, 5e6, 1e-3);
    CHECK_EQUAL_INT(seen.records[1].time_ns.per, 3);
}

TEST(llama_bench)
{
    struct seen seen =
        import("[{\"model_type\":\"llama 7B Q4_0\",\"cpu_info\":\"some CPU\",\"backends\":\"CPU\","
               "\"n_threads\":8,\"n_prompt\":512,\"n_gen\":0,\"avg_ns\":100,"
               "\"test_time\":\"2026-01-02T03:04:05Z\",\"samples_ns\":[90,100,110]},"
               "{\"model_type\":\"llama 7B Q4_0\",\"n_prompt\":0,\"n_gen\":128,\"avg_ns\":1280,"
               "\"samples_ns\":[1280]},"
               "{\"model_type\":\"llama 7B Q4_0\",\"n_prompt\":384,\"n_gen\":128,\"avg_ns\":200,"
               "\"avg_ts\":2560000000,\"samples_ns\":[200]}]");
    if (!CHECK_EQUAL_INT(seen.count, 3))
        return;
    CHECK_EQUAL_INT(seen.records[0].point.batch, 512);
    CHECK_EQUAL_INT(seen.records[0].point.threads, 8);
    CHECK_NEAR(seen.records[0].throughput, 512 / 100e-9, 1);
    CHECK_EQUAL_TEXT(seen.at[0], "2026-01-02T03:04:05Z");
    CHECK_EQUAL_INT(seen.records[1].point.batch, 1);
    CHECK_NEAR(seen.records[1].time_ns.median, 10, 1e-9);
    CHECK_EQUAL_INT(seen.records[1].time_ns.per, 128);
    CHECK_NEAR(seen.records[2].throughput, 512 / 200e-9, 1); /* as its own avg_ts */
}

/* Counts that no run can have are as if they were not given, and nothing overflows. */
TEST(counts_beyond_reason)
{
    struct seen seen = import("[{\"n_prompt\":9223372036854775807,\"n_gen\":9223372036854775807,"
                              "\"n_threads\":-3,\"avg_ns\":1,\"samples_ns\":[5]},"
                              "{\"n_prompt\":512,\"n_gen\":-9223372036854775807,\"avg_ns\":1,"
                              "\"samples_ns\":[5]}]");
    if (!CHECK_EQUAL_INT(seen.count, 2))
        return;
    CHECK_EQUAL_INT(seen.records[0].point.batch, 1);
    CHECK_EQUAL_INT(seen.records[0].point.threads, 0);
    CHECK_EQUAL_INT(seen.records[1].point.batch, 512);
}

TEST(llama_bench_line_by_line)
{
    struct seen seen = import("{\"model_type\":\"llama 7B\",\"n_threads\":8,\"n_prompt\":512,"
                              "\"n_gen\":0,\"avg_ns\":100,\"samples_ns\":[90,100,110]}\n"
                              "{\"model_type\":\"llama 7B\",\"n_prompt\":0,\"n_gen\":128,"
                              "\"avg_ns\":1280,\"samples_ns\":[1280]}\n\n");
    if (!CHECK_EQUAL_INT(seen.count, 2))
        return;
    CHECK_EQUAL_INT(seen.records[0].time_ns.count, 3);
    CHECK_NEAR(seen.records[1].time_ns.median, 10, 1e-9);
    CHECK_EQUAL_INT(import("{\"avg_ns\":1,\"n_gen\":1,\"samples_ns\":[5]}").count, 1);
    CHECK_EQUAL_INT(import("{\"prony\":1,\"kind\":\"result\"}\n{\"avg_ns\":1}\n").count, 0);

    CHECK_EQUAL_INT(import("{\"avg_ns\":1,\"samples_ns\":[5]}\n{\"avg_ns\":1,").count, 1);

    struct text lines = {0};
    bool foreign;
    static const char cut[] = "{\"avg_ns\":1,\"samples_ns\":[5]}\n{\"avg_ns\":1,\n{}\n";
    CHECK_STATUS(STATUS_INPUT, import_lines("file", cut, strlen(cut), &foreign, &lines));
    CHECK_MESSAGE("file: line:2");
    text_free(&lines);
}

TEST(dlbs_logs)
{
    struct seen seen = import("2018-03-01 starting\n__exp.framework__=\"tensorflow\"\n"
                              "__exp.model__=\"resnet50\"\n__exp.phase__= \"training\"\n"
                              "__exp.replica_batch__=16\n__exp.replica_batch__=32\n"
                              "noise __results.time__=250.5 \n__broken__={\n"
                              "__results.time_data__=[200.0, 300.0]\n");
    if (!CHECK_EQUAL_INT(seen.count, 1))
        return;
    CHECK_EQUAL_TEXT(seen.records[0].point.framework, "tensorflow");
    CHECK_EQUAL_TEXT(seen.records[0].point.model, "resnet50");
    CHECK_EQUAL_INT(seen.records[0].point.batch, 32);
    CHECK_EQUAL_INT(seen.records[0].time_ns.count, 2);
    CHECK_NEAR(seen.records[0].time_ns.median, 250e6, 1);
    seen = import("__exp.model__=\"alexnet\"\n__results.time__=-1\n");
    CHECK_EQUAL_INT(seen.count, 1);
    CHECK_EQUAL_INT(seen.records[0].status, RECORD_FAILED);
}

TEST(what_is_ours_or_nothing_is_left_alone)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "{}",
                                        "[]",
                                        "null",
                                        "{\"prony\":1}\n{\"prony\":1}\n",
                                        "{\"prony\":1,\"kind\":\"result\"}",
                                        "some text"};
    struct text lines = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool foreign = true;
        CHECK_OK(import_lines("file", texts[i], strlen(texts[i]), &foreign, &lines));
        CHECK(!foreign);
    }
    CHECK_EQUAL_INT(lines.length, 0);
    text_free(&lines);
}

TEST(every_failed_allocation_is_survived)
{
    static const char text[] = "__exp.model__=\"a\"\n__results.time_data__=[1, 2]\n";
    bool failed = true, foreign;
    for (long nth = 1; failed && nth < 1000; nth++) {
        struct text lines = {0};
        memory_fail_at(nth);
        enum status status = import_lines("file", text, strlen(text), &foreign, &lines);
        failed = memory_failed();
        memory_fail_at(0);
        CHECK(failed ? status == STATUS_MEMORY : status == STATUS_OK);
        text_free(&lines);
    }
    CHECK(!failed);
}

CHECK_MAIN
