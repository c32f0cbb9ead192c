/* Points, records and their lines, the facts that go with them. */
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "record/facts.h"
#include "record/names.h"
#include "record/record.h"
#include "record/version.h"

#include <math.h>

static const char golden[] = "tests/golden/record.jsonl";

static const char *const kernels[] = {"dense_f32_ref", "sigmoid_f32_ref"};
static const struct record_meter meters[] = {{"cpu_utilisation", 99.5, NULL},
                                             {"energy", 0, "no RAPL here"}};

static const struct json *tree(struct arena *arena, const char *text)
{
    struct json *parsed = NULL;
    CHECK_OK(json_parse(arena, "tree", text, strlen(text), &parsed));
    return parsed;
}

/* The record whose line is the first of the golden file. */
static void make_record(struct arena *arena, struct record *record)
{
    static const double samples[] = {1500, 1400, 1600, 1450.5, 1550, 1500, 1525};
    record_start(record);
    CHECK_OK(point_set(&record->point, &axes[AXIS_model], "small"));
    CHECK_OK(point_set(&record->point, &axes[AXIS_backend], "ref"));
    CHECK_OK(point_set(&record->point, &axes[AXIS_batch], "3"));
    point_settle(&record->point);
    record->program = "0123456789abcdef";
    record->kernels = kernels;
    record->kernel_count = 2;
    record->floor_ns = 500;
    record->bound = "latency";
    record->flop = 312;
    record->bytes = 744;
    record->parts_ns.forward = 600;
    record->start_ns = 25000;
    record->check = (struct record_check){RECORD_RIGHT, "ref", 1e-7, 1e-5, NULL};
    record->meters = meters;
    record->meter_count = 2;
    record->machine = tree(arena, "{\"server\":\"here\",\"cores\":2}");
    record->software = tree(arena, "{\"prony\":\"0.1.0\",\"commit\":\"abc\"}");
    record->at = "2026-11-15T10:03:58Z";
    CHECK_OK(record_measure(record, arena, samples, 7, 1));
}

TEST(point_starts_as_the_table_says)
{
    struct point point;
    char buffer[POINT_NUMBER];
    point_start(&point);
    CHECK_EQUAL_TEXT(point.framework, "prony");
    CHECK_EQUAL_INT(point.batch, 1);
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        CHECK_EQUAL_TEXT(point_get(&point, &axes[i], buffer), axes[i].otherwise);
        if (axes[i].otherwise[0])
            CHECK_OK(axis_check(&axes[i], axes[i].otherwise));
    }
}

TEST(point_settles_what_does_not_apply)
{
    struct point a, b;
    point_start(&a);
    CHECK_OK(point_set(&a, &axes[AXIS_phase], "inference"));
    b = a;
    CHECK_OK(point_set(&b, &axes[AXIS_optimiser], "adam"));
    CHECK(point_compare(&a, &b) != 0);
    CHECK_EQUAL_INT(point_compare(&a, &b) < 0, point_compare(&b, &a) > 0);
    point_settle(&a);
    point_settle(&b);
    CHECK_EQUAL_INT(point_compare(&a, &b), 0);
    CHECK_EQUAL_TEXT(a.optimiser, "");
    CHECK_EQUAL_TEXT(a.scaling, "");
    CHECK_EQUAL_INT(a.threads, 1);
    CHECK_OK(point_set(&a, &axes[AXIS_unit], "gpu"));
    CHECK_OK(point_set(&a, &axes[AXIS_workers], "2"));
    CHECK(!point_applies(&a, &axes[AXIS_threads]) && point_applies(&a, &axes[AXIS_scaling]));
}

TEST(choices_are_found_by_name)
{
    struct point point;
    point_start(&point);
    CHECK(point_is(&point, CHOICE_phase_training) && !point_is(&point, CHOICE_phase_inference));
    point_choose(&point, CHOICE_data_real_dram);
    CHECK_EQUAL_TEXT(point.data, "real/dram");
    CHECK_EQUAL_INT(choice_find(AXIS_scenario, "resident"), CHOICE_scenario_resident);
    CHECK_EQUAL_INT(choice_find(AXIS_phase, "resident"), CHOICE_COUNT);
    for (int i = 0; i < CHOICE_COUNT; i++)
        for (int k = 0; k < AXIS_COUNT; k++)
            if (choice_find((enum axis_index)k, choice_name((enum choice)i)) == (enum choice)i)
                CHECK_OK(axis_check(&axes[k], choice_name((enum choice)i)));
}

TEST(axes_refuse_with_help)
{
    const struct axis *axis;
    struct point point;
    point_start(&point);
    CHECK_OK(axis_need("batch", &axis));
    CHECK(axis == &axes[AXIS_batch]);
    CHECK_STATUS(STATUS_INPUT, axis_need("bacth", &axis));
    CHECK_MESSAGE("did you mean \"batch\"");
    CHECK_STATUS(STATUS_INPUT, axis_check(&axes[AXIS_phase], "train"));
    CHECK_MESSAGE("training|inference");
    CHECK_STATUS(STATUS_INPUT, axis_check(&axes[AXIS_phase], "training|inference"));
    CHECK_STATUS(STATUS_INPUT, axis_check(&axes[AXIS_batch], "0"));
    CHECK_OK(axis_check(&axes[AXIS_model], "anything"));
    CHECK_STATUS(STATUS_INPUT, point_set(&point, &axes[AXIS_batch], "1.5"));
    CHECK_MESSAGE("batch: found \"1.5\"");
    char text[POINT_TEXT + 1];
    memset(text, 'x', POINT_TEXT);
    text[POINT_TEXT] = '\0';
    CHECK_STATUS(STATUS_INPUT, point_set(&point, &axes[AXIS_model], text));
    CHECK_MESSAGE("at most 255");
    text[POINT_TEXT - 1] = '\0';
    CHECK_OK(point_set(&point, &axes[AXIS_model], text));
}

TEST(point_has_a_label)
{
    struct point point;
    struct text label = {0};
    point_start(&point);
    CHECK_OK(point_set(&point, &axes[AXIS_model], "large"));
    CHECK_OK(point_set(&point, &axes[AXIS_backend], "simd"));
    CHECK_OK(point_set(&point, &axes[AXIS_threads], "2"));
    point_label(&point, &label);
    CHECK_EQUAL_TEXT(text_of(&label),
                     "large training, batch 1, fp32, prony/simd on cpu, 2 threads");
    text_free(&label);
}

/* What queries wait for each other is no time of the work. */
TEST(a_queue_has_no_rate_of_work)
{
    static const char *const none[] = {"times_floor", "best_times_floor",  "flop_rate",
                                       "byte_rate",   "throughput_ci_low", "throughput_ci_high"};
    struct arena arena = {0};
    struct record record;
    make_record(&arena, &record);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(!isnan(record_metric(&record, metric_find(none[i]))));
    CHECK_OK(point_set(&record.point, &axes[AXIS_scenario], "server"));
    record_compare_floor(&record);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(isnan(record_metric(&record, metric_find(none[i]))));
    CHECK_NEAR(record_metric(&record, metric_find("time_median")), 1500, 0);
    arena_free(&arena);
}

/* What memory gave in the hour: at least what was moved, at most what it ever gave. */
TEST(the_hour_is_between_the_floor_and_the_work)
{
    struct arena arena = {0};
    struct record record, back;
    struct text line = {0};
    make_record(&arena, &record);
    CHECK(isnan(record.times_now) && !record_slow_hour(&record)); /* of a record from before, too */
    record_compare_hour(&record, 1000);
    CHECK_NEAR(record.times_now, 1.5, 0);
    CHECK(record_slow_hour(&record));
    record_write(&record, &line);
    CHECK_OK(record_read(&arena, "line", 1, text_of(&line), line.length, &back));
    CHECK_NEAR(back.times_now, 1.5, 0);
    record_compare_hour(&record, 1600);
    CHECK_NEAR(record.times_now, 1, 0);
    record_compare_hour(&record, 400);
    CHECK_NEAR(record.times_now, 3, 0);
    record_compare_hour(&record, 510); /* 3 and 2.94 */
    CHECK(!record_slow_hour(&record));
    CHECK_OK(point_set(&record.point, &axes[AXIS_scenario], "server"));
    record_compare_hour(&record, 1000);
    CHECK(isnan(record.times_now));
    text_free(&line);
    arena_free(&arena);
}

/* A share of the limit is 100 % at most; what is faster says nothing. */
TEST(the_share_of_the_limit)
{
    struct record record;
    record_start(&record);
    CHECK(isnan(record_metric(&record, metric_find("of_limit"))));
    record.times_floor = 1.25;
    CHECK_NEAR(record_metric(&record, metric_find("of_limit")), 80, 1e-9);
    record.times_now = 1.1;
    CHECK_NEAR(record_metric(&record, metric_find("of_limit")), 100 / 1.1, 1e-9);
    record.times_now = 0.97;
    CHECK_NEAR(record_metric(&record, metric_find("of_limit")), 100, 0);
    record.times_now = 0.9;
    CHECK(isnan(record_metric(&record, metric_find("of_limit"))));
}

TEST(what_disturbs_is_told_by_the_meters)
{
    static const char four[] = "{\"cores\":4}";
    struct record_meter rows[] = {{"other_load", 0.1, NULL}, {"steal", 0.5, NULL}};
    struct arena arena = {0};
    struct json *machine;
    struct record record;
    record_start(&record);
    CHECK_EQUAL_TEXT(record_disturbed(&record), "");
    record.meters = rows;
    record.meter_count = 2;
    CHECK_EQUAL_TEXT(record_disturbed(&record), "");
    rows[1].value = 2;
    CHECK_EQUAL_TEXT(record_disturbed(&record), "");
    rows[1].value = 6;
    CHECK_EQUAL_TEXT(record_disturbed(&record), "the host");
    rows[1].unavailable = "it was too short";
    CHECK_EQUAL_TEXT(record_disturbed(&record), "");
    rows[0].value = 0.5;
    CHECK_EQUAL_TEXT(record_disturbed(&record), "other programs");
    CHECK_OK(json_parse(&arena, "machine", four, strlen(four), &machine));
    record.machine = machine; /* with a core to spare */
    record.point.threads = 2;
    CHECK_EQUAL_TEXT(record_disturbed(&record), "");
    record.point.threads = 3;
    CHECK_EQUAL_TEXT(record_disturbed(&record), "other programs");
    arena_free(&arena);
}

TEST(a_shared_gpu_disturbs)
{
    struct record_meter rows[] = {{"gpu_others", 1, NULL}, {"gpu_others_busy", 40, NULL}};
    struct record record;
    record_start(&record);
    record.meters = rows;
    record.meter_count = 2;
    CHECK_EQUAL_TEXT(record_disturbed(&record), ""); /* it ran on the CPU */
    CHECK_OK(point_set(&record.point, &axes[AXIS_unit], "gpu"));
    CHECK_EQUAL_TEXT(record_disturbed(&record), "other programs on the GPU");
    CHECK_EQUAL_TEXT(record_crowded(&record, 64), "other programs on the GPU");
    rows[1].value = 0; /* they did nothing */
    CHECK_EQUAL_TEXT(record_disturbed(&record), "");
    rows[1].unavailable = "the driver does not tell";
    CHECK_EQUAL_TEXT(record_disturbed(&record), "other programs on the GPU");
    record.meter_count = 1; /* a record of before it was told */
    CHECK_EQUAL_TEXT(record_disturbed(&record), "other programs on the GPU");
    rows[0].value = 0;
    CHECK_EQUAL_TEXT(record_disturbed(&record), "");
}

TEST(frameworks_have_titles)
{
    CHECK_EQUAL_TEXT(framework_title("pytorch"), "PyTorch");
    CHECK_EQUAL_TEXT(framework_title("python-list"), "a Python list");
    CHECK_EQUAL_TEXT(framework_title("./mine.py"), "./mine.py");
}

TEST(measure_fills_what_follows)
{
    struct arena arena = {0};
    struct record record;
    make_record(&arena, &record);
    CHECK_NEAR(record.time_ns.median, 1500, 0);
    CHECK_NEAR(record.throughput, 3 / 1500e-9, 1e-6);
    CHECK_NEAR(record.times_floor, 3, 0);
    CHECK_NEAR(record.best_times_floor, 2.8, 1e-12);
    CHECK_EQUAL_INT(record.sample_count, 7);
    CHECK_NEAR(record_metric(&record, metric_find("flop_rate")), 312 / 1500e-9, 1e-3);
    CHECK_NEAR(record_metric(&record, metric_find("cpu_utilisation")), 99.5, 0);
    CHECK(isnan(record_metric(&record, metric_find("energy"))));
    CHECK(isnan(record_metric(&record, metric_find("time_p99"))));
    char buffer[TITLE_TEXT];
    CHECK_EQUAL_TEXT(record_derived(&record, &deriveds[DERIVED_effective_batch], buffer), "3");
    CHECK_EQUAL_TEXT(record_derived(&record, &deriveds[DERIVED_commit], buffer), "abc");
    arena_free(&arena);
}

/* The golden line is from before: an axis that it does not have was added since, and is emptied. */
static void forget_new_axes(struct point *point, const char *line)
{
    for (int i = 0; i < AXIS_COUNT; i++) {
        char key[POINT_TEXT];
        snprintf(key, sizeof key, "\"%s\":", axes[i].key);
        if (!strstr(line, key))
            CHECK_OK(point_set(point, &axes[i], ""));
    }
}

/* Parts that were scaled down say so; others say nothing of it. */
TEST(parts_say_whether_they_were_scaled)
{
    struct arena arena = {0};
    struct record record, again;
    struct text line = {0};
    make_record(&arena, &record);
    record_write(&record, &line);
    CHECK(strstr(text_of(&line), "\"scaled\"") == NULL);
    text_clear(&line);
    record.parts_ns.scaled = 0.25;
    record_write(&record, &line);
    if (CHECK_OK(record_read(&arena, "line", 1, text_of(&line), line.length, &again)))
        CHECK_NEAR(again.parts_ns.scaled, 0.25, 0);
    text_free(&line);
    arena_free(&arena);
}

/* The stages of an iteration and what is left of it add up; a record from before they were watched
 * says nothing of them, and its parts say how long the unit computes. */
TEST(stages_add_up_or_are_not_there)
{
    const struct record_meter stages[] = {
        {"copy_bytes", 1000, NULL}, {"staged_iteration", 10e6, NULL}, {"gather", 4e6, NULL},
        {"copy", 2e6, NULL},        {"compute", 5e6, NULL},           {"gather_overlap", 75, NULL},
        {"copy_overlap", 50, NULL}};
    struct record record = {.meters = stages, .meter_count = sizeof stages / sizeof *stages};
    record.parts_ns = (struct record_parts){
        .prepare = 5e6, .forward = 3e6, .backward = (double)NAN, .update = (double)NAN};
    record.time_ns.median = 6e6;
    CHECK_NEAR(record_metric(&record, metric_find("idle")), 10e6 - 1e6 - 1e6 - 5e6, 1e-3);
    CHECK_NEAR(record_metric(&record, metric_find("copy_rate")), 1000 / 2e-3, 1e-3);
    CHECK_NEAR(record_metric(&record, metric_find("compute_per_copy")), 2.5, 1e-12);
    CHECK_NEAR(record_metric(&record, metric_find("compute_share")), 50, 1e-9);
    record.meter_count = 1;
    for (const char *const *key =
             (const char *const[]){"copy", "gather", "copy_overlap", "copy_rate",
                                   "compute_per_copy", "idle", NULL};
         *key; key++)
        CHECK(isnan(record_metric(&record, metric_find(*key))));
    CHECK_NEAR(record_metric(&record, metric_find("compute_share")), 50, 1e-9);
}

TEST(line_is_the_golden_one)
{
    struct arena arena = {0};
    struct text line = {0}, file = {0};
    struct record record;
    make_record(&arena, &record);
    if (CHECK_OK(file_read(golden, 1 << 20, &file))) {
        file.data[strcspn(file.data, "\n")] = '\0';
        forget_new_axes(&record.point, text_of(&file));
        record_write(&record, &line);
        CHECK_OK(text_done(&line));
        CHECK_EQUAL_TEXT(text_of(&line), text_of(&file));
    }
    text_free(&line);
    text_free(&file);
    arena_free(&arena);
}

/* Written again, what was read is the same line. */
static enum status write_again(void *context, const struct record *record, const char *line,
                               size_t length)
{
    struct text again = {0};
    record_write(record, &again);
    text_add_char(&again, '\n');
    if (text_done(&again) == STATUS_OK && again.length == length + 1 &&
        memcmp(again.data, line, length) == 0)
        ++*(int *)context;
    else
        CHECK_EQUAL_TEXT(text_of(&again), line);
    text_free(&again);
    return STATUS_OK;
}

TEST(every_kind_of_line_comes_back)
{
    struct text file = {0};
    int same = 0;
    if (CHECK_OK(file_read(golden, 1 << 20, &file)))
        CHECK_OK(record_read_all(golden, text_of(&file), file.length, write_again, &same));
    CHECK_EQUAL_INT(same, 5);
    text_free(&file);
}

static enum status read_line(const char *line, struct record *record, struct arena *arena)
{
    return record_read(arena, "results.jsonl", 7, line, strlen(line), record);
}

TEST(a_copy_outlives_the_record)
{
    struct arena arena = {0}, other = {0};
    struct record record, copy;
    struct text before = {0}, after = {0};
    make_record(&arena, &record);
    record.reason = arena_text(&arena, "why");
    record_write(&record, &before);
    CHECK_OK(record_copy(&other, &record, &copy));
    arena_free(&arena);
    record_write(&copy, &after);
    CHECK_EQUAL_TEXT(text_of(&after), text_of(&before));
    text_free(&before);
    text_free(&after);
    arena_free(&other);
}

TEST(a_handicap_comes_back)
{
    struct record record, back;
    struct arena arena = {0};
    struct text line = {0};
    record_start(&record);
    record.handicap = "reference BLAS (netlib)";
    record_write(&record, &line);
    if (CHECK_OK(read_line(text_of(&line), &back, &arena)))
        CHECK_EQUAL_TEXT(back.handicap, record.handicap);
    text_free(&line);
    arena_free(&arena);
}

TEST(unknown_members_are_passed_over)
{
    struct arena arena = {0};
    struct record record;
    CHECK_OK(read_line("{\"new\":[1],\"prony\":1,\"kind\":\"result\",\"status\":\"ok\","
                       "\"point\":{\"batch\":2,\"colour\":\"red\"},\"result\":{\"taste\":{}}}",
                       &record, &arena));
    CHECK_EQUAL_INT(record.point.batch, 2);
    CHECK_EQUAL_TEXT(record.point.framework, "");
    CHECK(isnan(record.time_ns.median));
    arena_free(&arena);
}

TEST(wrong_lines_are_named)
{
#define RESULT "{\"prony\":1,\"kind\":\"result\",\"point\":{},\"status\":\"ok\","
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"", "results.jsonl:7"},
        {"[1]", "results.jsonl:7: record: found an array of 1, expected an object"},
        {"{\"kind\":\"result\"}", "prony: found nothing, expected 1"},
        {"{\"prony\":2,\"kind\":\"result\"}", "prony: found 2, expected 1"},
        {"{\"prony\":\"1\"}", "prony: found \"1\", expected a whole number"},
        {"{\"prony\":1,\"kind\":\"poem\"}", "kind: found \"poem\", expected \"result\" or"},
        {"{\"prony\":1,\"kind\":\"result\",\"status\":\"ok\"}", "point: found nothing"},
        {"{\"prony\":1,\"kind\":\"machine\"}", "machine: found nothing, expected an object"},
        {"{\"prony\":1,\"kind\":\"network\",\"network\":3}", "network: found 3"},
        {"{\"prony\":1,\"kind\":\"result\",\"point\":{\"batch\":\"x\"},\"status\":\"ok\"}",
         "results.jsonl:7: point.batch: found \"x\", expected a whole number from 0"},
        {"{\"prony\":1,\"kind\":\"result\",\"point\":{\"model\":[]},\"status\":\"ok\"}",
         "point.model: found an array of 0, expected a string"},
        {"{\"prony\":1,\"kind\":\"result\",\"point\":{},\"status\":\"fine\"}", "status: found"},
        {RESULT "\"result\":{\"time_ns\":{\"median\":\"1\"}}}",
         "result.time_ns.median: found \"1\", expected a number"},
        {RESULT "\"result\":{\"time_ns\":{\"per\":0}}}", "result.time_ns.per: found 0"},
        {RESULT "\"result\":{\"check\":{}}}", "result.check.verdict: found nothing"},
        {RESULT "\"result\":{\"meters\":{\"a\":\"b\"}}}", "result.meters.a: found \"b\""},
        {RESULT "\"samples_ns\":[1,null]}", "samples_ns: found null, expected numbers above 0"},
        {RESULT "\"samples_ns\":[1,-2]}", "samples_ns: found -2, expected numbers above 0"},
        {RESULT "\"result\":{\"time_ns\":{\"median\":0}}}",
         "result.time_ns.median: found 0, expected a time above 0"},
        {RESULT "\"result\":{\"time_ns\":{\"min\":-5}}}", "result.time_ns.min: found -5"},
        {RESULT "\"result\":{\"time_ns\":{\"ci_low\":3,\"ci_high\":2}}}",
         "result.time_ns.ci_low: found 3, expected at most ci_high"},
        {RESULT "\"kernels\":[1]}", "kernels: found 1, expected strings"},
        {RESULT "\"machine\":1}", "machine: found 1, expected an object"},
        {RESULT "\"at\":\"a\\u0000b\"}", "at: found"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = {0};
        struct record record;
        CHECK_STATUS(STATUS_INPUT, read_line(cases[i].line, &record, &arena));
        CHECK_MESSAGE(cases[i].message);
        arena_free(&arena);
    }
}

TEST(too_many_samples_are_refused)
{
    struct arena arena = {0};
    struct text line = {0};
    struct record record;
    text_add(&line, RESULT "\"samples_ns\":[1");
    for (int i = 0; i < RECORD_SAMPLES; i++)
        text_add(&line, ",1");
    text_add(&line, "]}");
    CHECK_STATUS(STATUS_INPUT, read_line(text_of(&line), &record, &arena));
    CHECK_MESSAGE("an array of 4097");
    text_free(&line);
    arena_free(&arena);
}

/* Neither a long line nor one of many small values takes much memory before it is refused. */
TEST(lines_are_bounded)
{
    struct arena arena = {0};
    struct record record;
    struct text line = {0};
    text_add(&line, "{\"prony\":1,\"kind\":\"machine\",\"machine\":{\"x\":[1");
    while (line.length < RECORD_BYTES - 4)
        text_add(&line, ",1");
    text_add(&line, "]}}");
    CHECK_STATUS(STATUS_INPUT, read_line(text_of(&line), &record, &arena));
    CHECK_MESSAGE("expected at most 1048576 values");
    arena_free(&arena);
    text_add(&line, "        ");
    CHECK_STATUS(STATUS_INPUT, read_line(text_of(&line), &record, &arena));
    CHECK_MESSAGE("expected at most 4194304");
    arena_free(&arena);
    text_free(&line);
}

/* Until it succeeds, every allocation of reading and writing fails once; nothing leaks or crashes,
 * and each failure is said. */
TEST(memory_may_run_out_anywhere)
{
    struct text file = {0};
    if (!CHECK_OK(file_read(golden, 1 << 20, &file)))
        return;
    size_t length = strcspn(text_of(&file), "\n");
    long nth = 1;
    for (bool done = false; !done && nth < 1000; nth++) {
        struct arena arena = {0};
        struct text line = {0};
        struct record record;
        memory_fail_at(nth);
        enum status status = record_read(&arena, golden, 1, text_of(&file), length, &record);
        if (status == STATUS_OK) {
            record_write(&record, &line);
            status = text_done(&line);
        }
        done = !memory_failed();
        memory_fail_at(0);
        CHECK_EQUAL_INT(status, done ? STATUS_OK : STATUS_MEMORY);
        text_free(&line);
        arena_free(&arena);
    }
    CHECK(nth > 3 && nth < 1000);
    text_free(&file);
}

/* Older records of peers lack the unit's name; their machine has it. */
TEST(units_get_their_name_when_read)
{
    static const struct {
        const char *line, *name;
    } rows[] = {
        {"{\"prony\":1,\"kind\":\"result\",\"status\":\"skipped\",\"point\":{\"unit\":\"cpu\"},"
         "\"machine\":{\"cpu\":\"AMD EPYC\",\"gpu\":{\"name\":\"NVIDIA H200\"}}}",
         "AMD EPYC"},
        {"{\"prony\":1,\"kind\":\"result\",\"status\":\"skipped\",\"point\":{\"unit\":\"gpu\"},"
         "\"machine\":{\"cpu\":\"AMD EPYC\",\"gpu\":{\"name\":\"NVIDIA H200\"}}}",
         "NVIDIA H200"},
        {"{\"prony\":1,\"kind\":\"result\",\"status\":\"skipped\",\"point\":{\"unit\":\"cpu\","
         "\"unit_name\":\"its own\"},\"machine\":{\"cpu\":\"AMD EPYC\"}}",
         "its own"},
        {"{\"prony\":1,\"kind\":\"result\",\"status\":\"skipped\",\"point\":{\"unit\":\"cpu\"}}",
         ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena = {0};
        struct record record;
        if (CHECK_OK(record_read(&arena, "test", 1, rows[i].line, strlen(rows[i].line), &record)))
            CHECK_EQUAL_TEXT(record.point.unit_name, rows[i].name);
        arena_free(&arena);
    }
}

TEST(facts_describe_this_machine)
{
    struct facts facts;
    struct arena arena = {0};
    struct point point;
    const struct json *machine, *software;
    facts_find(&facts);
    if (!CHECK_OK(facts_trees(&facts, &arena, &machine, &software)))
        return;
    CHECK(json_int(machine, "cores", 0) >= 1);
    CHECK(json_real(machine, "memory_bytes", 0) > 0);
    CHECK(json_text(machine, "server", "")[0]);
    CHECK_EQUAL_TEXT(json_text(software, "prony", ""), version_number);
    CHECK(json_text(software, "compiler", "")[0] && json_text(software, "kernel", "")[0]);
    double steal = json_real(machine, "steal", 0);
    CHECK(steal >= 0 && steal <= 1);
    point_start(&point);
    facts_set_point(&facts, &point);
    CHECK_EQUAL_TEXT(point.server, facts.server);
    CHECK(text_starts(point.software, "prony "));
    CHECK_EQUAL_TEXT(point.unit_name, facts.cpu.model);
    arena_free(&arena);
}

CHECK_MAIN
