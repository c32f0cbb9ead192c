/* Traces of other tools: each becomes the same structure, and what is broken is refused by one line
 * that names the place. */
#include "check.h"
#include "folder.h"

#include "advise/advise.h"
#include "base/file.h"

#include <stdlib.h>

#define RECORDED "tests/trace/recorded/"

static size_t count_kind(const struct trace *trace, enum span_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        count += trace->spans[i].kind == kind;
    return count;
}

static const struct span *first_of(const struct trace *trace, enum span_kind kind)
{
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind == kind)
            return &trace->spans[i];
    return NULL;
}

TEST(kineto_kernels_copies_and_calls_are_read)
{
    struct trace trace;
    if (!CHECK_OK(trace_read(RECORDED "kineto.copy.pageable.json.gz", &trace)))
        return;
    CHECK_EQUAL_TEXT(trace_fact(&trace, "format"), "Kineto");
    CHECK_EQUAL_TEXT(trace_fact(&trace, "gpu"), "NVIDIA H200");
    CHECK_EQUAL_INT(count_kind(&trace, SPAN_kernel), 276);
    CHECK_EQUAL_INT(count_kind(&trace, SPAN_copy), 12);
    CHECK_EQUAL_INT(count_kind(&trace, SPAN_fill), 72);
    CHECK_EQUAL_INT(count_kind(&trace, SPAN_call), 519 + 24);
    CHECK_EQUAL_INT(count_kind(&trace, SPAN_op), 1560);
    const struct span *copy = first_of(&trace, SPAN_copy);
    if (CHECK(copy != NULL)) {
        CHECK_EQUAL_INT(copy->bytes, 100663296);
        CHECK_EQUAL_INT(copy->from_memory, MEMORY_PAGEABLE);
        CHECK_EQUAL_INT(copy->to_memory, MEMORY_DEVICE);
        CHECK_EQUAL_INT(copy->start_ns, 3999565059728262);
        CHECK_EQUAL_INT(span_ns(copy), 12560612);
    }
    trace_free(&trace);
}

/* The same program, watched by two tools in two runs. */
TEST(kineto_and_our_own_trace_give_the_same_budget_and_finding)
{
    static const char *const paths[] = {RECORDED "copy.pageable.trace.gz",
                                        RECORDED "kineto.copy.pageable.json.gz"};
    double compute[2], copy[2];
    for (int i = 0; i < 2; i++) {
        struct trace trace = {0};
        struct advice advice = {0};
        if (!CHECK_OK(trace_read(paths[i], &trace)) || !CHECK_OK(advise(&trace, NULL, &advice)))
            return;
        double window = (double)advice.budget.window_ns;
        compute[i] = (double)advice.budget.part_ns[BUDGET_COMPUTE] / window;
        copy[i] = (double)advice.budget.part_ns[BUDGET_COPY] / window;
        CHECK_EQUAL_INT(advice.steps.period, 23);
        CHECK_NEAR(advice.replay, 1, 0.02);
        if (CHECK(advice.count > 0)) {
            CHECK_EQUAL_TEXT(advice.findings[0].rule->id, "R1");
            CHECK(advice.findings[0].low <= 4.57 && 4.57 <= advice.findings[0].high);
        }
        advice_free(&advice);
        trace_free(&trace);
    }
    CHECK_NEAR(compute[0], compute[1], 0.01);
    CHECK_NEAR(copy[0], copy[1], 0.03);
}

TEST(nodes_of_onnx_runtime_are_ops_and_its_runs_steps)
{
    struct trace trace;
    if (!CHECK_OK(trace_read(RECORDED "ort.json.gz", &trace)))
        return;
    const struct span *op = first_of(&trace, SPAN_op);
    CHECK_EQUAL_TEXT(trace_fact(&trace, "format"), "ONNX Runtime");
    CHECK(count_kind(&trace, SPAN_step) > 0);
    if (CHECK(op != NULL)) {
        CHECK_EQUAL_TEXT(trace_word(&trace, op->name), "MatMul");
        CHECK_EQUAL_INT(span_ns(op), 251000);
    }
    trace_free(&trace);
}

TEST(functions_of_a_jax_trace_have_lines)
{
    struct trace trace;
    if (!CHECK_OK(trace_read(RECORDED "jax_cpu.trace.json.gz", &trace)))
        return;
    const struct span *python = first_of(&trace, SPAN_python);
    CHECK_EQUAL_TEXT(trace_fact(&trace, "format"), "JAX");
    if (CHECK(python != NULL) && CHECK(python->site > 0)) {
        struct text line = {0};
        trace_add_line(&trace, python->site, &line);
        CHECK_EQUAL_TEXT(text_of(&line), "contextlib.py:132");
        text_free(&line);
    }
    trace_free(&trace);
}

/* Our recorded run in the tables of Nsight Systems: the same budget and finding. */
TEST(tables_of_nsight_systems_give_the_same_finding)
{
    struct trace trace;
    struct advice advice = {0};
    enum status status = trace_read(RECORDED "nsys.copy.pageable.sqlite", &trace);
    if (status == STATUS_UNSUPPORTED)
        SKIP("%s", status_message());
    if (!CHECK_OK(status))
        return;
    CHECK_EQUAL_TEXT(trace_fact(&trace, "format"), "Nsight Systems");
    CHECK_EQUAL_TEXT(trace_fact(&trace, "gpu"), "NVIDIA H200");
    CHECK_EQUAL_INT(count_kind(&trace, SPAN_kernel), 276);
    if (CHECK_OK(advise(&trace, NULL, &advice)) && CHECK(advice.count > 0)) {
        CHECK_EQUAL_TEXT(advice.findings[0].rule->id, "R1");
        CHECK_NEAR(100.0 * (double)advice.budget.part_ns[BUDGET_COPY] /
                       (double)advice.budget.window_ns,
                   83.6, 0.1);
        CHECK_NEAR(advice.replay, 1, 0.02);
    }
    advice_free(&advice);
    trace_free(&trace);
}

TEST(an_xplane_has_the_functions_of_the_json_of_the_same_run)
{
    struct trace json, plane;
    if (!CHECK_OK(trace_read(RECORDED "jax_cpu.trace.json.gz", &json)))
        return;
    if (CHECK_OK(trace_read(RECORDED "jax_cpu.xplane.pb", &plane))) {
        CHECK_EQUAL_TEXT(trace_fact(&plane, "format"), "XPlane");
        CHECK_EQUAL_INT(count_kind(&plane, SPAN_python), count_kind(&json, SPAN_python));
        const struct span *first = first_of(&plane, SPAN_python);
        const struct span *same = first_of(&json, SPAN_python);
        if (CHECK(first && same))
            CHECK_EQUAL_INT(span_ns(first), span_ns(same));
        trace_free(&plane);
    }
    trace_free(&json);
}

TEST(broken_bytes_of_an_xplane_are_named)
{
    static const char content[] = "\x0A\x7F\x12\x05plane\x1A\x7Fxxxxxxxxxxxxxxxxxxxx";
    struct trace trace;
    const char *path = at("cut.pb");
    CHECK_OK(file_write(path, content, sizeof content - 1));
    CHECK_STATUS(STATUS_INPUT, trace_read(path, &trace));
    CHECK_MESSAGE("cut.pb: byte 2: found a field that is longer than the rest");
}

static enum status read_text(const char *content, struct trace *trace)
{
    const char *path = at("made.json");
    CHECK_OK(file_write(path, content, strlen(content)));
    return trace_read(path, trace);
}

TEST(a_call_has_the_python_functions_around_it)
{
    struct trace trace;
    static const char content[] =
        "[{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"train.py(10): main\",\"ts\":0,"
        "\"dur\":100,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"x/site-packages/t.py(7): to\","
        "\"ts\":10,\"dur\":20,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"ts\":12.5,\"dur\":"
        "5.25,\"pid\":1,\"tid\":1,\"args\":{\"correlation\":9}},"
        "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH (Device -> Pinned)\","
        "\"ts\":15,\"dur\":1,\"pid\":0,\"tid\":7,\"args\":{\"correlation\":9,\"stream\":7,"
        "\"device\":0,\"bytes\":64}}]";
    if (!CHECK_OK(read_text(content, &trace)))
        return;
    const struct span *copy = first_of(&trace, SPAN_copy);
    if (CHECK(copy != NULL)) {
        struct text line = {0};
        trace_add_line(&trace, trace_user_site(&trace, copy->site), &line);
        CHECK_EQUAL_TEXT(text_of(&line), "train.py:10");
        CHECK_EQUAL_INT(copy->from_memory, MEMORY_DEVICE);
        CHECK_EQUAL_INT(copy->to_memory, MEMORY_PINNED);
        text_free(&line);
    }
    CHECK_EQUAL_INT(first_of(&trace, SPAN_call)->start_ns, 12500);
    trace_free(&trace);
}

TEST(a_broken_trace_is_refused_by_one_line)
{
    static const struct {
        const char *content, *message;
    } cases[] = {
        {"{\"traceEvents\":[{\"ph\":\"X\"", "found the end of the file"},
        {"{\"traceEvents\":[1]}", "found something between events"},
        {"{\"traceEvents\":[[]]}", "found an array among the events"},
        {"[{\"ph\":\"X\",\"ts\":\"soon\",\"dur\":1}]", "found ts \"soon\", expected microseconds"},
        {"[{\"ph\":\"X\",\"ts\":1e99,\"dur\":1}]", "expected microseconds"},
        {"[{\"ph\" \"X\"}]", "expected a colon"},
        {"[{\"ph\":\"X\" \"ts\":1}]", "expected a comma or the end"},
        {"[{}]]", "found a closing bracket"},
        {"{\"traceEvents\":[]}{", "found text after the end"},
        {"[{\n\n\"ph\":}]", "made.json:3: event 1: found"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trace trace;
        CHECK_STATUS(STATUS_INPUT, read_text(cases[i].content, &trace));
        CHECK_MESSAGE(cases[i].message);
    }
}

TEST(an_array_without_its_end_is_read)
{
    struct trace trace;
    if (!CHECK_OK(
            read_text("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2,\"pid\":1},", &trace)))
        return;
    CHECK_EQUAL_INT(trace.span_count, 1);
    trace_free(&trace);
}

CHECK_MAIN
