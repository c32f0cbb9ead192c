/* Advice on recorded runs of PyTorch programs with a fault each, and on some without: the first
 * finding, its line, and its gain beside what a run with the fault mended took. */
#include "check.h"

#include "advise/advise.h"

#include <math.h>

#define RECORDED "tests/trace/recorded/"

/* `truth`: unwatched time ÷ that of the program without the fault. */
static const struct recorded {
    const char *name, *rule, *line;
    double truth,
        near; /* how far the gain may be from it, as a share; 0: only the range holds it */
} recorded[] = {
    {"copy.pageable", "R1", "train_gpu.py:58", 4.57, 0.05},
    {"copy.pinned", "R2", "train_gpu.py:58", 1.96, 0.05},
    {"item.every", "R3", "train_gpu.py:72", 1.20, 0},
    {"launch.single", "R4", NULL, 1.5, 0}, /* the same with a foreach optimiser */
    {"loader.0", "R5", "train_gpu.py:113", 5.0, 0},
    {"wide.fp32", "R6", "train_gpu.py:26", 5.7, 0.10},
    {"back.cpu", "R8", "train_gpu.py:146", 39, 0.10},
    {"copy.overlapped", NULL, NULL, 1, 0},
    {"item.never", NULL, NULL, 1, 0},
    {"launch.graph", NULL, NULL, 1, 0},
    {"wide.bf16", NULL, NULL, 1, 0},
    {"back.none", NULL, NULL, 1, 0},
};
enum { RECORDED_COUNT = sizeof recorded / sizeof *recorded };

static bool read_recorded(const char *name, struct trace *trace, struct advice *advice)
{
    char path[200];
    snprintf(path, sizeof path, RECORDED "%s.trace.gz", name);
    if (!CHECK_OK(trace_read(path, trace)))
        return false;
    return CHECK_OK(advise(trace, NULL, advice));
}

static void check_first_finding(const struct recorded *run, const struct trace *trace,
                                const struct advice *advice)
{
    if (!run->rule) {
        CHECK_EQUAL_INT(advice->count, 0);
        return;
    }
    if (!CHECK(advice->count > 0))
        return;
    const struct finding_of_trace *first = &advice->findings[0];
    struct text line = {0};
    trace_add_line(trace, first->site, &line);
    CHECK_EQUAL_TEXT(first->rule->id, run->rule);
    if (run->line)
        CHECK_EQUAL_TEXT(text_of(&line), run->line);
    CHECK(first->low <= run->truth && run->truth <= first->high);
    if (run->near > 0)
        CHECK_NEAR(first->gain / run->truth, 1, run->near);
    text_free(&line);
}

TEST(the_first_finding_is_the_fault_and_clean_programs_have_none)
{
    for (int i = 0; i < RECORDED_COUNT; i++) {
        struct trace trace = {0};
        struct advice advice = {0};
        if (!check_wants(recorded[i].name))
            continue;
        if (read_recorded(recorded[i].name, &trace, &advice)) {
            CHECK(!advice.silent);
            check_first_finding(&recorded[i], &trace, &advice);
        }
        if (check_failures)
            printf("in %s\n", recorded[i].name);
        advice_free(&advice);
        trace_free(&trace);
    }
}

TEST(every_nanosecond_counts_once)
{
    for (int i = 0; i < RECORDED_COUNT; i++) {
        struct trace trace = {0};
        struct advice advice = {0};
        if (read_recorded(recorded[i].name, &trace, &advice)) {
            int64_t sum = 0;
            for (int part = 0; part < BUDGET_PARTS; part++)
                sum += advice.budget.part_ns[part];
            CHECK_EQUAL_INT(sum, advice.budget.window_ns);
            CHECK(advice.budget.window_ns > 0);
        }
        advice_free(&advice);
        trace_free(&trace);
    }
}

TEST(the_replay_takes_as_long_as_the_run)
{
    for (int i = 0; i < RECORDED_COUNT; i++) {
        struct trace trace = {0};
        struct advice advice = {0};
        if (read_recorded(recorded[i].name, &trace, &advice))
            CHECK_NEAR(advice.replay, 1, 0.02);
        advice_free(&advice);
        trace_free(&trace);
    }
}

TEST(mending_both_copies_gains_what_the_mended_program_did)
{
    struct trace trace = {0};
    struct advice advice = {0};
    if (read_recorded("copy.pageable", &trace, &advice) && CHECK_EQUAL_INT(advice.count, 2)) {
        CHECK_EQUAL_TEXT(advice.findings[1].rule->id, "R2");
        CHECK_NEAR(advice.together / 8.94, 1, 0.05);
    }
    advice_free(&advice);
    trace_free(&trace);
}

TEST(steps_are_those_that_the_programs_counted)
{
    static const struct {
        const char *name;
        size_t period;
    } programs[] = {{"copy.pageable", 23},  {"item.every", 29},    {"item.never", 30},
                    {"launch.single", 530}, {"launch.graph", 305}, {"loader.0", 23},
                    {"wide.fp32", 27},      {"back.cpu", 17}};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct trace trace = {0};
        struct advice advice = {0};
        if (read_recorded(programs[i].name, &trace, &advice))
            CHECK_EQUAL_INT(advice.steps.period, programs[i].period);
        advice_free(&advice);
        trace_free(&trace);
    }
}

/* A trace of `steps` steps: a kernel of 90 µs after 10 µs in which the host does something else. */
static void make(struct trace *trace, int steps)
{
    uint16_t stream;
    uint32_t name;
    *trace = (struct trace){0};
    CHECK_OK(trace_lane(trace, &(struct lane){.kind = LANE_STREAM}, &stream));
    CHECK_OK(trace_text(trace, "gemm", 4, &name));
    for (int i = 0; i < steps; i++)
        CHECK_OK(trace_add(trace, &(struct span){.kind = SPAN_kernel,
                                                 .lane = stream,
                                                 .name = name,
                                                 .start_ns = 100000 * i,
                                                 .end_ns = 100000 * i + 90000}));
    CHECK_OK(trace_finish(trace, "made"));
}

TEST(too_few_steps_say_nothing)
{
    struct trace trace;
    struct advice advice;
    make(&trace, 8);
    if (CHECK_OK(advise(&trace, NULL, &advice))) {
        CHECK_EQUAL_INT(advice.count, 0);
        CHECK_EQUAL_TEXT(advice.silent, "found 7 whole steps, expected 10 or more");
        advice_free(&advice);
    }
    trace_free(&trace);
}

TEST(an_empty_trace_says_so)
{
    struct trace trace = {0};
    struct advice advice;
    CHECK_OK(trace_finish(&trace, "empty"));
    if (CHECK_OK(advise(&trace, NULL, &advice))) {
        CHECK_EQUAL_TEXT(advice.silent, "the trace is empty");
        advice_free(&advice);
    }
    trace_free(&trace);
}

TEST(calls_are_known_by_their_names)
{
    CHECK_EQUAL_INT(call_kind_of("cudaStreamWaitEvent"), CALL_QUEUE);
    CHECK_EQUAL_INT(call_kind_of("cudaStreamSynchronize"), CALL_WAIT);
    CHECK_EQUAL_INT(call_kind_of("hipMemcpyAsync"), CALL_COPY);
    CHECK_EQUAL_INT(call_kind_of("cuLaunchKernelEx"), CALL_LAUNCH);
    CHECK_EQUAL_INT(call_kind_of("cudaGraphLaunch"), CALL_LAUNCH);
    CHECK_EQUAL_INT(call_kind_of("cudaHostAlloc"), CALL_ALLOCATION);
    CHECK_EQUAL_INT(call_kind_of("aten::linear"), CALL_OTHER);
}

/* One call and what it starts. The host is at *host_ns, and waits until the op that it launched
 * `DEEP` ops ago is done. */
enum { DEEP = 1024, AHEAD_STEPS = 289, AHEAD_KERNELS = 17 };
static int64_t done_ns[DEEP];

static void launch(struct trace *trace, int64_t *host_ns, int64_t *gpu_ns, uint32_t number,
                   enum span_kind kind, int64_t ns)
{
    struct span call = {.kind = SPAN_call, .correlation = number, .start_ns = *host_ns};
    struct span op = {.kind = (uint8_t)kind, .correlation = number, .lane = 1};
    char name[32];
    const char *call_name = kind == SPAN_copy ? "cudaMemcpyAsync" : "cudaLaunchKernel";
    snprintf(name, sizeof name, "kernel_%u", number % (AHEAD_KERNELS + 1));
    if (done_ns[number % DEEP] > *host_ns)
        *host_ns = done_ns[number % DEEP];
    *host_ns += 5000;
    call.end_ns = *host_ns;
    *gpu_ns = (*gpu_ns > *host_ns ? *gpu_ns : *host_ns) + 2000;
    op.start_ns = *gpu_ns;
    op.end_ns = *gpu_ns += ns;
    done_ns[number % DEEP] = *gpu_ns;
    if (kind == SPAN_copy) {
        op.bytes = 100 << 20;
        op.from_memory = MEMORY_PINNED;
        op.to_memory = MEMORY_DEVICE;
    }
    CHECK_OK(trace_text(trace, call_name, strlen(call_name), &call.name));
    CHECK_OK(trace_text(trace, name, strlen(name), &op.name));
    CHECK_OK(trace_add(trace, &call));
    CHECK_OK(trace_add(trace, &op));
    *host_ns += 3000;
}

/* The host launches a thousand ops ahead, so that those of a step were launched fifty steps before.
 */
TEST(a_host_far_ahead_is_replayed)
{
    struct trace trace = {0};
    struct advice advice;
    uint16_t lane;
    int64_t host_ns = 0, gpu_ns = 0;
    uint32_t number = 0;
    memset(done_ns, 0, sizeof done_ns);
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_THREAD, .number = 1}, &lane));
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_STREAM, .number = 7}, &lane));
    for (int step = 0; step < AHEAD_STEPS; step++) {
        launch(&trace, &host_ns, &gpu_ns, ++number, SPAN_copy, 1800000);
        for (int i = 0; i < AHEAD_KERNELS; i++)
            launch(&trace, &host_ns, &gpu_ns, ++number, SPAN_kernel, 20000);
    }
    CHECK_OK(trace_finish(&trace, "far ahead"));
    if (CHECK_OK(advise(&trace, NULL, &advice))) {
        CHECK_NEAR(advice.replay, 1, 0.02);
        CHECK(advice.count > 0 && !strcmp(advice.findings[0].rule->id, "R2"));
        if (advice.count)
            CHECK_NEAR(advice.findings[0].gain, 1.2, 0.05);
        advice_free(&advice);
    }
    trace_free(&trace);
}

CHECK_MAIN
