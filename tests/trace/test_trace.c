/* A trace is written and read as the same; texts, sites and lanes are kept once; what is no trace
 * is refused by a line that names the place. */
#include "check.h"
#include "folder.h"

#include "base/file.h"
#include "base/memory.h"
#include "trace/trace.h"

static uint32_t text_of_word(struct trace *trace, const char *word)
{
    uint32_t number = 0;
    CHECK_OK(trace_text(trace, word, strlen(word), &number));
    return number;
}

static uint32_t frame(struct trace *trace, const char *file, uint32_t line, uint32_t caller)
{
    struct site site = {.file = text_of_word(trace, file), .line = line, .caller = caller};
    uint32_t number = 0;
    CHECK_OK(trace_site(trace, &site, &number));
    return number;
}

/* A call at train.py:58, through a package's line, that starts a copy; then a kernel. */
static void make(struct trace *trace)
{
    uint16_t thread, stream;
    *trace = (struct trace){0};
    CHECK_OK(
        trace_lane(trace, &(struct lane){.kind = LANE_THREAD, .group = 7, .number = 8}, &thread));
    CHECK_OK(trace_lane(trace, &(struct lane){.kind = LANE_STREAM, .number = 13}, &stream));
    uint32_t user = frame(trace, "train.py", 58, 0);
    uint32_t site = frame(trace, "/usr/lib/python3/dist-packages/torch/nn/linear.py", 9, user);
    CHECK_OK(trace_add(trace, &(struct span){.kind = SPAN_kernel,
                                             .lane = stream,
                                             .start_ns = 900,
                                             .end_ns = 1000,
                                             .name = text_of_word(trace, "gemm")}));
    CHECK_OK(trace_add(trace, &(struct span){.kind = SPAN_copy,
                                             .lane = stream,
                                             .start_ns = 500,
                                             .end_ns = 800,
                                             .correlation = 5,
                                             .bytes = 1ull << 40,
                                             .from_memory = MEMORY_PAGEABLE,
                                             .to_memory = MEMORY_DEVICE}));
    CHECK_OK(trace_add(trace, &(struct span){.kind = SPAN_call,
                                             .lane = thread,
                                             .start_ns = -300,
                                             .end_ns = 400,
                                             .correlation = 5,
                                             .site = site,
                                             .name = text_of_word(trace, "cudaMemcpyAsync")}));
    CHECK_OK(trace_add_fact(trace, "command", "python train.py"));
    CHECK_OK(trace_finish(trace, "made"));
}

TEST(spans_are_sorted_and_share_the_site_of_their_call)
{
    struct trace trace;
    make(&trace);
    CHECK_EQUAL_INT(trace.spans[0].kind, SPAN_call);
    CHECK_EQUAL_INT(trace.spans[1].kind, SPAN_copy);
    CHECK_EQUAL_INT(trace.spans[1].site, trace.spans[0].site);
    CHECK_EQUAL_INT(trace.spans[2].site, 0);
    struct text line = {0};
    trace_add_line(&trace, trace_user_site(&trace, trace.spans[1].site), &line);
    CHECK_EQUAL_TEXT(text_of(&line), "train.py:58");
    text_free(&line);
    trace_free(&trace);
}

TEST(a_text_a_site_and_a_lane_are_kept_once)
{
    struct trace trace;
    make(&trace);
    size_t texts = trace.text_count, sites = trace.site_count, lanes = trace.lane_count;
    uint16_t lane;
    uint32_t name = text_of_word(&trace, "gemm");
    CHECK_EQUAL_TEXT(trace_word(&trace, name), "gemm");
    frame(&trace, "train.py", 58, 0);
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_STREAM, .number = 13}, &lane));
    CHECK_EQUAL_INT(trace.text_count, texts);
    CHECK_EQUAL_INT(trace.site_count, sites);
    CHECK_EQUAL_INT(trace.lane_count, lanes);
    for (int i = 0; i < 5000; i++) {
        char word[16];
        snprintf(word, sizeof word, "%d", i % 2500);
        text_of_word(&trace, word);
        frame(&trace, "train.py", (uint32_t)i % 2500, 0);
    }
    CHECK_EQUAL_INT(trace.text_count, texts + 2500);
    CHECK_EQUAL_INT(trace.site_count, sites + 2499); /* line 58 was there */
    trace_free(&trace);
}

TEST(what_is_written_is_read_again)
{
    struct trace trace, again;
    struct text once = {0}, twice = {0};
    make(&trace);
    const char *path = at("own.trace");
    CHECK_OK(trace_write(&trace, path));
    CHECK(trace_is_one(path));
    if (CHECK_OK(trace_read(path, &again))) {
        trace_write_text(&trace, &once);
        CHECK_OK(trace_add_fact(&trace, "format", "prony"));
        text_clear(&once);
        trace_write_text(&trace, &once);
        trace_write_text(&again, &twice);
        CHECK_EQUAL_TEXT(text_of(&twice), text_of(&once));
        CHECK_EQUAL_INT(again.spans[1].bytes, 1ll << 40);
        CHECK_EQUAL_INT(again.spans[1].from_memory, MEMORY_PAGEABLE);
        CHECK_EQUAL_TEXT(trace_fact(&again, "command"), "python train.py");
        trace_free(&again);
    }
    text_free(&once);
    text_free(&twice);
    trace_free(&trace);
}

TEST(a_broken_file_is_refused_by_a_line_that_names_the_place)
{
    static const struct {
        const char *content, *message;
    } cases[] = {
        {"", "found an empty file"},
        {"hello", "found no trace"},
        {"prony trace 9\n", "trace:1: found \"prony trace 9\", expected \"prony trace 1\""},
        {"prony trace 1\nlane\tthread\nkernel\t0\t5\n", "trace:3: found \"kernel\""},
        {"prony trace 1\nkernel\t0\t5\t5\n", "trace:2: found \"kernel\""},
        {"prony trace 1\nlane\tthread\nkernel\t1\t5\t5\n", "found \"1\" in field 2"},
        {"prony trace 1\nlane\tthread\nkernel\t0\t5\t-5\n", "found \"-5\" in field 4"},
        {"prony trace 1\nlane\tthread\nkernel\t0\t5\t5\t1\n", "found \"1\" in field 5"},
        {"prony trace 1\nlane\tthread\ncopy\t0\t5\t5\t0\t0\t0\t0\t5\n", "found \"5\" in field 9"},
        {"prony trace 1\nsite\t0\t0\t1\t1\n", "found \"1\" in field 5"},
        {"prony trace 1\nlane\tfibre\n", "expected thread or stream"},
        {"prony trace 1\ntext\ta\ntext\ta\n", "trace:3: found \"text\", expected a text that is"},
        {"prony trace 1\nsteps\t1\n", "expected fact, text, site, lane or a kind of span"},
        {"prony trace 1\nlane\tthread", "found the end of the file in a line"},
    };
    const char *path = at("broken.trace");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trace trace;
        CHECK_OK(file_write(path, cases[i].content, strlen(cases[i].content)));
        CHECK_STATUS(STATUS_INPUT, trace_read(path, &trace));
        CHECK_MESSAGE(cases[i].message);
    }
}

TEST(memory_that_runs_out_is_said)
{
    struct trace trace, again;
    const char *path = at("memory.trace");
    make(&trace);
    CHECK_OK(trace_write(&trace, path));
    trace_free(&trace);
    for (long nth = 1;; nth++) {
        memory_fail_at(nth);
        enum status status = trace_read(path, &again);
        bool failed = memory_failed();
        memory_fail_at(0);
        if (status == STATUS_OK)
            trace_free(&again);
        if (!failed)
            break;
        CHECK_EQUAL_INT(status, STATUS_MEMORY);
    }
}

CHECK_MAIN
