/* Records as tables. */
#include "base/memory.h"
#include "check.h"
#include "record/tables/table.h"

enum { ROWS = 3 };
static struct record records[ROWS];
static struct table_row rows[ROWS];

/* Two results that differ in batch and time, and one that was skipped. */
static void make_rows(int64_t first_id)
{
    static const char *const batches[ROWS] = {"1", "10", "100"};
    for (int i = 0; i < ROWS; i++) {
        record_start(&records[i]);
        CHECK_OK(point_set(&records[i].point, &axes[AXIS_model], "small"));
        CHECK_OK(point_set(&records[i].point, &axes[AXIS_batch], batches[i]));
        records[i].time_ns.median = 1500 * (i + 1);
        records[i].throughput = 2e6;
        rows[i] = (struct table_row){first_id ? first_id + i : 0, &records[i]};
    }
    records[2].time_ns.median = records[0].parts_ns.update;
    records[2].throughput = records[0].parts_ns.update;
    records[2].status = RECORD_SKIPPED;
    records[2].reason = "too long, \"far\" | too long";
}

static void check_print(enum table_format format, const char *expected)
{
    struct text out = {0};
    CHECK_OK(table_print(rows, ROWS, format, &out));
    CHECK_EQUAL_TEXT(text_of(&out), expected);
    text_free(&out);
}

#define SAID                                                                                       \
    "framework prony, model small, phase training, precision fp32, data synthetic, "               \
    "ingestion resident, unit cpu, threads 1, affinity none, workers 1, nodes 1, "                 \
    "parallelism data, servers 1, scaling weak, optimiser sgd, scenario iterate, fusion on, "      \
    "pages 2m, caches warm, check none\n\n"

TEST(hides_what_does_not_vary)
{
    make_rows(0);
    check_print(TABLE_ALIGNED, SAID "batch  status   time_median        throughput  reason\n"
                                    "    1  ok           1.50 µs  2.00 M samples/s\n"
                                    "   10  ok           3.00 µs  2.00 M samples/s\n"
                                    "  100  skipped                                 "
                                    "too long, \"far\" | too long\n");
}

TEST(markdown)
{
    make_rows(7);
    check_print(TABLE_MARKDOWN,
                SAID "| id | batch | status | time_median | throughput | reason |\n"
                     "|---:|---:|---|---:|---:|---|\n"
                     "| 7 | 1 | ok | 1.50 µs | 2.00 M samples/s |  |\n"
                     "| 8 | 10 | ok | 3.00 µs | 2.00 M samples/s |  |\n"
                     "| 9 | 100 | skipped |  |  | too long, \"far\" \\| too long |\n");
}

/* The floor of the hour has a column where it says something else than the floor. */
TEST(a_slow_hour_is_shown)
{
    make_rows(0);
    records[0].times_floor = records[1].times_floor = 1.53;
    records[0].times_now = 1.5;
    records[1].times_now = 1.1;
    check_print(TABLE_ALIGNED, SAID
                "batch  status   time_median        throughput  times_floor  times_now  reason\n"
                "    1  ok           1.50 µs  2.00 M samples/s         1.53\n"
                "   10  ok           3.00 µs  2.00 M samples/s         1.53       1.10\n"
                "  100  skipped                                                         "
                "too long, \"far\" | too long\n");
}

TEST(csv_has_everything)
{
    struct text out = {0};
    make_rows(0);
    CHECK_OK(table_print(rows, ROWS, TABLE_CSV, &out));
    CHECK(text_starts(text_of(&out), "framework,backend,model,phase,"));
    CHECK(strstr(text_of(&out), ",time_median_ns,") != NULL);
    CHECK(strstr(text_of(&out), "prony,,small,training,fp32,synthetic,resident,10,") != NULL);
    CHECK(strstr(text_of(&out), ",ok,3000,,") != NULL);
    CHECK(text_ends(text_of(&out), "\"too long, \"\"far\"\" | too long\"\n"));
    text_free(&out);
}

TEST(nothing_prints_nothing)
{
    struct text out = {0};
    CHECK_OK(table_print(rows, 0, TABLE_ALIGNED, &out));
    CHECK_EQUAL_INT(out.length, 0);
    text_free(&out);
}

TEST(memory_may_run_out_anywhere)
{
    make_rows(1);
    long nth = 1;
    for (bool done = false; !done && nth < 1000; nth++) {
        struct text out = {0};
        memory_fail_at(nth);
        enum status status = table_print(rows, ROWS, TABLE_MARKDOWN, &out);
        done = !memory_failed();
        memory_fail_at(0);
        CHECK_EQUAL_INT(status, done ? STATUS_OK : STATUS_MEMORY);
        text_free(&out);
    }
    CHECK(nth > 2 && nth < 1000);
}

TEST(formats_have_names)
{
    enum table_format format;
    CHECK(table_format_parse("md", &format) && format == TABLE_MARKDOWN);
    CHECK(!table_format_parse("xml", &format));
}

CHECK_MAIN
