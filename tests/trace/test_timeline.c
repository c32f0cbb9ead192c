/* What is kept of a trace and shown of it: an excerpt, few blocks, a tree of stacks. */
#include "check.h"

#include "base/memory.h"
#include "trace/flame.h"
#include "trace/timeline.h"

#include <stdint.h>

static uint32_t word(struct trace *trace, const char *text)
{
    uint32_t number = 0;
    CHECK_OK(trace_text(trace, text, strlen(text), &number));
    return number;
}

static uint32_t frame(struct trace *trace, const char *function, uint32_t caller)
{
    struct site site = {.function = word(trace, function), .caller = caller};
    uint32_t number = 0;
    CHECK_OK(trace_site(trace, &site, &number));
    return number;
}

static void add(struct trace *trace, enum span_kind kind, uint16_t lane, int64_t start_ns,
                int64_t ns, const char *name, uint32_t site)
{
    CHECK_OK(trace_add(trace, &(struct span){.kind = (uint8_t)kind,
                                             .lane = lane,
                                             .start_ns = start_ns,
                                             .end_ns = start_ns + ns,
                                             .name = word(trace, name),
                                             .site = site}));
}

/* 1,000 steps of 1 µs on a thread: an op of 600 ns with one of 200 ns in it. */
static void make_steps(struct trace *trace)
{
    uint16_t lane;
    *trace = (struct trace){0};
    CHECK_OK(trace_lane(trace, &(struct lane){.kind = LANE_THREAD, .number = 1}, &lane));
    uint32_t outer = frame(trace, "main", 0);
    uint32_t inner = frame(trace, "relu", frame(trace, "layer", outer));
    for (int64_t step = 0; step < 1000; step++) {
        add(trace, SPAN_op, lane, 1000 * step, 600, "layer", frame(trace, "layer", outer));
        add(trace, SPAN_op, lane, 1000 * step + 100, 200, "relu", inner);
    }
    CHECK_OK(trace_finish(trace, "made"));
}

TEST(a_timeline_is_few_blocks_and_loses_no_span)
{
    struct trace trace;
    struct timeline timeline;
    make_steps(&trace);
    if (!CHECK_OK(timeline_make(&trace, 0, 0, 400, &timeline)))
        return;
    size_t spans = 0;
    for (size_t i = 0; i < timeline.count; i++)
        spans += timeline.blocks[i].count;
    CHECK(timeline.count <= 400 && timeline.count >= 100);
    CHECK_EQUAL_INT(spans, 2000);
    CHECK_EQUAL_INT(timeline.depths[0], 2);
    CHECK_EQUAL_INT(timeline.end_ns, 999600);
    timeline_free(&timeline);
    trace_free(&trace);
}

TEST(a_stretch_is_shown_span_by_span)
{
    struct trace trace;
    struct timeline timeline;
    make_steps(&trace);
    if (!CHECK_OK(timeline_make(&trace, 5000, 9900, 400, &timeline)))
        return;
    CHECK_EQUAL_INT(timeline.count, 10);
    for (size_t i = 0; i < timeline.count; i++) {
        const struct timeline_block *block = &timeline.blocks[i];
        CHECK_EQUAL_INT(block->count, 1);
        CHECK_EQUAL_INT(block->depth, i % 2);
        CHECK_EQUAL_TEXT(trace_word(&trace, block->name), i % 2 ? "relu" : "layer");
    }
    timeline_free(&timeline);
    trace_free(&trace);
}

TEST(lanes_without_a_row_are_counted)
{
    struct trace trace = {0};
    struct timeline timeline;
    for (int64_t number = 0; number < 40; number++) {
        uint16_t lane;
        CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_THREAD, .number = number}, &lane));
        add(&trace, SPAN_op, lane, 0, 10 + number, "op", 0);
    }
    CHECK_OK(trace_finish(&trace, "made"));
    if (!CHECK_OK(timeline_make(&trace, 0, 0, 400, &timeline)))
        return;
    CHECK_EQUAL_INT(timeline.lane_count, TIMELINE_LANES);
    CHECK_EQUAL_INT(timeline.left_out, 40 - TIMELINE_LANES);
    CHECK_EQUAL_INT(trace.lanes[timeline.lanes[0]].number, 39); /* it does most */
    timeline_free(&timeline);
    trace_free(&trace);
}

/* Looks stand for a time that may reach into the next. */
TEST(looks_at_a_thread_share_a_row)
{
    struct trace trace = {0};
    struct timeline timeline;
    uint16_t lane;
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_THREAD}, &lane));
    for (int i = 0; i < 20; i++)
        add(&trace, i % 3 ? SPAN_sleep : SPAN_sample, lane, 1000 * i, 1100, "read", 0);
    CHECK_OK(trace_finish(&trace, "made"));
    if (!CHECK_OK(timeline_make(&trace, 0, 0, 400, &timeline)))
        return;
    CHECK_EQUAL_INT(timeline.depths[0], 1);
    CHECK_EQUAL_INT(timeline.count, 20);
    for (size_t i = 1; i < timeline.count; i++)
        CHECK_EQUAL_INT(timeline.blocks[i - 1].end_ns, timeline.blocks[i].start_ns);
    timeline_free(&timeline);
    trace_free(&trace);
}

/* The time of the children and a node's own are its time. */
static void check_sums(const struct flame *flame)
{
    int64_t *sums = mem_array(flame->count, sizeof *sums);
    for (size_t i = 0; sums && i < flame->count; i++)
        sums[i] = flame->nodes[i].self_ns;
    for (size_t i = flame->count; sums && i-- > 1;)
        sums[flame->nodes[i].parent] += flame->nodes[i].all_ns;
    for (size_t i = 0; sums && i < flame->count; i++) {
        CHECK(i == 0 || flame->nodes[i].parent < i);
        CHECK_EQUAL_INT(sums[i], flame->nodes[i].all_ns);
    }
    mem_free(sums);
}

TEST(stacks_are_one_tree)
{
    struct trace trace;
    struct flame flame;
    make_steps(&trace);
    if (!CHECK_OK(flame_make(&trace, 100, &flame)))
        return;
    CHECK_EQUAL_INT(flame.of, OWN_OPS);
    CHECK_EQUAL_INT(flame.count, 4);
    CHECK_EQUAL_INT(flame.nodes[0].all_ns, 600000);
    CHECK_EQUAL_TEXT(trace_word(&trace, flame.nodes[2].function), "layer");
    CHECK_EQUAL_INT(flame.nodes[2].self_ns, 400000);
    CHECK_EQUAL_INT(flame.nodes[3].all_ns, 200000);
    check_sums(&flame);
    flame_free(&flame);
    trace_free(&trace);
}

TEST(a_kernel_is_the_last_frame_of_who_launched_it)
{
    struct trace trace = {0};
    struct flame flame;
    uint16_t stream;
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_STREAM}, &stream));
    add(&trace, SPAN_kernel, stream, 0, 70, "gemm", frame(&trace, "train", 0));
    add(&trace, SPAN_kernel, stream, 70, 30, "relu", 0);
    CHECK_OK(trace_finish(&trace, "made"));
    if (!CHECK_OK(flame_make(&trace, 100, &flame)))
        return;
    CHECK_EQUAL_INT(flame.count, 4);
    CHECK_EQUAL_TEXT(trace_word(&trace, flame.nodes[2].function), "gemm");
    CHECK_EQUAL_INT(flame.nodes[2].parent, 1);
    CHECK_EQUAL_INT(flame.nodes[3].parent, 0);
    flame_free(&flame);
    trace_free(&trace);
}

TEST(a_large_tree_keeps_where_the_time_is)
{
    struct trace trace = {0};
    struct flame flame;
    uint16_t lane;
    CHECK_OK(trace_lane(&trace, &(struct lane){.kind = LANE_THREAD}, &lane));
    uint32_t outer = frame(&trace, "main", 0);
    for (int i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        add(&trace, SPAN_sample, lane, 10000 * i, i, name, frame(&trace, name, outer));
    }
    CHECK_OK(trace_finish(&trace, "made"));
    if (!CHECK_OK(flame_make(&trace, 100, &flame)))
        return;
    CHECK(flame.count <= 100 && flame.count >= 98);
    CHECK_EQUAL_INT(flame.nodes[0].all_ns, 499 * 500 / 2);
    check_sums(&flame);
    flame_free(&flame);
    trace_free(&trace);
}

TEST(an_excerpt_has_the_longest_spans_of_a_stretch)
{
    struct trace trace, part, again;
    struct text text = {0};
    make_steps(&trace);
    if (!CHECK_OK(trace_excerpt(&trace, 100000, 200000, 120, &part)))
        return;
    size_t longer = 0;
    for (size_t i = 0; i < part.span_count; i++) {
        longer += span_ns(&part.spans[i]) == 600;
        CHECK(part.spans[i].start_ns >= 100000 && part.spans[i].start_ns < 200000);
    }
    CHECK_EQUAL_INT(part.span_count, 120);
    CHECK_EQUAL_INT(longer, 100);
    CHECK_EQUAL_INT(part.site_count, 4);
    trace_write_text(&part, &text);
    if (CHECK_OK(trace_read_text("kept", text_of(&text), text.length, &again))) {
        CHECK_EQUAL_INT(again.span_count, 120);
        CHECK_EQUAL_TEXT(trace_word(&again, again.spans[0].name), "layer");
        trace_free(&again);
    }
    CHECK_STATUS(STATUS_INPUT, trace_read_text("kept", text_of(&text), text.length - 1, &again));
    text_free(&text);
    trace_free(&part);
    trace_free(&trace);
}

/* Traces of real programs: all that is kept of each is shown within the limits. */
TEST(recorded_runs_are_shown)
{
    static const char *const names[] = {"copy.pageable", "launch.single", "loader.0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[100];
        struct trace trace;
        struct timeline timeline;
        struct flame flame;
        snprintf(path, sizeof path, "tests/trace/recorded/%s.trace.gz", names[i]);
        if (!CHECK_OK(trace_read(path, &trace)))
            continue;
        CHECK_OK(timeline_make(&trace, 0, 0, 2000, &timeline));
        CHECK(timeline.count > 50 && timeline.count <= 2000);
        CHECK_OK(flame_make(&trace, 2000, &flame));
        CHECK(flame.count > 5);
        check_sums(&flame);
        timeline_free(&timeline);
        flame_free(&flame);
        trace_free(&trace);
    }
}

CHECK_MAIN
